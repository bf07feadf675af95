//! The CPUs and PMUs that a guest can emulate.

use clap::ValueEnum;

/// The vendor whose driver runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverVendor {
    /// IBS.
    Amd,
    /// PEBS.
    Intel,
}

impl DriverVendor {
    /// Returns the folder of its module in tests/lab/modules, which is also its name in tests.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Amd => "amd",
            Self::Intel => "intel",
        }
    }

    /// Returns the name of its module.
    pub fn module(self) -> &'static str {
        match self {
            Self::Amd => "lab_amd",
            Self::Intel => "lab_intel",
        }
    }

    /// Returns the files of arch/x86/events that its module is compiled from.
    pub fn kernel_files(self) -> &'static [&'static str] {
        match self {
            Self::Amd => &["amd/ibs.c"],
            Self::Intel => &["core.c", "utils.c", "intel/core.c", "intel/ds.c", "intel/lbr.c"],
        }
    }
}

/// A PMU that a guest can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GuestPmu {
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
    /// PMU of a KVM guest since Linux 6.9: PEBS records with exact IPs and nothing else
    GuestPebs,
    /// Counters without PEBS
    Nopebs,
    /// No PMU and no module: software events only
    #[value(name = "none")]
    Software,
}

impl GuestPmu {
    /// Returns the name in the command line, the tests and the module's parameter.
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
            Self::Software => "none",
        }
    }

    /// Returns the vendor; `None` if there is no PMU to emulate.
    pub fn vendor(self) -> Option<DriverVendor> {
        match self {
            Self::Zen3 | Self::Zen4 | Self::Zen5 => Some(DriverVendor::Amd),
            Self::Skl | Self::Icl | Self::Spr | Self::Adl | Self::GuestPebs | Self::Nopebs => {
                Some(DriverVendor::Intel)
            }
            Self::Software => None,
        }
    }

    /// Returns the name of the vendor in tests.
    pub fn vendor_name(self) -> &'static str {
        self.vendor().map_or("none", DriverVendor::folder)
    }

    /// Returns whether it lacks what tests of its vendor rely on, a PMU called `cpu` with complete
    /// PEBS. Only tests that name it run there.
    pub fn is_special(self) -> bool {
        matches!(self, Self::Adl | Self::GuestPebs | Self::Nopebs | Self::Software)
    }

    /// Returns whether all of its tests run if no PMU is requested. The others differ only a little
    /// from these, so the tests for every generation are enough for them.
    pub fn has_all_tests(self) -> bool {
        !matches!(self, Self::Zen3 | Self::Zen5 | Self::Icl)
    }

    /// Returns the number of the guest's CPUs.
    pub fn cpus(self) -> u8 {
        match self {
            // Two of each type.
            Self::Adl => 4,
            _ => 2,
        }
    }

    /// Returns the argument of QEMU's -cpu. Without -cx16, QEMU 7.2 corrupts one 6.12 guest in
    /// three: cmpxchg16b leaves garbage in the flags, and an interrupt then saves them.
    pub fn qemu_cpu(self) -> String {
        let identity = match self {
            Self::Zen3 | Self::Software => "vendor=AuthenticAMD,family=25,model=1,stepping=1",
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
