//! The import itself: one pass over the file.

mod ends;
mod epochs;

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use bytes::Bytes;

use super::{
    ImportOptions, Imported,
    account::ImportAccount,
    bad_file, branches,
    callers::CallerFinder,
    cells::Cells,
    chains::Seen,
    events::{self, ImportedEvent},
    exits::HeldExits,
    group::MemberCounts,
    length,
    queue::{Queue, TimedRecord},
    sample::{self, ImportGrouping, KeptFacts},
    words,
};
use crate::error::{ErrorClass, SamplingError};
use crate::reader::Reader;
use crate::run::assemble::Assembler;
use crate::symbols::Processes;
use crate::symbols::kernel_images::{KERNEL_PID, KernelImages};
use crate::symbols::process::HistoryLimits;
use epochs::UnwrittenEpochs;
use precise_capture::CaptureWriter;
use precise_model::{Dimension, Epoch};
use precise_records::perf_data::{ReadLoss, RecordingItem, RecordingReader};
use precise_records::record::{
    IdentifiedRecord, MappedFileId, Record, RecordLayout, SAMPLE, record, sample_bits as bit,
};

/// The maximum memory of the locations, call chains and names that are remembered across epochs, in
/// bytes.
const MAX_REMEMBERED: usize = 128 << 20;
/// The maximum number of rows in an epoch: 48 MiB. An epoch with more ends early.
const MAX_ROWS: usize = 1 << 18;
/// The number of bytes between two reports of the progress of an import.
const WATCHED: u64 = 1 << 20;
/// The maximum number of epochs that end because their time is over.
const MAX_EPOCHS: usize = 1 << 14;
/// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`: the samples were not lost, but rejected by perf's filter.
const MISC_REJECTED: u16 = 1 << 15;

/// Imports a `perf.data` file. The capture is complete when this returns `Ok`; after an error there
/// is none.
///
/// # Errors
///
/// Returns an error if nothing in the file can be read, if an option names something that the file
/// lacks, or if the capture cannot be written.
pub fn import(options: &ImportOptions) -> Result<Imported, SamplingError> {
    import_watched(options, &mut |_| ())
}

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportProgress {
    /// The number of bytes that were read.
    pub bytes: u64,
    /// The size of the file in bytes; `None` for a pipe.
    pub size: Option<u64>,
}

/// Imports like [`import`], and calls `watch` about once per megabyte of the file.
///
/// # Errors
///
/// Returns the same errors as [`import`].
pub fn import_watched(
    options: &ImportOptions,
    watch: &mut dyn FnMut(ImportProgress),
) -> Result<Imported, SamplingError> {
    let reader = RecordingReader::open(&options.input).map_err(|error| bad_file(options, error))?;
    if same_file(&options.input, &options.output) {
        return Err(SamplingError::new(
            ErrorClass::Invalid,
            format!(
                "{} is the recording itself, and the capture would replace it: name another file for the \
                 capture",
                options.output.display()
            ),
        ));
    }
    import_within(reader, options, HistoryLimits::default(), watch)
}

/// Returns whether two paths are one file.
fn same_file(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Imports from an open reader, like [`import`]. The path of the input is only used as a name.
///
/// # Errors
///
/// Returns the same errors as [`import`].
pub fn import_from(reader: RecordingReader, options: &ImportOptions) -> Result<Imported, SamplingError> {
    import_within(reader, options, HistoryLimits::default(), &mut |_| ())
}

/// Imports like [`import_from`], with a limit of the memory of processes.
pub(super) fn import_within(
    reader: RecordingReader,
    options: &ImportOptions,
    limits: HistoryLimits,
    watch: &mut dyn FnMut(ImportProgress),
) -> Result<Imported, SamplingError> {
    let writer = CaptureWriter::create(&options.output).and_then(CaptureWriter::keep_old);
    let writer = writer.map_err(unwritten)?;
    // It starts while the recording is read for its length. A failure counts if names are needed.
    let files = Some(Reader::start());
    let epoch_ns = length::epoch_ns(options, &reader);
    let mut run = ImportRun {
        options,
        epoch_ns,
        reader,
        writer,
        events: Vec::new(),
        chosen: 0,
        files,
        naming: None,
        queue: Queue::new(),
        processes: Processes::new(limits),
        images: KernelImages::default(),
        images_changed: false,
        cells: Cells::default(),
        chains: Seen::default(),
        callers: CallerFinder::default(),
        exits: HeldExits::default(),
        groups: MemberCounts::default(),
        waiting: UnwrittenEpochs::default(),
        epochs: Vec::new(),
        clock: Clock::default(),
        written: 0,
        odd: words::Odd::default(),
    };
    let loss = run.read(watch)?;
    run.finish(loss)
}

fn unwritten(error: impl std::fmt::Display) -> SamplingError {
    SamplingError::new(ErrorClass::Failed, error.to_string())
}

/// What is done with an event of the file.
enum Of {
    /// Not imported: it was not requested, or it has no samples.
    Skipped { name: String },
    /// Imported, as the event of the capture with this index.
    Chosen {
        index: u16,
        known: Box<ImportedEvent>,
        branches: Option<Box<(u16, ImportedEvent, ImportAccount)>>,
    },
}

/// The times of the import, in nanoseconds of the recording's clock.
#[derive(Debug, Default)]
struct Clock {
    /// The time of the first sample; `None` before it.
    start: Option<u64>,
    /// The start of the current epoch, and the time of its last sample.
    begin: u64,
    latest: u64,
}

struct ImportRun<'a> {
    options: &'a ImportOptions,
    /// The length of an epoch.
    epoch_ns: u64,
    reader: RecordingReader,
    writer: CaptureWriter,
    events: Vec<(Of, ImportAccount)>,
    /// The number of events of the capture so far.
    chosen: u16,
    /// The reader of files, until it is needed.
    files: Option<Result<Reader, SamplingError>>,
    naming: Option<(Assembler, ImportGrouping)>,
    queue: Queue,
    processes: Processes,
    images: KernelImages,
    images_changed: bool,
    cells: Cells,
    chains: Seen,
    callers: CallerFinder,
    exits: HeldExits,
    groups: MemberCounts,
    waiting: UnwrittenEpochs,
    epochs: Vec<Epoch>,
    clock: Clock,
    written: u64,
    odd: words::Odd,
}

impl ImportRun<'_> {
    fn read(&mut self, watch: &mut dyn FnMut(ImportProgress)) -> Result<Option<ReadLoss>, SamplingError> {
        let mut next = 0;
        loop {
            let bytes = self.reader.position();
            if bytes >= next {
                next = bytes.saturating_add(WATCHED);
                watch(ImportProgress { bytes, size: self.reader.size() });
            }
            match self.reader.next_event() {
                RecordingItem::Record { kind, misc, body, event } => {
                    self.meet_events()?;
                    match event {
                        Some(event) if kind == SAMPLE => self.sample(event, misc, body)?,
                        None if kind == SAMPLE => self.odd.of_no_event += 1,
                        event => self.sideband(event.unwrap_or(0), kind, misc, body)?,
                    }
                }
                RecordingItem::Round => {
                    let ready = self.queue.round();
                    self.take_all(ready)?;
                }
                RecordingItem::End(loss) => return Ok(loss),
            }
        }
    }

    /// Examines new events: in a piped recording they appear one by one.
    fn meet_events(&mut self) -> Result<(), SamplingError> {
        for described in self.reader.events().get(self.events.len()..).unwrap_or_default() {
            let known = events::known(described, self.reader.features());
            let name = known.info.name.clone();
            let wanted =
                |asked: &String| *asked == name || *asked == known.info.encoding || is_base(asked, &name);
            let chosen = events::samples(&described.attr)
                && (self.options.events.is_empty() || self.options.events.iter().any(wanted));
            let of = if chosen {
                let mut next = || {
                    let index = self.chosen;
                    let too_many = "the file has more events than a capture can hold";
                    self.chosen = index
                        .checked_add(1)
                        .ok_or_else(|| SamplingError::new(ErrorClass::BadFile, too_many))?;
                    Ok(index)
                };
                let index = next()?;
                let kept = |dimension| {
                    self.options.dimensions.as_ref().is_none_or(|asked| asked.contains(&dimension))
                };
                if known.copies && kept(Dimension::Stack) {
                    self.callers.expect_copies()?;
                }
                let branches = if kept(Dimension::Outcome) && branches::has_branches(&known.attr) {
                    Some(Box::new((next()?, branches::event(&known), ImportAccount::default())))
                } else {
                    None
                };
                Of::Chosen { index, known: Box::new(known), branches }
            } else {
                Of::Skipped { name }
            };
            self.events.push((of, ImportAccount::default()));
        }
        Ok(())
    }

    fn sample(&mut self, event: usize, misc: u16, body: Bytes) -> Result<(), SamplingError> {
        self.start_naming()?;
        let (Some((of, account)), Some((_, by))) = (self.events.get_mut(event), &self.naming) else {
            self.odd.of_no_event += 1;
            return Ok(());
        };
        account.samples += 1;
        let Of::Chosen { index, known, branches } = of else { return Ok(()) };
        let sample = match sample::read(known, misc, body) {
            Ok(sample) => sample,
            Err(_) => {
                account.unreadable += 1;
                return Ok(());
            }
        };
        let chain = sample::chain(known, &sample, by, &mut self.chains);
        let facts = sample::facts(known, *index, misc, &sample, chain.clone(), None, by);
        account.keep(&facts);
        let time = known.attr.has(bit::TIME).then_some(sample.time);
        let members = self.groups.members(&self.reader, event, &known.attr, &sample);
        let mut found = Vec::new();
        if let Some((index, _, account)) = branches.as_deref_mut() {
            found.extend(branches::facts(*index, &sample, &facts, by));
            account.samples += found.len() as u64;
            found.iter().for_each(|facts| account.keep(facts));
        }
        self.put(time, facts)?;
        found.into_iter().try_for_each(|facts| self.put(time, facts))?;
        members.into_iter().try_for_each(|(member, period)| {
            let (Some((of, account)), Some((_, by))) = (self.events.get_mut(member), &self.naming) else {
                return Ok(());
            };
            account.samples += 1;
            let Of::Chosen { index, known, .. } = of else { return Ok(()) };
            let facts = sample::facts(known, *index, misc, &sample, chain.clone(), Some(period), by);
            account.keep(&facts);
            self.put(time, facts)
        })
    }

    /// Puts a sample into the queue.
    fn put(&mut self, time: Option<u64>, facts: KeptFacts) -> Result<(), SamplingError> {
        if let Some(time) = time {
            let ready = self.queue.push(time, TimedRecord::Sample(facts));
            return self.take_all(ready);
        }
        // Without timestamps, only the order in the file is known.
        self.odd.without_time += 1;
        self.take(self.clock.latest, TimedRecord::Sample(facts))
    }

    fn sideband(&mut self, event: usize, kind: u32, misc: u16, body: Bytes) -> Result<(), SamplingError> {
        let layout =
            self.reader.events().get(event).map_or(RecordLayout::default(), |event| event.attr.layout());
        let Ok(entry) = record(kind, misc, body, layout) else {
            self.odd.damaged_records += 1;
            return Ok(());
        };
        match entry.record {
            Record::Throttle { id } => self.account(id, event, |account| account.throttled += 1),
            Record::Lost { id, lost } => {
                self.account(id, event, |account| {
                    account.lost_in_ring = account.lost_in_ring.saturating_add(lost)
                });
            }
            Record::LostSamples { lost } => {
                let id = entry.id;
                self.account(id.id, event, |account| {
                    let count = if misc & MISC_REJECTED != 0 {
                        &mut account.filtered
                    } else if id.time == 0 {
                        &mut account.lost_of_event
                    } else {
                        &mut account.lost_by_driver
                    };
                    *count = count.saturating_add(lost);
                });
            }
            Record::Unthrottle { .. } | Record::Other { .. } | Record::Sample(_) => {}
            // perf synthesizes records without a time for what existed before the recording: they
            // take effect from here on.
            _ if entry.id.time == 0 => return self.take(0, TimedRecord::Sideband(Box::new(entry))),
            _ => {
                let ready = self.queue.push(entry.id.time, TimedRecord::Sideband(Box::new(entry)));
                return self.take_all(ready);
            }
        }
        Ok(())
    }

    fn account(&mut self, id: u64, otherwise: usize, count: impl FnOnce(&mut ImportAccount)) {
        let event = self.reader.event_by_id(id).unwrap_or(otherwise);
        match self.events.get_mut(event) {
            Some((_, account)) => count(account),
            None => self.odd.damaged_records += 1,
        }
    }

    fn take_all(&mut self, items: Vec<(u64, TimedRecord)>) -> Result<(), SamplingError> {
        items.into_iter().try_for_each(|(time, item)| self.take(time, item))
    }

    /// Takes the next record in the order of time.
    fn take(&mut self, time: u64, item: TimedRecord) -> Result<(), SamplingError> {
        while let Some(exit) = self.exits.overdue(time) {
            self.exited(exit)?;
        }
        match item {
            TimedRecord::Sample(facts) => match self.callers.complete(time, facts, &mut self.chains) {
                Some(facts) => self.count(time, time, &facts),
                None => self.count_overdue(false),
            },
            TimedRecord::Sideband(entry) => self.take_sideband(time, *entry),
        }
    }

    fn take_sideband(&mut self, time: u64, entry: IdentifiedRecord) -> Result<(), SamplingError> {
        match &entry.record {
            Record::DeferredChain { cookie, entries } => {
                let arrived = self.callers.arrived(entry.id.tid, *cookie, entries, &mut self.chains);
                // The callers are those of now: execve returns into another program.
                arrived.iter().try_for_each(|(at, facts)| self.count(*at, time, facts))?;
                let exit = self.exits.of_thread(entry.id.pid, entry.id.tid);
                return exit.map_or(Ok(()), |exit| self.exited(exit));
            }
            Record::Exit(task) if self.callers.expects(task.tid) => {
                let thread = (task.pid, task.tid);
                self.exits.hold(thread, entry);
                return Ok(());
            }
            Record::Exit(_) => return self.exited(entry),
            // A new process with the id of one whose exit waits.
            Record::Fork(task) if task.pid != task.ppid => {
                while let Some(exit) = self.exits.of_process(task.pid) {
                    self.exited(exit)?;
                }
            }
            _ => {}
        }
        self.happened(entry);
        Ok(())
    }

    /// A thread has exited: callers that did not come will not come.
    fn exited(&mut self, exit: IdentifiedRecord) -> Result<(), SamplingError> {
        if let Record::Exit(task) = &exit.record {
            // Named before the process is forgotten.
            let left = self.callers.exited(task.tid, &mut self.chains);
            left.iter().try_for_each(|(at, facts)| self.count(*at, *at, facts))?;
        }
        self.happened(exit);
        Ok(())
    }

    /// Counts the samples that have waited too long for their callers; at the end, all that wait.
    fn count_overdue(&mut self, at_end: bool) -> Result<(), SamplingError> {
        let overdue = self.callers.overdue(at_end, &mut self.chains);
        overdue.iter().try_for_each(|(time, facts)| self.count(*time, *time, facts))
    }

    /// Counts a sample that was taken at `time`, and whose callers were taken at `callers_at`.
    fn count(&mut self, time: u64, callers_at: u64, facts: &KeptFacts) -> Result<(), SamplingError> {
        let length = self.epoch_ns;
        let start = *self.clock.start.get_or_insert(time);
        if self.clock.latest == 0 {
            (self.clock.begin, self.clock.latest) = (time, time);
        }
        let over = time.saturating_sub(self.clock.begin) >= length;
        if over && self.epochs.len() < MAX_EPOCHS {
            self.end_epoch(self.clock.begin.saturating_add(length))?;
            self.clock.begin = time - time.saturating_sub(start) % length;
        } else if over {
            self.odd.epochs_too_long = true;
        }
        self.clock.latest = self.clock.latest.max(time);
        let full = self.rows_are_full()? || self.names_take() > 2 * MAX_REMEMBERED;
        if self.cells.add(time, callers_at, facts) || full {
            self.odd.epochs_cut += 1;
            self.end_epoch(self.clock.latest.saturating_add(1))?;
            self.clock.begin = self.clock.latest.saturating_add(1);
        }
        Ok(())
    }

    /// Applies a process event. First it names the cells of the process, which were sampled before
    /// the event.
    fn happened(&mut self, mut entry: IdentifiedRecord) {
        match &mut entry.record {
            Record::Mmap(map) | Record::Mmap2(map) => {
                let build_ids = &self.reader.features().build_ids;
                if map.pid == KERNEL_PID {
                    self.images.add(map, |path| build_ids.get(path).copied());
                    self.images_changed = true;
                    return;
                }
                if !matches!(map.file, MappedFileId::BuildId(_))
                    && let Some(id) = build_ids.get(&map.path)
                {
                    map.file = MappedFileId::BuildId(*id);
                }
                // PERF_RECORD_MMAP does not say whether memory is writable, which identifies the
                // heap. Anonymous data is writable.
                map.writable |= !map.executable && map.path == "//anon";
                self.name_process(map.pid);
            }
            Record::Comm { pid, .. } => {
                let pid = *pid;
                self.name_process(pid);
            }
            Record::Fork(task) | Record::Exit(task) => {
                let pid = task.pid;
                self.name_process(pid);
            }
            Record::Cgroup { id, path } => {
                // If the symbolizer fails to start, there is no capture; the error is reported at
                // the first sample.
                if let (Ok(()), Some((assembler, _))) = (self.start_naming(), &mut self.naming) {
                    assembler.cgroup_made(*id, path);
                }
                return;
            }
            _ => return,
        }
        self.callers.follow(&entry);
        self.processes.apply(&entry);
        // Executable files are looked up only when a sample lies in them.
        drop(self.processes.take_new_files());
    }

    /// Returns the descriptions of the chosen events for the capture.
    fn infos(&self) -> Vec<precise_model::EventInfo> {
        let of = |(known, account): (&ImportedEvent, &ImportAccount)| {
            let mut info = known.info.clone();
            info.ledger = account.ledger(known.attr.sample.read_format);
            words::judge(&mut info);
            info
        };
        parts(&self.events).map(of).collect()
    }
}

/// An event of the capture, and where its samples went.
type Part<'a> = (&'a ImportedEvent, &'a ImportAccount);

/// Returns the events of the capture, in the order of their indexes.
fn parts(events: &[(Of, ImportAccount)]) -> impl Iterator<Item = (&ImportedEvent, &ImportAccount)> {
    events.iter().flat_map(|(of, account)| {
        let (sampled, branches): (Option<Part<'_>>, Option<Part<'_>>) = match of {
            Of::Chosen { known, branches, .. } => {
                (Some((known, account)), branches.as_deref().map(|(_, known, account)| (known, account)))
            }
            Of::Skipped { .. } => (None, None),
        };
        sampled.into_iter().chain(branches)
    })
}

/// Returns whether `asked` is `name` without its modifiers: `cycles` for `cycles:ppp`, `ibs_op` for
/// `ibs_op//`.
fn is_base(asked: &str, name: &str) -> bool {
    name.strip_prefix(asked).is_some_and(|rest| rest.starts_with([':', '/']))
}
