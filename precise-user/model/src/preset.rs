//! Presets: what a user wants to know, without a vendor in it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Dimension;

/// What the preset c2c groups by: all that tells who touches which bytes. Latencies are summed, not counted by bucket.
pub const C2C_DIMENSIONS: [Dimension; 7] = [
    Dimension::Ip,
    Dimension::Address,
    Dimension::Cgroup,
    Dimension::Process,
    Dimension::Thread,
    Dimension::Cpu,
    Dimension::Source,
];

/// What a user wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Workflow {
    /// Instructions that time is spent on.
    Cycles,
    /// What is executed.
    Ops,
    /// How far ordinary samples are off.
    Skid,
    /// Time, on any machine.
    Clock,
    /// Loads that are slow.
    Loads,
    /// Stores.
    Stores,
    /// Both.
    Mem,
    /// Cache lines that CPUs take from each other.
    C2c,
    /// Loads that miss the last cache.
    L3Miss,
    /// Loads that miss the L2 cache.
    L2Miss,
    /// Accesses that miss the TLB.
    Tlb,
    /// Locked accesses.
    Locks,
    /// Accesses across two cache lines.
    Splits,
    /// Page faults.
    Faults,
    /// Mispredicted branches.
    Branches,
    /// Instruction fetches that wait.
    Fetch,
}

impl Workflow {
    /// Every workflow, grouped by question.
    pub const ALL: [Self; 16] = [
        Self::Cycles,
        Self::Ops,
        Self::Clock,
        Self::Skid,
        Self::Loads,
        Self::Stores,
        Self::Mem,
        Self::L3Miss,
        Self::L2Miss,
        Self::Tlb,
        Self::Splits,
        Self::Faults,
        Self::C2c,
        Self::Locks,
        Self::Branches,
        Self::Fetch,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Ops => "ops",
            Self::Skid => "skid",
            Self::Clock => "clock",
            Self::Loads => "loads",
            Self::Stores => "stores",
            Self::Mem => "mem",
            Self::C2c => "c2c",
            Self::L3Miss => "l3-miss",
            Self::L2Miss => "l2-miss",
            Self::Tlb => "tlb",
            Self::Locks => "locks",
            Self::Splits => "splits",
            Self::Faults => "faults",
            Self::Branches => "branches",
            Self::Fetch => "fetch",
        }
    }

    /// The workflow of a name. An event of the same name (`branches`) gives way to it: whoever means the event
    /// writes it with a modifier or its PMU.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workflow| workflow.name() == name)
    }

    /// What its captures are grouped by, where its question needs certain dimensions. `None`: what its events have.
    pub const fn dimensions(self) -> Option<&'static [Dimension]> {
        match self {
            Self::C2c => Some(&C2C_DIMENSIONS),
            _ => None,
        }
    }

    /// The question that it is filed under.
    pub const fn question(self) -> &'static str {
        match self {
            Self::Cycles | Self::Ops | Self::Clock | Self::Skid => "Which code is slow?",
            Self::Loads
            | Self::Stores
            | Self::Mem
            | Self::L3Miss
            | Self::L2Miss
            | Self::Tlb
            | Self::Splits
            | Self::Faults => "Which data is slow?",
            Self::C2c | Self::Locks => "Who shares cache lines?",
            Self::Branches | Self::Fetch => "Why does the front end wait?",
        }
    }

    /// What it shows, in a few words.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Cycles => "the instructions that cycles are spent on",
            Self::Ops => "the instructions that are executed, each as often as it is",
            Self::Clock => "the code that time is spent in, on any machine; the IPs skid",
            Self::Skid => "how far samples without precision are from the instruction",
            Self::Loads => "slow loads: instruction, address, latency, where the data came from",
            Self::Stores => "stores: instruction, address",
            Self::Mem => "loads and stores together",
            Self::L3Miss => "loads that no cache of this socket or core complex answered",
            Self::L2Miss => "loads that the L2 cache did not answer",
            Self::Tlb => "loads and stores whose address both TLBs missed: page walks",
            Self::Locks => "locked instructions: instruction, address",
            Self::Splits => "loads and stores that reach across two cache lines",
            Self::Faults => "page faults: the exact instruction and address, on any machine",
            Self::C2c => "cache lines that CPUs take from each other",
            Self::Branches => "mispredicted branches",
            Self::Fetch => "instruction fetches that the pipeline waits for",
        }
    }
}

impl fmt::Display for Workflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
