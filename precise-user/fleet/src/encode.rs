//! What was added up, as the parts of tables.

use precise_capture::{ColumnValues, DistinctTexts, FlatWriter};
use precise_common::latency;
use precise_model::Interner;

use crate::add_up::{Sums, sum_equal};
use crate::bucket::FleetError;
use crate::fold::{EventKey, Fold, NodeKey};
use crate::functions::SymbolNames;
use crate::hash::{Random, hash63, node_group};
use crate::hour::FleetHour;
use crate::keys::{InstructionKey, InstructionOp, LatencyKey, RowKey, SampledInstruction};
use crate::ledger::LedgerSums;
use crate::tables::{FleetTable, GROUP_ROWS, THINNER};

/// A part that is not written yet.
pub(crate) struct EncodedPart {
    pub table: FleetTable,
    pub tier: Option<u8>,
    pub bytes: Vec<u8>,
    pub rows: u64,
    pub services: Option<(String, String)>,
}

/// A line of the table of inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputLine {
    pub name: String,
    pub bytes: u64,
    /// Empty if the file was not read.
    pub hash: String,
    pub samples: u64,
    /// Empty if nothing is said.
    pub reason: &'static str,
    pub what: String,
}

/// Encodes a table, a row group at a time; `None` if there are no rows.
fn encode<T>(
    table: FleetTable,
    all: &[T],
    columns: impl Fn(&[T]) -> Vec<ColumnValues>,
) -> Result<Option<EncodedPart>, FleetError> {
    if all.is_empty() {
        return Ok(None);
    }
    let wrong =
        |error: std::io::Error| FleetError::Encode { name: table.name().to_owned(), what: error.to_string() };
    let mut writer = FlatWriter::start(table.columns(), &[]).map_err(wrong)?;
    for rows in all.chunks(GROUP_ROWS) {
        writer.group(&columns(rows)).map_err(wrong)?;
    }
    let bytes = writer.finish(&[("precise.fleet", "1")]).map_err(wrong)?;
    Ok(Some(EncodedPart { table, tier: None, bytes, rows: all.len() as u64, services: None }))
}

/// Encodes a table that is sorted by service, with the names of the first and the last one.
/// `service` returns the number of a row's service.
fn by_service<T>(
    table: FleetTable,
    fold: &Fold,
    all: &[T],
    service: impl Fn(&T) -> u32,
    columns: impl Fn(&[T]) -> Vec<ColumnValues>,
) -> Result<Option<EncodedPart>, FleetError> {
    let name = |row: &T| fold.services.items.get(service(row) as usize).cloned();
    let services = all.first().and_then(name).zip(all.last().and_then(name));
    Ok(encode(table, all, columns)?.map(|encoded| EncodedPart { services, ..encoded }))
}

/// Makes columns of some rows.
struct Columns<'a, T>(&'a [T]);

impl<T> Columns<'_, T> {
    fn large(&self, value: impl Fn(&T) -> Option<u64>) -> ColumnValues {
        // Counts have 63 bits; no fleet has more samples, but a damaged capture may claim them.
        let most = i64::MAX.cast_unsigned();
        ColumnValues::Large(self.0.iter().map(|row| value(row).map(|value| value.min(most))).collect())
    }

    fn small(&self, value: impl Fn(&T) -> Option<u32>) -> ColumnValues {
        ColumnValues::Small(self.0.iter().map(value).collect())
    }

    fn hour(&self, hour: FleetHour) -> ColumnValues {
        let micros = (hour.start_ns() / 1000).cast_signed();
        ColumnValues::Times(vec![Some(micros); self.0.len()])
    }

    /// A column of texts by their numbers; an empty text is null.
    fn texts<'t>(
        &self,
        texts: impl Iterator<Item = &'t String>,
        number: impl Fn(&T) -> u32,
        nullable: bool,
    ) -> ColumnValues {
        let distinct: Vec<String> = texts.cloned().collect();
        let there: Vec<bool> = distinct.iter().map(|text| !nullable || !text.is_empty()).collect();
        let key = |row: &T| Some(number(row)).filter(|number| there.get(*number as usize) == Some(&true));
        ColumnValues::Texts(DistinctTexts::new(self.0.iter().map(key).collect(), distinct))
    }

    /// The columns of events by their numbers: event, unit and kind.
    fn events(&self, fold: &Fold, number: impl Fn(&T) -> u32 + Copy) -> [ColumnValues; 3] {
        let part: [fn(&EventKey) -> &String; 3] = [|key| &key.event, |key| &key.unit, |key| &key.kind];
        part.map(|text| self.texts(fold.events.items.iter().map(text), number, false))
    }

    /// A column of texts of which each row has its own; `None` is null.
    fn own(&self, text: impl Fn(&T) -> Option<String>) -> ColumnValues {
        let (mut interner, mut distinct) = (Interner::default(), Vec::new());
        let keys = self.0.iter().map(|row| text(row).map(|text| interner.intern(&mut distinct, text)));
        let keys = keys.collect();
        ColumnValues::Texts(DistinctTexts::new(keys, distinct))
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Encodes the rows of a fold that was finished.
pub(crate) fn rows(
    table: FleetTable,
    fold: &Fold,
    rows: &[(u128, Sums)],
    hour: FleetHour,
) -> Result<Option<EncodedPart>, FleetError> {
    let groups: Vec<u32> =
        fold.nodes.items.iter().map(|key| node_group(&key.cluster, &key.node).into()).collect();
    let columns = |rows: &[(u128, Sums)]| {
        let rows: Vec<(RowKey, Sums)> = rows.iter().map(|(key, sums)| (RowKey::of(*key), *sums)).collect();
        let of = Columns(&rows);
        let [event, unit, kind] = of.events(fold, |r| r.0.event);
        vec![
            of.hour(hour),
            of.texts(fold.nodes.items.iter().map(|key| &key.cluster), |r| r.0.node, true),
            of.texts(fold.services.items.iter(), |r| r.0.service, true),
            event,
            unit,
            kind,
            of.large(|r| Some(fold.functions.id(r.0.function))),
            of.texts(fold.levels.items.iter(), |r| r.0.level, true),
            of.texts(fold.nodes.items.iter().map(|key| &key.node), |r| r.0.node, true),
            of.small(|r| groups.get(r.0.node as usize).copied()),
            of.large(|r| Some(r.1.count)),
            of.large(|r| Some(r.1.weight)),
            of.large(|r| r.0.timed.then_some(r.1.latency_sum)),
            of.small(|r| r.0.timed.then_some(r.1.latency_max)),
        ]
    };
    by_service(table, fold, rows, |row| RowKey::of(row.0).service, columns)
}

/// The key of rows by group of nodes: that of the rows without the node, then cluster, group, and
/// whether the samples have a latency.
type GroupedKey = (u128, u32, u8, bool);

/// Encodes the rows of a fold that was finished, by group of nodes instead of node.
pub(crate) fn grouped(
    fold: &Fold,
    rows: &[(u128, Sums)],
    hour: FleetHour,
) -> Result<Option<EncodedPart>, FleetError> {
    let mut clusters: Vec<String> = fold.nodes.items.iter().map(|key| key.cluster.clone()).collect();
    clusters.sort_unstable();
    clusters.dedup();
    let place = |key: &NodeKey| {
        let cluster = clusters.binary_search(&key.cluster).unwrap_or(0) as u32;
        (cluster, node_group(&key.cluster, &key.node))
    };
    let places: Vec<(u32, u8)> = fold.nodes.items.iter().map(place).collect();
    let mut all: Vec<(GroupedKey, Sums)> = Vec::new();
    let mut run: Vec<(GroupedKey, Sums)> = Vec::new();
    for nodes in rows.chunk_by(|(a, _), (b, _)| RowKey::without_node(*a) == RowKey::without_node(*b)) {
        run.extend(nodes.iter().map(|(key, sums)| {
            let of = RowKey::of(*key);
            let (cluster, group) = places.get(of.node as usize).copied().unwrap_or_default();
            ((RowKey::without_node(*key), cluster, group, of.timed), *sums)
        }));
        run.sort_unstable_by_key(|(key, _)| *key);
        sum_equal(&mut run);
        all.append(&mut run);
    }
    let columns = |rows: &[(GroupedKey, Sums)]| {
        let rows: Vec<(RowKey, GroupedKey, Sums)> =
            rows.iter().map(|(key, sums)| (RowKey::of_without_node(key.0), *key, *sums)).collect();
        let of = Columns(&rows);
        let [event, unit, kind] = of.events(fold, |r| r.0.event);
        vec![
            of.hour(hour),
            of.texts(clusters.iter(), |r| r.1.1, true),
            of.texts(fold.services.items.iter(), |r| r.0.service, true),
            event,
            unit,
            kind,
            of.large(|r| Some(fold.functions.id(r.0.function))),
            of.texts(fold.levels.items.iter(), |r| r.0.level, true),
            of.small(|r| Some(r.1.2.into())),
            of.large(|r| Some(r.2.count)),
            of.large(|r| Some(r.2.weight)),
            of.large(|r| r.1.3.then_some(r.2.latency_sum)),
            of.small(|r| r.1.3.then_some(r.2.latency_max)),
        ]
    };
    by_service(FleetTable::DayGroup, fold, &all, |row| RowKey::of_without_node(row.0.0).service, columns)
}

/// Encodes the samples by instruction of a fold that was finished.
pub(crate) fn instructions(
    table: FleetTable,
    fold: &Fold,
    hour: FleetHour,
) -> Result<Option<EncodedPart>, FleetError> {
    let ops = InstructionOp::ALL.map(|op| op.word().to_owned());
    let columns = |rows: &[(u128, Sums)]| {
        let place = |number: u32| fold.places.items.get(number as usize).copied().unwrap_or_default();
        let row = |(key, sums): &(u128, Sums)| {
            let key = InstructionKey::of(*key);
            (key, place(key.instruction), *sums)
        };
        let rows: Vec<(InstructionKey, SampledInstruction, Sums)> = rows.iter().map(row).collect();
        let of = Columns(&rows);
        let [event, unit, kind] = of.events(fold, |r| r.0.event);
        vec![
            of.hour(hour),
            of.texts(fold.services.items.iter(), |r| r.0.service, true),
            event,
            unit,
            kind,
            of.large(|r| Some(r.1.function)),
            of.large(|r| r.1.place.map(|(start, _)| start)),
            of.large(|r| r.1.place.map(|(_, offset)| offset)),
            of.texts(ops.iter(), |r| r.1.op as u32, true),
            of.small(|r| Some(r.0.group.into())),
            of.large(|r| Some(r.2.count)),
            of.large(|r| Some(r.2.weight)),
            of.large(|r| r.0.timed.then_some(r.2.latency_sum)),
            of.small(|r| r.0.timed.then_some(r.2.latency_max)),
        ]
    };
    by_service(table, fold, &fold.instructions, |row| InstructionKey::of(row.0).service, columns)
}

/// Encodes the latencies of a fold that was finished.
pub(crate) fn latencies(
    table: FleetTable,
    fold: &Fold,
    hour: FleetHour,
) -> Result<Option<EncodedPart>, FleetError> {
    let columns = |rows: &[(u128, [u64; 2])]| {
        let rows: Vec<(LatencyKey, [u64; 2])> =
            rows.iter().map(|(key, sums)| (LatencyKey::of(*key), *sums)).collect();
        let of = Columns(&rows);
        let [event, unit, kind] = of.events(fold, |r| r.0.event);
        let low = |bucket: u8| u32::try_from(latency::lower(bucket.into())).unwrap_or(u32::MAX);
        vec![
            of.hour(hour),
            of.texts(fold.clusters.items.iter(), |r| r.0.cluster, true),
            of.texts(fold.services.items.iter(), |r| r.0.service, true),
            event,
            unit,
            kind,
            of.large(|r| Some(fold.functions.id(r.0.function))),
            of.texts(fold.levels.items.iter(), |r| r.0.level, true),
            of.small(|r| Some(r.0.group.into())),
            of.small(|r| Some(r.0.bucket.into())),
            of.small(|r| Some(low(r.0.bucket))),
            of.large(|r| Some(r.1[0])),
            of.large(|r| Some(r.1[1])),
        ]
    };
    by_service(table, fold, &fold.latencies, |row| LatencyKey::of(row.0).service, columns)
}

/// Encodes the ledger of a fold that was finished.
pub(crate) fn ledger(
    table: FleetTable,
    fold: &Fold,
    hour: FleetHour,
) -> Result<Option<EncodedPart>, FleetError> {
    let all: Vec<((u32, u32), &LedgerSums)> = fold.ledger.iter().map(|(key, sums)| (*key, sums)).collect();
    let nodes = &fold.nodes.items;
    let columns = |rows: &[((u32, u32), &LedgerSums)]| {
        let of = Columns(rows);
        let [event, unit, kind] = of.events(fold, |r| r.0.1);
        let group =
            |node: u32| nodes.get(node as usize).map(|key| node_group(&key.cluster, &key.node).into());
        vec![
            of.hour(hour),
            of.texts(nodes.iter().map(|key| &key.cluster), |r| r.0.0, true),
            of.texts(nodes.iter().map(|key| &key.node), |r| r.0.0, true),
            of.small(|r| group(r.0.0)),
            event,
            unit,
            kind,
            of.large(|r| Some(r.1.captures)),
            of.large(|r| Some(r.1.sampled_ns)),
            of.small(|r| Some(r.1.cpus)),
            of.large(|r| r.1.expected),
            of.large(|r| Some(r.1.arrived)),
            of.large(|r| Some(r.1.kept)),
            of.large(|r| Some(r.1.rejected)),
            of.large(|r| Some(r.1.lost)),
            of.large(|r| Some(r.1.missed)),
            of.large(|r| Some(r.1.discarded)),
            of.large(|r| Some(r.1.samples)),
            of.own(|r| r.1.losses_json()),
            ColumnValues::Flags(rows.iter().map(|r| Some(r.1.precise)).collect()),
            of.own(|r| r.1.finding.clone()),
        ]
    };
    encode(table, &all, columns)
}

/// Encodes symbols that are sorted by id.
pub(crate) fn symbols(all: &[(u64, SymbolNames<'_>)]) -> Result<Option<EncodedPart>, FleetError> {
    let columns = |rows: &[(u64, SymbolNames<'_>)]| {
        let of = Columns(rows);
        vec![
            of.large(|r| Some(r.0)),
            of.own(|r| some(r.1.name)),
            of.own(|r| some(r.1.module)),
            of.own(|r| some(r.1.build_id)),
            of.own(|r| some(r.1.reason)),
        ]
    };
    encode(FleetTable::Symbols, all, columns)
}

/// Encodes the captures that were read.
pub(crate) fn inputs(all: &[InputLine]) -> Result<Option<EncodedPart>, FleetError> {
    let columns = |rows: &[InputLine]| {
        let of = Columns(rows);
        vec![
            of.own(|r| Some(r.name.clone())),
            of.large(|r| Some(r.bytes)),
            of.own(|r| some(&r.hash)),
            of.large(|r| Some(r.samples)),
            of.own(|r| some(r.reason)),
            of.own(|r| some(&r.what)),
        ]
    };
    encode(FleetTable::Inputs, all, columns)
}

/// Thins the rows of a tier for the next one. Which samples stay follows from the row alone, so
/// that every machine keeps the same.
pub(crate) fn thin(fold: &Fold, rows: &[(u128, Sums)], hour: FleetHour, tier: u8) -> Vec<(u128, Sums)> {
    let hashes = |texts: Vec<u64>| move |number: u32| texts.get(number as usize).copied().unwrap_or(0);
    let service = hashes(fold.services.items.iter().map(|text| hash63(&[text])).collect());
    let of_event = |key: &EventKey| hash63(&[&key.event, &key.unit, &key.kind]);
    let event = hashes(fold.events.items.iter().map(of_event).collect());
    let level = hashes(fold.levels.items.iter().map(|text| hash63(&[text])).collect());
    let node = hashes(fold.nodes.items.iter().map(|key| hash63(&[&key.cluster, &key.node])).collect());
    let thinned = |(key, sums): &(u128, Sums)| {
        let of = RowKey::of(*key);
        let parts = [
            service(of.service),
            event(of.event),
            fold.functions.id(of.function),
            level(of.level),
            node(of.node),
            u64::from(hour.0) << 9 | u64::from(tier) << 1 | u64::from(of.timed),
        ];
        let seed = parts.iter().fold(0, |seed, part| Random(seed ^ part).next());
        let kept = Random(seed).thinned(sums.count, THINNER);
        let share = |number: u64, scale: u64| {
            let (number, count) = (u128::from(number) * u128::from(scale), u128::from(sums.count.max(1)));
            u64::try_from((number * u128::from(kept) + count / 2) / count).unwrap_or(u64::MAX)
        };
        let sums = Sums {
            count: kept,
            weight: share(sums.weight, THINNER),
            latency_sum: share(sums.latency_sum, 1),
            latency_max: sums.latency_max,
        };
        (kept > 0).then_some((*key, sums))
    };
    rows.iter().filter_map(thinned).collect()
}
