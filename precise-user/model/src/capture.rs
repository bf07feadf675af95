//! The data model of a capture. Live runs, imports and files all use these types.

use precise_common::{data_src::DataSource, ledger::Fact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accesses::AccessTypes;
use crate::touches::FirstTouches;
use crate::{
    ChainEnd, CpuId, Dimension, HardwareFilter, Idle, Ledger, Name, NameId, Names, Origin, Outcome, Overhead,
    Owner, PmuKind, RateChange, Reason, TaggedOf,
};

/// The version of the capture schema. It is raised when a reader of the older version would misread
/// a newer file.
pub const SCHEMA_VERSION: u32 = 1;

/// The result of one run: rows, and the names and locations that they refer to.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Capture {
    /// The metadata of the run: everything that is not a row.
    pub meta: Meta,
    /// The strings that rows and locations refer to.
    pub names: Names,
    /// The code locations that rows refer to.
    pub code: Vec<CodeLocation>,
    /// The data locations that rows refer to.
    pub data: Vec<DataLocation>,
    /// The call chains that rows refer to.
    pub stacks: Vec<Stack>,
    /// One row per cell and epoch. No two rows of the same epoch have the same dimensions.
    pub rows: Vec<Row>,
    /// The types of the sampled accesses, once a view has looked them up. Not stored in files.
    pub types: Option<AccessTypes>,
    /// Who touched pages first, once it was looked up. Not stored in files.
    pub touches: Option<FirstTouches>,
}

/// The metadata of a run: everything that is not a row. Stored as key-value metadata of the file.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Meta {
    /// The schema version of the writer: its [`SCHEMA_VERSION`].
    pub schema: u32,
    /// The version of `precise` that wrote the capture.
    pub producer: String,
    /// The command line that made the capture.
    pub command: Vec<String>,
    /// The machine that the capture was made on.
    pub machine: Machine,
    /// The start of the run, in nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// The epochs, in order; [`Row::epoch`] indexes them.
    pub epochs: Vec<Epoch>,
    /// The events that were sampled; [`Row::event`] indexes them.
    pub events: Vec<EventInfo>,
    /// The dimensions that the rows are grouped by. A dimension that is not listed is zero or
    /// `None` in every row.
    pub dimensions: Vec<Dimension>,
    /// The granularity of data addresses in bytes: each is a multiple of this. 1 keeps every byte
    /// apart; 64 groups by cache line.
    pub address_granule: u64,
    /// The capacity of the table of promoted lines (c2c), in cache lines. Only cache lines with a
    /// HITM load kept their addresses. `None`: all addresses were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_lines: Option<u64>,
    /// The filter as the user wrote it; empty if the run had none.
    pub filter: String,
    /// The target of the run, in words: "all processes", "process 4711", …
    pub target: String,
    /// The owners of the rows' cgroups, sorted by path. A cgroup without an owner is not listed. A
    /// file has them in columns, because a run may see any number of cgroups.
    #[serde(skip)]
    pub owners: Vec<Owner>,
    /// Notes for the reader that belong to no single event, such as a downgrade or a file that
    /// could not be read.
    pub notes: Vec<String>,
    /// The recorder of an imported capture; `None` for a run of `precise`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The overhead of the run on the machine; `None` if it is not known (imports, older captures).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
    /// The part of the run that the rows are, if the capture was narrowed after it was read. Not
    /// stored in files.
    #[serde(skip)]
    pub selection: Option<Selection>,
}

/// The part of a run to which a capture was narrowed. Ledger and verdict remain those of the run.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Selection {
    /// The filter that the samples pass; empty if there is none.
    pub filter: String,
    /// The start of the selected time, in nanoseconds since the start of the run; `None` if time
    /// was not narrowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<u64>,
    /// The end of the selected time, in nanoseconds since the start of the run; `None` if time was
    /// not narrowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// Whether the selected time is longer than requested, because epochs are kept whole.
    pub widened: bool,
    /// The number of selected samples.
    pub samples: u64,
    /// The number of samples in the capture.
    pub of_samples: u64,
    /// The number of samples that were left out because the name that the filter tests is not
    /// known.
    pub nameless: u64,
    /// The selection as sentences.
    pub text: String,
}

impl Meta {
    /// Returns the owner of the cgroup at `path`; `None` if it has no owner.
    pub fn owner(&self, path: &str) -> Option<&Owner> {
        let at = self.owners.binary_search_by(|owner| owner.path.as_str().cmp(path)).ok()?;
        self.owners.get(at)
    }
}

/// The machine that a capture was made on.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The host name.
    pub host: String,
    /// The kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// The CPU model name, as in /proc/cpuinfo.
    pub cpu: String,
    /// The number of online CPUs.
    pub cpus: u32,
    /// The architecture, as `uname -m` prints it.
    pub arch: String,
    /// The NUMA nodes, sorted by number; empty if they are not known (older captures, kernels
    /// without NUMA).
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// The vendor, family and model of the CPU, which decide what its registers mean. `None` if
    /// they are not known (older captures).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_id: Option<CpuId>,
}

impl Machine {
    /// Returns the NUMA node of a CPU; `None` if it is not known.
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        self.nodes.iter().find(|node| node.cpus.contains(&cpu)).map(|node| node.id)
    }
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// The number of the node.
    pub id: u32,
    /// The CPUs of the node; empty for a node with memory only, such as CXL.
    pub cpus: Vec<u32>,
}

/// An epoch: the interval between two reads of the kernel table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Epoch {
    /// The start of the epoch, in nanoseconds since the start of the run.
    pub start_ns: u64,
    /// The end of the epoch, in nanoseconds since the start of the run.
    pub end_ns: u64,
}

/// An event of a run: what was requested, what was granted, and where its samples went.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EventInfo {
    /// The event name, as the user wrote it.
    pub name: String,
    /// The PMU and the encoding, as perf would write them: `cpu/event=0x3c/p`.
    pub encoding: String,
    /// The kind of PMU that the event belongs to.
    #[serde(default)]
    pub pmu: PmuKind,
    /// The hardware filter: what the hardware drops before it becomes a sample.
    #[serde(default)]
    pub hardware_filter: HardwareFilter,
    /// The unit of the period: "cycles", "page faults", "ns".
    pub unit: String,
    /// The sample period: events per sample. `None` if it varies: in frequency mode, or after the
    /// governor changed it.
    pub period: Option<u64>,
    /// The requested sample frequency, in samples per second per CPU. `None` outside frequency
    /// mode.
    pub frequency: Option<u64>,
    /// The sample rates that the governor set, in order; the first entry is the initial rate. Empty
    /// if the governor changed nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateChange>,
    /// The fields that each sample of this event carries in addition to its IP.
    pub fields: Fields,
    /// Whether the hardware marks each sample that has an exact IP.
    #[serde(default)]
    pub marks_exact: bool,
    /// What an outcome of this event describes, which also decides what its addresses and latencies
    /// mean. `None` if rows have no outcomes, and in older captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tagged: Option<TaggedOf>,
    /// The ledger: where the samples went.
    pub ledger: Ledger,
    /// The verdict: whether the samples were precise.
    pub verdict: Verdict,
    /// The samples of idle CPUs, once a view has looked for them. Not stored in captures.
    #[serde(skip)]
    pub idle: Option<Idle>,
}

/// The resolution of a CPU's idle time in nanoseconds (/proc/stat).
const IDLE_STEP_NS: f64 = 10e6;
/// How far idle time is uncertain, as a share of it: a CPU that enters or leaves idle, or handles
/// an interrupt in between, is in the idle task and not idle. On a virtual machine that was 70 %
/// idle this was 3 %.
const IDLE_UNCERTAIN: f64 = 0.03;

impl EventInfo {
    /// Returns whether the governor changed the event's rate, so that its samples have unequal
    /// weights.
    pub fn governed(&self) -> bool {
        !self.rates.is_empty()
    }

    /// Returns the number of events on `cpus` CPUs that may be in no sample: they counted towards a
    /// next sample that never came, because the run ended, or because the governor changed the rate
    /// and the kernel restarted the count (kernel/events/core.c, `__perf_event_period`). At most
    /// one period per rate per CPU. For a frequency, the average period that results from it is
    /// used. For a timer, the uncertainty of the idle time is added.
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
        let uncertain = |idle_ns| IDLE_STEP_NS * f64::from(cpus.max(1)) + IDLE_UNCERTAIN * idle_ns as f64;
        let of_idle = self.ledger.idle_ns.map_or(0.0, uncertain);
        rates.iter().map(period).sum::<f64>() * f64::from(cpus.max(1)) + of_idle
    }
}

/// The fields that each sample of an event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Fields {
    /// Whether samples carry data addresses.
    pub address: bool,
    /// Whether samples carry latencies, in core cycles.
    pub latency: bool,
    /// Whether samples carry a data source: level, snoop, TLB, lock.
    pub data_source: bool,
    /// Whether samples carry an outcome of the branch or of the instruction fetch.
    #[serde(default)]
    pub outcome: bool,
}

impl Fields {
    /// Returns whether each sample should carry this fact.
    pub const fn has(&self, fact: Fact) -> bool {
        match fact {
            Fact::Address => self.address,
            Fact::DataSource => self.data_source,
            Fact::Latency => self.latency,
            Fact::Registers => self.outcome,
        }
    }
}

/// The verdict on an event: whether its samples were precise, and what was missing.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The precision that the user requested.
    pub requested: Precision,
    /// The precision level that the kernel granted: 0 arbitrary skid, 1 constant skid, 2 and 3
    /// exact.
    pub granted: u8,
    /// Whether the IPs of this event are exact: by hardware, or by the nature of the event (a page
    /// fault).
    pub precise: bool,
    /// The downgrades and doubts, one sentence each.
    pub findings: Vec<String>,
}

/// The precision that a user requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// As precise as the machine allows; every downgrade is reported.
    #[default]
    Auto,
    /// Exact samples, or the run fails.
    Require,
    /// No precision is requested.
    Off,
}

/// The location of an instruction. Names are resolved while the process lives, so that a report
/// made on another day shows the same ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeLocation {
    /// Whether the instruction is kernel code.
    pub kernel: bool,
    /// The runtime address. For the kernel it is 0 if the user of the run may not see it.
    pub runtime_address: u64,
    /// The module: a file (path as the process saw it), `[kernel]`, or a kernel module.
    pub module: Name,
    /// The build id of the file in lower-case hex; empty if the file has none.
    pub build_id: NameId,
    /// The offset in the file; 0 if there is no file.
    pub file_offset: u64,
    /// The function that contains the instruction: the innermost inlined function.
    pub function: Name,
    /// The distance from the start of the outermost, real function, in bytes.
    pub function_offset: u64,
    /// The source file of the innermost frame.
    pub source: Name,
    /// The line number, 1-based; 0 if it is not known.
    pub line: u32,
    /// The frames that the innermost function is inlined into, from the inside out; the last one is
    /// the real function. Empty if nothing is inlined.
    pub inlined_into: Vec<Frame>,
}

/// A frame that another function is inlined into.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub function: NameId,
    /// The source file; empty if it is not known.
    pub source: NameId,
    /// The line number, 1-based; 0 if it is not known.
    pub line: u32,
}

/// The location that a data address points to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataLocation {
    /// The runtime address, a multiple of [`Meta::address_granule`].
    pub runtime_address: u64,
    /// The region that contains the address: a file, `[heap]`, `[stack]`, `[anon]`, `[kernel]`.
    pub region: Name,
    /// The offset in the file, if the region is a file.
    pub file_offset: u64,
    /// The variable.
    pub variable: Name,
    /// The distance from the start of the variable, in bytes.
    pub variable_offset: u64,
}

/// An index into [`Capture::code`] or [`Capture::data`].
pub type LocationId = u32;

/// An index into [`Capture::stacks`].
pub type StackId = u32;

/// The callers of a sampled instruction. The instruction itself is in the row. It is the precise
/// one, while the kernel's chain begins with the instruction that the interrupt arrived at.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Stack {
    /// The call sites, from the caller of the sampled function to the outermost frame.
    pub callers: Vec<LocationId>,
    /// Whether the interrupt arrived in a different function that the sampled one did not call. The
    /// sampled function is then taken to have returned to it.
    pub elsewhere: bool,
    /// Whether the chain is truncated: it was too long, and the outermost callers are missing.
    pub cut: bool,
    /// Why the outermost caller has no caller; `None` if the kernel or another tool unwound the
    /// chain, and did not say.
    pub end: Option<ChainEnd>,
}

impl Stack {
    /// Returns whether it is known that the outermost callers are missing.
    pub fn lacks_callers(&self) -> bool {
        self.cut || self.end.is_some_and(|end| !end.is_whole())
    }
}

/// The call chain of a row, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Chain {
    /// The call chain is known.
    Known(StackId),
    /// The call chain is not known, for this reason.
    Unknown(Reason),
}

impl Chain {
    /// The chain of a run that records no call chains.
    pub const NONE: Self = Self::Unknown(Reason::NotRecorded);
}

/// A row: one cell in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// The epoch, as an index into [`Meta::epochs`].
    pub epoch: u32,
    /// The event, as an index into [`Meta::events`].
    pub event: u16,
    /// The CPU; `None` if the run does not group by it.
    pub cpu: Option<u16>,
    /// The cgroup id; 0 if it is not recorded.
    pub cgroup_id: u64,
    /// The cgroup path from the root of its hierarchy: `/system.slice/nginx.service`.
    pub cgroup: Name,
    /// The process id; 0 if it is not recorded.
    pub pid: u32,
    /// The thread id; 0 if it is not recorded.
    pub tid: u32,
    /// The process name (comm).
    pub process: Name,
    /// The thread name (comm), which for the first thread is that of the process.
    pub thread: Name,
    /// Whether the sample was taken in the kernel. Also set if the IP is not recorded.
    pub kernel: bool,
    /// The code location; `None` if the run does not group by IP.
    pub code: Option<LocationId>,
    /// The data location; `None` if the run does not group by address, or the sample had none.
    pub data: Option<LocationId>,
    /// The call chain, or why there is none.
    pub stack: Chain,
    /// The `perf_mem_data_src` word; 0 if the run does not group by it.
    pub data_src: u64,
    /// The outcome of the branch or fetch; `None` if the run does not group by it.
    pub outcome: Option<Outcome>,
    /// The latency bucket (`precise_common::latency`); `None` if the run does not group by it, or
    /// the sample had no latency.
    pub latency_bucket: Option<u8>,
    /// Whether the hardware marked the IP as exact.
    pub exact: bool,
    /// The width of the access in bytes; `None` if the hardware does not report it or the run did
    /// not keep it (c2c on AMD keeps it).
    pub width: Option<u16>,
    /// The size of the data's page in bytes; `None` if the run does not group by it, or the kernel
    /// did not know it.
    pub page_size: Option<u64>,
    /// The measured values.
    pub measures: Measures,
}

impl Row {
    /// Returns the decoded data source.
    pub fn data_source(&self) -> DataSource {
        DataSource::decode(self.data_src)
    }
}

/// The measured values of a group of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub struct Measures {
    /// The number of samples.
    pub count: u64,
    /// The number of events that the samples stand for: the sum of their periods.
    pub period_sum: u64,
    /// The sum of the latencies, in core cycles.
    pub latency_sum: u64,
    /// The largest latency, in core cycles.
    pub latency_max: u32,
}

impl Measures {
    /// Adds another group. Saturates, because the numbers of a file cannot be trusted.
    pub fn add(&mut self, other: &Self) {
        let Self { count, period_sum, latency_sum, latency_max } = other;
        self.count = self.count.saturating_add(*count);
        self.period_sum = self.period_sum.saturating_add(*period_sum);
        self.latency_sum = self.latency_sum.saturating_add(*latency_sum);
        self.latency_max = self.latency_max.max(*latency_max);
    }
}
