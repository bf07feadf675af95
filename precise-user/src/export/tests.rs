//! Tests that other tools read the contents of a capture correctly.

use std::io::Read as _;

use prost::Message;

use super::pprof::{PprofOptions, pprof};
use super::table;
use precise_capture::Column;
use precise_model::testing::CaptureBuilder;
use precise_model::testing::{L1, RAM};
use precise_model::{Capture, Dimension};
use precise_views::flame::folded::folded;
use precise_views::flame::{FlameOptions, FrameWidth, flame};

fn capture() -> Capture {
    let mut builder = CaptureBuilder::new();
    for (pid, ip, function, source, samples, latency) in [
        (1, 0x1010, "lookup", RAM, 30, 300),
        // The same place in the same file, in another process.
        (2, 0x1010, "lookup", RAM, 10, 500),
        (1, 0x1020, "hit", L1, 60, 5),
    ] {
        let cell = builder.cell().samples(samples).latency(latency).process(pid, "app").cgroup(7, "/web");
        cell.code(ip, "/bin/app", function, "/src/app.c", 12).callers(&["main"]).data_src(source);
    }
    builder.build()
}

fn unpacked(bytes: &[u8]) -> Profile {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    Profile::decode(plain.as_slice()).unwrap()
}

#[test]
fn a_profile_has_samples_periods_and_latencies_with_labels() {
    let profile = unpacked(&pprof(&capture(), &PprofOptions::default()).unwrap());
    let text = |id: i64| profile.string_table[id as usize].as_str();
    let types: Vec<_> = profile.sample_type.iter().map(|t| (text(t.r#type), text(t.unit))).collect();
    assert_eq!(types, [("samples", "count"), ("cycles", "count"), ("latency", "cycles")]);
    assert_eq!((text(profile.default_sample_type), profile.period), ("samples", 1000));
    // Processes that run the same code share one sample, because their labels are equal.
    let values: Vec<_> = profile.sample.iter().map(|sample| sample.value.clone()).collect();
    assert_eq!(values, [[40, 40_000, 14_000], [60, 60_000, 300]]);
    let labels: Vec<_> = profile.sample[0].label.iter().map(|l| (text(l.key), text(l.str))).collect();
    assert_eq!(labels, [("cgroup", "/web"), ("comm", "app"), ("level", "RAM hit")]);
    let frames: Vec<_> = profile.sample[0]
        .location_id
        .iter()
        .map(|id| {
            let location = &profile.location[*id as usize - 1];
            let line = location.line[0];
            (text(profile.function[line.function_id as usize - 1].name), line.line)
        })
        .collect();
    assert_eq!(frames, [("lookup", 12), ("main", 0)]);
    assert!(profile.comment.iter().any(|id| text(*id).starts_with("Verdict: precise")));
    assert_eq!(profile.string_table[0], "");
    assert!(pprof(&capture(), &PprofOptions { event: Some("none".into()), ..Default::default() }).is_err());
}

/// Readers name the profile after its first mapping.
/// pprof prints names as they are, also to a terminal.
#[test]
fn no_name_in_a_profile_gives_orders_to_a_terminal() {
    let mut builder = CaptureBuilder::new();
    let cell = builder.cell().samples(1).process(1, "a\u{1b}]0;b\u{7}").cgroup(7, "/c\nd\u{202e}");
    cell.code(0x1010, "/bin/e\u{9b}", "f\u{1b}[2J", "/src/\rg.c", 12).callers(&["h\u{8}"]);
    let profile = unpacked(&pprof(&builder.build(), &PprofOptions::default()).unwrap());
    for text in &profile.string_table {
        assert_eq!(*text, precise_model::text::sanitize(text), "{text:?}");
    }
    assert!(profile.string_table.iter().any(|text| text == "f\u{fffd}[2J"), "{:?}", profile.string_table);
}

#[test]
fn the_first_mapping_is_the_program() {
    let first = |places: &[(&str, &str, u64)]| {
        let mut builder = CaptureBuilder::new();
        for (at, (comm, module, samples)) in places.iter().enumerate() {
            let cell = builder.cell().samples(*samples).process(1, comm);
            cell.code(0x1000 + at as u64, module, "f", "a.c", 1);
        }
        let profile = unpacked(&pprof(&builder.build(), &PprofOptions::default()).unwrap());
        let mapping = profile.mapping[0];
        assert_eq!(mapping.id, 1);
        profile.string_table[mapping.filename as usize].clone()
    };
    let loader = ("worker", "/lib64/ld-linux-x86-64.so.2", 900);
    assert_eq!(first(&[loader, ("worker", "/opt/worker", 3), ("sh", "/bin/dash", 5)]), "/opt/worker");
    // The more samples, among programs.
    assert_eq!(first(&[("sh", "/bin/sh", 5), ("worker", "/opt/worker", 30)]), "/opt/worker");
    assert_eq!(first(&[loader, ("python3", "/usr/bin/python3.11", 3)]), "/usr/bin/python3.11");
    let long = "/opt/a-name-of-more-than-15-bytes";
    assert_eq!(first(&[loader, ("a-name-of-more-", long, 3)]), long);
    // A process that has named itself otherwise.
    assert_eq!(first(&[("[kernel]", "[kernel]", 9), loader, ("main loop", "/opt/worker", 3)]), "/opt/worker");
    assert_eq!(first(&[loader]), loader.1, "there is no other");
    assert_eq!(first(&[("a", "/opt/\u{1b}[2J", 1)]), "/opt/\u{fffd}[2J");
}

#[test]
fn folded_stacks_need_no_chains_where_the_caller_says_so() {
    let mut capture = capture();
    let options = FlameOptions { leaf_only: true, weight: FrameWidth::Latency, event: None };
    assert_eq!(folded(&flame(&capture, &options).unwrap()), "app;main;hit 300\napp;main;lookup 14000\n");
    capture.meta.dimensions.retain(|dimension| *dimension != Dimension::Stack);
    for row in &mut capture.rows {
        row.stack = precise_model::Chain::NONE;
    }
    let flame = flame(&capture, &options).unwrap();
    assert!(!flame.has_chains);
    assert_eq!(folded(&flame), "app;hit 300\napp;lookup 14000\n");
    assert!(precise_views::flame::flame(&capture, &FlameOptions::default()).is_err());
}

#[test]
fn tables_have_every_column_and_every_row() {
    let capture = capture();
    let csv = table::csv(&capture, ",").unwrap();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 3);
    assert_eq!(lines[0].split(',').count(), Column::ALL.len());
    assert!(
        lines[1].contains(",2023-11-14T22:13:20.000000000Z,")
            || lines[1].starts_with("0,2023-11-14T22:13:20")
    );
    assert!(lines[1].contains("0x1010") && lines[1].contains("/bin/app"), "{csv}");
    let json = table::json(&capture).unwrap();
    let rows: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!((&rows[0]["count"], &rows[0]["ip"]), (&30.into(), &"0x1010".into()));
    assert_eq!((&rows[0]["kernel"], &rows[0]["cgroup"]), (&false.into(), &"/web".into()));
    assert!(rows[0].get("variable").is_none(), "what is null is left out");
}

// The messages of profile.proto, as an independent decoder wants them described.

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<PprofValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<PprofSample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<PprofMapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<PprofFunction>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<PprofValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct PprofValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct PprofSample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<PprofLabel>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct PprofLabel {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct PprofMapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "3")]
    memory_limit: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(int64, tag = "6")]
    build_id: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<PprofLine>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct PprofLine {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct PprofFunction {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}
