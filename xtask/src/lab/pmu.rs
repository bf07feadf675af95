//! The CPUs that a guest can pretend to be.

use clap::ValueEnum;

/// Whose driver runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// IBS.
    Amd,
    /// PEBS.
    Intel,
}

impl Vendor {
    /// The folder of its module in tests/lab/modules, and how tests name it.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Amd => "amd",
            Self::Intel => "intel",
        }
    }

    /// The name of its module.
    pub fn module(self) -> &'static str {
        match self {
            Self::Amd => "lab_amd",
            Self::Intel => "lab_intel",
        }
    }

    /// The files of arch/x86/events that its module is compiled from.
    pub fn kernel_files(self) -> &'static [&'static str] {
        match self {
            Self::Amd => &["amd/ibs.c"],
            Self::Intel => &["core.c", "utils.c", "intel/core.c", "intel/ds.c", "intel/lbr.c"],
        }
    }
}

/// A PMU that a guest can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pmu {
    /// IBS of Zen 3
    Zen3,
    /// IBS of Zen 4: filter for L3 misses
    Zen4,
    /// IBS of Zen 5: filter for latency
    Zen5,
    /// PEBS format 3, Skylake server
    Skl,
    /// PEBS format 4, Ice Lake server
    Icl,
    /// PEBS format 4, Sapphire Rapids: loads need an auxiliary event
    Spr,
    /// Hybrid, Alder Lake: two kinds of core with a PMU each
    Adl,
    /// What a KVM guest has since Linux 6.9: PEBS records of exact IPs and nothing else
    GuestPebs,
    /// Counters without PEBS
    Nopebs,
}

impl Pmu {
    /// The name that the command line, the tests and the module's parameter use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zen3 => "zen3",
            Self::Zen4 => "zen4",
            Self::Zen5 => "zen5",
            Self::Skl => "skl",
            Self::Icl => "icl",
            Self::Spr => "spr",
            Self::Adl => "adl",
            Self::GuestPebs => "guest-pebs",
            Self::Nopebs => "nopebs",
        }
    }

    /// Whose it is.
    pub fn vendor(self) -> Vendor {
        match self {
            Self::Zen3 | Self::Zen4 | Self::Zen5 => Vendor::Amd,
            Self::Skl | Self::Icl | Self::Spr | Self::Adl | Self::GuestPebs | Self::Nopebs => Vendor::Intel,
        }
    }

    /// Whether it lacks what tests of its vendor rely on, a PMU called `cpu` with all of PEBS: only
    /// tests that name it run there.
    pub fn is_special(self) -> bool {
        matches!(self, Self::Adl | Self::GuestPebs | Self::Nopebs)
    }

    /// Whether every test of its own runs on it when no PMU is asked for. The others differ from
    /// those in little: so much that the tests for every generation show it.
    pub fn has_all_tests(self) -> bool {
        !matches!(self, Self::Zen3 | Self::Zen5 | Self::Icl)
    }

    /// How many CPUs the guest has.
    pub fn cpus(self) -> u8 {
        match self {
            // Two of each kind.
            Self::Adl => 4,
            _ => 2,
        }
    }

    /// QEMU's -cpu. Without -cx16, QEMU 7.2 corrupts one 6.12 guest in three: cmpxchg16b leaves
    /// garbage in the flags that an interrupt then saves.
    pub fn qemu_cpu(self) -> String {
        let identity = match self {
            Self::Zen3 => "vendor=AuthenticAMD,family=25,model=1,stepping=1",
            Self::Zen4 => "vendor=AuthenticAMD,family=25,model=17,stepping=1",
            Self::Zen5 => "vendor=AuthenticAMD,family=26,model=2,stepping=1",
            Self::Skl | Self::Nopebs => "vendor=GenuineIntel,family=6,model=85,stepping=7",
            Self::Icl | Self::GuestPebs => "vendor=GenuineIntel,family=6,model=106,stepping=7",
            Self::Spr => "vendor=GenuineIntel,family=6,model=143,stepping=7",
            Self::Adl => "vendor=GenuineIntel,family=6,model=151,stepping=2",
        };
        format!("max,-cx16,{identity}")
    }
}
