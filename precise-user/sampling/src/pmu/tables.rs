//! Intel's precise events that sysfs does not name, per core: the tables in `tables/`.
//!
//! The tables are data, so a new core or erratum needs no change of code. Each line is one event,
//! and the first lines of each file describe the columns. Only names and numbers were taken from
//! Intel's lists.

use super::request::{EventRequest, Exactness, NO_FIELDS, PreciseLevel, Traits, period};
use super::sysfs::{Pmu, Pmus};
use precise_model::Fields;
use precise_model::Preset;
use precise_model::Vendor;

precise_model::catalogue! {
    /// A kind of core that has a table of events.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Core: (&'static str, &'static str, &'static str) {
        /// Haswell.
        Haswell => ("Haswell", "HSD25,HSD76,HSM26", include_str!("tables/haswell.tsv")),
        /// Broadwell.
        Broadwell => ("Broadwell", "BDM35,BDM100", include_str!("tables/broadwell.tsv")),
        /// Skylake to Comet Lake, Skylake-SP, Cascade Lake.
        Skylake => ("Skylake", "", include_str!("tables/skylake.tsv")),
        /// Ice Lake to Rocket Lake, Ice Lake-SP.
        IceLake => ("Ice Lake", "", include_str!("tables/icelake.tsv")),
        /// Sapphire and Emerald Rapids, the big cores of Alder and Raptor Lake.
        GoldenCove => ("Golden Cove", "", include_str!("tables/golden_cove.tsv")),
        /// Granite Rapids, the big cores of Meteor Lake.
        RedwoodCove => ("Redwood Cove", "", include_str!("tables/redwood_cove.tsv")),
        /// The small cores of Alder and Raptor Lake.
        Gracemont => ("Gracemont", "", include_str!("tables/gracemont.tsv")),
        /// The small cores of Meteor Lake, Sierra Forest.
        Crestmont => ("Crestmont", "", include_str!("tables/crestmont.tsv")),
    }
}

impl Core {
    /// Returns the kind of core of a PMU, from the driver's name for it (`intel_pmu_init()`,
    /// arch/x86/events/intel/core.c). `None` if there is no table.
    pub fn of(pmu: &Pmu) -> Option<Self> {
        let small = pmu.name == "cpu_atom";
        Some(match pmu.core_name() {
            "haswell" => Self::Haswell,
            "broadwell" => Self::Broadwell,
            "skylake" => Self::Skylake,
            "icelake" => Self::IceLake,
            "sapphire_rapids" => Self::GoldenCove,
            "granite_rapids" => Self::RedwoodCove,
            "gracemont" => Self::Gracemont,
            "crestmont" => Self::Crestmont,
            "alderlake_hybrid" if small => Self::Gracemont,
            "alderlake_hybrid" => Self::GoldenCove,
            "meteorlake_hybrid" if small => Self::Crestmont,
            "meteorlake_hybrid" => Self::RedwoodCove,
            _ => return None,
        })
    }

    /// Returns the name of the core, for messages.
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    /// Returns whether the hardware writes records for few events only, although the driver accepts
    /// any: another event opens and counts, but never gives a sample. Ice Lake and later record
    /// every event (kernel: `PMU_FL_PEBS_ALL`).
    pub const fn records_few(self) -> bool {
        matches!(self, Self::Haswell | Self::Broadwell | Self::Skylake)
    }

    /// Returns the errata of the load latency event, which is in sysfs and therefore in no table.
    pub const fn load_latency_errata(self) -> &'static str {
        self.entry().1
    }

    const fn text(self) -> &'static str {
        self.entry().2
    }

    /// Returns the events of the core, in the order of the file.
    pub fn events(self) -> Vec<TableEvent> {
        // A test parses every line of every table, so a build that passed it skips none.
        lines(self).filter_map(|line| TableEvent::parse(line).ok()).collect()
    }
}

fn lines(core: Core) -> impl Iterator<Item = &'static str> {
    core.text().lines().filter(|line| !line.starts_with('#'))
}

/// One event of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEvent {
    /// The presets that use the event; empty for an event that can only be named.
    pub presets: Vec<Preset>,
    /// The name in perf's spelling: `mem_load_retired.l3_miss`.
    pub name: &'static str,
    /// The event select in bits 0 to 7, the unit mask in bits 8 to 15.
    pub code: u64,
    /// The value of the front-end register; 0 for other events.
    pub config1: u64,
    /// The highest precise level worth requesting.
    pub max_level: u8,
    /// The default period, in events per sample.
    pub period: u64,
    /// The unit of the period, in the plural.
    pub unit: &'static str,
    /// The fields that a sample has in addition to its IP.
    pub fields: Fields,
    /// The numbers of Intel's errata, separated by commas; empty if there are none.
    pub errata: &'static str,
}

impl TableEvent {
    /// Parses one line of a table.
    ///
    /// # Errors
    /// Returns a sentence that says which column is wrong.
    fn parse(line: &'static str) -> Result<Self, String> {
        let columns: Vec<&'static str> = line.split('\t').collect();
        let &[presets, name, event, umask, config1, level, period, address, unit, errata] =
            columns.as_slice()
        else {
            return Err(format!("'{line}' has {} columns, not 10", columns.len()));
        };
        let hex = |text: &str, max: u64| {
            let number = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
            number
                .filter(|n| *n <= max)
                .ok_or_else(|| format!("{name}: '{text}' is not a number up to {max:#x}"))
        };
        let wrong = |what: &str, text: &str| format!("{name}: '{text}' is not a {what}");
        let given = |text: &'static str| (text != "-").then_some(text);
        let presets = given(presets).into_iter().flat_map(|names| names.split(','));
        Ok(Self {
            presets: presets
                .map(|text| Preset::parse(text).ok_or_else(|| wrong("preset", text)))
                .collect::<Result<_, _>>()?,
            name,
            code: hex(event, 0xff)? | hex(umask, 0xff)? << 8,
            config1: hex(config1, 0xff_ffff)?,
            max_level: level
                .parse()
                .ok()
                .filter(|n| (2..=3).contains(n))
                .ok_or_else(|| wrong("level", level))?,
            period: match period {
                "cycles" => period::CYCLES,
                "seldom" => period::SELDOM,
                "misses" => period::MISSES,
                _ => return Err(wrong("period", period)),
            },
            unit,
            fields: match address {
                "address" => Fields { address: true, ..NO_FIELDS },
                "-" => NO_FIELDS,
                _ => return Err(wrong("field", address)),
            },
            errata: given(errata).unwrap_or_default(),
        })
    }

    /// Returns the event as terms of the PMU.
    pub(super) fn terms(&self, pmu: &Pmu) -> String {
        let mut terms = format!("event={:#x},umask={:#x}", self.code & 0xff, self.code >> 8);
        if self.config1 != 0 {
            let term = if pmu.format.contains_key("frontend") { "frontend" } else { "config1" };
            terms += &format!(",{term}={:#x}", self.config1);
        }
        terms
    }

    /// Returns the known properties of the event.
    pub(super) fn traits(&self) -> Traits {
        Traits {
            unit: self.unit,
            fields: self.fields,
            exactness: Exactness::PreciseIp { max: self.max_level, exact: 2 },
            period: self.period,
            notes: errata(self.errata).into_iter().collect(),
        }
    }
}

/// Returns the note about the errata that Intel's lists give for an event; `None` if there are
/// none.
pub(super) fn errata(numbers: &str) -> Option<String> {
    (!numbers.is_empty()).then(|| {
        format!(
            "this event has known errata on this core ({}): it may count too much or too little",
            numbers.replace(',', ", ")
        )
    })
}

/// Returns the event with this name on one kind of core, ignoring case as perf does.
pub fn by_name(pmu: &Pmu, pmus: &Pmus, name: &str) -> Option<TableEvent> {
    of(pmu, pmus).into_iter().find(|event| event.name.eq_ignore_ascii_case(name))
}

/// Returns the event with these words.
pub(super) fn by_words(pmu: &Pmu, pmus: &Pmus, words: &[u64; 4]) -> Option<TableEvent> {
    of(pmu, pmus).into_iter().find(|event| event.code == words[0] && event.config1 == words[1])
}

/// Returns all events of one kind of core; empty if there is no table.
pub fn of(pmu: &Pmu, pmus: &Pmus) -> Vec<TableEvent> {
    if pmus.cpu.vendor != Vendor::Intel || !pmu.is_core() {
        return Vec::new();
    }
    Core::of(pmu).map(Core::events).unwrap_or_default()
}

/// Marks an event as imprecise if it was requested without a level, the core records few events,
/// and the event is not `known` to be one of them. Without this, a user could wait for samples that
/// never come.
pub(super) fn hold_back(request: &mut EventRequest, pmu: &Pmu, pmus: &Pmus, known: bool) {
    let few = Core::of(pmu).filter(|core| pmus.cpu.vendor == Vendor::Intel && core.records_few());
    let Some(core) = few else { return };
    if !known && request.precise == PreciseLevel::Unspecified {
        request.exactness = Exactness::Never(format!(
            "{} cores are not known to write records for this event; try it with :pp",
            core.name()
        ));
        request.fields = NO_FIELDS;
    }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
