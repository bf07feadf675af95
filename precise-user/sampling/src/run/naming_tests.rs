//! Tests of the naming thread, with synthetic cells and records.

use std::sync::{Mutex, mpsc::sync_channel};

use super::*;
use crate::run::deadline::Deadline;
use crate::run::made_tests::{CODE, assembler, cell, exec, exec_of, exit, processes};
use precise_model::{Dimension, Name};

/// The result of an epoch: the epoch, and process names with their numbers of samples.
type Seen = (Epoch, Vec<(String, u64)>);

/// A sink that keeps what it takes, and takes no more after `limit` epochs.
#[derive(Clone)]
struct Kept {
    seen: Arc<Mutex<Vec<Seen>>>,
    limit: usize,
}

impl Kept {
    fn up_to(limit: usize) -> Self {
        Self { seen: Arc::default(), limit }
    }
}

impl RowSink for Kept {
    fn take(&mut self, named: &mut Capture, rows: &[Row]) -> bool {
        let name = |row: &Row| match row.process {
            Name::Known(id) => named.names.get(id).to_owned(),
            Name::Unknown(reason) => reason.as_str().to_owned(),
        };
        let rows = rows.iter().map(|row| (name(row), row.measures.count)).collect();
        let mut seen = self.seen.lock().unwrap();
        seen.push((named.meta.epochs.last().copied().unwrap(), rows));
        seen.len() < self.limit
    }
}

fn epoch(second: u64) -> (Epoch, Range<u64>) {
    let window = second * 1_000..(second + 1) * 1_000;
    (Epoch { start_ns: window.start, end_ns: window.end }, window)
}

fn drained(cells: &[Cell]) -> Vec<Drained> {
    vec![Drained { cells: cells.iter().map(|cell| (0, *cell)).collect(), chains: Chains::default() }]
}

fn start<S: RowSink>(sink: S) -> Naming<S> {
    let events = vec![EventInfo::default()];
    let assembler = assembler(&[Dimension::Ip, Dimension::Process]);
    Naming::start(assembler, processes(&[]), sink, events, None, NamedFirst::default(), || true).unwrap()
}

/// A pid above the kernel's maximum (PID_MAX_LIMIT is 4 Mi), so that no process of this machine has
/// it.
const PID: u32 = 5_000_000;

#[test]
fn samples_are_named_by_what_was_recorded_before_them() {
    let sink = Kept::up_to(usize::MAX);
    let mut naming = start(sink.clone());
    naming.begun(1);
    for (second, name) in [(1, "first"), (2, "second")] {
        naming.sideband(exec(second * 1_000 - 10, PID, name).to_vec());
        let (epoch, window) = epoch(second);
        naming.epoch(epoch, window, u64::MAX, drained(&[cell(PID, CODE, second as u32)]));
    }
    naming.sideband(vec![exit(2_500, PID)]);
    let (third, window) = epoch(3);
    naming.epoch(third, window, u64::MAX, drained(&[]));
    let named = naming.finish(|| false).unwrap();
    let seen = sink.seen.lock().unwrap();
    let rows: Vec<_> = seen.iter().map(|(_, rows)| rows.clone()).collect();
    assert_eq!(rows, [vec![("first".to_owned(), 1)], vec![("second".to_owned(), 2)], vec![]]);
    assert_eq!(named.epochs, [1, 2, 3].map(|second| epoch(second).0));
    assert_eq!(named.epochs, seen.iter().map(|(epoch, _)| *epoch).collect::<Vec<_>>());
    assert_eq!(named.dropped, [0]);
    assert!(!named.notes.iter().any(|note| note.contains("behind")), "{:?}", named.notes);
}

#[test]
fn two_programs_in_one_epoch_are_said() {
    let mut naming = start(Kept::up_to(usize::MAX));
    naming.sideband([exec(10, PID, "before"), exec_of(1_500, PID, "after", "/no/other")].concat());
    let (epoch, window) = epoch(1);
    naming.epoch(epoch, window, u64::MAX, drained(&[cell(PID, CODE + 8, 3)]));
    let notes = naming.finish(|| false).unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("3 samples fell into an epoch")), "{notes:?}");
}

#[test]
fn a_sink_that_takes_no_more_ends_the_thread() {
    let sink = Kept::up_to(1);
    let mut naming = start(sink.clone());
    for second in 1..=3 {
        let (epoch, window) = epoch(second);
        naming.epoch(epoch, window, u64::MAX, drained(&[cell(PID, CODE, 1)]));
    }
    while !naming.is_finished() {
        std::thread::yield_now();
    }
    assert_eq!(naming.finish(|| false).unwrap().epochs.len(), 1);
    assert_eq!(sink.seen.lock().unwrap().len(), 1);
}

/// A sink that blocks in its first epoch until it is told to continue.
struct Slow(std::sync::mpsc::Receiver<()>, Kept);

impl RowSink for Slow {
    fn take(&mut self, named: &mut Capture, rows: &[Row]) -> bool {
        let _hung_up = self.0.recv();
        self.1.take(named, rows)
    }
}

#[test]
fn what_finds_no_room_is_counted_and_its_epoch_is_not_lost() {
    let sink = Kept::up_to(usize::MAX);
    let (go_on, wait) = sync_channel(0);
    let mut naming = start(Slow(wait, sink.clone()));
    let (first, window) = epoch(1);
    naming.epoch(first, window, u64::MAX, drained(&[cell(PID, CODE, 1)]));
    // Pretends that this much is waiting.
    naming.waiting.cells.fetch_add(naming.budget.cells, Relaxed);
    naming.waiting.sideband.fetch_add(naming.budget.sideband, Relaxed);
    naming.sideband(exec(1_500, PID, "lost").to_vec());
    let (second, window) = epoch(2);
    naming.epoch(second, window, u64::MAX, drained(&[cell(PID, CODE, 5), cell(PID, CODE + 4, 6)]));
    assert_eq!((naming.dropped(), naming.sideband_dropped()), (&[11][..], 2));
    naming.waiting.cells.fetch_sub(naming.budget.cells, Relaxed);
    naming.waiting.sideband.fetch_sub(naming.budget.sideband, Relaxed);
    let (third, window) = epoch(3);
    naming.epoch(third, window, u64::MAX, drained(&[cell(PID, CODE, 7)]));
    let waiting = naming.waiting.clone();
    drop(go_on);
    let named = naming.finish(|| false).unwrap();
    assert_eq!((named.dropped, named.epochs.len()), (vec![11], 3));
    assert!(named.notes.iter().any(|note| note.contains("2 records")), "{:?}", named.notes);
    let counts: Vec<u64> =
        sink.seen.lock().unwrap().iter().map(|(_, rows)| rows.iter().map(|(_, count)| count).sum()).collect();
    assert_eq!(counts, [1, 0, 7]);
    assert_eq!((waiting.cells.load(Relaxed), waiting.sideband.load(Relaxed)), (0, 0), "what waits is none");
}

/// A sink that stores the number of locations at each epoch.
struct Locations(Arc<Mutex<Vec<usize>>>);

impl RowSink for Locations {
    fn take(&mut self, named: &mut Capture, _: &[Row]) -> bool {
        self.0.lock().unwrap().push(named.code.len());
        true
    }
}

#[test]
fn locations_that_nobody_asks_for_again_are_forgotten() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut naming = start(Locations(seen.clone()));
    // Uses another address in each epoch.
    for second in 1..=FORGET_EACH.as_secs() + 2 {
        let (epoch, _) = epoch(second);
        let window = second * 1_000_000_000..(second + 1) * 1_000_000_000;
        naming.epoch(epoch, window, u64::MAX, drained(&[cell(PID, CODE + second, 1)]));
    }
    naming.finish(|| false).unwrap();
    let seen = seen.lock().unwrap();
    let all = FORGET_EACH.as_secs() as usize;
    assert_eq!((seen[0], seen[all - 1], seen[all], seen[all + 1]), (1, all, 1, 2));
}

/// A thread that is stuck when the run must end does not hold up the end, and no sample is lost.
#[test]
fn what_a_stuck_thread_has_not_named_is_kept_without_names() {
    let sink = Kept::up_to(usize::MAX);
    let mut naming = start(sink.clone());
    naming.sideband(exec(900, PID, "first").to_vec());
    let (first, window) = epoch(1);
    naming.epoch(first, window, u64::MAX, drained(&[cell(PID, CODE, 3)]));
    while sink.seen.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    let (go_on, wait) = channel();
    naming.tell.send(Message::Stuck(wait)).unwrap();
    for second in 2..=3 {
        let (epoch, window) = epoch(second);
        naming.epoch(
            epoch,
            window,
            u64::MAX,
            drained(&[cell(PID, CODE, 4), cell(PID, CODE + 4, second as u32)]),
        );
    }
    let begin = Instant::now();
    let named = naming.finish(|| true).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    assert_eq!(named.epochs, [1, 2, 3].map(|second| epoch(second).0));
    assert!(named.notes.iter().any(|note| note.starts_with("13 samples not named")), "{:?}", named.notes);
    // The thread finds nothing more to do.
    drop(go_on);
    let late = || ("not-in-time".to_owned(), 4);
    let rows: Vec<_> = sink.seen.lock().unwrap().iter().map(|(_, rows)| rows.clone()).collect();
    let rest = |second| ("not-in-time".to_owned(), second);
    assert_eq!(rows, [vec![("first".to_owned(), 3)], vec![late(), rest(2)], vec![late(), rest(3)]]);
}

/// After the deadline, the thread itself stops looking up addresses; what it knows is kept.
#[test]
fn after_the_deadline_only_what_is_known_is_named() {
    let deadline = Deadline::default();
    let mut assembler = assembler(&[Dimension::Ip, Dimension::Process]);
    assembler.end_by(deadline.clone());
    deadline.begin_at(Instant::now() - Duration::from_secs(60));
    let sink = Kept::up_to(usize::MAX);
    let events = vec![EventInfo::default()];
    let mut naming =
        Naming::start(assembler, processes(&[]), sink.clone(), events, None, NamedFirst::default(), || true)
            .unwrap();
    naming.sideband(exec(900, PID, "known").to_vec());
    let (first, window) = epoch(1);
    naming.epoch(first, window, u64::MAX, drained(&[cell(PID, CODE, 3), cell(PID + 1, CODE, 5)]));
    let notes = naming.finish(|| false).unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("3 samples not named in time")), "{notes:?}");
    let rows = sink.seen.lock().unwrap()[0].1.clone();
    assert!(
        rows.contains(&("known".to_owned(), 3)) && rows.iter().all(|(name, _)| name != "not-in-time"),
        "{rows:?}"
    );
}

/// Naming that is far behind uses the names that it knows; what it did not look up then, it looks
/// up when it has caught up.
#[test]
fn far_behind_only_what_is_known_is_named() {
    let known = |limit: Duration| {
        let sink = Functions::default();
        let assembler = assembler(&[Dimension::Ip, Dimension::Process]);
        let allowance = Some(Allowance::new(1.0, 64).behind_by(limit));
        let around = NamedFirst::default();
        let events = vec![EventInfo::default()];
        let mut naming =
            Naming::start(assembler, processes(&[]), sink.clone(), events, allowance, around, || true)
                .unwrap();
        naming.sideband(exec(900, PID, "known").to_vec());
        let (first, window) = epoch(1);
        naming.epoch(first, window, u64::MAX, drained(&[cell(PID, CODE, 3)]));
        // After the end every name is looked up.
        while sink.0.lock().unwrap().is_empty() {
            std::thread::yield_now();
        }
        let notes = naming.finish(|| false).unwrap().notes;
        let said = notes.iter().any(|note| note.starts_with("3 samples not named, because looking up"));
        (sink.0.lock().unwrap().clone(), said)
    };
    let (named, said) = known(Duration::MAX);
    assert!(named[0] != "not-in-time" && !said, "{named:?}");
    assert_eq!(known(Duration::ZERO), (vec!["not-in-time".to_owned()], true));
}

/// A sink that keeps the names of functions, or why there is none.
#[derive(Clone, Default)]
struct Functions(Arc<Mutex<Vec<String>>>);

impl RowSink for Functions {
    fn take(&mut self, named: &mut Capture, rows: &[Row]) -> bool {
        let name = |row: &Row| match named.code[row.code.unwrap() as usize].function {
            Name::Known(id) => named.names.get(id).to_owned(),
            Name::Unknown(reason) => reason.as_str().to_owned(),
        };
        self.0.lock().unwrap().extend(rows.iter().map(name));
        true
    }
}

/// Beside a fork storm, naming keeps to its budget; at the end of the run everything is named.
#[test]
fn naming_waits_for_its_allowance_until_the_run_is_over() {
    let sink = Kept::up_to(usize::MAX);
    let events = vec![EventInfo::default()];
    let assembler = assembler(&[Dimension::Ip, Dimension::Process]);
    let allowance = Some(Allowance::used_up(1e-9));
    let mut naming = Naming::start(
        assembler,
        processes(&[]),
        sink.clone(),
        events,
        allowance,
        NamedFirst::default(),
        || true,
    )
    .unwrap();
    for second in 1..=3 {
        naming.sideband(exec(second * 1_000 + 10, PID, "storm").to_vec());
        let (epoch, window) = epoch(second);
        naming.epoch(epoch, window, u64::MAX, drained(&[cell(PID, CODE, 1)]));
    }
    std::thread::sleep(WORTH_A_NOTE + Duration::from_millis(100));
    assert_eq!(sink.seen.lock().unwrap().len(), 0);
    let named = naming.finish(|| false).unwrap();
    let one = vec![("storm".to_owned(), 1)];
    let rows: Vec<_> = sink.seen.lock().unwrap().iter().map(|(_, rows)| rows.clone()).collect();
    assert_eq!(rows, [one.clone(), one.clone(), one]);
    assert!(named.notes.iter().any(|note| note.contains("waited 1 s in all")), "{:?}", named.notes);
}
