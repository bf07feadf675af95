//! What the view finds.

use std::collections::{BTreeMap, BTreeSet};

use precise_common::hitm::Hitm;
use schemars::JsonSchema;
use serde::Serialize;

use super::Verdict;
use crate::about::{Event, Run};
use crate::stats::{Samples, Share};

/// Cache lines that cores take from each other.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct C2c {
    /// Where the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// What was sampled. Loads and stores of different events are never added up.
    pub events: Vec<C2cEvent>,
    /// Loads that found their line modified in another core's cache.
    pub hitm: u64,
    /// Where only lines with a HITM load kept addresses: room for so many.
    pub promoted_lines: Option<u64>,
    /// Lines of the capture without one.
    pub quiet_lines: usize,
    /// Lines, the most HITM loads first; empty when there are too few.
    pub lines: Vec<Line>,
    /// Lines that the limit left out, and their HITM loads.
    pub left_out: (usize, u64),
    /// Between which cgroups and processes these lines go.
    pub pairs: Vec<Pair>,
    /// What people call the cgroups of the pairs, by path: those that belong to a unit, a container
    /// or a pod.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroup_names: BTreeMap<String, String>,
    /// HITM loads that are needed to rank; present when there are fewer.
    pub too_few: Option<u64>,
    /// What a reader must know of these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct C2cEvent {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// Samples of it.
    pub samples: u64,
    /// Loads among them.
    pub loads: u64,
    /// The same with what they weigh.
    #[serde(skip)]
    pub weight: Samples,
    /// Stores among them.
    pub stores: u64,
    /// Samples in no line: without an address, as the line had no HITM load, or as the hardware
    /// gave none.
    pub elsewhere: u64,
    /// What a reader must know of these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// HITM loads by whose cache had the line.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Classes {
    /// All of them.
    pub total: u64,
    /// By class, near ones first: `local` and `remote` on Intel; `same CCX`, `same node`, `other
    /// CCX`, `other node` on AMD.
    #[serde(serialize_with = "by_name")]
    #[schemars(with = "std::collections::BTreeMap<String, u64>")]
    pub by_class: Vec<(Hitm, u64)>,
}

fn by_name<S: serde::Serializer>(classes: &[(Hitm, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(classes.iter().map(|(class, count)| (class.name(), count)))
}

impl Classes {
    /// Adds loads of a class.
    pub fn add(&mut self, class: Hitm, count: u64) {
        self.total = self.total.saturating_add(count);
        match self.by_class.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => self.by_class[at].1 = self.by_class[at].1.saturating_add(count),
            Err(at) => self.by_class.insert(at, (class, count)),
        }
    }

    /// Loads of a class.
    pub fn of(&self, class: Hitm) -> u64 {
        self.by_class.iter().find(|(c, _)| *c == class).map_or(0, |(_, count)| *count)
    }
}

/// A cache line.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Line {
    /// Address of its first byte; in the process that took it most where several have it.
    #[serde(serialize_with = "hex")]
    #[schemars(with = "String")]
    pub address: u64,
    /// What it lies in: a file, `[heap]`, `[anon]` …, in brackets why that is not known.
    pub region: String,
    /// Variables in it, where they have names.
    pub variables: Vec<String>,
    /// False or true sharing.
    pub verdict: Verdict,
    /// HITM loads.
    pub hitm: Classes,
    /// The same with what they weigh.
    #[serde(skip)]
    pub weight: Samples,
    /// Part of all HITM loads.
    pub share: Share,
    /// Average latency of its HITM loads, core cycles, where they have one.
    pub hitm_average: Option<f64>,
    /// Loads sampled.
    pub loads: u64,
    /// Stores sampled; locked loads, which write, are not among them.
    pub stores: u64,
    /// CPUs, where recorded.
    pub cpus: BTreeSet<u16>,
    /// Nodes of these CPUs, as far as known.
    pub nodes: BTreeSet<u32>,
    /// Threads, where recorded: process id and thread id.
    pub threads: BTreeSet<(u32, u32)>,
    /// Who touches which bytes, by offset.
    pub accesses: Vec<Access>,
    /// The bytes that are used, each run of them with its threads.
    pub fields: Vec<Field>,
    /// What to do, one sentence each.
    pub advice: Vec<String>,
    /// Who reads what others wrote.
    pub pairs: Vec<Pair>,
}

fn hex<S: serde::Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{address:#x}"))
}

/// Where the width of an access is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WidthFrom {
    /// The hardware said it.
    Hardware,
    /// The instruction's operand.
    Instruction,
    /// Nobody: 1 to 8 bytes are assumed.
    Assumed,
}

impl WidthFrom {
    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Instruction => "instruction",
            Self::Assumed => "assumed",
        }
    }
}

/// Accesses of one process's code to the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Access {
    /// First byte, from the start of the line.
    pub offset: u32,
    /// Bytes; `None` where nobody knows.
    pub width: Option<u32>,
    /// Where that is known from.
    pub width_from: WidthFrom,
    /// LOAD, STORE, …; `N/A` where the data source does not say.
    pub op: &'static str,
    /// Whether it writes: stores, and locked instructions, which read and write.
    pub writes: bool,
    /// Samples.
    pub samples: u64,
    /// HITM loads among them.
    pub hitm: u64,
    /// Function, or why it is not known.
    pub function: String,
    /// Source file and line, or why they are not known.
    pub line: String,
    /// Process name, or why it is not known.
    pub process: String,
    /// Process id; 0 when not recorded.
    pub pid: u32,
    /// Cgroup, or why it is not known.
    pub cgroup: String,
    /// Threads, where recorded.
    pub threads: BTreeSet<u32>,
    /// CPUs, where recorded.
    pub cpus: BTreeSet<u16>,
    /// Variable and distance from its start, where it has a name.
    pub variable: Option<(String, u64)>,
}

/// A run of bytes that are used together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Field {
    /// First byte, from the start of the line.
    pub offset: u32,
    /// Bytes; of accesses whose width nobody knows, 1.
    pub bytes: u32,
    /// Variable and distance from its start, where it has a name.
    pub variable: Option<(String, u64)>,
    /// Threads, or CPUs, that use it.
    pub users: usize,
    /// Those that write it.
    pub writers: usize,
}

/// Readers that found lines modified, and who writes these.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Pair {
    /// Cgroup of the readers.
    pub reader_cgroup: String,
    /// Process of the readers: name and id.
    pub reader: String,
    /// Cgroup of the writers.
    pub writer_cgroup: String,
    /// Process of the writers: name and id.
    pub writer: String,
    /// HITM loads of the readers on lines that the writers write. A line with writers of several
    /// processes counts for each.
    pub hitm: u64,
}
