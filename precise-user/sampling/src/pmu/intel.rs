//! Intel: PEBS. Encodings and rules come from Linux 6.12, arch/x86/events/intel/{core,ds}.c, and
//! from Intel's event lists.
//!
//! Loads and stores are the events that sysfs names (`mem-loads`, `mem-stores`). Precise events
//! that sysfs does not name are in the tables of [`tables`].

use super::encode;
use super::error::EncodeError;
use super::generic;
use super::preset::{PresetOptions, Unsupported};
use super::request::{ALL_FIELDS, EventRequest, Exactness, NO_FIELDS, PreciseLevel, Traits, period};
use super::sysfs::{Pmu, Pmus};
use super::tables::{self, Core};
use precise_model::Fields;
use precise_model::Preset;

/// The event that must lead the group of `mem-loads` on some cores.
pub(super) const AUX: &str = "mem-loads-aux";
/// The default latency threshold of loads, in core cycles: perf's default
/// (`perf_mem_events__loads_ldlat`, tools/perf/util/mem-events.c). Loads that hit the L1 or L2
/// cache are faster.
const DEFAULT_LDLAT: u32 = 30;
/// The bits of event select and unit mask in `config`.
const EVENT_MASK: u64 = 0xffff;
/// MEM_TRANS_RETIRED.LOAD_LATENCY of the big cores.
const LOAD_LATENCY: u64 = 0x01cd;
/// MEM_TRANS_RETIRED.STORE_SAMPLE (Golden Cove and later), PRECISE_STORE (Sandy and Ivy Bridge).
const STORE_SAMPLE: u64 = 0x02cd;
/// MEM_INST_RETIRED.ALL_STORES, with which Haswell to Ice Lake sample stores.
const ALL_STORES: u64 = 0x82d0;
/// MEM_UOPS_RETIRED.LOAD_LATENCY and STORE_LATENCY of Gracemont and later small cores.
const SMALL_LOAD_LATENCY: u64 = 0x05d0;
const SMALL_STORE_LATENCY: u64 = 0x06d0;

fn is_small(pmu: &Pmu) -> bool {
    pmu.name == "cpu_atom"
        || pmu.name == "cpu_lowpower"
        || matches!(pmu.core_name(), "gracemont" | "crestmont" | "tremont" | "goldmont" | "goldmont_plus")
}

/// Returns whether the kernel refuses `mem-loads` (ENODATA) unless `mem-loads-aux` leads its group:
/// Sapphire and Emerald Rapids, the big cores of Alder and Raptor Lake (kernel:
/// `PMU_FL_MEM_LOADS_AUX`, `intel_pmu_hw_config()`).
///
/// These cores have the event in sysfs. Granite Rapids has it too but does not need it. A core
/// without a name is assumed to need it: an unnecessary leader costs one counter, a missing one
/// costs every sample.
pub(super) fn needs_aux_leader(pmu: &Pmu, words: &[u64; 4]) -> bool {
    !is_small(pmu)
        && words[0] & EVENT_MASK == LOAD_LATENCY
        && pmu.events.contains_key(AUX)
        && pmu.core_name() != "granite_rapids"
}

/// Returns whether the driver decodes the data source of these stores with its table of loads.
pub(super) fn stores_called_loads(pmu: &Pmu, words: &[u64; 4]) -> bool {
    is_small(pmu) && words[0] & EVENT_MASK == SMALL_STORE_LATENCY
}

/// Returns the known properties of a raw event of a core.
pub(super) fn traits(pmu: &Pmu, words: &[u64; 4], pmus: &Pmus) -> Traits {
    let mut traits = match tables::by_words(pmu, pmus, words) {
        Some(event) => event.traits(),
        None => memory_traits(pmu, words),
    };
    if pmus.cpu.hypervisor && traits.fields.address {
        traits.notes.push(GUEST.to_owned());
    }
    traits
}

/// Returns the known properties of the events that sysfs names, and of events of their families
/// that are in no table.
fn memory_traits(pmu: &Pmu, words: &[u64; 4]) -> Traits {
    let base = generic::traits();
    let loads = Traits { unit: "loads", fields: ALL_FIELDS, period: period::MISSES, ..base.clone() };
    let stores = Traits { unit: "stores", fields: ALL_FIELDS, period: period::OFTEN, ..base.clone() };
    let stores_at_l1 = Traits {
        fields: Fields { latency: false, ..ALL_FIELDS },
        notes: vec![L1_OR_NOT.to_owned()],
        ..stores.clone()
    };
    match (is_small(pmu), words[0] & EVENT_MASK) {
        // The newer cores refuse level 3 (it requires counter 0, which cannot count load latency).
        // On the older ones it is not more exact: there it is meant for INST_RETIRED.PREC_DIST.
        (false, LOAD_LATENCY) => Traits {
            exactness: Exactness::PreciseIp { max: 2, exact: 2 },
            notes: Core::of(pmu)
                .and_then(|core| tables::errata(core.load_latency_errata()))
                .into_iter()
                .collect(),
            ..loads
        },
        (false, STORE_SAMPLE) if matches!(pmu.core_name(), "sandybridge" | "ivybridge") => stores_at_l1,
        (false, STORE_SAMPLE) => stores,
        (false, ALL_STORES) => stores_at_l1,
        // The families of MEM_INST_RETIRED and MEM_LOAD_*_RETIRED: the event itself implies the
        // level.
        (false, code) if (0xd0..=0xd3).contains(&(code & 0xff)) => {
            Traits { fields: Fields { address: true, ..NO_FIELDS }, period: period::MISSES, ..base }
        }
        // On these cores level 3 requires counter 0, and loads and stores would have to take turns
        // on it (`tnt_get_event_constraints()`).
        (true, SMALL_LOAD_LATENCY) => {
            Traits { exactness: Exactness::PreciseIp { max: 2, exact: 2 }, ..loads }
        }
        (true, SMALL_STORE_LATENCY) => {
            Traits { exactness: Exactness::PreciseIp { max: 2, exact: 2 }, ..stores }
        }
        _ => base,
    }
}

/// Returns whether the hardware probably writes PEBS records for an event, on a core that does so
/// for few events only: for cycles, which the driver replaces (`pebs_aliases`), and for the
/// families that Intel's lists mark as PEBS events.
pub(super) fn is_recorded(words: &[u64; 4]) -> bool {
    let (select, umask) = (words[0] & 0xff, words[0] >> 8 & 0xff);
    match select {
        // The events for all branches and for all mispredicted branches (0x00c5) can only be
        // counted. The versions with records have another unit mask.
        0xc4 | 0xc5 => umask != 0,
        0x3c => umask == 0,
        0xc0 | 0xc2 | 0xc6 | 0xc8 | 0xc9 | 0xcd | 0xd0..=0xd3 => true,
        _ => false,
    }
}

const L1_OR_NOT: &str = "the data source of a store on this core tells only whether it hit the L1 cache";
/// Since Linux 6.9, KVM hides adaptive PEBS from guests, so they get only the basic record.
const GUEST: &str =
    "in a virtual machine, PEBS may give exact IPs without addresses, latencies and data sources";

/// Returns the events of a preset on Intel.
///
/// # Errors
/// Returns [`Unsupported`] with the reason.
pub fn events_for(
    preset: Preset,
    pmus: &Pmus,
    options: &PresetOptions,
) -> Result<Vec<EventRequest>, Unsupported> {
    if options.l3_miss_only {
        let why = "only IBS of AMD Zen 4 and later filters for L3 misses in hardware; the preset \
                   l3-miss is the counterpart on this CPU";
        return Err(Unsupported::new(preset, why.to_owned()));
    }
    match preset {
        Preset::Loads => memory("mem-loads", preset, pmus, options),
        Preset::Stores => memory("mem-stores", preset, pmus, options),
        Preset::Mem | Preset::C2c => {
            let mut events = memory("mem-loads", preset, pmus, options)?;
            events.extend(memory("mem-stores", preset, pmus, options)?);
            Ok(events)
        }
        Preset::L3Miss
        | Preset::L2Miss
        | Preset::Tlb
        | Preset::Locks
        | Preset::Splits
        | Preset::Branches
        | Preset::Fetch
        | Preset::Ops => listed(preset, pmus),
        Preset::Cycles | Preset::Skid | Preset::Faults | Preset::Clock => {
            generic::events_for(preset, pmus, options)
        }
    }
}

/// Returns the events of a preset from the tables, on each kind of core that has any.
fn listed(preset: Preset, pmus: &Pmus) -> Result<Vec<EventRequest>, Unsupported> {
    if let Some(why) = pmus.why_no_core_pmu() {
        return Err(Unsupported::new(preset, why));
    }
    let (mut requests, mut without) = (Vec::new(), Vec::new());
    for pmu in pmus.cores() {
        let events: Vec<_> =
            tables::of(pmu, pmus).into_iter().filter(|event| event.presets.contains(&preset)).collect();
        if events.is_empty() {
            without.push(pmu);
        }
        for event in events {
            let text = format!("{}/{}/P", pmu.name, event.terms(pmu));
            let mut parsed = encode::parse(&text, pmus).map_err(|error| refused(preset, &error))?;
            parsed.iter_mut().for_each(|request| request.name = pmus.event_name(pmu, event.name, ""));
            requests.extend(parsed);
        }
    }
    if requests.is_empty() {
        return match preset {
            // Every core can sample instructions, although not every core distributes the samples
            // evenly.
            Preset::Ops => generic::named("instructions:P", preset, pmus),
            _ => Err(Unsupported::new(preset, not_listed(&without))),
        };
    }
    note_cores_without(&mut requests, &without, preset.name());
    Ok(requests)
}

/// Returns why none of these cores has an event for a preset.
fn not_listed(cores: &[&Pmu]) -> String {
    let named: Vec<&str> = cores.iter().filter_map(|pmu| Core::of(pmu)).map(Core::name).collect();
    if named.is_empty() {
        "this version does not know the precise events of this core; name an event with -e as perf writes it"
            .to_owned()
    } else {
        format!("{} cores have no precise event for it", named.join(" and "))
    }
}

fn note_cores_without(requests: &mut [EventRequest], without: &[&Pmu], what: &str) {
    if without.is_empty() {
        return;
    }
    let names: Vec<&str> = without.iter().map(|pmu| pmu.name.as_str()).collect();
    let note = format!("the cores of {} have no {what}, so they are not sampled", names.join(" and "));
    requests.iter_mut().for_each(|request| request.notes.push(note.clone()));
}

/// Returns a memory event of sysfs on each kind of core that has it.
fn memory(
    event: &str,
    preset: Preset,
    pmus: &Pmus,
    options: &PresetOptions,
) -> Result<Vec<EventRequest>, Unsupported> {
    if let Some(why) = pmus.why_no_core_pmu() {
        return Err(Unsupported::new(preset, why));
    }
    let mut requests = Vec::new();
    let mut without = Vec::new();
    for pmu in pmus.cores() {
        if !pmu.events.contains_key(event) {
            without.push(pmu);
            continue;
        }
        let ldlat = options.ldlat.unwrap_or(DEFAULT_LDLAT);
        let terms = if pmu.format.contains_key("ldlat") && event == "mem-loads" {
            format!("{}/{event},ldlat={ldlat}/P", pmu.name)
        } else {
            format!("{}/{event}/P", pmu.name)
        };
        let mut parsed = encode::parse(&terms, pmus).map_err(|error| refused(preset, &error))?;
        for request in &mut parsed {
            request.name = pmus.event_name(pmu, event, "");
            request.precise = PreciseLevel::Max;
        }
        requests.extend(parsed);
    }
    if requests.is_empty() {
        let why = format!(
            "the kernel lists no {event} event in sysfs: this CPU has no PEBS, or the hypervisor hides it"
        );
        return Err(Unsupported::new(preset, why));
    }
    note_cores_without(&mut requests, &without, event);
    Ok(requests)
}

fn refused(preset: Preset, error: &EncodeError) -> Unsupported {
    Unsupported::new(preset, error.to_string())
}
