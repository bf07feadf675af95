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

use super::file::{COLUMNS, ROW_GROUP_ROWS, schema};
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
    let columns = COLUMNS.iter().map(|c| column(capture, &joined, c.name)).collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(schema(), columns).map_err(|e| e.to_string())
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

fn column(capture: &Capture, rows: &[Joined], name: &str) -> Result<ArrayRef, String> {
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
    Ok(match name {
        "epoch" => u32s(rows, |r| r.row.epoch),
        "epoch_start" => time(&|e| e.start_ns),
        "epoch_end" => time(&|e| e.end_ns),
        "event_id" => Arc::new(UInt16Array::from_iter_values(rows.iter().map(|r| r.row.event))),
        "event" => text(rows.iter().map(|r| Some(r.row.event)), |id| {
            Cow::Borrowed(capture.meta.events.get(usize::from(id)).map_or("", |e| e.name.as_str()))
        }),
        "cpu" => Arc::new(rows.iter().map(|r| r.row.cpu).collect::<UInt16Array>()),
        "cgroup_id" => u64s(rows, |r| r.row.cgroup_id),
        "cgroup" => name_column(&|r| Some(r.row.cgroup)),
        "cgroup_reason" => reason_column(&|r| Some(r.row.cgroup)),
        "pid" => u32s(rows, |r| r.row.pid),
        "tid" => u32s(rows, |r| r.row.tid),
        "process" => name_column(&|r| Some(r.row.process)),
        "process_reason" => reason_column(&|r| Some(r.row.process)),
        "kernel" => bools(rows, |r| Some(r.row.kernel)),
        "ip" => some_u64s(rows, |r| r.code.map(|c| c.runtime_address)),
        "module" => name_column(&|r| r.code.map(|c| c.module)),
        "module_reason" => reason_column(&|r| r.code.map(|c| c.module)),
        "build_id" => {
            let build_id = |r: &Joined| r.code.map(|c| c.build_id).filter(|id| *id != NameId::default());
            text(rows.iter().map(build_id), |id| Cow::Borrowed(names.get(id)))
        }
        "file_offset" => some_u64s(rows, |r| r.code.map(|c| c.file_offset)),
        "function" => name_column(&|r| r.code.map(|c| c.function)),
        "function_offset" => some_u64s(rows, |r| r.code.map(|c| c.function_offset)),
        "function_reason" => reason_column(&|r| r.code.map(|c| c.function)),
        "source" => name_column(&|r| r.code.map(|c| c.source)),
        "source_reason" => reason_column(&|r| r.code.map(|c| c.source)),
        "line" => some_u32s(rows, |r| r.code.map(|c| c.line)),
        "inlined" => text(rows.iter().map(inlined_location), |id| Cow::Owned(inlined(capture, id))),
        "stack" => text(rows.iter().map(|r| r.stack.map(|(id, _)| id)), |id| {
            let callers = capture.stacks.get(id as usize).map_or(&[][..], |stack| &stack.callers);
            Cow::Owned(stack_json::encode(capture, callers))
        }),
        "stack_reason" => reason_column(&|r| match r.row.stack {
            Chain::Known(_) => None,
            Chain::Unknown(reason) => Some(Name::Unknown(reason)),
        }),
        "stack_elsewhere" => bools(rows, |r| r.stack.map(|(_, stack)| stack.elsewhere)),
        "stack_cut" => bools(rows, |r| r.stack.map(|(_, stack)| stack.cut)),
        "address" => some_u64s(rows, |r| r.data.map(|d| d.runtime_address)),
        "region" => name_column(&|r| r.data.map(|d| d.region)),
        "region_reason" => reason_column(&|r| r.data.map(|d| d.region)),
        "region_offset" => some_u64s(rows, |r| r.data.map(|d| d.file_offset)),
        "variable" => name_column(&|r| r.data.map(|d| d.variable)),
        "variable_offset" => some_u64s(rows, |r| r.data.map(|d| d.variable_offset)),
        "variable_reason" => reason_column(&|r| r.data.map(|d| d.variable)),
        "op" => said(&words::op),
        "level" => said(&|s| (s.level != Level::Na).then(|| s.level.name())),
        "level_miss" => bools(rows, |r| r.source.map(|s| s.miss)),
        "snoop" => said(&|s| words::snoop(s).map(Snoop::name)),
        "tlb" => said(&|s| words::tlb(s).map(Tlb::name)),
        "locked" => bools(rows, |r| r.source.and_then(|s| s.locked)),
        "remote" => bools(rows, |r| r.source.map(|s| s.remote)),
        "hops" => Arc::new(rows.iter().map(|r| r.source.map(|s| s.hops)).collect::<UInt8Array>()),
        "data_src" => u64s(rows, |r| r.row.data_src),
        "outcome" => text(rows.iter().map(|r| r.row.outcome), |outcome| Cow::Owned(outcome.words())),
        "op_outcome" => some_u64s(rows, |r| match r.row.outcome {
            Some(Outcome::Op(bits)) => Some(bits),
            _ => None,
        }),
        "fetch_outcome" => some_u64s(rows, |r| match r.row.outcome {
            Some(Outcome::Fetch(bits)) => Some(bits),
            _ => None,
        }),
        "latency_bucket" => Arc::new(rows.iter().map(|r| r.row.latency_bucket).collect::<UInt8Array>()),
        "latency_low" => some_u32s(rows, |r| bucket(r).map(|b| bounded(latency::lower(b)))),
        "latency_high" => some_u32s(rows, |r| bucket(r).map(|b| bounded(latency::lower(b + 1) - 1))),
        "exact" => bools(rows, |r| Some(r.row.exact)),
        "access_bytes" => Arc::new(rows.iter().map(|r| r.row.width).collect::<UInt16Array>()),
        "page_size" => some_u64s(rows, |r| r.row.page_size),
        "count" => u64s(rows, |r| r.row.measures.count),
        "period_sum" => u64s(rows, |r| r.row.measures.period_sum),
        "latency_sum" => u64s(rows, |r| r.row.measures.latency_sum),
        "latency_max" => u32s(rows, |r| r.row.measures.latency_max),
        other => return Err(format!("the column {other} has no values")),
    })
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
