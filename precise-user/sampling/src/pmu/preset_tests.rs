use super::*;
use crate::pmu::fixture;
use crate::pmu::request::{PreciseLevel, period};

fn encodings(preset: Preset, tree: &fixture::Tree) -> Vec<String> {
    let events = events_for(preset, &tree.pmus(), &PresetOptions::default()).unwrap();
    events.into_iter().map(|event| event.encoding).collect()
}

fn above(ldlat: u32) -> PresetOptions {
    PresetOptions { ldlat: Some(ldlat), ..PresetOptions::default() }
}

fn reason(preset: Preset, tree: &fixture::Tree) -> String {
    events_for(preset, &tree.pmus(), &PresetOptions::default()).unwrap_err().reason
}

#[test]
fn names_are_read_back() {
    for preset in Preset::ALL {
        assert_eq!(Preset::parse(preset.name()), Some(preset));
        assert_eq!(serde_json::to_value(preset).unwrap(), preset.name());
    }
    assert_eq!(Preset::parse("memory"), None);
}

#[test]
fn intel_takes_what_sysfs_names() {
    let skl = fixture::skl();
    assert_eq!(encodings(Preset::Loads, &skl), ["cpu/event=0xcd,umask=0x1,ldlat=0x1e/P"]);
    assert_eq!(encodings(Preset::Stores, &skl), ["cpu/event=0xd0,umask=0x82/P"]);
    assert_eq!(encodings(Preset::C2c, &skl).len(), 2);
    let spr = events_for(Preset::Mem, &fixture::spr().pmus(), &above(100)).unwrap();
    assert_eq!((spr[0].config1, spr[0].leader.is_some(), spr[1].config), (100, true, 0x2cd));
    assert_eq!((spr[0].name.as_str(), spr[0].precise), ("mem-loads", PreciseLevel::Max));
    let too_large = events_for(Preset::Loads, &fixture::spr().pmus(), &above(70_000));
    assert!(too_large.unwrap_err().reason.contains("too large"));
}

#[test]
fn a_hybrid_cpu_has_an_event_for_each_kind_of_core() {
    let adl = fixture::adl();
    assert_eq!(
        encodings(Preset::Mem, &adl),
        [
            "cpu_core/event=0xcd,umask=0x1,ldlat=0x1e/P",
            "cpu_atom/event=0xd0,umask=0x5,ldlat=0x1e/P",
            "cpu_core/event=0xcd,umask=0x2/P",
            "cpu_atom/event=0xd0,umask=0x6/P",
        ]
    );
    assert_eq!(encodings(Preset::Skid, &adl).len(), 4);
    let loads = events_for(Preset::Loads, &adl.pmus(), &PresetOptions::default()).unwrap();
    assert_eq!([&*loads[0].name, &*loads[1].name], ["cpu_core/mem-loads/", "cpu_atom/mem-loads/"]);
    let locks = events_for(Preset::Locks, &adl.pmus(), &PresetOptions::default()).unwrap();
    assert_eq!(locks[1].name, "cpu_atom/mem_uops_retired.lock_loads/");
}

#[test]
fn amd_takes_ibs_and_filters() {
    let pmus = fixture::zen4().pmus();
    let loads = &events_for(Preset::Loads, &pmus, &PresetOptions::default()).unwrap()[0];
    assert_eq!(
        (loads.encoding.as_str(), loads.filter.as_deref()),
        ("ibs_op/cnt_ctl=0x1/", Some("mem_op == load"))
    );
    assert_eq!(loads.default_period, period::IBS_OPS);
    let slow = &events_for(Preset::Loads, &pmus, &above(256)).unwrap()[0];
    assert_eq!(slow.filter.as_deref(), Some("mem_op == load && weight >= 256"));
    assert!(slow.notes[0].contains("after their interrupt"), "{:?}", slow.notes);
    let zen5 = fixture::zen5().pmus();
    let slow = &events_for(Preset::Loads, &zen5, &above(256)).unwrap()[0];
    assert_eq!((slow.config1, slow.filter.as_deref()), (256, Some("mem_op == load")));
    assert!(slow.notes[0].contains("rates cannot"), "{:?}", slow.notes);
    // The hardware's threshold would drop the stores.
    let mem = &events_for(Preset::Mem, &zen5, &above(256)).unwrap()[0];
    assert_eq!(
        (mem.config1, mem.filter.as_deref()),
        (0, Some("(mem_op == load && weight >= 256) || mem_op == store"))
    );
    assert_eq!(encodings(Preset::Fetch, &fixture::zen4()), ["ibs_fetch/rand_en=0x1/"]);
    assert_eq!(encodings(Preset::Cycles, &fixture::zen4()), ["ibs_op//"]);
    assert!(reason(Preset::C2c, &fixture::zen3()).contains("Zen 3"));
}

#[test]
fn skid_has_two_sides() {
    for tree in [fixture::skl(), fixture::zen4()] {
        let events = events_for(Preset::Skid, &tree.pmus(), &PresetOptions::default()).unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!(ladder::ladder(&events[1], Precision::Auto).levels, [0]);
        assert_ne!(ladder::ladder(&events[0], Precision::Require).levels, Vec::<u8>::new());
    }
    assert!(reason(Preset::Skid, &fixture::amd_guest()).contains("no IBS"));
}

#[test]
fn a_guest_without_a_pmu_has_what_the_kernel_does_itself() {
    let vm = fixture::vm();
    assert_eq!(encodings(Preset::Faults, &vm), ["page-faults"]);
    assert_eq!(encodings(Preset::Clock, &vm), ["cpu-clock"]);
    for preset in [Preset::Cycles, Preset::Loads, Preset::Mem, Preset::C2c, Preset::Tlb, Preset::Skid] {
        assert!(reason(preset, &vm).contains("this VM"), "{preset}");
    }
    assert!(reason(Preset::Loads, &fixture::amd_guest()).contains("KVM"));
}

fn candidates(tree: &fixture::Tree, precision: Precision) -> Vec<(String, usize)> {
    let all = default_candidates(&tree.pmus(), precision).unwrap();
    all.into_iter()
        .map(|candidate| (candidate.events[0].encoding.clone(), candidate.findings.len()))
        .collect()
}

#[test]
fn without_an_event_cycles_step_down_to_a_timer_with_a_finding_each() {
    let named =
        |names: &[(&str, usize)]| names.iter().map(|&(name, n)| (name.to_owned(), n)).collect::<Vec<_>>();
    let (skl, zen4, vm) = (fixture::skl(), fixture::zen4(), fixture::vm());
    assert_eq!(candidates(&skl, Precision::Auto), named(&[("cycles", 0), ("cpu-clock", 1)]));
    assert_eq!(
        candidates(&zen4, Precision::Auto),
        named(&[("ibs_op//", 0), ("cycles", 1), ("cpu-clock", 1)])
    );
    assert_eq!(candidates(&vm, Precision::Auto), named(&[("cpu-clock", 1)]));
    assert_eq!(candidates(&fixture::amd_guest(), Precision::Auto), named(&[("cycles", 0), ("cpu-clock", 1)]));
    assert_eq!(candidates(&zen4, Precision::Off), named(&[("cycles", 0), ("cpu-clock", 1)]));
    assert_eq!(candidates(&skl, Precision::Require), named(&[("cycles", 0)]));
    assert_eq!(candidates(&zen4, Precision::Require).len(), 2);
    let ladder = &ladders(&default_candidates(&skl.pmus(), Precision::Auto).unwrap()[0], Precision::Auto)[0];
    assert_eq!(ladder.levels, [3, 2, 1, 0]);
    // That a timer is late is a finding of its level, once.
    let last = default_candidates(&vm.pmus(), Precision::Auto).unwrap().pop().unwrap();
    let ladder = &ladders(&last, Precision::Auto)[0];
    let timer = last.findings.iter().chain(&ladder.findings).filter(|finding| finding.contains("timer"));
    assert_eq!(timer.count(), 1, "{last:?} {ladder:?}");
}

#[test]
fn requiring_precision_fails_with_the_reason_where_there_is_none() {
    let error = default_candidates(&fixture::vm().pmus(), Precision::Require).unwrap_err();
    assert!(error.reason.contains("no hardware counters"), "{error}");
    let error = default_candidates(&fixture::amd_guest().pmus(), Precision::Require).unwrap_err();
    assert!(error.reason.contains("no IBS"), "{error}");
}
