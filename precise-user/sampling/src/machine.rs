//! Describes a machine from its /proc and /sys. All files are read below a [`Root`], so the
//! recorded files of another machine work as well as a live system.
//!
//! A missing or malformed file is not an error: the value is `None` or empty, and
//! [`MachineInfo::problems`] says why.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use precise_model::{CpuId, KernelVersion, Machine, Node, parse_cpu_list};

/// The limit for one file. It is larger than any file that is read here: /proc/cpuinfo of a
/// thousand CPUs is about 1.5 MB.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The directory that is used as `/`: `/` itself on a live machine, otherwise a recorded tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(pub PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl Root {
    /// Returns where an absolute path of that machine is found on this one.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.0.join(absolute.trim_start_matches('/'))
    }

    /// Reads a file as text and trims white space at both ends. Invalid UTF-8 becomes U+FFFD, and
    /// at most the first 4 MiB are read.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or read.
    pub fn read(&self, absolute: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(self.path(absolute))?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Returns the names in a directory, sorted.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn list(&self, absolute: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(absolute))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    /// Returns whether this is the running machine itself.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }
}

/// The sysctls that limit what may be sampled, and how often. A value is `None` if its file is
/// missing or does not contain a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Sysctls {
    /// `kernel.perf_event_paranoid`: without CAP_PERFMON, 2 forbids kernel samples and 1 forbids
    /// all-CPU events (3 and 4 of Debian and Ubuntu forbid everything).
    pub perf_event_paranoid: Option<i64>,
    /// `kernel.perf_event_max_sample_rate`, in samples per second per CPU. The kernel lowers it if
    /// its sampling interrupts take too long.
    pub perf_event_max_sample_rate: Option<i64>,
    /// `kernel.perf_cpu_time_max_percent`, in percent of a CPU's time; 0 and 100 disable the limit.
    pub perf_cpu_time_max_percent: Option<i64>,
    /// `kernel.perf_event_mlock_kb`, in KiB per CPU: what a user without CAP_IPC_LOCK may map.
    pub perf_event_mlock_kb: Option<i64>,
    /// `kernel.nmi_watchdog`: 1 if the watchdog uses a hardware counter on every CPU.
    pub nmi_watchdog: Option<i64>,
    /// `kernel.kptr_restrict`: if it is above 0, /proc/kallsyms hides addresses (1: from users
    /// without CAP_SYSLOG; 2: from all users).
    pub kptr_restrict: Option<i64>,
}

impl Sysctls {
    /// Reads the sysctls. Each one that is missing or malformed adds a sentence to `problems`.
    pub fn read(root: &Root, problems: &mut Vec<String>) -> Self {
        let mut number = |name: &str| {
            let path = format!("/proc/sys/kernel/{name}");
            match root.read(&path) {
                Ok(text) => match text.parse() {
                    Ok(number) => Some(number),
                    Err(_) => {
                        problems.push(format!("{path} does not hold a number: '{text}'"));
                        None
                    }
                },
                Err(error) => {
                    problems.push(format!("cannot read {path}: {error}"));
                    None
                }
            }
        };
        Self {
            perf_event_paranoid: number("perf_event_paranoid"),
            perf_event_max_sample_rate: number("perf_event_max_sample_rate"),
            perf_cpu_time_max_percent: number("perf_cpu_time_max_percent"),
            perf_event_mlock_kb: number("perf_event_mlock_kb"),
            nmi_watchdog: number("nmi_watchdog"),
            kptr_restrict: number("kptr_restrict"),
        }
    }
}

/// A description of the machine without its PMUs.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct MachineInfo {
    /// The description that a capture stores.
    pub machine: Machine,
    /// The CPU.
    pub cpu: CpuId,
    /// The kernel's version; `None` if its release cannot be read.
    pub kernel: Option<KernelVersion>,
    /// The numbers of the online CPUs.
    pub online: Vec<u32>,
    /// The numbers of the possible CPUs, which determine the size of per-CPU kernel memory.
    pub possible: Vec<u32>,
    /// The kernel's limits on sampling.
    pub sysctls: Sysctls,
    /// What could not be read, one sentence per problem.
    pub problems: Vec<String>,
}

impl MachineInfo {
    /// Reads the description. Never fails: see [`MachineInfo::problems`].
    pub fn read(root: &Root) -> Self {
        let mut problems = Vec::new();
        let mut text = |path: &str| {
            root.read(path).unwrap_or_else(|error| {
                problems.push(format!("cannot read {path}: {error}"));
                String::new()
            })
        };
        let cpu = CpuId::parse(&text("/proc/cpuinfo"));
        let host = text("/proc/sys/kernel/hostname");
        let release = text("/proc/sys/kernel/osrelease");
        let online = text("/sys/devices/system/cpu/online");
        let possible = text("/sys/devices/system/cpu/possible");
        let mut list = |name: &str, text: &str| {
            parse_cpu_list(text).unwrap_or_else(|why| {
                problems.push(format!("/sys/devices/system/cpu/{name}: {why}"));
                Vec::new()
            })
        };
        let (online, possible) = (list("online", &online), list("possible", &possible));
        let sysctls = Sysctls::read(root, &mut problems);
        let machine = Machine {
            host,
            kernel: release.clone(),
            cpu: cpu.name.clone(),
            cpus: u32::try_from(online.len()).unwrap_or(u32::MAX),
            arch: arch(root, &cpu),
            nodes: nodes(root, &mut problems),
            cpu_id: (cpu != CpuId::default()).then(|| cpu.clone()),
        };
        Self { machine, cpu, kernel: KernelVersion::parse(&release), online, possible, sysctls, problems }
    }
}

/// Returns the NUMA nodes. A kernel without NUMA has no such directory, which is not a problem.
fn nodes(root: &Root, problems: &mut Vec<String>) -> Vec<Node> {
    const FOLDER: &str = "/sys/devices/system/node";
    let mut nodes = Vec::new();
    for name in root.list(FOLDER).unwrap_or_default() {
        let Some(id) = name.strip_prefix("node").and_then(|id| id.parse().ok()) else { continue };
        let path = format!("{FOLDER}/{name}/cpulist");
        let cpus = root.read(&path).map_err(|error| error.to_string()).and_then(|text| parse_cpu_list(&text));
        match cpus {
            Ok(cpus) => nodes.push(Node { id, cpus }),
            Err(why) => problems.push(format!("{path}: {why}")),
        }
    }
    nodes.sort_unstable_by_key(|node| node.id);
    nodes
}

/// Returns the architecture as `uname -m` prints it; empty if it is unknown.
///
/// The kernel shows it in /proc/sys/kernel/arch since 6.1. For older kernels, the CPU flags
/// identify x86-64, and on a live machine it is the architecture that this program was built for.
fn arch(root: &Root, cpu: &CpuId) -> String {
    match root.read("/proc/sys/kernel/arch") {
        Ok(arch) if !arch.is_empty() => arch,
        _ if cpu.long_mode => "x86_64".to_owned(),
        _ if root.is_live() => std::env::consts::ARCH.to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
