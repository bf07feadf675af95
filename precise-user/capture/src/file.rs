//! The columns of a capture file: one Parquet row per cell and epoch.
//!
//! The table is flat, so that a query needs no join. Every row has its names, dictionary-encoded,
//! so that each costs only a small number. Columns that follow from another one (`level` from
//! `data_src`, `latency_low` from `latency_bucket`) are written for SQL and ignored when `precise`
//! reads the file back. A column is never renamed and never changes its type; a reader ignores
//! columns that it does not know.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

/// The key of the schema version in the file's key-value metadata; the value is a decimal number.
pub const SCHEMA_KEY: &str = "precise.schema";
/// The key of [`precise_model::Meta`] in the file's key-value metadata; the value is JSON.
pub const META_KEY: &str = "precise.meta";

/// The largest number of rows in a Parquet row group. It bounds the number of rows that the writer
/// and the reader hold decoded at one time.
pub(crate) const ROW_GROUP_ROWS: usize = 64 * 1024;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A boolean.
    Bool,
    /// An unsigned number of 8 bits.
    U8,
    /// An unsigned number of 16 bits.
    U16,
    /// An unsigned number of 32 bits.
    U32,
    /// An unsigned number of 64 bits: an address, an id, or bits.
    U64,
    /// A number of 63 bits, stored with a sign: a count or an offset. Spark, which has no unsigned
    /// types, would read an unsigned one as a decimal.
    I64,
    /// Text in UTF-8, dictionary-encoded.
    Text,
    /// A time, in microseconds since the Unix epoch, UTC. Spark refuses nanoseconds, and DuckDB's
    /// functions of time do not take them; `precise.meta` has the nanoseconds.
    Time,
}

/// The properties of a column.
#[derive(Clone, Copy)]
struct ColumnEntry {
    name: &'static str,
    kind: ColumnType,
    nullable: bool,
    doc: &'static str,
}

const fn must(name: &'static str, kind: ColumnType, doc: &'static str) -> ColumnEntry {
    ColumnEntry { name, kind, nullable: false, doc }
}

const fn may(name: &'static str, kind: ColumnType, doc: &'static str) -> ColumnEntry {
    ColumnEntry { name, kind, nullable: true, doc }
}

precise_model::catalogue! {
    /// A column of a capture file, in file order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the entry says it")]
    pub enum Column: ColumnEntry {
        Epoch => must("epoch", ColumnType::U32, "number of the epoch, from 0"),
        EpochStart => must("epoch_start", ColumnType::Time, "start of the epoch, µs since 1970, UTC"),
        EpochEnd => must("epoch_end", ColumnType::Time, "end of the epoch, µs since 1970, UTC"),
        Host => may("host", ColumnType::Text, "name of the machine that was sampled; null if the recording does not have it"),
        EventId => must("event_id", ColumnType::U16, "number of the event in this capture, from 0"),
        Event => must("event", ColumnType::Text, "event as the user named it"),
        Cpu => may("cpu", ColumnType::U16, "CPU number"),
        CgroupId => may("cgroup_id", ColumnType::U64, "cgroup id"),
        Cgroup => may("cgroup", ColumnType::Text, "cgroup path from the root of its hierarchy"),
        CgroupReason => may("cgroup_reason", ColumnType::Text, "why cgroup is null"),
        Owner => may("owner", ColumnType::Text, "short name of the container, pod or unit that the cgroup belongs to"),
        Unit => may("unit", ColumnType::Text, "systemd unit that contains the cgroup"),
        Runtime => may("runtime", ColumnType::Text, "container runtime, if the path shows it: docker, containerd, cri-o, podman, lxc"),
        Container => may("container", ColumnType::Text, "name of the container that the cgroup belongs to, or its id if the name is not known"),
        ContainerId => may("container_id", ColumnType::Text, "id of the container"),
        Pod => may("pod", ColumnType::Text, "name of the pod that the cgroup belongs to, or its UID if the name is not known"),
        PodUid => may("pod_uid", ColumnType::Text, "UID of the pod"),
        Namespace => may("namespace", ColumnType::Text, "namespace of the pod"),
        Pid => may("pid", ColumnType::U32, "process id; 0 is the kernel's idle task"),
        Tid => may("tid", ColumnType::U32, "thread id; 0 is the kernel's idle task"),
        Process => may("process", ColumnType::Text, "process name (comm)"),
        ProcessReason => may("process_reason", ColumnType::Text, "why process is null"),
        Thread => may("thread", ColumnType::Text, "thread name (comm); the name of the process for its first thread"),
        ThreadReason => may("thread_reason", ColumnType::Text, "why thread is null"),
        Kernel => may("kernel", ColumnType::Bool, "whether the sample was taken in the kernel"),
        Ip => may("ip", ColumnType::U64, "runtime address of the instruction, for code that processes share in the first of them that was sampled; null too if the kernel hides it"),
        Module => may("module", ColumnType::Text, "file, [kernel] or kernel module that contains the instruction"),
        ModuleReason => may("module_reason", ColumnType::Text, "why module is null"),
        BuildId => may("build_id", ColumnType::Text, "build id of module, hex; null if it has none"),
        FileOffset => may("file_offset", ColumnType::I64, "offset of the instruction in module, bytes"),
        Function => may("function", ColumnType::Text, "function that contains the instruction; the innermost if inlined"),
        FunctionOffset => may("function_offset", ColumnType::I64, "distance from the start of the outermost function, bytes"),
        FunctionReason => may("function_reason", ColumnType::Text, "why function is null"),
        SourceFile => may("source_file", ColumnType::Text, "source file of the instruction"),
        Source => may("source", ColumnType::Text, "source_file under its first name; not the data source of --by source, which is op to hops"),
        SourceReason => may("source_reason", ColumnType::Text, "why source_file is null"),
        Line => may("line", ColumnType::U32, "line in source_file, from 1"),
        Inlined => may("inlined", ColumnType::Text, "functions it is inlined into, innermost first: JSON list of {function, source, line}"),
        Stack => may("stack", ColumnType::Text, "callers of the function, innermost first: JSON list of {function, module, build_id, file_offset, source, line, …}"),
        StackReason => may("stack_reason", ColumnType::Text, "why stack is null"),
        StackElsewhere => may("stack_elsewhere", ColumnType::Bool, "the interrupt arrived in another function than the sampled instruction's: stack shows how that other function was called"),
        StackCut => may("stack_cut", ColumnType::Bool, "the call chain was longer than the limit: its outermost callers are missing"),
        StackEnd => may("stack_end", ColumnType::Text, "why the outermost caller in stack has no caller; root and kernel-only: no caller is missing; null if not known"),
        Address => may("address", ColumnType::U64, "data address, a multiple of the granule in precise.meta"),
        Region => may("region", ColumnType::Text, "what contains the address: a file, [heap], [stack], [anon], [kernel]"),
        RegionReason => may("region_reason", ColumnType::Text, "why region is null"),
        RegionOffset => may("region_offset", ColumnType::I64, "offset of address in region, bytes; only if region is a file"),
        Variable => may("variable", ColumnType::Text, "variable that contains address"),
        VariableOffset => may("variable_offset", ColumnType::I64, "distance from the start of variable, bytes"),
        VariableReason => may("variable_reason", ColumnType::Text, "why variable is null"),
        Op => may("op", ColumnType::Text, "LOAD, STORE, …; null if not reported"),
        Level => may("level", ColumnType::Text, "where the access was served (with level_miss: the level that it missed); null if not reported"),
        LevelMiss => may("level_miss", ColumnType::Bool, "the access missed level; where it was served is unknown"),
        Snoop => may("snoop", ColumnType::Text, "state of the line in other caches; null if not reported"),
        Tlb => may("tlb", ColumnType::Text, "how the address was translated; null if not reported"),
        Locked => may("locked", ColumnType::Bool, "whether the instruction was locked; null if not reported"),
        Remote => may("remote", ColumnType::Bool, "whether another node or another core's cache served the access"),
        Hops => may("hops", ColumnType::U8, "distance of a remote access: 1 same node, 2 same socket, 3 other socket, 4 other board"),
        DataSrc => may("data_src", ColumnType::U64, "perf_mem_data_src word, from which the columns op to hops are decoded"),
        Outcome => may("outcome", ColumnType::Text, "outcome of the branch or instruction fetch, in words; null unless the run grouped by it"),
        OpOutcome => may("op_outcome", ColumnType::U64, "bits of the outcome of a tagged op: precise_common::ibs::Outcome"),
        FetchOutcome => may("fetch_outcome", ColumnType::U64, "bits of the outcome of a tagged fetch: precise_common::ibs::Outcome"),
        LatencyBucket => may("latency_bucket", ColumnType::U8, "number of the latency bucket"),
        LatencyLow => may("latency_low", ColumnType::U32, "smallest latency of the bucket, core cycles"),
        LatencyHigh => may("latency_high", ColumnType::U32, "largest latency of the bucket, core cycles"),
        Exact => must("exact", ColumnType::Bool, "whether the hardware marked the instruction address as exact"),
        AccessBytes => may("access_bytes", ColumnType::U16, "bytes that the access touched, as reported by the hardware; null if not reported or not recorded"),
        PageSize => may("page_size", ColumnType::I64, "size of the page that contains address, bytes; null if the kernel did not know it or the run did not group by it"),
        Count => must("count", ColumnType::I64, "samples"),
        PeriodSum => must("period_sum", ColumnType::I64, "events that the samples stand for"),
        LatencySum => may("latency_sum", ColumnType::I64, "sum of latencies, core cycles; null if no sample has a latency"),
        LatencyMax => may("latency_max", ColumnType::U32, "largest latency, core cycles; null if no sample has a latency"),
    }
}

impl Column {
    /// Returns the name of the column in SQL.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the type of the column.
    pub const fn kind(self) -> ColumnType {
        self.entry().kind
    }

    /// Returns whether the column may be null: if the run did not record it, or the sample had no
    /// value.
    pub const fn nullable(self) -> bool {
        self.entry().nullable
    }

    /// Returns the largest dictionary of a row group, in bytes. Up to this size, each text is
    /// written once, however many rows have it.
    pub(super) const fn dictionary(self) -> usize {
        match self {
            // A chain takes kilobytes, and many rows have the same one.
            Self::Stack => 32 << 20,
            _ => 1 << 20,
        }
    }

    /// Returns the description of the column, with its unit.
    pub const fn doc(self) -> &'static str {
        self.entry().doc
    }

    /// Returns the column's type in the schema of the file.
    pub(crate) fn parquet_type(self) -> Result<Type, ParquetError> {
        let (physical, logical) = match self.kind() {
            ColumnType::Bool => (Physical::BOOLEAN, None),
            ColumnType::U8 => (Physical::INT32, Some(LogicalType::integer(8, false))),
            ColumnType::U16 => (Physical::INT32, Some(LogicalType::integer(16, false))),
            ColumnType::U32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
            ColumnType::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
            ColumnType::I64 => (Physical::INT64, Some(LogicalType::integer(64, true))),
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        };
        let repetition = if self.nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(self.name(), physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }
}

/// Returns the schema of every file that the writer writes.
pub(crate) fn schema() -> Result<TypePtr, ParquetError> {
    let fields = Column::ALL.iter().map(|column| column.parquet_type().map(Arc::new));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("precise").with_fields(fields).build()?))
}
