//! Tests that captures with a problem give the finding, healthy ones none, and that unknowns are
//! reported.

use precise_common::{ibs::OutcomeBits as Bits, ledger::Counter};

use super::*;
use crate::fetch::tests::starved;
use crate::mem::tests::{L1, L3_HITM, RAM, RAM_WALK, REMOTE_RAM};
use crate::render::TextOptions;
use crate::testing::shown;
use precise_code::{FunctionId, Instruction};
use precise_model::testing::{CaptureBuilder, ibs_op, intel, slow_loads};
use precise_model::{Dimension, Node, Origin, Outcome, Reason, Runaway, TaggedOf};

const STORE: u64 = 0x508_0144;

/// A machine without any code.
pub struct Nowhere;

impl Code for Nowhere {
    fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        Err(Reason::FileMissing)
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}

fn view(capture: &Capture) -> Explanation {
    explain(capture, &ExplainOptions::default(), &mut Nowhere)
}

/// Loads of three functions and two cgroups on a machine of two nodes, spread evenly: a healthy
/// capture.
fn service(loads: &[(u64, u64, u32)]) -> CaptureBuilder {
    let mut builder = CaptureBuilder::new();
    let meta = builder.meta();
    meta.events[0].name = "loads".into();
    ibs_op(&mut meta.events[0]);
    meta.machine.nodes = vec![Node { id: 0, cpus: vec![0] }, Node { id: 1, cpus: vec![1] }];
    for (at, (source, samples, latency)) in (0u64..).zip(loads) {
        for (thread, cgroup) in [(0u16, "/web"), (1, "/batch")] {
            for (function, line) in [("parse", 10), ("sum", 20), ("send", 30)] {
                let cell = builder.cell().samples(*samples).latency(*latency).cpu(thread);
                let cell = cell.process(100 + u32::from(thread), "app").cgroup(u64::from(thread) + 1, cgroup);
                let cell = cell.code(0x1000 + 64 * u64::from(line), "/bin/app", function, "/src/app.c", line);
                let address =
                    0x10_0000 + 0x1000 * at + 0x200 * u64::from(line) + 0x10_0000 * u64::from(thread);
                cell.data(address, "[heap]", "").data_src(*source);
            }
        }
    }
    builder
}

fn healthy() -> Capture {
    service(&[(L1, 500, 5), (RAM, 30, 300), (RAM_WALK, 5, 500), (REMOTE_RAM, 3, 600)]).build()
}

fn topics(view: &Explanation) -> Vec<Topic> {
    view.findings.iter().map(|finding| finding.topic).collect()
}

fn finding(view: &Explanation, topic: Topic) -> &Finding {
    view.findings
        .iter()
        .find(|finding| finding.topic == topic)
        .unwrap_or_else(|| panic!("{topic:?}: {view:#?}"))
}

#[test]
fn a_healthy_capture_says_nothing_stands_out() {
    let view = view(&healthy());
    assert!(view.nothing_stands_out && view.findings.is_empty(), "{view:#?}");
    let quiet: Vec<_> = view.quiet.iter().map(|quiet| quiet.topic).collect();
    for topic in [
        Topic::FalseSharing,
        Topic::TrueSharing,
        Topic::RemoteMemory,
        Topic::PageWalks,
        Topic::HotSpot,
        Topic::LatencyTail,
    ] {
        assert!(quiet.contains(&topic), "{topic:?}: {view:#?}");
    }
    let text = crate::explain::text::explain_text(&view, &TextOptions::default());
    assert!(text.contains("\nNo check found a problem. Not checked: see below.\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // Data that was not recorded is named with the command that records it.
    assert!(text.contains("Front end: ") && text.contains("  Record: precise record -e fetch\n"), "{text}");
}

#[test]
fn cores_that_share_a_line_falsely_are_found() {
    let mut builder = service(&[(L1, 300, 5)]);
    for (thread, offset) in [(0u16, 0), (1, 8)] {
        for (source, samples) in [(L3_HITM, 200), (STORE, 100)] {
            let cell = builder.cell().samples(samples).latency(200).cpu(thread).cgroup(1, "/web");
            let cell = cell.process(7 + u32::from(thread), "app").code(0x9000, "/bin/app", "count", "", 0);
            cell.data(0x7000_0000 + offset, "/bin/app", "counters").data_src(source);
        }
    }
    // Different processes share memory that has a name.
    let mut capture = builder.build();
    for row in &mut capture.rows {
        row.pid = 7;
    }
    let view = view(&capture);
    let found = finding(&view, Topic::FalseSharing);
    let number = found.number.unwrap();
    // 400 of 300 × 6 + 400 loads.
    assert!((number.value - 400.0 / 2200.0).abs() < 1e-9, "{found:#?}");
    assert!(number.low > Some(0.16) && number.high < Some(0.21), "{found:#?}");
    assert!(found.details[0].contains("counters") && found.details[0].contains("count"), "{found:#?}");
    assert_eq!(found.command, "precise c2c");
    assert!(!topics(&view).contains(&Topic::TrueSharing));
}

#[test]
fn remote_memory_and_page_walks_are_found_in_the_order_of_their_weight() {
    // A third of the accesses walk, 3.3 times the threshold; half of them are remote, 10 times the
    // threshold.
    let view = view(&service(&[(L1, 100, 5), (RAM_WALK, 200, 400), (REMOTE_RAM, 300, 600)]).build());
    let expected = [Topic::RemoteMemory, Topic::PageWalks, Topic::Waiting];
    assert_eq!(topics(&view), expected, "{view:#?}");
    let remote = finding(&view, Topic::RemoteMemory);
    assert!(remote.says.starts_with("of the accesses went to memory of another node"), "{remote:#?}");
    assert!(remote.details[0].contains("60%"), "of all accesses that reached memory: {remote:#?}");
    assert_eq!(remote.command, "precise numa");
    let walks = finding(&view, Topic::PageWalks);
    assert!(walks.details[0].contains("400 cycles on average, the other accesses 451 cycles"), "{walks:#?}");
}

#[test]
fn the_page_shows_what_remote_memory_looks_like() {
    let view = view(&service(&[(L1, 100, 5), (REMOTE_RAM, 300, 600)]).build());
    shown("explain.md", "remote", &text::explain_text(&view, &TextOptions::default()));
}

#[test]
fn a_number_whose_interval_reaches_below_the_threshold_is_no_finding() {
    // 12 % of 150 samples walk: the interval starts below 10 %.
    let few = view(&service(&[(L1, 22, 5), (RAM_WALK, 3, 400)]).build());
    assert!(!topics(&few).contains(&Topic::PageWalks), "{few:#?}");
    let quiet = few.quiet.iter().find(|quiet| quiet.topic == Topic::PageWalks).unwrap();
    assert!(quiet.number.unwrap().value > quiet.threshold);
    // The same share of 6,000 samples is a finding.
    let many = view(&service(&[(L1, 880, 5), (RAM_WALK, 120, 400)]).build());
    assert!(topics(&many).contains(&Topic::PageWalks), "{many:#?}");
}

#[test]
fn slow_loads_alone_need_more() {
    let sick = [(L1, 880, 40), (RAM_WALK, 120, 400)];
    let mut builder = service(&sick);
    slow_loads(&mut builder.meta().events[0], 30);
    assert!(!topics(&view(&builder.build())).contains(&Topic::PageWalks));
    let mut builder = service(&[(L1, 500, 40), (RAM_WALK, 500, 400)]);
    slow_loads(&mut builder.meta().events[0], 30);
    let view = view(&builder.build());
    let found = finding(&view, Topic::PageWalks);
    assert!(found.says.contains("loads of 30 cycles or more"), "{found:#?}");
}

#[test]
fn samples_that_were_chosen_by_it_say_nothing_of_how_often() {
    let mut builder = service(&[(RAM_WALK, 200, 400)]);
    builder.meta().events[0].pmu = intel(0xd0, 0x11);
    let by_event = view(&builder.build());
    assert!(!topics(&by_event).contains(&Topic::PageWalks), "{by_event:#?}");
    let unknown = by_event.unknown.iter().find(|unknown| unknown.topic == Topic::PageWalks).unwrap();
    assert_eq!(unknown.record.as_ref().map(Again::command), Some("precise record -e mem"));

    let mut capture = service(&[(RAM_WALK, 200, 400)]).build();
    capture.meta.events[0].ledger.rejected = vec![("mem_dtlb == l2_miss".to_owned(), 5)];
    assert!(!topics(&view(&capture)).contains(&Topic::PageWalks));
    // A filter by process does not select by the outcome.
    capture.meta.events[0].ledger.rejected = vec![("comm == \"app\"".to_owned(), 5)];
    assert!(topics(&view(&capture)).contains(&Topic::PageWalks));
}

#[test]
fn a_starved_front_end_is_found() {
    let view = view(&starved());
    let found = finding(&view, Topic::FrontEnd);
    assert!((found.number.unwrap().value - 350.0 / 950.0).abs() < 1e-9, "{found:#?}");
    assert!(found.details[0].contains("instruction cache miss 26%"), "{found:#?}");
    assert!(found.details[1].contains("parse"), "{found:#?}");
}

#[test]
fn branches_that_mispredict_are_found_and_those_that_do_not_are_not() {
    let made = |mispredicted| {
        let mut builder = CaptureBuilder::new();
        let event = &mut builder.meta().events[0];
        event.name = "branches".into();
        ibs_op(event);
        event.tagged = Some(TaggedOf::Branch);
        for (bits, samples) in
            [(Bits::BRANCH, 1000 - mispredicted), (Bits::BRANCH | Bits::MISPREDICTED, mispredicted)]
        {
            let mut cell = builder.cell().samples(samples).code(0x1000, "/bin/app", "pick", "/src/p.c", 3);
            cell.row().outcome = Some(Outcome::Op(bits));
        }
        builder.build()
    };
    let sick = view(&made(120));
    let found = finding(&sick, Topic::Mispredictions);
    assert!(found.details[0].contains("pick"), "{found:#?}");
    assert!(!topics(&view(&made(10))).contains(&Topic::Mispredictions));
}

#[test]
fn a_line_with_most_samples_is_found_and_by_function_where_it_is_not_precise() {
    let mut builder = service(&[(L1, 100, 5)]);
    builder.cell().samples(2000).code(0x9000, "/bin/app", "spin", "/src/spin.c", 7);
    let mut capture = builder.build();
    let precise = view(&capture);
    assert!(finding(&precise, Topic::HotSpot).says.contains("at one line: /src/spin.c:7, in spin"));
    capture.meta.events[0].verdict.precise = false;
    let skids = view(&capture);
    assert!(finding(&skids, Topic::HotSpot).says.contains("in one function: spin (/bin/app)"));
    assert_eq!(skids.findings[0].topic, Topic::NotPrecise, "what makes the others doubtful comes first");
}

#[test]
fn one_cgroups_slow_tail_is_found() {
    let mut builder = service(&[(L1, 500, 5), (RAM, 30, 300)]);
    builder.cell().samples(1000).latency(300).cgroup(9, "/victim");
    builder.cell().samples(100).latency(3000).cgroup(9, "/victim");
    let view = view(&builder.build());
    let found = finding(&view, Topic::LatencyTail);
    let number = found.number.unwrap();
    assert!(found.says.contains("/victim") && number.unit == FindingUnit::Times, "{found:#?}");
    assert!(number.low > Some(8.0) && number.high < Some(12.0), "{found:#?}");
}

#[test]
fn what_makes_numbers_doubtful_comes_first() {
    let mut capture = service(&[(L1, 100, 5), (REMOTE_RAM, 300, 600)]).build();
    let event = &mut capture.meta.events[0];
    event.verdict.precise = false;
    event.ledger.counters.set(Counter::TableFull, 240);
    event.ledger.counters.set(Counter::Seen, 2640);
    event.ledger.event_count *= 2;
    event.ledger.throttled = 3;
    let view = view(&capture);
    assert_eq!(
        topics(&view)[..5],
        [Topic::NotPrecise, Topic::Lost, Topic::Coverage, Topic::Throttled, Topic::RemoteMemory],
        "{view:#?}"
    );
    let mut stopped = capture.clone();
    stopped.meta.events[0].ledger.runaway =
        Some(Runaway { after_ns: 3_100_000_000, cpu: 3, per_second: 65_000, asked_per_second: 54 });
    let text = crate::explain::text::explain_text(&self::view(&stopped), &TextOptions::default());
    let words = "* Stopped: loads was stopped after 3.1 s: CPU 3 took 65,000 samples a second,\n  and 54 were asked for.";
    assert!(text.contains(words), "{text}");
    let lost = finding(&view, Topic::Lost).number.unwrap();
    assert!((lost.value - 240.0 / 2640.0).abs() < 1e-9 && lost.low.is_none());
    let text = crate::explain::text::explain_text(&view, &TextOptions::default());
    assert!(
        text.contains(
            "* Coverage: 50.0% of the events that loads counted are accounted for by its\n  samples."
        ),
        "{text}"
    );
}

#[test]
fn what_cannot_be_known_has_a_reason_and_a_command() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(40).code(0x1000, "/bin/app", "f", "/src/f.c", 1);
    builder.meta().dimensions = vec![Dimension::Ip];
    let few = view(&builder.build());
    assert!(few.nothing_stands_out && few.quiet.is_empty(), "{few:#?}");
    assert_eq!(few.unknown.len(), Topic::OF_WORKLOAD.len(), "{few:#?}");
    let of = |topic| few.unknown.iter().find(|unknown| unknown.topic == topic).unwrap();
    assert!(
        of(Topic::HotSpot)
            .why
            .contains("the capture has 40 samples of cycles for this check; at least 100 are needed")
    );
    assert_eq!(
        of(Topic::PageWalks).record.as_ref().map(Again::command),
        Some("precise record -e cycles --by ip,source")
    );
    let text = crate::explain::text::explain_text(&few, &TextOptions::default());
    assert!(text.contains("No check was possible"), "{text}");
    // One line for the header, and one for each topic.
    assert_eq!(crate::explain::csv::explain_csv(&few, ",").lines().count(), 1 + few.unknown.len());
}

#[test]
fn samples_without_names_have_no_hot_spot_and_an_import_is_made_again() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(500).code(0x1000, "", "", "", 0);
    builder.meta().dimensions = vec![Dimension::Ip];
    let dimensions = vec![Dimension::Ip, Dimension::Source, Dimension::Cpu];
    let origin = Origin { file: "my perf.data".into(), dimensions, ..Origin::default() };
    builder.meta().origin = Some(origin);
    let view = view(&builder.build());
    let of = |topic| view.unknown.iter().find(|unknown| unknown.topic == topic).unwrap();
    assert_eq!(of(Topic::HotSpot).why, "no function of the samples of cycles has a name.");
    assert_eq!(
        of(Topic::PageWalks).record.as_ref().map(Again::command),
        Some("precise import 'my perf.data' --by ip,source")
    );
}

#[test]
fn commands_name_the_file_as_a_shell_takes_it() {
    let file = "/tmp/o'brien $(id).parquet".to_owned();
    let capture = service(&[(L1, 100, 5), (REMOTE_RAM, 300, 600)]).build();
    let view = explain(&capture, &ExplainOptions { file, ..ExplainOptions::default() }, &mut Nowhere);
    assert_eq!(view.findings[0].command, r"precise numa -i '/tmp/o'\''brien $(id).parquet'");
}

#[test]
fn the_first_of_equals_is_named() {
    assert_eq!(most([("b", 1.0), ("a", 2.0), ("c", 2.0)], |(_, weight)| *weight), Some(("a", 2.0)));
    assert_eq!(most(Vec::<f64>::new(), |weight| *weight), None);
}
