//! What machine this is, as its /proc and /sys say. Everything is read below a [`Root`], so that the recorded
//! files of another machine are as good as a live one.
//!
//! A file that is missing or odd is no error: the value is `None` or empty, and [`MachineInfo::problems`]
//! says why.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capture::{Machine, Node};

/// More than any file that is read here has: /proc/cpuinfo of a thousand CPUs is about 1.5 MB.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Larger CPU numbers in a list are taken for damage: Linux's own ceiling (`NR_CPUS` of x86 and arm64) is
/// 8192.
const MAX_CPU: u32 = 65_535;

/// The directory that stands for `/`: `/` itself on a live machine, a recorded tree elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(pub PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl Root {
    /// The place of an absolute path of that machine.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.0.join(absolute.trim_start_matches('/'))
    }

    /// The text of a file, without the white space at its ends. Bytes that are no UTF-8 become U+FFFD; what
    /// lies beyond the first 4 MiB is not read.
    ///
    /// # Errors
    /// Those of opening and reading the file.
    pub fn read(&self, absolute: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(self.path(absolute))?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// Those of reading the directory.
    pub fn list(&self, absolute: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(absolute))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    /// Whether this is the running machine itself.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }
}

/// Who made the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// `GenuineIntel`.
    Intel,
    /// `AuthenticAMD`, and `HygonGenuine`, whose kernel drivers are AMD's.
    Amd,
    /// Anyone else, or not known.
    #[default]
    Other,
}

/// The CPU as the first block of /proc/cpuinfo has it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuId {
    /// Maker.
    pub vendor: Vendor,
    /// Display family, decimal as in /proc/cpuinfo: 6 for Intel Core, 25 (19h) for Zen 3 and Zen 4.
    pub family: u32,
    /// Display model.
    pub model: u32,
    /// Stepping.
    pub stepping: u32,
    /// The marketing name; empty when not known.
    pub name: String,
    /// The `hypervisor` flag: this is a virtual machine.
    pub hypervisor: bool,
    /// The `lm` flag: a 64-bit x86.
    pub long_mode: bool,
}

impl CpuId {
    /// Reads the first block of a /proc/cpuinfo.
    pub fn parse(cpuinfo: &str) -> Self {
        let mut cpu = Self::default();
        for line in cpuinfo.lines().take_while(|line| !line.trim().is_empty()) {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            match key.trim() {
                "vendor_id" => {
                    cpu.vendor = match value {
                        "GenuineIntel" => Vendor::Intel,
                        "AuthenticAMD" | "HygonGenuine" => Vendor::Amd,
                        _ => Vendor::Other,
                    }
                }
                "cpu family" => cpu.family = value.parse().unwrap_or(0),
                "model" => cpu.model = value.parse().unwrap_or(0),
                "stepping" => cpu.stepping = value.parse().unwrap_or(0),
                "model name" => cpu.name = value.to_owned(),
                "flags" => {
                    for flag in value.split_ascii_whitespace() {
                        cpu.hypervisor |= flag == "hypervisor";
                        cpu.long_mode |= flag == "lm";
                    }
                }
                _ => {}
            }
        }
        cpu
    }

    /// Whether IBS of this CPU has errata 1238 and 1293: Zen 3, family 19h, models 00h-0Fh.
    ///
    /// Source: tools/perf/util/amd-sample-raw.c.
    pub fn ibs_zen3_errata(&self) -> bool {
        self.vendor == Vendor::Amd && self.family == 0x19 && self.model <= 0x0f
    }

    /// Whether IBS of this CPU tells the caches of core complexes apart: Zen 4 and later.
    ///
    /// Source: `bsp_init_amd()`, arch/x86/kernel/cpu/amd.c of Linux 6.12, for what is Zen 4; `g_zen4_data_src`,
    /// arch/x86/events/amd/ibs.c.
    pub fn ibs_tells_ccx(&self) -> bool {
        self.vendor == Vendor::Amd
            && (self.family > 0x19 || self.family == 0x19 && matches!(self.model, 0x10..=0x1f | 0x60..=0xaf))
    }

    /// Whether IBS of this CPU cannot tell modified lines of other caches (`CacheHitSt` is not valid): Zen 3.
    ///
    /// Source: `perf_ibs_cache_hit_st_valid()`, arch/x86/events/amd/ibs.c: family 19h, models 00h-0Fh and
    /// 20h-5Fh.
    pub fn ibs_without_hitm(&self) -> bool {
        self.vendor == Vendor::Amd && self.family == 0x19 && matches!(self.model, 0x00..=0x0f | 0x20..=0x5f)
    }
}

/// A kernel version, without what distributions append to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, JsonSchema)]
pub struct KernelVersion {
    /// The 6 of 6.12.3.
    pub major: u32,
    /// The 12 of 6.12.3.
    pub minor: u32,
    /// The 3 of 6.12.3.
    pub patch: u32,
}

impl KernelVersion {
    /// The version at the start of a release: `6.1.0-28-amd64` is 6.1.0. `None` when there is none.
    pub fn parse(release: &str) -> Option<Self> {
        let mut parts = release.trim().splitn(3, '.');
        let major = parts.next()?.parse().ok()?;
        let minor = leading_number(parts.next()?)?;
        let patch = parts.next().and_then(leading_number).unwrap_or(0);
        Some(Self { major, minor, patch })
    }

    /// Whether this is `major.minor` or newer. Distributions carry changes back: where a behaviour can be
    /// probed, probe it.
    pub fn at_least(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

impl std::fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The sysctls that decide what may be sampled, and how often. `None`: the file was not there, or held no
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Sysctls {
    /// `kernel.perf_event_paranoid`: 2 refuses kernel samples, 1 refuses all-CPU events, to users without
    /// CAP_PERFMON (3 and 4 of Debian and Ubuntu refuse everything).
    pub perf_event_paranoid: Option<i64>,
    /// `kernel.perf_event_max_sample_rate`, samples per second and CPU. The kernel lowers it by itself when
    /// its interrupts take too long.
    pub perf_event_max_sample_rate: Option<i64>,
    /// `kernel.perf_cpu_time_max_percent` of a CPU's time; 0 and 100 switch the limit off.
    pub perf_cpu_time_max_percent: Option<i64>,
    /// `kernel.perf_event_mlock_kb`, KiB per CPU that a user without CAP_IPC_LOCK may map.
    pub perf_event_mlock_kb: Option<i64>,
    /// `kernel.nmi_watchdog`: 1 when it holds a hardware counter on every CPU.
    pub nmi_watchdog: Option<i64>,
    /// `kernel.kptr_restrict`: above 0 /proc/kallsyms hides addresses (1: from users without CAP_SYSLOG; 2:
    /// from all).
    pub kptr_restrict: Option<i64>,
}

impl Sysctls {
    /// Reads them. Each missing one adds a sentence to `problems`.
    pub fn read(root: &Root, problems: &mut Vec<String>) -> Self {
        let mut number = |name: &str| {
            let path = format!("/proc/sys/kernel/{name}");
            match root.read(&path) {
                Ok(text) => match text.parse() {
                    Ok(number) => Some(number),
                    Err(_) => {
                        problems.push(format!("{path} holds no number: '{text}'"));
                        None
                    }
                },
                Err(error) => {
                    problems.push(format!("{path} cannot be read: {error}"));
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

/// Everything about the machine that is not a PMU.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct MachineInfo {
    /// What a capture keeps of it.
    pub machine: Machine,
    /// The CPU.
    pub cpu: CpuId,
    /// The kernel's version; `None` when its release is not readable.
    pub kernel: Option<KernelVersion>,
    /// Numbers of the CPUs that run.
    pub online: Vec<u32>,
    /// Numbers of the CPUs that may ever run: what per-CPU kernel memory is sized by.
    pub possible: Vec<u32>,
    /// Limits.
    pub sysctls: Sysctls,
    /// What could not be read, one sentence each.
    pub problems: Vec<String>,
}

impl MachineInfo {
    /// Reads it. Never fails: see [`MachineInfo::problems`].
    pub fn read(root: &Root) -> Self {
        let mut problems = Vec::new();
        let mut text = |path: &str| {
            root.read(path).unwrap_or_else(|error| {
                problems.push(format!("{path} cannot be read: {error}"));
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

/// The NUMA nodes. A kernel without NUMA has no such folder, which is no problem.
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

/// `uname -m`. The kernel shows it in /proc/sys/kernel/arch since 6.1; before that, x86 says it by its flags,
/// and this program was built for the machine that it runs on. Empty when nothing says.
fn arch(root: &Root, cpu: &CpuId) -> String {
    match root.read("/proc/sys/kernel/arch") {
        Ok(arch) if !arch.is_empty() => arch,
        _ if cpu.long_mode => "x86_64".to_owned(),
        _ if root.is_live() => std::env::consts::ARCH.to_owned(),
        _ => String::new(),
    }
}

/// The CPUs of a list as the kernel writes it: `0-3,7`. Sorted, each once; an empty text is no CPU.
///
/// # Errors
/// A sentence that says which part is no CPU or range.
pub fn parse_cpu_list(text: &str) -> Result<Vec<u32>, String> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&cpu| cpu <= MAX_CPU);
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(format!("'{part}' is no CPU number (0 to {MAX_CPU}) or range, such as 0-3"));
        };
        if first > last {
            return Err(format!("the range '{part}' runs backwards"));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The shortest list that [`parse_cpu_list`] reads back: `0-3,7`.
pub fn format_cpu_list(cpus: &[u32]) -> String {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if cpu == *last || cpu == last.saturating_add(1) => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let words = ranges.iter().map(|&(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") });
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
