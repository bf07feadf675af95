//! The model of a capture. A live run and a file go through these types.

use precise_common::{data_src::DataSource, ledger::Fact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stack::{Chain, Stack};
use crate::{
    CpuId, HardwareFilter, Ledger, Name, NameId, Names, Origin, Outcome, Overhead, Owner, PmuKind,
    RateChange, TaggedOf,
};

/// Version of the capture's schema. Raised when a reader of the older version would misread a newer
/// file.
pub const SCHEMA_VERSION: u32 = 1;

/// What one run saw.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Capture {
    /// Everything about the run that is not a row.
    pub meta: Meta,
    /// The strings that rows and locations refer to.
    pub names: Names,
    /// Code locations that rows refer to.
    pub code: Vec<CodeLocation>,
    /// Data locations that rows refer to.
    pub data: Vec<DataLocation>,
    /// Call chains that rows refer to.
    pub stacks: Vec<Stack>,
    /// One per cell and epoch. No two rows of one epoch have the same dimensions.
    pub rows: Vec<Row>,
}

/// Everything about a run that is not a row: the key-value metadata of the file.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Meta {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Version of `precise` that made the capture.
    pub producer: String,
    /// The command line that made it.
    pub command: Vec<String>,
    /// The machine that it was made on.
    pub machine: Machine,
    /// Start of the run, nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// The epochs, in order; [`Row::epoch`] indexes them.
    pub epochs: Vec<Epoch>,
    /// The events that were sampled; [`Row::event`] indexes them.
    pub events: Vec<EventInfo>,
    /// What the rows are grouped by. A dimension that is not here is zero or `None` in every row.
    pub dimensions: Vec<Dimension>,
    /// Data addresses are multiples of this many bytes: 1 keeps every byte apart, 64 groups by
    /// cache line.
    pub address_granule: u64,
    /// Where only cache lines that a HITM load showed kept their addresses (c2c): room for so many.
    /// `None`: all kept theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_lines: Option<u64>,
    /// The filter as the user wrote it; empty when there was none.
    pub filter: String,
    /// What was sampled, in words: "all processes", "process 4711", …
    pub target: String,
    /// Whom the cgroups of the rows belong to, by path; one that is nobody's is not here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Owner>,
    /// Notes for the reader that belong to no single event: what stepped down, what could not be
    /// read.
    pub notes: Vec<String>,
    /// Who recorded it, where it was imported; `None` for a run of `precise`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What it cost the machine; `None` where nobody knows (imports, older captures).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
}

impl Meta {
    /// Whom the cgroup of a path belongs to.
    pub fn owner(&self, path: &str) -> Option<&Owner> {
        let at = self.owners.binary_search_by(|owner| owner.path.as_str().cmp(path)).ok()?;
        self.owners.get(at)
    }
}

/// The machine that a capture was made on.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// Kernel release, `uname -r`.
    pub kernel: String,
    /// CPU model as /proc/cpuinfo has it.
    pub cpu: String,
    /// Online CPUs.
    pub cpus: u32,
    /// `uname -m`.
    pub arch: String,
    /// NUMA nodes, by number; empty where nobody knows them (older captures, kernels without NUMA).
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// Family and model of the CPU: what its registers mean. `None` where nobody knows (older
    /// captures).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_id: Option<CpuId>,
}

impl Machine {
    /// The node of a CPU.
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        self.nodes.iter().find(|node| node.cpus.contains(&cpu)).map(|node| node.id)
    }
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Its number.
    pub id: u32,
    /// Its CPUs; none where it is memory alone, such as CXL.
    pub cpus: Vec<u32>,
}

/// One interval between two reads of the kernel table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Epoch {
    /// Begin, in nanoseconds since the start of the run.
    pub start_ns: u64,
    /// End, in nanoseconds since the start of the run.
    pub end_ns: u64,
}

/// One event of a run: what was asked for, what was granted, and where its samples went.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EventInfo {
    /// As the user named it.
    pub name: String,
    /// PMU and encoding, as perf would write it: `cpu/event=0x3c/p`.
    pub encoding: String,
    /// The kind of PMU that it is of.
    #[serde(default)]
    pub pmu: PmuKind,
    /// What the hardware drops before it becomes a sample.
    #[serde(default)]
    pub hardware_filter: HardwareFilter,
    /// What one unit of the period is: "cycles", "page faults", "ns".
    pub unit: String,
    /// Events per sample; `None` where it varies: in frequency mode, and where the governor changed
    /// it.
    pub period: Option<u64>,
    /// Samples per second and CPU that were asked for, in frequency mode.
    pub frequency: Option<u64>,
    /// Each change of the rate by the governor, in order; the first is what the run began with.
    /// Empty when there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateChange>,
    /// What is known of a sample of this event beside its IP.
    pub fields: Fields,
    /// Whether the hardware marks each sample whose IP is exact.
    #[serde(default)]
    pub marks_exact: bool,
    /// What its outcomes are of, and so what its addresses and latencies are. `None` where rows
    /// have no outcomes, and in older captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tagged: Option<TaggedOf>,
    /// Where the samples went.
    pub ledger: Ledger,
    /// Whether they were precise.
    pub verdict: Verdict,
}

impl EventInfo {
    /// Whether the governor changed its rate, so that its samples do not weigh the same.
    pub fn governed(&self) -> bool {
        !self.rates.is_empty()
    }

    /// Events that may be in no sample on so many CPUs: those that were counted towards a next
    /// sample that never came, because the run ended, or because the governor changed the rate and
    /// the kernel began to count anew (kernel/events/core.c, `__perf_event_period`). At most one
    /// period for each rate on each CPU. A frequency stands for the period that gives it on
    /// average.
    pub fn in_flight(&self, cpus: u32) -> f64 {
        let whole = RateChange { at_ns: 0, period: self.period, frequency: self.frequency };
        let rates = if self.rates.is_empty() { std::slice::from_ref(&whole) } else { &self.rates };
        let per_second = match self.ledger.enabled_ns {
            0 => 0.0,
            enabled_ns => self.ledger.event_count as f64 / (enabled_ns as f64 / 1e9),
        };
        let period = |rate: &RateChange| match (rate.period, rate.frequency) {
            (Some(period), _) => period as f64,
            (None, Some(hertz)) => per_second / hertz.max(1) as f64,
            (None, None) => 0.0,
        };
        rates.iter().map(period).sum::<f64>() * f64::from(cpus.max(1))
    }
}

/// What is known of each sample of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Fields {
    /// Data addresses.
    pub address: bool,
    /// Latencies, in core cycles.
    pub latency: bool,
    /// Level, snoop, TLB, lock.
    pub data_source: bool,
    /// What became of the branch, or of the instruction fetch.
    #[serde(default)]
    pub outcome: bool,
}

impl Fields {
    /// Whether each sample should carry this fact.
    pub const fn has(&self, fact: Fact) -> bool {
        match fact {
            Fact::Address => self.address,
            Fact::DataSource => self.data_source,
            Fact::Latency => self.latency,
            Fact::Registers => self.outcome,
        }
    }
}

/// Whether the samples were precise, and what was missing.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// What the user asked for.
    pub requested: Precision,
    /// The level that the kernel granted: 0 arbitrary skid, 1 constant skid, 2 and 3 exact.
    pub granted: u8,
    /// Whether the IPs of this event are exact: by hardware, or by the nature of the event (a page
    /// fault is).
    pub precise: bool,
    /// Each step down and each doubt, one sentence each.
    pub findings: Vec<String>,
}

/// How much precision a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// The most that the machine grants; each step down is reported.
    #[default]
    Auto,
    /// Exact, or fail.
    Require,
    /// Not asked for.
    Off,
}

crate::catalogue! {
    /// Something to group by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Dimension: &'static str {
        /// Instruction address, and with it function, line and module.
        Ip => "ip",
        /// Data address.
        Address => "address",
        /// Cgroup.
        Cgroup => "cgroup",
        /// Process.
        Process => "process",
        /// Thread.
        Thread => "thread",
        /// CPU.
        Cpu => "cpu",
        /// Level, snoop, TLB, lock: the data source.
        Source => "source",
        /// Latency bucket.
        Latency => "latency",
        /// What became of the branch, or of the instruction fetch.
        Outcome => "outcome",
        /// Call chain.
        Stack => "stack",
        /// Size of the page that the data is on.
        #[serde(rename = "page-size")]
        PageSize => "page-size",
    }
}

impl Dimension {
    /// As `--by` and captures name it.
    pub const fn as_str(self) -> &'static str {
        self.entry()
    }
}

/// Where an instruction is. Names are resolved while the process lives, so that a report made on
/// another day says the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeLocation {
    /// Whether it is kernel code.
    pub kernel: bool,
    /// Runtime address. For the kernel it is 0 where the run's user may not see it.
    pub runtime_address: u64,
    /// The file (path as the process saw it), `[kernel]`, or a kernel module.
    pub module: Name,
    /// Build id of the file, lower-case hex; empty when it has none.
    pub build_id: NameId,
    /// Offset in the file; 0 if there is no file.
    pub file_offset: u64,
    /// The function that contains the instruction: the innermost inlined one.
    pub function: Name,
    /// Distance from the start of the outermost, real function, in bytes.
    pub function_offset: u64,
    /// Source file of the innermost frame.
    pub source: Name,
    /// Line, 1-based; 0 when not known.
    pub line: u32,
    /// Frames that the innermost is inlined into, from inside out; the last is the real function.
    /// Empty when not inlined.
    pub inlined_into: Vec<Frame>,
}

/// One inlined-into frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Function.
    pub function: NameId,
    /// Source file; empty when not known.
    pub source: NameId,
    /// Line, 1-based; 0 when not known.
    pub line: u32,
}

/// Where a data address points.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataLocation {
    /// Runtime address, a multiple of [`Meta::address_granule`].
    pub runtime_address: u64,
    /// What it lies in: a file, `[heap]`, `[stack]`, `[anon]`, `[kernel]`.
    pub region: Name,
    /// Offset in the file, where the region is one.
    pub file_offset: u64,
    /// Variable.
    pub variable: Name,
    /// Distance from the start of the variable, in bytes.
    pub variable_offset: u64,
}

/// Index into [`Capture::code`] or [`Capture::data`].
pub type LocationId = u32;

/// One cell in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// Index into [`Meta::epochs`].
    pub epoch: u32,
    /// Index into [`Meta::events`].
    pub event: u16,
    /// CPU, where the run groups by it.
    pub cpu: Option<u16>,
    /// Cgroup id; 0 when not recorded.
    pub cgroup_id: u64,
    /// Cgroup path from the root of its hierarchy: `/system.slice/nginx.service`.
    pub cgroup: Name,
    /// Process id; 0 when not recorded.
    pub pid: u32,
    /// Thread id; 0 when not recorded.
    pub tid: u32,
    /// Process name (comm).
    pub process: Name,
    /// Whether the sample was taken in the kernel; also known when the IP is not recorded.
    pub kernel: bool,
    /// Code location, where the run groups by IP.
    pub code: Option<LocationId>,
    /// Data location, where the run groups by address and the sample had one.
    pub data: Option<LocationId>,
    /// Call chain, where the run takes them.
    pub stack: Chain,
    /// `perf_mem_data_src` word, where the run groups by it; 0 otherwise.
    pub data_src: u64,
    /// What became of the branch or fetch, where the run groups by it.
    pub outcome: Option<Outcome>,
    /// Latency bucket (`precise_common::latency`), where the run groups by it and the sample had a
    /// latency.
    pub latency_bucket: Option<u8>,
    /// Whether the hardware marked the IP as exact.
    pub exact: bool,
    /// Bytes that the access touched, where the hardware says it and the run kept it (c2c on AMD).
    pub width: Option<u16>,
    /// Bytes of the page that the data is on, where the run groups by it and the kernel knew it.
    pub page_size: Option<u64>,
    /// What was measured.
    pub measures: Measures,
}

impl Row {
    /// The decoded data source.
    pub fn data_source(&self) -> DataSource {
        DataSource::decode(self.data_src)
    }
}

/// What was measured of a group of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub struct Measures {
    /// Samples.
    pub count: u64,
    /// Events that the samples stand for: the sum of their periods.
    pub period_sum: u64,
    /// Sum of latencies, core cycles.
    pub latency_sum: u64,
    /// Largest latency, core cycles.
    pub latency_max: u32,
}

impl Measures {
    /// Adds another group. Saturates: a file may claim anything.
    pub fn add(&mut self, other: &Self) {
        let Self { count, period_sum, latency_sum, latency_max } = other;
        self.count = self.count.saturating_add(*count);
        self.period_sum = self.period_sum.saturating_add(*period_sum);
        self.latency_sum = self.latency_sum.saturating_add(*latency_sum);
        self.latency_max = self.latency_max.max(*latency_max);
    }
}
