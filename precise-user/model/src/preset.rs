//! Presets: what a user wants to know, without a vendor in it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Dimension;

/// What the preset c2c groups by: all that tells who touches which bytes. Latencies are summed, not
/// counted by bucket.
pub const C2C_DIMENSIONS: [Dimension; 7] = [
    Dimension::Ip,
    Dimension::Address,
    Dimension::Cgroup,
    Dimension::Process,
    Dimension::Thread,
    Dimension::Cpu,
    Dimension::Source,
];

// The questions that presets are filed under.
const CODE: &str = "Which code is slow?";
const DATA: &str = "Which data is slow?";
const LINES: &str = "Who shares cache lines?";
const FRONT_END: &str = "Why does the front end stall?";

crate::catalogue! {
    /// What a user wants to know.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Preset: (&'static str, &'static str, &'static str) {
        /// Instructions that time is spent on.
        Cycles => ("cycles", CODE, "instructions that take the most cycles"),
        /// What is executed.
        Ops => ("ops", CODE, "instructions executed most often"),
        /// Time, on any machine.
        Clock => ("clock", CODE, "code that takes the most time, on any machine; addresses skid"),
        /// How far ordinary samples are off.
        Skid => ("skid", CODE, "how far imprecise samples land from the right instruction"),
        /// Loads that are slow.
        Loads => ("loads", DATA, "slow loads: instruction, address, latency, data source"),
        /// Stores.
        Stores => ("stores", DATA, "stores: instruction, address"),
        /// Both.
        Mem => ("mem", DATA, "loads and stores together"),
        /// Loads that miss the last cache.
        L3Miss => ("l3-miss", DATA, "loads that missed every cache of this socket or core complex"),
        /// Loads that miss the L2 cache.
        L2Miss => ("l2-miss", DATA, "loads that missed the L2 cache"),
        /// Accesses that miss the TLB.
        Tlb => ("tlb", DATA, "loads and stores that missed both TLBs: page walks"),
        /// Accesses across two cache lines.
        Splits => ("splits", DATA, "loads and stores that cross a cache line"),
        /// Page faults.
        Faults => ("faults", DATA, "page faults: exact instruction and address, on any machine"),
        /// Cache lines that CPUs take from each other.
        C2c => ("c2c", LINES, "cache lines that move between CPUs"),
        /// Locked accesses.
        Locks => ("locks", LINES, "locked instructions: instruction, address"),
        /// Mispredicted branches.
        Branches => ("branches", FRONT_END, "mispredicted branches"),
        /// Instruction fetches that wait.
        Fetch => ("fetch", FRONT_END, "instruction fetches that stall the pipeline"),
    }
}

impl Preset {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    /// The preset of a name. An event of the same name (`branches`) gives way to it: whoever means
    /// the event writes it with a modifier or its PMU.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// What its captures are grouped by, where its question needs certain dimensions. `None`: what
    /// its events have.
    pub const fn dimensions(self) -> Option<&'static [Dimension]> {
        match self {
            Self::C2c => Some(&C2C_DIMENSIONS),
            _ => None,
        }
    }

    /// The question that it is filed under.
    pub const fn question(self) -> &'static str {
        self.entry().1
    }

    /// What it shows, in a few words.
    pub const fn summary(self) -> &'static str {
        self.entry().2
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
