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

// The questions that presets are filed under.
const CODE: &str = "Which code is slow?";
const DATA: &str = "Which data is slow?";
const LINES: &str = "Who shares cache lines?";
const FRONT_END: &str = "Why does the front end wait?";

crate::catalogue! {
    /// What a user wants to know.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Preset: (&'static str, &'static str, &'static str) {
        /// Instructions that time is spent on.
        Cycles => ("cycles", CODE, "the instructions that cycles are spent on"),
        /// What is executed.
        Ops => ("ops", CODE, "the instructions that are executed, each as often as it is"),
        /// Time, on any machine.
        Clock => ("clock", CODE, "the code that time is spent in, on any machine; the IPs skid"),
        /// How far ordinary samples are off.
        Skid => ("skid", CODE, "how far samples without precision are from the instruction"),
        /// Loads that are slow.
        Loads => ("loads", DATA, "slow loads: instruction, address, latency, where the data came from"),
        /// Stores.
        Stores => ("stores", DATA, "stores: instruction, address"),
        /// Both.
        Mem => ("mem", DATA, "loads and stores together"),
        /// Loads that miss the last cache.
        L3Miss => ("l3-miss", DATA, "loads that no cache of this socket or core complex answered"),
        /// Loads that miss the L2 cache.
        L2Miss => ("l2-miss", DATA, "loads that the L2 cache did not answer"),
        /// Accesses that miss the TLB.
        Tlb => ("tlb", DATA, "loads and stores whose address both TLBs missed: page walks"),
        /// Accesses across two cache lines.
        Splits => ("splits", DATA, "loads and stores that reach across two cache lines"),
        /// Page faults.
        Faults => ("faults", DATA, "page faults: the exact instruction and address, on any machine"),
        /// Cache lines that CPUs take from each other.
        C2c => ("c2c", LINES, "cache lines that CPUs take from each other"),
        /// Locked accesses.
        Locks => ("locks", LINES, "locked instructions: instruction, address"),
        /// Mispredicted branches.
        Branches => ("branches", FRONT_END, "mispredicted branches"),
        /// Instruction fetches that wait.
        Fetch => ("fetch", FRONT_END, "instruction fetches that the pipeline waits for"),
    }
}

impl Preset {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    /// The preset of a name. An event of the same name (`branches`) gives way to it: whoever means the event
    /// writes it with a modifier or its PMU.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
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
