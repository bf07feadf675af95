//! What one event is opened with, and what is known of its samples before it is.

use schemars::JsonSchema;
use serde::Serialize;

use precise_model::{Fields, TaggedOf};

/// How precise the text of an event asks it to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// No modifier: `--precise` decides.
    #[default]
    Unspecified,
    /// `:p`, `:pp`, `:ppp` are 1, 2, 3. 0 (no such modifier): meant to be imprecise.
    Given(u8),
    /// `:P`: the most that the machine grants.
    Max,
}

/// What makes the IPs of an event exact, if anything does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Exactness {
    /// The kernel itself causes the sample, at a known instruction: a page fault.
    Nature,
    /// The PMU has only exact samples: AMD IBS. `precise_ip` means nothing to it.
    Ibs,
    /// `perf_event_attr.precise_ip` does, where the kernel grants it.
    PreciseIp {
        /// The highest level worth asking for.
        max: u8,
        /// The lowest level whose IPs are exact: 2 with PEBS (1 is the instruction after), 1 where
        /// AMD's driver turns the event into IBS.
        exact: u8,
    },
    /// Nothing, and this is why, in a sentence.
    Never(String),
}

/// What IBS's registers are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tagged {
    /// Which of them.
    pub of: TaggedOf,
    /// The CPU has the errata of Zen 3: `precise_common::ibs::Outcome::of_op`.
    pub zen3_errata: bool,
}

/// One event on one PMU: what `perf_event_open` is told, and what its samples will have.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventRequest {
    /// As the user wrote it, or its `name=` term; on a hybrid CPU with the PMU:
    /// `cpu_atom/mem-loads/`.
    pub name: String,
    /// The encoding as perf would write it: `cpu/event=0xcd,umask=0x1,ldlat=0x1e/P`. Parses to the
    /// same request.
    pub encoding: String,
    /// The PMU's directory in sysfs; `software` for software events.
    pub pmu: String,
    /// `perf_event_attr.type`.
    pub type_: u32,
    /// `perf_event_attr.config`. A generic event of a hybrid CPU has its PMU's type in bits 32 to
    /// 63.
    pub config: u64,
    /// `perf_event_attr.config1`.
    pub config1: u64,
    /// `perf_event_attr.config2`.
    pub config2: u64,
    /// `perf_event_attr.config3` (since Linux 6.3; 0 otherwise).
    pub config3: u64,
    /// How precise the text asked it to be. [`super::ladder()`] makes the levels to try of it.
    pub precise: Level,
    /// Not in user space (`:k`).
    pub exclude_user: bool,
    /// Not in the kernel (`:u`).
    pub exclude_kernel: bool,
    /// The only CPUs that it can be opened on; elsewhere the kernel says ENOENT. `None`: all.
    pub cpus: Option<Vec<u32>>,
    /// What one unit of the period is, in the plural: "cycles", "page faults", "ns".
    pub unit: String,
    /// What its samples have beside the IP when they are as precise as they can be; see
    /// [`EventRequest::fields_at`].
    pub fields: Fields,
    /// What makes its IPs exact.
    pub exactness: Exactness,
    /// Units per sample when the user gives none, or the `period=` term. 0 for a leader, which only
    /// counts.
    pub default_period: u64,
    /// An event that must lead the group that this one is in. It counts, takes no samples, and asks
    /// for no data source.
    pub leader: Option<Box<EventRequest>>,
    /// What is read from the hardware's own registers, where the event is IBS.
    pub tagged: Option<Tagged>,
    /// Its samples are stores, whatever their data source says:
    /// [`precise_common::data_src::DataSource::as_store`].
    pub stores: bool,
    /// A filter, in the grammar of `--filter`, that a sample must pass to be one of what the name
    /// says. IBS samples every op: its `loads` are those with `mem_op == load`.
    pub filter: Option<String>,
    /// What the reader must know about samples of this event, one sentence each. They belong in the
    /// verdict.
    pub notes: Vec<String>,
}

impl EventRequest {
    /// Whether every IP is exact, whatever `precise_ip` is.
    pub fn exact_ip(&self) -> bool {
        matches!(self.exactness, Exactness::Nature | Exactness::Ibs)
    }

    /// Whether IPs are exact when the kernel granted `level`.
    pub fn exact_at(&self, level: u8) -> bool {
        match self.exactness {
            Exactness::Nature | Exactness::Ibs => true,
            Exactness::PreciseIp { exact, .. } => level >= exact,
            Exactness::Never(_) => false,
        }
    }

    /// What a sample has when the kernel granted `level`: an event that needs PEBS or IBS has
    /// nothing without it.
    pub fn fields_at(&self, level: u8) -> Fields {
        if level > 0 || self.exact_ip() { self.fields } else { Fields::default() }
    }
}

/// What is known of an event of a PMU from its encoding.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Traits {
    pub unit: &'static str,
    pub fields: Fields,
    pub exactness: Exactness,
    pub period: u64,
    pub notes: Vec<String>,
}

/// Address, latency and data source.
pub(super) const ALL_FIELDS: Fields =
    Fields { address: true, latency: true, data_source: true, outcome: false };
/// Nothing but the IP.
pub(super) const NO_FIELDS: Fields =
    Fields { address: false, latency: false, data_source: false, outcome: false };

/// Default periods. Each is prime, so that a loop whose count of the event divides a round number
/// is not sampled at the same place for ever (lock-step). A sample costs about 2.5 µs of interrupt:
/// 1 kHz is 0.25 % of a CPU.
pub mod period {
    /// 1 kHz at 3 GHz; of instructions, 1 kHz at one per cycle.
    pub const CYCLES: u64 = 3_000_017;
    /// Of cycles that are sampled beside others at [`CYCLES`]: with the same period, the two would
    /// meet in the same phase again and again, and the one's interrupt would be what the other
    /// samples.
    pub const CYCLES_BESIDE: u64 = 2_700_023;
    /// Nanoseconds: 1 kHz.
    pub const NANOSECONDS: u64 = 1_000_003;
    /// Of what happens about once in ten cycles: stores, branches, accesses to the last cache.
    pub const OFTEN: u64 = 1_000_003;
    /// Of what happens about once in a hundred cycles, and of what is not known.
    pub const SELDOM: u64 = 100_003;
    /// Of what hurts: misses, loads above a latency.
    pub const MISSES: u64 = 10_007;
    /// Every single one: faults, switches.
    pub const EACH: u64 = 1;

    /// IBS counts in units of 16: a period is 16 times a prime. Before Linux 6.15 any other period
    /// is EINVAL; since then at least 0x90 is asked for (kernel: `perf_ibs_init()`,
    /// arch/x86/events/amd/ibs.c).
    pub const IBS_UNIT: u64 = 16;
    /// 1 kHz at 3 GHz.
    pub const IBS_CYCLES: u64 = IBS_UNIT * 187_507;
    /// 3 kHz at one op per cycle and 3 GHz: about a third of all ops touch memory.
    pub const IBS_OPS: u64 = IBS_UNIT * 62_501;
    /// 1 kHz at one fetch in three cycles; the counter of fetches ends at 0xffff0.
    pub const IBS_FETCHES: u64 = IBS_UNIT * 62_501;

    /// Every default period, for the test of what this module says.
    #[cfg(test)]
    pub(crate) const ALL: [u64; 10] =
        [CYCLES, CYCLES_BESIDE, NANOSECONDS, OFTEN, SELDOM, MISSES, EACH, IBS_CYCLES, IBS_OPS, IBS_FETCHES];
}

#[cfg(test)]
mod tests {
    use super::period;

    #[test]
    fn default_periods_are_prime_or_sixteen_times_a_prime() {
        let prime = |n: u64| n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
        assert!(prime(2) && prime(10_007) && !prime(9) && !prime(1));
        for period in period::ALL {
            let ibs = period.is_multiple_of(period::IBS_UNIT) && (0x90..=0x7ff_fff0).contains(&period);
            let prime = if ibs { prime(period / period::IBS_UNIT) } else { prime(period) };
            assert!(period == 1 || prime, "{period}");
        }
        const { assert!(period::IBS_FETCHES <= 0xf_fff0) };
    }
}
