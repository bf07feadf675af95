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
        }
    }

    /// Whose it is.
    pub fn vendor(self) -> Vendor {
        match self {
            Self::Zen3 | Self::Zen4 | Self::Zen5 => Vendor::Amd,
            Self::Skl | Self::Icl | Self::Spr => Vendor::Intel,
        }
    }

    /// QEMU's -cpu. Without -cx16, QEMU 7.2 corrupts one 6.12 guest in three: cmpxchg16b leaves garbage in the flags that
    /// an interrupt then saves.
    pub fn qemu_cpu(self) -> String {
        let identity = match self {
            Self::Zen3 => "vendor=AuthenticAMD,family=25,model=1,stepping=1",
            Self::Zen4 => "vendor=AuthenticAMD,family=25,model=17,stepping=1",
            Self::Zen5 => "vendor=AuthenticAMD,family=26,model=2,stepping=1",
            Self::Skl => "vendor=GenuineIntel,family=6,model=85,stepping=7",
            Self::Icl => "vendor=GenuineIntel,family=6,model=106,stepping=7",
            Self::Spr => "vendor=GenuineIntel,family=6,model=143,stepping=7",
        };
        format!("max,-cx16,{identity}")
    }
}
