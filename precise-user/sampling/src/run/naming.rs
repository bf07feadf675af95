//! Symbolization of samples on its own thread, so that the run loop ends each epoch on time,
//! however long symbolization takes.
//!
//! An epoch goes to the sink as soon as it is named, and the queue of unnamed data is bounded, so
//! memory grows neither with the length nor with the load of a run. Data that does not fit is
//! dropped and counted.
//!
//! The thread may be stuck in one file when the run must end. So the sink and the epochs that wait
//! are shared, and never locked while names are looked up: the run loop takes them over and writes
//! the rest without names.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use precise_common::cell::Cell;

use super::allocator::Returning;
use super::allowance::{self, Allowance};
use super::assemble::{Assembler, AssemblerOptions, EpochCells, late_note};
use crate::error::{ErrorClass, SamplingError};
use crate::kernel::clock::{monotonic_ns, thread_cpu_ns};
use crate::reader::{self, ReaderUse};
use crate::run::budget::NamesBudget;
use crate::run::cell_slot::SplitCells;
use crate::run::heaviest::Heaviest;
use crate::run::naming_thread::{NamedFirst, NamingThread, follow};
use crate::symbols::process::HistoryLimits;
use crate::symbols::{Processes, Wait};
use precise_model::digits::counted;
use precise_model::{Capture, Epoch, EventInfo, Row};
use precise_records::Chains;
use precise_records::record::{IdentifiedRecord, Record};

/// A message from the run loop.
enum Message {
    /// The start of the run, in nanoseconds since the Unix epoch. Comes before the first cells.
    Begun(u64),
    /// Sideband records in order of time. They come before the cells that were taken after them.
    Sideband(Vec<IdentifiedRecord>),
    /// The next of the waiting epochs can be named: the sideband records before its samples are
    /// known.
    Epoch,
    /// Stands for a file in which the thread is stuck, until the sender is dropped.
    #[cfg(test)]
    Stuck(Receiver<()>),
}

/// An epoch that waits to be named.
struct EpochWaiting {
    /// When it was handed over.
    since: Instant,
    epoch: Epoch,
    window: Range<u64>,
    /// As in [`EpochCells`].
    unwound_since: u64,
    /// The cells of each event.
    cells: Vec<Drained>,
}

impl EpochWaiting {
    /// Returns the memory that the cells and chains take, in bytes.
    fn bytes(&self) -> usize {
        self.cells.iter().map(Drained::bytes).sum()
    }

    /// Returns the rows of all events.
    fn rows(&self, number: u32, assembler: &mut Assembler, processes: &Processes) -> Vec<Row> {
        let mut rows = Vec::new();
        for (event, drained) in self.cells.iter().enumerate() {
            let Drained { cells, chains } = drained;
            let (window, slot) = (&self.window, assembler.options().slots.get(event));
            let (epoch, event, unwound_since) = (number, event as u16, self.unwound_since);
            let of = EpochCells { epoch, event, cells, window, unwound_since, chains, stacks: None };
            rows.extend(match slot.map(|slot| slot.split(drained)) {
                None => assembler.rows(of, processes),
                Some(SplitCells { cells, stacks }) => {
                    assembler.rows(EpochCells { cells: &cells, stacks: Some(&stacks), ..of }, processes)
                }
            });
        }
        rows
    }
}

/// How long the thread sleeps at a time while it waits for its allowance.
const NAP: Duration = Duration::from_millis(20);
/// The shortest time waited for the allowance, in all, that a reader is told of.
const WORTH_A_NOTE: Duration = Duration::from_secs(1);

/// How long a failed run waits for a sink that is writing.
const SINK: Duration = Duration::from_millis(500);

/// The time after which they are discarded in any case, and with them the files and answers that
/// nobody asked for meanwhile: processes that come and go leave some that are never needed again.
/// Memory is then the same after a minute and after a day.
const FORGET_EACH: Duration = Duration::from_secs(30);
/// The number of epochs that there is room for at the start: 4.5 hours of epochs of one second. 256
/// KiB are a mapping of their own (see [`super::allocator`]), of which only what is written takes
/// memory; a list that grows from nothing would be copied, and leave holes.
const EPOCHS_AT_FIRST: usize = 1 << 14;

/// The data of one event's table at the end of an epoch.
#[derive(Debug, Default)]
pub struct Drained {
    /// `(cpu, cell)`.
    pub cells: Vec<(usize, Cell)>,
    /// The call chains that the cells refer to.
    pub chains: Chains,
}

impl Drained {
    /// Adds what was read later in the same epoch.
    pub fn add(&mut self, later: Self) {
        if self.cells.is_empty() {
            self.cells = later.cells;
        } else {
            self.cells.extend(later.cells);
        }
        self.chains.extend(later.chains);
    }

    /// Joins the cells that have the same key and the same CPU.
    pub fn join(&mut self) {
        self.cells.sort_unstable_by_key(|(cpu, cell)| (*cpu, cell.key));
        self.cells.dedup_by(|(cpu, cell), (of, into)| {
            // A count of 32 bits holds what one half can count, and its sum over halves may not
            // fit.
            let same = cpu == of && cell.key == into.key;
            let Some(count) = into.count.checked_add(cell.count).filter(|_| same) else { return false };
            into.count = count;
            into.period_sum = into.period_sum.wrapping_add(cell.period_sum);
            into.latency_sum = into.latency_sum.wrapping_add(cell.latency_sum);
            into.latency_max = into.latency_max.max(cell.latency_max);
            true
        });
    }

    /// Returns the memory of the cells and chains in bytes.
    pub fn bytes(&self) -> usize {
        let chains = self.chains.values().map(|chain| size_of_val(&**chain) + 4 * size_of::<u64>());
        self.cells.len() * size_of::<(usize, Cell)>() + chains.sum::<usize>()
    }
}

/// A consumer of rows with names.
pub trait RowSink: Send + 'static {
    /// Takes the rows of an epoch. They refer to `named`, whose last epoch is theirs; the sink may
    /// discard the epochs and owners in `named`. Returns whether the sink can take more.
    fn take(&mut self, named: &mut Capture, rows: &[Row]) -> bool;
}

/// A handle to the thread that owns the history of processes and the names.
pub struct Naming<S> {
    // The order matters: a thread that the handle waits for must see that there is no more to do.
    tell: Sender<Message>,
    shared: SharedHandle<S>,
    thread: NamingThread<NamedByThread>,
    /// What names the rest if the thread does not.
    options: AssemblerOptions,
    events: Vec<EventInfo>,
    start_unix_ns: u64,
    budget: NamesBudget,
    waiting: Arc<Waiting>,
    /// Number of samples of each event that were dropped.
    dropped: Vec<u64>,
    /// Number of sideband records that were dropped.
    sideband_dropped: u64,
}

/// The bytes of cells, chains and records that were handed over and are not named yet.
#[derive(Debug, Default)]
struct Waiting {
    cells: AtomicUsize,
    sideband: AtomicUsize,
}

/// What the thread and the run loop share. Nothing of it is locked while names are looked up.
struct Shared<S> {
    /// The epochs that the sink has not taken yet, in order. The first may be being named. Never
    /// locked for long, because the run loop adds epochs.
    waiting: Mutex<VecDeque<Arc<EpochWaiting>>>,
    /// Locked while the sink writes. Who locks both locks this first.
    output: Mutex<SharedOutput<S>>,
    /// Whether the run is over, so that naming waits for its allowance no longer.
    over: AtomicBool,
}

/// The sink, and what it has taken.
struct SharedOutput<S> {
    /// `None` after the run loop has taken it.
    sink: Option<S>,
    /// The epochs that the sink has taken.
    epochs: Vec<Epoch>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The run loop's handle to what is shared. Dropping it takes the sink from the thread, so that a
/// failed run leaves no file behind that the thread is still writing.
struct SharedHandle<S>(Arc<Shared<S>>);

impl<S> Drop for SharedHandle<S> {
    fn drop(&mut self) {
        self.0.over.store(true, Relaxed);
        lock(&self.0.waiting).clear();
        let begin = Instant::now();
        loop {
            match self.0.output.try_lock() {
                Ok(mut output) => return output.sink = None,
                Err(TryLockError::Poisoned(output)) => return output.into_inner().sink = None,
                // A sink that writes for longer ends with the process.
                Err(TryLockError::WouldBlock) if begin.elapsed() >= SINK => return,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

/// What the thread knows when it has named everything.
#[derive(Debug, Default)]
struct NamedByThread {
    notes: Vec<String>,
    busiest: Option<(String, f64)>,
}

/// The result of naming, after the sink has taken everything.
pub struct NamingResult<S> {
    /// The sink of the rows.
    pub sink: S,
    /// Number of samples of each event that were dropped because naming was behind.
    pub dropped: Vec<u64>,
    /// The epochs, in order.
    pub epochs: Vec<Epoch>,
    /// The process name that most sideband records are about, with its share of them; `None` if
    /// it is not known.
    pub busiest: Option<(String, f64)>,
    /// Notes for the reader, one sentence each.
    pub notes: Vec<String>,
}

impl<S: RowSink> Naming<S> {
    /// Starts the thread, which names the samples of these events and gives the rows to `sink`.
    /// Returns after the thread has looked `around`. `meanwhile` is called repeatedly until then,
    /// and ends the wait by returning `false`.
    /// Without an `allowance`, naming takes all the CPU time that it needs.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started.
    pub(crate) fn start(
        mut assembler: Assembler,
        processes: Processes,
        sink: S,
        events: Vec<EventInfo>,
        allowance: Option<Allowance>,
        around: NamedFirst,
        meanwhile: impl FnMut() -> bool,
    ) -> Result<Self, SamplingError> {
        let (tell, told) = channel();
        let dropped = vec![0; events.len()];
        let options = assembler.options().clone();
        assembler.named().meta.events.clone_from(&events);
        let waiting = Arc::new(Waiting::default());
        let budget = NamesBudget::of_this_machine();
        let output = SharedOutput { sink: Some(sink), epochs: Vec::with_capacity(EPOCHS_AT_FIRST) };
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            output: Mutex::new(output),
            over: AtomicBool::new(false),
        });
        let worker = NamingWorker {
            assembler,
            processes,
            shared: Arc::clone(&shared),
            forgotten: None,
            waiting: waiting.clone(),
            records: Heaviest::default(),
            budget,
            returning: Returning::start(),
            allowance,
            waited: Duration::ZERO,
            notes: Vec::new(),
        };
        let thread = NamingThread::start(
            worker,
            move |worker| worker.look_around(&around),
            move |worker| worker.run(&told),
            meanwhile,
        )?;
        Ok(Self {
            tell,
            shared: SharedHandle(shared),
            thread,
            options,
            events,
            start_unix_ns: 0,
            budget,
            waiting,
            dropped,
            sideband_dropped: 0,
        })
    }

    /// Tells the thread when the run began, in nanoseconds since the Unix epoch. Call it before the
    /// first epoch.
    pub fn begun(&mut self, unix_ns: u64) {
        self.start_unix_ns = unix_ns;
        let _dead = self.tell.send(Message::Begun(unix_ns));
    }

    /// Hands over sideband records; drops and counts them if too many are waiting.
    pub fn sideband(&mut self, entries: Vec<IdentifiedRecord>) {
        let bytes = bytes_of(&entries);
        if self.waiting.sideband.load(Relaxed).saturating_add(bytes) > self.budget.sideband {
            self.sideband_dropped = self.sideband_dropped.saturating_add(entries.len() as u64);
            return;
        }
        if !entries.is_empty() {
            self.waiting.sideband.fetch_add(bytes, Relaxed);
            // Sending fails only if the thread has died, which `finish` reports.
            let _dead = self.tell.send(Message::Sideband(entries));
        }
    }

    /// Hands over the cells of an epoch; drops them and counts their samples if too many are
    /// waiting. `unwound_since` is as in [`EpochCells`].
    pub fn epoch(&mut self, epoch: Epoch, window: Range<u64>, unwound_since: u64, mut cells: Vec<Drained>) {
        let mut bytes = cells.iter().map(Drained::bytes).sum::<usize>();
        if self.waiting.cells.load(Relaxed).saturating_add(bytes) > self.budget.cells {
            bytes = 0;
            for (dropped, drained) in self.dropped.iter_mut().zip(&mut cells) {
                let Drained { cells, .. } = std::mem::take(drained);
                *dropped += cells.iter().map(|(_, cell)| u64::from(cell.count)).sum::<u64>();
            }
        }
        self.waiting.cells.fetch_add(bytes, Relaxed);
        lock(&self.shared.0.waiting).push_back(Arc::new(EpochWaiting {
            since: Instant::now(),
            epoch,
            window,
            unwound_since,
            cells,
        }));
        let _dead = self.tell.send(Message::Epoch);
    }

    /// Waits until everything is named, or until `given_up` returns `true`. What is not named then
    /// goes to the sink without names. A write that is in progress is waited for in any case.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread has died, which is a bug.
    pub fn finish(self, given_up: impl FnMut() -> bool) -> Result<NamingResult<S>, SamplingError> {
        let Self { tell, shared: handle, thread, options, events, start_unix_ns, .. } = self;
        handle.0.over.store(true, Relaxed);
        drop(tell);
        let ended = thread.ends_before(given_up);
        let mut by_thread = NamedByThread::default();
        if ended {
            by_thread = thread.finish()?;
        } else {
            thread.leave();
        }
        let NamedByThread { mut notes, busiest } = by_thread;
        let mut output = lock(&handle.0.output);
        let sink = output.sink.take();
        let epochs = std::mem::take(&mut output.epochs);
        drop(output);
        // The thread leaves these alone, because there is no sink for them.
        let waiting = std::mem::take(&mut *lock(&handle.0.waiting));
        let Some(mut sink) = sink else {
            return Err(SamplingError::new(ErrorClass::Failed, "the sink of the rows is gone"));
        };
        let mut assembler = Assembler::unnamed(options);
        let named = assembler.named();
        named.meta.events = events;
        named.meta.start_unix_ns = start_unix_ns;
        named.meta.epochs = epochs;
        if !ended {
            // The processes are known only to the thread.
            let nobody = Processes::new(HistoryLimits::default());
            for next in waiting {
                let number = assembler.named().meta.epochs.len() as u32;
                let rows = next.rows(number, &mut assembler, &nobody);
                assembler.named().meta.epochs.push(next.epoch);
                if !sink.take(assembler.named(), &rows) {
                    break;
                }
                assembler.forget();
            }
            notes.extend(late_note(assembler.late()));
        }
        if self.sideband_dropped > 0 {
            notes.push(format!(
                "the naming thread was behind and dropped {} of process starts and mappings: some \
                 samples may lack names",
                counted(self.sideband_dropped, "record")
            ));
        }
        let Capture { meta, .. } = std::mem::take(assembler.named());
        Ok(NamingResult { sink, dropped: self.dropped, epochs: meta.epochs, busiest, notes })
    }

    /// Returns the number of samples of each event that were dropped so far because naming was
    /// behind.
    pub fn dropped(&self) -> &[u64] {
        &self.dropped
    }

    /// Returns the number of sideband records that were dropped so far because naming was behind.
    pub fn sideband_dropped(&self) -> u64 {
        self.sideband_dropped
    }

    /// Returns whether no more rows can be kept: the sink takes no more, or the thread has died.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

/// Returns the memory of sideband records in bytes.
pub(crate) fn bytes_of(entries: &[IdentifiedRecord]) -> usize {
    entries.iter().map(IdentifiedRecord::bytes).sum()
}

/// Returns the CPU time in nanoseconds that the calling thread, and those that read files for it,
/// have taken.
fn naming_cpu_ns() -> u64 {
    thread_cpu_ns() + reader::cpu_ns(ReaderUse::Names)
}

struct NamingWorker<S> {
    assembler: Assembler,
    processes: Processes,
    shared: Arc<Shared<S>>,
    /// The time of the sideband's clock at which names were last discarded.
    forgotten: Option<u64>,
    waiting: Arc<Waiting>,
    /// The process names that sideband records are about.
    records: Heaviest,
    budget: NamesBudget,
    /// When freed memory goes back to the kernel.
    returning: Returning,
    /// The CPU time that naming may take; `None`: as much as it needs.
    allowance: Option<Allowance>,
    /// How long naming has waited for it.
    waited: Duration,
    notes: Vec<String>,
}

impl<S: RowSink> NamingWorker<S> {
    fn look_around(&mut self, around: &NamedFirst) {
        let Self { assembler, processes, .. } = self;
        let note = around.look(processes, |processes, wait| assembler.open_early(processes, wait));
        self.notes.extend(note);
    }

    /// Names all epochs that it is told of.
    fn run(mut self, told: &Receiver<Message>) -> NamedByThread {
        let mut before = (monotonic_ns(), naming_cpu_ns());
        for message in told {
            before = self.wait_for_allowance(before);
            match message {
                Message::Begun(unix_ns) => self.assembler.named().meta.start_unix_ns = unix_ns,
                Message::Sideband(entries) => {
                    self.waiting.sideband.fetch_sub(bytes_of(&entries), Relaxed);
                    follow(&entries, &mut self.processes, |id, path| self.assembler.cgroup_made(id, path));
                    self.count(&entries);
                    self.assembler.open_early(&mut self.processes, Wait::No);
                }
                #[cfg(test)]
                Message::Stuck(until) => drop(until.recv()),
                Message::Epoch => {
                    if !self.name_next() {
                        break;
                    }
                }
            }
        }
        self.finish()
    }

    /// Waits until naming has not taken more CPU time than it may, or until the run is over.
    /// `before` is the time and naming's CPU time at the last call; returns those of now.
    fn wait_for_allowance(&mut self, before: (u64, u64)) -> (u64, u64) {
        let Some(allowance) = &mut self.allowance else { return before };
        let now = (monotonic_ns(), naming_cpu_ns());
        let wait = allowance.take(now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
        if wait.is_zero() {
            return now;
        }
        let begin = Instant::now();
        while let left = wait.saturating_sub(begin.elapsed())
            && left > Duration::ZERO
            && !self.shared.over.load(Relaxed)
        {
            std::thread::sleep(left.min(NAP));
        }
        self.waited += begin.elapsed();
        now
    }

    /// Names the cells of the next epoch, and passes the rows to the sink. Returns whether there is
    /// a sink that takes more.
    fn name_next(&mut self) -> bool {
        let Some(next) = lock(&self.shared.waiting).front().map(Arc::clone) else { return false };
        let number = lock(&self.shared.output).epochs.len() as u32;
        // After the end of the run its deadline decides.
        let is_over = self.shared.over.load(Relaxed);
        let behind = next.since.elapsed();
        let waits = self.allowance.as_ref().is_none_or(|allowance| allowance.waits_for_names(behind));
        self.assembler.look_up(is_over || waits);
        let rows = next.rows(number, &mut self.assembler, &self.processes);
        self.processes.forget_before(next.window.start.min(next.unwound_since));

        let mut output = lock(&self.shared.output);
        let SharedOutput { sink, epochs } = &mut *output;
        // The run loop has taken the sink, and this epoch with it.
        let Some(sink) = sink else { return false };
        let named = self.assembler.named();
        std::mem::swap(&mut named.meta.epochs, epochs);
        named.meta.epochs.push(next.epoch);
        let open = sink.take(named, &rows);
        std::mem::swap(&mut named.meta.epochs, epochs);
        lock(&self.shared.waiting).pop_front();
        drop(output);
        self.waiting.cells.fetch_sub(next.bytes(), Relaxed);

        let Range { start, end } = next.window;
        let due = end.saturating_sub(*self.forgotten.get_or_insert(start)) >= FORGET_EACH.as_nanos() as u64;
        if due {
            self.forgotten = Some(end);
            self.assembler.forget_unused();
        }
        if due || self.assembler.remembered_bytes() > self.budget.remembered {
            self.assembler.forget();
        }
        self.returning.after_epoch();
        open
    }

    /// Counts sideband records by the name of the process that they are about.
    fn count(&mut self, entries: &[IdentifiedRecord]) {
        for IdentifiedRecord { record, id, .. } in entries {
            match record {
                Record::Comm { comm, .. } => self.records.add(comm),
                // The name of the new process is that of its parent.
                Record::Fork(_) | Record::Exit(_) | Record::Mmap(_) | Record::Mmap2(_) => {
                    let window = id.time..id.time.saturating_add(1);
                    if let Ok(found) = self.processes.process_name(id.pid, &window) {
                        self.records.add(&found.value);
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the notes of the run.
    fn finish(mut self) -> NamedByThread {
        let ambiguous = self.assembler.ambiguous();
        if ambiguous > 0 {
            self.notes.push(format!(
                "{} fell into an epoch in which the process ran more than one program, and counted for the \
                 program that has the address, the newest first",
                counted(ambiguous, "sample")
            ));
        }
        if self.waited >= WORTH_A_NOTE {
            self.notes.push(format!(
                "looking up names waited {} s in all, because it may not take more CPU time than the budget: \
                 what ended meanwhile may have no names",
                self.waited.as_secs()
            ));
        }
        self.notes.extend(self.processes.counts().notes());
        self.notes.extend(late_note(self.assembler.late()));
        self.notes.extend(allowance::behind_note(self.assembler.behind()));
        let (_, notes, _ended) = self.assembler.finish();
        self.notes.extend(notes);
        let busiest = self.records.most().map(|(name, share)| (name.to_owned(), share));
        NamedByThread { notes: self.notes, busiest }
    }
}

#[cfg(test)]
#[path = "naming_tests.rs"]
mod tests;
