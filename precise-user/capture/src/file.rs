//! The columns of a capture file: one Parquet row per cell and epoch.
//!
//! The table is flat, so that a query needs no join. Every row has its names, dictionary-encoded,
//! so that each costs only a small number. Columns that follow from another one (`level` from
//! `data_src`, `latency_low` from `latency_bucket`) are written for SQL and ignored when `precise`
//! reads the file back. A column is never renamed and never changes its type; a reader ignores
//! columns that it does not know.

use parquet::errors::ParquetError;
use parquet::schema::types::TypePtr;

use super::flat::{self, ColumnType, FlatColumn};

/// The key of the schema version in the file's key-value metadata; the value is a decimal number.
pub const SCHEMA_KEY: &str = "precise.schema";
/// The key of [`precise_model::Meta`] in the file's key-value metadata; the value is JSON.
pub const META_KEY: &str = "precise.meta";

/// The largest number of rows in a Parquet row group. It bounds the number of rows that the writer
/// and the reader hold decoded at one time.
pub(crate) const ROW_GROUP_ROWS: usize = 64 * 1024;

precise_model::catalogue! {
    /// A column of a capture file, in file order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the entry says it")]
    pub enum Column: FlatColumn {
        Epoch => FlatColumn::must("epoch", ColumnType::U32, "number of the epoch, from 0"),
        EpochStart => FlatColumn::must("epoch_start", ColumnType::Time, "start of the epoch, µs since 1970, UTC"),
        EpochEnd => FlatColumn::must("epoch_end", ColumnType::Time, "end of the epoch, µs since 1970, UTC"),
        Host => FlatColumn::may("host", ColumnType::Text, "name of the machine that was sampled; null if the recording does not have it"),
        EventId => FlatColumn::must("event_id", ColumnType::U16, "number of the event in this capture, from 0"),
        Event => FlatColumn::must("event", ColumnType::Text, "event as the user named it"),
        Cpu => FlatColumn::may("cpu", ColumnType::U16, "CPU number"),
        CgroupId => FlatColumn::may("cgroup_id", ColumnType::U64, "cgroup id"),
        Cgroup => FlatColumn::may("cgroup", ColumnType::Text, "cgroup path from the root of its hierarchy"),
        CgroupReason => FlatColumn::may("cgroup_reason", ColumnType::Text, "why cgroup is null"),
        Owner => FlatColumn::may("owner", ColumnType::Text, "short name of the container, pod or unit that the cgroup belongs to"),
        Unit => FlatColumn::may("unit", ColumnType::Text, "systemd unit that contains the cgroup"),
        Runtime => FlatColumn::may("runtime", ColumnType::Text, "container runtime, if the path shows it: docker, containerd, cri-o, podman, lxc"),
        Container => FlatColumn::may("container", ColumnType::Text, "name of the container that the cgroup belongs to, or its id if the name is not known"),
        ContainerId => FlatColumn::may("container_id", ColumnType::Text, "id of the container"),
        Pod => FlatColumn::may("pod", ColumnType::Text, "name of the pod that the cgroup belongs to, or its UID if the name is not known"),
        PodUid => FlatColumn::may("pod_uid", ColumnType::Text, "UID of the pod"),
        Namespace => FlatColumn::may("namespace", ColumnType::Text, "namespace of the pod"),
        Pid => FlatColumn::may("pid", ColumnType::U32, "process id; 0 is the kernel's idle task"),
        Tid => FlatColumn::may("tid", ColumnType::U32, "thread id; 0 is the kernel's idle task"),
        Process => FlatColumn::may("process", ColumnType::Text, "process name (comm)"),
        ProcessReason => FlatColumn::may("process_reason", ColumnType::Text, "why process is null"),
        Thread => FlatColumn::may("thread", ColumnType::Text, "thread name (comm); the name of the process for its first thread"),
        ThreadReason => FlatColumn::may("thread_reason", ColumnType::Text, "why thread is null"),
        Kernel => FlatColumn::may("kernel", ColumnType::Bool, "whether the sample was taken in the kernel"),
        Ip => FlatColumn::may("ip", ColumnType::U64, "runtime address of the instruction, for code that processes share in the first of them that was sampled; null too if the kernel hides it"),
        Module => FlatColumn::may("module", ColumnType::Text, "file, [kernel] or kernel module that contains the instruction"),
        ModuleReason => FlatColumn::may("module_reason", ColumnType::Text, "why module is null"),
        BuildId => FlatColumn::may("build_id", ColumnType::Text, "build id of module, hex; null if it has none"),
        FileOffset => FlatColumn::may("file_offset", ColumnType::I64, "offset of the instruction in module, bytes"),
        Function => FlatColumn::may("function", ColumnType::Text, "function that contains the instruction; the innermost if inlined"),
        FunctionOffset => FlatColumn::may("function_offset", ColumnType::I64, "distance from the start of the outermost function, bytes"),
        FunctionReason => FlatColumn::may("function_reason", ColumnType::Text, "why function is null"),
        SourceFile => FlatColumn::may("source_file", ColumnType::Text, "source file of the instruction"),
        Source => FlatColumn::may("source", ColumnType::Text, "source_file under its first name; not the data source of --by source, which is op to hops"),
        SourceReason => FlatColumn::may("source_reason", ColumnType::Text, "why source_file is null"),
        Line => FlatColumn::may("line", ColumnType::U32, "line in source_file, from 1"),
        Inlined => FlatColumn::may("inlined", ColumnType::Text, "functions it is inlined into, innermost first: JSON list of {function, source, line}"),
        Stack => FlatColumn::may("stack", ColumnType::Text, "callers of the function, innermost first: JSON list of {function, module, build_id, file_offset, source, line, …}"),
        StackReason => FlatColumn::may("stack_reason", ColumnType::Text, "why stack is null"),
        StackElsewhere => FlatColumn::may("stack_elsewhere", ColumnType::Bool, "the interrupt arrived in another function than the sampled instruction's: stack shows how that other function was called"),
        StackCut => FlatColumn::may("stack_cut", ColumnType::Bool, "the call chain was longer than the limit: its outermost callers are missing"),
        StackEnd => FlatColumn::may("stack_end", ColumnType::Text, "why the outermost caller in stack has no caller; root and kernel-only: no caller is missing; null if not known"),
        Address => FlatColumn::may("address", ColumnType::U64, "data address, a multiple of the granule in precise.meta"),
        Region => FlatColumn::may("region", ColumnType::Text, "what contains the address: a file, [heap], [stack], [anon], [kernel]"),
        RegionReason => FlatColumn::may("region_reason", ColumnType::Text, "why region is null"),
        RegionOffset => FlatColumn::may("region_offset", ColumnType::I64, "offset of address in region, bytes; only if region is a file"),
        Variable => FlatColumn::may("variable", ColumnType::Text, "variable that contains address"),
        VariableOffset => FlatColumn::may("variable_offset", ColumnType::I64, "distance from the start of variable, bytes"),
        VariableReason => FlatColumn::may("variable_reason", ColumnType::Text, "why variable is null"),
        Op => FlatColumn::may("op", ColumnType::Text, "LOAD, STORE, …; null if not reported"),
        Level => FlatColumn::may("level", ColumnType::Text, "where the access was served (with level_miss: the level that it missed); null if not reported"),
        LevelMiss => FlatColumn::may("level_miss", ColumnType::Bool, "the access missed level; where it was served is unknown"),
        Snoop => FlatColumn::may("snoop", ColumnType::Text, "state of the line in other caches; null if not reported"),
        Tlb => FlatColumn::may("tlb", ColumnType::Text, "how the address was translated; null if not reported"),
        Locked => FlatColumn::may("locked", ColumnType::Bool, "whether the instruction was locked; null if not reported"),
        Remote => FlatColumn::may("remote", ColumnType::Bool, "whether another node or another core's cache served the access"),
        Hops => FlatColumn::may("hops", ColumnType::U8, "distance of a remote access: 1 same node, 2 same socket, 3 other socket, 4 other board"),
        DataSrc => FlatColumn::may("data_src", ColumnType::U64, "perf_mem_data_src word, from which the columns op to hops are decoded"),
        Outcome => FlatColumn::may("outcome", ColumnType::Text, "outcome of the branch or instruction fetch, in words; null unless the run grouped by it"),
        OpOutcome => FlatColumn::may("op_outcome", ColumnType::U64, "bits of the outcome of a tagged op: precise_common::ibs::Outcome"),
        FetchOutcome => FlatColumn::may("fetch_outcome", ColumnType::U64, "bits of the outcome of a tagged fetch: precise_common::ibs::Outcome"),
        LatencyBucket => FlatColumn::may("latency_bucket", ColumnType::U8, "number of the latency bucket"),
        LatencyLow => FlatColumn::may("latency_low", ColumnType::U32, "smallest latency of the bucket, core cycles"),
        LatencyHigh => FlatColumn::may("latency_high", ColumnType::U32, "largest latency of the bucket, core cycles"),
        Exact => FlatColumn::must("exact", ColumnType::Bool, "whether the hardware marked the instruction address as exact"),
        AccessBytes => FlatColumn::may("access_bytes", ColumnType::U16, "bytes that the access touched, as reported by the hardware; null if not reported or not recorded"),
        PageSize => FlatColumn::may("page_size", ColumnType::I64, "size of the page that contains address, bytes; null if the kernel did not know it or the run did not group by it"),
        Count => FlatColumn::must("count", ColumnType::I64, "samples"),
        PeriodSum => FlatColumn::must("period_sum", ColumnType::I64, "events that the samples stand for"),
        LatencySum => FlatColumn::may("latency_sum", ColumnType::I64, "sum of latencies, core cycles; null if no sample has a latency"),
        LatencyMax => FlatColumn::may("latency_max", ColumnType::U32, "largest latency, core cycles; null if no sample has a latency"),
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

    /// Returns the column as one of a flat table.
    pub const fn flat(self) -> FlatColumn {
        self.entry()
    }
}

/// Returns the schema of every file that the writer writes.
pub(crate) fn schema() -> Result<TypePtr, ParquetError> {
    flat::schema(Column::ALL.map(Column::flat))
}
