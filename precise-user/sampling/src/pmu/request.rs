//! The request to open an event, and what is known of its samples before it is opened.

use schemars::JsonSchema;
use serde::Serialize;

use precise_model::{Fields, TaggedOf};

/// The precise level that the text of an event requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PreciseLevel {
    /// No modifier: `--precise` decides.
    #[default]
    Unspecified,
    /// A fixed level: 1, 2 and 3 for `:p`, `:pp` and `:ppp`. 0 cannot be written: the event is
    /// imprecise on purpose.
    Given(u8),
    /// `:P`: the highest level that the machine grants.
    Max,
}

/// What makes the IPs of an event exact, if anything does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Exactness {
    /// The kernel takes the sample at a known instruction, such as a page fault.
    Nature,
    /// All samples of the PMU are exact: AMD IBS. It ignores `precise_ip`.
    Ibs,
    /// `perf_event_attr.precise_ip` makes IPs exact, if the kernel grants the level.
    PreciseIp {
        /// The highest level worth requesting.
        max: u8,
        /// The lowest level whose IPs are exact: 2 with PEBS (level 1 gives the next instruction),
        /// 1 where AMD's driver maps the event to IBS.
        exact: u8,
    },
    /// Nothing does, for this reason (a sentence).
    Never(String),
}

/// What to decode from the IBS registers of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaggedFields {
    /// Which outcome to decode.
    pub of: TaggedOf,
    /// Whether the CPU has the errata of Zen 3: `precise_common::ibs::Outcome::of_op`.
    pub zen3_errata: bool,
}

/// One event on one PMU: the arguments of `perf_event_open`, and what is known of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventRequest {
    /// The name, as the user wrote it, or its `name=` term. On a hybrid CPU it includes the PMU:
    /// `cpu_atom/mem-loads/`.
    pub name: String,
    /// The encoding in perf's syntax: `cpu/event=0xcd,umask=0x1,ldlat=0x1e/P`. Parsing it gives the
    /// same request.
    pub encoding: String,
    /// The PMU's directory in sysfs; `software` for software events.
    pub pmu: String,
    /// `perf_event_attr.type`.
    pub type_: u32,
    /// `perf_event_attr.config`. On a hybrid CPU, bits 32 to 63 of a generic event contain the
    /// PMU's type.
    pub config: u64,
    /// `perf_event_attr.config1`.
    pub config1: u64,
    /// `perf_event_attr.config2`.
    pub config2: u64,
    /// `perf_event_attr.config3` (since Linux 6.3; 0 otherwise).
    pub config3: u64,
    /// The precise level that the text requests. [`super::ladder()`] turns it into the levels to
    /// try.
    pub precise: PreciseLevel,
    /// Whether counting excludes user space (`:k`).
    pub exclude_user: bool,
    /// Whether counting excludes the kernel (`:u`).
    pub exclude_kernel: bool,
    /// The only CPUs on which it can be opened; on others the kernel returns ENOENT. `None`: all
    /// CPUs.
    pub cpus: Option<Vec<u32>>,
    /// The unit of the period, in the plural: "cycles", "page faults", "ns".
    pub unit: String,
    /// The fields that its samples have in addition to the IP, at the highest precise level; see
    /// [`EventRequest::fields_at`].
    pub fields: Fields,
    /// What makes its IPs exact, if anything does.
    pub exactness: Exactness,
    /// The default period, in units per sample, or the value of the `period=` term. 0 for a leader,
    /// which only counts.
    pub default_period: u64,
    /// The event that must lead the group of this one. It only counts: it takes no samples and
    /// requests no data source. `None` if no leader is needed.
    pub leader: Option<Box<EventRequest>>,
    /// What is decoded from the hardware's registers; `None` unless the event is IBS.
    pub tagged: Option<TaggedFields>,
    /// Whether its samples are stores even if their data source says otherwise:
    /// [`precise_common::data_src::DataSource::as_store`].
    pub stores: bool,
    /// The filter, in the syntax of `--filter`, that selects the samples that the name promises.
    /// IBS samples every op, so `loads` are the samples with `mem_op == load`. `None`: no filter is
    /// needed.
    pub filter: Option<String>,
    /// What a reader must know about samples of this event, one sentence each. The verdict includes
    /// them.
    pub notes: Vec<String>,
}

impl EventRequest {
    /// Returns whether the event is of a core's own PMU. Such an event does not count while a guest
    /// runs, as with perf.
    ///
    /// On newer kernels (7.3, not 6.18), one that does keeps virtual machines with a mediated PMU
    /// from starting, and cannot be opened beside them (`perf_create_mediated_pmu()`,
    /// kernel/events/core.c). IBS is not mediated, and refuses to exclude guests.
    pub fn is_of_core(&self) -> bool {
        self.pmu == "cpu" || self.cpus.is_some()
    }

    /// Returns whether every IP is exact at any level of `precise_ip`.
    pub fn exact_ip(&self) -> bool {
        matches!(self.exactness, Exactness::Nature | Exactness::Ibs)
    }

    /// Returns whether IPs are exact if the kernel granted `level`.
    pub fn exact_at(&self, level: u8) -> bool {
        match self.exactness {
            Exactness::Nature | Exactness::Ibs => true,
            Exactness::PreciseIp { exact, .. } => level >= exact,
            Exactness::Never(_) => false,
        }
    }

    /// Returns the fields of a sample if the kernel granted `level`. An event that needs PEBS or
    /// IBS has no extra fields without it.
    pub fn fields_at(&self, level: u8) -> Fields {
        if level > 0 || self.exact_ip() { self.fields } else { Fields::default() }
    }
}

/// The properties of a PMU's event that are known from its encoding.
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
/// No fields other than the IP.
pub(super) const NO_FIELDS: Fields =
    Fields { address: false, latency: false, data_source: false, outcome: false };

/// Default periods.
///
/// Each is prime, so that a loop whose number of events divides a round number is not always
/// sampled at the same place (lock-step). The interrupt of a sample costs about 2.5 µs: 1 kHz takes
/// 0.25 % of a CPU.
pub mod period {
    /// Period of cycles and instructions: 1 kHz at 3 GHz, for instructions at one per cycle.
    pub const CYCLES: u64 = 3_000_017;
    /// Period of cycles that are sampled together with others at [`CYCLES`]. With the same period,
    /// the two events would overflow in the same phase again and again, and one would sample the
    /// interrupt of the other.
    pub const CYCLES_BESIDE: u64 = 2_700_023;
    /// Period in nanoseconds: 1 kHz.
    pub const NANOSECONDS: u64 = 1_000_003;
    /// Period of what happens about once in ten cycles: stores, branches, accesses to the
    /// last-level cache.
    pub const OFTEN: u64 = 1_000_003;
    /// Period of what happens about once in a hundred cycles, and of events of unknown frequency.
    pub const SELDOM: u64 = 100_003;
    /// Period of events that cost time: misses, loads above a latency threshold.
    pub const MISSES: u64 = 10_007;
    /// Period of events that are all sampled: faults, context switches.
    pub const EACH: u64 = 1;

    /// IBS counts in units of 16, so its periods are 16 times a prime. Before Linux 6.15 any other
    /// period is EINVAL; since then the minimum is 0x90 (kernel: `perf_ibs_init()`,
    /// arch/x86/events/amd/ibs.c).
    pub const IBS_UNIT: u64 = 16;
    /// Period of cycles with IBS: 1 kHz at 3 GHz.
    pub const IBS_CYCLES: u64 = IBS_UNIT * 187_507;
    /// Period of ops: 3 kHz at one op per cycle and 3 GHz, because about a third of all ops access
    /// memory.
    pub const IBS_OPS: u64 = IBS_UNIT * 62_501;
    /// Period of fetches: 1 kHz at one fetch in three cycles; the fetch counter's maximum is
    /// 0xffff0.
    pub const IBS_FETCHES: u64 = IBS_UNIT * 62_501;

    /// All default periods, for the test of this module's claims.
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
