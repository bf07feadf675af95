//! Tests of the report on synthetic captures.

use crate::ViewError;
use crate::report::{Match, Report, ReportOptions, report};
use precise_model::keys::{Key, Sort};
use precise_model::testing::CaptureBuilder;
use precise_model::values::Value;
use precise_model::{Capture, Dimension};

fn by(keys: &[Key]) -> ReportOptions {
    ReportOptions { by: keys.to_vec(), min_samples: 0, ..ReportOptions::default() }
}

/// Returns the values and the samples of the first event's groups.
fn lines(report: &Report) -> Vec<(String, u64)> {
    let groups = report.events[0].groups.list.iter();
    groups
        .map(|g| {
            let values: Vec<_> = g.values.iter().map(Value::text).collect();
            (values.join(" "), g.measures.count)
        })
        .collect()
}

fn capture() -> Capture {
    let mut builder = CaptureBuilder::new();
    // perf prints these words as: load, PMEM hit; load, RAM hit, L1 TLB hit.
    builder
        .cell()
        .samples(5)
        .data_src(0x11c68200042)
        .data(0x1040, "[heap]", "a")
        .epoch(1)
        .cpu(3)
        .process(7, "x");
    builder.cell().samples(9).data_src(0x1a29081042).data(0x1078, "[heap]", "b").process(8, "x").latency(100);
    builder.cell().samples(2).data(0x3000, "[stack]", "").process(8, "y").latency(300);
    builder.build()
}

fn of(keys: &[Key]) -> Vec<(String, u64)> {
    lines(&report(&capture(), &by(keys)).unwrap())
}

fn pairs(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(text, count)| ((*text).to_owned(), *count)).collect()
}

#[test]
fn every_key_groups() {
    assert_eq!(of(&[Key::Level]), pairs(&[("RAM hit", 9), ("PMEM hit", 5), ("N/A", 2)]));
    assert_eq!(of(&[Key::Op, Key::Snoop]), pairs(&[("LOAD N/A", 9), ("LOAD Hit", 5), ("N/A N/A", 2)]));
    assert_eq!(of(&[Key::Tlb]), pairs(&[("L1 hit", 9), ("L1 or L2 hit", 5), ("N/A", 2)]));
    assert_eq!(of(&[Key::LineAddress]), pairs(&[("0x1040", 14), ("0x3000", 2)]));
    assert_eq!(of(&[Key::Page, Key::Region]), pairs(&[("0x1000 [heap]", 14), ("0x3000 [stack]", 2)]));
    assert_eq!(of(&[Key::Variable]), pairs(&[("b", 9), ("a", 5), ("[no symbol]", 2)]));
    assert_eq!(of(&[Key::Process, Key::Pid]), pairs(&[("x 8", 9), ("x 7", 5), ("y 8", 2)]));
    assert_eq!(of(&[Key::Latency]), pairs(&[("96-103", 9), ("N/A", 5), ("288-319", 2)]));
    assert_eq!(of(&[Key::Epoch, Key::Cpu]), pairs(&[("0 N/A", 11), ("1 3", 5)]));
    assert_eq!(of(&[Key::Kernel, Key::Event]), pairs(&[("user cycles", 16)]));
    assert_eq!(of(&[]), pairs(&[("", 16)]));
    for key in Key::ALL {
        assert_eq!(of(&[key]).iter().map(|(_, n)| n).sum::<u64>(), 16, "{key}");
    }
}

#[test]
fn chains_through_the_same_functions_are_one_group() {
    let mut builder = CaptureBuilder::new();
    for (samples, ip, callers) in
        [(3, 0x1000, &["parse", "main"][..]), (4, 0x1040, &["parse", "main"]), (2, 0x1000, &["main"])]
    {
        let cell = builder.cell().samples(samples).code(ip, "/usr/bin/app", "sum", "", 0);
        cell.callers(callers);
    }
    builder.cell().samples(1).code(0x1000, "/usr/bin/app", "sum", "", 0);
    let mut capture = builder.build();
    // The same call of the same function in another process, at another code location.
    let elsewhere = capture.code.len() as u32;
    let parse = capture.stacks[0].callers[0];
    let mut location = capture.code[parse as usize].clone();
    location.runtime_address += 0x1000_0000;
    capture.code.push(location);
    let mut stack = capture.stacks[0].clone();
    stack.callers[0] = elsewhere;
    capture.stacks.push(stack);
    capture.rows[1].stack = precise_model::Chain::Known(capture.stacks.len() as u32 - 1);
    let report = report(&capture, &by(&[Key::Function, Key::Stack])).unwrap();
    assert_eq!(lines(&report), pairs(&[("sum main;parse", 7), ("sum main", 2), ("sum [not recorded]", 1)]));
}

#[test]
fn sorting_limits_and_filters() {
    let options = ReportOptions { sort: Sort::Average, limit: Some(1), ..by(&[Key::Variable]) };
    let by_average = report(&capture(), &options).unwrap();
    assert_eq!(lines(&by_average), pairs(&[("[no symbol]", 2)]));
    assert_eq!(
        (by_average.events[0].groups.left_out.0, by_average.events[0].groups.left_out.1.count),
        (2, 14)
    );
    let options = ReportOptions { sort: Sort::Key(Key::Level), ..by(&[Key::Level]) };
    assert_eq!(
        lines(&report(&capture(), &options).unwrap()),
        pairs(&[("RAM hit", 9), ("PMEM hit", 5), ("N/A", 2)])
    );
    let wanted = |key, text: &str| Match { key, text: text.to_owned() };
    let options = ReportOptions {
        filters: vec![wanted(Key::Process, "x"), wanted(Key::Pid, "8")],
        ..by(&[Key::Variable])
    };
    let filtered = report(&capture(), &options).unwrap();
    assert_eq!(lines(&filtered), pairs(&[("b", 9)]));
    assert_eq!(filtered.events[0].groups.list[0].share.value, 1.0, "shares are of what passed the filter");
}

#[test]
fn averages_leave_out_what_has_no_latency() {
    let all = report(&capture(), &by(&[])).unwrap();
    // 9 samples of 100 cycles, 2 of 300, 5 without a latency.
    assert_eq!(all.events[0].groups.list[0].average, Some(1500.0 / 11.0));
}

#[test]
fn what_was_not_recorded_names_the_command() {
    let mut capture = capture();
    capture.meta.dimensions = vec![Dimension::Thread, Dimension::Ip];
    assert!(report(&capture, &by(&[Key::Function, Key::Pid])).is_ok());
    let error = report(&capture, &by(&[Key::Function, Key::Page, Key::Level, Key::Variable])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this report needs the dimensions address and source, which this capture lacks. Record with \
         `precise record -e cycles --by ip,address,thread,source`."
    );
    let mut capture = self::capture();
    capture.meta.address_granule = 4096;
    let error = report(&capture, &by(&[Key::LineAddress])).unwrap_err();
    assert_eq!(error, ViewError::TooCoarse { key: "line-address", granule: 4096 });
    assert_eq!(report(&capture, &by(&[Key::Address])).unwrap().events[0].notes.len(), 1);
}

#[test]
fn events_are_never_added_up() {
    let mut builder = CaptureBuilder::new();
    let mut second = builder.meta().events[0].clone();
    second.name = "loads".into();
    second.period = Some(7);
    builder.meta().events.push(second);
    builder.cell().samples(3).code(1, "a", "f", "", 0);
    builder.cell().event(1).samples(4).code(1, "a", "f", "", 0);
    let both = report(&builder.build(), &by(&[Key::Function])).unwrap();
    let totals: Vec<_> = both
        .events
        .iter()
        .map(|s| (s.event.name.as_str(), s.groups.total.count, s.groups.total.period_sum))
        .collect();
    assert_eq!(totals, [("cycles", 3, 3000), ("loads", 4, 28)]);
}

#[test]
fn threads_have_names_and_stay_apart_by_their_numbers() {
    let mut builder = CaptureBuilder::new();
    for (epoch, tid, name, samples) in [(0, 11, "server", 1), (1, 11, "pool", 8), (1, 12, "pool", 5)] {
        let cell = builder.cell().samples(samples).epoch(epoch);
        let _ = cell.process(10, "server").thread(tid, name);
    }
    // As in a capture without names of threads.
    builder.cell().samples(2).row().tid = 13;
    let capture = builder.build();
    let of = |keys: &[Key]| report(&capture, &by(keys)).unwrap();
    let texts = |texts: &[(&str, u64)]| -> Vec<_> {
        texts.iter().map(|(text, samples)| ((*text).to_owned(), *samples)).collect()
    };
    assert_eq!(lines(&of(&[Key::Thread])), texts(&[("pool", 13), ("13", 2), ("server", 1)]));
    let by_tid = of(&[Key::Tid]);
    assert_eq!(lines(&by_tid), texts(&[("11", 9), ("12", 5), ("13", 2)]));
    let labels: Vec<_> = by_tid.events[0].groups.list.iter().map(|group| group.values[0].label()).collect();
    // The last name of a thread that changes it.
    assert_eq!(labels, ["11 (pool)", "12 (pool)", "13"]);
    let json = serde_json::to_value(&by_tid.events[0].groups.list[0].values).unwrap();
    assert_eq!(json, serde_json::json!([{"number": 11, "name": "pool"}]));
    let both = of(&[Key::Tid, Key::Thread]);
    assert_eq!(lines(&both)[0], ("11 pool".to_owned(), 8));
    assert_eq!(both.events[0].groups.list[0].values[0], Value::Number(11), "the name is its own column");
}
