//! Presets: what a user wants to know, without a vendor in it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
            Self::Branches | Self::Fetch => "Why does the front end stall?",
        }
    }

    /// What it shows, in a few words.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Cycles => "instructions that take the most cycles",
            Self::Ops => "instructions executed most often",
            Self::Clock => "code that takes the most time, on any machine; addresses skid",
            Self::Skid => "how far imprecise samples land from the right instruction",
            Self::Loads => "slow loads: instruction, address, latency, data source",
            Self::Stores => "stores: instruction, address",
            Self::Mem => "loads and stores together",
            Self::L3Miss => "loads that missed every cache of this socket or core complex",
            Self::L2Miss => "loads that missed the L2 cache",
            Self::Tlb => "loads and stores that missed both TLBs: page walks",
            Self::Locks => "locked instructions: instruction, address",
            Self::Splits => "loads and stores that cross a cache line",
            Self::Faults => "page faults: exact instruction and address, on any machine",
            Self::C2c => "cache lines that move between CPUs",
            Self::Branches => "mispredicted branches",
            Self::Fetch => "instruction fetches that stall the pipeline",
        }
    }
}

impl fmt::Display for Workflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
