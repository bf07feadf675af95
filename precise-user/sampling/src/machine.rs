//! Facts about a machine, read from /proc and /sys. All files are read below a [`Root`], so that
//! the recorded files of another machine work like a live machine.
//!
//! A missing or malformed file is not an error: the value is `None` or empty, and
//! [`MachineInfo::problems`] gives the reason.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use precise_model::{CompactSort as _, CpuId, KernelVersion, Machine, Node, parse_cpu_list};

/// Upper limit of a file's size, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// What is read of /proc/cpuinfo, in bytes. It has the block of the first CPU, about 2 KB, which is
/// all that is used. The kernel formats a block for each CPU that is read.
const FIRST_CPU_BYTES: u64 = 16 << 10;

const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// The number of the initial pid namespace (`PID_NS_INIT_INO`, include/uapi/linux/nsfs.h).
const INITIAL_PIDS: &str = "pid:[4026531836]";

/// The directory that stands for `/`: `/` itself on a live machine, otherwise a recorded tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(pub PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl Root {
    /// Returns the location below this root of an absolute path of the machine.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.0.join(absolute.trim_start_matches('/'))
    }

    /// Returns the text of a file without leading and trailing white space. Invalid UTF-8 is
    /// replaced by U+FFFD. At most the first 4 MiB are read.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or read.
    pub fn read(&self, absolute: &str) -> io::Result<String> {
        self.start_of(absolute, MAX_FILE_BYTES)
    }

    /// Returns the text of a file, of which at most this number of bytes is read.
    fn start_of(&self, absolute: &str, most: u64) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(self.path(absolute))?.take(most).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Returns the start of /proc/cpuinfo, with the whole block of the first CPU.
    ///
    /// # Errors
    /// Returns a sentence if it cannot be read.
    pub fn cpuinfo(&self) -> Result<String, String> {
        let text = self.start_of("/proc/cpuinfo", FIRST_CPU_BYTES);
        text.map_err(|error| format!("cannot read /proc/cpuinfo: {error}"))
    }

    /// Returns the numbers of the CPUs that the machine has in this state.
    ///
    /// # Errors
    /// Returns a sentence if the kernel's list cannot be read, or is not one.
    pub fn cpus(&self, state: CpuState) -> Result<Vec<u32>, String> {
        let path = match state {
            CpuState::Online => "/sys/devices/system/cpu/online",
            CpuState::Possible => "/sys/devices/system/cpu/possible",
            CpuState::Present => "/sys/devices/system/cpu/present",
        };
        let list = self.read(path).map_err(|error| format!("cannot read {path}: {error}"))?;
        parse_cpu_list(&list).map_err(|why| format!("{path}: {why}"))
    }

    /// Returns the version of the kernel; `None` if its release cannot be read or parsed.
    pub fn kernel(&self) -> Option<KernelVersion> {
        KernelVersion::parse(&self.read(RELEASE).ok()?)
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
        names.compact_sort();
        Ok(names)
    }

    /// Returns whether this process is in the initial pid namespace, in which the kernel knows all
    /// processes.
    pub fn has_initial_pids(&self) -> bool {
        let namespace = fs::read_link(self.path("/proc/self/ns/pid"));
        namespace.is_ok_and(|namespace| namespace.as_os_str() == INITIAL_PIDS)
    }

    /// Returns whether this root is the running machine itself.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }
}

/// A state of a CPU, of which the kernel has a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuState {
    /// It runs.
    Online,
    /// It may come online, now or after it has been added.
    Possible,
    /// The machine has it.
    Present,
}

/// The sysctls that limit sampling. A value is `None` if its file is missing or does not hold a
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Sysctls {
    /// `kernel.perf_event_paranoid`: for users without CAP_PERFMON, 2 refuses kernel samples and 1
    /// refuses all-CPU events (3 and 4, on Debian and Ubuntu, refuse everything).
    pub perf_event_paranoid: Option<i64>,
    /// `kernel.perf_event_max_sample_rate`, in samples per second per CPU. The kernel lowers it by
    /// itself when sampling interrupts take too long.
    pub perf_event_max_sample_rate: Option<i64>,
    /// `kernel.perf_cpu_time_max_percent`, in percent of a CPU's time; 0 and 100 disable the limit.
    pub perf_cpu_time_max_percent: Option<i64>,
    /// `kernel.perf_event_mlock_kb`, in KiB per CPU that a user without CAP_IPC_LOCK may map.
    pub perf_event_mlock_kb: Option<i64>,
    /// `kernel.nmi_watchdog`: 1 if the NMI watchdog holds a hardware counter on every CPU.
    pub nmi_watchdog: Option<i64>,
    /// `kernel.kptr_restrict`: if above 0, /proc/kallsyms hides addresses (1: from users without
    /// CAP_SYSLOG; 2: from all users).
    pub kptr_restrict: Option<i64>,
}

impl Sysctls {
    /// Reads the sysctls. Each one that cannot be read adds a sentence to `problems`.
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

/// All facts about the machine except its PMUs.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct MachineInfo {
    /// The part that a capture stores.
    pub machine: Machine,
    /// Identity and features of the CPU.
    pub cpu: CpuId,
    /// The kernel version; `None` if the kernel release cannot be read or parsed.
    pub kernel: Option<KernelVersion>,
    /// Numbers of the online CPUs.
    pub online: Vec<u32>,
    /// Numbers of the possible CPUs, including those that may come online later. They determine the
    /// size of per-CPU kernel memory.
    pub possible: Vec<u32>,
    /// Numbers of the CPUs that the machine has, including those that are offline; empty if it is
    /// unknown.
    pub present: Vec<u32>,
    /// Whether the machine can run the guests of virtual machines: it has KVM, or the CPU has `svm`
    /// or `vmx`. Samples that are taken while a guest runs have no addresses.
    pub can_run_guests: bool,
    /// Sysctls that limit sampling.
    pub sysctls: Sysctls,
    /// Facts that could not be read, one sentence each.
    pub problems: Vec<String>,
}

impl MachineInfo {
    /// Reads the facts of the machine below `root`. Never fails; see [`MachineInfo::problems`].
    pub fn read(root: &Root) -> Self {
        let mut problems = Vec::new();
        let cpuinfo = known(root.cpuinfo(), &mut problems);
        let cpu = CpuId::parse(&cpuinfo);
        // KVM may be loaded later. With PVM, it needs neither SVM nor VMX.
        let can_run_guests = root.path("/sys/module/kvm").exists()
            || CpuId::flags(&cpuinfo).any(|flag| matches!(flag, "svm" | "vmx"));
        let mut text = |path| {
            known(root.read(path).map_err(|error| format!("cannot read {path}: {error}")), &mut problems)
        };
        let (host, release) = (text("/proc/sys/kernel/hostname"), text(RELEASE));
        let mut list = |state| known(root.cpus(state), &mut problems);
        let (online, possible) = (list(CpuState::Online), list(CpuState::Possible));
        let present = root.cpus(CpuState::Present).unwrap_or_default();
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
        let kernel = KernelVersion::parse(&release);
        Self { machine, cpu, kernel, online, possible, present, can_run_guests, sysctls, problems }
    }
}

/// Returns what was read. A problem is kept, and stands for nothing.
fn known<T: Default>(read: Result<T, String>, problems: &mut Vec<String>) -> T {
    read.unwrap_or_else(|why| {
        problems.push(why);
        T::default()
    })
}

/// Returns the NUMA nodes. A kernel without NUMA has no such folder; the list is then empty, which
/// is not reported as a problem.
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
    nodes.compact_sort_by_key(|node| node.id);
    nodes
}

/// Returns the architecture as `uname -m` prints it; empty if unknown. Kernels since 6.1 show it in
/// /proc/sys/kernel/arch. On older kernels, the CPU flags identify x86-64, and a live machine has
/// the architecture that this program was built for.
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
