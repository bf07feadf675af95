//! Tests of the comparison on synthetic captures.

use crate::diff::text::diff_text;
use crate::diff::{DiffOptions, diff};
use crate::pairing::PairError;
use crate::render::TextOptions;
use precise_model::keys::Key;
use precise_model::testing::{CaptureBuilder, slow_loads};
use precise_model::{Capture, Epoch, RateChange};

/// Builds a capture with samples of two functions. Those of `slow` have a latency of `cycles`.
pub(crate) fn capture(fast: u64, slow: u64, cycles: u32) -> Capture {
    let mut builder = CaptureBuilder::new();
    slow_loads(&mut builder.meta().events[0], 30);
    builder.cell().samples(fast).latency(10).code(1, "app", "fast", "a.c", 1);
    builder.cell().samples(slow).latency(cycles).code(2, "app", "slow", "a.c", 2);
    builder.cell().samples(3).latency(10).code(3, "app", "rare", "a.c", 3);
    builder.build()
}

#[test]
fn a_change_is_said_with_its_direction() {
    let result = diff(&capture(700, 300, 200), &capture(500, 500, 400), &DiffOptions::default()).unwrap();
    let event = &result.events[0];
    let names: Vec<_> = event.entries.iter().map(|e| (e.values[0].text(), e.samples, e.changed)).collect();
    assert_eq!(
        names,
        [
            ("fast".into(), [700, 500], true),
            ("slow".into(), [300, 500], true),
            ("rare".into(), [3, 3], false)
        ]
    );
    assert_eq!(event.entries[2].p, None, "three samples are too few to ask");
    assert_eq!(
        event.words,
        [
            "No significant change in the number of cycles, in total and per second.",
            "NEW is slower: p90 is 200 core cycles in BASE and 400 in NEW. If one access is drawn from each capture, that of NEW is the slower one in 67% of cases.",
            "NEW has more of its samples in slow (29.9% to 49.9%).",
            "NEW has fewer of its samples in fast (69.8% to 49.9%)."
        ]
    );
    let slow = event.entries[1].latency.unwrap();
    assert!(slow.slower == 1.0 && slow.p < 1e-6, "{slow:?}");
    assert!(event.notes[0].contains("at least 30 core cycles"));
}

/// Half as much again of everything: no share changes, and the whole does.
#[test]
fn more_of_everything_is_said_first() {
    let faults = |times: u64, seconds: u64| {
        let mut builder = CaptureBuilder::new();
        let event = &mut builder.meta().events[0];
        (event.name, event.unit, event.period) = ("page-faults".into(), "page faults".into(), Some(1));
        builder.meta().epochs = vec![Epoch { start_ns: 0, end_ns: seconds * 1_000_000_000 }];
        for (samples, function) in [(15_413, "fast"), (5_138, "slow")] {
            let samples = samples * times / 2;
            let mut cell = builder.cell().samples(samples).code(samples, "app", function, "a.c", 1);
            cell.row().measures.period_sum = samples;
        }
        builder.build()
    };
    let answer = |seconds| {
        let base = faults(2, 5);
        let result = diff(&base, &faults(3, seconds), &DiffOptions::default()).unwrap();
        let text = diff_text(&result, &TextOptions::default());
        (result.events[0].clone(), text)
    };
    let (event, text) = answer(5);
    let [base, new] = &event.totals;
    assert_eq!((base.events.value, new.events.value), (20_551, 30_826));
    assert_eq!((base.per_second, new.per_second), (Some(4110.2), Some(6165.2)));
    assert_eq!(
        event.words,
        [
            "NEW has 50.0% more page faults in total, and 50.0% more page faults per second.",
            "No significant change in shares; the differences are within sampling noise."
        ]
    );
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    for (name, parts) in [
        ("Page faults", ["20,551", "30,826", "+50.0%"]),
        ("Duration", ["5.0 s", "5.0 s", ""]),
        ("Per second", ["4,110", "6,165", "+50.0%"]),
    ] {
        assert!(parts.iter().all(|part| row(name).contains(part)), "{text}");
    }
    // A program that does half as much again, and takes half as long again.
    let (event, _) = answer(7);
    assert_eq!(
        event.words[0],
        "NEW has 50.0% more page faults in total, and 7.1% more page faults per second."
    );
    let growth = event.event_growth.unwrap();
    assert!(growth.changed && growth.low > 0.45 && growth.high.unwrap() < 0.55, "{growth:?}");
}

/// `slow` has half of the events, whatever the governor did during the run.
#[test]
fn where_the_governor_changed_the_period_shares_are_of_events() {
    let base = capture(5_000, 5_000, 100);
    let mut builder = CaptureBuilder::new();
    for (samples, period, function) in [(5_000, 1_000, "fast"), (100, 50_000, "slow")] {
        let mut cell = builder.cell().samples(samples).latency(100).code(samples, "app", function, "a.c", 1);
        cell.row().measures.period_sum = samples * period;
    }
    let at = |period| RateChange { period: Some(period), ..RateChange::default() };
    let event = &mut builder.meta().events[0];
    slow_loads(event, 30);
    (event.period, event.rates) = (None, vec![at(1_000), at(50_000)]);
    let result = diff(&base, &builder.build(), &DiffOptions::default()).unwrap();
    let event = &result.events[0];
    assert!(event.by_events && event.entries.iter().all(|entry| !entry.changed), "{:?}", event.entries);
    let slow = event.entries.iter().find(|entry| entry.values[0].text() == "slow").unwrap();
    assert!((slow.new.value - 0.5).abs() < 1e-9 && slow.samples == [5_000, 100], "{slow:?}");
    assert!(slow.new.half_width() > 0.04, "a hundred samples are half of it: {slow:?}");
    assert!(
        event.notes.iter().any(|note| note.contains("percentiles weigh each sample")),
        "{:?}",
        event.notes
    );
}

#[test]
fn chance_is_called_chance() {
    let result = diff(&capture(700, 300, 200), &capture(690, 310, 200), &DiffOptions::default()).unwrap();
    let event = &result.events[0];
    assert!(event.entries.iter().all(|e| !e.changed), "{:?}", event.entries);
    assert!(event.words[1].starts_with("No significant change in latencies"), "{:?}", event.words);
    assert!(event.words[2].starts_with("No significant change in shares"));
    let same = diff(&capture(700, 300, 200), &capture(700, 300, 200), &DiffOptions::default()).unwrap();
    assert!(same.events[0].entries.iter().all(|e| e.p.is_none_or(|p| p == 1.0)));
}

#[test]
fn too_few_samples_are_not_compared() {
    let result = diff(&capture(700, 300, 200), &capture(50, 30, 200), &DiffOptions::default()).unwrap();
    let event = &result.events[0];
    assert_eq!((event.too_few, event.entries.len()), (Some(100), 0));
    assert_eq!(event.words, ["NEW has 91.7% fewer cycles in total, and 91.7% fewer cycles per second."]);
}

#[test]
fn other_sampling_is_refused_with_a_sentence() {
    let base = capture(700, 300, 200);
    let refused = |change: &dyn Fn(&mut Capture)| {
        let mut new = capture(700, 300, 200);
        change(&mut new);
        diff(&base, &new, &DiffOptions::default()).unwrap_err().to_string()
    };
    let text = refused(&|c| slow_loads(&mut c.meta.events[0], 100));
    assert_eq!(
        text,
        "cycles was sampled differently: the encoding is `cpu/event=0xcd,umask=0x1,ldlat=30/pp` in BASE and \
         `cpu/event=0xcd,umask=0x1,ldlat=100/pp` in NEW, so the shares cannot be compared. Record both with the \
         same flags."
    );
    let text = refused(&|c| (c.meta.events[0].period, c.meta.events[0].frequency) = (None, Some(997)));
    assert!(
        text.contains("the period is one sample per 1000 in BASE and 997 samples per second in NEW"),
        "{text}"
    );
    assert!(refused(&|c| c.meta.filter = "latency > 30".into()).contains("the filter is none in BASE"));
    assert!(
        refused(&|c| c.meta.events[0].verdict.precise = false).contains("the precision is precise in BASE")
    );
    assert!(refused(&|c| c.meta.events[0].name = "loads".into()).contains("no event in common"));
    // Another fixed period still samples the same population.
    let mut new = capture(700, 300, 200);
    new.meta.events[0].period = Some(2000);
    assert!(diff(&base, &new, &DiffOptions::default()).is_ok());
    new.meta.dimensions.clear();
    let error =
        diff(&base, &new, &DiffOptions { by: vec![Key::Line], ..DiffOptions::default() }).unwrap_err();
    assert!(matches!(error, PairError::View { which: "NEW", .. }), "{error}");
}
