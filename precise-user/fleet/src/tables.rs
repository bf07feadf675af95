//! The tables of a fleet and their columns.
//!
//! A column is never renamed and never changes its type; new columns come at the end. All tables
//! are flat, so that any SQL engine reads them; see docs/fleet.md.

use precise_capture::{ColumnType, FlatColumn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hour::{FleetDay, FleetHour};

/// The folder below the place that has all tables. Its number is raised when an older reader would
/// misread a newer table.
pub const ROOT: &str = "v1";
/// The number of tiers of a day: the whole one, and those thinned to 1/5, 1/25 and 1/125.
pub const TIERS: u8 = 4;
/// How much thinner each tier is than the one before.
pub const THINNER: u64 = 5;
/// The largest number of rows of a row group.
pub const GROUP_ROWS: usize = 128 << 10;
/// The number of groups of nodes, over which intervals are estimated.
pub const NODE_GROUPS: u64 = 32;

precise_model::catalogue! {
    /// A table of a fleet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum FleetTable: (&'static str, &'static [FlatColumn]) {
        /// Samples of an hour by service, event, function, level and node.
        Hour => ("hour", &ROWS),
        /// Latencies of an hour by service, event, function, level, group of nodes and bucket.
        Latency => ("latency", &HISTOGRAM),
        /// What became of the samples of an hour, by node and event.
        Ledger => ("ledger", &LEDGER),
        /// Names of the functions of an hour, or of a day.
        Symbols => ("symbols", &SYMBOLS),
        /// The captures that were read for an hour.
        Inputs => ("inputs", &INPUTS),
        /// Samples of a day: those of its hours added up, in tiers.
        Day => ("day", &ROWS),
        /// Latencies of a day.
        DayLatency => ("day-latency", &HISTOGRAM),
        /// Samples of a day by group of nodes instead of node: for questions about all nodes.
        DayGroup => ("day-group", &GROUPED),
        /// What became of the samples of a day, by node and event.
        DayLedger => ("day-ledger", &LEDGER),
        /// Samples of an hour by instruction, of events that sample accesses to memory.
        Instruction => ("instruction", &INSTRUCTIONS),
        /// Samples of a day by instruction.
        DayInstruction => ("day-instruction", &INSTRUCTIONS),
    }
}

impl FleetTable {
    /// Returns the name of the table, which is its folder.
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    /// Returns the columns, in the order of the file.
    pub const fn columns(self) -> &'static [FlatColumn] {
        self.entry().1
    }

    /// Returns the name of a part of this table for an hour. `hash` is that of its inputs.
    pub(crate) fn of_hour(self, hour: FleetHour, hash: &str) -> String {
        format!("{ROOT}/{}/{}/part-{hash}.parquet", self.name(), hour.folder())
    }

    /// Returns the name of a part of this table for a day.
    pub(crate) fn of_day(self, day: FleetDay, tier: Option<u8>, hash: &str) -> String {
        let tier = tier.map_or(String::new(), |tier| format!("/tier={tier}"));
        format!("{ROOT}/{}/{}{tier}/part-{hash}.parquet", self.name(), day.folder())
    }
}

/// The hour or the day.
// Not `hour`: engines make a column of that name from the folder `hour=19`.
pub const TIME: FlatColumn =
    FlatColumn::must("time", ColumnType::Time, "start of the hour or the day, µs since 1970, UTC");
/// The cluster.
pub const CLUSTER: FlatColumn = FlatColumn::may(
    "cluster",
    ColumnType::Text,
    "label of the captures, without host and date; null if they have none",
);
/// The service.
pub const SERVICE: FlatColumn = FlatColumn::may(
    "service",
    ColumnType::Text,
    "who ran the code: namespace/workload of the pod, container, unit, or cgroup; null if not recorded",
);
/// The event.
pub const EVENT: FlatColumn = FlatColumn::must("event", ColumnType::Text, "event as the user named it");
/// The unit of weights.
pub const UNIT: FlatColumn =
    FlatColumn::must("unit", ColumnType::Text, "unit of weight: cycles, page faults, ns, …");
/// The kind of an event.
pub const KIND: FlatColumn = FlatColumn::must(
    "kind",
    ColumnType::Text,
    "what took the samples: intel, amd, ibs-op, ibs-fetch, software, other, and what its hardware \
     filters; never add up rows of different kinds",
);
/// The function.
pub const FUNCTION: FlatColumn =
    FlatColumn::must("function", ColumnType::I64, "id of the function in symbols");
/// The level.
pub const LEVEL: FlatColumn = FlatColumn::may(
    "level",
    ColumnType::Text,
    "where accesses were served: L1 hit, Remote RAM hit, …; null if not reported",
);
/// The node.
pub const NODE: FlatColumn =
    FlatColumn::may("node", ColumnType::Text, "host name of the machine; null if the capture has none");
/// The group of a node.
pub const NODE_GROUP: FlatColumn = FlatColumn::must(
    "node_group",
    ColumnType::U8,
    "one of 32 groups of nodes, by a hash of cluster and node: intervals come from their differences",
);
/// The number of samples.
pub const COUNT: FlatColumn =
    FlatColumn::must("count", ColumnType::I64, "samples; in a thinned tier, those kept");
/// The events that the samples stand for.
pub const WEIGHT: FlatColumn = FlatColumn::must(
    "weight",
    ColumnType::I64,
    "events that the samples stand for; in a thinned tier, an estimate of those of all samples",
);
/// The sum of latencies.
pub const LATENCY_SUM: FlatColumn = FlatColumn::may(
    "latency_sum",
    ColumnType::I64,
    "sum of the latencies of the samples in count, core cycles; null if they have none",
);
/// The largest latency.
pub const LATENCY_MAX: FlatColumn = FlatColumn::may(
    "latency_max",
    ColumnType::U32,
    "largest latency, core cycles; null if the samples have none",
);
/// The latency bucket.
pub const BUCKET: FlatColumn =
    FlatColumn::must("latency_bucket", ColumnType::U8, "number of the latency bucket");

/// The columns of [`FleetTable::Hour`] and [`FleetTable::Day`], which are sorted by service, event,
/// unit, kind, function, level and node.
pub const ROWS: [FlatColumn; 14] = [
    TIME,
    CLUSTER,
    SERVICE,
    EVENT,
    UNIT,
    KIND,
    FUNCTION,
    LEVEL,
    NODE,
    NODE_GROUP,
    COUNT,
    WEIGHT,
    LATENCY_SUM,
    LATENCY_MAX,
];

/// The columns of [`FleetTable::DayGroup`], which are sorted like those of [`ROWS`] up to the
/// level, then by cluster and group.
pub const GROUPED: [FlatColumn; 13] = [
    TIME,
    CLUSTER,
    SERVICE,
    EVENT,
    UNIT,
    KIND,
    FUNCTION,
    LEVEL,
    NODE_GROUP,
    COUNT,
    WEIGHT,
    LATENCY_SUM,
    LATENCY_MAX,
];

/// The start of an instruction's function.
pub const FUNCTION_START: FlatColumn = FlatColumn::may(
    "function_start",
    ColumnType::I64,
    "offset of function in its file, bytes; null if the code is in no file, as that of the kernel",
);
/// The distance of an instruction from the start of its function.
pub const FUNCTION_OFFSET: FlatColumn = FlatColumn::may(
    "function_offset",
    ColumnType::I64,
    "distance of the instruction from function_start, bytes; null as that is",
);
/// What the sampled access did.
pub const OP: FlatColumn = FlatColumn::may(
    "op",
    ColumnType::Text,
    "LOAD, STORE, or FETCH if it is about the instruction's own bytes; null if not reported",
);

/// The columns of [`FleetTable::Instruction`] and [`FleetTable::DayInstruction`], which are sorted
/// by service, event, unit, kind, function, start, offset, op and group. The function is the one
/// that the file has a symbol of, into which others may be inlined.
pub const INSTRUCTIONS: [FlatColumn; 14] = [
    TIME,
    SERVICE,
    EVENT,
    UNIT,
    KIND,
    FUNCTION,
    FUNCTION_START,
    FUNCTION_OFFSET,
    OP,
    NODE_GROUP,
    COUNT,
    WEIGHT,
    LATENCY_SUM,
    LATENCY_MAX,
];

/// The columns of [`FleetTable::Latency`] and [`FleetTable::DayLatency`], which are sorted like
/// those of [`ROWS`], then by cluster, group and bucket.
pub const HISTOGRAM: [FlatColumn; 13] = [
    TIME,
    CLUSTER,
    SERVICE,
    EVENT,
    UNIT,
    KIND,
    FUNCTION,
    LEVEL,
    NODE_GROUP,
    BUCKET,
    FlatColumn::must("latency_low", ColumnType::U32, "smallest latency of the bucket, core cycles"),
    COUNT,
    WEIGHT,
];

const fn samples(name: &'static str, doc: &'static str) -> FlatColumn {
    FlatColumn::must(name, ColumnType::I64, doc)
}

/// The columns of [`FleetTable::Ledger`] and [`FleetTable::DayLedger`].
pub const LEDGER: [FlatColumn; 21] = [
    TIME,
    CLUSTER,
    NODE,
    NODE_GROUP,
    EVENT,
    UNIT,
    KIND,
    samples("captures", "captures with epochs in this hour"),
    samples("sampled_ns", "time that their epochs in this hour cover, ns"),
    FlatColumn::must("cpus", ColumnType::U32, "CPUs of the node"),
    FlatColumn::may(
        "expected",
        ColumnType::I64,
        "samples that the event's own count should give; null for a frequency",
    ),
    samples("arrived", "samples that reached the program"),
    samples("kept", "samples that were added to the table"),
    samples("rejected", "samples that the filter did not want"),
    samples("lost", "samples that the program could not keep"),
    samples("missed", "samples that did not reach the program"),
    samples("discarded", "samples that were kept and that user space lost"),
    samples("samples", "samples in the hour table"),
    FlatColumn::may(
        "losses",
        ColumnType::Text,
        "lost samples by reason: JSON object; null if none were lost",
    ),
    FlatColumn::must("precise", ColumnType::Bool, "whether every capture's verdict is precise"),
    FlatColumn::may("finding", ColumnType::Text, "first finding of a verdict that is not precise"),
];

/// The columns of [`FleetTable::Symbols`].
pub const SYMBOLS: [FlatColumn; 5] = [
    FUNCTION,
    FlatColumn::may("name", ColumnType::Text, "name of the function; null if it is not known"),
    FlatColumn::may("module", ColumnType::Text, "file, [kernel] or kernel module that contains it"),
    FlatColumn::may("build_id", ColumnType::Text, "build id of module, hex; null if it has none"),
    FlatColumn::may("reason", ColumnType::Text, "why name is null"),
];

/// The columns of [`FleetTable::Inputs`].
pub const INPUTS: [FlatColumn; 6] = [
    FlatColumn::must("name", ColumnType::Text, "name of the capture's file below the place"),
    FlatColumn::must("bytes", ColumnType::I64, "size of the file, bytes"),
    FlatColumn::may(
        "hash",
        ColumnType::Text,
        "SHA-256 of the file, its first 16 digits; null if it was not read",
    ),
    FlatColumn::must("samples", ColumnType::I64, "samples of the file in this hour"),
    FlatColumn::may("reason", ColumnType::Text, "why something is said about the file: cut, duplicate, …"),
    FlatColumn::may("what", ColumnType::Text, "the reason in a sentence"),
];
