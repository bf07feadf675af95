//! Tests of `precise fetch` on synthetic captures.

use precise_common::ibs::OutcomeBits as Bits;
use precise_model::keys::Key;
use precise_model::testing::{CaptureBuilder, intel};
use precise_model::{Capture, Dimension, EventInfo, Fields, Outcome, PmuKind, TaggedOf};

use super::csv::fetch_csv;
use super::text::fetch_text;
use super::{FetchFact, FetchOptions, fetch};
use crate::render::TextOptions;
use crate::stats::Share;
use crate::testing::{csv_has_a_field_for_each_name, has, of_ibs, shown};

/// Fetches on a Zen 4: the function `parse` is starved, `sum` is not.
pub fn starved() -> Capture {
    let mut builder = of_ibs("fetch", PmuKind::IbsFetch, TaggedOf::Fetch);
    let good = Bits::COMPLETED | Bits::PHYSICAL_VALID;
    for (function, bits, samples, latency) in [
        ("sum", good, 600, 5),
        ("parse", good | Bits::IC_MISS, 200, 60),
        ("parse", good | Bits::IC_MISS | Bits::FETCH_L2_MISS | Bits::ITLB_L1_MISS, 50, 300),
        ("parse", Bits::PHYSICAL_VALID, 100, 20),
        ("parse", 0, 50, 2),
    ] {
        let ip = 0x1000 + u64::from(latency);
        let mut cell = builder.cell().samples(samples).latency(latency).code(ip, "/bin/app", function, "", 0);
        cell.row().outcome = Some(Outcome::Fetch(bits));
    }
    builder.build()
}

#[test]
fn fetches_are_counted_by_what_became_of_them() {
    let view = fetch(&starved(), &FetchOptions::default()).unwrap();
    let section = &view.sections[0];
    let of = |fact| section.facts.iter().find(|known| known.fact == fact).unwrap();
    for (fact, samples) in [
        (FetchFact::Attempted, 950),
        (FetchFact::Killed, 50),
        (FetchFact::Completed, 850),
        (FetchFact::Aborted, 100),
        (FetchFact::Waited, 350),
        (FetchFact::IcMiss, 250),
        (FetchFact::L2Miss, 50),
        (FetchFact::ItlbMiss, 50),
        (FetchFact::ItlbWalk, 0),
        (FetchFact::OpCacheMiss, 0),
    ] {
        assert_eq!(of(fact).samples, Some(samples), "{fact:?}");
    }
    assert_eq!(of(FetchFact::IcMiss).share, Some(Share::wilson(250, 950)));
    assert_eq!(of(FetchFact::Killed).share, Some(Share::wilson(50, 1000)));
    let [parse, sum] = &section.groups[..] else { panic!("{:?}", section.groups) };
    assert_eq!((parse.values[0].text(), sum.values[0].text()), ("parse".into(), "sum".into()));
    // Killed fetches do not count towards the time.
    let cycles = 200 * 60 + 50 * 300 + 100 * 20;
    assert_eq!(parse.average, Some(f64::from(cycles) / 350.0));
    assert!((parse.share.value - f64::from(cycles) / f64::from(cycles + 3000)).abs() < 1e-9);
}

#[test]
fn what_a_cpu_or_a_capture_does_not_say_is_not_known() {
    let mut capture = starved();
    capture.meta.machine.cpu_id = None;
    capture.meta.dimensions.retain(|d| *d != Dimension::Latency);
    let view = fetch(&capture, &FetchOptions::default()).unwrap();
    let unknown: Vec<_> =
        view.sections[0].facts.iter().filter(|k| k.samples.is_none()).map(|k| k.fact).collect();
    assert_eq!(unknown, [FetchFact::Waited, FetchFact::OpCacheMiss, FetchFact::L3Miss]);
    capture.meta.dimensions.retain(|d| *d != Dimension::Outcome);
    let error = fetch(&capture, &FetchOptions::default()).unwrap_err().to_string();
    assert!(error.contains("`precise record -e fetch --by ip,"), "{error}");
    let few = FetchOptions { min_samples: 2000, ..FetchOptions::default() };
    let few = fetch(&starved(), &few).unwrap();
    assert_eq!((few.sections[0].too_few, few.sections[0].groups.len()), (Some(2000), 0));
}

/// Two front-end events of Intel.
pub fn retired() -> Capture {
    let mut builder = CaptureBuilder::new();
    let meta = builder.meta();
    meta.dimensions = vec![Dimension::Ip];
    let event = |name: &str| EventInfo {
        name: name.into(),
        encoding: "cpu/event=0xc6,umask=0x1/ppp".into(),
        pmu: intel(0xc6, 0x01),
        period: Some(1000),
        fields: Fields::default(),
        ..EventInfo::default()
    };
    meta.events = vec![event("frontend_retired.latency_ge_16"), event("frontend_retired.l1i_miss")];
    for (index, function, samples) in [(0, "parse", 150), (0, "sum", 50), (1, "parse", 120)] {
        builder.cell().event(index).samples(samples).code(0x1000, "/bin/app", function, "", 0);
    }
    builder.build()
}

#[test]
fn events_of_the_front_end_share_the_table() {
    let view = fetch(&retired(), &FetchOptions::default()).unwrap();
    let [section] = &view.sections[..] else { panic!("{} sections", view.sections.len()) };
    let known: Vec<_> =
        section.facts.iter().filter_map(|k| Some((k.fact, k.samples?, k.period_sum?))).collect();
    assert_eq!(known, [(FetchFact::Waited, 200, 200_000), (FetchFact::IcMiss, 120, 120_000)]);
    assert!(
        section.facts.iter().all(|known| known.share.is_none()),
        "no rate of what is an event of its own"
    );
    let parse = &section.groups[0];
    assert_eq!((parse.values[0].text(), parse.share), ("parse".into(), Share::wilson(150, 200)));
    let of = |fact| section.groups[1].facts.iter().find(|known| known.fact == fact).unwrap().samples;
    assert_eq!(
        (of(FetchFact::Waited), of(FetchFact::IcMiss), of(FetchFact::Aborted)),
        (Some(50), Some(0), None)
    );
}

#[test]
fn keys_of_other_dimensions_are_refused_with_the_command() {
    let by = FetchOptions { by: Some(vec![Key::Cgroup]), ..FetchOptions::default() };
    let error = fetch(&retired(), &by).unwrap_err().to_string();
    assert!(error.contains("--by ip,cgroup`"), "{error}");
}

#[test]
fn fetches_at_80_columns() {
    let text = fetch_text(&fetch(&starved(), &FetchOptions::default()).unwrap(), &TextOptions::default());
    shown("fetch.md", "starved", &text);
}

#[test]
fn retired_at_80_columns() {
    let text = fetch_text(&fetch(&retired(), &FetchOptions::default()).unwrap(), &TextOptions::default());
    has(
        &text,
        "
  200k      200  waited 16 cycles or more
     -  unknown  op cache miss
  120k      120  instruction cache miss
",
    );
    has(
        &text,
        "
     Share  Waited  IC miss  Function
75.0% ±6.4     150      120  parse
25.0% ±6.4      50        0  sum
",
    );
}

#[test]
fn csv_is_complete() {
    for capture in [starved(), retired()] {
        let csv = fetch_csv(&fetch(&capture, &FetchOptions::default()).unwrap(), "|");
        csv_has_a_field_for_each_name(&csv, '|');
    }
}
