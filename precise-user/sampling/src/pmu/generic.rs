//! Presets that work on any vendor's hardware.

use super::encode;
use super::error::EncodeError;
use super::preset::{PresetOptions, Unsupported};
use super::request::{EventRequest, Exactness, NO_FIELDS, PreciseLevel, Traits, period};
use super::sysfs::Pmus;
use precise_model::Preset;

/// The exactness of a core PMU's event without further knowledge: the kernel decides on each level.
/// Levels 2 and 3 are exact by the definition of the attribute (include/uapi/linux/perf_event.h).
pub(super) const EXACTNESS: Exactness = Exactness::PreciseIp { max: 3, exact: 2 };

pub(super) fn traits() -> Traits {
    Traits {
        unit: "events",
        fields: NO_FIELDS,
        exactness: EXACTNESS,
        period: period::SELDOM,
        notes: Vec::new(),
    }
}

/// Returns the events of a preset that every machine, or every machine with a CPU PMU, supports.
///
/// # Errors
/// Returns [`Unsupported`] with the reason for every other preset.
pub fn events_for(
    preset: Preset,
    pmus: &Pmus,
    _options: &PresetOptions,
) -> Result<Vec<EventRequest>, Unsupported> {
    match preset {
        Preset::Faults => named("page-faults", preset, pmus),
        Preset::Clock => named("cpu-clock", preset, pmus),
        Preset::Cycles => cycles(preset, pmus),
        Preset::Skid => skid(cycles(preset, pmus)?, pmus),
        _ => Err(Unsupported::new(
            preset,
            match pmus.why_no_core_pmu() {
                Some(why) => why,
                None => "it needs Intel PEBS or AMD IBS, and this CPU has neither".to_owned(),
            },
        )),
    }
}

/// Returns generic cycles on each kind of core, as precise as the machine allows.
pub(super) fn cycles(preset: Preset, pmus: &Pmus) -> Result<Vec<EventRequest>, Unsupported> {
    named("cycles", preset, pmus)
}

/// Returns cycles twice: the precise events, and the same events with ordinary interrupts.
pub(super) fn skid(precise: Vec<EventRequest>, pmus: &Pmus) -> Result<Vec<EventRequest>, Unsupported> {
    let mut events = precise;
    if let Some(why) = events.iter().find_map(|event| match &event.exactness {
        Exactness::Never(why) => Some(why.clone()),
        _ => None,
    }) {
        return Err(Unsupported::new(
            Preset::Skid,
            format!("there is no precise event to compare with: {why}"),
        ));
    }
    for mut plain in cycles(Preset::Skid, pmus)? {
        plain.precise = PreciseLevel::Given(0);
        plain.default_period = period::CYCLES_BESIDE;
        plain.name = "cycles (imprecise)".to_owned();
        events.push(plain);
    }
    Ok(events)
}

/// Returns the event with this name, for a preset.
pub(super) fn named(event: &str, preset: Preset, pmus: &Pmus) -> Result<Vec<EventRequest>, Unsupported> {
    encode::parse(event, pmus).map_err(|error| {
        let why = match error {
            EncodeError::Unsupported { why, .. } => why,
            other => other.to_string(),
        };
        Unsupported::new(preset, why)
    })
}
