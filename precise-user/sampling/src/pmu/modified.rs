//! Presets with event modifiers: `loads:u`, `stores:k`, `locks:pp`.

use super::error::EncodeError;
use super::preset::{PresetOptions, Unsupported, events_for};
use super::request::{EventRequest, Exactness, PreciseLevel};
use super::sysfs::Pmus;
use super::terms::Modifiers;
use super::{encode, names};
use precise_model::Preset;

/// Splits a text such as `loads:u` into the preset and its modifiers.
///
/// Returns `None` if the name is not a preset, or if it is also an event of perf: `branches:u` and
/// `cycles:u` mean the event.
pub fn parse(text: &str) -> Option<(Preset, &str)> {
    let (name, modifiers) = text.split_once(':')?;
    let is_event = names::hardware(name).is_some() || names::software(name).is_some();
    Preset::parse(name).filter(|_| !is_event).map(|preset| (preset, modifiers))
}

/// Returns the events of a preset with the modifiers applied to each. If the PMU cannot exclude
/// user or kernel mode (IBS before Linux 6.14), the filter does, and a note reports it.
///
/// # Errors
///
/// Returns [`EncodeError::Syntax`] if a modifier is invalid, and [`EncodeError::Unsupported`] if
/// this machine has no such events.
pub fn events(
    preset: Preset,
    modifiers: &str,
    pmus: &Pmus,
    options: &PresetOptions,
) -> Result<Vec<EventRequest>, EncodeError> {
    let name = format!("{preset}:{modifiers}");
    let wanted = Modifiers::parse(&name, modifiers)?;
    let refused = |Unsupported { reason, .. }| EncodeError::Unsupported { name: name.clone(), why: reason };
    let mut requests = events_for(preset, pmus, options).map_err(refused)?;
    for request in &mut requests {
        match again(request, &wanted, pmus) {
            Ok(modified) => take(request, modified),
            Err(EncodeError::Unsupported { .. }) if request.exactness == Exactness::Ibs => {
                in_program(request, &wanted);
            }
            Err(error) => return Err(error),
        }
        request.name.clone_from(&name);
    }
    Ok(requests)
}

/// Encodes an event again, from its text with the modifiers added.
fn again(request: &EventRequest, wanted: &Modifiers, pmus: &Pmus) -> Result<EventRequest, EncodeError> {
    // The event may have modifiers already: after the last `/` of an event with terms, or after the
    // colon of an event name.
    let (event, own) = match request.encoding.rsplit_once(['/', ':']) {
        Some((event, own)) if request.encoding.contains('/') => (format!("{event}/"), own),
        Some((event, own)) => (format!("{event}:"), own),
        None => (format!("{}:", request.encoding), ""),
    };
    let level: String = own.chars().filter(|c| matches!(c, 'p' | 'P')).collect();
    let level = if wanted.level == PreciseLevel::Unspecified { level } else { String::new() };
    let text = format!("{event}{}{level}", wanted.after(""));
    let text = text.trim_end_matches(':');
    let mut events = encode::parse(text, pmus)?;
    events.retain(|event| event.pmu == request.pmu);
    events.pop().ok_or_else(|| EncodeError::Unsupported {
        name: text.to_owned(),
        why: format!("the PMU {} does not have this event", request.pmu),
    })
}

/// Copies what the modifiers change into `request`. The preset's filter, fields and registers stay.
fn take(request: &mut EventRequest, modified: EventRequest) {
    let EventRequest {
        encoding,
        config,
        config1,
        config2,
        config3,
        precise,
        exclude_user,
        exclude_kernel,
        leader,
        notes,
        ..
    } = modified;
    (request.config, request.config1, request.config2, request.config3) = (config, config1, config2, config3);
    (request.exclude_user, request.exclude_kernel) = (exclude_user, exclude_kernel);
    (request.encoding, request.leader) = (encoding, leader);
    // The imprecise half of `skid` must stay imprecise, which no text can express.
    if request.precise != PreciseLevel::Given(0) {
        request.precise = precise;
    }
    for note in notes {
        if !request.notes.contains(&note) {
            request.notes.push(note);
        }
    }
}

/// Adds a filter, so that the program drops what the PMU cannot exclude.
fn in_program(request: &mut EventRequest, wanted: &Modifiers) {
    let mode = if wanted.user { "user" } else { "kernel" };
    let other = if wanted.user { "kernel" } else { "user" };
    request.filter = Some(match request.filter.take() {
        Some(filter) => format!("({filter}) && mode == {mode}"),
        None => format!("mode == {mode}"),
    });
    request.notes.push(format!(
        "{} cannot exclude {other} code on this kernel (Linux 6.14 and later can): the program drops \
         it, after its interrupt",
        request.pmu
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmu::fixture::{self, Tree};

    fn of(text: &str, tree: &Tree) -> Result<Vec<EventRequest>, EncodeError> {
        let (preset, modifiers) = parse(text).unwrap();
        events(preset, modifiers, &tree.pmus(), &PresetOptions::default())
    }

    #[test]
    fn names_of_events_stay_events() {
        assert_eq!(parse("loads:u"), Some((Preset::Loads, "u")));
        assert_eq!(parse("l3-miss:ppp"), Some((Preset::L3Miss, "ppp")));
        for text in ["branches:u", "cycles:k", "faults:u", "loads", "cpu/loads/u", "nothing:u"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn counters_leave_out_what_is_asked() {
        let plain = &events_for(Preset::Loads, &fixture::skl().pmus(), &PresetOptions::default()).unwrap()[0];
        let user = &of("loads:u", &fixture::skl()).unwrap()[0];
        assert!(user.exclude_kernel && !user.exclude_user);
        assert_eq!(user.encoding, "cpu/event=0xcd,umask=0x1,ldlat=0x1e/uP");
        let EventRequest { fields, exactness, default_period, .. } = plain;
        assert_eq!(
            (&user.fields, &user.exactness, &user.default_period),
            (fields, exactness, default_period)
        );
        assert_eq!((user.name.as_str(), user.filter.as_deref()), ("loads:u", None));

        for event in of("tlb:kpp", &fixture::skl()).unwrap() {
            assert!(event.exclude_user && event.precise == PreciseLevel::Given(2), "{event:?}");
        }
        let led = &of("loads:u", &fixture::spr()).unwrap()[0];
        assert!(led.leader.as_ref().is_some_and(|leader| leader.exclude_kernel), "{led:?}");
        let both = of("mem:u", &fixture::adl()).unwrap();
        assert!(both.iter().all(|event| event.exclude_kernel) && both.len() > 2, "{both:?}");
        assert!(of("clock:k", &fixture::vm()).unwrap()[0].exclude_user);
    }

    #[test]
    fn ibs_filters_in_the_kernel_or_in_the_program() {
        // Recorded on Linux 6.12, except for what is new in 6.14.
        let old = &of("loads:u", &fixture::zen3()).unwrap()[0];
        assert_eq!(old.filter.as_deref(), Some("(mem_op == load) && mode == user"));
        assert!(!old.exclude_kernel && old.notes.iter().any(|note| note.contains("6.14")), "{old:?}");
        let kernel = &of("ops:k", &fixture::zen3()).unwrap()[0];
        assert_eq!(kernel.filter.as_deref(), Some("mode == kernel"));

        let new = fixture::zen3().pmu("ibs_op", 11, &["format/swfilt=config2:0"]);
        let new = &of("splits:u", &new).unwrap()[0];
        assert!(new.exclude_kernel && new.config2 == 1, "{new:?}");
        assert_eq!(
            new.filter.as_deref(),
            Some("(mem_op == load || mem_op == store) && access == misaligned")
        );
    }

    #[test]
    fn what_is_no_modifier_is_said() {
        let error = of("loads:x", &fixture::skl()).unwrap_err().to_string();
        assert!(error.contains("'x' is not a modifier"), "{error}");
        assert!(matches!(of("loads:u", &fixture::vm()), Err(EncodeError::Unsupported { .. })));
    }
}
