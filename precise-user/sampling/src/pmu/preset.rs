//! Maps a preset, which states what the user wants to know, to the events that answer it on this
//! machine.

use schemars::JsonSchema;
use serde::Serialize;

use super::request::{EventRequest, Exactness};
use super::sysfs::Pmus;
use super::{amd, generic, intel, ladder};
use precise_model::{Precision, Preset, Vendor};

/// Options of a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PresetOptions {
    /// The lowest load latency to sample, in core cycles (`--ldlat`). `None`: the vendor's default.
    pub ldlat: Option<u32>,
    /// Whether the hardware samples only loads that missed the L3 cache (`--l3-miss-only`): AMD Zen
    /// 4 and later.
    pub l3_miss_only: bool,
}

/// A preset that this machine does not support.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, JsonSchema)]
#[error("{preset} cannot be sampled here: {reason}")]
pub struct Unsupported {
    /// The preset.
    pub preset: Preset,
    /// Why the machine does not support it and what to do, as a sentence.
    pub reason: String,
}

impl Unsupported {
    pub(super) fn new(preset: Preset, reason: String) -> Self {
        Self { preset, reason }
    }
}

/// Returns the events of a preset on this machine. There are several if the CPU has several kinds
/// of core, or if the preset needs several events.
///
/// # Errors
/// Returns [`Unsupported`] with the reason.
pub fn events_for(
    preset: Preset,
    pmus: &Pmus,
    options: &PresetOptions,
) -> Result<Vec<EventRequest>, Unsupported> {
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

/// A set of events to try.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Candidate {
    /// The events to open together.
    pub events: Vec<EventRequest>,
    /// What to tell the user if this candidate is used: why the candidates before it failed. Empty
    /// for the first candidate.
    pub findings: Vec<String>,
}

/// Returns the candidates to try, in this order, if the user names no event: they show where cycles
/// are spent, as precisely as the machine allows. Within a candidate, [`ladder::ladder`] lists the
/// levels to try.
///
/// # Errors
/// Returns an error with [`Precision::Require`] if no precise event can be tried.
pub fn default_candidates(pmus: &Pmus, precision: Precision) -> Result<Vec<Candidate>, Unsupported> {
    let options = PresetOptions::default();
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
    // Without precision, only the ordinary counter is left: IBS has no imprecise samples.
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
    // The level that is granted to the timer comes with the sentence that its samples are late.
    if precision != Precision::Require
        && let Ok(events) = generic::events_for(Preset::Clock, pmus, &options)
    {
        add(events, &mut findings);
    }
    if candidates.is_empty() {
        return Err(Unsupported::new(Preset::Cycles, findings.join("; ")));
    }
    Ok(candidates)
}

/// Returns the levels to try for each event of a candidate.
pub fn ladders(candidate: &Candidate, precision: Precision) -> Vec<ladder::Ladder> {
    candidate.events.iter().map(|event| ladder::ladder(event, precision)).collect()
}

#[cfg(test)]
#[path = "preset_tests.rs"]
mod tests;
