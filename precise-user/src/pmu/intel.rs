//! Intel: PEBS. Encodings and rules from Linux 6.12, arch/x86/events/intel/{core,ds}.c, and Intel's event
//! lists.
//!
//! So far this has what sysfs names: `mem-loads` and `mem-stores`. The precise events that differ by core
//! (misses by level, TLB, branches, front end) have no place in sysfs; [`events_for`] refuses their workflows
//! and says so.

use super::encode;
use super::error::EncodeError;
use super::generic;
use super::request::{ALL_FIELDS, EventRequest, Exactness, Level, NO_FIELDS, Traits, period};
use super::sysfs::{Pmu, Pmus};
use super::workflow::{Options, Unsupported, Workflow};
use crate::capture::Fields;

/// The event that must lead the group of `mem-loads` on some cores.
pub(super) const AUX: &str = "mem-loads-aux";
/// Loads at or above this latency, in core cycles, when the user gives none: perf's default
/// (`perf_mem_events__loads_ldlat`, tools/perf/util/mem-events.c). Below it lies what the L1 and L2 caches
/// answer.
const DEFAULT_LDLAT: u32 = 30;
/// Event select and unit mask of `config`.
const EVENT_MASK: u64 = 0xffff;
/// MEM_TRANS_RETIRED.LOAD_LATENCY of the big cores.
const LOAD_LATENCY: u64 = 0x01cd;
/// MEM_TRANS_RETIRED.STORE_SAMPLE (Golden Cove and later), PRECISE_STORE (Sandy and Ivy Bridge).
const STORE_SAMPLE: u64 = 0x02cd;
/// MEM_INST_RETIRED.ALL_STORES, which Haswell to Ice Lake sample stores by.
const ALL_STORES: u64 = 0x82d0;
/// MEM_UOPS_RETIRED.LOAD_LATENCY and STORE_LATENCY of Gracemont and later small cores.
const SMALL_LOAD_LATENCY: u64 = 0x05d0;
const SMALL_STORE_LATENCY: u64 = 0x06d0;

fn is_small(pmu: &Pmu) -> bool {
    pmu.name == "cpu_atom"
        || pmu.name == "cpu_lowpower"
        || matches!(pmu.core_name(), "gracemont" | "crestmont" | "tremont" | "goldmont" | "goldmont_plus")
}

/// Whether `mem-loads` is refused (ENODATA) unless `mem-loads-aux` leads its group: Sapphire and Emerald
/// Rapids, the big cores of Alder and Raptor Lake (kernel: `PMU_FL_MEM_LOADS_AUX`, `intel_pmu_hw_config()`).
///
/// Those have the event in sysfs. Granite Rapids has it and does not need it; a core that gives no name is
/// taken to need it: a leader too many costs a counter, one too few costs every sample.
pub(super) fn needs_aux_leader(pmu: &Pmu, words: &[u64; 4]) -> bool {
    !is_small(pmu)
        && words[0] & EVENT_MASK == LOAD_LATENCY
        && pmu.events.contains_key(AUX)
        && pmu.core_name() != "granite_rapids"
}

/// What is known of a raw event of a core.
pub(super) fn traits(pmu: &Pmu, words: &[u64; 4], pmus: &Pmus) -> Traits {
    let base = generic::traits();
    let address = Fields { address: true, ..NO_FIELDS };
    let mut traits = match (is_small(pmu), words[0] & EVENT_MASK) {
        // Level 3 is refused on the newer cores (load latency is not on counter 0, level 3 only is) and no
        // more exact on the older: it is for INST_RETIRED.PREC_DIST there.
        (false, LOAD_LATENCY) => Traits {
            unit: "loads",
            fields: ALL_FIELDS,
            exactness: Exactness::PreciseIp { max: 2, exact: 2 },
            period: period::MISSES,
            ..base
        },
        (false, STORE_SAMPLE) if matches!(pmu.core_name(), "sandybridge" | "ivybridge") => {
            let fields = Fields { latency: false, ..ALL_FIELDS };
            Traits {
                unit: "stores",
                fields,
                period: period::OFTEN,
                notes: vec![L1_OR_NOT.to_owned()],
                ..base
            }
        }
        (false, STORE_SAMPLE) => Traits { unit: "stores", fields: ALL_FIELDS, period: period::OFTEN, ..base },
        (false, ALL_STORES) => {
            let fields = Fields { latency: false, ..ALL_FIELDS };
            Traits {
                unit: "stores",
                fields,
                period: period::OFTEN,
                notes: vec![L1_OR_NOT.to_owned()],
                ..base
            }
        }
        // The families of MEM_INST_RETIRED and MEM_LOAD_*_RETIRED: the event itself is the level.
        (false, code) if (0xd0..=0xd3).contains(&(code & 0xff)) => {
            Traits { fields: address, period: period::MISSES, ..base }
        }
        (true, SMALL_LOAD_LATENCY) => {
            Traits { unit: "loads", fields: ALL_FIELDS, period: period::MISSES, ..base }
        }
        (true, SMALL_STORE_LATENCY) => {
            Traits { unit: "stores", fields: ALL_FIELDS, period: period::OFTEN, ..base }
        }
        _ => base,
    };
    if pmus.cpu.hypervisor && traits.fields.address {
        traits.notes.push(GUEST.to_owned());
    }
    traits
}

const L1_OR_NOT: &str =
    "the data source of a store on this core says no more than whether it hit the L1 cache";
/// KVM hides adaptive PEBS from guests since Linux 6.9: only the basic record is left.
const GUEST: &str =
    "in a virtual machine PEBS may give exact IPs without addresses, latencies and data sources";

/// The events of a workflow on Intel.
///
/// # Errors
/// [`Unsupported`], with the reason.
pub fn events_for(
    workflow: Workflow,
    pmus: &Pmus,
    options: &Options,
) -> Result<Vec<EventRequest>, Unsupported> {
    match workflow {
        Workflow::Loads => memory("mem-loads", workflow, pmus, options),
        Workflow::Stores => memory("mem-stores", workflow, pmus, options),
        Workflow::Mem | Workflow::C2c => {
            let mut events = memory("mem-loads", workflow, pmus, options)?;
            events.extend(memory("mem-stores", workflow, pmus, options)?);
            Ok(events)
        }
        Workflow::Ops => generic::named("instructions:P", workflow, pmus),
        Workflow::Tlb | Workflow::Branches | Workflow::Fetch => Err(Unsupported::new(
            workflow,
            match pmus.why_no_core_pmu() {
                Some(why) => why,
                None => {
                    "its precise events differ by core and are not known to this version; name one with -e"
                        .to_owned()
                }
            },
        )),
        Workflow::Cycles | Workflow::Skid | Workflow::Faults | Workflow::Clock => {
            generic::events_for(workflow, pmus, options)
        }
    }
}

/// A memory event of sysfs on each kind of core that has it.
fn memory(
    event: &str,
    workflow: Workflow,
    pmus: &Pmus,
    options: &Options,
) -> Result<Vec<EventRequest>, Unsupported> {
    if let Some(why) = pmus.why_no_core_pmu() {
        return Err(Unsupported::new(workflow, why));
    }
    let mut requests = Vec::new();
    let mut without = Vec::new();
    for pmu in pmus.cores() {
        if !pmu.events.contains_key(event) {
            without.push(pmu.name.as_str());
            continue;
        }
        let ldlat = options.ldlat.unwrap_or(DEFAULT_LDLAT);
        let terms = if pmu.format.contains_key("ldlat") && event == "mem-loads" {
            format!("{}/{event},ldlat={ldlat}/P", pmu.name)
        } else {
            format!("{}/{event}/P", pmu.name)
        };
        let mut parsed = encode::parse(&terms, pmus).map_err(|error| refused(workflow, &error))?;
        for request in &mut parsed {
            request.name = event.to_owned();
            request.precise = Level::Max;
        }
        requests.extend(parsed);
    }
    if requests.is_empty() {
        let why = format!("the kernel names no {event} event in sysfs: this CPU, or its host, gives no PEBS");
        return Err(Unsupported::new(workflow, why));
    }
    if !without.is_empty() {
        let note = format!("the cores of {} have no {event} and are not sampled", without.join(" and "));
        requests.iter_mut().for_each(|request| request.notes.push(note.clone()));
    }
    Ok(requests)
}

fn refused(workflow: Workflow, error: &EncodeError) -> Unsupported {
    Unsupported::new(workflow, error.to_string())
}
