//! Tests of the heatmap on synthetic captures, and of the property that no sample is lost.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end at once")]

use precise_common::{latency, ledger::Counter};
use proptest::prelude::*;

use super::*;
use crate::view::trial::{even, governed};
use precise_model::testing::CaptureBuilder;
use precise_model::{
    Capture, CodeLocation, DataLocation, Dimension, Epoch, EventInfo, Measures, Name, NameId, Reason,
};

/// A capture for other tests to draw: `epochs` of one second, one precise event called `loads`, no
/// rows.
pub(crate) fn blank(epochs: usize) -> Capture {
    let mut capture = Capture::default();
    capture.meta.machine.host = "web-01".into();
    capture.meta.target = "all processes".into();
    capture.meta.address_granule = 64;
    capture.meta.dimensions = vec![Dimension::Cgroup];
    capture.meta.epochs = (0..epochs as u64)
        .map(|i| Epoch { start_ns: i * 1_000_000_000, end_ns: (i + 1) * 1_000_000_000 })
        .collect();
    let mut event = EventInfo { name: "loads".into(), ..EventInfo::default() };
    event.verdict.precise = true;
    event.verdict.granted = 2;
    capture.meta.events = vec![event];
    capture
}

/// A row of `count` samples in `epoch`, without any other data.
pub(crate) fn row(epoch: usize, count: u64) -> Row {
    Row {
        epoch: epoch as u32,
        event: 0,
        cpu: None,
        cgroup_id: 0,
        cgroup: Name::Unknown(Reason::NotRecorded),
        pid: 0,
        tid: 0,
        process: Name::Unknown(Reason::NotRecorded),
        thread: Name::Unknown(Reason::NotRecorded),
        kernel: false,
        code: None,
        data: None,
        stack: precise_model::Chain::NONE,
        data_src: 0,
        outcome: None,
        latency_bucket: None,
        exact: true,
        width: None,
        page_size: None,
        measures: Measures { count, ..Measures::default() },
    }
}

/// Adds a code location in `function`.
pub(crate) fn code(capture: &mut Capture, function: &str) -> Option<u32> {
    let function = Name::Known(capture.names.intern(function));
    let module = Name::Known(capture.names.intern("/usr/bin/app"));
    capture.code.push(CodeLocation {
        kernel: false,
        runtime_address: 0,
        module,
        build_id: NameId(0),
        file_offset: 0,
        function,
        function_offset: 0,
        source: Name::Unknown(Reason::NoLine),
        line: 0,
        inlined_into: Vec::new(),
    });
    Some(capture.code.len() as u32 - 1)
}

/// Adds a data location.
pub(crate) fn data(capture: &mut Capture, region: &str, variable: Option<&str>, address: u64) -> Option<u32> {
    let region = Name::Known(capture.names.intern(region));
    let variable = variable.map_or(Name::Unknown(Reason::NoSymbol), |v| Name::Known(capture.names.intern(v)));
    capture.data.push(DataLocation {
        runtime_address: address,
        region,
        file_offset: address & 0xffff,
        variable,
        variable_offset: address & 0xffff,
    });
    Some(capture.data.len() as u32 - 1)
}

#[test]
fn latencies_fall_between_the_edges_of_their_row() {
    for (first, last, most) in
        [(0, 239, 96), (40, 90, 96), (40, 90, 10), (7, 7, 1), (0, 239, 1), (5, 200, 18)]
    {
        let edges = rows::edges(first, last, most);
        assert!(edges.windows(2).all(|e| e[0] < e[1]), "{edges:?}");
        assert!(edges.len() - 1 <= most && edges.len() > 1, "{} rows of {most}", edges.len() - 1);
        assert!(edges[0] <= latency::lower(first) && edges[edges.len() - 1] >= latency::lower(last + 1));
    }
    assert_eq!(rows::edges(latency::bucket(16), latency::bucket(40), 8), [16, 20, 24, 28, 32, 40, 48]);
}

#[test]
fn samples_without_a_latency_have_their_own_row() {
    let mut capture = blank(2);
    capture.rows = vec![Row { latency_bucket: Some(30), ..row(0, 5) }, row(1, 3)];
    let map = heatmap(&capture, &HeatmapOptions { max_rows: Some(1), ..Default::default() }).unwrap();
    assert_eq!(map.rest, ["no latency"]);
    assert_eq!(map.cell(&map.panels[0], 1, map.axis.rows()), 3);
    assert_eq!(map.cell(&map.panels[0], 0, 0), 5);
    assert_eq!(map.cell(&map.panels[0], 1, 0), 0);
    assert_eq!(map.panels[0].title, "cgroup not recorded");
}

#[test]
fn panels_are_ordered_by_samples_and_the_smallest_are_folded() {
    let mut capture = blank(1);
    for i in 1..=12u64 {
        let cgroup = Name::Known(capture.names.intern(&format!("/service-{i}")));
        capture.rows.push(Row { cgroup_id: i, cgroup, ..row(0, i) });
    }
    capture.rows.push(Row { cgroup_id: 99, cgroup: Name::Unknown(Reason::ProcessGone), ..row(0, 50) });
    let map = heatmap(&capture, &HeatmapOptions { max_panels: 3, ..Default::default() }).unwrap();
    let panels: Vec<_> = map.panels.iter().map(|p| (p.title.as_str(), p.samples)).collect();
    assert_eq!(panels, [("cgroup 99 (process gone)", 50), ("/service-12", 12), ("11 other cgroups", 66)]);
}

#[test]
fn the_rarest_functions_are_others() {
    let mut capture = blank(1);
    for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
        let code = code(&mut capture, name);
        capture.rows.push(Row { code, ..row(0, 10 - i as u64) });
    }
    let map = heatmap(&capture, &HeatmapOptions { max_rows: Some(2), ..Default::default() }).unwrap();
    assert_eq!(map.axis, Axis::Function { names: vec!["b".into(), "a".into()] });
    assert_eq!(
        (map.rest.as_slice(), &map.panels[0].cells),
        (["1 other".to_owned()].as_slice(), &vec![9, 10, 8])
    );
}

#[test]
fn addresses_of_one_variable_share_a_range_wherever_it_is_mapped() {
    let mut capture = blank(1);
    for base in [0x5555_0000_0000, 0x5566_0000_0000] {
        for offset in [0, 64, 4096] {
            let data = data(&mut capture, "/usr/bin/app", Some("table"), base + offset);
            capture.rows.push(Row { data, ..row(0, 1) });
        }
    }
    let map = heatmap(&capture, &HeatmapOptions::default()).unwrap();
    let Axis::Address { ranges } = &map.axis else { panic!("{:?}", map.axis) };
    assert_eq!((ranges.len(), ranges[0].name.as_str(), ranges[0].start), (1, "table", 0));
    assert_eq!((ranges[0].row_bytes, ranges[0].rows, ranges[0].samples), (64, 65, 6));
    assert_eq!(map.cell(&map.panels[0], 0, 64), 2);
}

#[test]
fn what_cannot_be_drawn_is_a_sentence() {
    let options = HeatmapOptions::default;
    let mut capture = blank(1);
    let say = |c: &Capture, o: &HeatmapOptions| heatmap(c, o).unwrap_err().to_string();
    assert_eq!(
        say(&Capture::default(), &options()),
        "The capture has no samples, so there is no heatmap to draw."
    );
    capture.meta.events[0].ledger.counters.set(Counter::Seen, 9);
    capture.meta.events[0].ledger.rejected.push(("latency > 5".into(), 9));
    assert!(
        say(&capture, &options()).ends_with("The program saw 9 samples and the filter rejected 9 of them.")
    );
    capture.rows = vec![row(0, 1)];
    let wanted = HeatmapOptions { event: Some("stores".into()), ..options() };
    assert_eq!(say(&capture, &wanted), "The capture has no event \"stores\"; its events: loads.");
    for y in [YAxis::Latency, YAxis::Address, YAxis::Function] {
        assert!(say(&capture, &HeatmapOptions { y, ..options() }).starts_with("No sample has "));
    }
    capture.meta.events.push(EventInfo { name: "stores".into(), ..EventInfo::default() });
    capture.rows.push(Row { event: 1, ..row(0, 1) });
    let panels = PanelBy::Cgroup;
    assert!(say(&capture, &HeatmapOptions { panels, ..options() }).contains("(loads, stores)"));
    assert_eq!(heatmap(&capture, &options()).unwrap().panels.len(), 2);
    capture.rows = vec![row(7, 1)];
    assert!(say(&capture, &options()).contains("refers to epoch 7, but there are only 1"));
}

#[test]
fn the_header_says_how_much_to_believe() {
    let mut capture = blank(3);
    capture.rows = vec![row(0, 1)];
    capture.meta.epochs[2].end_ns += 4_000_000_000;
    let event = &mut capture.meta.events[0];
    event.verdict.precise = false;
    event.verdict.findings = vec!["cpu-clock has skid.".into()];
    event.ledger.event_count = 100;
    event.ledger.counters.set(Counter::PeriodSeen, 90);
    let header = heatmap(&capture, &HeatmapOptions::default()).unwrap().header;
    assert_eq!(header.verdict, ["not precise: cpu-clock has skid."]);
    assert_eq!(
        header.notes,
        [
            "The samples account for 90.0% of the counted events.",
            "Columns last 1.000 to 5.000 s, and a longer column collects more samples."
        ]
    );
    assert_eq!((header.samples, header.duration_ns), (1, 7_000_000_000));
}

#[test]
fn ten_thousand_epochs_fit_the_columns() {
    let mut capture = blank(10_000);
    capture.rows = (0..10_000).map(|e| Row { latency_bucket: Some(20), ..row(e, 1) }).collect();
    let map = heatmap(&capture, &HeatmapOptions::default()).unwrap();
    // 42 epochs in each column but the last.
    assert_eq!(map.columns.len(), 239);
    assert_eq!(map.panels[0].samples, 10_000);
    assert!(map.columns.windows(2).all(|c| c[0].end_ns == c[1].start_ns));
}

prop_compose! {
    fn any_row(epochs: usize)(
        epoch in 0..epochs, count in 0u64..1000, cgroup in 0u64..12, named in any::<bool>(),
        bucket in proptest::option::of(any::<u8>()), code in proptest::option::of(0u32..40),
        data in proptest::option::of(0u32..40), pid in 0u32..5, event in 0u16..2,
    ) -> Row {
        let known = Name::Known(NameId(cgroup as u32));
        let path = if named { known } else { Name::Unknown(Reason::Failed) };
        let latency_bucket = bucket;
        Row { cgroup_id: cgroup, cgroup: path, latency_bucket, code, data, pid, event, ..row(epoch, count) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn the_cells_add_up_to_the_capture(
        epochs in proptest::collection::vec((0u64..1 << 40, 0u64..1 << 32), 1..400),
        rows in proptest::collection::vec(any_row(1), 0..60),
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 60),
        addresses in proptest::collection::vec((any::<u64>(), 0usize..3), 30),
        (max_panels, max_columns, max_rows) in (0usize..6, 0usize..300, proptest::option::of(0usize..100)),
        y in prop::sample::select(vec![YAxis::Auto, YAxis::Latency, YAxis::Address, YAxis::Function]),
        panels in prop::sample::select(vec![
            PanelBy::Auto, PanelBy::Cgroup, PanelBy::Process, PanelBy::Event, PanelBy::None,
        ]),
        event in prop::sample::select(vec![None, Some("loads".to_owned())]),
    ) {
        let mut capture = blank(0);
        capture.meta.dimensions.push(Dimension::Process);
        capture.meta.events.push(EventInfo { name: "stores".into(), ..EventInfo::default() });
        capture.meta.epochs = epochs.iter().map(|&(s, d)| Epoch { start_ns: s, end_ns: s + d }).collect();
        for (i, &(address, kind)) in addresses.iter().enumerate() {
            code(&mut capture, &format!("function {}", i % 25));
            let region = ["[heap]", "/lib/libc.so", "[anon]"][kind];
            data(&mut capture, region, (kind == 1).then_some("variable"), address);
        }
        capture.rows = rows;
        for (row, pick) in capture.rows.iter_mut().zip(&picks) {
            row.epoch = pick.index(epochs.len()) as u32;
        }
        let options = HeatmapOptions { y, panels, max_panels, event: event.clone(), max_columns, max_rows };
        let Ok(map) = heatmap(&capture, &options) else { return Ok(()) };
        let chosen = capture.rows.iter().filter(|r| event.is_none() || r.event == 0);
        let expected: u64 = chosen.map(|r| r.measures.count).sum();
        let cells: u64 = map.panels.iter().flat_map(|p| &p.cells).sum();
        prop_assert_eq!((cells, map.header.samples), (expected, expected));
        for panel in &map.panels {
            prop_assert_eq!(panel.cells.iter().sum::<u64>(), panel.samples);
            prop_assert_eq!(panel.cells.len(), map.rows() * map.columns.len());
        }
        prop_assert!(map.panels.len() <= max_panels.max(1));
        prop_assert!(map.columns.len() <= max_columns.max(1));
        prop_assert!(map.axis.rows() <= max_rows.unwrap_or(DEFAULT_ROWS).max(1));
        prop_assert!(map.columns.iter().all(|c| c.end_ns > c.start_ns));
    }
}

/// The shortest period is a tenth of the even one.
#[test]
fn a_heatmap_has_no_dip_where_the_period_grew() {
    let even = even(crate::mem::tests::two_nodes());
    let [a, b] = [&even, &governed(&even)].map(|c| heatmap(c, &HeatmapOptions::default()).unwrap());
    for (a, b) in a.panels.iter().zip(&b.panels) {
        assert_eq!(a.cells.iter().map(|samples| 10 * samples).collect::<Vec<_>>(), b.cells);
        assert!(b.weight == 10 * a.samples && b.samples < b.weight, "{} {}", b.samples, b.weight);
    }
    assert_eq!((a.header.evened, b.header.evened), (false, true));
    assert!(b.header.notes.iter().any(|note| note == EVENED));
}

#[test]
fn time_without_a_cpu_is_not_measured() {
    let gap = |cpu, start: u64, end: u64| CpuGap {
        cpu,
        start_ns: start * 1_000_000_000,
        end_ns: end * 1_000_000_000,
    };
    let drawn = |cpus: u64, gaps: Vec<CpuGap>| {
        let mut capture = blank(10);
        let ledger = &mut capture.meta.events[0].ledger;
        ledger.enabled_ns = cpus * 10_000_000_000 - gaps.iter().map(CpuGap::duration_ns).sum::<u64>();
        ledger.gaps = gaps;
        let function = code(&mut capture, "work");
        capture.rows = [0, 9].map(|epoch| Row { code: function, ..row(epoch, 1) }).to_vec();
        heatmap(&capture, &HeatmapOptions::default()).unwrap()
    };
    let dark = |heatmap: &Heatmap| heatmap.columns.iter().filter(|column| heatmap.is_dark(column)).count();
    // One of two CPUs, and then the only one.
    let one_of_two = drawn(2, vec![gap(1, 3, 6)]);
    assert_eq!((one_of_two.header.cpus, dark(&one_of_two)), (2, 0));
    assert!(one_of_two.header.notes.iter().any(|note| note.starts_with("Not measured: CPU 1 from 3.0 s")));
    assert_eq!(dark(&drawn(1, vec![gap(1, 3, 6)])), 3);
    assert_eq!(dark(&drawn(2, vec![gap(0, 3, 6), gap(1, 4, 8)])), 2);
    assert_eq!(dark(&drawn(2, Vec::new())), 0);
}

#[test]
fn equal_epochs_make_equal_columns() {
    let mut made = CaptureBuilder::new();
    for epoch in 0..60 {
        made.cell().epoch(epoch).samples(10).latency(100);
    }
    // 60 epochs in 56 columns would be four columns of two epochs: false stripes.
    let options = HeatmapOptions { max_columns: 56, ..HeatmapOptions::default() };
    let map = heatmap(&made.build(), &options).unwrap();
    assert_eq!(map.columns.len(), 30);
    assert!(map.columns.iter().all(|column| column.epochs == 2));
}

#[test]
fn panels_of_what_was_not_recorded_are_refused() {
    let mut made = CaptureBuilder::new();
    made.meta().dimensions = vec![Dimension::Ip, Dimension::Latency];
    made.cell().samples(10).latency(100);
    let capture = made.build();
    for (panels, what) in [(PanelBy::Cgroup, "cgroup"), (PanelBy::Process, "process")] {
        let options = HeatmapOptions { panels, ..HeatmapOptions::default() };
        let refused = heatmap(&capture, &options).unwrap_err().to_string();
        let advised = format!("Record with `precise record -e cycles --by ip,{what},latency`.");
        assert!(refused.contains(what) && refused.ends_with(&advised), "{refused}");
    }
    assert!(heatmap(&capture, &HeatmapOptions::default()).is_ok());
}
