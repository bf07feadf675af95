use super::*;
use crate::explain::tests::Nowhere;
use crate::explain::{ExplainOptions, Topic, explain};
use crate::gates;
use precise_model::testing::CaptureBuilder;
use precise_model::{CpuGap, Runaway};

#[test]
fn a_clean_run() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(1000);
    let trust = trust(&builder.build());
    assert!(trust.is_clean(), "{trust:?}");
    assert_eq!(
        trust.events[0].summary,
        "precise (level 2 granted), 100.0% of samples exact; ledger closes; coverage 100.0%"
    );
}

#[test]
fn samples_of_a_guest_are_said() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(1000);
    let mut capture = builder.build();
    capture.meta.events[0].ledger.counters.set(Counter::InGuest, 250);
    let event = &trust(&capture).events[0];
    assert_eq!(
        event.findings,
        [
            "While 25.0% of the aggregated samples were taken, a virtual machine's guest ran. They have their process \
         and no instruction: to see into the guest, record in it."
        ]
    );
    assert!(event.ledger.iter().any(|row| row.what == "in a guest" && row.count == 250));
}

#[test]
fn a_cpu_that_was_offline_is_said_and_no_sample_is_missing() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(1000);
    let mut capture = builder.build();
    let ledger = &mut capture.meta.events[0].ledger;
    (ledger.enabled_ns, ledger.running_ns) = (15_000_000_000, 15_000_000_000);
    ledger.gaps = vec![CpuGap { cpu: 1, start_ns: 3_200_000_000, end_ns: 8_200_000_000 }];
    let event = &trust(&capture).events[0];
    assert_eq!(event.findings, ["Not measured: CPU 1 from 3.2 s to 8.2 s. The CPU was offline."]);
    assert!(event.summary.ends_with("; coverage 75.0%"), "{}", event.summary);
    assert!(event.ledger.iter().all(|row| row.what != "missed"));
    for (gate, met) in [("coverage>=75%", true), ("coverage>=75.1%", false)] {
        let gates = gates::parse(gate).unwrap();
        assert_eq!(gates::evaluate(&capture, &gates).iter().all(|result| result.met), met, "{gate}");
    }
    let topics = explain(&capture, &ExplainOptions::default(), &mut Nowhere).findings;
    let found = topics.iter().find(|finding| finding.topic == Topic::Coverage).unwrap();
    assert!(found.details.iter().any(|detail| detail.starts_with("Not measured: CPU 1")), "{found:?}");

    let many: Vec<CpuGap> = (0..5).map(|at| CpuGap { cpu: at, start_ns: 0, end_ns: 2_000_000_000 }).collect();
    let said = offline(&many).unwrap();
    assert!(said.contains("CPU 2 from 0.0 s to 2.0 s; 2 more stretches, 4.0 s in total."), "{said}");
}

#[test]
fn everything_that_can_go_wrong_is_said() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(1000);
    let mut capture = builder.build();
    let event = &mut capture.meta.events[0];
    event.verdict.precise = false;
    event.verdict.granted = 0;
    let ledger = &mut event.ledger;
    for (counter, count) in
        [(Counter::Seen, 1500), (Counter::TableFull, 100), (Counter::NoAddress, 1), (Counter::Exact, 0)]
    {
        ledger.counters.set(counter, count);
    }
    ledger.rejected = vec![("latency > 30".to_owned(), 399)];
    ledger.event_count *= 2;
    ledger.running_ns /= 4;
    (ledger.throttled, ledger.lost) = (3, 4);
    ledger.runaway =
        Some(Runaway { after_ns: 3_100_000_000, cpu: 3, per_second: 65_000, asked_per_second: 54 });
    let event = &trust(&capture).events[0];
    assert_eq!(event.unaccounted, 1);
    assert!(!event.closes && event.coverage_remarkable);
    assert_eq!(
        event.summary,
        "NOT PRECISE (level 0 granted), 0.0% of samples exact; 6.9% LOST; LEDGER DOES NOT CLOSE; coverage 50.0%"
    );
    assert_eq!(
        event.findings,
        [
            "The table was full for 6.7% of the samples seen, so rare combinations are missing.",
            "The event was stopped after 3.1 s: CPU 3 took 65,000 samples a second, and 54 were asked for. Nothing was \
             sampled after that. Ask for less with -F or -c, and please report this with the kernel release (uname -r).",
            "The kernel throttled the event 3 times, so busy moments are under-represented.",
            "The kernel lost 4 samples.",
            "The event was multiplexed: it counted 25.0% of the time.",
            "0.1% of the aggregated samples have no data address.",
            "The ledger does not close: it is off by 1 of the samples that the program saw. This is a bug in precise.",
            "The samples account for 50.0% of the counted events: some samples never reached the program, for example while another eBPF program or a bpf(2) call ran on the CPU.",
        ]
    );
}

/// Builds a capture whose ledger closes, with 50 of 1,050 samples lost in one counter.
fn losing(index: usize) -> Option<(Capture, String)> {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(1000);
    let mut capture = builder.build();
    let ledger = &mut capture.meta.events[0].ledger;
    let losses: Vec<Counter> =
        Counter::ALL.iter().copied().filter(|counter| counter.fate().is_loss()).collect();
    let label = match index.checked_sub(losses.len()) {
        None => {
            ledger.counters.set(losses[index], 50);
            ledger.counters.set(Counter::Seen, 1050);
            losses[index].info().label.to_owned()
        }
        Some(0) => {
            ledger.lost = 50;
            "lost".to_owned()
        }
        Some(1) => {
            ledger.discarded.insert("of a test".to_owned(), 50);
            ledger.counters.set(Counter::Aggregated, 1050);
            ledger.counters.set(Counter::Seen, 1050);
            "discarded: of a test".to_owned()
        }
        Some(_) => return None,
    };
    Some((capture, label))
}

// Any counter that can lose samples, including future ones: every place that reports losses
// shows the same number.
#[test]
fn every_loss_is_in_every_place() {
    let mut places = 0;
    while let Some((capture, label)) = losing(places) {
        places += 1;
        let event = &trust(&capture).events[0];
        assert!(event.closes, "{label}");
        assert!(event.summary.contains("; 4.8% LOST; ledger closes"), "{label}: {}", event.summary);
        let rows: Vec<_> = event.ledger.iter().filter(|row| row.what == label).collect();
        assert!(matches!(rows[..], [LedgerRow { count: 50, .. }]), "{label}: {:?}", event.ledger);
        assert!(!event.findings.is_empty(), "{label}");
        let explained = explain(&capture, &ExplainOptions::default(), &mut Nowhere);
        let found = explained.findings.iter().find(|finding| finding.topic == Topic::Lost);
        let found = found.unwrap_or_else(|| panic!("{label}: {:?}", explained.findings));
        assert_eq!(found.number.map(|number| number.value), Some(50.0 / 1050.0), "{label}");
        assert!(found.details[0].starts_with("4.8% (50): "), "{label}: {:?}", found.details);
        let gates = gates::parse("lost<=4.7%,lost<=4.8%").unwrap();
        let results = gates::evaluate(&capture, &gates);
        assert_eq!((results[0].met, results[1].met), (false, true), "{label}");
        assert_eq!(results[1].is, "4.76% (50 of 1,050)", "{label}");
    }
    assert_eq!(places, 6);
}

#[test]
fn a_run_whose_user_space_was_stopped_shows_its_loss() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(1000);
    let mut capture = builder.build();
    let ledger = &mut capture.meta.events[0].ledger;
    ledger.counters.set(Counter::Seen, 1250);
    ledger.counters.set(Counter::Late, 250);
    let explained = explain(&capture, &ExplainOptions::default(), &mut Nowhere);
    let found = explained.findings.iter().find(|finding| finding.topic == Topic::Lost).unwrap();
    assert_eq!(found.number.map(|number| number.value), Some(0.2));
    assert_eq!(
        found.details,
        [
            "20.0% (250): they came after the deadline of the run, because precise was stopped or the machine was too busy."
        ]
    );
    let results = gates::evaluate(&capture, &gates::parse("lost<=0.1%").unwrap());
    assert_eq!((results[0].met, results[0].is.as_str()), (false, "20.00% (250 of 1,250)"));
}

#[test]
fn a_counter_of_a_newer_version_is_shown_and_is_no_bug() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(1000);
    let mut capture = builder.build();
    let ledger = &mut capture.meta.events[0].ledger;
    let mut counters = serde_json::to_value(&ledger.counters).unwrap();
    counters["to_be"] = 7.into();
    counters["seen"] = 1007.into();
    ledger.counters = serde_json::from_value(counters).unwrap();
    let event = &trust(&capture).events[0];
    let row = event.ledger.iter().find(|row| row.what == "to_be").unwrap();
    assert_eq!((row.count, row.share), (7, None));
    assert_eq!((event.closes, event.unaccounted), (false, 7));
    let open = event.findings.last().unwrap();
    assert!(open.contains("does not know (to_be)") && !open.contains("bug"), "{open}");
    let results = gates::evaluate(&capture, &gates::parse("lost<=1%").unwrap());
    assert_eq!((results[0].met, results[0].is.as_str()), (false, "unknown: its ledger does not close"));
}

#[test]
fn an_import_without_a_ledger_says_so() {
    let mut builder = CaptureBuilder::new();
    builder.cell();
    let mut capture = builder.build();
    capture.meta.events[0].ledger = Default::default();
    let event = &trust(&capture).events[0];
    assert_eq!(event.summary, "precise (level 2 granted); no ledger");
    assert_eq!(event.findings.len(), 1);
}
