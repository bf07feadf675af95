//! AMD: IBS. The rules are those of Linux 6.12 to 6.17, arch/x86/events/amd/ibs.c and core.c.
//!
//! IBS tags one op (or fetch) per period, of any kind, and follows it through the pipeline. So
//! there is no "loads" event, only ops that turn out to be loads, and each preset is the same event
//! with a different filter.

use super::encode;
use super::error::EncodeError;
use super::generic;
use super::preset::{PresetOptions, Unsupported};
use super::request::{ALL_FIELDS, EventRequest, Exactness, NO_FIELDS, TaggedFields, Traits, period};
use super::sysfs::{Pmu, Pmus};
use precise_model::Fields;
use precise_model::Preset;
use precise_model::TaggedOf;

/// The load latencies that the hardware can filter by, in core cycles. Other values are EINVAL.
const LDLAT: std::ops::RangeInclusive<u64> = 128..=2048;

/// Selects ops that access memory.
const MEMORY: &str = "mem_op == load || mem_op == store";
/// Selects loads that missed the L3 cache of their own core complex.
///
/// Before Zen 4, IBS reports "a cache of this node" both for the own L3 and for another core's
/// cache. Such loads are not selected, because `mem_remote` is not set (kernel: `g_data_src`,
/// `g_zen4_data_src`). MMIO bypasses all caches and is not selected either.
const L3_MISS: &str = "mem_op == load && (mem_lvl in {ram, pmem, cxl} || mem_remote == remote)";
/// Selects loads that missed the L2 cache. Loads that waited for a miss in flight (`lfb`) have no
/// level of their own and are not selected.
const L2_MISS: &str = "mem_op == load && mem_lvl in {l3, any_cache, ram, pmem, cxl}";
/// Selects accesses that missed both TLBs, like Intel's STLB_MISS events.
const TLB: &str = "(mem_op == load || mem_op == store) && mem_dtlb == l2_miss";
/// Selects accesses with DcMisAcc set: they cross a boundary that costs time, in most cases that of
/// a cache line (APM volume 2, IBS Op Data 3).
const SPLITS: &str = "(mem_op == load || mem_op == store) && access == misaligned";
const LOCKS: &str = "(mem_op == load || mem_op == store) && mem_lock == locked";

const SKEW: &str = "the hardware restarts the period when a tagged op does not pass its filter, so \
                    counts are not proportional to what happened, and rates cannot be derived";

/// Returns what makes an event of the core PMU exact.
///
/// The driver maps only `cycles` (also as raw 0x76) and raw 0xc1 to IBS, when `precise_ip` is 1 or
/// 2 (kernel: `forward_event_to_ibs()`). `mapped`: the event is one of these.
pub(super) fn exactness(pmus: &Pmus, mapped: bool, excludes: bool) -> Exactness {
    if pmus.get("ibs_op").is_none() {
        return Exactness::Never(no_ibs(pmus));
    }
    if !mapped {
        return Exactness::Never(
            "AMD samples only cycles (0x76) and ops (0xc1) precisely, by IBS".to_owned(),
        );
    }
    if excludes {
        return Exactness::Never(
            "IBS behind a core event cannot exclude user or kernel code; ibs_op//u can (Linux 6.14 and later)"
                .to_owned(),
        );
    }
    Exactness::PreciseIp { max: 2, exact: 1 }
}

/// Returns the fields of an event of the core PMU: those of IBS if the event can be precise.
pub(super) fn fields_of(exactness: &Exactness) -> Fields {
    if matches!(exactness, Exactness::PreciseIp { .. }) { ALL_FIELDS } else { NO_FIELDS }
}

/// Returns the default period of an event of the core PMU. A precise event becomes IBS, which
/// accepts only multiples of 16.
pub(super) fn period_of(exactness: &Exactness, period: u64) -> u64 {
    if matches!(exactness, Exactness::PreciseIp { .. }) { period::IBS_CYCLES } else { period }
}

/// Returns the known properties of a raw event of the core PMU.
pub(super) fn core_traits(words: &[u64; 4], pmus: &Pmus, excludes: bool) -> Traits {
    let (unit, period) = match words[0] {
        0x76 => ("cycles", period::CYCLES),
        0xc1 => ("ops", period::CYCLES),
        _ => ("events", period::SELDOM),
    };
    let exactness = exactness(pmus, matches!(words[0], 0x76 | 0xc1), excludes);
    let period = period_of(&exactness, period);
    Traits { unit, fields: fields_of(&exactness), exactness, period, notes: Vec::new() }
}

/// Returns why this machine has no IBS, as a sentence.
fn no_ibs(pmus: &Pmus) -> String {
    if pmus.cpu.hypervisor {
        "this VM has no IBS, because KVM does not pass it on".to_owned()
    } else {
        "the kernel offers no IBS (no ibs_op in sysfs); the firmware may have disabled it (\"Enable \
         IBS\" in its setup)"
            .to_owned()
    }
}

/// Makes the kernel drop samples of user or kernel mode after the interrupt (`swfilt`, since Linux
/// 6.14).
///
/// # Errors
/// Returns an error if the kernel does not support it.
pub(super) fn software_filter(
    pmu: &Pmu,
    words: &mut [u64; 4],
    written: &mut Vec<String>,
) -> Result<(), String> {
    let Some(format) = pmu.format.get("swfilt") else {
        return Err(format!(
            "{} cannot exclude user or kernel code on this kernel (Linux 6.14 and later can); use a filter",
            pmu.name
        ));
    };
    if !written.iter().any(|term| term.starts_with("swfilt=")) {
        format.place(1, words);
        written.push("swfilt=0x1".to_owned());
    }
    Ok(())
}

/// Returns the known properties of an IBS event.
///
/// # Errors
/// Returns a sentence if the hardware refuses the event's terms.
pub(super) fn traits(pmu: &Pmu, words: &[u64; 4], pmus: &Pmus) -> Result<Traits, String> {
    let term = |name: &str| pmu.format.get(name).map_or(0, |format| format.get(words));
    let mut notes = Vec::new();
    let ldlat = term("ldlat");
    if ldlat != 0 && !LDLAT.contains(&ldlat) {
        return Err(format!(
            "ldlat={ldlat} is out of range: IBS accepts {} to {} core cycles",
            LDLAT.start(),
            LDLAT.end()
        ));
    }
    if ldlat != 0 || term("l3missonly") != 0 {
        notes.push(SKEW.to_owned());
    }
    if term("swfilt") != 0 {
        notes.push(
            "the kernel takes an interrupt for samples that swfilt drops, so the event's count covers \
             more than the samples"
                .to_owned(),
        );
    }
    if pmus.kernel.is_some_and(|kernel| !kernel.at_least(6, 2)) {
        notes.push("before Linux 6.2, IBS samples only whole CPUs, not processes".to_owned());
    }
    if pmu.name == "ibs_fetch" {
        let period = period::IBS_FETCHES;
        let fields = Fields { latency: true, outcome: true, ..NO_FIELDS };
        return Ok(Traits { unit: "fetches", fields, exactness: Exactness::Ibs, period, notes });
    }
    notes.extend(data_source_limits(pmu, pmus));
    let ops = term("cnt_ctl") != 0;
    let (unit, period) = if ops { ("ops", period::IBS_OPS) } else { ("cycles", period::IBS_CYCLES) };
    let fields = Fields { outcome: true, ..ALL_FIELDS };
    Ok(Traits { unit, fields, exactness: Exactness::Ibs, period, notes })
}

/// Returns which IBS registers an event reads even without a preset: those of fetches, for
/// `ibs_fetch` only.
pub(super) fn tagged(pmu: &Pmu, pmus: &Pmus) -> Option<TaggedFields> {
    let zen3_errata = pmus.cpu.ibs_zen3_errata();
    (pmu.name == "ibs_fetch").then_some(TaggedFields { of: TaggedOf::Fetch, zen3_errata })
}

/// Returns the limits of this CPU's data sources, as sentences. Sources: `perf_ibs_get_op_data2()`,
/// `perf_ibs_cache_hit_st_valid()`, `g_data_src`, arch/x86/events/amd/ibs.c.
fn data_source_limits(pmu: &Pmu, pmus: &Pmus) -> Vec<String> {
    let mut limits = Vec::new();
    if pmus.cpu.ibs_without_hitm() {
        limits.push(
            "IBS of Zen 3 cannot report that a line was modified in another cache, so no sample says HitM"
                .to_owned(),
        );
    }
    if pmus.cpu.ibs_zen3_errata() {
        limits.push(
            "erratum 1293: software prefetches and loads that hit a miss in flight have no data source"
                .to_owned(),
        );
    }
    // The `l3missonly` filter is new in Zen 4, as are the data sources that distinguish these
    // caches.
    if !pmu.format.contains_key("l3missonly") {
        limits.push(
            "before Zen 4, IBS does not distinguish its own L3 cache from another cache of the node: \
             both are \"any cache\""
                .to_owned(),
        );
    }
    limits
}

/// Returns the events of a preset on AMD.
///
/// # Errors
/// Returns [`Unsupported`] with the reason.
pub fn events_for(
    preset: Preset,
    pmus: &Pmus,
    options: &PresetOptions,
) -> Result<Vec<EventRequest>, Unsupported> {
    match preset {
        Preset::Loads => op(preset, pmus, options, Some("mem_op == load")),
        Preset::Stores => op(preset, pmus, &PresetOptions::default(), Some("mem_op == store")),
        Preset::Mem => op(preset, pmus, options, Some(MEMORY)),
        Preset::L3Miss => op(preset, pmus, options, Some(L3_MISS)),
        Preset::L2Miss => op(preset, pmus, options, Some(L2_MISS)),
        Preset::Tlb => op(preset, pmus, options, Some(TLB)),
        Preset::Locks => op(preset, pmus, options, Some(LOCKS)),
        Preset::Splits => op(preset, pmus, &PresetOptions::default(), Some(SPLITS)),
        Preset::C2c if pmus.cpu.ibs_without_hitm() => Err(Unsupported::new(
            preset,
            "IBS of Zen 3 cannot report that a line was modified in another cache; `precise mem` shows \
             which level serves loads"
                .to_owned(),
        )),
        Preset::C2c => {
            let mut requests = op(preset, pmus, options, Some(MEMORY))?;
            for request in &mut requests {
                // The width of an access decides whether two accesses share bytes, and only the
                // registers contain it.
                request.tagged =
                    Some(TaggedFields { of: TaggedOf::Access, zen3_errata: pmus.cpu.ibs_zen3_errata() });
            }
            Ok(requests)
        }
        Preset::Ops => op(preset, pmus, &PresetOptions::default(), None),
        Preset::Cycles => match pmus.get("ibs_op") {
            Some(_) => ibs("ibs_op//", preset, pmus),
            None => generic::events_for(preset, pmus, options),
        },
        Preset::Skid => generic::skid(ibs("ibs_op//", preset, pmus)?, pmus),
        Preset::Fetch => match pmus.get("ibs_fetch") {
            Some(pmu) if pmu.format.contains_key("rand_en") => ibs("ibs_fetch/rand_en=1/", preset, pmus),
            _ => ibs("ibs_fetch//", preset, pmus),
        },
        Preset::Branches => {
            let mut requests = op(preset, pmus, &PresetOptions::default(), Some("branch == any"))?;
            for request in &mut requests {
                request.fields = Fields { data_source: false, outcome: true, ..ALL_FIELDS };
                request.tagged =
                    Some(TaggedFields { of: TaggedOf::Branch, zen3_errata: pmus.cpu.ibs_zen3_errata() });
                request.notes.push(
                    "latency is the time from tag to retirement, address is the target of the branch"
                        .to_owned(),
                );
            }
            Ok(requests)
        }
        Preset::Faults | Preset::Clock => generic::events_for(preset, pmus, options),
    }
}

/// Returns the `ibs_op` event that counts dispatched ops, with the filter of the preset.
fn op(
    preset: Preset,
    pmus: &Pmus,
    options: &PresetOptions,
    filter: Option<&str>,
) -> Result<Vec<EventRequest>, Unsupported> {
    let Some(pmu) = pmus.get("ibs_op") else {
        return Err(Unsupported::new(preset, no_ibs(pmus)));
    };
    let mut terms = Vec::new();
    let by_ops = pmu.format.contains_key("cnt_ctl");
    if by_ops {
        terms.push("cnt_ctl=1".to_owned());
    }
    if options.l3_miss_only {
        if !pmu.format.contains_key("l3missonly") {
            let why = "this CPU or kernel has no IBS filter for L3 misses (l3missonly: Zen 4 and \
                       later); the preset l3-miss filters in the program instead";
            return Err(Unsupported::new(preset, why.to_owned()));
        }
        terms.push("l3missonly=1".to_owned());
    }
    let mut filter = filter.map(str::to_owned);
    // The hardware's threshold drops every store, so it can be used for loads only.
    let in_hardware = |ldlat: u32| {
        preset == Preset::Loads && pmu.format.contains_key("ldlat") && LDLAT.contains(&u64::from(ldlat))
    };
    let mut note = None;
    match options.ldlat {
        Some(ldlat) if in_hardware(ldlat) => terms.push(format!("ldlat={ldlat}")),
        Some(ldlat) => {
            filter = Some(match preset {
                Preset::Loads => format!("mem_op == load && weight >= {ldlat}"),
                _ => format!("(mem_op == load && weight >= {ldlat}) || mem_op == store"),
            });
            note = Some(format!(
                "the program drops loads below {ldlat} cycles, after their interrupt: {}",
                "this CPU or kernel cannot filter by that latency in IBS"
            ));
        }
        None => {}
    }
    let mut requests = ibs(&format!("ibs_op/{}/", terms.join(",")), preset, pmus)?;
    for request in &mut requests {
        request.filter.clone_from(&filter);
        request.notes.extend(note.clone());
        if !by_ops {
            request.notes.push(
                "IBS of this CPU counts cycles, not ops, so slow ops are sampled more often".to_owned(),
            );
        }
    }
    Ok(requests)
}

fn ibs(text: &str, preset: Preset, pmus: &Pmus) -> Result<Vec<EventRequest>, Unsupported> {
    if pmus.get(text.split('/').next().unwrap_or_default()).is_none() {
        return Err(Unsupported::new(preset, no_ibs(pmus)));
    }
    let mut requests = encode::parse(text, pmus).map_err(|error| match error {
        EncodeError::Unsupported { why, .. } => Unsupported::new(preset, why),
        other => Unsupported::new(preset, other.to_string()),
    })?;
    requests.iter_mut().for_each(|request| request.name = preset.name().to_owned());
    Ok(requests)
}
