//! Synthetic trees of sysfs and proc, as Linux 6.12 shows them on these CPUs. Formats, events and
//! `pmu_name` come from arch/x86/events/{intel/core.c,amd/core.c,amd/ibs.c}.

use std::fs;

use tempfile::TempDir;

use super::sysfs::Pmus;
use crate::machine::Root;

/// A tree of files that is deleted on drop.
pub(crate) struct Tree(TempDir);

impl Tree {
    pub(crate) fn new(cpuinfo: &str, release: &str) -> Self {
        Self(tempfile::tempdir().unwrap())
            .file("/proc/cpuinfo", cpuinfo)
            .file("/proc/sys/kernel/osrelease", release)
            .pmu("software", 1, &[])
            .pmu("tracepoint", 2, &[])
            .pmu("breakpoint", 5, &[])
            .pmu("msr", 10, &["format/event=config:0-63", "events/tsc=event=0x00"])
            .pmu(
                "power",
                9,
                &[
                    "format/event=config:0-7",
                    "events/energy-pkg=event=0x02",
                    "events/energy-pkg.scale=2.3e-10",
                    "cpumask=0",
                ],
            )
    }

    pub(crate) fn root(&self) -> Root {
        Root(self.0.path().to_owned())
    }

    pub(crate) fn pmus(&self) -> Pmus {
        Pmus::read(&self.root())
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        let path = self.root().path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    /// Adds a PMU; each file is written as `path=text`.
    pub(crate) fn pmu(mut self, name: &str, type_: u32, files: &[&str]) -> Self {
        let folder = format!("/sys/bus/event_source/devices/{name}");
        self = self.file(&format!("{folder}/type"), &type_.to_string());
        for file in files {
            let (path, text) = file.split_once('=').unwrap();
            self = self.file(&format!("{folder}/{path}"), text);
        }
        self
    }
}

fn cpuinfo(vendor: &str, family: u32, model: u32, name: &str, flags: &str) -> String {
    format!(
        "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n\
         model name\t: {name}\nstepping\t: 1\nflags\t\t: fpu lm {flags}\n\nprocessor\t: 1\nvendor_id\t: {vendor}\n"
    )
}

const INTEL: [&str; 11] = [
    "format/event=config:0-7",
    "format/umask=config:8-15",
    "format/edge=config:18",
    "format/pc=config:19",
    "format/any=config:21",
    "format/inv=config:23",
    "format/cmask=config:24-31",
    "format/ldlat=config1:0-15",
    "format/offcore_rsp=config1:0-63",
    "events/cpu-cycles=event=0x3c",
    "events/mem-loads=event=0xcd,umask=0x1,ldlat=3",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    INTEL.iter().copied().chain(more.iter().copied()).collect()
}

/// The format of the front-end register, since Skylake.
const FRONTEND: &str = "format/frontend=config1:0-23";

/// A core from Haswell to Ice Lake, which samples stores with MEM_INST_RETIRED.ALL_STORES.
fn stores_retired(model: u32, name: &str, pmu_name: &str, more: &[&str]) -> Tree {
    let pmu_name = format!("caps/pmu_name={pmu_name}");
    let files = ["events/mem-stores=event=0xd0,umask=0x82", "caps/max_precise=0", &pmu_name];
    Tree::new(&cpuinfo("GenuineIntel", 6, model, name, ""), "6.12.0")
        .pmu("cpu", 4, &with(&files))
        .pmu("cpu", 4, more)
}

pub(crate) fn hsw() -> Tree {
    stores_retired(63, "Intel(R) Xeon(R) CPU E5-2680 v3", "haswell", &[])
}

pub(crate) fn bdw() -> Tree {
    stores_retired(79, "Intel(R) Xeon(R) CPU E5-2680 v4", "broadwell", &[])
}

pub(crate) fn skl() -> Tree {
    stores_retired(94, "Intel(R) Core(TM) i7-6700", "skylake", &[FRONTEND])
}

pub(crate) fn clx() -> Tree {
    stores_retired(85, "Intel(R) Xeon(R) Gold 6248", "skylake", &[FRONTEND])
}

pub(crate) fn icx() -> Tree {
    stores_retired(106, "Intel(R) Xeon(R) Platinum 8380", "icelake", &[FRONTEND])
}

const GOLDEN_COVE: [&str; 4] = [
    FRONTEND,
    "events/mem-stores=event=0xcd,umask=0x2",
    "events/mem-loads-aux=event=0x03,umask=0x82",
    "caps/max_precise=3",
];

pub(crate) fn spr() -> Tree {
    let tree = Tree::new(&cpuinfo("GenuineIntel", 6, 143, "Intel(R) Xeon(R) Platinum 8480+", ""), "6.12.0");
    tree.pmu("cpu", 4, &with(&GOLDEN_COVE)).pmu("cpu", 4, &["caps/pmu_name=sapphire_rapids"])
}

pub(crate) fn gnr() -> Tree {
    spr().pmu("cpu", 4, &["caps/pmu_name=granite_rapids"])
}

pub(crate) fn adl() -> Tree {
    Tree::new(&cpuinfo("GenuineIntel", 6, 151, "12th Gen Intel(R) Core(TM) i9-12900K", ""), "6.12.0")
        .pmu("cpu_core", 4, &with(&GOLDEN_COVE))
        .pmu("cpu_core", 4, &["caps/pmu_name=alderlake_hybrid", "cpus=0-15"])
        .pmu("cpu_atom", 8, &INTEL)
        .pmu(
            "cpu_atom",
            8,
            &[
                // The driver's text, padded with zeros to the length that includes the big cores'
                // encoding.
                "events/mem-loads=event=0xd0,umask=0x5,ldlat=3\0\0\0\0",
                "events/mem-stores=event=0xd0,umask=0x6\0\0\0\0",
                "caps/pmu_name=alderlake_hybrid",
                "cpus=16-23",
            ],
        )
}

pub(crate) fn mtl() -> Tree {
    // The big cores need no auxiliary event for loads, and sysfs shows none.
    let big =
        [FRONTEND, "events/mem-stores=event=0xcd,umask=0x2", "caps/pmu_name=meteorlake_hybrid", "cpus=0-11"];
    Tree::new(&cpuinfo("GenuineIntel", 6, 170, "Intel(R) Core(TM) Ultra 7 155H", ""), "6.12.0")
        .pmu("cpu_core", 4, &with(&big))
        .pmu("cpu_atom", 10, &INTEL)
        .pmu(
            "cpu_atom",
            10,
            &[
                "events/mem-loads=event=0xd0,umask=0x5,ldlat=3",
                "events/mem-stores=event=0xd0,umask=0x6",
                "caps/pmu_name=meteorlake_hybrid",
                "cpus=12-21",
            ],
        )
}

/// Lion Cove and Skymont, which have no table.
pub(crate) fn lnl() -> Tree {
    mtl().pmu("cpu_core", 4, &["caps/pmu_name=lunarlake_hybrid"]).pmu(
        "cpu_atom",
        10,
        &["caps/pmu_name=lunarlake_hybrid"],
    )
}

fn amd(family: u32, model: u32, name: &str, release: &str) -> Tree {
    Tree::new(&cpuinfo("AuthenticAMD", family, model, name, "ibs"), release)
        .pmu(
            "cpu",
            4,
            &[
                "format/event=config:0-7,32-35",
                "format/umask=config:8-15",
                "format/inv=config:23",
                "format/cmask=config:24-31",
                "events/cpu-cycles=event=0x76",
                "caps/max_precise=0",
            ],
        )
        .pmu("ibs_op", 11, &["format/cnt_ctl=config:19"])
        .pmu("ibs_fetch", 10, &["format/rand_en=config:57"])
}

pub(crate) fn zen2() -> Tree {
    amd(0x17, 0x31, "AMD EPYC 7742 64-Core Processor", "6.1.0-28-amd64")
}

pub(crate) fn zen3() -> Tree {
    amd(0x19, 0x21, "AMD Ryzen 9 5950X 16-Core Processor", "6.1.0-28-amd64")
}

/// Zen 3 server CPUs, which have more errata.
pub(crate) fn milan() -> Tree {
    amd(0x19, 0x01, "AMD EPYC 7763 64-Core Processor", "6.1.0-28-amd64")
}

pub(crate) fn zen4() -> Tree {
    let tree = amd(0x19, 0x11, "AMD EPYC 9254 24-Core Processor", "6.14.0");
    tree.pmu(
        "ibs_op",
        11,
        &["format/l3missonly=config:16", "format/swfilt=config2:0", "caps/zen4_ibs_extensions=1"],
    )
    .pmu("ibs_fetch", 10, &["format/l3missonly=config:59", "format/swfilt=config2:0"])
}

pub(crate) fn zen5() -> Tree {
    let tree = amd(0x1a, 0x02, "AMD EPYC 9755 128-Core Processor", "6.15.0");
    tree.pmu(
        "ibs_op",
        11,
        &["format/l3missonly=config:16", "format/swfilt=config2:0", "format/ldlat=config1:0-11"],
    )
}

/// A guest without a CPU PMU.
pub(crate) fn vm() -> Tree {
    Tree::new(
        &cpuinfo("GenuineIntel", 6, 85, "Intel(R) Xeon(R) Processor @ 2.50GHz", "hypervisor"),
        "6.18.44",
    )
}

/// An AMD guest: a CPU PMU, no IBS.
pub(crate) fn amd_guest() -> Tree {
    Tree::new(&cpuinfo("AuthenticAMD", 0x19, 0x11, "AMD EPYC 9R14", "hypervisor"), "6.12.0").pmu(
        "cpu",
        4,
        &["format/event=config:0-7,32-35", "format/umask=config:8-15"],
    )
}
