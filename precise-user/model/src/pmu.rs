//! The PMU of an event, and the samples that its hardware leaves out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Vendor;

/// The kind of PMU that an event belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PmuKind {
    /// The kernel itself: page faults, clocks.
    Software,
    /// The counters of a core.
    Core(CoreEvent),
    /// AMD IBS that tags ops.
    IbsOp,
    /// AMD IBS that tags instruction fetches.
    IbsFetch,
    /// Any other PMU, such as a tracepoint or an uncore PMU, or a PMU that an imported file does
    /// not name.
    #[default]
    Other,
}

/// An event of a core's counters.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CoreEvent {
    /// The vendor of the core, which decides what `select` means.
    pub vendor: Vendor,
    /// The PMU of the core type on a hybrid CPU: `cpu_core`, `cpu_atom`. `None` if all cores are of
    /// one type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<String>,
    /// The code of a raw event. `None` for the kernel's generic events, such as `cycles`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<EventSelect>,
}

/// Event select and unit mask: they choose what a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventSelect {
    /// The event select: 8 bits on Intel, 12 on AMD.
    pub event: u16,
    /// The unit mask.
    pub umask: u8,
}

impl EventSelect {
    /// Reads the code of a raw event from `perf_event_attr.config`.
    ///
    /// Source: `PMU_FORMAT_ATTR(event, …)` of arch/x86/events/intel/core.c (`config:0-7`) and
    /// amd/core.c (`config:0-7,32-35`).
    pub fn of_config(vendor: Vendor, config: u64) -> Self {
        let high = if vendor == Vendor::Amd { config >> 32 & 0xf } else { 0 };
        Self { event: (high << 8 | config & 0xff) as u16, umask: (config >> 8) as u8 }
    }
}

impl PmuKind {
    /// Returns whether the event belongs to AMD's IBS.
    pub fn is_ibs(&self) -> bool {
        matches!(self, Self::IbsOp | Self::IbsFetch)
    }

    /// Returns the PMU of the core type on a hybrid CPU; `None` elsewhere.
    pub fn core(&self) -> Option<&str> {
        match self {
            Self::Core(event) => event.core.as_deref(),
            _ => None,
        }
    }

    /// Returns the code of a raw event of a core; `None` for any other event.
    pub fn select(&self) -> Option<EventSelect> {
        match self {
            Self::Core(event) => event.select,
            _ => None,
        }
    }
}

/// A hardware filter: what the hardware drops before it becomes a sample. With an active filter,
/// the number of samples is not in proportion to the number of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HardwareFilter {
    /// The smallest latency of a sampled load, in core cycles (`ldlat`); `None` if loads of any
    /// latency are sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_latency: Option<u32>,
    /// Whether only accesses or fetches that missed the L3 cache are sampled (`l3missonly`).
    #[serde(default)]
    pub l3_miss_only: bool,
}

impl HardwareFilter {
    /// Returns whether the hardware drops anything.
    pub fn is_active(&self) -> bool {
        *self != Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_its_maker_writes_it() {
        let of = |vendor, config| EventSelect::of_config(vendor, config);
        assert_eq!(of(Vendor::Intel, 0x0053_01cd), EventSelect { event: 0xcd, umask: 0x01 });
        assert_eq!(of(Vendor::Intel, 0xf_0000_20d1), EventSelect { event: 0xd1, umask: 0x20 });
        assert_eq!(of(Vendor::Amd, 0x1_0000_ff8e), EventSelect { event: 0x18e, umask: 0xff });
    }

    #[test]
    fn kinds_have_names_in_captures() {
        let core = CoreEvent {
            vendor: Vendor::Intel,
            core: Some("cpu_core".to_owned()),
            select: Some(EventSelect { event: 0xcd, umask: 1 }),
        };
        for (kind, json) in [
            (PmuKind::IbsOp, r#"{"kind":"ibs-op"}"#),
            (
                PmuKind::Core(core),
                r#"{"kind":"core","vendor":"intel","core":"cpu_core","select":{"event":205,"umask":1}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&kind).unwrap(), json);
            assert_eq!(serde_json::from_str::<PmuKind>(json).unwrap(), kind);
        }
    }
}
