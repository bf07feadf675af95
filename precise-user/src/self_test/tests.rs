use precise_common::{data_src::bits, ibs::OutcomeBits as Bits, ledger::Counter};

use super::{
    evidence::{Evidence, Granted},
    judge,
    places::{Span, WorkerPlaces},
    probe::{PROBES, Probe},
    task::Work,
    topology::Topology,
    worker,
};
use precise_model::testing::CaptureBuilder;
use precise_model::{CodeLocation, DataLocation, Name, NameId, Outcome, Preset, Reason, Vendor};
use precise_sampling::doctor::{Check, CheckStatus};
use precise_sampling::machine::Root;
use precise_views::stats::Histogram;

const LOAD: u64 = 0x1003;
const PREDICTABLE: u64 = 0x1010;

fn places() -> WorkerPlaces {
    WorkerPlaces {
        function: Span { begin: 0x1000, end: 0x1020 },
        instructions: vec![LOAD],
        predictable: None,
        data: Some(Span { begin: 0x10_0000, end: 0x20_0000 }),
    }
}

/// A run whose samples are all as expected, from RAM and with this latency.
fn run(name: &'static str, level: &'static str, latency: u32) -> Evidence {
    let mut latencies = Histogram::default();
    latencies.add(precise_common::latency::bucket(latency) as u8, 1000u64);
    Evidence {
        name,
        events: vec![Granted {
            seen: 1000,
            precise: true,
            level: 2,
            coverage: Some(1.0),
            ..Granted::default()
        }],
        samples: 1000,
        in_function: 1000,
        wanted: 1000,
        address_due: 1000,
        in_data: 1000,
        source_due: 1000,
        levels: [(level, 1000)].into(),
        latency_due: 1000,
        latencies,
        ..Evidence::default()
    }
}

fn loads() -> [Evidence; 3] {
    [run("in the L1 cache", "L1", 7), run("in the L2 cache", "L2", 16), run("in memory", "RAM", 400)]
}

fn status(checks: &[Check], name: &str) -> CheckStatus {
    checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no {name}: {checks:?}")).status
}

#[test]
fn loads_that_are_right_pass() {
    let checks = judge::checks(Preset::Loads, &loads());
    assert_eq!(checks.len(), 11, "{checks:?}");
    assert!(checks.iter().all(|check| check.status == CheckStatus::Passed), "{checks:?}");
}

#[test]
fn each_thing_that_is_wrong_fails_by_itself() {
    let failing = |change: &dyn Fn(&mut [Evidence; 3])| {
        let mut runs = loads();
        change(&mut runs);
        let checks = judge::checks(Preset::Loads, &runs);
        let failed = checks.iter().filter(|check| check.status == CheckStatus::Failed);
        failed.map(|check| check.name.clone()).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(failing(&|runs| runs[1].events[0].precise = false), "opens");
    assert_eq!(failing(&|runs| runs[1].events[0].unaccounted = -1), "ledger closes");
    assert_eq!(failing(&|runs| runs[1].events[0].coverage = Some(0.5)), "coverage");
    assert_eq!(failing(&|runs| runs[0].wanted = 500), "instructions");
    assert_eq!(failing(&|runs| runs[0].in_data = 500), "addresses");
    assert_eq!(failing(&|runs| runs[2].latencies = Histogram::default()), "latency");
    assert_eq!(failing(&|runs| runs[2].latencies = runs[1].latencies.clone()), "latency grows");
    assert_eq!(failing(&|runs| runs[0].levels = [("RAM", 1000)].into()), "level: L1");
    assert_eq!(failing(&|runs| runs[2].levels.clear()), "level: memory");
    assert_eq!(failing(&|runs| runs[0].samples = 0), "samples");
}

#[test]
fn every_loss_of_the_ledger_is_evidence() {
    let mut builder = CaptureBuilder::new();
    builder.cell();
    let mut capture = builder.build();
    let ledger = &mut capture.meta.events[0].ledger;
    let losses = Counter::ALL.iter().filter(|counter| counter.fate().is_loss());
    let losses = losses.map(|counter| ledger.counters.set(*counter, 2)).count() as u64;
    ledger.lost = 1;
    assert_eq!(Evidence::of("", &capture, &places()).events[0].lost, 2 * losses + 1);
}

#[test]
fn hits_without_a_latency_do_not_spoil_the_order() {
    // IBS reports latencies only for misses.
    let mut runs = loads();
    runs[0].latencies = Histogram::default();
    assert_eq!(status(&judge::checks(Preset::Loads, &runs), "latency grows"), CheckStatus::Passed);
    runs[1].latencies = Histogram::default();
    assert_eq!(status(&judge::checks(Preset::Loads, &runs), "latency grows"), CheckStatus::NotDecided);
}

#[test]
fn too_few_samples_decide_nothing() {
    let mut few = run("", "RAM", 400);
    few.samples = 99;
    let checks = judge::checks(Preset::Stores, &[few.clone()]);
    assert_eq!(status(&checks, "samples"), CheckStatus::NotDecided);
    assert_eq!(checks.len(), 4);
    few.samples = 0;
    let checks = judge::checks(Preset::Branches, &[few.clone()]);
    assert!(checks[1].reason.contains("none passed the filter of the preset"), "{checks:?}");
    few.events[0].seen = 0;
    assert!(judge::checks(Preset::Stores, &[few])[1].reason.contains("no samples reached"));
}

#[test]
fn shared_lines_must_be_seen() {
    let hitm = |from_peer| {
        let run = Evidence { from_peer, ..run("", "L3", 100) };
        status(&judge::checks(Preset::C2c, &[run]), "HITM")
    };
    assert_eq!([0, 9, 10].map(hitm), [CheckStatus::Failed, CheckStatus::NotDecided, CheckStatus::Passed]);
}

#[test]
fn a_random_branch_is_mispredicted_more_often() {
    let branches = |random, predictable, outcomes| {
        let run = Evidence { random, predictable, outcomes, ..run("", "", 1) };
        status(&judge::checks(Preset::Branches, &[run]), "mispredictions")
    };
    // Every branch is sampled, with its outcome.
    assert_eq!(branches((500, 240), (500, 1), 1000), CheckStatus::Passed);
    assert_eq!(branches((500, 240), (500, 200), 1000), CheckStatus::Failed);
    assert_eq!(branches((500, 0), (500, 0), 1000), CheckStatus::Failed);
    assert_eq!(branches((950, 400), (50, 0), 1000), CheckStatus::NotDecided);
    // Only mispredicted branches are sampled.
    assert_eq!(branches((990, 0), (10, 0), 0), CheckStatus::Passed);
    assert_eq!(branches((100, 0), (900, 0), 0), CheckStatus::Failed);
}

#[test]
fn evidence_is_counted_where_it_belongs() {
    let mut builder = CaptureBuilder::new();
    let unknown = Name::Unknown(Reason::NotRecorded);
    let code = |runtime_address| CodeLocation {
        kernel: false,
        runtime_address,
        module: unknown,
        build_id: NameId(0),
        file_offset: 0,
        function: unknown,
        function_offset: 0,
        source: unknown,
        line: 0,
        inlined_into: Vec::new(),
    };
    let data = |runtime_address| DataLocation {
        runtime_address,
        region: unknown,
        file_offset: 0,
        variable: unknown,
        variable_offset: 0,
    };
    let source = |level: u64, snoop: u64| level << bits::LVL_NUM.0 | snoop << bits::SNOOP.0 | 2;
    let row = |builder: &mut CaptureBuilder, code, data, data_src, samples| {
        let mut cell = builder.cell().samples(samples).latency(200);
        let row = cell.row();
        (row.code, row.data, row.data_src) = (Some(code), data, data_src);
    };
    // Rows: RAM; L3 with HitM; wrong address; another instruction; kernel.
    row(&mut builder, 0, Some(0), source(0xd, 2), 10);
    row(&mut builder, 0, Some(0), source(3, 16), 20);
    row(&mut builder, 0, Some(1), source(0xd, 2), 40);
    row(&mut builder, 1, Some(0), source(0xd, 2), 80);
    row(&mut builder, 0, Some(0), source(0xd, 2), 160);
    let mut capture = builder.build();
    capture.rows[4].kernel = true;
    capture.code = vec![code(LOAD), code(PREDICTABLE)];
    capture.data = vec![data(0x10_0008), data(0x20_0000)];
    let evidence = Evidence::of("", &capture, &places());
    assert_eq!((evidence.samples, evidence.in_function, evidence.wanted), (150, 150, 70));
    assert_eq!((evidence.address_due, evidence.in_data), (70, 30));
    assert_eq!((evidence.source_due, evidence.from_peer), (70, 20));
    assert_eq!(evidence.levels, [("L3", 20), ("RAM", 50)].into());
    assert_eq!(evidence.latencies.total().count, 70);

    // Rows with the outcomes of branches.
    let mispredicted = Some(Outcome::Op(Bits::BRANCH | Bits::MISPREDICTED));
    (capture.rows[0].outcome, capture.rows[3].outcome) = (mispredicted, Some(Outcome::Op(Bits::BRANCH)));
    let branches = WorkerPlaces { predictable: Some(PREDICTABLE), data: None, ..places() };
    let evidence = Evidence::of("", &capture, &branches);
    assert_eq!((evidence.random, evidence.predictable, evidence.outcomes), ((70, 10), (80, 0), 90));
}

#[test]
fn the_chase_visits_every_line_once_and_in_no_order() {
    for lines in [64, 1 << 12, 1 << 16] {
        let (mut at, mut seen, mut near) = (0, vec![false; lines as usize], 0);
        let mut before = worker::place(at, lines);
        for _ in 0..lines {
            at = worker::step(at, lines);
            let line = worker::place(at, lines);
            assert!(!std::mem::replace(&mut seen[line as usize], true), "{line} of {lines} twice");
            near += u64::from(line.abs_diff(before) <= 4);
            before = line;
        }
        assert!(near * 4 <= lines, "{near} of {lines} steps are short");
    }
}

#[test]
fn buffers_fit_what_they_are_for() {
    let machine = Topology {
        cpus: vec![0, 1, 2],
        siblings: vec![vec![0, 1], vec![0, 1], vec![2]],
        caches: vec![48 << 10, 2 << 20, 60 << 20],
        available: 8 << 30,
    };
    let steps = |preset, machine: &Topology| {
        let probe = PROBES.iter().find(|probe| probe.preset == preset).unwrap();
        probe.steps(machine, Vendor::Intel)
    };
    let sizes: Vec<u64> =
        steps(Preset::Loads, &machine).unwrap().iter().map(|step| step.task.bytes).collect();
    assert_eq!(sizes, [16 << 10, 1 << 20, 256 << 20]);
    let shared = steps(Preset::C2c, &machine).unwrap();
    assert_eq!((shared[0].task.work, &shared[0].task.cpus[..]), (Work::Share, &[0, 2][..]));

    let little = Topology { cpus: vec![0, 1], siblings: vec![vec![0, 1]; 2], available: 1 << 20, ..machine };
    assert!(steps(Preset::Loads, &little).unwrap_err().contains("512 MiB of free memory"));
    assert!(steps(Preset::C2c, &little).unwrap_err().contains("two cores"));
    for probe in &PROBES {
        assert!(probe.steps(&Topology::default(), Vendor::Amd).is_err(), "{probe:?}");
    }
}

#[test]
fn loads_that_hit_are_sampled_too() {
    let loads = |vendor| {
        let probe: &Probe = PROBES.iter().find(|probe| probe.preset == Preset::Loads).unwrap();
        probe.options(vendor).ldlat
    };
    assert_eq!((loads(Vendor::Intel), loads(Vendor::Amd)), (Some(3), None));
}

#[test]
fn the_topology_is_read_below_a_root() {
    let folder = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    };
    file("proc/self/status", "Cpus_allowed_list:\t1-2");
    file("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    2048 kB");
    file("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,3");
    for (index, kind, level, size) in
        [(0, "Data", 1, "32K"), (1, "Instruction", 1, "32K"), (2, "Unified", 2, "1024K")]
    {
        let cache = format!("sys/devices/system/cpu/cpu1/cache/index{index}");
        file(&format!("{cache}/type"), kind);
        file(&format!("{cache}/level"), &level.to_string());
        file(&format!("{cache}/size"), size);
    }
    let machine = Topology::read(&Root(folder.path().to_owned()), &[0, 1, 2, 3]);
    assert_eq!(machine.cpus, [1, 2]);
    assert_eq!(machine.siblings, [vec![1, 3], vec![2]]);
    assert_eq!((machine.caches, machine.available), (vec![32 << 10, 1 << 20], 2 << 20));
}

#[test]
fn a_run_with_too_few_samples_is_repeated_with_more_effort() {
    let more = |samples, seconds, often| {
        let effort = super::run::Effort { duration: std::time::Duration::from_secs(seconds), often };
        effort.more(samples).map(|more| (more.duration.as_secs(), more.often.round()))
    };
    assert_eq!(more(0, 2, 1.0), None, "nothing came: more time changes nothing");
    assert_eq!(more(25, 2, 1.0), Some((2, 8.0)), "a shorter period costs no time");
    assert_eq!(more(4, 2, 1.0), Some((10, 10.0)));
    assert_eq!(more(1, 2, 1.0), Some((40, 10.0)));
    assert_eq!(more(50, 10, 10.0), Some((40, 10.0)), "and again, where the machine got busier");
    assert_eq!(more(50, 40, 10.0), None);
    assert_eq!(more(100, 2, 1.0), None);
}
