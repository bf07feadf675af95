//! Tests of the views of memory on captures made by hand: what they must say is known.

use crate::ViewError;
use crate::latency::{LatencyOptions, latency};
use crate::mem::{MemOptions, mem};
use crate::numa::{Place, numa};
use crate::tlb::{TlbOptions, tlb};
use precise_model::keys::{Key, Sort};
use precise_model::testing::Builder;
use precise_model::{Capture, Dimension, Node};

pub use precise_model::testing::{L1, L3_HITM, RAM, RAM_WALK, REMOTE_RAM};
const STORE: u64 = 0x508_0144;

/// The samples of a recording made on a Coffee Lake (`perf mem record`, see tests/recordings), summed up by data source:
/// samples, sum and largest of their weights as `perf script` prints them.
fn coffee_lake() -> Capture {
    let mut builder = Builder::new();
    let mut stores = builder.meta().events[0].clone();
    builder.meta().events[0].name = "cpu/mem-loads,ldlat=30/P".into();
    precise_model::testing::slow_loads(&mut builder.meta().events[0], 30);
    stores.name = "cpu/mem-stores/P".into();
    stores.fields.latency = false;
    builder.meta().events.push(stores);
    for (word, count, sum, max) in LOADS {
        let mut cell = builder.cell().samples(count).data_src(word);
        let measures = &mut cell.row().measures;
        (measures.latency_sum, measures.latency_max) = (sum, max);
    }
    for (word, count) in [(0x0508_0144, 493), (0x0508_0184, 1)] {
        builder.cell().event(1).samples(count).data_src(word);
    }
    builder.meta().dimensions.retain(|d| *d != Dimension::Latency);
    builder.build()
}

const LOADS: [(u64, u64, u64, u32); 7] = [
    (0x1868100242, 12, 1440, 324),
    (0x268100142, 180, 7219, 495),
    (0x26a100142, 4, 392, 159),
    (0x252100142, 1, 151, 151),
    (0x668100842, 5, 265, 60),
    (0x668200842, 1, 149, 149),
    (0x1a68201042, 1, 306, 306),
];

// What `perf mem report --sort mem,snoop,tlb,locked` of perf 6.12 prints of the same file.
#[test]
fn the_table_is_perf_mems() {
    let mem = mem(&coffee_lake(), &MemOptions::default()).unwrap();
    let lines = |event: usize| -> Vec<_> {
        let accesses = &mem.events[event].accesses;
        assert_eq!(accesses.len(), 1);
        let share = |g: &crate::grouping::Group| match accesses[0].timed {
            true => g.latency_share.unwrap().value,
            false => g.share.value,
        };
        let words =
            |g: &crate::grouping::Group| g.values.iter().map(|v| v.text()).collect::<Vec<_>>().join("|");
        let groups = accesses[0].groups.list.iter();
        groups.map(|g| format!("{:.2}% {} {}", 100.0 * share(g), g.measures.count, words(g))).collect()
    };
    assert_eq!(
        lines(0),
        [
            "72.76% 180 L1 hit|None|L1 or L2 hit|no",
            "14.51% 12 LFB/MAB hit|None|L1 or L2 hit|no",
            "3.95% 4 L1 hit|None|L1 or L2 hit|yes",
            "3.08% 1 RAM hit|Hit|L1 or L2 hit|no",
            "2.67% 5 L3 hit|None|L1 or L2 hit|no",
            "1.52% 1 L1 hit|None|L2 miss|yes",
            "1.50% 1 L3 hit|Hit|L1 or L2 hit|no",
        ]
    );
    assert_eq!(lines(1), ["99.80% 493 L1 hit|N/A|N/A|N/A", "0.20% 1 L1 miss|N/A|N/A|N/A"]);
    assert!(mem.events[0].notes[0].contains("at least 30 cycles"), "{:?}", mem.events[0].notes);
}

/// Two nodes of two CPUs. Node 0 mostly hits; node 1 reads the other node's memory.
pub fn two_nodes() -> Capture {
    let mut builder = Builder::new();
    builder.meta().events[0].name = "mem".into();
    builder.meta().machine.nodes = vec![Node { id: 0, cpus: vec![0, 1] }, Node { id: 1, cpus: vec![2, 3] }];
    let mut loads = |cpu, word, count, cycles, function: &str| {
        let ip = 0x1000 + u64::from(cycles);
        builder
            .cell()
            .samples(count)
            .latency(cycles)
            .cpu(cpu)
            .data_src(word)
            .code(ip, "/bin/app", function, "", 0);
    };
    loads(0, L1, 600, 6, "hot");
    loads(1, L3_HITM, 100, 180, "lock");
    loads(1, RAM, 50, 300, "scan");
    loads(2, RAM_WALK, 50, 900, "chase");
    loads(3, REMOTE_RAM, 150, 600, "chase");
    loads(3, L1, 20, 6, "chase");
    builder.cell().samples(200).cpu(0).data_src(STORE).code(0x2000, "/bin/app", "hot", "", 0);
    // No memory access.
    builder.cell().samples(30).cpu(0).code(0x2000, "/bin/app", "hot", "", 0);
    builder.build()
}

#[test]
fn loads_and_stores_are_apart_and_what_is_neither_is_counted() {
    let result =
        mem(&two_nodes(), &MemOptions { by: Some(vec![Key::Level, Key::Node]), ..MemOptions::default() });
    let event = &result.unwrap().events[0];
    let totals: Vec<_> = event.accesses.iter().map(|a| (a.op, a.groups.total.count, a.timed)).collect();
    assert_eq!(totals, [("LOAD", 970, true), ("STORE", 200, false)]);
    assert_eq!((event.samples, event.without), (1200, 30));
    let words = |g: &crate::grouping::Group| g.values.iter().map(|v| v.text()).collect::<Vec<_>>().join(" ");
    let first = &event.accesses[0].groups.list[0];
    assert_eq!((words(first), first.measures.latency_sum), ("Remote RAM hit 1".into(), 90_000));
    let options = MemOptions { sort: Some(Sort::Samples), limit: Some(1), ..MemOptions::default() };
    let by_samples = mem(&two_nodes(), &options).unwrap();
    let loads = &by_samples.events[0].accesses[0].groups;
    assert_eq!((words(&loads.list[0]), loads.left_out.0), ("L1 hit None L1 or L2 hit no 0".into(), 5));
}

#[test]
fn walks_are_counted_per_function_with_what_they_cost() {
    let view = tlb(&two_nodes(), &TlbOptions::default()).unwrap();
    let event = &view.events[0];
    assert_eq!((event.all.accesses, event.all.walked), (970, 50));
    assert_eq!((event.all.walked_average, event.without), (Some(900.0), 230));
    assert_eq!(event.walks.len(), 1);
    let chase = &event.walks[0];
    assert_eq!((chase.values[0].text(), chase.accesses, chase.walked), ("chase".into(), 220, 50));
    assert_eq!(chase.other_average, Some((150.0 * 600.0 + 20.0 * 6.0) / 170.0));
    assert!(chase.rate.low < 50.0 / 220.0 && 50.0 / 220.0 < chase.rate.high && chase.share.value == 1.0);
}

/// Walks of small pages and of large ones; 20 samples of a page that the kernel did not find.
pub fn page_sizes() -> Capture {
    let mut builder = Builder::new();
    builder.meta().dimensions.push(Dimension::PageSize);
    for (word, count, latency, size) in [
        (L1, 500, 5, 1 << 12),
        (RAM_WALK, 90, 700, 1 << 12),
        (RAM_WALK, 10, 900, 1 << 21),
        (L1, 300, 5, 1 << 30),
    ] {
        builder.cell().samples(count).latency(latency).data_src(word).page_size(size);
    }
    builder.cell().samples(20).latency(5).data_src(L1);
    builder.build()
}

#[test]
fn walks_are_counted_by_the_size_of_the_page_that_needed_none_as_well() {
    let view = tlb(&page_sizes(), &TlbOptions::default()).unwrap();
    let sizes: Vec<_> = view.events[0]
        .sizes
        .iter()
        .map(|s| (s.values[0].text(), s.accesses, s.walked, s.walked_average))
        .collect();
    let expected = [
        ("4 KiB", 590, 90, Some(700.0)),
        ("2 MiB", 10, 10, Some(900.0)),
        ("1 GiB", 300, 0, None),
        ("N/A", 20, 0, None),
    ];
    assert_eq!(
        sizes,
        expected.map(|(size, accesses, walked, average)| (size.to_owned(), accesses, walked, average))
    );
    assert!(tlb(&two_nodes(), &TlbOptions::default()).unwrap().events[0].sizes.is_empty());
}

#[test]
fn nodes_are_rows_and_memory_is_a_column() {
    let view = numa(&two_nodes(), None).unwrap();
    let event = &view.events[0];
    let cells =
        |row: usize| -> Vec<_> { event.from[row].to.iter().map(|to| (to.place, to.samples)).collect() };
    assert_eq!(event.from.iter().map(|row| row.node).collect::<Vec<_>>(), [Some(0), Some(1)]);
    // Stores that hit L1 are accesses, too.
    assert_eq!(cells(0), [(Place::Memory(0), 50), (Place::Cache, 900)]);
    assert_eq!(cells(1), [(Place::Memory(0), 150), (Place::Memory(1), 50), (Place::Cache, 20)]);
    assert_eq!((event.memory, event.remote, event.without), (250, 150, 30));
    assert_eq!(event.remote_share.unwrap().value, 0.6);
}

#[test]
fn what_a_sample_does_not_say_of_nodes_is_not_known() {
    let mut capture = two_nodes();
    capture.meta.machine.nodes.push(Node { id: 2, cpus: vec![] });
    let view = numa(&capture, None).unwrap();
    assert_eq!(view.events[0].from[1].to[1].place, Place::OtherMemory);
    assert!(view.events[0].notes[0].contains("not of which"), "{:?}", view.events[0].notes);
    capture.meta.machine.nodes.clear();
    let view = numa(&capture, None).unwrap();
    let places: Vec<_> = view.events[0].from[0].to.iter().map(|to| (to.place, to.samples)).collect();
    assert_eq!(places, [(Place::OwnMemory, 100), (Place::OtherMemory, 150), (Place::Cache, 920)]);
    assert!(view.events[0].notes[0].contains("which CPU is of which node"));
    capture.meta.dimensions.retain(|d| *d != Dimension::Cpu);
    assert!(matches!(numa(&capture, None), Err(ViewError::NotRecorded { .. })));
}

#[test]
fn latencies_per_level_with_intervals_and_their_mode() {
    let view = latency(&two_nodes(), &LatencyOptions::default()).unwrap();
    let event = &view.events[0];
    assert_eq!((event.timed, event.untimed, event.too_few), (970, 230, None));
    let all = event.all.as_ref().unwrap();
    assert_eq!(all.buckets.iter().map(|b| b.samples).collect::<Vec<_>>(), [620, 100, 50, 150, 50]);
    let p50 = all.group.p50.unwrap();
    assert_eq!((p50.cycles, p50.interval), (6.0, [6, 6]));
    // 5 % of 970 are slower than the remote memory, give or take 14 samples.
    let p90 = all.group.p90.unwrap();
    assert!((p90.low..=p90.high).contains(&600), "{p90:?}");
    let mode = all.mode.as_ref().unwrap();
    assert_eq!((mode.bucket.low, mode.bucket.samples), (6, 620));
    let (level, share) = mode.served.clone().unwrap();
    assert_eq!((level.as_str(), share.value), ("L1 hit", 1.0));
    let names: Vec<_> = event.groups.iter().map(|g| g.group.values[0].text()).collect();
    assert_eq!(names, ["L1 hit", "Remote RAM hit", "L3 hit", "RAM hit"]);
    let ram = &event.groups[3];
    assert_eq!(ram.buckets.iter().map(|b| b.samples).collect::<Vec<_>>(), [50, 50]);
    assert_eq!(ram.group.p99, None, "a hundred samples have no 99th percentile");
}

#[test]
fn a_mode_without_levels_is_a_rule_of_thumb() {
    let mut capture = two_nodes();
    capture.meta.dimensions.retain(|d| *d != Dimension::Source);
    let view = latency(&capture, &LatencyOptions::default()).unwrap();
    let mode = view.events[0].all.as_ref().unwrap().mode.clone().unwrap();
    assert_eq!((mode.served, mode.usually), (None, "the L1 cache"));
    assert!(view.by.is_empty() && view.events[0].groups.is_empty());
}

#[test]
fn too_few_samples_are_said_and_not_ranked() {
    let mut builder = Builder::new();
    builder.cell().samples(99).latency(7).data_src(L1).cpu(0);
    let capture = builder.build();
    let few = mem(&capture, &MemOptions::default()).unwrap();
    assert_eq!(few.events[0].accesses[0].groups.too_few, Some(100));
    let few = latency(&capture, &LatencyOptions::default()).unwrap();
    assert_eq!((few.events[0].too_few, few.events[0].all.is_none()), (Some(100), true));
    assert_eq!(tlb(&capture, &TlbOptions::default()).unwrap().events[0].levels.too_few, Some(100));
    assert_eq!(numa(&capture, None).unwrap().events[0].too_few, Some(100));
}

#[test]
fn what_is_missing_names_the_command() {
    let mut capture = two_nodes();
    capture.meta.dimensions = vec![Dimension::Ip];
    for (error, command) in [
        (mem(&capture, &MemOptions::default()).unwrap_err(), "-e mem --by ip,source`"),
        (latency(&capture, &LatencyOptions::default()).unwrap_err(), "-e mem --by ip,latency`"),
        (tlb(&capture, &TlbOptions::default()).unwrap_err(), "-e mem --by ip,source`"),
        (numa(&capture, None).unwrap_err(), "-e mem --by ip,cpu,source`"),
    ] {
        assert!(error.to_string().contains(&format!("`precise record {command}")), "{error}");
    }
}
