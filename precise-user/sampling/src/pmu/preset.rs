//! What a user wants to know, and the events that answer it on this machine.

use schemars::JsonSchema;
use serde::Serialize;

use super::request::{EventRequest, Exactness};
use super::sysfs::Pmus;
use super::{amd, generic, intel, ladder};
use precise_model::{Precision, Preset, Vendor};

/// What a user can say about a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// Only loads that took at least this many core cycles (`--ldlat`). `None`: the vendor's
    /// default.
    pub ldlat: Option<u32>,
    /// Loads that missed the L3 cache only, filtered by the hardware (`--l3-miss-only`): AMD Zen 4
    /// and later.
    pub l3_miss_only: bool,
}

/// This machine cannot serve a preset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, JsonSchema)]
#[error("{preset} cannot be sampled here: {reason}")]
pub struct Unsupported {
    /// What was wanted.
    pub preset: Preset,
    /// Why not, and what to do, in a sentence.
    pub reason: String,
}

impl Unsupported {
    pub(super) fn new(preset: Preset, reason: String) -> Self {
        Self { preset, reason }
    }
}

/// The events of a preset on this machine: several where a CPU has several kinds of core or the
/// preset needs several events.
///
/// # Errors
/// [`Unsupported`], with the reason.
pub fn events_for(preset: Preset, pmus: &Pmus, options: &Options) -> Result<Vec<EventRequest>, Unsupported> {
    if options.ldlat.is_some() && !matches!(preset, Preset::Loads | Preset::Mem | Preset::C2c) {
        let why = "a latency threshold applies only to loads, mem and c2c";
        return Err(Unsupported::new(preset, why.to_owned()));
    }
    if options.l3_miss_only && !matches!(preset, Preset::Loads | Preset::L3Miss) {
        let why = "the filter for L3 misses (--l3-miss-only) drops everything but loads that miss, so \
                   it applies only to loads and l3-miss";
        return Err(Unsupported::new(preset, why.to_owned()));
    }
    match pmus.cpu.vendor {
        Vendor::Intel => intel::events_for(preset, pmus, options),
        Vendor::Amd => amd::events_for(preset, pmus, options),
        Vendor::Other => generic::events_for(preset, pmus, options),
    }
}

/// One thing to try.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Candidate {
    /// The events to open together.
    pub events: Vec<EventRequest>,
    /// What to tell the user when it comes to this: why the candidates before it were not enough.
    /// Empty for the first.
    pub findings: Vec<String>,
}

/// What a timer's samples are worth.
const TIMER: &str = "a timer (cpu-clock) takes the samples: addresses are a few instructions late, and \
                     code that runs with interrupts disabled is blamed on the instruction that \
                     re-enables them";

/// What to try, in this order, when the user names no event: where cycles are spent, as precisely
/// as the machine can. Within a candidate, [`ladder::ladder`] has the levels to step down.
///
/// # Errors
/// With [`Precision::Require`], where nothing precise can be tried.
pub fn default_candidates(pmus: &Pmus, precision: Precision) -> Result<Vec<Candidate>, Unsupported> {
    let options = Options::default();
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut findings = Vec::new();
    let mut add = |events: Vec<EventRequest>, findings: &mut Vec<String>| {
        let never = events.iter().find_map(|event| match &event.exactness {
            Exactness::Never(why) => Some(why.clone()),
            _ => None,
        });
        if precision == Precision::Require && never.is_some() {
            findings.extend(never);
            return;
        }
        candidates.push(Candidate { events, findings: std::mem::take(findings) });
    };
    // Without precision wanted, the ordinary counter is all: IBS has no imprecise samples.
    if precision != Precision::Off {
        match events_for(Preset::Cycles, pmus, &options) {
            Ok(events) => add(events, &mut findings),
            Err(unsupported) => findings.push(unsupported.reason),
        }
    }
    if precision == Precision::Off || pmus.get("ibs_op").is_some() && pmus.cpu.vendor == Vendor::Amd {
        match generic::cycles(Preset::Cycles, pmus) {
            Ok(events) => {
                if precision != Precision::Off {
                    findings
                        .push("the kernel refused IBS, so cycles come from the ordinary counter".to_owned());
                }
                add(events, &mut findings);
            }
            Err(unsupported) => findings.push(unsupported.reason),
        }
    }
    if findings.is_empty() {
        findings.push("the hardware event cycles could not be opened".to_owned());
    }
    findings.push(TIMER.to_owned());
    if precision == Precision::Require {
        findings.pop();
    } else if let Ok(events) = generic::events_for(Preset::Clock, pmus, &options) {
        add(events, &mut findings);
    }
    if candidates.is_empty() {
        return Err(Unsupported::new(Preset::Cycles, findings.join("; ")));
    }
    Ok(candidates)
}

/// The levels to try for each event of a candidate.
pub fn ladders(candidate: &Candidate, precision: Precision) -> Vec<ladder::Ladder> {
    candidate.events.iter().map(|event| ladder::ladder(event, precision)).collect()
}

#[cfg(test)]
#[path = "preset_tests.rs"]
mod tests;
