//! Parses an event as perf's users write it, and encodes it as the words of `perf_event_attr`.
//!
//! Supported: names (`cycles`, `page-faults`, `LLC-load-misses`, the kernel's own such as
//! `mem-loads`), raw numbers (`r1cd`), terms of a PMU (`cpu/event=0xd1,umask=0x20/`,
//! `cpu/mem-loads,ldlat=30/`), and the modifiers `u`, `k`, `p`, `pp`, `ppp`, `P` after a colon or
//! the last slash. Not supported: groups in braces (a leader that an event needs is added
//! automatically), tracepoints, breakpoints.
//!
//! Two deliberate differences from perf: a term next to an event name always overrides the event's
//! own term (`ldlat=30` overrides the 3 of `mem-loads`), at any position; and a value that does not
//! fit its field is an error in every word.

use super::error::EncodeError;
use super::names::{self, PMU_TYPE_SHIFT, TYPE_CACHE, TYPE_HARDWARE, TYPE_SOFTWARE};
use super::request::{EventRequest, Exactness, NO_FIELDS, Traits, period};
use super::sysfs::{Pmu, Pmus, Word};
use super::terms::{Modifiers, Terms, raw, resolve};
use super::{amd, generic, intel, tables};
use precise_model::suggest::nearest;
use precise_model::{CompactSort as _, Vendor};

type Result<T> = std::result::Result<T, EncodeError>;

/// Parses a comma-separated list of events. Commas between slashes are part of the event.
///
/// # Errors
/// Returns the error of the first invalid event.
pub fn parse_list(text: &str, pmus: &Pmus) -> Result<Vec<EventRequest>> {
    let mut requests = Vec::new();
    for part in split_list(text) {
        requests.extend(parse(part, pmus)?);
    }
    Ok(requests)
}

/// Splits a comma-separated list of events. Commas between slashes are part of the event.
pub fn split_list(text: &str) -> Vec<&str> {
    let mut inside = false;
    let parts = text.split(|c: char| {
        inside ^= c == '/';
        c == ',' && !inside
    });
    parts.map(str::trim).collect()
}

/// Parses one event. On a hybrid CPU, a name without a PMU gives one request per kind of core.
///
/// # Errors
/// Returns an [`EncodeError`] if the text is not an event of this machine.
pub fn parse(text: &str, pmus: &Pmus) -> Result<Vec<EventRequest>> {
    let text = text.trim();
    let syntax = |why: &str| Err(EncodeError::Syntax { text: text.to_owned(), why: why.to_owned() });
    if text.is_empty() {
        return syntax("it is empty");
    }
    if text.contains(['{', '}']) {
        return syntax(
            "event groups are not supported; list the events one by one (precise adds a group leader \
             where an event needs one)",
        );
    }
    if let Some((name, rest)) = text.split_once('/') {
        let Some((terms, modifiers)) = rest.rsplit_once('/') else {
            return syntax("the closing slash of its terms is missing");
        };
        let modifiers = Modifiers::parse(text, modifiers.strip_prefix(':').unwrap_or(modifiers))?;
        // A term without a value is wrong on every machine, so this error comes before all others.
        if let Some(term) = terms.split(',').find(|term| term.trim_end().ends_with('=')) {
            return syntax(&format!("'{}' has no value", term.trim()));
        }
        let Some(pmu) = pmus.get(name) else {
            return Err(unknown_pmu(name, pmus));
        };
        return Ok(vec![parse_terms(text, pmu, terms, &modifiers, pmus)?]);
    }
    let (name, modifier_text) = text.split_once(':').unwrap_or((text, ""));
    if name == "mem" && modifier_text.starts_with("0x") {
        return syntax("breakpoints cannot be sampled");
    }
    if software_or_known(name, pmus).is_none() && modifier_text.chars().any(|c| !"ukhpPGHISDWeb".contains(c))
    {
        return syntax("tracepoints cannot be sampled; `precise list` shows the events that can");
    }
    let modifiers = Modifiers::parse(text, modifier_text)?;
    let on = |pmu: &Pmu| {
        let mut request = parse_terms(text, pmu, name, &modifiers, pmus)?;
        request.name = pmus.event_name(pmu, name, modifier_text);
        Ok(request)
    };
    if let Some(event) = names::software(name) {
        let code = Code { pmu: "software".to_owned(), type_: TYPE_SOFTWARE, words: [event.config, 0, 0, 0] };
        return Ok(vec![code.request(
            text,
            format!("{name}{}", modifiers.after(":")),
            &modifiers,
            event.traits(),
        )]);
    }
    if names::hardware(name).is_some() || names::cache(name).is_some() || raw(name).is_some() {
        if let Some(why) = pmus.why_no_core_pmu() {
            return Err(EncodeError::Unsupported { name: name.to_owned(), why });
        }
        return pmus.cores().into_iter().map(on).collect();
    }
    let holders: Vec<&Pmu> =
        pmus.cores().into_iter().chain(pmus.pmus.iter().filter(|pmu| !pmu.is_core())).collect();
    let mut holders: Vec<&Pmu> =
        holders.into_iter().filter(|pmu| terms_of(pmu, name, pmus).is_some()).collect();
    if holders.iter().any(|pmu| pmu.is_core()) {
        holders.retain(|pmu| pmu.is_core());
    }
    if holders.is_empty() {
        return Err(unknown_event(name, pmus));
    }
    holders.into_iter().map(on).collect()
}

fn software_or_known(name: &str, pmus: &Pmus) -> Option<()> {
    let known = names::software(name).is_some()
        || names::hardware(name).is_some()
        || names::cache(name).is_some()
        || raw(name).is_some()
        || pmus.pmus.iter().any(|pmu| terms_of(pmu, name, pmus).is_some());
    known.then_some(())
}

/// Returns the terms that an event name stands for, from sysfs or from the tables.
fn terms_of(pmu: &Pmu, name: &str, pmus: &Pmus) -> Option<String> {
    let listed = || tables::by_name(pmu, pmus, name).map(|event| event.terms(pmu));
    pmu.events.get(name).cloned().or_else(listed)
}

fn unknown_pmu(name: &str, pmus: &Pmus) -> EncodeError {
    if let ("cpu", Some(why)) = (name, pmus.why_no_core_pmu()) {
        return EncodeError::Unsupported { name: name.to_owned(), why };
    }
    let known: Vec<String> = pmus.pmus.iter().map(|pmu| pmu.name.clone()).collect();
    let hybrid = (name == "cpu").then(|| pmus.cores().first().map(|pmu| pmu.name.clone())).flatten();
    let nearest = hybrid.or_else(|| nearest(name, known.iter().map(String::as_str)).map(str::to_owned));
    EncodeError::UnknownPmu { name: name.to_owned(), nearest, known }
}

fn unknown_event(name: &str, pmus: &Pmus) -> EncodeError {
    let mut known: Vec<String> = Vec::new();
    let usable = names::HARDWARE.iter().filter(|_| !pmus.cores().is_empty()).flat_map(|event| event.names);
    known.extend(
        usable.chain(names::SOFTWARE.iter().flat_map(|event| event.names)).map(|&name| name.to_owned()),
    );
    let own = pmus.pmus.iter().filter(|pmu| !pmu.counts_only()).flat_map(|pmu| pmu.events.keys());
    known.extend(own.cloned());
    let listed = pmus.cores().into_iter().flat_map(|pmu| tables::of(pmu, pmus));
    known.extend(listed.map(|event| event.name.to_owned()));
    known.compact_sort();
    known.dedup();
    // A name that this machine cannot sample would only lead to the next error.
    let nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    EncodeError::UnknownEvent { name: name.to_owned(), nearest, known }
}

/// The PMU of an event, and the event's text there.
struct Code {
    pmu: String,
    type_: u32,
    words: [u64; 4],
}

impl Code {
    fn request(self, name: &str, encoding: String, modifiers: &Modifiers, traits: Traits) -> EventRequest {
        let [config, config1, config2, config3] = self.words;
        EventRequest {
            name: name.to_owned(),
            encoding,
            pmu: self.pmu,
            type_: self.type_,
            config,
            config1,
            config2,
            config3,
            precise: modifiers.level,
            exclude_user: modifiers.kernel && !modifiers.user,
            exclude_kernel: modifiers.user && !modifiers.kernel,
            cpus: None,
            unit: traits.unit.to_owned(),
            fields: traits.fields,
            exactness: traits.exactness,
            default_period: traits.period,
            leader: None,
            tagged: None,
            stores: false,
            filter: None,
            notes: traits.notes,
        }
    }
}

fn parse_terms(
    text: &str,
    pmu: &Pmu,
    terms: &str,
    modifiers: &Modifiers,
    pmus: &Pmus,
) -> Result<EventRequest> {
    if pmu.counts_only() {
        let why = format!("the PMU {} only counts and cannot take samples", pmu.name);
        return Err(EncodeError::Unsupported { name: text.to_owned(), why });
    }
    let mut read = Terms::default();
    let parts: Vec<&str> = terms.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    // Event names first, so that an explicit term overrides theirs at any position.
    let named: Vec<Option<String>> = parts.iter().map(|part| terms_of(pmu, part, pmus)).collect();
    for term in named.iter().flatten().flat_map(|event| event.split(',')) {
        resolve(text, pmu, term.trim(), &mut read)?;
    }
    for (part, _) in parts.iter().zip(&named).filter(|(_, named)| named.is_none()) {
        resolve(text, pmu, part, &mut read)?;
    }
    let mut request = match &read.generic {
        Some(name) if read.set.is_empty() => generic_event(text, pmu, name, modifiers, pmus),
        Some(name) => {
            let why = format!("'{name}' is a generic event and accepts no other terms");
            return Err(EncodeError::Syntax { text: text.to_owned(), why });
        }
        None => pmu_event(text, pmu, &read.set, modifiers, pmus)?,
    };
    request.cpus.clone_from(&pmu.cpus);
    request.tagged = amd::tagged(pmu, pmus);
    if let Some(name) = read.name {
        request.name = name;
    }
    if let Some(period) = read.period {
        request.default_period = period;
    }
    Ok(request)
}

/// Returns the request of a generic hardware or cache event on one kind of core.
fn generic_event(text: &str, pmu: &Pmu, name: &str, modifiers: &Modifiers, pmus: &Pmus) -> EventRequest {
    let (type_, config, unit, period) = match names::hardware(name) {
        Some(event) => (TYPE_HARDWARE, event.config, event.unit, event.period),
        None if name.ends_with("misses") => {
            (TYPE_CACHE, names::cache(name).unwrap_or(0), "misses", period::MISSES)
        }
        None => (TYPE_CACHE, names::cache(name).unwrap_or(0), "accesses", period::OFTEN),
    };
    let hybrid = pmus.is_hybrid();
    let config = if hybrid { config | u64::from(pmu.type_) << PMU_TYPE_SHIFT } else { config };
    let encoding = if hybrid {
        format!("{}/{name}/{}", pmu.name, modifiers.after(""))
    } else {
        format!("{name}{}", modifiers.after(":"))
    };
    let cycles = names::hardware(name).is_some_and(|event| event.config == names::CYCLES);
    let exactness = match pmus.cpu.vendor {
        Vendor::Amd => amd::exactness(pmus, cycles, modifiers.user != modifiers.kernel),
        Vendor::Intel | Vendor::Other => generic::EXACTNESS,
    };
    let (fields, period) = match pmus.cpu.vendor {
        Vendor::Amd => (amd::fields_of(&exactness), amd::period_of(&exactness, period)),
        Vendor::Intel | Vendor::Other => (NO_FIELDS, period),
    };
    let traits = Traits { unit, fields, exactness, period, notes: Vec::new() };
    let code = Code { pmu: pmu.name.clone(), type_, words: [config, 0, 0, 0] };
    let mut request = code.request(text, encoding, modifiers, traits);
    // The driver replaces cycles and instructions with precise alternatives (`pebs_aliases`), but
    // no other generic event.
    let stands_in =
        matches!(names::hardware(name).map(|event| event.config), Some(names::CYCLES | names::INSTRUCTIONS));
    tables::hold_back(&mut request, pmu, pmus, stands_in);
    request
}

/// Returns the request of an event given by terms of its PMU.
fn pmu_event(
    text: &str,
    pmu: &Pmu,
    terms: &[(String, u64)],
    modifiers: &Modifiers,
    pmus: &Pmus,
) -> Result<EventRequest> {
    let mut words = [0; 4];
    let mut written = Vec::new();
    // Whole words first: an explicit term then sets its own bits in them.
    for (name, value) in terms {
        if let Some(word) = Word::parse(name) {
            words[word.index()] = *value;
            written.push(format!("{name}={value:#x}"));
        }
    }
    for (name, value) in terms.iter().filter(|(name, _)| Word::parse(name).is_none()) {
        if let Some(format) = pmu.format.get(name) {
            format.place(*value, &mut words);
            written.push(format!("{name}={value:#x}"));
        }
    }
    let excludes = modifiers.user != modifiers.kernel;
    if pmu.is_ibs() && excludes {
        amd::software_filter(pmu, &mut words, &mut written)
            .map_err(|why| EncodeError::Unsupported { name: text.to_owned(), why })?;
    }
    let encoding = format!("{}/{}/{}", pmu.name, written.join(","), modifiers.after(""));
    let traits = if pmu.is_ibs() {
        amd::traits(pmu, &words, pmus)
            .map_err(|why| EncodeError::Unsupported { name: text.to_owned(), why })?
    } else if pmu.is_core() {
        match pmus.cpu.vendor {
            Vendor::Intel => intel::traits(pmu, &words, pmus),
            Vendor::Amd => amd::core_traits(&words, pmus, excludes),
            Vendor::Other => generic::traits(),
        }
    } else {
        Traits {
            exactness: Exactness::Never(format!(
                "precise does not know how to sample precisely with the PMU {}",
                pmu.name
            )),
            ..generic::traits()
        }
    };
    let mut request =
        Code { pmu: pmu.name.clone(), type_: pmu.type_, words }.request(text, encoding, modifiers, traits);
    tables::hold_back(&mut request, pmu, pmus, intel::is_recorded(&words));
    request.stores = pmus.cpu.vendor == Vendor::Intel && intel::stores_called_loads(pmu, &words);
    if pmus.cpu.vendor == Vendor::Intel && intel::needs_aux_leader(pmu, &words) {
        let mut leader = pmu_event_of(pmu, intel::AUX, pmus)?;
        leader.exclude_user = request.exclude_user;
        leader.exclude_kernel = request.exclude_kernel;
        leader.default_period = 0;
        request.leader = Some(Box::new(leader));
    }
    Ok(request)
}

/// Returns the request of an event of `pmu` by its name in sysfs, without modifiers.
fn pmu_event_of(pmu: &Pmu, name: &str, pmus: &Pmus) -> Result<EventRequest> {
    parse_terms(name, pmu, name, &Modifiers::default(), pmus)
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
