//! Tests of opening the events of a plan and of the constants of the program, with a simulated
//! kernel.

use super::*;
use crate::kernel::descriptors::DescriptorLimits;
use crate::kernel::event::attributes;
use crate::pmu::fixture::{self, Tree};
use crate::run::plan::{PlanBuilder, Streaming};
use crate::run::scopes::{descriptors_suffice, needed_descriptors, scopes};
use precise_common::config::operand;

fn with_cpus(tree: Tree) -> Tree {
    tree.file("/sys/devices/system/cpu/online", "0-3").file("/sys/devices/system/cpu/possible", "0-3")
}

/// Returns a plan on a synthetic machine, and the facts of that machine.
fn planned(tree: Tree, change: impl FnOnce(PlanBuilder) -> PlanBuilder) -> (Plan, MachineInfo) {
    let tree = with_cpus(tree);
    let plan = change(Plan::builder().root(tree.root())).build().unwrap();
    (plan, MachineInfo::read(&tree.root()))
}

/// A simulated kernel that grants all requests that `answer` does not refuse, and records the
/// requests.
#[derive(Default)]
struct Kernel {
    asked: Vec<(OpenRequest, Option<OpenRequest>, Scope)>,
}

impl Kernel {
    fn decide(
        &mut self,
        (plan, machine): &(Plan, MachineInfo),
        answer: impl Fn(&OpenRequest, Scope) -> i32,
    ) -> Result<Granted, SamplingError> {
        let scopes = scopes(plan, Some(4711)).unwrap();
        decide(plan, &plan.events[0], &scopes, false, machine, &mut |request, leader, scope| {
            self.asked.push((*request, leader.copied(), scope));
            errno(answer(request, scope))
        })
    }

    fn levels(&self) -> Vec<u8> {
        self.asked.iter().map(|(request, ..)| request.precise).collect()
    }
}

fn errno(number: i32) -> Result<(), SyscallError> {
    let source = std::io::Error::from_raw_os_error(number);
    if number == 0 { Ok(()) } else { Err(SyscallError { call: "perf_event_open", source }) }
}

#[test]
fn the_highest_level_that_is_granted_is_taken_and_each_step_is_said() {
    let cycles = planned(fixture::skl(), |plan| plan.event("cycles"));
    let mut kernel = Kernel::default();
    let granted = kernel.decide(&cycles, |request, _| i32::from(request.precise == 3) * libc::EOPNOTSUPP);
    let granted = granted.unwrap();
    assert_eq!((kernel.levels(), granted.request.precise), (vec![3, 2], 2));
    assert!(granted.findings[0].starts_with("cycles: precise level 3 was refused"), "{granted:?}");
    assert!(granted.request.wanted.monotonic);
    assert_eq!(granted.request.rate, cycles.0.events[0].rate);
    // The kernel is asked in one scope; the event is then opened in all scopes.
    assert!(kernel.asked.iter().all(|(.., scope)| *scope == Scope::Cpu(0)));
    assert_eq!(granted.scopes, [0, 1, 2, 3].map(Scope::Cpu));
    let imprecise =
        Kernel::default().decide(&cycles, |request, _| i32::from(request.precise > 0) * libc::EINVAL);
    let imprecise = imprecise.unwrap();
    assert_eq!(imprecise.request.precise, 0);
    assert!(imprecise.findings.iter().any(|finding| finding.contains("not exact")), "{imprecise:?}");
}

#[test]
fn what_has_nothing_to_do_with_precision_is_no_step_down() {
    let cycles = planned(fixture::skl(), |plan| plan.event("cycles"));
    for (number, class) in [
        (libc::EACCES, ErrorClass::Permission),
        (libc::EMFILE, ErrorClass::Failed),
        (libc::EBUSY, ErrorClass::Failed),
        (libc::ESRCH, ErrorClass::Failed),
        (libc::ENODEV, ErrorClass::Unsupported),
    ] {
        let mut kernel = Kernel::default();
        let failure = kernel.decide(&cycles, |_, _| number).unwrap_err();
        assert_eq!((failure.class(), kernel.levels()), (class, vec![3]), "{failure}");
    }
    let mut kernel = Kernel::default();
    let failure = kernel.decide(&cycles, |_, _| libc::EOPNOTSUPP).unwrap_err();
    assert_eq!((failure.class(), kernel.levels()), (ErrorClass::Unsupported, vec![3, 2, 1, 0]));
}

#[test]
fn required_precision_is_not_lowered() {
    let required = planned(fixture::skl(), |plan| plan.event("cycles").precision(Precision::Require));
    let mut kernel = Kernel::default();
    let failure = kernel.decide(&required, |_, _| libc::EOPNOTSUPP).unwrap_err();
    assert_eq!((failure.class(), kernel.levels()), (ErrorClass::Unmet, vec![3, 2]));
    assert!(
        failure.with_causes().contains("level 3") && failure.with_causes().contains("level 2"),
        "{failure}"
    );
    // An event that can never be precise is not tried.
    let timer = planned(fixture::vm(), |plan| plan.event("cpu-clock").precision(Precision::Require));
    let mut kernel = Kernel::default();
    let failure = kernel.decide(&timer, |_, _| 0).unwrap_err();
    assert_eq!((failure.class(), kernel.levels()), (ErrorClass::Unmet, vec![]));
    let off = planned(fixture::skl(), |plan| plan.event("cycles").precision(Precision::Off));
    let granted = Kernel::default().decide(&off, |_, _| 0).unwrap();
    assert_eq!((granted.request.precise, granted.findings.is_empty()), (0, true), "{granted:?}");
}

#[test]
fn ibs_of_a_task_on_an_old_kernel_is_said_to_be_of_whole_cpus() {
    let command = Target::Command(vec!["true".into()]);
    let loads = planned(fixture::zen4(), |plan| plan.event("loads").target(command));
    let of_tasks = |_: &OpenRequest, scope| match scope {
        Scope::Task { .. } => libc::EINVAL,
        Scope::Cpu(_) => 0,
    };
    let mut kernel = Kernel::default();
    let failure = kernel.decide(&loads, of_tasks).unwrap_err();
    assert_eq!(failure.class(), ErrorClass::Unsupported);
    assert!(failure.with_causes().contains("only on whole CPUs"), "{failure}");
    let [(.., task), (.., cpu)] = &kernel.asked[..] else { panic!("{:?}", kernel.asked) };
    assert_eq!((*task, *cpu), (Scope::Task { tid: 4711, cpu: 0, on_exec: true }, Scope::Cpu(0)));
}

#[test]
fn an_event_goes_to_the_cpus_of_its_pmu() {
    let mut faults = planned(fixture::vm(), |plan| plan.event("page-faults"));
    faults.0.events[0].request.cpus = Some(vec![2, 3]);
    let granted = Kernel::default().decide(&faults, |_, _| 0).unwrap();
    assert_eq!(granted.scopes, [Scope::Cpu(2), Scope::Cpu(3)]);
    faults.0.events[0].request.cpus = Some(vec![17]);
    let mut kernel = Kernel::default();
    let failure = kernel.decide(&faults, |_, _| 0).unwrap_err();
    assert_eq!((failure.class(), kernel.asked.len()), (ErrorClass::Unsupported, 0), "{failure}");
}

#[test]
fn what_a_kernel_looks_up_too_late_is_refused_before_it_is_asked() {
    let filter = |text: &str| precise_filter::FilterFlags::default().with_filter(text).unwrap();
    for (release, refused) in [("6.12.0", false), ("6.3.0", false), ("6.2.16", true), ("5.15.0", true)] {
        let old = |tree: Tree| tree.file("/proc/sys/kernel/osrelease", release);
        let by_page = |plan: PlanBuilder| {
            plan.event("page-faults").dimensions(vec![Dimension::Address, Dimension::PageSize])
        };
        let by_filter = |plan: PlanBuilder| plan.event("page-faults").filter(filter("data_pgsz == 4K"));
        for case in [planned(old(fixture::vm()), by_page), planned(old(fixture::vm()), by_filter)] {
            let mut kernel = Kernel::default();
            let decided = kernel.decide(&case, |_, _| 0);
            assert_eq!(decided.is_err(), refused, "{release}: {decided:?}");
            assert_eq!(kernel.asked.is_empty(), refused);
            if let Err(failure) = decided {
                assert_eq!(failure.class(), ErrorClass::Unsupported);
            }
        }
    }
    for (release, refused) in [("6.1.0", false), ("6.0.0", true)] {
        let old = fixture::vm().file("/proc/sys/kernel/osrelease", release);
        let chains = planned(old, |plan| plan.event("page-faults").call_chains(true));
        let decided = Kernel::default().decide(&chains, |_, _| 0);
        assert_eq!(decided.is_err(), refused, "{release}: {decided:?}");
        if let Ok(granted) = decided {
            assert!(granted.request.wanted.callchain);
        }
    }
}

#[test]
fn samples_carry_what_is_grouped_by_filtered_or_streamed() {
    let wanted = |change: fn(PlanBuilder) -> PlanBuilder| {
        let case = planned(fixture::zen4(), change);
        Kernel::default().decide(&case, |_, _| 0).unwrap().request.wanted
    };
    let plain = wanted(|plan| plan.event("loads"));
    assert!(plain.address && plain.latency && plain.data_source && !plain.period && !plain.callchain);
    assert!(!plain.page_size && !plain.phys_address);
    assert!(wanted(|plan| plan.event("loads").dimensions(vec![Dimension::PageSize])).page_size);
    // c2c identifies cache lines by their physical address.
    assert!(wanted(|plan| plan.event("c2c")).phys_address);
    let streaming = Streaming { raw: true, phys_address: true, ..Streaming::default() };
    let stream = |event: &str| {
        let case = planned(fixture::zen4(), |plan| plan.event(event).stream(streaming));
        Kernel::default().decide(&case, |_, _| 0).unwrap().request.wanted
    };
    let loads = stream("loads");
    assert!(loads.period && loads.raw && loads.phys_address && !loads.page_size);
    // A timer has no data address, so no physical address either, and no driver that adds raw data.
    let timer = stream("cpu-clock");
    assert!(timer.period && !timer.raw && !timer.phys_address);
}

#[test]
fn samples_do_not_carry_what_the_program_finds_elsewhere() {
    for (event, streams, namespace, (record, ids)) in [
        ("loads", false, true, (false, true)),
        ("loads", false, false, (false, false)),
        ("cpu-clock", false, false, (false, false)),
        ("page-faults", false, true, (false, true)),
        // Records have what the kernel prepares.
        ("page-faults", true, false, (true, true)),
    ] {
        let (plan, machine) = planned(fixture::zen4(), |plan| match streams {
            true => plan.event(event).stream(Streaming::default()),
            false => plan.event(event),
        });
        let mut grants = |_: &OpenRequest, _: Option<&OpenRequest>, _| Ok(());
        let scopes = [Scope::Cpu(0)];
        let granted = decide(&plan, &plan.events[0], &scopes, namespace, &machine, &mut grants).unwrap();
        let wanted = granted.request.wanted;
        assert_eq!((wanted.record, wanted.ids), (record, ids), "{event}, streams: {streams}");
        if event == "cpu-clock" {
            // Then the kernel prepares nothing.
            assert_eq!(attributes(&granted.request).sample_type, 0);
        }
    }
}

#[test]
fn only_events_of_the_cores_leave_guests_out() {
    let excludes = |tree: Tree, event: &str| {
        let plan = planned(tree, |plan| plan.event(event)).0;
        encoding(&plan.events[0].request).exclude_guest
    };
    for event in ["cycles", "r20d1", "cache-misses", "loads"] {
        assert!(excludes(fixture::icx(), event), "{event}");
    }
    assert!(excludes(fixture::adl(), "cpu_atom/mem-loads/"));
    for event in ["cpu-clock", "page-faults", "loads", "ibs_fetch//"] {
        assert!(!excludes(fixture::zen4(), event), "{event}");
    }
}

#[test]
fn targets_become_scopes() {
    let scopes_of = |target: Target, command| {
        let mut plan = planned(fixture::vm(), |plan| plan.event("page-faults").cpus(vec![1, 3])).0;
        plan.target = target;
        scopes(&plan, command)
    };
    let task = |tid, cpu, on_exec| Scope::Task { tid, cpu, on_exec };
    assert_eq!(scopes_of(Target::All, None).unwrap(), [Scope::Cpu(1), Scope::Cpu(3)]);
    let threads = scopes_of(Target::Threads(vec![7, 8]), None).unwrap();
    assert_eq!(threads, [task(7, 1, false), task(7, 3, false), task(8, 1, false), task(8, 3, false)]);
    let command = scopes_of(Target::Command(vec!["true".into()]), Some(9)).unwrap();
    assert_eq!(command, [task(9, 1, true), task(9, 3, true)]);
    // All threads of this process, which has more than one.
    let own = scopes_of(Target::Processes(vec![std::process::id()]), None).unwrap();
    assert!(own.contains(&task(std::process::id() as i32, 1, false)), "{own:?}");
    assert!(own.len() >= 4 && own.len().is_multiple_of(2), "{own:?}");
    // Above the kernel's maximum pid (PID_MAX_LIMIT is 4 Mi).
    let failure = scopes_of(Target::Processes(vec![9_999_999]), None).unwrap_err();
    assert_eq!(failure.class(), ErrorClass::Failed);
}

/// Returns the constants of the program for the first event.
fn told(tree: Tree, change: impl FnOnce(PlanBuilder) -> PlanBuilder) -> Config {
    let (plan, machine) = planned(tree, change);
    let event = grouped(&plan, &plan.events[0], &machine);
    config(&plan, &event, event.request.fields, &machine)
}

#[test]
fn dimensions_become_the_key() {
    let key = |dimensions: &[Dimension]| {
        told(fixture::zen4(), |plan| plan.event("loads").dimensions(dimensions.to_vec())).key
    };
    for (dimension, bits) in [
        (Dimension::Ip, key::IP | key::PID),
        (Dimension::Address, key::ADDRESS | key::PID),
        (Dimension::Cgroup, key::CGROUP),
        (Dimension::Process, key::PID),
        (Dimension::Thread, key::PID | key::TID),
        (Dimension::Source, key::DATA_SRC),
        (Dimension::Latency, key::LATENCY),
        (Dimension::Cpu, 0),
        (Dimension::PageSize, key::PAGE_SIZE),
        (Dimension::Stack, key::STACK | key::IP | key::PID),
    ] {
        assert_eq!(key(&[dimension]), bits, "{dimension:?}");
    }
    // No page size is requested from an event that has none.
    let timer = told(fixture::vm(), |plan| plan.event("cpu-clock").dimensions(vec![Dimension::Cpu]));
    assert_eq!((timer.key, timer.fields & field::ADDRESS), (0, 0));
}

#[test]
fn fields_granule_and_mode_are_those_of_the_plan() {
    let loads = told(fixture::zen4(), |plan| plan.event("loads").dimensions(vec![Dimension::Address]));
    assert_eq!(loads.fields, field::ADDRESS | field::LATENCY | field::DATA_SRC | field::EXACT);
    assert_eq!((loads.address_mask, loads.mode, loads.promote), (!0x3f, mode::AGGREGATE, 0));
    let stream = told(fixture::vm(), |plan| plan.event("page-faults").stream(Streaming::default()));
    assert_eq!((stream.mode, stream.key, stream.address_mask), (mode::STREAM, 0, !0));
    // A page fault is always exact, so the program looks for no mark.
    assert_eq!(stream.fields, field::ADDRESS);
}

#[test]
fn c2c_tells_the_program_how_many_lines_and_by_which_address() {
    let lines = told(fixture::zen4(), |plan| plan.event("c2c").lines(1000));
    assert_eq!(lines.promote, promote::ON | promote::BY_PHYSICAL);
    assert_eq!((lines.line_mask, lines.address_mask), (1023, !0));
    let plain = told(fixture::zen4(), |plan| plan.event("loads"));
    assert_eq!((plain.promote, plain.line_mask), (0, 0));
}

#[test]
fn filters_are_the_users_and_the_events_own() {
    let only = precise_filter::FilterFlags { pids: vec![4711], ..Default::default() };
    let slots = |config: Config| {
        let used = config.slots.into_iter().filter(|slot| slot.operand != operand::NONE);
        used.map(|slot| slot.operand).collect::<Vec<_>>()
    };
    // IBS tags all ops; the loads among them are recognised by their data source.
    let loads = slots(told(fixture::zen4(), |plan| plan.event("loads").filter(only.clone())));
    assert!(loads.contains(&operand::PID) && loads.contains(&operand::DATA_SRC), "{loads:?}");
    let faults = slots(told(fixture::vm(), |plan| plan.event("page-faults").filter(only)));
    assert_eq!(faults, [operand::PID]);
    assert!(slots(told(fixture::vm(), |plan| plan.event("page-faults"))).is_empty());
}

#[test]
fn the_first_candidate_that_the_kernel_grants_is_chosen() {
    let pmus = fixture::zen4().pmus();
    let candidates = || pmu::preset::default_candidates(&pmus, Precision::Auto).unwrap();
    let choose = |refuses: fn(&OpenRequest) -> i32| {
        first_granted(candidates(), 0, Precision::Auto, &mut |request, _, _| errno(refuses(request)))
    };
    assert_eq!(choose(|_| 0).unwrap()[0].pmu, "ibs_op");
    // This guest has no IBS, so the ordinary counter is used, with a note on what was tried.
    let ibs = pmus.get("ibs_op").unwrap().type_;
    let second = first_granted(candidates(), 0, Precision::Auto, &mut |request, _, _| {
        errno(i32::from(request.encoding.pmu == ibs) * libc::ENOENT)
    })
    .unwrap();
    assert_eq!(second[0].pmu, "cpu");
    assert!(second[0].notes.iter().any(|note| note.contains("the kernel refused IBS")), "{second:?}");
    // Only the timer is left: at least two notes.
    let timer = choose(|request| i32::from(request.encoding.pmu != 1) * libc::ENOENT).unwrap();
    assert_eq!(timer[0].name, "cpu-clock");
    assert!(timer[0].notes.iter().any(|note| note.contains("cycles could not be opened")), "{timer:?}");
    let failure = choose(|_| libc::ENOENT).unwrap_err();
    assert_eq!(failure.class(), ErrorClass::Unsupported);
    // A missing permission is missing for all candidates.
    let mut asked = 0;
    let denied = first_granted(candidates(), 0, Precision::Auto, &mut |_, _, _| {
        asked += 1;
        errno(libc::EACCES)
    });
    assert_eq!((denied.unwrap_err().class(), asked), (ErrorClass::Permission, 1));
}

#[test]
fn a_plan_that_needs_too_many_files_is_refused_with_the_numbers() {
    let threads = Target::Threads((1..=300).collect());
    let (plan, _) = planned(fixture::skl(), |plan| plan.event("cycles").target(threads.clone()));
    let of_threads = scopes(&plan, None).unwrap();
    assert_eq!(needed_descriptors(&plan, &of_threads), 300 * 4);
    let limits = |soft| DescriptorLimits { soft, hard: soft };
    assert!(descriptors_suffice(&plan, &of_threads, 4, limits(1 << 20)).is_ok());
    let failure = descriptors_suffice(&plan, &of_threads, 4, limits(1024)).unwrap_err();
    assert_eq!(failure.way_out(), Some(Remedy::FewerDescriptors));
    let said = failure.to_string();
    assert!(
        said.starts_with("the events need 1,200 open files") && said.contains("may have 1,024"),
        "{said}"
    );

    // The auxiliary event of Sapphire Rapids needs a descriptor of its own.
    let (plan, _) = planned(fixture::spr(), |plan| plan.event("loads"));
    let leaders = plan.events.iter().filter(|event| event.request.leader.is_some()).count() as u64;
    assert!(leaders > 0);
    let all = scopes(&plan, None).unwrap();
    assert_eq!(needed_descriptors(&plan, &all), 4 * (plan.events.len() as u64 + leaders));
}
