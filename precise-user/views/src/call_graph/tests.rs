//! Tests of call graphs and folded stacks on synthetic chains.

use crate::call_graph::csv::call_graph_csv;
use crate::call_graph::text::call_graph_text;
use crate::call_graph::{CallGraphOptions, Calls, call_graph};
use crate::flame::folded::folded;
use crate::flame::svg::flame_svg;
use crate::flame::{FlameOptions, FrameWidth, flame};
use crate::render::TextOptions;
use precise_model::Chain;
use precise_model::testing::CaptureBuilder;
use precise_model::values::Value;
use precise_model::{Capture, Dimension, Reason};

/// 40 samples of `leaf` called by `a`, 20 called by `b`, 30 of `a` itself, and 10 of `rec`, which
/// calls itself.
pub(crate) fn capture() -> Capture {
    let mut builder = CaptureBuilder::new();
    let app = "/usr/bin/app";
    let cells: [(&str, u64, u32, &[&str]); 4] = [
        ("leaf", 40, 100, &["a", "main"]),
        ("leaf", 20, 400, &["b", "main"]),
        ("a", 30, 10, &["main"]),
        ("rec", 10, 50, &["rec", "rec", "main"]),
    ];
    for (at, (function, samples, latency, callers)) in cells.into_iter().enumerate() {
        let cell = builder.cell().samples(samples).latency(latency).process(1, "app;x");
        cell.code(0x1000 + at as u64, app, function, "", 0).callers(callers);
    }
    builder.build()
}

fn calls(capture: &Capture, function: Option<&str>) -> Calls {
    let options = CallGraphOptions { function: function.map(str::to_owned), ..CallGraphOptions::default() };
    call_graph(capture, &options).expect("has chains").events.remove(0)
}

#[test]
fn each_sample_counts_once_for_each_function_of_its_chain() {
    let calls = calls(&capture(), None);
    let costs: Vec<_> = calls
        .functions
        .iter()
        .map(|f| (f.function.text(), f.inclusive.samples, f.exclusive.samples))
        .collect();
    let expected = [("main", 100, 0), ("a", 70, 30), ("leaf", 60, 60), ("b", 20, 0), ("rec", 10, 10)];
    assert_eq!(costs, expected.map(|(f, inclusive, exclusive)| (f.to_owned(), inclusive, exclusive)));
    // 40 × 100 of 4,000 + 8,000 + 300 + 500.
    let a = calls.functions[1].inclusive.latency_share.expect("timed").value;
    assert!((a - 4300.0 / 12800.0).abs() < 1e-9, "{a}");
}

#[test]
fn neighbours_are_those_of_the_chains() {
    let capture = capture();
    let of = |function| {
        let around = calls(&capture, Some(function)).around.remove(0);
        let list = |list: &[crate::call_graph::Neighbour]| {
            let entry = |n: &crate::call_graph::Neighbour| {
                format!("{}:{}", n.function.as_ref().map_or_else(|| "-".to_owned(), Value::text), n.samples)
            };
            list.iter().map(entry).collect::<Vec<_>>().join(" ")
        };
        (list(&around.callers), list(&around.callees))
    };
    assert_eq!(of("leaf"), ("a:40 b:20".to_owned(), "-:60".to_owned()));
    assert_eq!(of("a"), ("main:70".to_owned(), "leaf:40 -:30".to_owned()));
    assert_eq!(of("rec"), ("main:10 rec:10".to_owned(), "-:10 rec:10".to_owned()));
    assert_eq!(of("main"), ("-:100".to_owned(), "a:70 b:20 rec:10".to_owned()));
    let notes = calls(&capture, Some("nosuch")).notes;
    assert_eq!(notes, ["No function of this event matches `nosuch`."]);
}

#[test]
fn what_has_no_chain_is_counted_and_said() {
    let mut capture = capture();
    capture.rows[1].stack = Chain::Unknown(Reason::StackFull);
    let calls = calls(&capture, Some("leaf"));
    assert_eq!(calls.functions[2].inclusive.samples, 60);
    assert!(
        calls.notes[0].starts_with("Without a call chain (table of call chains full): 20 samples"),
        "{:?}",
        calls.notes
    );
    let folded = folded(&flame(&capture, &FlameOptions::default()).expect("drawn"));
    assert!(folded.contains("app:x;[no call chain: table of call chains full];leaf 20\n"), "{folded}");
    capture.meta.dimensions.retain(|d| *d != Dimension::Stack);
    let error = call_graph(&capture, &CallGraphOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "the capture has no call chains. Record with `precise record -g -e cycles`.");
}

#[test]
fn folded_stacks_weigh_samples_or_latency() {
    let capture = capture();
    let of = |weight| {
        folded(&flame(&capture, &FlameOptions { weight, ..FlameOptions::default() }).expect("drawn"))
    };
    assert_eq!(
        of(FrameWidth::Samples),
        "app:x;main;a 30\napp:x;main;a;leaf 40\napp:x;main;b;leaf 20\napp:x;main;rec;rec;rec 10\n"
    );
    assert_eq!(
        of(FrameWidth::Latency),
        "app:x;main;a 300\napp:x;main;a;leaf 4000\napp:x;main;b;leaf 8000\napp:x;main;rec;rec;rec 500\n"
    );
    let svg = flame_svg(&flame(&capture, &FlameOptions::default()).expect("drawn"), 1200).expect("drawn");
    let svg = String::from_utf8(svg).expect("text");
    assert!(svg.contains("<title>leaf (40 samples, 40.00%)</title>"), "{svg}");
}

#[test]
fn the_text_fits_a_terminal() {
    let graph = call_graph(&capture(), &CallGraphOptions::default()).expect("has chains");
    let text = call_graph_text(&graph, &TextOptions::default());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("called by") && text.contains("(its own)"), "{text}");
    let csv = call_graph_csv(&graph, ",");
    assert!(csv.starts_with("event,function,module,total,"), "{csv}");
    assert!(csv.contains("\ncycles,main,/usr/bin/app,100,1.0"), "{csv}");
}
