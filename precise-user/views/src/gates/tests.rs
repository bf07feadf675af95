use super::*;
use precise_model::EventInfo;
use precise_model::testing::CaptureBuilder;

fn gates(text: &str) -> Vec<Gate> {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn why(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn gates_are_read_and_printed() {
    let text =
        "precise,coverage>=99%,samples>=1000,lost<=0.1%,symbols>=90%,exact>=99.999999%,coverage<=101.5%";
    let read: Vec<String> = gates(text).iter().map(ToString::to_string).collect();
    assert_eq!(read.join(","), text);
    assert_eq!(gates(" coverage >= 99.50 % , samples>=1_000"), gates("coverage>=99.5%,samples>=1000"));
}

#[test]
fn what_is_no_gate_is_said_in_words() {
    assert!(why("").contains("it is empty"));
    assert!(why("precise,").contains("it is empty"));
    assert!(why("coverage").contains("needs a bound"));
    assert!(why("covrage>=9%").contains("valid requirements: precise, coverage"));
    assert!(why("precision").contains("valid requirements: precise, coverage"));
    assert!(why("coverage>99%").contains(">= or <="));
    assert!(why("coverage=99%").contains(">= or <="));
    assert!(why("coverage>=99").contains("percent"));
    assert!(why("precise>=1").contains("no bound"));
    for wrong in
        ["lost<=-1%", "lost<=%", "lost<=.5%", "lost<=5.%", "lost<=1e1%", "lost<=0.1234567%", "exact>=9999%"]
    {
        assert!(why(wrong).contains("percent"), "{wrong}");
    }
    for wrong in ["samples>=", "samples>=10%", "samples>=+1", "samples>=99999999999999999999", "samples>=é"]
    {
        assert!(why(wrong).contains("number of samples"), "{wrong}");
    }
    assert!(why("é<").contains(">= or <="));
}

/// 1,000 samples, a tenth of them without a function.
fn capture() -> Capture {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(900).code(0x1000, "a.out", "main", "a.c", 1);
    builder.cell().samples(100);
    builder.build()
}

fn met(capture: &Capture, text: &str) -> bool {
    evaluate(capture, &gates(text)).iter().all(|result| result.met)
}

#[test]
fn bounds_are_met_exactly() {
    let mut capture = capture();
    assert!(met(&capture, "precise,coverage>=100%,samples>=1000,samples<=1000,lost<=0%,exact>=100%"));
    assert!(met(&capture, "symbols>=90%") && !met(&capture, "symbols>=90.000001%"));
    assert!(!met(&capture, "samples>=1001") && !met(&capture, "samples<=999"));
    let ledger = &mut capture.meta.events[0].ledger;
    ledger.counters.set(Counter::Seen, 1001);
    ledger.counters.set(Counter::TableFull, 1);
    assert!(met(&capture, "lost<=0.1%") && !met(&capture, "lost<=0.09%"));
    assert!(!met(&capture, "exact>=100%") && met(&capture, "exact>=99.9%"));
    capture.meta.events[0].ledger.event_count = 1_010_101;
    assert!(met(&capture, "coverage>=99%,coverage<=99.1%") && !met(&capture, "coverage>=99.1%"));
}

#[test]
fn each_gate_is_a_sentence() {
    let mut capture = capture();
    capture.meta.events[0].verdict.precise = false;
    let results = evaluate(&capture, &gates("precise,samples>=5000,symbols>=95%,coverage>=99%"));
    let sentences: Vec<&str> = results.iter().map(|result| result.sentence.as_str()).collect();
    assert_eq!(
        sentences,
        [
            "precise was required and is not met: cycles is not precise",
            "samples>=5000 was required and is not met: cycles has 1,000 samples",
            "symbols>=95% was required and is not met: the share of samples of cycles with a function name is 90.00% \
             (900 of 1,000)",
            "coverage>=99% was required and holds: the coverage of cycles is 100.00% (1,000,000 of 1,000,000)",
        ]
    );
    let beside = |bound: &str, part, whole| match gates(bound)[0] {
        Gate::Share(_, _, bound) => bound.beside(part, whole),
        gate => panic!("{gate:?}"),
    };
    // 98.9999 % must not be shown as 99 % where 99 % was required.
    assert_eq!(beside("coverage>=99%", 989_999, 1_000_000), "98.9999%");
    assert_eq!(beside("coverage>=98%", 989_999, 1_000_000), "99.00%");
    assert_eq!(beside("lost<=0.1%", 1_001, 1_000_000), "0.1001%");
    assert_eq!(beside("lost<=0%", 1, 1_000_000), "0.0001%");
    assert_eq!(beside("lost<=0%", 0, 1_000_000), "0.00%");
    assert_eq!(beside("exact>=100%", 9_999_999, 10_000_000), "99.99999%");
    assert_eq!(beside("exact>=100%", u64::MAX - 1, u64::MAX), ">99.999999%");
    assert_eq!(beside("lost<=0%", 1, u64::MAX), "<0.000001%");
}

#[test]
fn every_event_must_hold() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(1000);
    let second = builder.meta().events[0].clone();
    builder.meta().events.push(EventInfo { name: "stores".into(), ..second });
    builder.cell().samples(10).row().event = 1;
    let capture = builder.build();
    let result = &evaluate(&capture, &gates("samples>=100"))[0];
    assert_eq!((result.met, result.event.as_str()), (false, "stores"));
    assert_eq!(evaluate(&capture, &gates("samples>=10"))[0].event, "cycles");
}

#[test]
fn what_nobody_knows_does_not_hold() {
    let is = |capture: &Capture, text: &str| {
        let result = evaluate(capture, &gates(text)).remove(0);
        assert!(!result.met, "{result:?}");
        result.is
    };
    let mut bare = capture();
    bare.meta.events[0].ledger = Default::default();
    assert!(is(&bare, "lost<=1%").contains("no ledger"));
    let mut by_cpu = capture();
    by_cpu.meta.dimensions = vec![Dimension::Cpu];
    assert!(is(&by_cpu, "symbols>=1%").contains("not grouped by instruction"));
    let mut empty = CaptureBuilder::new().build();
    assert!(
        is(&empty, "exact>=1%").contains("no samples")
            && is(&empty, "coverage>=1%").contains("counted nothing")
    );
    empty.meta.events.clear();
    assert!(is(&empty, "precise").contains("no events"));
}

#[test]
fn an_event_without_marks_is_exact_by_its_nature() {
    let mut capture = capture();
    capture.meta.events[0].marks_exact = false;
    capture.meta.events[0].ledger.counters.set(Counter::Exact, 0);
    assert!(met(&capture, "exact>=100%"));
    capture.meta.events[0].verdict.precise = false;
    assert!(!met(&capture, "exact>=1%"));
}
