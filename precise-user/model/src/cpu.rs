//! CPUs and kernels as data: the vendor of a CPU, the kernel version, lists of CPU numbers.

use crate::CompactSort as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest CPU number that a list may contain. A larger one means a damaged list: Linux's own
/// limit (`NR_CPUS` of x86 and arm64) is 8192.
const MAX_CPU: u32 = 65_535;

/// The vendor of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// `GenuineIntel`.
    Intel,
    /// `AuthenticAMD`, and also `HygonGenuine`, whose CPUs use AMD's kernel drivers.
    Amd,
    /// Any other vendor, or not known.
    #[default]
    Other,
}

/// The identity of a CPU, from the first block of /proc/cpuinfo.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuId {
    /// The vendor.
    pub vendor: Vendor,
    /// The display family, decimal as in /proc/cpuinfo: 6 for Intel Core, 25 (19h) for Zen 3 and
    /// Zen 4.
    pub family: u32,
    /// The display model.
    pub model: u32,
    /// The stepping.
    pub stepping: u32,
    /// The marketing name; empty if it is not known.
    pub name: String,
    /// Whether the CPU has the `hypervisor` flag: this is a virtual machine.
    pub hypervisor: bool,
    /// Whether the CPU has the `lm` flag: it is a 64-bit x86.
    pub long_mode: bool,
}

impl CpuId {
    /// Reads the first block of /proc/cpuinfo.
    pub fn parse(cpuinfo: &str) -> Self {
        let mut cpu = Self::default();
        for flag in Self::flags(cpuinfo) {
            cpu.hypervisor |= flag == "hypervisor";
            cpu.long_mode |= flag == "lm";
        }
        for (key, value) in first_block(cpuinfo) {
            match key {
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
                _ => {}
            }
        }
        cpu
    }

    /// Returns the flags in the first block of /proc/cpuinfo.
    pub fn flags(cpuinfo: &str) -> impl Iterator<Item = &str> {
        let lists = first_block(cpuinfo).filter(|(key, _)| *key == "flags");
        lists.flat_map(|(_, flags)| flags.split_ascii_whitespace())
    }

    /// Returns whether IBS of this CPU has errata 1238 and 1293: Zen 3, family 19h, models 00h-0Fh.
    ///
    /// Source: tools/perf/util/amd-sample-raw.c.
    pub fn ibs_zen3_errata(&self) -> bool {
        self.vendor == Vendor::Amd && self.family == 0x19 && self.model <= 0x0f
    }

    /// Returns whether IBS of this CPU tells the caches of different core complexes apart: Zen 4
    /// and later.
    ///
    /// Source: `bsp_init_amd()`, arch/x86/kernel/cpu/amd.c of Linux 6.12, for the models of Zen 4;
    /// `g_zen4_data_src`, arch/x86/events/amd/ibs.c.
    pub fn ibs_tells_ccx(&self) -> bool {
        self.vendor == Vendor::Amd
            && (self.family > 0x19 || self.family == 0x19 && matches!(self.model, 0x10..=0x1f | 0x60..=0xaf))
    }

    /// Returns whether IBS of this CPU cannot detect modified lines in other caches (`CacheHitSt`
    /// is not valid): Zen 3.
    ///
    /// Source: `perf_ibs_cache_hit_st_valid()`, arch/x86/events/amd/ibs.c: family 19h, models
    /// 00h-0Fh and 20h-5Fh.
    pub fn ibs_without_hitm(&self) -> bool {
        self.vendor == Vendor::Amd && self.family == 0x19 && matches!(self.model, 0x00..=0x0f | 0x20..=0x5f)
    }
}

/// Returns the keys and values in the first block of /proc/cpuinfo.
fn first_block(cpuinfo: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = cpuinfo.lines().take_while(|line| !line.trim().is_empty());
    lines.filter_map(|line| line.split_once(':')).map(|(key, value)| (key.trim(), value.trim()))
}

/// A kernel version, without the suffix that distributions append.
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
    /// Parses the version at the start of a release: `6.1.0-28-amd64` is 6.1.0. Returns `None` if
    /// there is none.
    pub fn parse(release: &str) -> Option<Self> {
        let mut parts = release.trim().splitn(3, '.');
        let major = parts.next()?.parse().ok()?;
        let minor = leading_number(parts.next()?)?;
        let patch = parts.next().and_then(leading_number).unwrap_or(0);
        Some(Self { major, minor, patch })
    }

    /// Returns whether this is `major.minor` or newer. Distributions backport changes, so probe a
    /// behaviour instead if it can be probed.
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

/// Parses a CPU list as the kernel writes it: `0-3,7`. The result is sorted, without duplicates; an
/// empty text gives no CPUs.
///
/// # Errors
/// Returns a sentence that names the part that is not a CPU or a range.
pub fn parse_cpu_list(text: &str) -> Result<Vec<u32>, String> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&cpu| cpu <= MAX_CPU);
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(format!("'{part}' is not a CPU number (0 to {MAX_CPU}) or a range such as 0-3"));
        };
        if first > last {
            return Err(format!("the range '{part}' is reversed"));
        }
        cpus.extend(first..=last);
    }
    cpus.compact_sort();
    cpus.dedup();
    Ok(cpus)
}

/// Returns the shortest list that [`parse_cpu_list`] parses back: `0-3,7`.
pub fn format_cpu_list(cpus: &[u32]) -> String {
    let mut cpus = cpus.to_vec();
    cpus.compact_sort();
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
#[path = "cpu_tests.rs"]
mod tests;
