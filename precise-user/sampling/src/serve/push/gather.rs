//! The interval that is being gathered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use precise_model::digits::thousands;
use precise_model::{Capture, Epoch, Interner, Ledger, Measures, Meta, Owner, Row};

use super::PushOptions;
use super::counts::PushCounts;
use super::sender::{PushInterval, PushSender};
use crate::error::SamplingError;
use crate::serve::so_far::{EpochStates, RunSoFar};
use crate::top::{Mover, Tables, TopState};

/// What part of a place's memory an interval may take. One that is larger ends early.
const PARTS: usize = 4;

/// The pushes of a run: the naming thread adds rows, the run loop adds the state at the end of each
/// epoch.
#[derive(Clone)]
pub(crate) struct Pusher {
    state: Arc<Mutex<Gathering>>,
    states: EpochStates,
    counts: Arc<[Arc<PushCounts>]>,
}

struct Gathering {
    every_ns: u64,
    most_bytes: usize,
    senders: Vec<PushSender>,
    /// When the last interval was handed over.
    closed: Option<Instant>,
    draft: Meta,
    interval: Gathered,
    so_far: RunSoFar,
}

/// The rows of an interval and what they refer to.
#[derive(Default)]
struct Gathered {
    /// From the start of the first epoch to the end of the last one, from the start of the run;
    /// `None` before the first.
    time: Option<Epoch>,
    /// The ledgers at the start.
    before: Vec<Ledger>,
    tables: Tables,
    /// Each row once, without measures. `measures` has those at the same place.
    rows: Vec<Row>,
    places: Interner,
    measures: Vec<Measures>,
    owners: BTreeMap<String, Owner>,
    owner_bytes: usize,
    samples: u64,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pusher {
    /// Starts the threads of all places, for a run that `draft` describes.
    ///
    /// # Errors
    ///
    /// Returns an error if a thread cannot be started.
    pub fn start(options: PushOptions, draft: Meta) -> Result<Self, SamplingError> {
        let PushOptions { every, bytes, places } = options;
        let counts: Vec<_> =
            places.iter().map(|place| Arc::new(PushCounts::new(place.name.clone()))).collect();
        let start = |(place, counts): (_, &Arc<PushCounts>)| PushSender::start(place, counts.clone(), bytes);
        let senders = places.into_iter().zip(&counts).map(start).collect::<Result<_, _>>()?;
        let states = EpochStates::default();
        let gathering = Gathering {
            every_ns: u64::try_from(every.as_nanos()).unwrap_or(u64::MAX),
            most_bytes: bytes / PARTS,
            senders,
            closed: None,
            interval: Gathered::default(),
            so_far: RunSoFar::new(&draft, states.clone()),
            draft,
        };
        Ok(Self { state: Arc::new(Mutex::new(gathering)), states, counts: counts.into() })
    }

    /// Returns the counters of all places.
    pub fn counts(&self) -> Arc<[Arc<PushCounts>]> {
        self.counts.clone()
    }

    /// Adds the state at the end of the next epoch. Called after the epoch was handed to naming,
    /// and before the next one.
    pub fn state(&self, state: TopState) {
        self.states.add(state);
    }

    /// Adds the rows of the next epoch, which is the last of `named`.
    pub fn take(&self, named: &Capture, rows: &[Row]) {
        let Some(epoch) = named.meta.epochs.last().copied() else { return };
        let mut gathering = lock(&self.state);
        if gathering.so_far.end_epoch().is_some() {
            gathering.cut_if_large();
        }
        gathering.draft.start_unix_ns = named.meta.start_unix_ns;
        gathering.epoch(named, rows, epoch);
    }

    /// Hands over the last interval, after all rows and states have come, and lets the threads end.
    pub fn close(&self) {
        let mut gathering = lock(&self.state);
        if gathering.closed.is_some() {
            return;
        }
        gathering.so_far.end_last_epoch();
        gathering.cut();
        gathering.senders.iter().for_each(PushSender::close);
        gathering.closed = Some(Instant::now());
    }

    /// Waits for some seconds from [`Self::close`] on until all is sent. Returns a note for each
    /// place that has not taken all.
    pub fn end(&self) -> Vec<String> {
        self.close();
        let mut gathering = lock(&self.state);
        let since = gathering.closed.unwrap_or_else(Instant::now);
        let ended = gathering.senders.drain(..).map(|sender| sender.end(since));
        let unsent = self.counts.iter().zip(ended).filter(|(_, samples)| *samples > 0);
        let note = |(counts, samples): (&Arc<PushCounts>, u64)| {
            format!("the run ended before {} took its last {} samples", counts.place, thousands(samples))
        };
        unsent.map(note).collect()
    }
}

impl Gathering {
    /// Hands over an interval that is long enough, or large enough.
    fn cut_if_large(&mut self) {
        if self.interval.length_ns() >= self.every_ns || self.interval.bytes() >= self.most_bytes {
            self.cut();
        }
    }

    /// Adds the rows of an epoch.
    fn epoch(&mut self, named: &Capture, rows: &[Row], epoch: Epoch) {
        match &mut self.interval.time {
            Some(time) => time.end_ns = epoch.end_ns,
            none => {
                self.interval.before = self.so_far.begin_part(epoch.start_ns);
                *none = Some(epoch);
            }
        }
        self.interval.add(named, rows);
        self.so_far.add(rows);
    }

    /// Hands over the interval, if it has samples, and begins the next one.
    fn cut(&mut self) {
        let interval = std::mem::take(&mut self.interval);
        let Some(time) = interval.time else { return };
        if interval.samples == 0 {
            return;
        }
        let meta = Meta {
            start_unix_ns: self.draft.start_unix_ns.saturating_add(time.start_ns),
            epochs: vec![Epoch { start_ns: 0, end_ns: time.end_ns.saturating_sub(time.start_ns) }],
            events: self.so_far.events_of_part(&interval.before, time.start_ns),
            overhead: self.so_far.overhead(),
            ..self.draft.clone()
        };
        let interval = Arc::new(interval.finish(meta));
        self.senders.iter().for_each(|sender| sender.add(interval.clone()));
    }
}

impl Gathered {
    fn length_ns(&self) -> u64 {
        self.time.map_or(0, |time| time.end_ns.saturating_sub(time.start_ns))
    }

    /// Returns the memory in bytes, about.
    fn bytes(&self) -> usize {
        let row = size_of::<Row>() + size_of::<Measures>() + Interner::BYTES;
        self.tables.bytes() + self.rows.len() * row + self.owner_bytes
    }

    fn add(&mut self, named: &Capture, rows: &[Row]) {
        let mut mover = Mover::new(named, &mut self.tables);
        for row in rows {
            let row_of_profile = mover.row(&Row {
                epoch: 0,
                cpu: None,
                cgroup_id: 0,
                pid: 0,
                tid: 0,
                data: None,
                outcome: None,
                latency_bucket: None,
                width: None,
                page_size: None,
                measures: Measures::default(),
                ..*row
            });
            let place = self.places.intern(&mut self.rows, row_of_profile) as usize;
            if place == self.measures.len() {
                self.measures.push(Measures::default());
            }
            if let Some(measures) = self.measures.get_mut(place) {
                measures.add(&row.measures);
            }
            self.samples = self.samples.saturating_add(row.measures.count);
        }
        for owner in &named.meta.owners {
            if !self.owners.contains_key(&owner.path) {
                self.owner_bytes += size_of::<String>() + owner.path.len() + owner.bytes();
                self.owners.insert(owner.path.clone(), owner.clone());
            }
        }
    }

    fn finish(self, meta: Meta) -> PushInterval {
        let (bytes, samples) = (self.bytes(), self.samples);
        let Tables { names, code, data, stacks, .. } = self.tables;
        let rows = self.rows.into_iter().zip(self.measures);
        let rows = rows.map(|(row, measures)| Row { measures, ..row }).collect();
        let owners = self.owners.into_values().collect();
        let capture = Capture {
            meta: Meta { owners, ..meta },
            names,
            code,
            data,
            stacks,
            rows,
            types: None,
            touches: None,
        };
        PushInterval { capture, samples, bytes }
    }
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
