use proptest::prelude::*;

use super::*;
use crate::pmu::fixture;
use crate::pmu::fixture::Tree;
use crate::pmu::request::Level;
use precise_model::Fields;

fn one(text: &str, tree: &Tree) -> EventRequest {
    let mut requests = parse(text, &tree.pmus()).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(requests.len(), 1, "{text}");
    requests.remove(0)
}

fn refused(text: &str, tree: &Tree) -> String {
    parse(text, &tree.pmus()).unwrap_err().to_string()
}

#[test]
fn software_events_need_no_pmu() {
    let vm = fixture::vm();
    let faults = one("faults:u", &vm);
    assert_eq!((faults.type_, faults.config, faults.default_period), (1, 2, 1));
    assert_eq!((faults.unit.as_str(), faults.encoding.as_str()), ("page faults", "faults:u"));
    assert!(faults.exact_ip() && faults.exclude_kernel && !faults.exclude_user);
    assert_eq!(faults.fields, Fields { address: true, ..Fields::default() });
    assert_eq!(faults.fields_at(0), faults.fields);
    for (name, config) in
        [("page-faults", 2), ("minor-faults", 5), ("major-faults", 6), ("cs", 3), ("task-clock", 1)]
    {
        assert_eq!(one(name, &vm).config, config, "{name}");
    }
    let clock = one("cpu-clock", &vm);
    assert_eq!((clock.unit.as_str(), clock.default_period, clock.exact_ip()), ("ns", 1_000_003, false));
}

#[test]
fn hardware_events_are_refused_with_the_reason_where_there_is_no_pmu() {
    for text in ["cycles", "r1cd", "LLC-loads", "cpu/event=0x3c/"] {
        assert!(refused(text, &fixture::vm()).contains("this VM has no hardware counters"), "{text}");
    }
}

#[test]
fn terms_go_through_the_format() {
    let skl = fixture::skl();
    let miss = one("cpu/event=0xd1,umask=0x20/p", &skl);
    assert_eq!((miss.type_, miss.config, miss.precise), (4, 0x20d1, Level::Given(1)));
    assert_eq!(miss.encoding, "cpu/event=0xd1,umask=0x20/p");
    assert_eq!(one("cpu/event=209,umask=32,inv,cmask=2/", &skl).config, 0x0280_20d1);
    assert_eq!(one("r1cd", &skl).config, 0x1cd);
    assert_eq!(one("cpu/r1cd/pp", &skl).config, 0x1cd);
    assert_eq!(one("cpu/config=0x1,umask=0x2/", &skl).config, 0x201);
    // AMD's event select field has two parts.
    assert_eq!(one("cpu/event=0x1c7/", &fixture::zen4()).config, 0x1_0000_00c7);
}

#[test]
fn terms_override_an_event_wherever_they_stand() {
    let skl = fixture::skl();
    for text in ["cpu/mem-loads,ldlat=30/P", "cpu/ldlat=30,mem-loads/P", "cpu/mem-loads,ldlat=0x1e/:P"] {
        let loads = one(text, &skl);
        assert_eq!((loads.config, loads.config1, loads.precise), (0x1cd, 30, Level::Max), "{text}");
        assert_eq!(loads.encoding, "cpu/event=0xcd,umask=0x1,ldlat=0x1e/P");
        assert_eq!(loads.name, text);
    }
    assert_eq!(one("mem-loads", &skl).config1, 3);
    let named = one("cpu/mem-loads,ldlat=30,name=slow,period=5003/P", &skl);
    assert_eq!((named.name.as_str(), named.default_period), ("slow", 5003));
}

#[test]
fn fields_are_there_only_where_precise_and_not_everywhere() {
    let skl = fixture::skl();
    let loads = one("cpu/mem-loads,ldlat=30/P", &skl);
    assert_eq!((loads.fields_at(2), loads.fields_at(0)), (crate::pmu::request::ALL_FIELDS, NO_FIELDS));
    assert!(!one("cpu/mem-stores/P", &skl).fields.latency);
    assert!(one("cpu/mem-stores/P", &fixture::spr()).fields.latency);
    let miss = one("cpu/event=0xd1,umask=0x20/pp", &skl).fields;
    assert!(miss.address && !miss.latency && !miss.data_source);
}

#[test]
fn modifiers_are_those_of_perf() {
    let skl = fixture::skl();
    for (text, level) in [
        ("cycles", Level::Unspecified),
        ("cycles:p", Level::Given(1)),
        ("cycles:pp", Level::Given(2)),
        ("cycles:ppp", Level::Given(3)),
        ("cycles:P", Level::Max),
    ] {
        assert_eq!(one(text, &skl).precise, level, "{text}");
    }
    let both = one("cycles:ukpp", &skl);
    assert_eq!(
        (both.exclude_kernel, both.exclude_user, both.encoding.as_str()),
        (false, false, "cycles:ukpp")
    );
    assert!(one("cycles:k", &skl).exclude_user);
    assert!(refused("cycles:x", &skl).contains("'x' is not a modifier"));
    assert!(refused("cycles:pppp", &skl).contains("highest level is 3"));
    assert!(refused("cycles:pP", &skl).contains("exclude each other"));
}

#[test]
fn errors_name_what_there_is() {
    let skl = fixture::skl();
    let text = refused("cylces", &skl);
    assert!(text.contains("did you mean 'cycles'?") && text.contains("mem-loads"), "{text}");
    let text = refused("cylces", &fixture::vm());
    assert!(!text.contains("did you mean"), "a virtual machine has no cycles: {text}");
    let text = refused("cpx/event=1/", &skl);
    assert!(text.contains("did you mean 'cpu'?") && text.contains("msr"), "{text}");
    let text = refused("cpu/evnet=1/", &skl);
    assert!(text.contains("did you mean 'event'?") && text.contains("umask"), "{text}");
    let text = refused("cpu/mem-laods/", &skl);
    assert!(text.contains("did you mean 'mem-loads'?"), "{text}");
    assert!(refused("cpu/event=0x100/", &skl).contains("maximum of event is 0xff"));
    assert!(refused("cpu/mem-loads,ldlat=70000/", &skl).contains("too large"));
    assert!(refused("cpu/event=12q/", &skl).contains("not a number"));
    assert!(refused("cpu/event=-1/", &skl).contains("not a number"));
    assert!(refused("cpu/event=1", &skl).contains("slash"));
    assert!(refused("", &skl).contains("empty"));
    assert!(refused("{cycles,instructions}", &skl).contains("groups"));
    assert!(refused("sched:sched_switch", &skl).contains("tracepoints"));
    assert!(refused("mem:0x1000", &skl).contains("breakpoints"));
    assert!(refused("power/energy-pkg/", &skl).contains("cannot take samples"));
    assert!(refused("cpu/cycles,umask=1/", &skl).contains("generic"));
    assert!(refused("cpu/config/", &skl).contains("needs a value"));
}

#[test]
fn lists_are_split_outside_of_slashes() {
    let pmus = fixture::skl().pmus();
    let events = parse_list("cycles:pp,cpu/event=0xd1,umask=0x20/p, page-faults", &pmus).unwrap();
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["cycles:pp", "cpu/event=0xd1,umask=0x20/p", "page-faults"]);
    assert!(parse_list("cycles,", &pmus).is_err());
}

#[test]
fn loads_get_their_leader_where_the_core_needs_it() {
    let loads = one("cpu/mem-loads,ldlat=30/P", &fixture::spr());
    let leader = loads.leader.unwrap();
    assert_eq!(
        (leader.config, leader.default_period, leader.encoding.as_str()),
        (0x8203, 0, "cpu/event=0x3,umask=0x82/")
    );
    assert!(one("r1cd:u", &fixture::spr()).leader.unwrap().exclude_kernel);
    assert_eq!(one("cpu/mem-stores/P", &fixture::spr()).leader, None);
    assert_eq!(one("cpu/mem-loads/P", &fixture::gnr()).leader, None);
    assert_eq!(one("cpu/mem-loads/P", &fixture::skl()).leader, None);
}

#[test]
fn a_hybrid_cpu_is_asked_on_each_kind_of_core() {
    let adl = fixture::adl();
    let cycles = parse("cycles:pp", &adl.pmus()).unwrap();
    let of = |at: usize| {
        (cycles[at].pmu.as_str(), cycles[at].type_, cycles[at].config, cycles[at].encoding.as_str())
    };
    assert_eq!(of(0), ("cpu_core", 0, 4 << 32, "cpu_core/cycles/pp"));
    assert_eq!(of(1), ("cpu_atom", 0, 8 << 32, "cpu_atom/cycles/pp"));
    assert_eq!(
        (cycles[0].cpus.as_ref().unwrap().len(), cycles[1].cpus.as_deref()),
        (16, Some(&[16, 17, 18, 19, 20, 21, 22, 23][..]))
    );
    // Each event has a unique name, which its report, ledger and verdict use.
    let names = |text: &str| -> Vec<String> {
        parse(text, &adl.pmus()).unwrap().into_iter().map(|event| event.name).collect()
    };
    assert_eq!(names("cycles:pp"), ["cpu_core/cycles/pp", "cpu_atom/cycles/pp"]);
    assert_eq!(names("mem-stores"), ["cpu_core/mem-stores/", "cpu_atom/mem-stores/"]);
    assert_eq!(names("page-faults"), ["page-faults"]);
    let loads = parse("mem-loads:P", &adl.pmus()).unwrap();
    assert_eq!((loads[0].config, loads[1].config), (0x1cd, 0x5d0));
    assert!(loads[0].leader.as_ref().unwrap().cpus.is_some() && loads[1].leader.is_none());
    assert_eq!(parse("r1cd", &adl.pmus()).unwrap().len(), 2);
    assert!(refused("cpu/event=1/", &adl).contains("did you mean 'cpu_core'?"));
}

#[test]
fn ibs_leaves_out_user_or_kernel_where_the_kernel_can() {
    let event = one("ibs_op/cnt_ctl=1/u", &fixture::zen4());
    assert_eq!((event.config, event.config2, event.exclude_kernel), (1 << 19, 1, true));
    assert_eq!((event.unit.as_str(), event.exact_ip(), event.default_period % 16), ("ops", true, 0));
    assert!(refused("ibs_op//u", &fixture::zen3()).contains("Linux 6.14 and later"));
    assert!(one("ibs_op//", &fixture::zen3()).notes[0].contains("only whole CPUs"));
    let zen5 = fixture::zen5();
    assert_eq!(one("ibs_op/ldlat=128/", &zen5).config1, 128);
    assert!(refused("ibs_op/ldlat=64/", &zen5).contains("128 to 2048"));
    assert!(refused("ibs_op/ldlat=128/", &fixture::zen4()).contains("no term or event 'ldlat'"));
    assert!(matches!(one("cycles:u", &fixture::zen4()).exactness, Exactness::Never(_)));
    assert_eq!(one("cycles", &fixture::zen4()).default_period % 16, 0);
}

#[test]
fn every_encoding_reads_back_as_the_same_event() {
    for tree in
        [fixture::skl(), fixture::spr(), fixture::adl(), fixture::zen3(), fixture::zen4(), fixture::zen5()]
    {
        let pmus = tree.pmus();
        let own = pmus
            .pmus
            .iter()
            .flat_map(|pmu| pmu.events.keys().map(move |event| format!("{}/{event}/u", pmu.name)));
        let own: Vec<String> = own.filter(|text| !text.starts_with("power")).collect();
        let known =
            ["r1cd:pp", "cycles:kP", "LLC-load-misses", "instructions:p", "ibs_op/cnt_ctl=1/", "faults"]
                .map(str::to_owned);
        for request in own.iter().chain(&known).filter_map(|text| parse(text, &pmus).ok()).flatten() {
            let again = parse(&request.encoding, &pmus).unwrap();
            let same = EventRequest { name: request.encoding.clone(), ..request.clone() };
            assert_eq!(again, [same]);
        }
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "[a-z0-9:/,=x{}' -]{0,40}") {
        thread_local!(static PMUS: Pmus = fixture::adl().pmus());
        PMUS.with(|pmus| {
            let _ = parse_list(&text, pmus);
            let _ = parse(&format!("cpu_core/{text}/"), pmus);
        });
    }

    #[test]
    fn a_value_is_found_again_in_its_bits(value in 0u64..0x1000, other: u64) {
        let format = crate::pmu::sysfs::TermFormat::parse("config:0-7,32-35").unwrap();
        let mut words = [other, 0, 0, 0];
        prop_assert!(format.place(value, &mut words));
        prop_assert_eq!(format.get(&words), value);
        prop_assert_eq!(words[0] & !0xf_0000_00ff, other & !0xf_0000_00ff);
        prop_assert!(!format.place(value + 0x1000, &mut words));
    }
}
