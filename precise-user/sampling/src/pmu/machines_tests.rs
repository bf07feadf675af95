//! Tests each preset on each machine: the words that `perf_event_open` gets.

use super::encode;
use super::fixture::{self, Tree};
use super::ladder::ladder;
use super::preset::{PresetOptions, events_for};
use super::request::{EventRequest, Exactness};
use precise_filter as filter;
use precise_model::Precision;
use precise_model::Preset;

fn events(preset: Preset, tree: &Tree) -> Vec<EventRequest> {
    events_for(preset, &tree.pmus(), &PresetOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn reason(preset: Preset, tree: &Tree) -> String {
    events_for(preset, &tree.pmus(), &PresetOptions::default()).unwrap_err().reason
}

/// Formats `preset: config[/config1]…`. An event of `cpu_atom` starts with `a`, an event behind a
/// leader with `+`.
fn words(tree: &Tree) -> Vec<String> {
    let event = |event: &EventRequest| {
        let pmu = if event.pmu == "cpu_atom" { "a" } else { "" };
        let leader = if event.leader.is_some() { "+" } else { "" };
        let config1 = if event.config1 == 0 { String::new() } else { format!("/{:x}", event.config1) };
        format!("{pmu}{leader}{:x}{config1}", event.config)
    };
    let presets = Preset::ALL.into_iter().filter(|preset| {
        !matches!(preset, Preset::Cycles | Preset::Clock | Preset::Skid | Preset::Faults | Preset::C2c)
    });
    presets
        .map(|preset| match events_for(preset, &tree.pmus(), &PresetOptions::default()) {
            Ok(events) => format!("{preset}: {}", events.iter().map(event).collect::<Vec<_>>().join(" ")),
            Err(_) => format!("{preset}: -"),
        })
        .collect()
}

#[test]
fn haswell_and_broadwell() {
    for tree in [fixture::hsw(), fixture::bdw()] {
        assert_eq!(
            words(&tree),
            [
                "ops: 1c0",
                "loads: 1cd/1e",
                "stores: 82d0",
                "mem: 1cd/1e 82d0",
                "l3-miss: 20d1",
                "l2-miss: 10d1",
                "tlb: 11d0 12d0",
                "splits: 41d0 42d0",
                "locks: 21d0",
                "branches: 4c5",
                "fetch: -",
            ]
        );
        assert!(reason(Preset::Fetch, &tree).contains("well cores have no precise event for it"));
    }
    assert!(events(Preset::L3Miss, &fixture::bdw())[0].notes[0].contains("BDE70, BDM100"));
    assert!(events(Preset::Loads, &fixture::hsw())[0].notes[0].contains("HSD25, HSD76, HSM26"));
}

#[test]
fn skylake_and_cascade_lake() {
    for tree in [fixture::skl(), fixture::clx()] {
        assert_eq!(
            words(&tree),
            [
                "ops: 1c0",
                "loads: 1cd/1e",
                "stores: 82d0",
                "mem: 1cd/1e 82d0",
                "l3-miss: 20d1",
                "l2-miss: 10d1",
                "tlb: 11d0 12d0",
                "splits: 41d0 42d0",
                "locks: 21d0",
                "branches: 4c5",
                "fetch: 1c6/401006",
            ]
        );
    }
}

#[test]
fn ice_lake() {
    assert_eq!(
        words(&fixture::icx()),
        [
            "ops: 100",
            "loads: 1cd/1e",
            "stores: 82d0",
            "mem: 1cd/1e 82d0",
            "l3-miss: 20d1",
            "l2-miss: 10d1",
            "tlb: 11d0 12d0",
            "splits: 41d0 42d0",
            "locks: 21d0",
            "branches: c5",
            "fetch: 1c6/501006",
        ]
    );
}

#[test]
fn sapphire_and_granite_rapids() {
    let common = |loads: &str, fetch: &str| {
        [
            "ops: 100".to_owned(),
            format!("loads: {loads}1cd/1e"),
            "stores: 2cd".to_owned(),
            format!("mem: {loads}1cd/1e 2cd"),
            "l3-miss: 20d1".to_owned(),
            "l2-miss: 10d1".to_owned(),
            "tlb: 11d0 12d0".to_owned(),
            "splits: 41d0 42d0".to_owned(),
            "locks: 21d0".to_owned(),
            "branches: c5".to_owned(),
            format!("fetch: {fetch}"),
        ]
    };
    assert_eq!(words(&fixture::spr()), common("+", "1c6/601006"));
    assert_eq!(words(&fixture::gnr()), common("", "3c6/601006"));
}

#[test]
fn hybrids_have_an_event_for_each_kind_of_core_that_has_one() {
    assert_eq!(
        words(&fixture::adl()),
        [
            "ops: 100 ac0",
            "loads: +1cd/1e a5d0/1e",
            "stores: 2cd a6d0",
            "mem: +1cd/1e a5d0/1e 2cd a6d0",
            "l3-miss: 20d1 a80d1",
            "l2-miss: 10d1 a80d1 a4d1",
            "tlb: 11d0 12d0",
            "splits: 41d0 42d0 a41d0",
            "locks: 21d0 a21d0",
            "branches: c5 ac5",
            "fetch: 1c6/601006",
        ]
    );
    assert_eq!(
        words(&fixture::mtl()),
        [
            "ops: 100 ac0",
            "loads: 1cd/1e a5d0/1e",
            "stores: 2cd a6d0",
            "mem: 1cd/1e a5d0/1e 2cd a6d0",
            "l3-miss: 20d1",
            "l2-miss: 10d1 a80d1",
            "tlb: 11d0 12d0",
            "splits: 41d0 42d0 a41d0 a42d0",
            "locks: 21d0 a21d0",
            "branches: c5 ac5",
            "fetch: 3c6/601006 a10c6",
        ]
    );
    // Generic events carry the PMU's type in `config`. These events have the PMU's own type
    // instead.
    let ops = events(Preset::Ops, &fixture::mtl());
    assert_eq!((ops[0].type_, ops[1].type_, ops[1].cpus.as_deref().map(<[u32]>::len)), (4, 10, Some(10)));
    assert!(events(Preset::Tlb, &fixture::adl())[0].notes[0].contains("cpu_atom have no tlb"));
}

#[test]
fn a_core_without_a_table_says_so() {
    let lnl = fixture::lnl();
    assert!(reason(Preset::L3Miss, &lnl).contains("this version does not know"));
    assert_eq!(events(Preset::Ops, &lnl)[0].encoding, "cpu_core/instructions/P");
    assert_eq!(events(Preset::Loads, &lnl).len(), 2);
}

#[test]
fn levels_are_those_that_the_drivers_grant() {
    // `glc_get_event_constraints()`: level 3 requires counter 0, but PREC_DIST is on fixed counter
    // 0.
    let levels = |preset, tree: &Tree| ladder(&events(preset, tree)[0], Precision::Auto).levels;
    assert_eq!(levels(Preset::Ops, &fixture::spr()), [2, 1, 0]);
    assert_eq!(levels(Preset::Ops, &fixture::icx()), [3, 2, 1, 0]);
    assert_eq!(levels(Preset::L3Miss, &fixture::spr()), [3, 2, 1, 0]);
    assert_eq!(levels(Preset::Loads, &fixture::spr()), [2, 1, 0]);
    // Two events that both required counter 0 would have to take turns.
    assert_eq!(levels(Preset::Tlb, &fixture::icx()), [3, 2, 1, 0]);
    for tree in [fixture::spr(), fixture::gnr(), fixture::adl(), fixture::mtl()] {
        for preset in [Preset::Tlb, Preset::Splits, Preset::Mem] {
            let events = events(preset, &tree);
            let on_one = |pmu: &str| {
                let of = events.iter().filter(|event| event.pmu == pmu);
                of.filter(|event| ladder(event, Precision::Auto).levels[0] == 3).count()
            };
            assert!(["cpu", "cpu_core", "cpu_atom"].into_iter().all(|pmu| on_one(pmu) <= 1), "{preset}");
        }
    }
}

#[test]
fn what_a_sample_has() {
    let miss = &events(Preset::L3Miss, &fixture::spr())[0];
    assert!(miss.fields.address && !miss.fields.data_source && !miss.fields.latency);
    assert_eq!((miss.name.as_str(), miss.unit.as_str()), ("mem_load_retired.l3_miss", "L3 misses"));
    assert_eq!(miss.encoding, "cpu/event=0xd1,umask=0x20/P");
    let fetch = &events(Preset::Fetch, &fixture::spr())[0];
    assert_eq!(fetch.encoding, "cpu/event=0xc6,umask=0x1,frontend=0x601006/P");
    assert!(!fetch.fields.address);
    // Every printed encoding can be typed as an event.
    for tree in [fixture::skl(), fixture::adl(), fixture::zen5()] {
        for event in Preset::ALL
            .into_iter()
            .filter_map(|w| events_for(w, &tree.pmus(), &PresetOptions::default()).ok())
            .flatten()
        {
            let again = encode::parse(&event.encoding, &tree.pmus()).unwrap();
            let again = again.iter().find(|again| again.pmu == event.pmu).unwrap();
            assert_eq!(
                (again.config, again.config1, again.config2),
                (event.config, event.config1, event.config2)
            );
            assert_eq!((&again.unit, &again.exactness), (&event.unit, &event.exactness));
            // An encoding does not contain which IBS registers the preset reads.
            if event.tagged == again.tagged {
                assert_eq!(again.fields, event.fields);
            }
        }
    }
}

#[test]
fn events_of_the_tables_have_names() {
    let pmus = fixture::spr().pmus();
    let named = &encode::parse("MEM_LOAD_RETIRED.L3_MISS:pp", &pmus).unwrap()[0];
    assert_eq!((named.config, named.default_period), (0x20d1, 10_007));
    assert_eq!(encode::parse("cpu/frontend_retired.l1i_miss/pp", &pmus).unwrap()[0].config1, 0x12);
    let both = encode::parse("mem_uops_retired.lock_loads", &fixture::adl().pmus()).unwrap();
    assert_eq!((both.len(), both[0].pmu.as_str()), (1, "cpu_atom"));
    let slip = encode::parse("mem_load_retired.l3_mis", &pmus).unwrap_err().to_string();
    assert!(slip.contains("did you mean 'mem_load_retired.l3_miss'?"), "{slip}");
}

#[test]
fn cores_that_record_few_events_are_not_asked_for_others() {
    let never = |text: &str, tree: &Tree| {
        matches!(encode::parse(text, &tree.pmus()).unwrap()[0].exactness, Exactness::Never(_))
    };
    let skl = fixture::skl();
    for text in ["cache-misses", "branch-misses", "LLC-load-misses", "cpu/event=0x24,umask=0x21/", "r00c5"] {
        assert!(never(text, &skl), "{text}");
        assert!(!never(text, &fixture::icx()), "{text}");
    }
    for text in
        ["cycles", "instructions", "cache-misses:pp", "r20d1", "r04c5", "r3c", "mem-loads", "mem-stores"]
    {
        assert!(!never(text, &skl), "{text}");
    }
}

#[test]
fn amd_filters_one_event() {
    for (tree, c2c) in
        [(fixture::zen2(), true), (fixture::zen3(), false), (fixture::zen4(), true), (fixture::zen5(), true)]
    {
        for (preset, filter) in [
            (Preset::Ops, None),
            (Preset::Loads, Some("mem_op == load")),
            (Preset::Stores, Some("mem_op == store")),
            (Preset::Mem, Some("mem_op == load || mem_op == store")),
            (Preset::L3Miss, Some("mem_op == load && (mem_lvl in {ram, pmem, cxl} || mem_remote == remote)")),
            (Preset::L2Miss, Some("mem_op == load && mem_lvl in {l3, any_cache, ram, pmem, cxl}")),
            (Preset::Tlb, Some("(mem_op == load || mem_op == store) && mem_dtlb == l2_miss")),
            (Preset::Locks, Some("(mem_op == load || mem_op == store) && mem_lock == locked")),
            (Preset::Splits, Some("(mem_op == load || mem_op == store) && access == misaligned")),
        ] {
            let [event] = &events(preset, &tree)[..] else { panic!("{preset} is one event") };
            assert_eq!((event.pmu.as_str(), event.config, event.config1), ("ibs_op", 1 << 19, 0), "{preset}");
            assert_eq!(event.filter.as_deref(), filter);
            assert!(event.default_period.is_multiple_of(16) && event.default_period >= 0x90);
        }
        assert_eq!(events(Preset::Cycles, &tree)[0].config, 0);
        let fetch = &events(Preset::Fetch, &tree)[0];
        assert_eq!((fetch.pmu.as_str(), fetch.config), ("ibs_fetch", 1 << 57));
        assert_eq!(events_for(Preset::C2c, &tree.pmus(), &PresetOptions::default()).is_ok(), c2c);
        assert_eq!(events(Preset::Branches, &tree)[0].filter.as_deref(), Some("branch == any"));
    }
}

#[test]
fn hardware_filters_are_on_request() {
    let only = PresetOptions { l3_miss_only: true, ..PresetOptions::default() };
    let config = |tree: &Tree| events_for(Preset::Loads, &tree.pmus(), &only).map(|events| events[0].config);
    assert_eq!(config(&fixture::zen4()), Ok(1 << 19 | 1 << 16));
    assert!(config(&fixture::zen3()).unwrap_err().reason.contains("Zen 4 and later"));
    assert!(config(&fixture::spr()).unwrap_err().reason.contains("l3-miss is the counterpart"));
    let loads = &events_for(Preset::L3Miss, &fixture::zen5().pmus(), &only).unwrap()[0];
    assert!(loads.notes.iter().any(|note| note.contains("rates cannot")), "{:?}", loads.notes);
    let refused =
        |preset, options: &PresetOptions| events_for(preset, &fixture::zen5().pmus(), options).unwrap_err();
    assert!(refused(Preset::Stores, &only).reason.contains("loads and l3-miss"));
    let ldlat = PresetOptions { ldlat: Some(256), ..PresetOptions::default() };
    assert!(refused(Preset::Tlb, &ldlat).reason.contains("loads, mem and c2c"));
}

#[test]
fn what_the_data_sources_of_a_cpu_do_not_say_is_noted() {
    let notes = |tree: &Tree| events(Preset::Loads, tree)[0].notes.join("; ");
    assert!(notes(&fixture::zen2()).contains("any cache") && !notes(&fixture::zen2()).contains("HitM"));
    assert!(
        notes(&fixture::zen3()).contains("no sample says HitM") && !notes(&fixture::zen3()).contains("1293")
    );
    assert!(notes(&fixture::milan()).contains("erratum 1293"));
    assert_eq!(notes(&fixture::zen4()), "");
}

#[test]
fn every_filter_leaves_room_for_the_users() {
    for preset in Preset::ALL {
        let Ok(events) = events_for(preset, &fixture::zen4().pmus(), &PresetOptions::default()) else {
            continue;
        };
        for text in events.iter().filter_map(|event| event.filter.as_deref()) {
            for (legacy_levels, most) in [(false, 4), (true, 8)] {
                let options = filter::CompilerOptions { legacy_levels };
                let compiled =
                    filter::compile(&filter::parse(text).unwrap(), options, &filter::NoCgroups).unwrap();
                assert!(compiled.slots.len() <= most, "{preset}: {} of 16 slots", compiled.slots.len());
            }
        }
    }
}
