//! The work of the naming thread: decode samples, sort them, join them with processes, symbolize,
//! write.

use std::{
    ops::Range,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::Receiver,
    },
};

use precise_common::data_src::DataSource;
use precise_common::mode::in_kernel;
use rustc_hash::FxHashMap;

use super::chains::{StreamChains, StreamedChain};
use super::{NamedChain, NamedSample, Sink, StreamField};
use crate::kernel::sampler::Taken;
use crate::run::assemble::{CodeKey, code_key, late_code, late_data, late_note};
use crate::run::deadline::Deadline;
use crate::run::naming_thread::{NamedFirst, follow};
use crate::run::session::Whereabouts;
use crate::symbols::cgroup::Hierarchy;
use crate::symbols::{CodeQuery, DataQuery, Processes, Symbolizer, Wait, addresses_visible};
use precise_model::{CodeLocation, DataLocation, Name, Names, Reason};
use precise_records::Registers;
use precise_records::order::TimeOrder;
use precise_records::record::sample::{Sample, SampleLayout, decode};
use precise_records::record::{IdentifiedRecord, MISC_EXACT_IP};

/// The number of samples that are symbolized together.
const CHUNK: usize = 4096;
/// The maximum number of remembered code locations. Beyond it all are forgotten, because a run may
/// last for weeks.
const REMEMBERED: usize = 1 << 16;
/// The maximum memory of their names, in bytes. Beyond it all are forgotten.
const NAME_BYTES: usize = 32 << 20;

/// The name of something that was not looked up in time.
const NOT_IN_TIME: Name = Name::Unknown(Reason::NotInTime);

/// The records that the run loop read in one round.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// When reading of the rings started, on the sideband's clock; `u64::MAX` for the last round.
    pub began: u64,
    /// The samples from the rings of each event.
    pub samples: Vec<Vec<Taken>>,
    /// The sideband records in the order of time. They were read after the samples.
    pub sideband: Vec<IdentifiedRecord>,
}

/// What is needed of an event to write its samples.
#[derive(Clone, Debug)]
pub(super) struct EventSource {
    pub name: String,
    /// The layout of its samples.
    pub layout: SampleLayout,
    /// The format of its raw data; `None` if it is not known.
    pub registers: Option<Registers>,
    /// Whether all IPs are exact even if the record does not say so, as for page faults.
    pub exact: bool,
    /// Whether its samples are stores even if their data source says otherwise.
    pub stores: bool,
    /// The number of events that each sample represents. `None`: the record contains it.
    pub period: Option<u64>,
}

/// The inputs of the naming thread.
#[derive(Debug)]
pub(super) struct StreamWork {
    pub sources: Vec<EventSource>,
    pub fields: Vec<StreamField>,
    /// The number of samples after which the run ends; `None` for no limit.
    pub limit: Option<u64>,
    /// Makes the call chains; `None` if the run takes none.
    pub chains: Option<StreamChains>,
    pub whereabouts: Whereabouts,
    /// When addresses are no longer looked up.
    pub deadline: Deadline,
}

/// Counts of an event's samples by their fate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FateCounts {
    pub written: u64,
    pub left: u64,
    pub malformed: u64,
}

/// The result of the naming thread.
#[derive(Debug, Default)]
pub(super) struct StreamEnd {
    pub counts: Vec<FateCounts>,
    /// Whether the run ended before all samples that were read were written or counted.
    pub cut: bool,
    pub notes: Vec<String>,
    /// The sink's error; `None` if it did not fail, or if its reader only closed the output.
    pub error: Option<std::io::Error>,
}

/// A decoded sample that waits to be written in order.
#[derive(Debug)]
struct Waiting {
    source: usize,
    exact: bool,
    sample: Sample,
}

/// The naming thread's state.
pub(super) struct Worker<S> {
    work: StreamWork,
    sink: S,
    enough: Arc<AtomicBool>,
    /// A copy of the counts for the run loop, after each chunk.
    published: Arc<Mutex<Vec<FateCounts>>>,
    /// The number of samples that were not named in time.
    late: u64,
    order: TimeOrder<Waiting>,
    kernel_hidden: bool,
    names: Names,
    code: Vec<CodeLocation>,
    code_ids: FxHashMap<CodeKey, usize>,
    total: u64,
    ended: StreamEnd,
}

impl<S: Sink> Worker<S> {
    /// Creates a worker that knows no processes yet. It sets `enough` when no more samples are
    /// wanted, and publishes its counts after each chunk.
    pub fn new(
        work: StreamWork,
        sink: S,
        enough: Arc<AtomicBool>,
        published: Arc<Mutex<Vec<FateCounts>>>,
    ) -> Self {
        let counts = vec![FateCounts::default(); work.sources.len()];
        Self {
            work,
            sink,
            enough,
            published,
            late: 0,
            order: TimeOrder::new(),
            kernel_hidden: !addresses_visible(Path::new("/")),
            names: Names::default(),
            code: Vec::new(),
            code_ids: FxHashMap::default(),
            total: 0,
            ended: StreamEnd { counts, ..StreamEnd::default() },
        }
    }

    /// Takes a snapshot of the running processes.
    pub fn look_around(&mut self, around: &NamedFirst) {
        let StreamWork { whereabouts: Whereabouts { processes, symbolizer, .. }, fields, .. } =
            &mut self.work;
        let note = around.look(processes, |processes, wait| open_early(fields, processes, symbolizer, wait));
        self.ended.notes.extend(note);
        self.work.chains.iter_mut().for_each(StreamChains::look_around);
    }

    /// Opens newly mapped files early, while they still exist.
    fn open_early(&mut self) {
        let StreamWork { whereabouts: Whereabouts { processes, symbolizer, .. }, fields, .. } =
            &mut self.work;
        open_early(fields, processes, symbolizer, Wait::No);
    }

    fn needs(&self, what: fn(StreamField) -> bool) -> bool {
        self.work.fields.iter().any(|field| what(*field))
    }

    /// Symbolizes and writes the samples of all rounds, until the sender is dropped.
    pub fn run(mut self, told: &Receiver<Round>) -> StreamEnd {
        for round in told {
            self.round(round);
        }
        let rest = self.order.finish();
        self.write_all(&rest);
        let mut notes = self.work.whereabouts.symbolizer.take_notes();
        self.ended.notes.append(&mut notes);
        self.ended.notes.extend(self.work.whereabouts.processes.counts().notes());
        self.ended.notes.extend(late_note(self.late));
        self.ended.notes.extend(self.work.chains.take().into_iter().flat_map(StreamChains::notes));
        self.ended
    }

    fn round(&mut self, round: Round) {
        let Whereabouts { processes, cgroups, .. } = &mut self.work.whereabouts;
        follow(&round.sideband, processes, |id, path| cgroups.made(id, path));
        if let Some(chains) = &mut self.work.chains {
            chains.follow(&round.sideband);
        }
        self.open_early();
        for (source, samples) in round.samples.into_iter().enumerate() {
            let Some(EventSource { layout, exact, stores, period, .. }) = self.work.sources.get(source)
            else {
                continue;
            };
            for Taken { misc, body } in samples {
                match decode(body, layout) {
                    Ok(sample) => {
                        let mut sample = sample.on_host(misc);
                        if *stores {
                            sample.data_src = sample.data_src.map(DataSource::as_store);
                        }
                        sample.period = period.unwrap_or(sample.period);
                        let exact = *exact || misc & MISC_EXACT_IP != 0;
                        self.order.push(sample.time, Waiting { source, exact, sample });
                    }
                    Err(_) => self.ended.counts[source].malformed += 1,
                }
            }
        }
        let ready = self.order.round(round.began);
        self.write_all(&ready);
        let oldest = self.order.oldest();
        if let Some(chains) = &mut self.work.chains {
            chains.catch_up(oldest.min(round.began));
        }
        self.work.whereabouts.processes.forget_before(oldest);
    }

    fn write_all(&mut self, ready: &[Waiting]) {
        for chunk in ready.chunks(CHUNK) {
            if !self.enough.load(Ordering::Relaxed) {
                self.write(chunk);
            } else {
                chunk.iter().for_each(|waiting| self.ended.counts[waiting.source].left += 1);
            }
            self.published.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&self.ended.counts);
        }
    }

    fn write(&mut self, chunk: &[Waiting]) {
        self.forget_many();
        let code = self.locate_code(chunk);
        let chains = self.locate_chains(chunk, &code);
        let (data, places) = self.locate_data(chunk);
        let (needs_comm, needs_thread, needs_cgroup) = (
            self.needs(|field| field == StreamField::Comm),
            self.needs(|field| field == StreamField::Thread),
            self.needs(|field| field == StreamField::Cgroup),
        );
        for (index, waiting) in chunk.iter().enumerate() {
            let counts = &mut self.ended.counts[waiting.source];
            if self.enough.load(Ordering::Relaxed) {
                counts.left += 1;
                continue;
            }
            let StreamWork { sources, whereabouts: Whereabouts { processes, cgroups, .. }, limit, .. } =
                &mut self.work;
            let sample = &waiting.sample;
            let named = NamedSample {
                kernel_hidden: self.kernel_hidden,
                event: &sources[waiting.source].name,
                registers: sources[waiting.source].registers,
                sample,
                exact: waiting.exact,
                names: &self.names,
                comm: if needs_comm {
                    processes.process_name(sample.pid, &moment(sample)).map(|found| found.value)
                } else {
                    Err(Reason::NotRecorded)
                },
                thread: if needs_thread {
                    processes.thread_name(sample.pid, sample.tid, &moment(sample))
                } else {
                    Err(Reason::NotRecorded)
                },
                code: code.get(index).and_then(|id| self.code.get(*id)),
                data: places.get(index).copied().flatten().and_then(|place| data.get(place)),
                cgroup: match sample.cgroup {
                    Some(id) if needs_cgroup => cgroups.path(Hierarchy::PerfEvent, id),
                    _ => Err(Reason::NotRecorded),
                },
                chain: chains.get(index).map(|chain| NamedChain {
                    callers: {
                        let named = |(address, id): &(u64, usize)| Some((*address, self.code.get(*id)?));
                        chain.callers.iter().filter_map(named).collect()
                    },
                    end: chain.end,
                }),
            };
            let late = named.code.is_some_and(|code| code.function == NOT_IN_TIME)
                || named.data.is_some_and(|data| data.variable == NOT_IN_TIME);
            match self.sink.put(&named) {
                Ok(()) => {
                    self.late += u64::from(late);
                    counts.written += 1;
                    self.total += 1;
                    if limit.is_some_and(|limit| self.total >= limit) {
                        self.enough.store(true, Ordering::Relaxed);
                    }
                }
                Err(error) => {
                    counts.left += 1;
                    self.stop(error);
                }
            }
        }
        if let Err(error) = self.sink.flush() {
            self.stop(error);
        }
    }

    /// Stops the run after an error of the sink. A reader that closed the output is not an error;
    /// anything else is reported.
    fn stop(&mut self, error: std::io::Error) {
        self.enough.store(true, Ordering::Relaxed);
        if error.kind() != std::io::ErrorKind::BrokenPipe && self.ended.error.is_none() {
            self.ended.error = Some(error);
        }
    }

    /// Returns the index of each sample's code location; empty if no field needs one.
    fn locate_code(&mut self, chunk: &[Waiting]) -> Vec<usize> {
        if self.work.chains.is_none() && !self.needs(StreamField::needs_code) {
            return Vec::new();
        }
        let sampled = chunk.iter().map(|Waiting { sample, .. }| (sample, sample.ip, in_kernel(sample.ip)));
        self.locate(sampled)
    }

    /// Forgets code locations if there are too many. What refers to them must be gone.
    fn forget_many(&mut self) {
        if self.code.len() > REMEMBERED || self.names.bytes() > NAME_BYTES {
            self.code.clear();
            self.code_ids.clear();
            self.names = Names::default();
        }
    }

    /// Returns the index of the code location of each address, which is the kernel's or that of a
    /// sample's process.
    fn locate<'s>(&mut self, addresses: impl Iterator<Item = (&'s Sample, u64, bool)>) -> Vec<usize> {
        let mut queries = Vec::new();
        let ids = addresses
            .map(|(sample, address, kernel)| {
                let processes = &self.work.whereabouts.processes;
                let query = match kernel {
                    true => CodeQuery::kernel(address),
                    false => CodeQuery::user(processes, sample.pid, address, &moment(sample)),
                };
                let next = self.code.len() + queries.len();
                *self.code_ids.entry(code_key(&query, sample.pid)).or_insert_with(|| {
                    queries.push(query);
                    next
                })
            })
            .collect();
        let Self {
            names,
            code,
            work: StreamWork { whereabouts: Whereabouts { symbolizer, .. }, deadline, .. },
            ..
        } = self;
        let mut queries = queries.into_iter();
        code.extend(symbolizer.resolve_code_while(names, &mut queries, || !deadline.names_are_over()));
        code.extend(queries.map(|query| late_code(names, &query, true)));
        ids
    }

    /// Returns the call chain of each sample; empty if the run takes none. `leaves` are the code
    /// locations of the samples.
    fn locate_chains(&mut self, chunk: &[Waiting], leaves: &[usize]) -> Vec<StreamedChain> {
        let StreamWork {
            chains: Some(chains),
            whereabouts: Whereabouts { processes, symbolizer, .. },
            deadline,
            ..
        } = &mut self.work
        else {
            return Vec::new();
        };
        let samples: Vec<&Sample> = chunk.iter().map(|waiting| &waiting.sample).collect();
        let mut frames = chains.frames(&samples);
        if !deadline.names_are_over() {
            chains.cut(&samples, &mut frames, processes, symbolizer);
        }
        let addresses = samples.iter().zip(&frames).flat_map(|(sample, chain)| {
            chain.frames.iter().map(move |frame| (*sample, frame.address, frame.kernel))
        });
        let ids = self.locate(addresses);
        let mut rest = &ids[..];
        let joined = frames.iter().zip(leaves).map(|(chain, leaf)| {
            let (own, behind) = rest.split_at_checked(chain.frames.len()).unwrap_or_default();
            rest = behind;
            StreamedChain::join(&self.code, &self.names, *leaf, own, chain)
        });
        joined.collect()
    }

    /// Returns the data locations, and for each sample the index of its own; empty if no field
    /// needs them. Data locations are not remembered, because there can be as many addresses as
    /// there is memory.
    fn locate_data(&mut self, chunk: &[Waiting]) -> (Vec<DataLocation>, Vec<Option<usize>>) {
        if !self.needs(StreamField::needs_data) {
            return (Vec::new(), Vec::new());
        }
        let mut queries = Vec::new();
        let mut seen: FxHashMap<(u64, u64), usize> = FxHashMap::default();
        let places = chunk
            .iter()
            .map(|Waiting { sample, .. }| {
                if sample.address == 0 {
                    return None;
                }
                let query = DataQuery::new(
                    &self.work.whereabouts.processes,
                    sample.pid,
                    sample.address,
                    1,
                    &moment(sample),
                );
                let space = match &query.mapping {
                    _ if query.kernel => 0,
                    Ok(mapped) => mapped.generation,
                    // The address space is unknown, so the address is looked up each time.
                    Err(_) => !(queries.len() as u64),
                };
                Some(*seen.entry((space, sample.address)).or_insert_with(|| {
                    queries.push(query);
                    queries.len() - 1
                }))
            })
            .collect();
        let Self {
            names,
            work: StreamWork { whereabouts: Whereabouts { symbolizer, .. }, deadline, .. },
            ..
        } = self;
        let mut queries = queries.into_iter();
        let go_on = || !deadline.names_are_over();
        let mut data = symbolizer.resolve_data_while(names, &mut queries, go_on);
        data.extend(queries.map(|query| late_data(&query, true)));
        (data, places)
    }
}

/// Returns the time of a sample as a window.
fn moment(sample: &Sample) -> Range<u64> {
    sample.time..sample.time.saturating_add(1)
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;

/// Opens newly mapped files while they still exist, if a field is named from them.
fn open_early(fields: &[StreamField], processes: &mut Processes, symbolizer: &Symbolizer, wait: Wait) {
    let files = processes.take_new_files();
    if fields.iter().any(|field| field.needs_code() || field.needs_data()) {
        symbolizer.open_early(files, wait);
    }
}
