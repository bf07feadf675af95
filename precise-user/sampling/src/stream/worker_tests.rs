//! Tests of the naming thread of a streaming run, with synthetic samples and rounds.

use std::io;
use std::sync::Mutex;

use super::*;
use crate::reader::Reader;
use crate::run::event_filter::open_cgroups;
use crate::run::made_tests::{CODE, FILE, exec, exit};
use crate::symbols::process::HistoryLimits;
use crate::symbols::{Processes, SymbolOptions, Symbolizer};
use precise_model::Name;
use precise_records::record::sample_bits::{ADDR, DATA_SRC, IP, TID, TIME};

const TYPE: u64 = IP | TID | TIME | ADDR | DATA_SRC;
/// Higher than any id that the kernel assigns (PID_MAX_LIMIT is 4 Mi), so that it is not the id of
/// a process on this machine.
const PID: u32 = 5_000_000;
/// `PERF_MEM_OP_LOAD` and `PERF_MEM_OP_STORE`.
const LOAD: u64 = 2;
const STORE: u64 = 4;

/// The body of a sample with [`TYPE`], as the kernel writes it.
fn taken(time: u64, ip: u64, address: u64) -> Taken {
    let ids = u64::from(PID + 1) << 32 | u64::from(PID);
    let body: Vec<u8> = [ip, ids, time, address, LOAD].iter().flat_map(|word| word.to_ne_bytes()).collect();
    Taken { misc: 0, body: body.into() }
}

fn source() -> EventSource {
    EventSource {
        name: "loads".into(),
        layout: TYPE.into(),
        registers: None,
        exact: false,
        stores: false,
        period: None,
    }
}

/// A line of the output.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    event: String,
    time: u64,
    comm: Result<String, Reason>,
    module: Option<Result<String, Reason>>,
    exact: bool,
    op: u64,
}

/// A sink that stores lines, and fails with this error after `limit`.
#[derive(Clone)]
struct Lines {
    lines: Arc<Mutex<Vec<Line>>>,
    limit: usize,
    then: io::ErrorKind,
}

impl Lines {
    fn all() -> Self {
        Self::until(usize::MAX, io::ErrorKind::Other)
    }

    fn until(limit: usize, then: io::ErrorKind) -> Self {
        Self { lines: Arc::default(), limit, then }
    }

    fn times(&self) -> Vec<u64> {
        self.lines.lock().unwrap().iter().map(|line| line.time).collect()
    }
}

impl Sink for Lines {
    fn put(&mut self, sample: &NamedSample<'_>) -> io::Result<()> {
        let mut lines = self.lines.lock().unwrap();
        if lines.len() >= self.limit {
            return Err(self.then.into());
        }
        let text = |name| match name {
            Name::Known(id) => Ok(sample.names.get(id).to_owned()),
            Name::Unknown(reason) => Err(reason),
        };
        lines.push(Line {
            event: sample.event.to_owned(),
            time: sample.sample.time,
            comm: sample.comm.clone().map(|comm| comm.to_string()),
            module: sample.code.map(|code| text(code.module)),
            exact: sample.exact,
            op: sample.sample.data_src.unwrap_or(0) & 0x1f,
        });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn work(sources: Vec<EventSource>, fields: &[StreamField], limit: Option<u64>) -> StreamWork {
    let whereabouts = Whereabouts {
        symbolizer: Symbolizer::spawn(SymbolOptions::default(), Reader::start().unwrap()).unwrap(),
        cgroups: open_cgroups().unwrap(),
        processes: Processes::new(HistoryLimits::default()),
    };
    StreamWork {
        sources,
        fields: fields.to_vec(),
        limit,
        chains: None,
        whereabouts,
        deadline: Deadline::default(),
    }
}

/// Processes these rounds. The flag is whether the worker wanted no more samples.
fn run(work: StreamWork, sink: &Lines, rounds: Vec<Round>) -> (StreamEnd, bool) {
    let (tell, told) = std::sync::mpsc::channel();
    rounds.into_iter().for_each(|round| tell.send(round).unwrap());
    drop(tell);
    let enough = Arc::new(AtomicBool::new(false));
    let ended = Worker::new(work, sink.clone(), enough.clone(), Arc::default()).run(&told);
    (ended, enough.load(Ordering::Relaxed))
}

fn round(began: u64, samples: Vec<Vec<Taken>>, sideband: Vec<IdentifiedRecord>) -> Round {
    Round { began, samples, sideband }
}

#[test]
fn samples_of_all_events_come_in_the_order_of_time() {
    let sink = Lines::all();
    let second = EventSource { name: "stores".into(), stores: true, exact: true, ..source() };
    let rounds = vec![
        round(100, vec![vec![taken(30, CODE, 0), taken(90, CODE, 0)], vec![taken(10, CODE, 0)]], Vec::new()),
        // These samples were taken before the first round ended, and read in the second.
        round(200, vec![vec![taken(150, CODE, 0)], vec![taken(60, CODE, 0)]], Vec::new()),
        round(u64::MAX, vec![vec![], vec![taken(140, CODE, 0)]], Vec::new()),
    ];
    let (ended, enough) = run(work(vec![source(), second], &[StreamField::Time], None), &sink, rounds);
    assert_eq!(sink.times(), [10, 30, 60, 90, 140, 150]);
    assert_eq!((ended.counts[0].written, ended.counts[1].written, enough), (3, 3, false));
    let lines = sink.lines.lock().unwrap();
    let of = |time| lines.iter().find(|line| line.time == time).unwrap();
    assert_eq!((of(10).event.as_str(), of(10).exact, of(10).op), ("stores", true, STORE));
    assert_eq!((of(30).event.as_str(), of(30).exact, of(30).op), ("loads", false, LOAD));
    // No field needs names.
    assert_eq!((&of(30).comm, &of(30).module), (&Err(Reason::NotRecorded), &None));
}

#[test]
fn samples_have_the_names_of_their_time() {
    let sink = Lines::all();
    let first = [&exec(10, PID, "first")[..], &exec(50, PID, "second")].concat();
    let rounds = vec![
        round(100, vec![vec![taken(20, CODE + 8, 0), taken(60, CODE + 8, 0)]], first),
        round(200, vec![vec![taken(120, 0x10, 0)]], vec![exit(190, PID)]),
        round(u64::MAX, vec![vec![taken(180, CODE, 0)]], Vec::new()),
    ];
    run(work(vec![source()], &[StreamField::Comm, StreamField::Module], None), &sink, rounds);
    let lines = sink.lines.lock().unwrap();
    let comms: Vec<_> = lines.iter().map(|line| line.comm.clone().unwrap()).collect();
    assert_eq!(comms, ["first", "second", "second", "second"]);
    let modules: Vec<_> = lines.iter().map(|line| line.module.clone().unwrap()).collect();
    assert_eq!(modules, [Ok(FILE.into()), Ok(FILE.into()), Err(Reason::Unmapped), Ok(FILE.into())]);
}

#[test]
fn what_is_no_sample_is_counted() {
    let sink = Lines::all();
    let short = Taken { misc: 0, body: vec![0; 12].into() };
    let exact = Taken { misc: MISC_EXACT_IP, ..taken(20, CODE, 0) };
    let rounds = vec![round(u64::MAX, vec![vec![taken(10, CODE, 0), short, exact]], Vec::new())];
    let (ended, _) = run(work(vec![source()], &[], None), &sink, rounds);
    assert_eq!((ended.counts[0].written, ended.counts[0].malformed, ended.counts[0].left), (2, 1, 0));
    assert_eq!(sink.lines.lock().unwrap().iter().map(|line| line.exact).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_limit_ends_the_run_and_the_rest_is_counted() {
    let sink = Lines::all();
    let samples = (0..10).map(|time| taken(time, CODE, 0)).collect();
    let later = round(u64::MAX, vec![vec![taken(200, CODE, 0)]], Vec::new());
    let rounds = vec![round(100, vec![samples], Vec::new()), later];
    let (ended, enough) = run(work(vec![source()], &[], Some(3)), &sink, rounds);
    assert_eq!((sink.times(), enough), (vec![0, 1, 2], true));
    assert_eq!((ended.counts[0].written, ended.counts[0].left), (3, 8));
    assert!(ended.error.is_none());
}

#[test]
fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is() {
    for (then, is_error) in [(io::ErrorKind::BrokenPipe, false), (io::ErrorKind::StorageFull, true)] {
        let sink = Lines::until(2, then);
        let samples = (0..5).map(|time| taken(time, CODE, 0)).collect();
        let rounds = vec![round(u64::MAX, vec![samples], Vec::new())];
        let (ended, enough) = run(work(vec![source()], &[], None), &sink, rounds);
        assert_eq!((ended.counts[0].written, ended.counts[0].left, enough), (2, 3, true), "{then}");
        assert_eq!(ended.error.map(|error| error.kind()), is_error.then_some(then));
    }
}

#[test]
fn data_addresses_are_looked_up_where_a_field_asks() {
    /// A sink that stores whether each sample had a data location.
    #[derive(Clone, Default)]
    struct Data(Arc<Mutex<Vec<bool>>>);
    impl Sink for Data {
        fn put(&mut self, sample: &NamedSample<'_>) -> io::Result<()> {
            self.0.lock().unwrap().push(sample.data.is_some());
            Ok(())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for (fields, expected) in
        [(&[StreamField::Region][..], [true, false]), (&[StreamField::Address], [false, false])]
    {
        let sink = Data::default();
        let (tell, told) = std::sync::mpsc::channel();
        let samples = vec![vec![taken(10, CODE, CODE + 16), taken(20, CODE, 0)]];
        tell.send(round(u64::MAX, samples, exec(1, PID, "one").to_vec())).unwrap();
        drop(tell);
        Worker::new(work(vec![source()], fields, None), sink.clone(), Arc::default(), Arc::default())
            .run(&told);
        assert_eq!(*sink.0.lock().unwrap(), expected);
    }
}
