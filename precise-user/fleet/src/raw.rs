//! One capture: the rows and the ledger of the epochs that are in an hour.

use std::sync::Arc;

use bytes::Bytes;
use precise_capture::{CaptureScan, FlatValues, ReadError, ReadLimits};
use precise_common::data_src::DataSource;
use precise_model::Meta;
use precise_model::words::Served;
use rustc_hash::FxHashMap;

use crate::accesses::RowInstructions;
use crate::columns::{AccessColumns, COLUMNS, Columns, Stopped, short, text_places};
use crate::fold::{EventKey, Fold, Full, InstructionKey, LatencyKey, NodeKey, RowKey, Sums, cycles, once};
use crate::hash::node_group;
use crate::hour::FleetHour;
use crate::ledger::{LedgerSums, Portion};
use crate::manifest::NamedReason;
use crate::service::{cluster, kind};

/// The largest capture that is read, in bytes.
pub(crate) const LARGEST: u64 = 256 << 20;
/// What reading a capture may take. Rows are added up as they are read.
pub(crate) const LIMITS: ReadLimits = ReadLimits { rows: 4 << 20, bytes: 512 << 20 };
/// By how much a node's clock may be ahead of the store's, in nanoseconds.
const AHEAD_NS: u64 = 300_000_000_000;
/// How long after its end a capture is late, in nanoseconds.
const LATE_NS: u64 = 86_400_000_000_000;

/// Why a capture is not in the tables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RefusedInput {
    pub reason: NamedReason,
    pub what: String,
}

impl RefusedInput {
    fn new(reason: NamedReason, what: impl Into<String>) -> Self {
        Self { reason, what: what.into() }
    }

    /// Returns why a file could not be read.
    pub fn of(error: &ReadError) -> Self {
        let reason = match error {
            ReadError::Truncated { .. } => NamedReason::Cut,
            ReadError::Newer { .. } => NamedReason::Newer,
            ReadError::TooLarge { .. } | ReadError::Memory { .. } => NamedReason::TooLarge,
            _ => NamedReason::Damaged,
        };
        Self::new(reason, error.to_string())
    }
}

impl From<Full> for RefusedInput {
    fn from(Full(what): Full) -> Self {
        Self::new(NamedReason::TooLarge, format!("it has more {what} than a table has room for"))
    }
}

/// A capture in memory.
pub(crate) struct RawCapture<'a> {
    /// The name of its file below the place.
    pub name: &'a str,
    pub bytes: Bytes,
    /// When its file was written, in nanoseconds since the Unix epoch; 0 if that is not known.
    pub modified_ns: u64,
}

/// What a capture gave an hour.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TakenSamples {
    /// None of its epochs is in the hour.
    Elsewhere,
    /// This number of samples, and whether the capture came late.
    Samples(u64, Option<String>),
}

/// Returns when a capture began and ended, in nanoseconds since the Unix epoch, if it can be.
pub(crate) fn span(meta: &Meta, modified_ns: u64) -> Result<(u64, u64), RefusedInput> {
    let begin = meta.start_unix_ns;
    if begin == 0 {
        return Err(RefusedInput::new(NamedReason::NoTime, "it does not say when it began"));
    }
    if modified_ns > 0 && begin > modified_ns.saturating_add(AHEAD_NS) {
        let ahead = (begin - modified_ns) / 1_000_000_000;
        let what = format!("it begins {ahead} s after its file was written: the clock of its node is ahead");
        return Err(RefusedInput::new(NamedReason::Future, what));
    }
    let length = meta.epochs.last().map_or(0, |epoch| epoch.end_ns);
    Ok((begin, begin.saturating_add(length)))
}

/// Adds what a capture has of an hour to `fold`. If it is refused, `fold` is as it was, but for
/// texts that no row uses.
pub(crate) fn take(
    fold: &mut Fold,
    hour: FleetHour,
    raw: &RawCapture<'_>,
) -> Result<TakenSamples, RefusedInput> {
    let scan = CaptureScan::open(Arc::new(raw.bytes.clone()), raw.name, &LIMITS);
    let scan = scan.map_err(|error| RefusedInput::of(&error))?;
    if scan.is_cut() {
        return Err(RefusedInput::new(NamedReason::Cut, "the recording was cut off before its end"));
    }
    let meta = scan.meta();
    let (begin, end) = span(meta, raw.modified_ns)?;
    let places: Vec<Place> =
        meta.epochs.iter().map(|epoch| Place::of(begin.saturating_add(epoch.start_ns), hour)).collect();
    if !places.contains(&Place::Inside) {
        return Ok(TakenSamples::Elsewhere);
    }
    let mark = fold.mark();
    let taken = Reading::start(fold, meta, raw.name, places).and_then(|mut reading| {
        let mut stopped = None;
        let each = |rows: usize, values: &[&FlatValues]| {
            reading.batch(rows, values).map_err(|error| match error {
                Stopped::Wrong(what) => what,
                Stopped::Full(full) => {
                    stopped = Some(full);
                    String::new()
                }
            })
        };
        let columns = [COLUMNS, RowInstructions::columns(meta)].concat();
        let read = scan.read(&columns, each);
        match stopped {
            Some(full) => Err(full.into()),
            None => read.map_err(|error| RefusedInput::of(&error)).map(|()| reading.finish(meta)),
        }
    });
    match taken {
        Ok(samples) => {
            let late = raw.modified_ns.saturating_sub(end) > LATE_NS;
            let what = late.then(|| "its file was written more than a day after its end".to_owned());
            Ok(TakenSamples::Samples(samples, what))
        }
        Err(refused) => {
            fold.forget(mark);
            Err(refused)
        }
    }
}

/// Where an epoch is, seen from an hour. It belongs to the hour in which it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    Inside,
    After,
}

impl Place {
    fn of(start_ns: u64, hour: FleetHour) -> Self {
        match start_ns {
            ns if ns < hour.start_ns() => Self::Before,
            ns if ns < hour.end_ns() => Self::Inside,
            _ => Self::After,
        }
    }
}

/// A capture whose rows are being added.
struct Reading<'a> {
    fold: &'a mut Fold,
    places: Vec<Place>,
    /// The numbers of the capture's events in `fold`.
    events: Vec<u32>,
    node: u32,
    cluster: u32,
    group: u8,
    portions: Vec<Portion>,
    /// The numbers of levels by the data source.
    levels: FxHashMap<u64, u32>,
    accesses: RowInstructions,
}

impl<'a> Reading<'a> {
    fn start(fold: &'a mut Fold, meta: &Meta, name: &str, places: Vec<Place>) -> Result<Self, RefusedInput> {
        let host = &meta.machine.host;
        let label = name.rsplit_once('/').map_or("", |(label, _)| label);
        let cluster = cluster(label, host);
        let group = node_group(&cluster, host);
        let mut events = Vec::new();
        for event in &meta.events {
            let key = EventKey { event: event.name.clone(), unit: event.unit.clone(), kind: kind(event) };
            events.push(fold.event(key)?);
        }
        let number = Fold::text(&mut fold.clusters, &cluster)?;
        let node = fold.node(NodeKey { node: short(host), cluster })?;
        let portions = vec![Portion::default(); events.len()];
        let levels = FxHashMap::default();
        let accesses = RowInstructions::of(meta);
        Ok(Self { fold, places, events, node, cluster: number, group, portions, levels, accesses })
    }

    fn batch(&mut self, rows: usize, values: &[&FlatValues]) -> Result<(), Stopped> {
        let wrong = |what: &str| Stopped::Wrong(what.to_owned());
        let (values, own) = values.split_at(COLUMNS.len().min(values.len()));
        let columns = Columns::of(values).ok_or_else(|| wrong("a column is missing"))?;
        // Other columns are read if an event of the capture samples accesses.
        let own = AccessColumns::of(own);
        self.accesses.begin_batch();
        let mut services: FxHashMap<u128, u32> = FxHashMap::default();
        let mut functions: FxHashMap<u128, u64> = FxHashMap::default();
        for row in 0..rows {
            let needed = |column: &FlatValues| {
                column.number(row).ok_or_else(|| wrong("a row has no epoch, event or count"))
            };
            let (epoch, event) = (needed(columns.epoch)?, needed(columns.event)?);
            let (count, weight) = (needed(columns.count)?, needed(columns.weight)?);
            let place = self
                .places
                .get(epoch as usize)
                .ok_or_else(|| wrong("a row refers to an epoch that is not there"))?;
            let portion = self.portions.get_mut(event as usize);
            let portion = portion.ok_or_else(|| wrong("a row refers to an event that is not there"))?;
            portion.total = portion.total.saturating_add(count);
            match place {
                Place::Inside => portion.inside = portion.inside.saturating_add(count),
                Place::Before => {
                    portion.before = portion.before.saturating_add(count);
                    continue;
                }
                Place::After => continue,
            }
            let owner = text_places([columns.cgroup, columns.pod], row);
            let find = || Fold::text(&mut self.fold.services, &columns.service(row));
            let service = once(&mut services, owner, find)?;
            let names =
                text_places([columns.build_id, columns.module, columns.function, columns.reason], row);
            let function = *functions.entry(names).or_insert_with(|| self.fold.symbol(columns.symbol(row)));
            let source = columns.source.number(row);
            let level = self.level(source)?;
            let latency_sum = columns.latency_sum.number(row);
            let latency_max = columns.latency_max.number(row);
            let event_of_capture = event;
            let event = self.events.get(event as usize).copied().unwrap_or(0);
            let timed = latency_sum.is_some() || latency_max.is_some();
            let key = RowKey { service, event, function, level, node: self.node, timed };
            let latency_max = cycles(latency_max);
            let sums = Sums { count, weight, latency_sum: latency_sum.unwrap_or(0), latency_max };
            self.fold.rows.push((key.pack(), sums));
            if let Some(own) = own.as_ref().filter(|_| self.accesses.has(event_of_capture)) {
                let instruction = self.accesses.instruction(self.fold, (&columns, own), row)?;
                let key = InstructionKey { service, event, instruction, group: self.group, timed };
                self.fold.instructions.push((key.pack(), sums));
            }
            if let Some(bucket) = columns.bucket.number(row) {
                let bucket = u8::try_from(bucket).map_err(|_| wrong("a latency bucket is too large"))?;
                let (cluster, group) = (self.cluster, self.group);
                let key = LatencyKey { service, event, function, level, cluster, group, bucket };
                self.fold.latencies.push((key.pack(), [count, weight]));
            }
        }
        Ok(())
    }

    fn level(&mut self, source: Option<u64>) -> Result<u32, Full> {
        let word = source.unwrap_or(0);
        once(&mut self.levels, word, || {
            let served = Served::of(DataSource::decode(word)).map(|served| served.to_string());
            Fold::text(&mut self.fold.levels, &served.unwrap_or_default())
        })
    }

    /// Adds the ledgers of the events. Returns the number of samples in the hour.
    fn finish(self, meta: &Meta) -> u64 {
        let time = |place: Place| {
            let epochs = meta.epochs.iter().zip(&self.places).filter(|(_, at)| **at == place);
            epochs.fold(0, |sum: u64, (epoch, _)| {
                sum.saturating_add(epoch.end_ns.saturating_sub(epoch.start_ns))
            })
        };
        let [before, inside, after] = [Place::Before, Place::Inside, Place::After].map(time);
        let mut samples: u64 = 0;
        for ((event, portion), number) in meta.events.iter().zip(self.portions).zip(self.events) {
            samples = samples.saturating_add(portion.inside);
            let by_time =
                Portion { before, inside, total: before.saturating_add(inside).saturating_add(after) };
            let mut sums = LedgerSums::of(event, if portion.total > 0 { portion } else { by_time });
            (sums.samples, sums.sampled_ns, sums.cpus) = (portion.inside, inside, meta.machine.cpus);
            self.fold.add_ledger((self.node, number), sums);
        }
        samples
    }
}
