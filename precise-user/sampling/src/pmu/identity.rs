//! Derives the kind of an event's PMU, and what its hardware filter drops, from the words of
//! `perf_event_attr`. Used for live events and for recorded ones.

use super::names::{TYPE_CACHE, TYPE_HARDWARE, TYPE_SOFTWARE};
use precise_model::{CoreEvent, EventSelect, HardwareFilter, PmuKind, Vendor};

/// `PERF_TYPE_RAW`: the type of the core PMU if it has no number of its own.
const TYPE_RAW: u32 = 4;
/// `ldlat` of Intel's cores, `config1:0-15` (arch/x86/events/intel/core.c). For other events,
/// `config1` has other meanings.
const INTEL_LDLAT: u64 = 0xffff;
/// Intel's events with a latency threshold, on big and on small cores (`PEBS_LDLAT` of
/// arch/x86/events/intel/{core,ds}.c).
const INTEL_LOAD_LATENCY: [EventSelect; 2] =
    [EventSelect { event: 0xcd, umask: 0x01 }, EventSelect { event: 0xd0, umask: 0x05 }];
/// `ldlat` of `ibs_op`, `config1:0-11` (arch/x86/events/amd/ibs.c).
const IBS_LDLAT: u64 = 0xfff;
/// `l3missonly` of `ibs_op`, `config:16`, and of `ibs_fetch`, `config:59`
/// (arch/x86/events/amd/ibs.c).
const OP_L3_MISS_ONLY: u64 = 1 << 16;
const FETCH_L3_MISS_ONLY: u64 = 1 << 59;

/// Returns the kind of an event, from its PMU's directory in sysfs (empty if unknown),
/// `perf_event_attr.type` and `config`, and the vendor of the CPU.
pub(crate) fn kind(pmu: &str, type_: u32, config: u64, vendor: Vendor) -> PmuKind {
    let generic = matches!(type_, TYPE_HARDWARE | TYPE_CACHE);
    match pmu {
        _ if type_ == TYPE_SOFTWARE => PmuKind::Software,
        "ibs_op" => PmuKind::IbsOp,
        "ibs_fetch" => PmuKind::IbsFetch,
        _ if generic || type_ == TYPE_RAW || pmu == "cpu" || pmu.starts_with("cpu_") => {
            PmuKind::Core(CoreEvent {
                vendor,
                core: pmu.starts_with("cpu_").then(|| pmu.to_owned()),
                select: (!generic).then(|| EventSelect::of_config(vendor, config)),
            })
        }
        _ => PmuKind::Other,
    }
}

/// Returns what the hardware filter of an event drops.
pub(crate) fn hardware_filter(kind: &PmuKind, config: u64, config1: u64) -> HardwareFilter {
    let latency = |mask: u64| Some((config1 & mask) as u32).filter(|cycles| *cycles > 0);
    match kind {
        PmuKind::Core(event) if event.vendor != Vendor::Amd => {
            let timed = event.select.is_some_and(|select| INTEL_LOAD_LATENCY.contains(&select));
            HardwareFilter {
                min_latency: latency(INTEL_LDLAT).filter(|_| timed),
                ..HardwareFilter::default()
            }
        }
        PmuKind::IbsOp => {
            HardwareFilter { min_latency: latency(IBS_LDLAT), l3_miss_only: config & OP_L3_MISS_ONLY != 0 }
        }
        PmuKind::IbsFetch => {
            HardwareFilter { l3_miss_only: config & FETCH_L3_MISS_ONLY != 0, ..HardwareFilter::default() }
        }
        _ => HardwareFilter::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmu::{encode, fixture, fixture::Tree};

    fn of(text: &str, tree: &Tree) -> (PmuKind, HardwareFilter) {
        let pmus = tree.pmus();
        let request = encode::parse(text, &pmus).unwrap().remove(0);
        let kind = kind(&request.pmu, request.type_, request.config, pmus.cpu.vendor);
        let filter = hardware_filter(&kind, request.config, request.config1);
        (kind, filter)
    }

    #[test]
    fn every_kind_is_told_from_the_others() {
        assert_eq!(of("page-faults", &fixture::skl()).0, PmuKind::Software);
        let (kind, filter) = of("cycles:pp", &fixture::skl());
        let generic = CoreEvent { vendor: Vendor::Intel, ..CoreEvent::default() };
        assert_eq!((kind, filter.is_active()), (PmuKind::Core(generic), false));
        let (kind, _) = of("cpu/event=0xd1,umask=0x20/", &fixture::skl());
        assert_eq!(kind.select(), Some(EventSelect { event: 0xd1, umask: 0x20 }));
        assert_eq!(of("r1cd", &fixture::skl()).0.select(), Some(EventSelect { event: 0xcd, umask: 1 }));
        assert_eq!(of("cpu_atom/cycles/", &fixture::adl()).0.core(), Some("cpu_atom"));
        assert_eq!(of("cpu_core/mem-loads/", &fixture::adl()).0.core(), Some("cpu_core"));
        assert_eq!(of("ibs_op//", &fixture::zen4()).0, PmuKind::IbsOp);
        assert_eq!(of("ibs_fetch//", &fixture::zen4()).0, PmuKind::IbsFetch);
        // PMUs that a recording does not name.
        assert_eq!(kind_of_type(9), PmuKind::Other);
        assert!(matches!(kind_of_type(TYPE_RAW), PmuKind::Core(_)));
    }

    fn kind_of_type(type_: u32) -> PmuKind {
        kind("", type_, 0, Vendor::Other)
    }

    #[test]
    fn what_the_hardware_drops_is_in_the_words() {
        let min = |text: &str, tree: &Tree| of(text, tree).1.min_latency;
        // The threshold from sysfs, from the user, and in a whole word.
        assert_eq!(min("cpu/mem-loads/", &fixture::skl()), Some(3));
        assert_eq!(min("cpu/mem-loads,ldlat=30/", &fixture::skl()), Some(30));
        assert_eq!(min("cpu/config=0x1cd,config1=0x1e/", &fixture::skl()), Some(30));
        assert_eq!(min("cpu_atom/mem-loads,ldlat=30/", &fixture::adl()), Some(30));
        // `config1` has another meaning in these events.
        assert_eq!(min("cpu/event=0xc6,umask=0x1,config1=0x12/", &fixture::skl()), None);
        assert_eq!(min("ibs_op/cnt_ctl=1,ldlat=256/", &fixture::zen5()), Some(256));
        for event in ["ibs_op", "ibs_fetch"] {
            let of = |terms: &str| of(&format!("{event}/{terms}/"), &fixture::zen4()).1;
            assert!(of("l3missonly=1").l3_miss_only && !of("l3missonly=0").is_active());
        }
    }
}
