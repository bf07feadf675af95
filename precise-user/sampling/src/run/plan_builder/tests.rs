//! Tests of defaults and invariants, on synthetic machines. No event is opened.

use super::*;
use crate::pmu::fixture::Tree;
use crate::run::cell_slot::CellSlot;
use crate::run::event_filter::{CgroupError, FilterError};
use crate::run::kill_switch::KillSwitch;
use crate::run::plan::{
    BUDGET, DURATION, EPOCH, LEAST_CELLS, TABLE_BYTES, TABLE_CELLS, default_cells, default_stacks,
};
use crate::run::plan_error::PlanError;
use precise_filter::parse;

const CPUINFO_INTEL: &str =
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nstepping\t: 6";
const CPUINFO_AMD: &str =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nstepping\t: 1";

fn on(tree: Tree) -> (Tree, PlanBuilder) {
    let tree =
        tree.file("/sys/devices/system/cpu/online", "0-3").file("/sys/devices/system/cpu/possible", "0-7");
    let builder = Plan::builder().root(tree.root());
    (tree, builder)
}

/// A virtual machine without a CPU PMU.
fn software() -> (Tree, PlanBuilder) {
    let (tree, builder) = on(Tree::new(CPUINFO_INTEL, "6.12.0"));
    (tree, builder.event("page-faults"))
}

/// A machine with IBS, whose op samples have address, latency and data source.
fn ibs() -> (Tree, PlanBuilder) {
    on(Tree::new(CPUINFO_AMD, "6.12.0")
        .pmu("cpu", 4, &["format/event=config:0-7,32-35", "caps/max_precise=0"])
        .pmu("ibs_op", 12, &["format/cnt_ctl=config:19", "caps/zen4_ibs_extensions=1"])
        .pmu("ibs_fetch", 11, &["format/rand_en=config:57"]))
}

#[test]
fn defaults_of_a_capture() {
    let (_tree, builder) = software();
    let plan = builder.build().unwrap();
    assert_eq!(plan.target, Target::All);
    assert_eq!(plan.cpus, [0, 1, 2, 3]);
    assert_eq!(plan.precision, Precision::Auto);
    assert_eq!(plan.duration, Some(Duration::from_secs(10)));
    assert_eq!(plan.epoch, plan.duration.unwrap() / 60);
    assert_eq!(plan.dimensions, [Dimension::Ip, Dimension::Cgroup, Dimension::Process]);
    assert_eq!((plan.address_granule, plan.promoted_lines), (64, None));
    assert_eq!(plan.table_cells, 8192);
    // Four online CPUs share 64 MiB; those that are only possible have no table.
    assert_eq!(plan.stacks, 4096);
    assert_eq!(plan.budget, Some(0.01));
    assert_eq!(plan.kill_switch, KillSwitch::default());
    assert_eq!((plan.filter_text.as_str(), plan.stream), ("", None));
    assert!(!plan.gives_up_rights, "who uses a library keeps its rights");
    let [event] = &plan.events[..] else { panic!("{:?}", plan.events) };
    assert_eq!(event.rate, Rate::Period(event.request.default_period));
}

#[test]
fn a_command_is_sampled_to_its_end_and_a_service_for_ever() {
    let command = Target::Command(vec!["true".into()]);
    let duration = |change: fn(PlanBuilder) -> PlanBuilder| {
        let (_tree, builder) = software();
        change(builder).build().unwrap().duration
    };
    let (_tree, builder) = software();
    assert_eq!(builder.target(command).build().unwrap().duration, None);
    assert_eq!(duration(|builder| builder.series().dimensions(Vec::new())), None);
    assert_eq!(duration(|builder| builder.target(Target::Processes(vec![1]))), Some(DURATION));
    assert_eq!(duration(|builder| builder.until(vec!["true".into()])), None);
    let three = Duration::from_secs(3);
    let (_tree, builder) = software();
    let target = Target::Command(vec!["true".into()]);
    assert_eq!(builder.target(target).duration(three).build().unwrap().duration, Some(three));
    assert_eq!(
        duration(|builder| builder.series().dimensions(Vec::new()).duration(Duration::from_secs(3))),
        Some(three)
    );
}

#[test]
fn a_period_that_was_chosen_is_not_governed_unless_a_budget_was_too() {
    let plan = |change: fn(PlanBuilder) -> PlanBuilder| {
        let (_tree, builder) = software();
        let plan = change(builder).build().unwrap();
        (plan.events[0].rate, plan.budget)
    };
    assert_eq!(plan(|builder| builder.period(7)), (Rate::Period(7), None));
    assert_eq!(plan(|builder| builder.frequency(99)), (Rate::Frequency(99), Some(BUDGET)));
    assert_eq!(plan(|builder| builder.period(7).budget(Some(0.5))), (Rate::Period(7), Some(0.5)));
    assert_eq!(plan(|builder| builder.frequency(99).budget(None)), (Rate::Frequency(99), None));
    assert_eq!(plan(|builder| builder.frequency(99).period(7)).0, Rate::Period(7));
}

#[test]
fn c2c_groups_by_what_tells_who_touches_which_bytes() {
    let plan = |change: fn(PlanBuilder) -> PlanBuilder| {
        let (_tree, builder) = ibs();
        change(builder).build().unwrap()
    };
    let c2c = plan(|builder| builder.event("c2c"));
    assert_eq!(c2c.dimensions, precise_model::C2C_DIMENSIONS);
    assert_eq!((c2c.address_granule, c2c.promoted_lines), (1, Some(4096)));
    // A modifier does not change the preset.
    assert_eq!(plan(|builder| builder.event("c2c:u")).dimensions, precise_model::C2C_DIMENSIONS);
    let fewer = plan(|builder| builder.event("c2c").lines(1000).granule(8));
    assert_eq!((fewer.address_granule, fewer.promoted_lines), (8, Some(1024)));
    let without = plan(|builder| builder.event("c2c").dimensions(vec![Dimension::Ip]));
    assert_eq!((without.promoted_lines, &without.dimensions[..]), (None, &[Dimension::Ip][..]));
    let served = plan(|builder| builder.event("c2c").series().dimensions(vec![Dimension::Cgroup]));
    assert_eq!(served.dimensions, [Dimension::Cgroup, Dimension::Latency]);
    assert_eq!(served.promoted_lines, None);
}

#[test]
fn what_the_events_have_and_is_cheap_is_grouped_by() {
    let (_tree, builder) = ibs();
    let loads = builder.event("loads").build().unwrap();
    let cheap = [Dimension::Ip, Dimension::Cgroup, Dimension::Process, Dimension::Source, Dimension::Latency];
    assert_eq!(loads.dimensions, cheap);
}

#[test]
fn call_chains_bring_what_they_need() {
    let (_tree, builder) = software();
    let chains = builder.clone().dimensions(vec![Dimension::Cpu, Dimension::Cpu]).call_chains(true).build();
    assert_eq!(
        chains.unwrap().dimensions,
        [Dimension::Cpu, Dimension::Stack, Dimension::Ip, Dimension::Process]
    );
    let (_tree, builder) = ibs();
    let addresses = builder.dimensions(vec![Dimension::Address]).call_chains(true);
    let loads = addresses.clone().event("loads");
    for refused in [&loads, &addresses.event("c2c").event("page-faults")] {
        let refused = refused.clone().build();
        assert!(matches!(refused, Err(PlanError::ChainsWithAddresses)), "{refused:?}");
    }
    // A page fault has room for both in a cell; a timer's sample has no address.
    let plan = loads.event("page-faults").event("cpu-clock").build().unwrap();
    assert_eq!(plan.slots(), [CellSlot::Address, CellSlot::Both, CellSlot::Chain]);
}

#[test]
fn a_streaming_run_has_no_table() {
    let (_tree, builder) = software();
    let plan = builder.clone().stream(Streaming::default()).build().unwrap();
    assert_eq!(plan.stream, Some(Streaming::default()));
    assert_eq!((plan.table_cells, plan.stacks, plan.budget), (0, 0, None));
    assert!(plan.dimensions.is_empty());
    for refused in [
        builder.clone().budget(Some(0.1)),
        builder.clone().table_cells(16),
        builder.clone().dimensions(vec![Dimension::Ip]),
        builder.clone().call_chains(true),
        builder.clone().epoch(EPOCH),
    ] {
        let refused = refused.stream(Streaming::default()).build();
        assert!(matches!(refused, Err(PlanError::NotStreamed(_))), "{refused:?}");
    }
    for ring_pages in [0, 3, 1 << 19, usize::MAX] {
        let refused = builder.clone().stream(Streaming { ring_pages, ..Streaming::default() }).build();
        assert!(matches!(refused, Err(PlanError::RingPages(pages)) if pages == ring_pages), "{refused:?}");
    }
}

#[test]
fn a_run_has_sixty_epochs_if_they_are_neither_too_short_nor_too_long() {
    let epoch = |change: fn(PlanBuilder) -> PlanBuilder| {
        let (_tree, builder) = software();
        change(builder).build().unwrap().epoch.as_millis()
    };
    assert_eq!(epoch(|builder| builder.duration(Duration::from_secs(30))), 500);
    assert_eq!(epoch(|builder| builder.duration(Duration::from_secs(1))), 100);
    assert_eq!(epoch(|builder| builder.duration(Duration::from_secs(3600))), 1000);
    assert_eq!(epoch(|builder| builder.duration(Duration::from_secs(30)).epoch(EPOCH)), 1000);
    assert_eq!(epoch(|builder| builder.duration(Duration::from_secs(1)).series()), 1000);
    // The default length is ten seconds.
    assert_eq!(epoch(|builder| builder), 166);
    assert_eq!(epoch(|builder| builder.target(Target::Command(vec!["true".into()]))), 250);
}

#[test]
fn numbers_have_bounds() {
    let refused = |change: fn(PlanBuilder) -> PlanBuilder| {
        let (_tree, builder) = software();
        change(builder).build().unwrap_err()
    };
    assert!(matches!(refused(|builder| builder.granule(3)), PlanError::Granule(3)));
    assert!(matches!(refused(|builder| builder.granule(0)), PlanError::Granule(0)));
    assert!(matches!(refused(|builder| builder.lines(0)), PlanError::Lines(0)));
    assert!(matches!(refused(|builder| builder.lines((1 << 24) + 1)), PlanError::Lines(_)));
    assert!(matches!(refused(|builder| builder.table_cells(0)), PlanError::Cells(0)));
    assert!(matches!(refused(|builder| builder.table_cells((1 << 22) + 1)), PlanError::Cells(_)));
    assert!(matches!(refused(|builder| builder.stacks(u64::MAX)), PlanError::Stacks(u64::MAX)));
    assert!(matches!(refused(|builder| builder.epoch(Duration::from_millis(99))), PlanError::Epoch(_)));
    assert!(matches!(refused(|builder| builder.budget(Some(0.0))), PlanError::Budget(_)));
    assert!(matches!(refused(|builder| builder.budget(Some(f64::NAN))), PlanError::Budget(_)));
    assert!(matches!(refused(|builder| builder.budget(Some(1.5))), PlanError::Budget(_)));
    assert!(matches!(refused(|builder| builder.period(0)), PlanError::Rate));
    assert!(matches!(refused(|builder| builder.frequency(0)), PlanError::Rate));
}

#[test]
fn room_for_chains_is_shared_by_all_cpus() {
    for (cpus, stacks) in [(0, 8192), (1, 8192), (4, 4096), (96, 256), (4096, 128)] {
        assert_eq!(default_stacks(cpus), stacks, "{cpus} CPUs");
    }
}

#[test]
fn the_tables_of_all_cpus_and_events_have_a_bound() {
    for (cpus, events, cells) in [(0, 0, 8192), (1, 1, 8192), (256, 1, 8192), (512, 1, 4096), (512, 2, 2048)]
    {
        assert_eq!(default_cells(cpus, events), cells, "{events} events on {cpus} CPUs");
    }
    for cpus in 1..=8192 {
        for events in 1..=4 {
            let cells = default_cells(cpus, events);
            assert!(cells.is_power_of_two() && (LEAST_CELLS..=TABLE_CELLS).contains(&cells));
            let bytes = cells * 128 * (cpus * events) as u64;
            assert!(bytes <= TABLE_BYTES, "{events} events on {cpus} CPUs take {bytes} bytes");
        }
    }
    let plan = |change: fn(PlanBuilder) -> PlanBuilder| {
        let tree = Tree::new("", "6.12.0")
            .file("/sys/devices/system/cpu/online", "0-511")
            .file("/sys/devices/system/cpu/possible", "0-511");
        change(Plan::builder().root(tree.root()).event("page-faults")).build().unwrap()
    };
    let said = plan(|builder| builder).fewer_cells.unwrap();
    assert!(said.contains("4,096 cells") && said.contains("512 CPUs"), "{said}");
    assert_eq!(plan(|builder| builder.table_cells(4096)).fewer_cells, None);
    assert_eq!(plan(|builder| builder.cpus(vec![7, 8])).table_cells as u64, TABLE_CELLS);
}

#[test]
fn cpus_are_online() {
    let (_tree, builder) = software();
    assert_eq!(builder.clone().cpus(vec![1, 3]).build().unwrap().cpus, [1, 3]);
    let error = builder.clone().cpus(vec![3, 4, 9]).build().unwrap_err();
    assert_eq!(error.to_string(), "CPUs 4, 9 are not online");
    assert!(matches!(error, PlanError::Cpus { online, .. } if online == [0, 1, 2, 3]));
    assert!(matches!(builder.cpus(Vec::new()).build(), Err(PlanError::Cpus { .. })));
}

#[test]
fn events_are_of_this_machine() {
    let (_tree, builder) = software();
    let error = builder.clone().event("page-fautls").build().unwrap_err();
    assert!(matches!(&error, PlanError::Event(_)) && error.to_string().contains("page-faults"), "{error}");
    let error = builder.clone().event("loads").build().unwrap_err();
    assert!(matches!(error, PlanError::Preset(_)), "{error}");
    let both = builder.clone().event("cpu-clock,context-switches").build().unwrap();
    assert_eq!(both.events.len(), 3, "a list is several events, beside the first one");
    assert!(matches!(builder.clone().requests(Vec::new()).build(), Err(PlanError::NoEvents)));
    let error = builder.clone().latency_threshold(30).build().unwrap_err();
    assert!(matches!(error, PlanError::NoPreset { event } if event == "page-faults"));
    let given = builder.clone().build().unwrap().events.remove(0).request;
    let plan = builder.event("no-such-event").requests(vec![given.clone()]).build().unwrap();
    assert_eq!(plan.events[0].request, given);
}

#[test]
fn dimensions_are_those_of_the_events() {
    let (_tree, builder) = software();
    for dimension in [Dimension::Latency, Dimension::Source, Dimension::Outcome] {
        let error = builder.clone().dimensions(vec![Dimension::Ip, dimension]).build().unwrap_err();
        assert!(matches!(&error, PlanError::Lacking { dimension: lacking, .. } if *lacking == dimension));
        assert!(error.to_string().starts_with("samples of page-faults have no "), "{error}");
    }
    // A page fault has the address that faulted.
    builder.dimensions(vec![Dimension::Address, Dimension::PageSize]).build().unwrap();
}

#[test]
fn a_filter_is_compiled_for_each_event() {
    let (_tree, builder) = software();
    let only = FilterFlags { pids: vec![4711], ..FilterFlags::default() };
    let plan = builder.clone().filter(only).build().unwrap();
    assert_eq!(plan.filter_text, "pid == 4711");
    assert_eq!(plan.events[0].filter.clauses, ["pid == 4711"]);
    let slow = FilterFlags { filter: Some(parse("latency > 100").unwrap()), ..FilterFlags::default() };
    let error = builder.clone().filter(slow).build().unwrap_err();
    assert!(matches!(error, PlanError::Filter(FilterError::Compile(_))), "{error}");
    // Cgroups can be set only by `cgroups`, not through the filter.
    let hidden = FilterFlags { cgroups: vec!["/no/such".into()], ..FilterFlags::default() };
    assert_eq!(builder.filter(hidden).build().unwrap().filter_text, "");
}

#[test]
fn cgroups_must_have_a_meaning() {
    let (_tree, builder) = software();
    // Uses the cgroups of the machine that runs the test, which may lack v2.
    match builder.clone().cgroups(vec!["pod:".into()]).build() {
        Err(PlanError::Cgroup(CgroupError::Syntax { text, .. })) => assert_eq!(text, "pod:"),
        Err(PlanError::Cgroup(CgroupError::OnlyV1)) => return,
        other => panic!("{other:?}"),
    }
    let missing = builder.cgroups(vec!["/no/such/cgroup".into()]).build();
    assert!(matches!(missing, Err(PlanError::Cgroup(CgroupError::Missing(_)))), "{missing:?}");
}

#[test]
fn the_kill_switch_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stop");
    let (_tree, builder) = software();
    let builder = builder.stop_file(file.clone());
    assert_eq!(builder.clone().build().unwrap().kill_switch, KillSwitch::and(Some(file.clone())));
    std::fs::write(&file, "").unwrap();
    let stopped = builder.event("no-such-event").build();
    assert!(matches!(&stopped, Err(PlanError::Stopped(e)) if e.to_string().contains("stop")), "{stopped:?}");
}
