//! Tests of the exact text that users see, for a small synthetic capture.

use crate::document::document;
use crate::render::TextOptions;
use crate::report::csv::report_csv;
use crate::report::text::report_text;
use crate::report::{ReportOptions, report};
use crate::summary::summary;
use crate::summary::text::summary_text;
use precise_model::Capture;
use precise_model::keys::{Key, Sort};
use precise_model::testing::CaptureBuilder;

fn capture() -> Capture {
    let mut builder = CaptureBuilder::new();
    let vec = "alloc::vec::Vec<precise::capture::model::Row>::extend_from_within";
    builder.cell().samples(700).latency(12).code(
        0x401010,
        "/usr/bin/app",
        vec,
        "/src/alloc/src/vec/mod.rs",
        2042,
    );
    builder.cell().samples(200).latency(300).code(0x402010, "/usr/bin/app", "parse", "src/parse.c", 12);
    builder.cell().samples(90).latency(310).code(0x402020, "/usr/bin/app", "parse", "src/parse.c", 14);
    builder.cell().samples(10).latency(40).code(0x7000, "/usr/lib/libc.so.6", "", "", 0);
    builder.meta().epochs[0].end_ns = 10_000_000_000;
    builder.build()
}

#[test]
fn the_end_of_a_run() {
    let text =
        summary_text(&summary(&capture(), &ReportOptions::default()).unwrap(), &TextOptions::default());
    let expected = "\
cycles (cpu/event=0x3c/pp)
1,000 samples, 1 sample per 1,000 cycles, 10.0 s of all processes on testhost,
  2023-11-14 22:13:20 to 22:13:30 UTC

     Share  Samples  Avg  p50  p90  p99  Max  Function                 Module
70.0% ±2.9      700   12   12   12   12   12  alloc::vec:…from_within  app
29.0% ±2.9      290  303  304  304    -  310  parse                    app
 1.0% ±0.8       10   40   40    -    -   40  libc.so.6+0x0            libc.so.6

     Share  Samples  Avg  p50  p90  p99  Max  Line
70.0% ±2.9      700   12   12   12   12   12  /src/alloc/src/vec/mod.rs:2042
20.0% ±2.6      200  300  300  300    -  300  src/parse.c:12
 9.0% ±1.9       90  310  304  304    -  310  src/parse.c:14
 1.0% ±0.8       10   40   40    -    -   40  [no line info]

Verdict: precise (level 2 granted), 100.0% of samples exact; ledger closes;
  coverage 100.0%.

Ledger of cycles: where the samples went
Samples   Share  What        Meaning
  1,000  100.0%  seen        samples that reached the program
  1,000  100.0%  aggregated  added to the table
      0    0.0%  table full  lost: no free cell in the table
      0          throttled   times that the kernel stopped the event
      0          lost        samples that the kernel reports as dropped
The ledger closes: every sample that the program saw is in one of these rows.
Coverage 100.0%: the events that the samples account for, of those that the
event counted.

Share: share of the event's samples; in 95% of runs the true value is within ±
  percentage points of it.
Avg, Max: latency in core cycles. p50, p90, p99: latency that this share of the
  samples does not exceed, within 6.3%; - if there are too few samples.
";
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn a_report_by_latency_with_a_limit() {
    let options = ReportOptions {
        by: vec![Key::Line],
        sort: Sort::Latency,
        limit: Some(2),
        ..ReportOptions::default()
    };
    let mut capture = capture();
    capture.meta.events[0].verdict.precise = false;
    capture.meta.events[0].ledger.event_count *= 2;
    let text = report_text(&report(&capture, &options).unwrap(), &TextOptions::default());
    let expected = "\
cycles (cpu/event=0x3c/pp)
1,000 samples, 1 sample per 1,000 cycles, 10.0 s of all processes on testhost,
  2023-11-14 22:13:20 to 22:13:30 UTC

     Share  Samples     Latency  Avg  p50  p90  p99  Max  Line
20.0% ±2.6      200  62.0% ±5.1  300  300  300    -  300  src/parse.c:12
 9.0% ±1.9       90  28.9% ±5.1  310  304  304    -  310  src/parse.c:14
71.0% ±2.9      710                                       (2 more)

Verdict: NOT PRECISE (level 2 granted), 100.0% of samples exact; ledger closes;
  coverage 50.0%.
* The samples account for 50.0% of the counted events: some samples never
  reached the program, for example while another eBPF program or a bpf(2) call
  ran on the CPU.

Share: share of the event's samples; in 95% of runs the true value is within ±
  percentage points of it.
Latency: share of the sum of all latencies.
Avg, Max: latency in core cycles. p50, p90, p99: latency that this share of the
  samples does not exceed, within 6.3%; - if there are too few samples.
";
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn too_few_samples_are_not_ranked() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(99).code(1, "a", "f", "", 0);
    let text =
        report_text(&report(&builder.build(), &ReportOptions::default()).unwrap(), &TextOptions::default());
    let expected = "\
cycles (cpu/event=0x3c/pp)
99 samples, 1 sample per 1,000 cycles, 1.0 s of all processes on testhost,
  2023-11-14 22:13:20 to 22:13:21 UTC

Only 99 samples: the rows are in no reliable order, for which at least 100 are
needed. Sample for longer, or more often.

      Share  Samples  Function  Module
100.0% ±3.7       99  f         a

Verdict: precise (level 2 granted), 100.0% of samples exact; ledger closes;
  coverage 100.0%.

Share: share of the event's samples; in 95% of runs the true value is within ±
  percentage points of it.
";
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn values_for_machines() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(100).latency(20).code(0x10, "/a,b", "f\"g", "", 0).data(
        0xffff_8000_0000_0040,
        "[heap]",
        "",
    );
    let options =
        ReportOptions { by: vec![Key::Function, Key::Module, Key::Address, Key::Line], ..Default::default() };
    let report = report(&builder.build(), &options).unwrap();
    let expected = "\
event,function,module,address,line,samples,share,share_low,share_high,period_sum,latency_sum,latency_share,\
latency_share_low,latency_share_high,latency_avg,latency_max,latency_p50,latency_p50_low,latency_p50_high,latency_p90,\
latency_p90_low,latency_p90_high,latency_p99,latency_p99_low,latency_p99_high,precise,coverage
cycles,\"f\"\"g\",\"/a,b\",0xffff800000000040,[no line info],100,1.000000,0.963007,1.000000,100000,2000,1.000000,\
0.963007,1.000000,20.000,20,20,20,20,20,20,20,,,,true,1.000000
";
    assert_eq!(report_csv(&report, ","), expected);
    assert!(report_csv(&report, "\t").contains("\t/a,b\t"));
    let json: serde_json::Value = serde_json::from_str(&document(&report, None).unwrap()).unwrap();
    assert_eq!((&json["schema"], &json["kind"]), (&1.into(), &"report".into()));
    let group = &json["events"][0]["groups"][0];
    assert_eq!(group["values"][2]["address"], "0xffff800000000040");
    assert_eq!(group["values"][3]["unknown"], "no-line");
    assert_eq!(group["measures"]["count"], 100);
    assert_eq!(json["events"][0]["trust"]["closes"], true);
}

#[test]
fn names_cannot_give_orders_to_the_terminal() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(100).process(1, "\x1b]0;owned\x07").code(
        1,
        "/\x1b[2J",
        "\u{202e}f",
        "\x1b[31m",
        1,
    );
    builder.meta().events[0].name = "cyc\x1b[31mles".into();
    builder.meta().filter = "comm == \"\x1b[1m\"".into();
    builder.meta().target = "process \x07".into();
    builder.meta().notes = vec!["note \x1b[5m".into()];
    let text = summary_text(&summary(&builder.build(), &Default::default()).unwrap(), &Default::default());
    assert!(!text.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{text:?}");
}
