//! A day: the tables of its hours, added up, and tiers of it in which fewer samples are kept.
//!
//! The parts of hours are sorted by service. So a day is made one range of services after the
//! other, each of which fits into memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use precise_capture::{FlatBounds, FlatColumn, FlatReader, FlatValues};
use rustc_hash::FxHashSet;

use crate::add_up::{BESIDE, Sums};
use crate::bucket::{FleetBucket, FleetError, with_ranges};
use crate::encode::{self, EncodedPart};
use crate::fold::{EventKey, Fold, Full, NodeKey, cycles};
use crate::functions::SymbolNames;
use crate::hour::FleetDay;
use crate::keys::{InstructionKey, InstructionOp, LatencyKey, RowKey, SampledInstruction};
use crate::ledger::LedgerSums;
use crate::making::{Made, next, of_inputs, write};
use crate::manifest::{FleetManifest, FleetPeriod, ManifestPart};
use crate::met::{InCluster, Met};
use crate::part::{FleetBatch, FleetPick, LIMITS, read_part};
use crate::tables::{self, FleetTable, LEDGER, SYMBOLS, TIERS};

/// The columns that rows are read from.
const OF_ROWS: [FlatColumn; 12] = [
    tables::SERVICE,
    tables::EVENT,
    tables::UNIT,
    tables::KIND,
    tables::FUNCTION,
    tables::LEVEL,
    tables::CLUSTER,
    tables::NODE,
    tables::COUNT,
    tables::WEIGHT,
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
    tables::NODE_GROUP,
    tables::BUCKET,
    tables::COUNT,
    tables::WEIGHT,
];

/// Brings the tables of a day up to date with those of its hours, which are added up in `fold`.
pub(crate) fn compact_day(
    bucket: &Arc<dyn FleetBucket>,
    day: FleetDay,
    memory: u64,
    fold: &mut Fold,
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
    for table in [FleetTable::Hour, FleetTable::Latency, FleetTable::Instruction] {
        // Each table fills another list, so the room of the one before is of no use.
        *fold = Fold::new();
        making.table(&manifests, table, fold)?;
    }
    *fold = Fold::new();
    making.ledger(&manifests, fold)?;
    making.symbols(&manifests, fold)?;
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
    fn table(
        &mut self,
        manifests: &[&FleetManifest],
        table: FleetTable,
        fold: &mut Fold,
    ) -> Result<(), FleetError> {
        self.written = 0;
        let parts: Vec<&ManifestPart> = manifests.iter().flat_map(|of| of.of_table(table)).collect();
        let mut starts = self.ranges(&parts)?;
        starts.push(String::new());
        for (at, start) in starts.iter().enumerate() {
            let Some(end) = starts.get(at + 1) else { break };
            let end = (!end.is_empty()).then_some(end);
            for part in &parts {
                self.range(fold, part, table, start, end)?;
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
        let most = self.memory / 2 / (size_of::<(u128, Sums)>() + BESIDE) as u64;
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
                let mut texts = GroupTexts::default();
                reader.read(group, columns, 16 << 10, |rows, values| {
                    if failed.is_ok() {
                        failed = self.batch((&mut *fold, &mut texts), (rows, values), table, inside);
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
        (fold, texts): (&mut Fold, &mut GroupTexts),
        (rows, values): (usize, &[&FlatValues]),
        table: FleetTable,
        inside: impl Fn(&str) -> bool,
    ) -> Result<(), FleetError> {
        self.made.held = self.made.held.max(fold.bytes());
        if fold.is_full(self.memory) {
            *texts = GroupTexts::default();
            self.flush(table, fold)?;
        }
        let added = match table {
            FleetTable::Instruction => texts.instructions(fold, rows, values, inside),
            FleetTable::Latency => texts.latencies(fold, rows, values, inside),
            _ => texts.rows(fold, rows, values, inside),
        };
        self.made.rows_read += added.map_err(|full| too_many(table, &full))?;
        Ok(())
    }

    /// Writes what was added up of a table, and empties `fold`.
    fn flush(&mut self, table: FleetTable, fold: &mut Fold) -> Result<(), FleetError> {
        fold.finish();
        let hour = self.day.first();
        if table == FleetTable::Latency {
            let part = encode::latencies(FleetTable::DayLatency, fold, hour)?;
            self.write(part, None)?;
        } else if table == FleetTable::Instruction {
            let part = encode::instructions(FleetTable::DayInstruction, fold, hour)?;
            self.write(part, None)?;
        } else {
            self.write(encode::grouped(fold, &fold.rows, hour)?, None)?;
            self.write(encode::rows(FleetTable::Day, fold, &fold.rows, hour)?, Some(0))?;
            let mut thinned = Vec::new();
            for tier in 1..TIERS {
                let rows = if tier > 1 { &thinned } else { &fold.rows };
                thinned = encode::thin(fold, rows, hour, tier);
                let part = encode::rows(FleetTable::Day, fold, &thinned, hour)?;
                self.write(part, Some(tier))?;
            }
        }
        fold.empty();
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
    fn ledger(&mut self, manifests: &[&FleetManifest], fold: &mut Fold) -> Result<(), FleetError> {
        self.written = 0;
        for part in manifests.iter().flat_map(|of| of.of_table(FleetTable::Ledger)) {
            let mut added = Ok(());
            read_part(self.bucket, part, &FleetPick::default(), &LEDGER, |batch| {
                for row in batch.rows() {
                    if added.is_ok() {
                        added = add_ledger(fold, batch, row);
                    }
                }
            })?;
            added?;
            self.made.held = self.made.held.max(fold.bytes());
            if fold.is_full(self.memory) {
                self.flush_ledger(fold)?;
            }
        }
        self.flush_ledger(fold)
    }

    fn flush_ledger(&mut self, fold: &mut Fold) -> Result<(), FleetError> {
        fold.finish();
        self.write(encode::ledger(FleetTable::DayLedger, fold, self.day.first())?, None)?;
        fold.empty();
        self.written += 1;
        Ok(())
    }

    /// Writes each function of the day once.
    fn symbols(&mut self, manifests: &[&FleetManifest], fold: &mut Fold) -> Result<(), FleetError> {
        self.written = 0;
        let mut known = FxHashSet::default();
        for part in manifests.iter().flat_map(|of| of.of_table(FleetTable::Symbols)) {
            let mut added = Ok(0);
            read_part(self.bucket, part, &FleetPick::default(), &SYMBOLS, |batch| {
                for row in batch.rows() {
                    let Some(id) = batch.number(0, row) else { continue };
                    if added.is_ok() && known.insert(id) {
                        let [name, module, build_id, reason] =
                            [1, 2, 3, 4].map(|at| batch.text(at, row).unwrap_or_default());
                        added = fold.symbol(SymbolNames { name, module, build_id, reason });
                    }
                }
            })?;
            added.map_err(|full| too_many(FleetTable::Symbols, &full))?;
            if fold.bytes() > self.memory {
                self.flush_symbols(fold)?;
            }
        }
        self.flush_symbols(fold)
    }

    fn flush_symbols(&mut self, fold: &mut Fold) -> Result<(), FleetError> {
        fold.finish();
        let all: Vec<_> = fold.functions.named().collect();
        let part = encode::symbols(&all)?;
        drop(all);
        fold.empty();
        self.write(part, None)?;
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

/// What is known of the texts of a row group, by their places in it.
#[derive(Default)]
struct GroupTexts {
    /// `None` of a service that is outside of the range.
    services: Met<Option<u32>>,
    levels: Met<u32>,
    clusters: Met<u32>,
    nodes: Met<InCluster>,
    ops: Met<InstructionOp>,
    /// The event of the row before, by the places of its texts. Rows are in the order of events.
    event: Option<([Option<u64>; 3], u32)>,
    /// The function of the row before, with its id. Rows of an event are in the order of ids.
    function: Option<(u64, u32)>,
    /// The instruction of the row before.
    instruction: Option<(SampledInstruction, u32)>,
}

/// Returns the sums in these columns, and whether the samples have a latency.
#[inline]
fn sums([count, weight, latency_sum, latency_max]: [&FlatValues; 4], row: usize) -> (bool, Sums) {
    let latency = latency_sum.number(row);
    let sums = Sums {
        count: count.number(row).unwrap_or(0),
        weight: weight.number(row).unwrap_or(0),
        latency_sum: latency.unwrap_or(0),
        latency_max: cycles(latency_max.number(row)),
    };
    (latency.is_some(), sums)
}

const OTHER_COLUMNS: Full = Full("columns");

impl GroupTexts {
    /// Returns the numbers of a row's service and event; `None` if the service is outside of the
    /// range.
    #[inline]
    fn of(
        &mut self,
        fold: &mut Fold,
        [service, event, unit, kind]: [&FlatValues; 4],
        row: usize,
        inside: impl Fn(&str) -> bool,
    ) -> Result<Option<(u32, u32)>, Full> {
        let service = self.services.found(service, row, |name| {
            let name = name.unwrap_or_default();
            inside(name).then(|| Fold::text(&mut fold.services, name)).transpose()
        })?;
        let Some(service) = service else { return Ok(None) };
        let places = [event, unit, kind].map(|of| of.number(row));
        let event = match self.event {
            Some((of, number)) if of == places => number,
            _ => {
                let [event, unit, kind] =
                    [event, unit, kind].map(|of| of.text(row).unwrap_or_default().to_owned());
                let number = fold.event(EventKey { event, unit, kind })?;
                self.event = Some((places, number));
                number
            }
        };
        Ok(Some((service, event)))
    }

    /// Calls `add` for each row whose service is inside of the range, with the numbers of its
    /// service and event. Returns how many rows there are.
    fn each(
        &mut self,
        fold: &mut Fold,
        rows: usize,
        keys: [&FlatValues; 4],
        inside: impl Fn(&str) -> bool,
        mut add: impl FnMut(&mut Self, &mut Fold, usize, (u32, u32)) -> Result<(), Full>,
    ) -> Result<u64, Full> {
        let mut added = 0;
        for row in 0..rows {
            if let Some(of) = self.of(fold, keys, row, &inside)? {
                add(self, fold, row, of)?;
                added += 1;
            }
        }
        Ok(added)
    }

    /// Adds rows of [`OF_ROWS`]. Returns their number.
    fn rows(
        &mut self,
        fold: &mut Fold,
        rows: usize,
        values: &[&FlatValues],
        inside: impl Fn(&str) -> bool,
    ) -> Result<u64, Full> {
        let &[service, event, unit, kind, function, level, cluster, node, ref own @ ..] = values else {
            return Err(OTHER_COLUMNS);
        };
        let own = own.try_into().map_err(|_| OTHER_COLUMNS)?;
        self.each(fold, rows, [service, event, unit, kind], inside, |texts, fold, row, (service, event)| {
            let level = texts.level(fold, level, row)?;
            let node = texts.nodes.in_cluster([cluster, node], row, |cluster, node| {
                fold.node(NodeKey { node: node.to_owned(), cluster: cluster.to_owned() })
            })?;
            let (timed, sums) = sums(own, row);
            let function = texts.function(fold, function, row)?;
            fold.rows.push((RowKey { service, event, function, level, node, timed }.pack(), sums));
            Ok(())
        })
    }

    /// Returns the number of a row's function.
    #[inline]
    fn function(&mut self, fold: &mut Fold, function: &FlatValues, row: usize) -> Result<u32, Full> {
        let id = function.number(row).unwrap_or(0);
        match self.function {
            Some((of, number)) if of == id => Ok(number),
            _ => {
                let number = fold.function(id)?;
                self.function = Some((id, number));
                Ok(number)
            }
        }
    }

    fn level(&mut self, fold: &mut Fold, level: &FlatValues, row: usize) -> Result<u32, Full> {
        self.levels.found(level, row, |text| Fold::text(&mut fold.levels, text.unwrap_or_default()))
    }

    /// Adds rows of [`OF_LATENCIES`]. Returns their number.
    fn latencies(
        &mut self,
        fold: &mut Fold,
        rows: usize,
        values: &[&FlatValues],
        inside: impl Fn(&str) -> bool,
    ) -> Result<u64, Full> {
        let &[service, event, unit, kind, function, level, cluster, group, bucket, count, weight] = values
        else {
            return Err(OTHER_COLUMNS);
        };
        self.each(fold, rows, [service, event, unit, kind], inside, |texts, fold, row, (service, event)| {
            let level = texts.level(fold, level, row)?;
            let cluster = texts
                .clusters
                .found(cluster, row, |text| Fold::text(&mut fold.clusters, text.unwrap_or_default()))?;
            let number = |of: &FlatValues| of.number(row).unwrap_or(0);
            let (group, bucket) = (number(group) as u8 & 31, number(bucket) as u8);
            let function = texts.function(fold, function, row)?;
            let key = LatencyKey { service, event, function, level, cluster, group, bucket };
            fold.latencies.push((key.pack(), [number(count), number(weight)]));
            Ok(())
        })
    }

    /// Adds rows of [`OF_INSTRUCTIONS`]. Returns their number.
    fn instructions(
        &mut self,
        fold: &mut Fold,
        rows: usize,
        values: &[&FlatValues],
        inside: impl Fn(&str) -> bool,
    ) -> Result<u64, Full> {
        let &[service, event, unit, kind, function, start, offset, op, group, ref own @ ..] = values else {
            return Err(OTHER_COLUMNS);
        };
        let own = own.try_into().map_err(|_| OTHER_COLUMNS)?;
        self.each(fold, rows, [service, event, unit, kind], inside, |texts, fold, row, (service, event)| {
            let op = texts.ops.number(op, row, InstructionOp::parse);
            let place = start.number(row).zip(offset.number(row));
            let of = SampledInstruction { function: function.number(row).unwrap_or(0), place, op };
            let instruction = match texts.instruction {
                Some((before, number)) if before == of => number,
                _ => fold.place(of)?,
            };
            texts.instruction = Some((of, instruction));
            let group = group.number(row).unwrap_or(0) as u8 & 31;
            let (timed, sums) = sums(own, row);
            let key = InstructionKey { service, event, instruction, group, timed };
            fold.instructions.push((key.pack(), sums));
            Ok(())
        })
    }
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
