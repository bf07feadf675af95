//! A day: the tables of its hours, added up, and tiers of it in which fewer samples are kept.
//!
//! The parts of hours are sorted by service. So a day is made one range of services after the
//! other, each of which fits into memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use precise_capture::{FlatBounds, FlatColumn, FlatReader, FlatValues};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bucket::{FleetBucket, FleetError, with_ranges};
use crate::encode::{self, EncodedPart};
use crate::fold::{
    EventKey, Fold, Full, InstructionKey, InstructionOp, LatencyKey, NodeKey, RowKey, SampledInstruction,
    Sums, SymbolTexts, cycles, once,
};
use crate::hour::FleetDay;
use crate::ledger::LedgerSums;
use crate::making::{Made, next, of_inputs, write};
use crate::manifest::{FleetManifest, FleetPeriod, ManifestPart};
use crate::part::{FleetBatch, FleetPick, LIMITS, read_part};
use crate::tables::{self, FleetTable, LEDGER, SYMBOLS, TIERS};

/// The columns that rows are read from, of both tables: those of latencies have no node and no sums
/// of latencies, but a group and a bucket.
const OF_ROWS: [FlatColumn; 12] = [
    tables::SERVICE,
    tables::EVENT,
    tables::UNIT,
    tables::KIND,
    tables::FUNCTION,
    tables::LEVEL,
    tables::CLUSTER,
    tables::COUNT,
    tables::WEIGHT,
    tables::NODE,
    tables::LATENCY_SUM,
    tables::LATENCY_MAX,
];
const OF_INSTRUCTIONS: [FlatColumn; 13] = [
    tables::SERVICE,
    tables::EVENT,
    tables::UNIT,
    tables::KIND,
    tables::FUNCTION,
    tables::FUNCTION_START,
    tables::FUNCTION_OFFSET,
    tables::OP,
    tables::NODE_GROUP,
    tables::COUNT,
    tables::WEIGHT,
    tables::LATENCY_SUM,
    tables::LATENCY_MAX,
];
const OF_LATENCIES: [FlatColumn; 11] = [
    tables::SERVICE,
    tables::EVENT,
    tables::UNIT,
    tables::KIND,
    tables::FUNCTION,
    tables::LEVEL,
    tables::CLUSTER,
    tables::COUNT,
    tables::WEIGHT,
    tables::NODE_GROUP,
    tables::BUCKET,
];

/// Brings the tables of a day up to date with those of its hours.
pub(crate) fn compact_day(
    bucket: &Arc<dyn FleetBucket>,
    day: FleetDay,
    memory: u64,
) -> Result<Made, FleetError> {
    let period = FleetPeriod::Day(day);
    let (hours, newest) = FleetManifest::of_day(bucket, day)?;
    let of: Vec<String> =
        hours.iter().map(|(hour, of)| FleetPeriod::Hour(*hour).name(of.generation)).collect();
    if of.is_empty() || newest.as_ref().is_some_and(|newest| newest.of == of) {
        return Ok(Made { manifest: newest, ..Made::default() });
    }
    let manifests: Vec<&FleetManifest> = hours.iter().map(|(_, manifest)| manifest).collect();
    let hash = of_inputs(of.iter().cloned());
    let made = Made { read: of.len() as u64, ..Made::default() };
    let mut making = Making { bucket, day, memory, hash, made, written: 0 };
    making.table(&manifests, FleetTable::Hour)?;
    making.table(&manifests, FleetTable::Latency)?;
    making.table(&manifests, FleetTable::Instruction)?;
    making.ledger(&manifests)?;
    making.symbols(&manifests)?;
    let made = making.made;
    let samples = manifests.iter().fold(0, |sum: u64, of| sum.saturating_add(of.samples));
    let instructions = manifests.iter().all(|of| of.instructions);
    // A day is made anew: of the old manifest, only its number stays.
    let old = newest.map(|of| FleetManifest {
        period: of.period,
        generation: of.generation,
        ..FleetManifest::default()
    });
    let manifest = FleetManifest { instructions, ..next(old, period, &made, samples, of.len() as u64, of) };
    let known = if manifest.write(bucket, period)? {
        Some(manifest)
    } else {
        // Another compactor was faster. If hours have changed since, the next one sees it.
        FleetManifest::newest(bucket, period)?
    };
    Ok(Made { manifest: known, ..made })
}

/// A day whose parts are being written.
struct Making<'a> {
    bucket: &'a Arc<dyn FleetBucket>,
    day: FleetDay,
    memory: u64,
    hash: String,
    made: Made,
    /// The number of parts of the table so far.
    written: u32,
}

impl Making<'_> {
    /// Adds up a table of the hours.
    fn table(&mut self, manifests: &[&FleetManifest], table: FleetTable) -> Result<(), FleetError> {
        self.written = 0;
        let parts: Vec<&ManifestPart> = manifests.iter().flat_map(|of| of.of_table(table)).collect();
        let mut starts = self.ranges(&parts)?;
        starts.push(String::new());
        for (at, start) in starts.iter().enumerate() {
            let Some(end) = starts.get(at + 1) else { break };
            let end = (!end.is_empty()).then_some(end);
            let mut fold = Fold::new();
            for part in &parts {
                self.range(&mut fold, part, table, start, end)?;
            }
            self.flush(table, fold)?;
        }
        Ok(())
    }

    /// Returns the first services of ranges with about as many rows as fit into memory; the first
    /// one is empty.
    fn ranges(&self, parts: &[&ManifestPart]) -> Result<Vec<String>, FleetError> {
        let mut groups: Vec<(String, u64)> = Vec::new();
        for part in parts {
            let read = with_ranges(self.bucket, (&part.name, part.bytes), |source| {
                let reader = FlatReader::open(source, &part.name, &LIMITS)?;
                for group in 0..reader.groups() {
                    if let Some(FlatBounds::Texts(first, _)) = reader.bounds(group, tables::SERVICE.name) {
                        groups.push((first, reader.rows(group)));
                    }
                }
                Ok(())
            });
            read?.map_err(FleetError::Table)?;
        }
        groups.sort();
        let most = self.memory / 2 / size_of::<(u128, Sums)>() as u64;
        let (mut starts, mut rows) = (vec![String::new()], 0);
        for (first, more) in groups {
            rows += more;
            if rows > most && starts.last().is_some_and(|last| *last != first) {
                starts.push(first);
                rows = more;
            }
        }
        Ok(starts)
    }

    /// Adds the rows of a part whose service is in a range.
    fn range(
        &mut self,
        fold: &mut Fold,
        part: &ManifestPart,
        table: FleetTable,
        start: &String,
        end: Option<&String>,
    ) -> Result<(), FleetError> {
        let inside = |service: &str| *service >= **start && end.is_none_or(|end| *service < **end);
        let beside = |first: &String, last: &String| last < start || end.is_some_and(|end| first >= end);
        if part.services.as_ref().is_some_and(|(first, last)| beside(first, last)) {
            return Ok(());
        }
        let columns = match table {
            FleetTable::Hour => &OF_ROWS[..],
            FleetTable::Instruction => &OF_INSTRUCTIONS[..],
            _ => &OF_LATENCIES[..],
        };
        let mut failed = Ok(());
        let read = with_ranges(self.bucket, (&part.name, part.bytes), |source| {
            let reader = FlatReader::open(source, &part.name, &LIMITS)?;
            for group in 0..reader.groups() {
                let bounds = reader.bounds(group, tables::SERVICE.name);
                if matches!(&bounds, Some(FlatBounds::Texts(first, last)) if beside(first, last)) {
                    continue;
                }
                reader.read(group, columns, 16 << 10, |rows, values| {
                    if failed.is_ok() {
                        failed = self.batch(fold, (rows, values), table, inside);
                    }
                    Ok(())
                })?;
            }
            Ok(())
        });
        read?.map_err(FleetError::Table)?;
        failed
    }

    fn batch(
        &mut self,
        fold: &mut Fold,
        batch: (usize, &[&FlatValues]),
        table: FleetTable,
        inside: impl Fn(&str) -> bool,
    ) -> Result<(), FleetError> {
        self.made.held = self.made.held.max(fold.bytes().1);
        if fold.is_full(self.memory) {
            let full = std::mem::replace(fold, Fold::new());
            self.flush(table, full)?;
        }
        self.made.rows_read += add(fold, batch, table, inside).map_err(|full| too_many(table, &full))?;
        Ok(())
    }

    fn flush(&mut self, table: FleetTable, mut fold: Fold) -> Result<(), FleetError> {
        fold.rank();
        fold.add_up();
        let hour = self.day.first();
        if table == FleetTable::Latency {
            let part = encode::latencies(FleetTable::DayLatency, &fold, hour)?;
            self.write(part, None)?;
        } else if table == FleetTable::Instruction {
            let part = encode::instructions(FleetTable::DayInstruction, &fold, hour)?;
            self.write(part, None)?;
        } else {
            self.write(encode::grouped(&fold, &fold.rows, hour)?, None)?;
            let mut rows = std::mem::take(&mut fold.rows);
            for tier in 0..TIERS {
                if tier > 0 {
                    rows = encode::thin(&fold, &rows, hour, tier);
                }
                let part = encode::rows(FleetTable::Day, &fold, &rows, hour)?;
                self.write(part, Some(tier))?;
            }
        }
        self.written += 1;
        Ok(())
    }

    fn write(&mut self, part: Option<EncodedPart>, tier: Option<u8>) -> Result<(), FleetError> {
        let Some(part) = part else { return Ok(()) };
        let hash = format!("{}-{}", self.hash, self.written);
        let name = part.table.of_day(self.day, tier, &hash);
        let part = write(self.bucket, name, EncodedPart { tier, ..part })?;
        self.made.parts.push(part);
        Ok(())
    }

    /// Adds up the ledgers of the hours.
    fn ledger(&mut self, manifests: &[&FleetManifest]) -> Result<(), FleetError> {
        self.written = 0;
        let mut fold = Fold::new();
        for part in manifests.iter().flat_map(|of| of.of_table(FleetTable::Ledger)) {
            let mut added = Ok(());
            read_part(self.bucket, part, &FleetPick::default(), &LEDGER, |batch| {
                for row in batch.rows() {
                    if added.is_ok() {
                        added = add_ledger(&mut fold, batch, row);
                    }
                }
            })?;
            added?;
            self.made.held = self.made.held.max(fold.bytes().1);
            if fold.is_full(self.memory) {
                let full = std::mem::replace(&mut fold, Fold::new());
                self.flush_ledger(full)?;
            }
        }
        self.flush_ledger(fold)
    }

    fn flush_ledger(&mut self, mut fold: Fold) -> Result<(), FleetError> {
        fold.rank();
        self.write(encode::ledger(FleetTable::DayLedger, &fold, self.day.first())?, None)?;
        self.written += 1;
        Ok(())
    }

    /// Writes each function of the day once.
    fn symbols(&mut self, manifests: &[&FleetManifest]) -> Result<(), FleetError> {
        self.written = 0;
        let (mut known, mut fold) = (FxHashSet::default(), Fold::new());
        for part in manifests.iter().flat_map(|of| of.of_table(FleetTable::Symbols)) {
            read_part(self.bucket, part, &FleetPick::default(), &SYMBOLS, |batch| {
                for row in batch.rows() {
                    let Some(id) = batch.number(0, row) else { continue };
                    if known.insert(id) {
                        let text = |at| batch.text(at, row).unwrap_or_default().to_owned();
                        let [name, module, build_id, reason] = [text(1), text(2), text(3), text(4)];
                        fold.symbol(SymbolTexts { name, module, build_id, reason });
                    }
                }
            })?;
            if fold.bytes().0 > self.memory {
                let full = std::mem::replace(&mut fold, Fold::new());
                self.flush_symbols(full)?;
            }
        }
        self.flush_symbols(fold)
    }

    fn flush_symbols(&mut self, fold: Fold) -> Result<(), FleetError> {
        let mut all: Vec<_> = fold.symbols.into_iter().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        self.write(encode::symbols(&all)?, None)?;
        self.written += 1;
        Ok(())
    }
}

fn too_many(table: FleetTable, Full(what): &Full) -> FleetError {
    let what = format!("there are more {what} than a table has room for");
    FleetError::Encode { name: table.name().to_owned(), what }
}

/// Adds a row of [`LEDGER`].
fn add_ledger(fold: &mut Fold, batch: &FleetBatch<'_>, row: usize) -> Result<(), FleetError> {
    let at = |name: &str| LEDGER.iter().position(|column| column.name == name).unwrap_or(usize::MAX);
    let maybe = |name| batch.number(at(name), row);
    let number = |name| maybe(name).unwrap_or(0);
    let text = |name| batch.text(at(name), row).unwrap_or_default().to_owned();
    let wrong = |what: String| FleetError::Encode { name: FleetTable::DayLedger.name().to_owned(), what };
    let losses = batch.text(at("losses"), row).map_or_else(|| Ok(BTreeMap::new()), serde_json::from_str);
    let losses = losses.map_err(|error| wrong(format!("the losses of an hour cannot be parsed: {error}")))?;
    let sums = LedgerSums {
        captures: number("captures"),
        sampled_ns: number("sampled_ns"),
        cpus: u32::try_from(number("cpus")).unwrap_or(u32::MAX),
        expected: maybe("expected"),
        arrived: number("arrived"),
        kept: number("kept"),
        rejected: number("rejected"),
        lost: number("lost"),
        missed: number("missed"),
        discarded: number("discarded"),
        samples: number("samples"),
        losses,
        precise: number("precise") == 1,
        finding: batch.text(at("finding"), row).map(str::to_owned),
    };
    let full = |full| too_many(FleetTable::DayLedger, &full);
    let node = fold.node(NodeKey { node: text("node"), cluster: text("cluster") }).map_err(full)?;
    let event = EventKey { event: text("event"), unit: text("unit"), kind: text("kind") };
    let event = fold.event(event).map_err(full)?;
    fold.add_ledger((node, event), sums);
    Ok(())
}

/// What is known of the texts of a batch, by their places in it.
#[derive(Default)]
struct BatchTexts {
    /// `None` of a service that is outside of the range.
    services: FxHashMap<Option<u64>, Option<u32>>,
    events: FxHashMap<[Option<u64>; 3], u32>,
    levels: FxHashMap<Option<u64>, u32>,
    places: FxHashMap<[Option<u64>; 2], u32>,
    ops: FxHashMap<Option<u64>, InstructionOp>,
}

/// The values of a batch, by the places of their columns.
#[derive(Clone, Copy)]
struct BatchValues<'a>(&'a [&'a FlatValues]);

impl BatchValues<'_> {
    fn number(&self, at: usize, row: usize) -> Option<u64> {
        self.0.get(at)?.number(row)
    }

    fn text(&self, at: usize, row: usize) -> &str {
        self.0.get(at).and_then(|of| of.text(row)).unwrap_or_default()
    }

    /// Returns the sums in these columns, and whether the samples have a latency. The largest one
    /// is beside the sum of latencies.
    fn sums(&self, [count, weight, latency]: [usize; 3], row: usize) -> (bool, Sums) {
        let number = |at| self.number(at, row);
        let latency_sum = number(latency);
        let sums = Sums {
            count: number(count).unwrap_or(0),
            weight: number(weight).unwrap_or(0),
            latency_sum: latency_sum.unwrap_or(0),
            latency_max: cycles(number(latency + 1)),
        };
        (latency_sum.is_some(), sums)
    }
}

impl BatchTexts {
    /// Returns the numbers of a row's service and event, which are the first four columns; `None`
    /// if the service is outside of the range.
    fn of(
        &mut self,
        fold: &mut Fold,
        values: BatchValues<'_>,
        row: usize,
        inside: impl Fn(&str) -> bool,
    ) -> Result<Option<(u32, u32)>, Full> {
        let service = once(&mut self.services, values.number(0, row), || {
            let name = values.text(0, row);
            inside(name).then(|| Fold::text(&mut fold.services, name)).transpose()
        })?;
        let Some(service) = service else { return Ok(None) };
        let event = once(&mut self.events, [1, 2, 3].map(|at| values.number(at, row)), || {
            let [event, unit, kind] = [1, 2, 3].map(|at| values.text(at, row).to_owned());
            fold.event(EventKey { event, unit, kind })
        })?;
        Ok(Some((service, event)))
    }

    /// Adds a row of [`OF_INSTRUCTIONS`].
    fn instruction(
        &mut self,
        fold: &mut Fold,
        values: BatchValues<'_>,
        row: usize,
        (service, event): (u32, u32),
    ) -> Result<(), Full> {
        let number = |at| values.number(at, row);
        let parse = || InstructionOp::parse(Some(values.text(7, row)));
        let op = *self.ops.entry(number(7)).or_insert_with(parse);
        let of = SampledInstruction { function: number(4).unwrap_or(0), place: number(5).zip(number(6)), op };
        let instruction = fold.place(of)?;
        let group = number(8).unwrap_or(0) as u8 & 31;
        let (timed, sums) = values.sums([9, 10, 11], row);
        let key = InstructionKey { service, event, instruction, group, timed };
        fold.instructions.push((key.pack(), sums));
        Ok(())
    }

    /// Adds a row of [`OF_ROWS`] or [`OF_LATENCIES`].
    fn row(
        &mut self,
        fold: &mut Fold,
        values: BatchValues<'_>,
        row: usize,
        (service, event): (u32, u32),
        is_latency: bool,
    ) -> Result<(), Full> {
        let number = |at| values.number(at, row);
        let level = once(&mut self.levels, number(5), || Fold::text(&mut fold.levels, values.text(5, row)))?;
        let function = number(4).unwrap_or(0);
        let node = if is_latency { None } else { number(9) };
        let place = once(&mut self.places, [number(6), node], || {
            let cluster = values.text(6, row);
            if is_latency {
                return Fold::text(&mut fold.clusters, cluster);
            }
            fold.node(NodeKey { node: values.text(9, row).to_owned(), cluster: cluster.to_owned() })
        })?;
        if is_latency {
            let [group, bucket] = [9, 10].map(|at| number(at).unwrap_or(0) as u8);
            let key =
                LatencyKey { service, event, function, level, cluster: place, group: group & 31, bucket };
            let [count, weight] = [7, 8].map(|at| number(at).unwrap_or(0));
            fold.latencies.push((key.pack(), [count, weight]));
        } else {
            let (timed, sums) = values.sums([7, 8, 10], row);
            let key = RowKey { service, event, function, level, node: place, timed };
            fold.rows.push((key.pack(), sums));
        }
        Ok(())
    }
}

/// Adds the rows of a batch whose service is inside of a range. Returns their number.
fn add(
    fold: &mut Fold,
    (all, values): (usize, &[&FlatValues]),
    table: FleetTable,
    inside: impl Fn(&str) -> bool,
) -> Result<u64, Full> {
    let (mut texts, values) = (BatchTexts::default(), BatchValues(values));
    let mut added = 0;
    for row in 0..all {
        let Some(of) = texts.of(fold, values, row, &inside)? else { continue };
        added += 1;
        match table {
            FleetTable::Instruction => texts.instruction(fold, values, row, of)?,
            _ => texts.row(fold, values, row, of, table == FleetTable::Latency)?,
        }
    }
    Ok(added)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_in_the_tables() {
        let has = |columns: &[FlatColumn], name: &str| columns.iter().any(|column| column.name == name);
        assert!(OF_ROWS.iter().all(|column| has(&tables::ROWS, column.name)));
        assert!(OF_INSTRUCTIONS.iter().all(|column| has(&tables::INSTRUCTIONS, column.name)));
        assert!(OF_LATENCIES.iter().all(|column| has(&tables::HISTOGRAM, column.name)));
    }
}
