//! Tests of `precise mem` on synthetic captures with known results.

use crate::latency::{LatencyOptions, latency};
use crate::mem::csv::mem_csv;
use crate::mem::text::mem_text;
use crate::mem::{MemOptions, mem};
use crate::numa::numa;
use crate::render::TextOptions;
use crate::testing::{csv_has_a_field_for_each_name, has, shown};
use crate::tlb::{TlbOptions, tlb};
use precise_model::keys::{Key, Sort};
use precise_model::testing::CaptureBuilder;
use precise_model::{Capture, Dimension, Node};

pub use precise_model::testing::{L1, L3_HITM, RAM, RAM_WALK, REMOTE_RAM};
const STORE: u64 = 0x508_0144;

/// The samples of a recording made on a Coffee Lake (`perf mem record`, see tests/recordings),
/// summed up by data source: number of samples, and sum and maximum of their weights as `perf
/// script` prints them.
fn coffee_lake() -> Capture {
    let mut builder = CaptureBuilder::new();
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

// The expected table is that of `perf mem report --sort mem,snoop,tlb,locked` from perf 6.12, for
// the same file.
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
    assert!(mem.events[0].notes[0].contains("at least 30 core cycles"), "{:?}", mem.events[0].notes);
}

/// Two nodes of two CPUs each. Accesses from node 0 mostly hit a cache; node 1 reads the memory of
/// node 0.
pub fn two_nodes() -> Capture {
    let mut builder = CaptureBuilder::new();
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
    // Samples that are not memory accesses.
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

/// Page walks of small and large pages, and 20 samples of a page whose size the kernel did not
/// find.
pub fn page_sizes() -> Capture {
    let mut builder = CaptureBuilder::new();
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
fn too_few_samples_are_said_and_not_ranked() {
    let mut builder = CaptureBuilder::new();
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

#[test]
fn mem_at_80_columns() {
    let text = mem_text(&mem(&two_nodes(), &MemOptions::default()).unwrap(), &TextOptions::default());
    shown("mem.md", "loads", &text);
    has(
        &text,
        "
Stores: 200 samples
      Share  Samples  Memory access  Snoop  TLB access  Locked  Node
100.0% ±1.9      200  L1 hit         N/A    N/A         N/A        0

* 30 of the samples were not memory accesses, or the hardware did not report it:
  they are in no table.
",
    );
}

#[test]
fn csv_is_complete() {
    csv_has_a_field_for_each_name(&mem_csv(&mem(&two_nodes(), &MemOptions::default()).unwrap(), ","), ',');
}
