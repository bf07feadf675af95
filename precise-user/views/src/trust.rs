//! How far the samples of a capture can be trusted: ledger and verdict of each event, in numbers
//! and in words.

use schemars::JsonSchema;
use serde::Serialize;

use crate::crowd::who_fills_the_table;
use precise_common::ledger::{Counter, Fate};

use crate::idle::{left_out, only_idle_is_missing};
use crate::loss::Loss;
use precise_model::digits::{counted, percent, thousands};
use precise_model::{Capture, Counted, CpuGap, EventInfo, Ledger, Meta, Precision};

/// Largest deviation of the coverage from 1 that is not reported. One period per CPU, which may be
/// in flight, is allowed in addition.
pub const COVERAGE_SLACK: f64 = 0.01;

/// The ledger and the verdict of every event of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trust {
    /// One entry per event of the capture, in the same order.
    pub events: Vec<EventTrust>,
    /// Notes that do not belong to a single event.
    pub notes: Vec<String>,
}

impl Trust {
    /// Returns whether every event was precise, lost nothing, and has a ledger that closes.
    pub fn is_clean(&self) -> bool {
        self.events.iter().all(|e| e.precise && e.closes && e.findings.is_empty())
    }
}

/// The ledger and the verdict of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventTrust {
    /// Name of the event.
    pub event: String,
    /// Whether the instruction addresses are exact.
    pub precise: bool,
    /// The precision that the user requested.
    pub requested: Precision,
    /// The precise level that the kernel granted, 0 to 3.
    pub granted: u8,
    /// The rows of the ledger, in the order in which samples pass these stages.
    pub ledger: Vec<LedgerRow>,
    /// Whether the ledger accounts for every sample that reached the BPF program.
    pub closes: bool,
    /// Number of samples that no counter accounts for. Negative if the counters add up to more than
    /// the samples seen.
    pub unaccounted: i64,
    /// Number of events that the event's own counter counted.
    pub event_count: u64,
    /// Number of samples that this count implies at the fixed period; `None` if the period was not
    /// fixed.
    pub expected: Option<u64>,
    /// Fraction of the event's own count that the samples seen represent; `None` if the event
    /// counted nothing.
    pub coverage: Option<f64>,
    /// Whether the coverage deviates so far from 100 % that it is reported.
    pub coverage_remarkable: bool,
    /// The lost samples, if they are more than 1 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Fraction of the time in which the event was counting; 1 if it was not multiplexed.
    pub running: f64,
    /// Fraction of the CPUs' time in which the event counted; 1 unless a CPU was offline for a
    /// while. It is a factor of `coverage`.
    pub present: f64,
    /// Every downgrade, loss and doubt, one sentence each.
    pub findings: Vec<String>,
    /// Summary of the ledger and the verdict in one line.
    pub summary: String,
}

/// A row of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LedgerRow {
    /// The fate of the samples: "seen", "rejected", …
    pub what: String,
    /// Number of samples; for throttling, the number of times that it occurred.
    pub count: u64,
    /// Fraction of the samples seen; `None` if these samples are not a part of them.
    pub share: Option<f64>,
    /// Explanation of the row.
    pub meaning: String,
}

/// Returns the ledger and verdict of every event of a capture.
pub fn trust(capture: &Capture) -> Trust {
    let mut kept = vec![0u64; capture.meta.events.len()];
    for row in &capture.rows {
        if let Some(sum) = kept.get_mut(usize::from(row.event)) {
            *sum = sum.saturating_add(row.measures.count);
        }
    }
    let mut trust = trust_of(&capture.meta, &kept);
    for (at, event) in trust.events.iter_mut().enumerate() {
        event.findings.extend(who_fills_the_table(capture, at));
    }
    trust
}

/// Returns the ledger and verdict of every event of a capture whose rows are not in memory. `kept`
/// contains the number of samples in the rows of each event.
pub fn trust_of(meta: &Meta, kept: &[u64]) -> Trust {
    let events = meta.events.iter().zip(kept).map(|(e, kept)| {
        let held = Held { samples: kept.saturating_add(left_out(e)), selected: meta.selection.is_some() };
        event(e, held, meta.machine.cpus, meta.origin.is_some())
    });
    Trust { events: events.collect(), notes: meta.notes.clone() }
}

/// The samples that the rows of an event hold.
#[derive(Clone, Copy)]
struct Held {
    samples: u64,
    /// Whether they are a selection of the capture's samples.
    selected: bool,
}

fn event(event: &EventInfo, held: Held, cpus: u32, imported: bool) -> EventTrust {
    let (ledger, verdict) = (&event.ledger, &event.verdict);
    let has_ledger = !ledger.counters.is_empty();
    let seen = ledger.counter(Counter::Seen);
    let coverage = ledger.coverage().filter(|_| has_ledger);
    let delivered = ledger.delivered().filter(|_| has_ledger);
    let in_flight = event.in_flight(cpus) / ledger.event_count.max(1) as f64;
    let is_remarkable = |share: &f64| (share - 1.0).abs() > COVERAGE_SLACK + in_flight;
    let coverage_remarkable = coverage.is_some_and(|coverage| is_remarkable(&coverage));
    let running =
        if ledger.enabled_ns == 0 { 1.0 } else { ledger.running_ns as f64 / ledger.enabled_ns as f64 };
    let unaccounted = ledger.unaccounted();
    let closes = has_ledger && unaccounted == 0;
    let mut findings = verdict.findings.clone();
    findings.extend(losses(event, held, running, coverage_remarkable));
    if !has_ledger {
        findings.push("This capture has no ledger, so the number of missing samples is unknown.".to_owned());
    } else if unaccounted != 0 {
        findings.push(format!(
            "The ledger does not close: it is off by {} of the samples that the program saw. {}",
            thousands(unaccounted.unsigned_abs()),
            why_open(ledger)
        ));
    }
    findings.extend(offline(&ledger.gaps));
    if let Some(c) = delivered.filter(is_remarkable) {
        findings.push(format!(
            "The samples account for {} of the counted events: {}.",
            percent(c),
            if c < 1.0 {
                "some samples never reached the program, for example while another eBPF program or a \
                 bpf(2) call ran on the CPU"
            } else {
                "more than 100%, so the weights of the samples are doubtful"
            }
        ));
    }
    let mut rows = if has_ledger { rows(event, held, imported) } else { Vec::new() };
    let missed = ledger.expected.unwrap_or(0).saturating_sub(seen);
    if delivered.is_some_and(|share| is_remarkable(&share)) && missed > 0 && !rows.is_empty() {
        rows.push(LedgerRow {
            what: "missed".to_owned(),
            count: missed,
            share: None,
            meaning: "expected from the event's own counter, but never delivered".to_owned(),
        });
    }
    let mut summary = if verdict.precise { "precise" } else { "NOT PRECISE" }.to_owned();
    // Software events have no precise levels: a page fault is always exact, a timer never is.
    summary += &match (event.marks_exact, verdict.precise) {
        // IBS, and PMUs like it: to readers who know perf, level 0 means that nothing is exact.
        (true, true) if verdict.granted == 0 => " (at any level of this PMU)".to_owned(),
        (true, _) => format!(" (level {} granted)", verdict.granted),
        (false, true) => " (exact by the nature of the event)".to_owned(),
        (false, false) => String::new(),
    };
    if has_ledger && seen > 0 && event.marks_exact {
        summary += &format!(", {} of samples exact", part(ledger.counter(Counter::Exact), seen));
    }
    let lost = ledger.lost_total();
    if lost > 0 {
        summary += &format!("; {} LOST", part(lost, ledger.taken_total()));
    }
    summary += match (has_ledger, closes) {
        (false, _) => "; no ledger",
        (true, true) => "; ledger closes",
        (true, false) => "; LEDGER DOES NOT CLOSE",
    };
    if let Some(c) = coverage {
        summary += &format!("; coverage {}", percent(c));
    } else if imported {
        summary += "; coverage unknown";
    }
    EventTrust {
        event: event.name.clone(),
        precise: verdict.precise,
        requested: verdict.requested,
        granted: verdict.granted,
        ledger: rows,
        closes,
        unaccounted,
        event_count: ledger.event_count,
        expected: ledger.expected,
        coverage,
        coverage_remarkable,
        loss: Loss::of(ledger),
        running,
        present: ledger.present(),
        findings,
        summary,
    }
}

/// Returns a sentence on the CPUs that were offline during the run; `None` if all were sampled all
/// the time.
pub(crate) fn offline(gaps: &[CpuGap]) -> Option<String> {
    const APART: usize = 3;
    let (first, rest) = gaps.split_at(gaps.len().min(APART));
    let mut stretches: Vec<String> = first.iter().map(CpuGap::to_string).collect();
    if !rest.is_empty() {
        let seconds = rest.iter().map(|gap| gap.duration_ns() as f64 / 1e9).sum::<f64>();
        stretches.push(format!("{} more stretches, {seconds:.1} s in total", rest.len()));
    }
    let was = if gaps.len() == 1 { "The CPU was" } else { "These CPUs were" };
    (!gaps.is_empty()).then(|| format!("Not measured: {}. {was} offline.", stretches.join("; ")))
}

/// Returns the sentence that explains why a ledger does not close.
pub(super) fn why_open(ledger: &Ledger) -> String {
    let unknown: Vec<&str> = ledger.counters.unknown().map(|(name, _)| name).collect();
    if unknown.is_empty() {
        return "This is a bug in precise.".to_owned();
    }
    format!(
        "A newer version of precise wrote the capture, with counters that this version does not know ({}). Read it \
         with the newer version.",
        unknown.join(", ")
    )
}

fn rows(event: &EventInfo, held: Held, imported: bool) -> Vec<LedgerRow> {
    let ledger = &event.ledger;
    let seen = ledger.counter(Counter::Seen);
    let row = |what: String, count: u64, meaning: String| LedgerRow {
        what,
        count,
        share: (seen > 0).then(|| count as f64 / seen as f64),
        meaning,
    };
    let counted = |(counted, count): (Counted<'_>, u64)| {
        let meaning = imported.then(|| imported_meaning(counted)).flatten();
        row(counted.label(), count, meaning.map_or_else(|| counted.meaning(), str::to_owned))
    };
    let outside = |row: LedgerRow| LedgerRow { share: None, ..row };
    // These rows are shown even if they are zero, because readers look for them.
    let stays = |counted: Counted<'_>| match counted {
        Counted::Counter(Counter::Aggregated) => ledger.counter(Counter::Streamed) == 0,
        Counted::Counter(Counter::TableFull) => !imported,
        Counted::Counter(counter) => counter.fate() == Fate::Arrived,
        Counted::Clause(_) | Counted::Missed | Counted::Throttled => true,
        Counted::Discarded(_) => false,
    };
    let of = |is: &dyn Fn(Fate) -> bool| -> Vec<(Counted<'_>, u64)> {
        let numbers = ledger.numbers().filter(|(counted, _)| is(counted.fate()));
        numbers.filter(|(counted, count)| *count > 0 || stays(*counted)).collect()
    };
    let mut rows: Vec<LedgerRow> = Vec::new();
    rows.extend(of(&|fate| fate == Fate::Arrived).into_iter().map(counted));
    rows.extend(of(&|fate| fate == Fate::Rejected).into_iter().map(counted));
    for kept in of(&|fate| matches!(fate, Fate::Kept | Fate::Streamed)) {
        rows.push(counted(kept));
        // Samples that lack a fact have no row of their own; a finding reports how many there are.
        if let Counted::Counter(whole) = kept.0 {
            rows.extend(of(&|fate| fate == Fate::PartOf(whole)).into_iter().map(counted));
        }
    }
    rows.extend(of(&|fate| fate == Fate::Lost).into_iter().map(counted));
    rows.extend(of(&|fate| fate == Fate::Discarded).into_iter().map(counted));
    if held.samples != ledger.counter(Counter::Aggregated) {
        let (what, meaning) = match held.selected {
            true => ("selected", "samples in the selection"),
            false => ("in this capture", "samples in the rows of this capture"),
        };
        rows.push(row(what.to_owned(), held.samples, meaning.to_owned()));
    }
    let unknown = ledger.counters.unknown();
    rows.extend(unknown.map(|(name, count)| {
        outside(row(
            name.to_owned(),
            count,
            "a counter that this version of precise does not know".to_owned(),
        ))
    }));
    rows.push(outside(counted((Counted::Throttled, ledger.throttled))));
    if ledger.runaway.is_some() {
        let meaning = "times that precise stopped the event for good";
        rows.push(outside(row("stopped".to_owned(), 1, meaning.to_owned())));
    }
    rows.extend(of(&|fate| fate == Fate::Missed).into_iter().map(counted).map(outside));
    rows
}

/// Returns the meaning of a number for samples that come from a file instead of the BPF program;
/// `None` if the meaning is the same.
fn imported_meaning(counted: Counted<'_>) -> Option<&'static str> {
    match counted {
        Counted::Counter(Counter::Seen) => {
            Some("samples in the file, and those that the filter of perf rejected")
        }
        Counted::Counter(Counter::Aggregated) => Some("added to the capture"),
        Counted::Counter(Counter::ReadFailed) => {
            Some("lost: the record does not match its event or cannot be read")
        }
        _ => None,
    }
}

/// Returns the sentence about a loss in the BPF program.
fn lost_in_program(counter: Counter, count: u64, seen: u64) -> String {
    let part = part(count, seen);
    match counter {
        Counter::TableFull => {
            format!("The table was full for {part} of the samples seen, so rare combinations are missing.")
        }
        Counter::Late => format!(
            "{part} of the samples seen came after the deadline of the run, because precise was stopped or \
             the machine was too busy."
        ),
        other => format!("{part} of the samples seen were lost: {}.", other.info().meaning),
    }
}

/// Returns the losses and other gaps of an event, one sentence each.
fn losses(event: &EventInfo, held: Held, running: f64, coverage_remarkable: bool) -> Vec<String> {
    let ledger = &event.ledger;
    let (seen, aggregated) = (ledger.counter(Counter::Seen), ledger.counter(Counter::Aggregated));
    let mut findings = Vec::new();
    let mut say = |text: String| findings.push(text);
    for (counted, count) in ledger.losses() {
        if let Counted::Counter(counter) = counted {
            say(lost_in_program(counter, count, seen));
        }
    }
    let no_room = ledger.counter(Counter::LinesFull);
    if no_room > 0 {
        say(format!(
            "{no_room} HITM loads hit cache lines for which there was no slot, so more lines are shared \
             than shown. Record with more --lines."
        ));
    }
    let chainless = ledger.counter(Counter::StackFull);
    if chainless > 0 {
        say(format!(
            "The table of call chains was full for {} of the aggregated samples, which have no chain. \
             Record with more --stacks, or a shorter --epoch.",
            part(chainless, aggregated)
        ));
    }
    let in_guest = ledger.counter(Counter::InGuest);
    if in_guest > 0 {
        say(format!(
            "While {} of the aggregated samples were taken, a virtual machine's guest ran. They have \
             their process and no instruction: to see into the guest, record in it.",
            part(in_guest, aggregated)
        ));
    }
    if event.rates.len() > 1 {
        let times = event.rates.len() - 1;
        let (periods, frequencies) = (
            event.rates.iter().filter_map(|rate| rate.period),
            event.rates.iter().filter_map(|rate| rate.frequency),
        );
        let (what, least, most) = match (periods.clone().min().zip(periods.max()), frequencies.clone().min())
        {
            (Some((least, most)), _) => ("period", least, most),
            (None, least) => ("rate", least.unwrap_or(0), frequencies.max().unwrap_or(0)),
        };
        say(format!(
            "To stay within --overhead, the {what} was changed {}, between {} and \
             {}. Shares, averages, percentiles and order weigh each sample by the events that it \
             stands for.",
            counted(times as u64, "time"),
            thousands(least),
            thousands(most)
        ));
    }
    for (reason, count) in &ledger.discarded {
        if *count > 0 {
            say(format!("{} of the aggregated samples were discarded: {reason}.", part(*count, aggregated)));
        }
    }
    let discarded = ledger.discarded_total();
    let complete = held.selected || held.samples.saturating_add(discarded) == aggregated;
    if !ledger.counters.is_empty() && !complete {
        say(format!(
            "The rows hold {}, but {} were aggregated and not discarded.",
            counted(held.samples, "sample"),
            aggregated.saturating_sub(discarded)
        ));
    }
    if let Some(runaway) = &ledger.runaway {
        say(format!(
            "The event was {runaway}. Nothing was sampled after that. Ask for less with -F or -c, and please report this \
             with the kernel release (uname -r)."
        ));
    }
    if ledger.throttled > 0 && !only_idle_is_missing(event, coverage_remarkable) {
        say(format!(
            "The kernel throttled the event {}, so busy moments are under-represented.",
            counted(ledger.throttled, "time")
        ));
    }
    if ledger.lost > 0 {
        say(format!("The kernel lost {}.", counted(ledger.lost, "sample")));
    }
    if running < 0.995 {
        say(format!("The event was multiplexed: it counted {} of the time.", percent(running)));
    }
    let exact = ledger.counter(Counter::Exact);
    if event.verdict.precise && event.marks_exact && exact < seen {
        say(format!("{} of the samples are not marked as exact.", part(seen - exact, seen)));
    }
    for counter in Counter::ALL {
        let count = ledger.counter(*counter);
        if let Fate::Lacks(fact) = counter.fate()
            && event.fields.has(fact)
            && count > 0
        {
            say(format!("{} of the aggregated samples have no {}.", part(count, aggregated), fact.words()));
        }
    }
    findings
}

/// Formats a part of a whole in percent; `0.0%` if the whole is 0.
fn part(part: u64, whole: u64) -> String {
    percent(if whole == 0 { 0.0 } else { part as f64 / whole as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::Nowhere;
    use crate::explain::{ExplainOptions, Topic, explain};
    use crate::gates;
    use precise_model::Runaway;
    use precise_model::testing::CaptureBuilder;

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

        let many: Vec<CpuGap> =
            (0..5).map(|at| CpuGap { cpu: at, start_ns: 0, end_ns: 2_000_000_000 }).collect();
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
}
