//! The surroundings of the PMU: firmware, hypervisor, restrictions of BPF, cgroups, and what
//! disturbs measurements.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    machine::Root,
    symbols::cgroup::{Cgroups, PerfEventOn},
};
use precise_model::{CompactSort as _, CpuId};

/// The surroundings of the PMU, read from /proc and /sys. `None`: unknown.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct Surroundings {
    /// The CPU flags about precise samples: `pebs`, `dts` (the debug store), `ibs`, `arch_perfmon`.
    pub cpu_flags: Vec<String>,
    /// Vendor and product, as the firmware names them: `QEMU Standard PC`, `Amazon EC2 c5.metal`.
    pub product: Option<String>,
    /// `kernel.unprivileged_bpf_disabled`: if it is above 0, loading programs requires
    /// capabilities.
    pub unprivileged_bpf_disabled: Option<i64>,
    /// Whether the kernel has the bpf system call.
    pub bpf: bool,
    /// The lockdown mode: `none`, `integrity` or `confidentiality`; `None` if the kernel has no
    /// lockdown.
    pub lockdown: Option<String>,
    /// Whether hyper-threads share a core (SMT is on).
    pub smt: Option<bool>,
    /// The frequency governors of the CPUs, without duplicates.
    pub governors: Vec<String>,
    /// The mount point of the cgroup v2 hierarchy.
    pub cgroup_v2: Option<String>,
    /// Whether cgroup v1 hierarchies are mounted too.
    pub cgroup_v1: bool,
    /// The hierarchy of the perf_event controller: `v2`, `v1` or `nowhere`.
    pub perf_event_on: Option<&'static str>,
    /// Whether line information of the running kernel is installed.
    pub kernel_lines: bool,
    /// Whether the running kernel is a Debian package, which has another with its line information.
    pub kernel_packaged: bool,
}

impl Surroundings {
    /// Reads the surroundings. `release` is the kernel's release.
    pub fn read(root: &Root, release: &str) -> Self {
        let text = |path: &str| root.read(path).ok().filter(|text| !text.is_empty());
        let number = |path: &str| text(path).and_then(|text| text.parse().ok());
        let mounts = text("/proc/self/mountinfo").unwrap_or_default();
        let report = Cgroups::open(&root.0).ok().map(|cgroups| cgroups.report().clone());
        let product = ["sys_vendor", "product_name"].map(|name| text(&format!("/sys/class/dmi/id/{name}")));
        Self {
            cpu_flags: flags(&root.cpuinfo().unwrap_or_default()),
            product: product.into_iter().flatten().reduce(|vendor, name| format!("{vendor} {name}")),
            unprivileged_bpf_disabled: number("/proc/sys/kernel/unprivileged_bpf_disabled"),
            // This sysctl exists exactly if the kernel has CONFIG_BPF_SYSCALL
            // (kernel/bpf/syscall.c).
            bpf: root.path("/proc/sys/kernel/unprivileged_bpf_disabled").exists(),
            lockdown: text("/sys/kernel/security/lockdown").and_then(|modes| {
                let (_, rest) = modes.split_once('[')?;
                Some(rest.split_once(']')?.0.to_owned())
            }),
            smt: text("/sys/devices/system/cpu/smt/active").map(|active| active == "1"),
            governors: governors(root),
            cgroup_v2: report.as_ref().and_then(|r| Some(r.v2.as_ref()?.display().to_string())),
            cgroup_v1: mounts.lines().any(|line| line.contains(" - cgroup ")),
            perf_event_on: report.map(|report| match report.perf_event {
                PerfEventOn::V2 => "v2",
                PerfEventOn::V1 { .. } => "v1",
                PerfEventOn::Nowhere => "nowhere",
            }),
            kernel_lines: ["/usr/lib/debug/boot/vmlinux-", "/usr/lib/debug/lib/modules/", "/boot/vmlinux-"]
                .iter()
                .any(|place| !release.is_empty() && root.path(&format!("{place}{release}")).exists()),
            kernel_packaged: root.path(&format!("/var/lib/dpkg/info/linux-image-{release}.list")).exists(),
        }
    }

    /// Returns whether the CPU reports this flag.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.cpu_flags.iter().any(|has| has == flag)
    }
}

fn flags(cpuinfo: &str) -> Vec<String> {
    let wanted = |flag: &&str| matches!(*flag, "pebs" | "dts" | "ibs" | "arch_perfmon" | "perfctr_core");
    CpuId::flags(cpuinfo).filter(wanted).map(str::to_owned).collect()
}

fn governors(root: &Root) -> Vec<String> {
    const FOLDER: &str = "/sys/devices/system/cpu/cpufreq";
    let policies = root.list(FOLDER).unwrap_or_default();
    let mut found: Vec<String> = policies
        .iter()
        .filter(|name| name.starts_with("policy"))
        .filter_map(|name| root.read(&format!("{FOLDER}/{name}/scaling_governor")).ok())
        .collect();
    found.compact_sort();
    found.dedup();
    found
}
