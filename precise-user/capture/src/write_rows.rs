//! Converts rows of the model to columns of the file.

use std::borrow::Cow;

use precise_common::data_src::{DataSource, MemoryLevel, Snoop, Tlb};
use precise_common::latency;

use super::batch::{Batch, ColumnValues, DistinctTexts};
use super::file::{Column, ROW_GROUP_ROWS};
use super::flat::ColumnType;
use super::stack_json::{self, JsonFrame};
use precise_model::words;
use precise_model::{
    Capture, Chain, ChainEnd, CodeLocation, DataLocation, Dimension, Epoch, LocationId, Name, NameId,
    Outcome, Owner, Row, Stack, StackId,
};
use rustc_hash::FxHashMap;

/// A row with everything that it refers to.
struct Joined<'a> {
    row: &'a Row,
    epoch: Epoch,
    code: Option<&'a CodeLocation>,
    data: Option<&'a DataLocation>,
    source: Option<DataSource>,
    stack: Option<(StackId, &'a Stack)>,
}

/// Returns all rows as batches of columns. The error names what a row refers to that `capture` does
/// not contain.
pub fn batches(capture: &Capture) -> impl Iterator<Item = Result<Batch, String>> {
    capture.rows.chunks(ROW_GROUP_ROWS).map(|rows| batch(capture, rows))
}

/// Returns `rows` as columns. The error names what a row refers to that `capture` does not contain.
pub(super) fn batch(capture: &Capture, rows: &[Row]) -> Result<Batch, String> {
    let joined = rows.iter().map(|row| join(capture, row)).collect::<Result<Vec<_>, _>>()?;
    let columns = Column::ALL.iter().map(|which| signed(*which, column(capture, &joined, *which))).collect();
    Ok(Batch { rows: rows.len(), columns })
}

fn join<'a>(capture: &'a Capture, row: &'a Row) -> Result<Joined<'a>, String> {
    let meta = &capture.meta;
    let epoch =
        *meta.epochs.get(row.epoch as usize).ok_or_else(|| missing("epoch", row.epoch, meta.epochs.len()))?;
    if usize::from(row.event) >= meta.events.len() {
        return Err(missing("event", row.event.into(), meta.events.len()));
    }
    let code = match row.code {
        Some(id) => Some(
            capture.code.get(id as usize).ok_or_else(|| missing("code location", id, capture.code.len()))?,
        ),
        None => None,
    };
    let data = match row.data {
        Some(id) => Some(
            capture.data.get(id as usize).ok_or_else(|| missing("data location", id, capture.data.len()))?,
        ),
        None => None,
    };
    let stack = match row.stack {
        Chain::Known(id) => {
            let known = capture.stacks.len();
            Some((id, capture.stacks.get(id as usize).ok_or_else(|| missing("call chain", id, known))?))
        }
        Chain::Unknown(_) => None,
    };
    if let Some(bucket) = row.latency_bucket
        && u32::from(bucket) >= latency::BUCKETS
    {
        return Err(missing("latency bucket", bucket.into(), latency::BUCKETS as usize));
    }
    let source = (row.data_src != 0).then(|| row.data_source());
    Ok(Joined { row, epoch, code, data, source, stack })
}

fn missing(what: &str, index: u32, known: usize) -> String {
    format!("a row refers to {what} {index}, but there are only {known}")
}

fn column(capture: &Capture, rows: &[Joined], which: Column) -> ColumnValues {
    let names = &capture.names;
    let name_column = |get: &dyn Fn(&Joined) -> Option<Name>| {
        text(rows.iter().map(|r| get(r).and_then(known)), |id: NameId| Cow::Borrowed(names.get(id)))
    };
    let reason_column = |get: &dyn Fn(&Joined) -> Option<Name>| {
        text(rows.iter().map(|r| get(r).and_then(reason)), Cow::Borrowed)
    };
    let said = |get: &dyn Fn(DataSource) -> Option<&'static str>| {
        text(rows.iter().map(|r| r.source.and_then(get)), Cow::Borrowed)
    };
    let time = |get: &dyn Fn(&Epoch) -> u64| {
        let start = capture.meta.start_unix_ns;
        let unix_us = |r: &Joined| (start.saturating_add(get(&r.epoch)) / 1000).cast_signed();
        ColumnValues::Times(rows.iter().map(|r| Some(unix_us(r))).collect())
    };
    let owned = |get: &dyn Fn(&'_ Owner) -> Option<&'_ str>| {
        let path = |id: NameId| capture.meta.owner(names.get(id)).and_then(get);
        // The owner is looked up once for each cgroup of the batch.
        let mut found: FxHashMap<NameId, bool> = FxHashMap::default();
        let cgroup = |r: &Joined| known(r.row.cgroup);
        let with_owner: Vec<Option<NameId>> = rows
            .iter()
            .map(|r| cgroup(r).filter(|id| *found.entry(*id).or_insert_with(|| path(*id).is_some())))
            .collect();
        text(with_owner.into_iter(), |id| Cow::Borrowed(path(id).unwrap_or_default()))
    };
    let recorded = |dimensions: [Dimension; 2]| {
        capture.meta.dimensions.iter().any(|dimension| dimensions.contains(dimension))
    };
    // The idle task has the number 0, and a run that does not record the task has 0 in all rows.
    let task = |number: u32, recorded: bool| (recorded || number != 0).then_some(number);
    let bucket = |r: &Joined| r.row.latency_bucket.map(u32::from);
    let bounded = |cycles: u64| u32::try_from(cycles).unwrap_or(u32::MAX);
    match which {
        Column::Epoch => u32s(rows, |r| r.row.epoch),
        Column::EpochStart => time(&|e| e.start_ns),
        Column::EpochEnd => time(&|e| e.end_ns),
        Column::Host => {
            let host = capture.meta.machine.host.as_str();
            text(rows.iter().map(|_| (!host.is_empty()).then_some(())), |()| Cow::Borrowed(host))
        }
        Column::EventId => u32s(rows, |r| r.row.event.into()),
        Column::Event => text(rows.iter().map(|r| Some(r.row.event)), |id| {
            Cow::Borrowed(capture.meta.events.get(usize::from(id)).map_or("", |e| e.name.as_str()))
        }),
        Column::Cpu => some_u32s(rows, |r| r.row.cpu.map(u32::from)),
        Column::CgroupId => some_u64s(rows, |r| not_zero(r.row.cgroup_id)),
        Column::Cgroup => name_column(&|r| Some(r.row.cgroup)),
        Column::CgroupReason => reason_column(&|r| Some(r.row.cgroup)),
        Column::Owner => owned(&|owner| Some(&owner.name)),
        Column::Unit => owned(&|owner| owner.unit.as_deref()),
        Column::Runtime => owned(&|owner| owner.runtime.as_deref()),
        Column::Container => owned(&|owner| owner.container.as_deref().or(owner.container_id.as_deref())),
        Column::ContainerId => owned(&|owner| owner.container_id.as_deref()),
        Column::Pod => owned(&|owner| owner.pod.as_deref().or(owner.pod_uid.as_deref())),
        Column::PodUid => owned(&|owner| owner.pod_uid.as_deref()),
        Column::Namespace => owned(&|owner| owner.namespace.as_deref()),
        Column::Pid => {
            let recorded = recorded([Dimension::Process, Dimension::Thread]);
            some_u32s(rows, |r| task(r.row.pid, recorded))
        }
        Column::Tid => {
            let recorded = recorded([Dimension::Thread, Dimension::Thread]);
            some_u32s(rows, |r| task(r.row.tid, recorded))
        }
        Column::Process => name_column(&|r| Some(r.row.process)),
        Column::ProcessReason => reason_column(&|r| Some(r.row.process)),
        Column::Thread => name_column(&|r| Some(r.row.thread)),
        Column::ThreadReason => reason_column(&|r| Some(r.row.thread)),
        // Without an instruction address the mode is not known; such rows say `true` in the model.
        Column::Kernel => bools(rows, |r| (r.code.is_some() || !r.row.kernel).then_some(r.row.kernel)),
        Column::Ip => some_u64s(rows, |r| r.code.and_then(|c| not_zero(c.runtime_address))),
        Column::Module => name_column(&|r| r.code.map(|c| c.module)),
        Column::ModuleReason => reason_column(&|r| r.code.map(|c| c.module)),
        Column::BuildId => {
            let build_id = |r: &Joined| r.code.map(|c| c.build_id).filter(|id| *id != NameId::default());
            text(rows.iter().map(build_id), |id| Cow::Borrowed(names.get(id)))
        }
        // Offset 0 of a file is its header, which is not code.
        Column::FileOffset => some_u64s(rows, |r| r.code.and_then(|c| not_zero(c.file_offset))),
        Column::Function => name_column(&|r| r.code.map(|c| c.function)),
        Column::FunctionOffset => {
            some_u64s(rows, |r| r.code.and_then(|c| offset(c.function, c.function_offset)))
        }
        Column::FunctionReason => reason_column(&|r| r.code.map(|c| c.function)),
        Column::SourceFile | Column::Source => name_column(&|r| r.code.map(|c| c.source)),
        Column::SourceReason => reason_column(&|r| r.code.map(|c| c.source)),
        Column::Line => some_u32s(rows, |r| r.code.map(|c| c.line).filter(|line| *line != 0)),
        Column::Inlined => text(rows.iter().map(inlined_location), |id| Cow::Owned(inlined(capture, id))),
        Column::Stack => text(rows.iter().map(|r| r.stack.map(|(id, _)| id)), |id| {
            let callers = capture.stacks.get(id as usize).map_or(&[][..], |stack| &stack.callers);
            Cow::Owned(stack_json::encode(capture, callers))
        }),
        Column::StackReason => reason_column(&|r| match r.row.stack {
            Chain::Known(_) => None,
            Chain::Unknown(reason) => Some(Name::Unknown(reason)),
        }),
        Column::StackElsewhere => bools(rows, |r| r.stack.map(|(_, stack)| stack.elsewhere)),
        Column::StackCut => bools(rows, |r| r.stack.map(|(_, stack)| stack.cut)),
        Column::StackEnd => {
            let end = |r: &Joined<'_>| r.stack.and_then(|(_, stack)| stack.end);
            text(rows.iter().map(end), |end: ChainEnd| Cow::Borrowed(end.as_str()))
        }
        Column::Address => some_u64s(rows, |r| r.data.map(|d| d.runtime_address)),
        Column::Region => name_column(&|r| r.data.map(|d| d.region)),
        Column::RegionReason => reason_column(&|r| r.data.map(|d| d.region)),
        Column::RegionOffset => some_u64s(rows, |r| {
            let is_file =
                |d: &DataLocation| known(d.region).is_some_and(|id| !names.get(id).starts_with('['));
            r.data.and_then(|d| if is_file(d) { Some(d.file_offset) } else { not_zero(d.file_offset) })
        }),
        Column::Variable => name_column(&|r| r.data.map(|d| d.variable)),
        Column::VariableOffset => {
            some_u64s(rows, |r| r.data.and_then(|d| offset(d.variable, d.variable_offset)))
        }
        Column::VariableReason => reason_column(&|r| r.data.map(|d| d.variable)),
        Column::Op => said(&words::op),
        Column::Level => said(&|s| (s.level != MemoryLevel::Na).then(|| s.level.name())),
        Column::LevelMiss => bools(rows, |r| r.source.map(|s| s.miss)),
        Column::Snoop => said(&|s| words::snoop(s).map(Snoop::name)),
        Column::Tlb => said(&|s| words::tlb(s).map(Tlb::name)),
        Column::Locked => bools(rows, |r| r.source.and_then(|s| s.locked)),
        Column::Remote => bools(rows, |r| r.source.map(|s| s.remote)),
        Column::Hops => some_u32s(rows, |r| r.source.map(|s| s.hops.into())),
        Column::DataSrc => some_u64s(rows, |r| not_zero(r.row.data_src)),
        Column::Outcome => text(rows.iter().map(|r| r.row.outcome), |outcome| Cow::Owned(outcome.words())),
        Column::OpOutcome => some_u64s(rows, |r| match r.row.outcome {
            Some(Outcome::Op(bits)) => Some(bits),
            _ => None,
        }),
        Column::FetchOutcome => some_u64s(rows, |r| match r.row.outcome {
            Some(Outcome::Fetch(bits)) => Some(bits),
            _ => None,
        }),
        Column::LatencyBucket => some_u32s(rows, bucket),
        Column::LatencyLow => some_u32s(rows, |r| bucket(r).map(|b| bounded(latency::lower(b)))),
        Column::LatencyHigh => some_u32s(rows, |r| bucket(r).map(|b| bounded(latency::lower(b + 1) - 1))),
        Column::Exact => bools(rows, |r| Some(r.row.exact)),
        Column::AccessBytes => some_u32s(rows, |r| r.row.width.map(u32::from)),
        Column::PageSize => some_u64s(rows, |r| r.row.page_size),
        Column::Count => u64s(rows, |r| r.row.measures.count),
        Column::PeriodSum => u64s(rows, |r| r.row.measures.period_sum),
        Column::LatencySum => some_u64s(rows, |r| has_latency(r.row).then_some(r.row.measures.latency_sum)),
        Column::LatencyMax => some_u32s(rows, |r| has_latency(r.row).then_some(r.row.measures.latency_max)),
    }
}

/// Limits the values of a column with a sign to what it can have. No machine counts so far, but an
/// imported file may claim it.
fn signed(which: Column, values: ColumnValues) -> ColumnValues {
    match values {
        ColumnValues::Large(values) if which.kind() == ColumnType::I64 => {
            let most = i64::MAX.cast_unsigned();
            ColumnValues::Large(values.into_iter().map(|value| value.map(|value| value.min(most))).collect())
        }
        values => values,
    }
}

fn not_zero(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

/// Returns the distance from the start of what `name` names; `None` if the name is not known.
fn offset(name: Name, distance: u64) -> Option<u64> {
    if known(name).is_some() { Some(distance) } else { not_zero(distance) }
}

/// Returns whether a sample of the row has a latency.
fn has_latency(row: &Row) -> bool {
    row.latency_bucket.is_some() || row.measures.latency_sum > 0 || row.measures.latency_max > 0
}

fn known(name: Name) -> Option<NameId> {
    match name {
        Name::Known(id) => Some(id),
        Name::Unknown(_) => None,
    }
}

fn reason(name: Name) -> Option<&'static str> {
    match name {
        Name::Known(_) => None,
        Name::Unknown(reason) => Some(reason.as_str()),
    }
}

/// Returns the row's code location if it is inlined.
fn inlined_location(row: &Joined) -> Option<LocationId> {
    row.code.filter(|code| !code.inlined_into.is_empty()).and(row.row.code)
}

fn inlined(capture: &Capture, id: LocationId) -> String {
    let frames = capture.code.get(id as usize).map_or(&[][..], |code| &code.inlined_into);
    let get = |id| Cow::Borrowed(capture.names.get(id));
    let frames =
        frames.iter().map(|f| JsonFrame { function: get(f.function), source: get(f.source), line: f.line });
    serde_json::to_string(&frames.collect::<Vec<_>>()).unwrap_or_default()
}

fn text<'a, K: Copy + Eq + std::hash::Hash>(
    references: impl Iterator<Item = Option<K>>,
    text: impl FnMut(K) -> Cow<'a, str>,
) -> ColumnValues {
    ColumnValues::Texts(DistinctTexts::of(references, text))
}

fn u32s(rows: &[Joined], get: impl Fn(&Joined) -> u32) -> ColumnValues {
    ColumnValues::Small(rows.iter().map(|r| Some(get(r))).collect())
}

fn some_u32s(rows: &[Joined], get: impl Fn(&Joined) -> Option<u32>) -> ColumnValues {
    ColumnValues::Small(rows.iter().map(get).collect())
}

fn u64s(rows: &[Joined], get: impl Fn(&Joined) -> u64) -> ColumnValues {
    ColumnValues::Large(rows.iter().map(|r| Some(get(r))).collect())
}

fn some_u64s(rows: &[Joined], get: impl Fn(&Joined) -> Option<u64>) -> ColumnValues {
    ColumnValues::Large(rows.iter().map(get).collect())
}

fn bools(rows: &[Joined], get: impl Fn(&Joined) -> Option<bool>) -> ColumnValues {
    ColumnValues::Flags(rows.iter().map(get).collect())
}
