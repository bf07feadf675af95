//! Tests of narrowing: by filters, by time, and against recording with the filter.

#![allow(clippy::unwrap_used, reason = "a test may end at once")]

use std::collections::BTreeMap;

use precise_filter::eval::{SampleFacts, expr_passes};
use precise_filter::{CgroupMatch, CompilerOptions, Expr, FilterFlags, Resolver, parse};
use precise_model::testing::CaptureBuilder;
use precise_model::{Capture, Dimension, Measures, Origin};
use proptest::prelude::*;

use super::time::Moment;
use super::*;
use crate::trust::trust;

fn by(filter: &str) -> WantedPart {
    WantedPart { flags: FilterFlags::default().with_filter(filter).unwrap(), time: None }
}

fn within(range: &str) -> WantedPart {
    WantedPart { time: Some(TimeRange::parse(range).unwrap()), ..WantedPart::default() }
}

/// Two services, three epochs of one second.
fn two_services() -> Capture {
    let mut made = CaptureBuilder::new();
    for epoch in 0..3 {
        made.cell()
            .epoch(epoch)
            .samples(60)
            .latency(100)
            .process(1, "nginx")
            .cgroup(7, "/system/nginx.service");
        made.cell()
            .epoch(epoch)
            .samples(40)
            .latency(500)
            .process(2, "backup")
            .cgroup(9, "/batch/job-1/inner");
    }
    made.build()
}

fn selected(wanted: &WantedPart) -> Selection {
    narrow(two_services(), wanted).unwrap().meta.selection.unwrap()
}

#[test]
fn what_is_selected_is_said() {
    assert_eq!(
        selected(&by("comm == nginx")).text,
        "Only comm == \"nginx\": 180 of 300 samples. Shares are of these samples; coverage and losses are of the \
         whole run."
    );
    let everything = narrow(two_services(), &WantedPart::default()).unwrap();
    assert_eq!(everything, two_services());
}

#[test]
fn ledgers_stay_those_of_the_run() {
    let narrowed = narrow(two_services(), &by("pid == 2")).unwrap();
    assert_eq!(narrowed.meta.events, two_services().meta.events);
    // Samples outside of the selection cast no doubt on the capture.
    let event = &trust(&narrowed).events[0];
    assert!(event.closes && event.findings.iter().all(|finding| !finding.contains("120")), "{event:?}");
    assert!(event.ledger.iter().any(|row| row.what == "selected" && row.count == 120), "{event:?}");
}

#[test]
fn time_is_widened_to_epochs() {
    let (exact, wide) = (selected(&within("1s..2s")), selected(&within("1.5s..1.6s")));
    assert_eq!((exact.samples, exact.widened), (100, false));
    assert_eq!(
        (wide.samples, wide.widened, wide.start_ns, wide.end_ns),
        (100, true, Some(1_000_000_000), Some(2_000_000_000))
    );
    assert!(wide.text.contains("widened to whole epochs"), "{}", wide.text);
    let narrowed = narrow(two_services(), &within("2s..")).unwrap();
    assert_eq!(narrowed.meta.epochs.len(), 1);
    assert!(narrowed.rows.iter().all(|row| row.epoch == 0));
    let outside = narrow(two_services(), &within("10s..20s")).unwrap_err();
    assert!(outside.text.contains("0 µs to 3 s"), "{outside}");
}

#[test]
fn times_of_the_day_are_those_of_the_run() {
    // The run of the builder starts at 2023-11-14 22:13:20 UTC.
    assert_eq!(selected(&within("22:13:21..22:13:22")).start_ns, Some(1_000_000_000));
    assert_eq!(selected(&within("..22:13:21")).end_ns, Some(1_000_000_000));
    let mut capture = two_services();
    capture.meta.start_unix_ns = 0;
    assert!(narrow(capture, &within("22:13..")).unwrap_err().text.contains("time of day"));
}

#[test]
fn a_run_over_midnight_has_times_of_both_days() {
    let mut capture = two_services();
    capture.meta.start_unix_ns = 20_000 * 86_400 * 1_000_000_000 - 1_000_000_000;
    let selection = narrow(capture, &within("00:00:00..")).unwrap().meta.selection.unwrap();
    assert_eq!((selection.start_ns, selection.samples), (Some(1_000_000_000), 200));
}

#[test]
fn ranges_of_time() {
    let of = |text| TimeRange::parse(text).map(|range| (range.from, range.to));
    let after = |ns| Some(Moment::AfterStart(ns));
    assert_eq!(of("20s..45s"), Ok((after(20_000_000_000), after(45_000_000_000))));
    assert_eq!(of("..300ms"), Ok((None, after(300_000_000))));
    assert_eq!(of("1.5m.."), Ok((after(90_000_000_000), None)));
    let day = |seconds: u64| Some(Moment::OfDay(seconds * 1_000_000_000));
    assert_eq!(of("14:03:10..14:05"), Ok((day(50_590), day(50_700))));
    for wrong in
        ["", "..", "5s", "9s..3s", "25:00..", "12:60..", "x..", "1e9s..", "1:2:3:4..", "-1s..", "12.5:00.."]
    {
        assert!(TimeRange::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn cgroups_include_those_below() {
    for (pattern, samples) in [
        ("/batch", 120),
        ("/batch/job-*", 120),
        ("/batch/job-1/inner", 120),
        ("/system/**", 180),
        ("/**", 300),
    ] {
        let flags = FilterFlags { cgroups: vec![pattern.to_owned()], ..FilterFlags::default() };
        assert_eq!(selected(&WantedPart { flags, time: None }).samples, samples, "{pattern}");
    }
}

#[test]
fn latencies_within_a_bucket_are_refused() {
    assert_eq!(selected(&by("latency >= 200")).samples, 120);
    let mut capture = two_services();
    // Two samples of 96 and 104 cycles have one sum; a bucket has 8 of these values.
    let row = &mut capture.rows[0];
    (row.measures.count, row.measures.latency_sum, row.measures.latency_max) = (2, 200, 103);
    let refused = narrow(capture.clone(), &by("latency >= 100")).unwrap_err();
    assert_eq!(
        refused.text,
        "the capture adds up samples of 97 to 103 cycles, so it cannot tell which of them pass `latency >= 100`"
    );
    assert_eq!(
        refused.advice.as_deref(),
        Some("A bucket of latencies ends at each of these bounds: 96, 104.")
    );
    // Bounds of the bucket are exact, and so is a clause that another one makes irrelevant.
    assert!(narrow(capture.clone(), &by("latency >= 96")).is_ok());
    assert!(narrow(capture, &by("latency >= 100 && comm == backup")).is_ok());
}

#[test]
fn what_was_not_recorded_is_refused() {
    let mut capture = two_services();
    capture.meta.dimensions = vec![Dimension::Ip];
    for (filter, says) in [
        ("comm == nginx", "tests comm, which this capture did not record"),
        ("cgroup == /batch", "tests cgroup, which this capture did not record"),
        ("cpu == 1", "tests cpu, which"),
        ("uid == 0", "tests uid, which captures do not keep"),
    ] {
        let refused = narrow(capture.clone(), &by(filter)).unwrap_err();
        assert!(refused.text.contains(says) && refused.why == Why::Usage, "{refused}");
    }
    // An import is told of what its file has, or what perf must record.
    let of_import = |dimensions: &[Dimension]| {
        let mut capture = capture.clone();
        let (file, dimensions) = ("perf.data".to_owned(), dimensions.to_vec());
        capture.meta.origin = Some(Origin { file, dimensions, ..Origin::default() });
        narrow(capture, &by("cgroup == /batch")).unwrap_err().advice.unwrap()
    };
    let has = of_import(&[Dimension::Ip, Dimension::Cgroup]);
    assert!(has.contains("precise import perf.data --by ip,cgroup"), "{has}");
    let has_not = of_import(&[Dimension::Ip]);
    assert!(has_not.contains("--all-cgroups") && !has_not.contains("precise import"), "{has_not}");
    capture.meta.events[0].fields.latency = false;
    assert!(narrow(capture, &by("latency > 4")).unwrap_err().text.contains("samples of cycles do not have"));
}

#[test]
fn an_empty_selection_has_no_samples() {
    let none = narrow(two_services(), &by("comm == nobody")).unwrap_err();
    assert_eq!((none.why, none.text.contains("none of the 300 samples")), (Why::NoSamples, true));
}

/// A sample: process, CPU, level, latency, address.
type Sample = (u32, u16, u64, u32, u64);

const COMMS: [&str; 3] = ["nginx", "backup", "idle"];
const LEVELS: [&str; 4] = ["l1", "l2", "l3", "ram"];
/// `PERF_MEM_LVLNUM_*` of the levels, at their place in the word.
const WORDS: [u64; 4] = [1 << 33, 2 << 33, 3 << 33, 0xd << 33];

struct ByPath;

impl Resolver for ByPath {
    fn cgroup(&self, path: &str) -> Result<CgroupMatch, String> {
        Ok(CgroupMatch::Ids(
            COMMS.iter().position(|c| path == format!("/{c}")).map(|i| i as u64).into_iter().collect(),
        ))
    }
}

fn passes(expr: &Expr, (process, cpu, level, latency, address): Sample) -> bool {
    let mut comm = [0; 16];
    let name = COMMS[process as usize].as_bytes();
    comm[..name.len()].copy_from_slice(name);
    let facts = SampleFacts {
        pid: process + 10,
        tid: process + 10,
        comm,
        cpu: cpu.into(),
        cgroup: process.into(),
        data_src: WORDS[level as usize],
        latency,
        address,
        ..SampleFacts::default()
    };
    expr_passes(expr, &facts, CompilerOptions { legacy_levels: true }, &ByPath).unwrap()
}

/// Adds samples up like the program, and returns the sums by everything that it groups by.
fn recorded(samples: impl Iterator<Item = Sample>) -> Capture {
    let mut cells: BTreeMap<_, Measures> = BTreeMap::new();
    for (process, cpu, level, latency, address) in samples {
        let bucket = precise_common::latency::bucket(latency);
        let one = Measures { count: 1, period_sum: 1000, latency_sum: latency.into(), latency_max: latency };
        cells.entry((process, cpu, level, bucket, address)).or_default().add(&one);
    }
    let mut made = CaptureBuilder::new();
    for ((process, cpu, level, bucket, address), measures) in cells {
        let name = COMMS[process as usize];
        let cell =
            made.cell().process(process + 10, name).cpu(cpu).cgroup(process.into(), &format!("/{name}"));
        let mut cell = cell.data_src(WORDS[level as usize]).data(address, "[heap]", "");
        let row = cell.row();
        (row.measures, row.latency_bucket) = (measures, Some(bucket as u8));
    }
    made.build()
}

fn filters() -> impl Strategy<Value = String> {
    let test = prop_oneof![
        (0usize..3).prop_map(|i| format!("comm == {}", COMMS[i])),
        (0usize..3).prop_map(|i| format!("cgroup == /{}", COMMS[i])),
        (9u32..14).prop_map(|pid| format!("pid > {pid}")),
        (0u32..4).prop_map(|cpu| format!("cpu != {cpu}")),
        (0usize..4).prop_map(|i| format!("mem_lvl == {}", LEVELS[i])),
        (0u32..400).prop_map(|cycles| format!("latency >= {cycles}")),
        (0u32..400).prop_map(|cycles| format!("latency < {cycles}")),
        (0u64..0x100).prop_map(|address| format!("addr & {address:#x}")),
        (0u64..0x100).prop_map(|address| format!("addr < {address:#x}")),
    ];
    test.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
            inner.prop_map(|a| format!("!({a})")),
        ]
    })
}

proptest! {
    /// A capture that is narrowed has the rows of one that was recorded with the filter, or the
    /// filter is refused because the rows cannot tell.
    #[test]
    fn narrowing_equals_recording_with_the_filter(
        samples in prop::collection::vec((0u32..3, 0u16..3, 0u64..4, 0u32..300, 0u64..0x100), 1..60),
        filter in filters(),
    ) {
        let expr = parse(&filter).unwrap();
        let narrowed = narrow(recorded(samples.iter().copied()), &by(&filter));
        let with_filter = recorded(samples.iter().copied().filter(|sample| passes(&expr, *sample)));
        match narrowed {
            Ok(narrowed) => {
                let lines = precise_model::testing::spelled_out;
                prop_assert_eq!(lines(&narrowed), lines(&with_filter));
            }
            Err(error) if error.why == Why::NoSamples => prop_assert!(with_filter.rows.is_empty()),
            Err(error) => {
                prop_assert!(error.text.contains("cannot tell"), "{}", error);
                prop_assert!(filter.contains("latency"), "{}: {}", filter, error);
            }
        }
    }
}
