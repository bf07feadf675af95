//! The result of `precise c2c`.

use std::collections::{BTreeMap, BTreeSet};

use precise_common::hitm::Hitm;
use schemars::JsonSchema;
use serde::Serialize;

use super::SharingVerdict;
use crate::about::{EventSummary, Run};
use crate::stats::{Samples, Share};
use crate::typing::AccessedField;

/// Cache lines that cores contend for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct C2c {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// One entry per event. Loads and stores of different events are never added up.
    pub events: Vec<C2cEvent>,
    /// Number of loads that found their line modified in another core's cache (HITM).
    pub hitm: u64,
    /// If addresses were kept only for lines with a HITM load: the maximum number of such lines.
    /// Else `None`.
    pub promoted_lines: Option<u64>,
    /// Number of lines in the capture without a HITM load.
    pub quiet_lines: usize,
    /// Contended lines, those with most HITM loads first. Empty if there are too few.
    pub lines: Vec<SharedLine>,
    /// Number of lines that the limit left out, and the number of their HITM loads.
    pub left_out: (usize, u64),
    /// The HITM loads of these lines with their weights.
    #[serde(skip)]
    pub left_out_weight: Samples,
    /// The cgroups and processes that these lines move between.
    pub pairs: Vec<ProcessPair>,
    /// Common names of the cgroups in `pairs`, by cgroup path. Contains only cgroups that belong to
    /// a unit, a container or a pod.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroup_names: BTreeMap<String, String>,
    /// Number of HITM loads that a ranking needs. Present if there are fewer: the order of the
    /// lines is then not reliable.
    pub too_few: Option<u64>,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// The samples of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct C2cEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Number of samples of the event.
    pub samples: u64,
    /// Number of samples that are loads.
    pub loads: u64,
    /// The sampled loads with their weights.
    #[serde(skip)]
    pub weight: Samples,
    /// Number of samples that are stores.
    pub stores: u64,
    /// Number of samples that belong to no line: the hardware gave no address, or the address was
    /// not kept because the line had no HITM load.
    pub elsewhere: u64,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// Numbers of HITM loads by the cache that held the line.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Classes {
    /// Number of HITM loads of all classes.
    pub total: u64,
    /// Number of HITM loads by class, nearest cache first: `local` and `remote` on Intel; `same
    /// CCX`, `same node`, `other CCX` and `other node` on AMD.
    #[serde(serialize_with = "by_name")]
    #[schemars(with = "std::collections::BTreeMap<String, u64>")]
    pub by_class: Vec<(Hitm, u64)>,
}

fn by_name<S: serde::Serializer>(classes: &[(Hitm, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(classes.iter().map(|(class, count)| (class.name(), count)))
}

impl Classes {
    /// Adds `count` loads of a class.
    pub fn add(&mut self, class: Hitm, count: u64) {
        self.total = self.total.saturating_add(count);
        match self.by_class.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => self.by_class[at].1 = self.by_class[at].1.saturating_add(count),
            Err(at) => self.by_class.insert(at, (class, count)),
        }
    }

    /// Returns the number of loads of a class.
    pub fn of(&self, class: Hitm) -> u64 {
        self.by_class.iter().find(|(c, _)| *c == class).map_or(0, |(_, count)| *count)
    }
}

/// A contended cache line.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SharedLine {
    /// Address of the first byte. If several processes map the line, this is the address in one of
    /// them.
    #[serde(serialize_with = "hex")]
    #[schemars(with = "String")]
    pub address: u64,
    /// Memory region of the line: a file, `[heap]`, `[anon]` …; if it is unknown, the reason in
    /// brackets.
    pub region: String,
    /// Names of the variables in the line, if known.
    pub variables: Vec<String>,
    /// Kind of sharing: false, true, or why it cannot be decided.
    pub verdict: SharingVerdict,
    /// Number of HITM loads, by class.
    pub hitm: Classes,
    /// The HITM loads with their weights.
    #[serde(skip)]
    pub weight: Samples,
    /// Fraction of all HITM loads.
    pub share: Share,
    /// Average latency of the HITM loads of this line, in core cycles; `None` if they have none.
    pub hitm_average: Option<f64>,
    /// Number of sampled loads.
    pub loads: u64,
    /// Number of sampled stores. Locked loads, which also write, are not counted.
    pub stores: u64,
    /// CPUs that accessed the line, if recorded.
    pub cpus: BTreeSet<u16>,
    /// NUMA nodes of these CPUs, as far as known.
    pub nodes: BTreeSet<u32>,
    /// Threads that accessed the line, if recorded: process id and thread id.
    pub threads: BTreeSet<(u32, u32)>,
    /// The accesses to the line, by offset.
    pub accesses: Vec<SharedAccess>,
    /// The byte ranges that are used, each with its number of threads.
    pub fields: Vec<SharedBytes>,
    /// What to do about the line, one sentence each.
    pub advice: Vec<String>,
    /// Pairs of processes that read and write this line.
    pub pairs: Vec<ProcessPair>,
}

fn hex<S: serde::Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{address:#x}"))
}

/// Source of the width of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WidthFrom {
    /// The hardware reported the width.
    Hardware,
    /// The width is that of the instruction's operand.
    Instruction,
    /// The width is unknown; 1 to 8 bytes are assumed.
    Assumed,
}

impl WidthFrom {
    /// Returns the source as one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Instruction => "instruction",
            Self::Assumed => "assumed",
        }
    }
}

/// Accesses to the same bytes by the code of one process.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SharedAccess {
    /// Offset of the first byte from the start of the line.
    pub offset: u32,
    /// Width in bytes; `None` if it is unknown.
    pub width: Option<u32>,
    /// Source of the width.
    pub width_from: WidthFrom,
    /// LOAD, STORE, …; `N/A` if the data source does not tell.
    pub op: &'static str,
    /// Whether the access writes: stores, and locked instructions, which read and write.
    pub writes: bool,
    /// Number of samples.
    pub samples: u64,
    /// Number of samples that are HITM loads.
    pub hitm: u64,
    /// Function, or the reason why it is unknown.
    pub function: String,
    /// Source file and line, or the reason why they are unknown.
    pub line: String,
    /// Process name, or the reason why it is unknown.
    pub process: String,
    /// Process id; 0 if it was not recorded.
    pub pid: u32,
    /// Cgroup, or the reason why it is unknown.
    pub cgroup: String,
    /// Thread ids, if recorded.
    pub threads: BTreeSet<u32>,
    /// CPUs, if recorded.
    pub cpus: BTreeSet<u16>,
    /// Variable and distance from its start in bytes, if it has a name.
    pub variable: Option<(String, u64)>,
    /// The field of the object, if the debug information of the binary says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<AccessedField>,
}

/// A range of bytes that are used together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SharedBytes {
    /// Offset of the first byte from the start of the line.
    pub offset: u32,
    /// Length in bytes; accesses of unknown width count as 1 byte.
    pub bytes: u32,
    /// Variable and distance from its start in bytes, if it has a name.
    pub variable: Option<(String, u64)>,
    /// Number of threads that use these bytes; of CPUs if threads were not recorded.
    pub users: usize,
    /// Number of those that write these bytes.
    pub writers: usize,
}

/// A process that found lines modified, and a process that writes these lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct ProcessPair {
    /// Cgroup of the reader.
    pub reader_cgroup: String,
    /// Reader: process name and id.
    pub reader: String,
    /// Cgroup of the writer.
    pub writer_cgroup: String,
    /// Writer: process name and id.
    pub writer: String,
    /// Number of HITM loads of the reader on lines that the writer writes. A load on a line that
    /// several processes write counts for each of them.
    pub hitm: u64,
}
