//! Event names that need no sysfs: hardware, cache and software events.
//!
//! Source: `enum perf_hw_id`, `perf_hw_cache_*` and `perf_sw_ids`, include/uapi/linux/perf_event.h
//! of Linux 6.12, and the spellings of tools/perf/util/parse-events.c.

use super::request::{Exactness, NO_FIELDS, Traits, period};
use precise_model::Fields;

/// `PERF_TYPE_HARDWARE`.
pub const TYPE_HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`.
pub const TYPE_SOFTWARE: u32 = 1;
/// `PERF_TYPE_HW_CACHE`.
pub const TYPE_CACHE: u32 = 3;
/// The position of the PMU's type in `config` of generic events on a hybrid CPU
/// (`PERF_PMU_TYPE_SHIFT`, since Linux 5.13).
pub const PMU_TYPE_SHIFT: u32 = 32;

/// `PERF_COUNT_HW_CPU_CYCLES`.
pub const CYCLES: u64 = 0;
/// `PERF_COUNT_HW_INSTRUCTIONS`.
pub const INSTRUCTIONS: u64 = 1;

/// A generic hardware event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// Its names, the most common one first.
    pub names: &'static [&'static str],
    /// `perf_event_attr.config`.
    pub config: u64,
    /// The unit of its count.
    pub unit: &'static str,
    /// The default period, in units per sample.
    pub period: u64,
}

/// All generic hardware events.
pub const HARDWARE: &[Hardware] = &[
    Hardware { names: &["cycles", "cpu-cycles"], config: CYCLES, unit: "cycles", period: period::CYCLES },
    Hardware { names: &["instructions"], config: INSTRUCTIONS, unit: "instructions", period: period::CYCLES },
    Hardware { names: &["cache-references"], config: 2, unit: "cache references", period: period::SELDOM },
    Hardware { names: &["cache-misses"], config: 3, unit: "cache misses", period: period::MISSES },
    Hardware {
        names: &["branches", "branch-instructions"],
        config: 4,
        unit: "branches",
        period: period::OFTEN,
    },
    Hardware { names: &["branch-misses"], config: 5, unit: "branch misses", period: period::MISSES },
    Hardware { names: &["bus-cycles"], config: 6, unit: "bus cycles", period: period::SELDOM },
    Hardware {
        names: &["stalled-cycles-frontend", "idle-cycles-frontend"],
        config: 7,
        unit: "cycles",
        period: period::CYCLES,
    },
    Hardware {
        names: &["stalled-cycles-backend", "idle-cycles-backend"],
        config: 8,
        unit: "cycles",
        period: period::CYCLES,
    },
    Hardware { names: &["ref-cycles"], config: 9, unit: "reference cycles", period: period::CYCLES },
];

/// How the samples of a software event are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftwareKind {
    /// By a timer: the IP is where the timer interrupt was delivered.
    Timer,
    /// By a fault: the IP is the faulting instruction, and the data address is the accessed one.
    Fault,
    /// At a known place in the kernel.
    Place,
}

/// A software event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Software {
    /// Its names, the most common one first.
    pub names: &'static [&'static str],
    /// `perf_event_attr.config`.
    pub config: u64,
    /// The unit of its count.
    pub unit: &'static str,
    /// How its samples are taken.
    pub kind: SoftwareKind,
}

/// All software events.
pub const SOFTWARE: &[Software] = &[
    Software { names: &["cpu-clock"], config: 0, unit: "ns", kind: SoftwareKind::Timer },
    Software { names: &["task-clock"], config: 1, unit: "ns", kind: SoftwareKind::Timer },
    Software { names: &["page-faults", "faults"], config: 2, unit: "page faults", kind: SoftwareKind::Fault },
    Software {
        names: &["context-switches", "cs"],
        config: 3,
        unit: "context switches",
        kind: SoftwareKind::Place,
    },
    Software {
        names: &["cpu-migrations", "migrations"],
        config: 4,
        unit: "migrations",
        kind: SoftwareKind::Place,
    },
    Software { names: &["minor-faults"], config: 5, unit: "page faults", kind: SoftwareKind::Fault },
    Software { names: &["major-faults"], config: 6, unit: "page faults", kind: SoftwareKind::Fault },
    Software { names: &["alignment-faults"], config: 7, unit: "alignment faults", kind: SoftwareKind::Fault },
    Software { names: &["emulation-faults"], config: 8, unit: "emulation faults", kind: SoftwareKind::Fault },
    Software { names: &["cgroup-switches"], config: 11, unit: "cgroup switches", kind: SoftwareKind::Place },
];

impl Software {
    /// Returns what makes its IPs exact, or why nothing does.
    pub fn exactness(&self) -> Exactness {
        self.traits().exactness
    }

    pub(super) fn traits(&self) -> Traits {
        let (fields, exactness, period) = match self.kind {
            SoftwareKind::Fault => (Fields { address: true, ..NO_FIELDS }, Exactness::Nature, period::EACH),
            SoftwareKind::Place => (NO_FIELDS, Exactness::Nature, period::EACH),
            SoftwareKind::Timer => (
                NO_FIELDS,
                Exactness::Never(
                    "a timer interrupt takes the samples, so addresses are a few instructions late, and \
                     code that runs with interrupts disabled is blamed on the instruction that \
                     re-enables them"
                        .to_owned(),
                ),
                period::NANOSECONDS,
            ),
        };
        Traits { unit: self.unit, fields, exactness, period, notes: Vec::new() }
    }
}

/// Returns the generic hardware event with this name.
pub fn hardware(name: &str) -> Option<&'static Hardware> {
    HARDWARE.iter().find(|event| event.names.contains(&name))
}

/// Returns the software event with this name.
pub fn software(name: &str) -> Option<&'static Software> {
    SOFTWARE.iter().find(|event| event.names.contains(&name))
}

/// The caches of `perf_hw_cache_id`, in the kernel's order.
const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
/// The endings of cache event names with operation and result. `config` is `cache | operation << 8
/// | result << 16`.
const CACHE_ENDINGS: [(&str, u64, u64); 6] = [
    ("loads", 0, 0),
    ("load-misses", 0, 1),
    ("stores", 1, 0),
    ("store-misses", 1, 1),
    ("prefetches", 2, 0),
    ("prefetch-misses", 2, 1),
];

/// Returns `config` of a generic cache event such as `L1-dcache-load-misses` or `dTLB-loads`.
pub fn cache(name: &str) -> Option<u64> {
    CACHES.iter().zip(0u64..).find_map(|(cache, id)| {
        let ending = name.strip_prefix(cache)?.strip_prefix('-')?;
        let &(_, operation, result) = CACHE_ENDINGS.iter().find(|(word, ..)| *word == ending)?;
        Some(id | operation << 8 | result << 16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_events_are_put_together_as_the_kernel_does() {
        assert_eq!(cache("L1-dcache-loads"), Some(0));
        assert_eq!(cache("LLC-load-misses"), Some(0x1_0002));
        assert_eq!(cache("dTLB-store-misses"), Some(0x1_0103));
        assert_eq!(cache("LLC"), None);
        assert_eq!(cache("LLC-speed"), None);
    }

    #[test]
    fn numbers_are_those_of_the_kernel_header() {
        use perf_event_open_sys::bindings as header;
        let config = |name| hardware(name).map(|event| event.config);
        assert_eq!(config("cycles"), Some(header::PERF_COUNT_HW_CPU_CYCLES.into()));
        assert_eq!(config("instructions"), Some(header::PERF_COUNT_HW_INSTRUCTIONS.into()));
        assert_eq!(config("cache-references"), Some(header::PERF_COUNT_HW_CACHE_REFERENCES.into()));
        assert_eq!(config("cache-misses"), Some(header::PERF_COUNT_HW_CACHE_MISSES.into()));
        assert_eq!(config("branches"), Some(header::PERF_COUNT_HW_BRANCH_INSTRUCTIONS.into()));
        assert_eq!(config("branch-misses"), Some(header::PERF_COUNT_HW_BRANCH_MISSES.into()));
        assert_eq!(config("bus-cycles"), Some(header::PERF_COUNT_HW_BUS_CYCLES.into()));
        assert_eq!(
            config("stalled-cycles-frontend"),
            Some(header::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND.into())
        );
        assert_eq!(
            config("stalled-cycles-backend"),
            Some(header::PERF_COUNT_HW_STALLED_CYCLES_BACKEND.into())
        );
        assert_eq!(config("ref-cycles"), Some(header::PERF_COUNT_HW_REF_CPU_CYCLES.into()));
        let config = |name| software(name).map(|event| event.config);
        assert_eq!(config("cpu-clock"), Some(header::PERF_COUNT_SW_CPU_CLOCK.into()));
        assert_eq!(config("task-clock"), Some(header::PERF_COUNT_SW_TASK_CLOCK.into()));
        assert_eq!(config("page-faults"), Some(header::PERF_COUNT_SW_PAGE_FAULTS.into()));
        assert_eq!(config("context-switches"), Some(header::PERF_COUNT_SW_CONTEXT_SWITCHES.into()));
        assert_eq!(config("migrations"), Some(header::PERF_COUNT_SW_CPU_MIGRATIONS.into()));
        assert_eq!(config("minor-faults"), Some(header::PERF_COUNT_SW_PAGE_FAULTS_MIN.into()));
        assert_eq!(config("major-faults"), Some(header::PERF_COUNT_SW_PAGE_FAULTS_MAJ.into()));
        assert_eq!(config("alignment-faults"), Some(header::PERF_COUNT_SW_ALIGNMENT_FAULTS.into()));
        assert_eq!(config("emulation-faults"), Some(header::PERF_COUNT_SW_EMULATION_FAULTS.into()));
        assert_eq!(config("cgroup-switches"), Some(header::PERF_COUNT_SW_CGROUP_SWITCHES.into()));
    }

    #[test]
    fn no_two_events_share_a_name() {
        let hardware = HARDWARE.iter().flat_map(|event| event.names);
        let software = SOFTWARE.iter().flat_map(|event| event.names);
        let mut names: Vec<&str> = hardware.chain(software).copied().collect();
        let before = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), before);
    }
}
