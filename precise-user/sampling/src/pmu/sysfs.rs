//! The PMUs of a machine, as /sys/bus/event_source/devices shows them.
//!
//! The layout is documented in
//! Documentation/ABI/testing/sysfs-bus-event_source-devices-{format,events,caps} of Linux 6.12.

use std::collections::BTreeMap;
use std::fmt;

use crate::machine::Root;
use precise_model::{CompactSort as _, CpuId, KernelVersion, parse_cpu_list};

const DEVICES: &str = "/sys/bus/event_source/devices";

/// The PMUs of a machine, and the facts about its CPU and kernel that decide how to use them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pmus {
    /// The PMUs, sorted by name.
    pub pmus: Vec<Pmu>,
    /// The machine's CPU.
    pub cpu: CpuId,
    /// The version of the running kernel; `None` if its release cannot be read.
    pub kernel: Option<KernelVersion>,
    /// What could not be read or parsed, one sentence per problem.
    pub problems: Vec<String>,
}

/// One PMU.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pmu {
    /// The name of its directory: `cpu`, `cpu_core`, `ibs_op`, …
    pub name: String,
    /// `perf_event_attr.type` of its events.
    pub type_: u32,
    /// The terms of its events, and the bits of the attributes that each one sets.
    pub format: BTreeMap<String, TermFormat>,
    /// The kernel's named events, as terms: `mem-loads` is `event=0xcd,umask=0x1,ldlat=3`.
    pub events: BTreeMap<String, String>,
    /// The driver's capabilities, by file name in `caps`.
    pub caps: BTreeMap<String, String>,
    /// The only CPUs on which it can be opened (file `cpus`): one kind of core of a hybrid CPU.
    /// `None`: all CPUs.
    pub cpus: Option<Vec<u32>>,
    /// One CPU per package or die (file `cpumask`), for a PMU outside the cores. Such PMUs count
    /// and do not sample.
    pub cpumask: Option<Vec<u32>>,
}

/// A 64-bit word of `perf_event_attr` that a term writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// `config`.
    Config,
    /// `config1`.
    Config1,
    /// `config2`.
    Config2,
    /// `config3` (since Linux 6.3).
    Config3,
}

impl Word {
    /// Returns the word with this name in a format file.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "config" => Some(Self::Config),
            "config1" => Some(Self::Config1),
            "config2" => Some(Self::Config2),
            "config3" => Some(Self::Config3),
            _ => None,
        }
    }

    /// Returns the index of the word in an array of all four.
    pub fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["config", "config1", "config2", "config3"][self.index()])
    }
}

/// The bits that a term sets. The lowest bits of the value go into the first range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermFormat {
    /// The word.
    pub word: Word,
    /// The first and last bit of each range, 0 to 63.
    pub ranges: Vec<(u8, u8)>,
}

impl TermFormat {
    /// Parses a format file: `config:0-7,32-35`, `config1:0-15`, `config:23`.
    ///
    /// # Errors
    /// Returns a sentence that says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (word, bits) = text.trim().split_once(':').ok_or_else(|| format!("'{text}' has no colon"))?;
        let word = Word::parse(word)
            .ok_or_else(|| format!("'{word}' is not config, config1, config2 or config3"))?;
        let mut ranges = Vec::new();
        for part in bits.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let bit = |text: &str| text.trim().parse::<u8>().ok().filter(|&bit| bit < 64);
            match (bit(first), bit(last)) {
                (Some(first), Some(last)) if first <= last => ranges.push((first, last)),
                _ => return Err(format!("'{part}' is not a bit (0 to 63) or a range of bits")),
            }
        }
        let format = Self { word, ranges };
        if format.width() > 64 {
            return Err(format!("'{text}' names more than 64 bits"));
        }
        Ok(format)
    }

    /// Returns the number of bits of a value.
    pub fn width(&self) -> u32 {
        self.ranges.iter().map(|&(first, last)| u32::from(last - first) + 1).sum()
    }

    /// Returns the largest value.
    pub fn max(&self) -> u64 {
        low_bits(self.width())
    }

    /// Sets this term's bits in `words` to `value`, replacing the old ones. Returns `false` and
    /// changes nothing if the value does not fit.
    pub fn place(&self, value: u64, words: &mut [u64; 4]) -> bool {
        if value > self.max() {
            return false;
        }
        let word = &mut words[self.word.index()];
        let mut rest = value;
        for &(first, last) in &self.ranges {
            let width = u32::from(last - first) + 1;
            let mask = low_bits(width) << first;
            *word = (*word & !mask) | ((rest & low_bits(width)) << first);
            rest = rest.checked_shr(width).unwrap_or(0);
        }
        true
    }

    /// Returns the value of this term in `words`, the inverse of [`TermFormat::place`].
    pub fn get(&self, words: &[u64; 4]) -> u64 {
        let (mut value, mut at) = (0, 0);
        for &(first, last) in &self.ranges {
            let width = u32::from(last - first) + 1;
            value |= ((words[self.word.index()] >> first) & low_bits(width)).checked_shl(at).unwrap_or(0);
            at += width;
        }
        value
    }
}

fn low_bits(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

impl Pmu {
    /// Returns whether the PMU counts what cores execute: `cpu`, or one kind of core of a hybrid
    /// CPU. The rule is perf's (`is_pmu_core()`, tools/perf/util/pmu.c).
    pub fn is_core(&self) -> bool {
        self.name == "cpu" || self.cpus.is_some()
    }

    /// Returns whether the PMU cannot sample: it counts for a whole package, or its driver refuses
    /// a period (`msr_event_init()`, arch/x86/events/msr.c).
    pub fn counts_only(&self) -> bool {
        self.cpumask.is_some() || self.name == "msr"
    }

    /// Returns whether this is one of AMD's IBS PMUs.
    pub fn is_ibs(&self) -> bool {
        self.name == "ibs_op" || self.name == "ibs_fetch"
    }

    /// Returns the driver's name for this core: `skylake`, `sapphire_rapids`, `alderlake_hybrid`;
    /// empty if it gives none.
    pub fn core_name(&self) -> &str {
        self.caps.get("pmu_name").map_or("", String::as_str)
    }
}

fn until_nul(mut text: String) -> String {
    text.truncate(text.find('\0').unwrap_or(text.len()));
    text
}

impl Pmus {
    /// Reads the PMUs of a machine. Never fails: see [`Pmus::problems`].
    pub fn read(root: &Root) -> Self {
        let mut all = Self::default();
        match root.cpuinfo() {
            Ok(text) => all.cpu = CpuId::parse(&text),
            Err(why) => all.problems.push(why),
        }
        all.kernel = root.kernel();
        match root.list(DEVICES) {
            Ok(names) => {
                for name in names {
                    all.read_pmu(root, name);
                }
            }
            Err(error) => all.problems.push(format!("cannot read {DEVICES}: {error}")),
        }
        all
    }

    fn read_pmu(&mut self, root: &Root, name: String) {
        let folder = format!("{DEVICES}/{name}");
        let type_ = match root.read(&format!("{folder}/type")) {
            Ok(text) => text.parse().map_err(|_| format!("does not hold a number: '{text}'")),
            Err(error) => Err(format!("cannot be read: {error}")),
        };
        let type_ = match type_ {
            Ok(type_) => type_,
            Err(why) => {
                self.problems.push(format!("the PMU {name} was skipped: {folder}/type {why}"));
                return;
            }
        };
        let mut format = BTreeMap::new();
        for (term, text) in self.read_folder(root, &format!("{folder}/format")) {
            match TermFormat::parse(&text) {
                Ok(bits) => drop(format.insert(term, bits)),
                Err(why) => self.problems.push(format!("the term {term} of {name} was skipped: {why}")),
            }
        }
        let mut events = self.read_folder(root, &format!("{folder}/events"));
        // `.scale`, `.unit`, `.per-pkg` and `.snapshot` are suffixes of files that describe an
        // event.
        events.retain(|event, _| !event.contains('.'));
        let caps = self.read_folder(root, &format!("{folder}/caps"));
        let cpus = self.read_cpus(root, &format!("{folder}/cpus"));
        let cpumask = self.read_cpus(root, &format!("{folder}/cpumask"));
        self.pmus.push(Pmu { name, type_, format, events, caps, cpus, cpumask });
    }

    /// Reads the files of a directory, by name. A missing directory counts as empty: most PMUs lack
    /// one or another.
    ///
    /// Each file is cut at the first NUL. For an event that two kinds of core have, the kernel
    /// shows the encoding of one but the length of both, padded with zeros
    /// (`events_hybrid_sysfs_show()`, arch/x86/events/core.c, up to Linux 6.12 at least).
    fn read_folder(&mut self, root: &Root, folder: &str) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        for name in root.list(folder).unwrap_or_default() {
            let path = format!("{folder}/{name}");
            if root.path(&path).is_dir() {
                continue;
            }
            match root.read(&path) {
                Ok(text) => drop(files.insert(name, until_nul(text))),
                Err(error) => self.problems.push(format!("cannot read {path}: {error}")),
            }
        }
        files
    }

    fn read_cpus(&mut self, root: &Root, path: &str) -> Option<Vec<u32>> {
        let text = root.read(path).ok()?;
        match parse_cpu_list(&text) {
            Ok(cpus) => Some(cpus),
            Err(why) => {
                self.problems.push(format!("{path}: {why}"));
                None
            }
        }
    }

    /// Returns the PMU with this name.
    pub fn get(&self, name: &str) -> Option<&Pmu> {
        self.pmus.iter().find(|pmu| pmu.name == name)
    }

    /// Returns the PMUs of the cores: none in a virtual machine without a PMU, usually one, and one
    /// per kind of core of a hybrid CPU. `cpu_core` comes before `cpu_atom`.
    pub fn cores(&self) -> Vec<&Pmu> {
        let mut cores: Vec<&Pmu> = self.pmus.iter().filter(|pmu| pmu.is_core()).collect();
        cores.compact_sort_by_key(|pmu| pmu.name != "cpu_core");
        cores
    }

    /// Returns whether there is more than one kind of core.
    pub fn is_hybrid(&self) -> bool {
        self.cores().len() > 1
    }

    /// Returns the name of a PMU's event in perf's syntax. On a hybrid CPU it includes the core's
    /// PMU, because each kind of core has its own event of that name.
    pub fn event_name(&self, pmu: &Pmu, event: &str, modifiers: &str) -> String {
        match (self.is_hybrid() && pmu.is_core(), modifiers) {
            (true, _) => format!("{}/{event}/{modifiers}", pmu.name),
            (false, "") => event.to_owned(),
            (false, _) => format!("{event}:{modifiers}"),
        }
    }

    /// Returns why this machine has no hardware events at all, as a sentence; `None` if there is a
    /// core PMU.
    pub fn why_no_core_pmu(&self) -> Option<String> {
        if !self.cores().is_empty() {
            return None;
        }
        Some(if self.cpu.hypervisor {
            "this VM has no hardware counters, because the hypervisor does not expose a PMU. Only \
             software events (page-faults, cpu-clock) work here; bare-metal and some larger cloud \
             instances have a PMU"
                .to_owned()
        } else {
            "the kernel has no hardware counters (no `cpu` in sysfs), so only software events (page-faults, \
             cpu-clock) work here"
                .to_owned()
        })
    }
}

#[cfg(test)]
#[path = "sysfs_tests.rs"]
mod tests;
