//! Rows of the model to columns of the file.

use std::borrow::Cow;
use std::hash::Hash;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use precise_common::data_src::{DataSource, Level, Snoop, Tlb};
use precise_common::latency;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::file::{Column, ROW_GROUP_ROWS, schema};
use super::stack_json;
use precise_model::stack::{Chain, Stack, StackId};
use precise_model::words;
use precise_model::{Capture, CodeLocation, DataLocation, Epoch, LocationId, Name, NameId, Outcome, Row};

/// A row with everything that it refers to.
struct Joined<'a> {
    row: &'a Row,
    epoch: Epoch,
    code: Option<&'a CodeLocation>,
    data: Option<&'a DataLocation>,
    source: Option<DataSource>,
    stack: Option<(StackId, &'a Stack)>,
}

/// An inlined-into frame as the file keeps it.
#[derive(Serialize, Deserialize)]
pub(super) struct JsonFrame<'a> {
    pub function: Cow<'a, str>,
    pub source: Cow<'a, str>,
    pub line: u32,
}

/// All rows as columns, some thousands at a time, or what they refer to that `capture` does not have.
pub fn batches(capture: &Capture) -> impl Iterator<Item = Result<RecordBatch, String>> {
    capture.rows.chunks(ROW_GROUP_ROWS).map(|rows| batch(capture, rows))
}

/// `rows` as columns, or what they refer to that `capture` does not have.
pub(super) fn batch(capture: &Capture, rows: &[Row]) -> Result<RecordBatch, String> {
    let joined = rows.iter().map(|row| join(capture, row)).collect::<Result<Vec<_>, _>>()?;
    let columns = Column::ALL.map(|which| column(capture, &joined, which));
    RecordBatch::try_new(schema(), columns.to_vec()).map_err(|e| e.to_string())
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

fn column(capture: &Capture, rows: &[Joined], which: Column) -> ArrayRef {
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
    let time = |get: &dyn Fn(&Epoch) -> u64| -> ArrayRef {
        let start = capture.meta.start_unix_ns;
        let times =
            rows.iter().map(|r| i64::try_from(start.saturating_add(get(&r.epoch))).unwrap_or(i64::MAX));
        Arc::new(TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC"))
    };
    let bucket = |r: &Joined| r.row.latency_bucket.map(u32::from);
    let bounded = |cycles: u64| u32::try_from(cycles).unwrap_or(u32::MAX);
    match which {
        Column::Epoch => u32s(rows, |r| r.row.epoch),
        Column::EpochStart => time(&|e| e.start_ns),
        Column::EpochEnd => time(&|e| e.end_ns),
        Column::EventId => Arc::new(UInt16Array::from_iter_values(rows.iter().map(|r| r.row.event))),
        Column::Event => text(rows.iter().map(|r| Some(r.row.event)), |id| {
            Cow::Borrowed(capture.meta.events.get(usize::from(id)).map_or("", |e| e.name.as_str()))
        }),
        Column::Cpu => Arc::new(rows.iter().map(|r| r.row.cpu).collect::<UInt16Array>()),
        Column::CgroupId => u64s(rows, |r| r.row.cgroup_id),
        Column::Cgroup => name_column(&|r| Some(r.row.cgroup)),
        Column::CgroupReason => reason_column(&|r| Some(r.row.cgroup)),
        Column::Pid => u32s(rows, |r| r.row.pid),
        Column::Tid => u32s(rows, |r| r.row.tid),
        Column::Process => name_column(&|r| Some(r.row.process)),
        Column::ProcessReason => reason_column(&|r| Some(r.row.process)),
        Column::Kernel => bools(rows, |r| Some(r.row.kernel)),
        Column::Ip => some_u64s(rows, |r| r.code.map(|c| c.runtime_address)),
        Column::Module => name_column(&|r| r.code.map(|c| c.module)),
        Column::ModuleReason => reason_column(&|r| r.code.map(|c| c.module)),
        Column::BuildId => {
            let build_id = |r: &Joined| r.code.map(|c| c.build_id).filter(|id| *id != NameId::default());
            text(rows.iter().map(build_id), |id| Cow::Borrowed(names.get(id)))
        }
        Column::FileOffset => some_u64s(rows, |r| r.code.map(|c| c.file_offset)),
        Column::Function => name_column(&|r| r.code.map(|c| c.function)),
        Column::FunctionOffset => some_u64s(rows, |r| r.code.map(|c| c.function_offset)),
        Column::FunctionReason => reason_column(&|r| r.code.map(|c| c.function)),
        Column::Source => name_column(&|r| r.code.map(|c| c.source)),
        Column::SourceReason => reason_column(&|r| r.code.map(|c| c.source)),
        Column::Line => some_u32s(rows, |r| r.code.map(|c| c.line)),
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
        Column::Address => some_u64s(rows, |r| r.data.map(|d| d.runtime_address)),
        Column::Region => name_column(&|r| r.data.map(|d| d.region)),
        Column::RegionReason => reason_column(&|r| r.data.map(|d| d.region)),
        Column::RegionOffset => some_u64s(rows, |r| r.data.map(|d| d.file_offset)),
        Column::Variable => name_column(&|r| r.data.map(|d| d.variable)),
        Column::VariableOffset => some_u64s(rows, |r| r.data.map(|d| d.variable_offset)),
        Column::VariableReason => reason_column(&|r| r.data.map(|d| d.variable)),
        Column::Op => said(&words::op),
        Column::Level => said(&|s| (s.level != Level::Na).then(|| s.level.name())),
        Column::LevelMiss => bools(rows, |r| r.source.map(|s| s.miss)),
        Column::Snoop => said(&|s| words::snoop(s).map(Snoop::name)),
        Column::Tlb => said(&|s| words::tlb(s).map(Tlb::name)),
        Column::Locked => bools(rows, |r| r.source.and_then(|s| s.locked)),
        Column::Remote => bools(rows, |r| r.source.map(|s| s.remote)),
        Column::Hops => Arc::new(rows.iter().map(|r| r.source.map(|s| s.hops)).collect::<UInt8Array>()),
        Column::DataSrc => u64s(rows, |r| r.row.data_src),
        Column::Outcome => text(rows.iter().map(|r| r.row.outcome), |outcome| Cow::Owned(outcome.words())),
        Column::OpOutcome => some_u64s(rows, |r| match r.row.outcome {
            Some(Outcome::Op(bits)) => Some(bits),
            _ => None,
        }),
        Column::FetchOutcome => some_u64s(rows, |r| match r.row.outcome {
            Some(Outcome::Fetch(bits)) => Some(bits),
            _ => None,
        }),
        Column::LatencyBucket => Arc::new(rows.iter().map(|r| r.row.latency_bucket).collect::<UInt8Array>()),
        Column::LatencyLow => some_u32s(rows, |r| bucket(r).map(|b| bounded(latency::lower(b)))),
        Column::LatencyHigh => some_u32s(rows, |r| bucket(r).map(|b| bounded(latency::lower(b + 1) - 1))),
        Column::Exact => bools(rows, |r| Some(r.row.exact)),
        Column::AccessBytes => Arc::new(rows.iter().map(|r| r.row.width).collect::<UInt16Array>()),
        Column::PageSize => some_u64s(rows, |r| r.row.page_size),
        Column::Count => u64s(rows, |r| r.row.measures.count),
        Column::PeriodSum => u64s(rows, |r| r.row.measures.period_sum),
        Column::LatencySum => u64s(rows, |r| r.row.measures.latency_sum),
        Column::LatencyMax => u32s(rows, |r| r.row.measures.latency_max),
    }
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

/// The row's code location, where that is inlined into something.
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

/// A dictionary column: each distinct key's text is made once.
fn text<'a, K: Copy + Eq + Hash>(
    keys: impl Iterator<Item = Option<K>>,
    text: impl Fn(K) -> Cow<'a, str>,
) -> ArrayRef {
    let mut index = FxHashMap::default();
    let mut distinct = Vec::new();
    let keys = keys.map(|key| {
        key.map(|key| {
            *index.entry(key).or_insert_with(|| {
                distinct.push(key);
                distinct.len() as i32 - 1
            })
        })
    });
    let keys = keys.collect::<Int32Array>();
    let values = StringArray::from_iter_values(distinct.into_iter().map(text));
    Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(values)))
}

fn u32s(rows: &[Joined], get: impl Fn(&Joined) -> u32) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(rows.iter().map(get)))
}

fn some_u32s(rows: &[Joined], get: impl Fn(&Joined) -> Option<u32>) -> ArrayRef {
    Arc::new(rows.iter().map(get).collect::<UInt32Array>())
}

fn u64s(rows: &[Joined], get: impl Fn(&Joined) -> u64) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(rows.iter().map(get)))
}

fn some_u64s(rows: &[Joined], get: impl Fn(&Joined) -> Option<u64>) -> ArrayRef {
    Arc::new(rows.iter().map(get).collect::<UInt64Array>())
}

fn bools(rows: &[Joined], get: impl Fn(&Joined) -> Option<bool>) -> ArrayRef {
    Arc::new(rows.iter().map(get).collect::<BooleanArray>())
}
