//! One capture: the rows and the ledger of the epochs that are in an hour.

use std::sync::Arc;

use bytes::Bytes;
use precise_capture::{CaptureScan, FlatValues, ReadError, ReadLimits};
use precise_common::data_src::DataSource;
use precise_model::Meta;
use precise_model::words::{self, Served};
use rustc_hash::FxHashMap;

use crate::accesses::RowInstructions;
use crate::add_up::Sums;
use crate::columns::{AccessColumns, COLUMNS, Columns, Stopped, short, text_places};
use crate::fold::{EventKey, Fold, Full, Mark, NodeKey, cycles, once};
use crate::hash::node_group;
use crate::hour::FleetHour;
use crate::keys::{InstructionKey, InstructionOp, LatencyKey, RowKey};
use crate::ledger::{LedgerSums, Portion};
use crate::manifest::NamedReason;
use crate::met::Met;
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Adds what a capture has of some hours to their folds. Returns for each hour what it got. If the
/// capture is refused, the fold is as it was, but for texts that no row uses.
pub(crate) fn take(
    hours: Vec<(FleetHour, &mut Fold)>,
    raw: &RawCapture<'_>,
) -> Vec<Result<TakenSamples, RefusedInput>> {
    if hours.is_empty() {
        return Vec::new();
    }
    let refused = |error: &RefusedInput| hours.iter().map(|_| Err(error.clone())).collect();
    let scan = CaptureScan::open(Arc::new(raw.bytes.clone()), raw.name, &LIMITS);
    let scan = match scan {
        Ok(scan) if scan.is_cut() => {
            let what = "the recording was cut off before its end";
            return refused(&RefusedInput::new(NamedReason::Cut, what));
        }
        Ok(scan) => scan,
        Err(error) => return refused(&RefusedInput::of(&error)),
    };
    let meta = scan.meta();
    let (begin, end) = match span(meta, raw.modified_ns) {
        Ok(span) => span,
        Err(error) => return refused(&error),
    };
    let mut parts: Vec<HourPart<'_>> =
        hours.into_iter().map(|(hour, fold)| HourPart::start(fold, meta, (raw.name, begin), hour)).collect();
    if parts.iter().any(HourPart::is_open) {
        let columns = [COLUMNS, RowInstructions::columns(meta)].concat();
        let read = scan.read(&columns, |rows, values| {
            parts.iter_mut().for_each(|part| part.batch(raw.name, rows, values));
            // Without a part that goes on, the rest need not be read.
            if parts.iter().any(HourPart::is_open) { Ok(()) } else { Err(String::new()) }
        });
        if let Err(error) = read {
            let error = RefusedInput::of(&error);
            parts.iter_mut().for_each(|part| part.refuse(&error));
        }
    }
    let late = raw.modified_ns.saturating_sub(end) > LATE_NS;
    let late = late.then(|| "its file was written more than a day after its end".to_owned());
    parts.into_iter().map(|part| part.finish(meta, late.clone())).collect()
}

/// What an hour gets of a capture.
enum HourPart<'a> {
    Elsewhere,
    Open(Box<Reading<'a>>),
    Refused(RefusedInput),
}

impl<'a> HourPart<'a> {
    fn start(fold: &'a mut Fold, meta: &Meta, (name, begin): (&str, u64), hour: FleetHour) -> Self {
        let place = |start_ns: u64| Place::of(begin.saturating_add(start_ns), hour);
        let places: Vec<Place> = meta.epochs.iter().map(|epoch| place(epoch.start_ns)).collect();
        if !places.contains(&Place::Inside) {
            return Self::Elsewhere;
        }
        match Reading::start(fold, meta, name, places) {
            Ok(reading) => Self::Open(Box::new(reading)),
            Err(refused) => Self::Refused(refused),
        }
    }

    fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    fn batch(&mut self, name: &str, rows: usize, values: &[&FlatValues]) {
        let Self::Open(reading) = self else { return };
        let refused = match reading.batch(rows, values) {
            Ok(()) => return,
            Err(Stopped::Wrong(what)) => {
                RefusedInput::of(&ReadError::Corrupt { path: name.to_owned(), what })
            }
            Err(Stopped::Full(full)) => full.into(),
        };
        self.refuse(&refused);
    }

    fn refuse(&mut self, error: &RefusedInput) {
        if let Self::Open(reading) = self {
            reading.fold.forget(reading.mark);
            *self = Self::Refused(error.clone());
        }
    }

    fn finish(self, meta: &Meta, late: Option<String>) -> Result<TakenSamples, RefusedInput> {
        match self {
            Self::Elsewhere => Ok(TakenSamples::Elsewhere),
            Self::Open(reading) => Ok(TakenSamples::Samples(reading.finish(meta), late)),
            Self::Refused(error) => Err(error),
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
    /// Where `fold` was before the capture.
    mark: Mark,
    places: Vec<Place>,
    /// The numbers of the capture's events in `fold`.
    events: Vec<u32>,
    node: u32,
    cluster: u32,
    group: u8,
    portions: Vec<Portion>,
    /// The numbers of levels, and what accesses did, by the data source.
    sources: FxHashMap<Option<u64>, (u32, InstructionOp)>,
    accesses: RowInstructions,
}

impl<'a> Reading<'a> {
    fn start(fold: &'a mut Fold, meta: &Meta, name: &str, places: Vec<Place>) -> Result<Self, RefusedInput> {
        let mark = fold.mark();
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
        let node = fold.node(NodeKey { node: short(host).to_owned(), cluster })?;
        let portions = vec![Portion::default(); events.len()];
        let sources = FxHashMap::default();
        let accesses = RowInstructions::of(meta);
        Ok(Self { fold, mark, places, events, node, cluster: number, group, portions, sources, accesses })
    }

    fn batch(&mut self, rows: usize, values: &[&FlatValues]) -> Result<(), Stopped> {
        let wrong = |what: &str| Stopped::Wrong(what.to_owned());
        let (values, own) = values.split_at(COLUMNS.len().min(values.len()));
        let columns = Columns::of(values).ok_or_else(|| wrong("a column is missing"))?;
        // Other columns are read if an event of the capture samples accesses.
        let own = AccessColumns::of(own);
        self.accesses.begin_batch();
        let (mut services, mut functions) = (Met::default(), Met::default());
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
            let service = services.with(columns.cgroup, row, owner, || {
                Fold::text(&mut self.fold.services, &columns.service(row))
            })?;
            let names =
                text_places([columns.build_id, columns.module, columns.function, columns.reason], row);
            let find = || self.fold.symbol(columns.symbol(row));
            let function = functions.with(columns.function, row, names, find)?;
            let (level, op) = self.source(columns.source.number(row))?;
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
                let columns = (&columns, own);
                let instruction = self.accesses.instruction(self.fold, columns, row, (function, op))?;
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

    /// Returns the number of the level of a data source, and what the access did.
    fn source(&mut self, word: Option<u64>) -> Result<(u32, InstructionOp), Full> {
        once(&mut self.sources, word, || {
            let source = DataSource::decode(word.unwrap_or(0));
            let served = Served::of(source).map(|served| served.to_string());
            let level = Fold::text(&mut self.fold.levels, &served.unwrap_or_default())?;
            let op = word.map_or(InstructionOp::Unknown, |_| InstructionOp::parse(words::op(source)));
            Ok((level, op))
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
