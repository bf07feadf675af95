//! Presets: questions that a user wants answered, independent of the CPU's vendor.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Dimension;

/// The dimensions of the preset c2c: everything that identifies who touches which bytes. Latencies
/// are summed, not counted by bucket.
pub const C2C_DIMENSIONS: [Dimension; 7] = [
    Dimension::Ip,
    Dimension::Address,
    Dimension::Cgroup,
    Dimension::Process,
    Dimension::Thread,
    Dimension::Cpu,
    Dimension::Source,
];

// The questions under which presets are listed.
const CODE: &str = "Which code is slow?";
const DATA: &str = "Which data is slow?";
const LINES: &str = "Who shares cache lines?";
const FRONT_END: &str = "Why does the front end stall?";

crate::catalogue! {
    /// A preset: a question that a user wants answered.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Preset: (&'static str, &'static str, &'static str) {
        /// Instructions that take the most time.
        Cycles => ("cycles", CODE, "instructions that take the most cycles"),
        /// Instructions that are executed most often.
        Ops => ("ops", CODE, "instructions executed most often"),
        /// Code that takes the most time, on any machine.
        Clock => ("clock", CODE, "code that takes the most time, on any machine; addresses skid"),
        /// Distance between imprecise samples and the right instruction.
        Skid => ("skid", CODE, "how far imprecise samples land from the right instruction"),
        /// Slow loads.
        Loads => ("loads", DATA, "slow loads: instruction, address, latency, data source"),
        /// Stores.
        Stores => ("stores", DATA, "stores: instruction, address"),
        /// Loads and stores together.
        Mem => ("mem", DATA, "loads and stores together"),
        /// Loads that miss the last-level cache.
        L3Miss => ("l3-miss", DATA, "loads that missed every cache of this socket or core complex"),
        /// Loads that miss the L2 cache.
        L2Miss => ("l2-miss", DATA, "loads that missed the L2 cache"),
        /// Accesses that miss the TLB.
        Tlb => ("tlb", DATA, "loads and stores that missed both TLBs: page walks"),
        /// Accesses across two cache lines.
        Splits => ("splits", DATA, "loads and stores that cross a cache line"),
        /// Page faults.
        Faults => ("faults", DATA, "page faults: exact instruction and address, on any machine"),
        /// Cache lines that move between CPUs.
        C2c => ("c2c", LINES, "cache lines that move between CPUs"),
        /// Locked accesses.
        Locks => ("locks", LINES, "locked instructions: instruction, address"),
        /// Mispredicted branches.
        Branches => ("branches", FRONT_END, "mispredicted branches"),
        /// Instruction fetches that stall.
        Fetch => ("fetch", FRONT_END, "instruction fetches that stall the pipeline"),
    }
}

impl Preset {
    /// Returns the name of the preset on the command line.
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    /// Returns the preset with a name; `None` if there is none. The preset comes before an event of
    /// the same name (`branches`); to get the event, write it with a modifier or with its PMU.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Returns the dimensions that captures of this preset are grouped by. `None`: those that its
    /// events have.
    pub const fn dimensions(self) -> Option<&'static [Dimension]> {
        match self {
            Self::C2c => Some(&C2C_DIMENSIONS),
            _ => None,
        }
    }

    /// Returns the question under which the preset is listed.
    pub const fn question(self) -> &'static str {
        self.entry().1
    }

    /// Returns a summary of the preset in a few words.
    pub const fn summary(self) -> &'static str {
        self.entry().2
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
