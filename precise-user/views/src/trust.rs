//! Is it true? Ledger and verdict of each event of a capture, in numbers and in words.

use schemars::JsonSchema;
use serde::Serialize;

use super::stats::astray;
use precise_model::{Capture, EventInfo, Meta, Precision};

/// Coverage may be this far from 1 before it is worth a line, beside what is in flight: one period per CPU.
pub const COVERAGE_SLACK: f64 = 0.01;

/// Ledger and verdict of every event of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trust {
    /// One per event of the capture, in its order.
    pub events: Vec<EventTrust>,
    /// Notes that belong to no single event.
    pub notes: Vec<String>,
}

impl Trust {
    /// Whether every event was precise, lost nothing and has a ledger that closes.
    pub fn is_clean(&self) -> bool {
        self.events.iter().all(|e| e.precise && e.closes && e.findings.is_empty())
    }
}

/// Ledger and verdict of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventTrust {
    /// The event's name.
    pub event: String,
    /// Whether the instruction addresses are exact.
    pub precise: bool,
    /// What the user asked for.
    pub requested: Precision,
    /// The level that the kernel granted, 0 to 3.
    pub granted: u8,
    /// Where the samples went, in the order of their way.
    pub ledger: Vec<LedgerRow>,
    /// Whether the ledger accounts for every sample that reached the program.
    pub closes: bool,
    /// Samples that no counter accounts for; negative when the counters add up to more than was seen.
    pub unaccounted: i64,
    /// The event's own count.
    pub event_count: u64,
    /// Samples that this count must have given at the fixed period; `None` where there was none.
    pub expected: Option<u64>,
    /// Part of the event's own count that the samples seen represent; `None` when the event counted nothing.
    pub coverage: Option<f64>,
    /// Whether the coverage is so far from 100 % that it must be said.
    pub coverage_remarkable: bool,
    /// Part of the time that the event was counting; 1 when it was not multiplexed.
    pub running: f64,
    /// Each step down, loss and doubt, one sentence each.
    pub findings: Vec<String>,
    /// Everything above in one line.
    pub summary: String,
}

/// One row of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LedgerRow {
    /// What became of the samples: "seen", "rejected", …
    pub what: String,
    /// Samples; for throttling, times.
    pub count: u64,
    /// Part of the samples seen; `None` where it is no part of them.
    pub share: Option<f64>,
    /// What the row means.
    pub meaning: String,
}

/// The trust of a capture.
pub fn trust(capture: &Capture) -> Trust {
    let mut kept = vec![0u64; capture.meta.events.len()];
    for row in &capture.rows {
        if let Some(sum) = kept.get_mut(usize::from(row.event)) {
            *sum = sum.saturating_add(row.measures.count);
        }
    }
    trust_of(&capture.meta, &kept)
}

/// The trust of a capture whose rows are not at hand; `kept` has the samples in the rows of each event.
pub fn trust_of(meta: &Meta, kept: &[u64]) -> Trust {
    let events = meta
        .events
        .iter()
        .zip(kept)
        .map(|(e, kept)| event(e, *kept, meta.machine.cpus, meta.origin.is_some()));
    Trust { events: events.collect(), notes: meta.notes.clone() }
}

fn event(event: &EventInfo, kept: u64, cpus: u32, imported: bool) -> EventTrust {
    let (ledger, verdict) = (&event.ledger, &event.verdict);
    let has_ledger = !ledger.counters.is_empty();
    let seen = ledger.counter("seen");
    let coverage = ledger.coverage().filter(|_| has_ledger);
    let in_flight = event
        .period
        .map_or(0.0, |period| period as f64 * f64::from(cpus.max(1)) / ledger.event_count.max(1) as f64);
    let in_flight = in_flight + astray(event, cpus) / ledger.event_count.max(1) as f64;
    let coverage_remarkable = coverage.is_some_and(|c| (c - 1.0).abs() > COVERAGE_SLACK + in_flight);
    let running =
        if ledger.enabled_ns == 0 { 1.0 } else { ledger.running_ns as f64 / ledger.enabled_ns as f64 };
    let unaccounted = ledger.unaccounted();
    let closes = has_ledger && unaccounted == 0;
    let mut findings = verdict.findings.clone();
    findings.extend(losses(event, kept, running));
    if !has_ledger {
        findings.push("This capture has no ledger, so the number of missing samples is unknown.".to_owned());
    } else if unaccounted != 0 {
        findings.push(format!(
            "The ledger does not close: it is off by {unaccounted} of the samples that the program saw. \
             This is a bug in precise."
        ));
    }
    if let Some(c) = coverage.filter(|_| coverage_remarkable) {
        findings.push(format!(
            "The samples account for {:.1}% of the counted events: {}.",
            c * 100.0,
            if c < 1.0 {
                "some samples never reached the program, for example while another eBPF program or a \
                 bpf(2) call ran on the CPU"
            } else {
                "more than 100%, so the weights of the samples are doubtful"
            }
        ));
    }
    let mut rows = if has_ledger { rows(event, kept, imported) } else { Vec::new() };
    let missed = ledger.expected.unwrap_or(0).saturating_sub(seen);
    if coverage_remarkable && missed > 0 && !rows.is_empty() {
        rows.push(LedgerRow {
            what: "missed".to_owned(),
            count: missed,
            share: None,
            meaning: "expected from the event's own counter, but never delivered".to_owned(),
        });
    }
    let mut summary = if verdict.precise { "precise" } else { "NOT PRECISE" }.to_owned();
    // Software events have no levels: a page fault is exact by its nature, a timer never is.
    summary += &match (event.marks_exact, verdict.precise) {
        (true, _) => format!(" (level {} granted)", verdict.granted),
        (false, true) => " (exact by the nature of the event)".to_owned(),
        (false, false) => String::new(),
    };
    if has_ledger && seen > 0 && event.marks_exact {
        summary += &format!(", {} of samples exact", percent(ledger.counter("exact"), seen));
    }
    let lost = ledger.counter("table_full").saturating_add(ledger.counter("table_missing"));
    if lost > 0 {
        summary += &format!("; {} LOST in the table", percent(lost, seen));
    }
    summary += match (has_ledger, closes) {
        (false, _) => "; no ledger",
        (true, true) => "; ledger closes",
        (true, false) => "; LEDGER DOES NOT CLOSE",
    };
    if let Some(c) = coverage {
        summary += &format!("; coverage {:.1}%", c * 100.0);
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
        running,
        findings,
        summary,
    }
}

fn rows(event: &EventInfo, kept: u64, imported: bool) -> Vec<LedgerRow> {
    let ledger = &event.ledger;
    let seen = ledger.counter("seen");
    let row = |what: &str, count: u64, meaning: &str| LedgerRow {
        what: what.to_owned(),
        count,
        share: (seen > 0).then(|| count as f64 / seen as f64),
        meaning: meaning.to_owned(),
    };
    let (seen_where, added_where) = if imported {
        ("samples in the file, and those that the filter of perf rejected", "added to the capture")
    } else {
        ("samples that reached the program", "added to the table")
    };
    let mut rows = vec![row("seen", seen, seen_where)];
    for (clause, count) in &ledger.rejected {
        rows.push(row("rejected", *count, &format!("failed the clause: {clause}")));
    }
    rows.push(row("aggregated", ledger.counter("aggregated"), added_where));
    for (name, what, meaning) in [
        (
            "not_promoted",
            "other lines",
            "of these: kept without an address, because no HITM load was \
            seen on their line",
        ),
        (
            "lines_full",
            "no slot",
            "of these: HITM loads without an address, because all --lines are in \
            use",
        ),
        ("table_full", "table full", "lost: no free cell in the table"),
        ("table_missing", "no table", "lost: taken on a CPU that came online later"),
        ("late", "late", "lost: user space missed its deadline"),
        ("read_failed", "unreadable", "lost: the record does not match its event or cannot be read"),
    ] {
        let count = ledger.counter(name);
        // A full table is what users look for: it is there also when it is zero.
        if count > 0 || (name == "table_full" && !imported) {
            rows.push(row(what, count, meaning));
        }
    }
    for (name, meaning) in [
        ("stack_full", "no call chain: the table of chains was full"),
        ("stack_not_given", "no call chain: the kernel delivered none"),
        ("stack_unreadable", "no call chain: the chain could not be read"),
    ] {
        let count = ledger.counter(name);
        if count > 0 {
            rows.push(LedgerRow { share: None, ..row("  without chain", count, meaning) });
        }
    }
    for (reason, count) in &ledger.discarded {
        rows.push(row(&format!("discarded: {reason}"), *count, "aggregated, then discarded"));
    }
    if kept != ledger.counter("aggregated") {
        rows.push(row("in this capture", kept, "samples in the rows of this capture"));
    }
    let outside =
        |what: &str, count: u64, meaning: &str| LedgerRow { share: None, ..row(what, count, meaning) };
    rows.push(outside("throttled", ledger.throttled, "times that the kernel stopped the event"));
    rows.push(outside("lost", ledger.lost, "samples that the kernel reports as dropped"));
    rows
}

/// What is missing, in words.
fn losses(event: &EventInfo, kept: u64, running: f64) -> Vec<String> {
    let ledger = &event.ledger;
    let (seen, aggregated) = (ledger.counter("seen"), ledger.counter("aggregated"));
    let mut findings = Vec::new();
    let mut say = |text: String| findings.push(text);
    let full = ledger.counter("table_full");
    if full > 0 {
        say(format!(
            "The table was full for {} of the samples seen, so rare combinations are missing.",
            percent(full, seen)
        ));
    }
    let no_room = ledger.counter("lines_full");
    if no_room > 0 {
        say(format!(
            "{no_room} HITM loads hit cache lines for which there was no slot, so more lines are shared \
             than shown. Record with more --lines."
        ));
    }
    let chainless = ledger.counter("stack_full");
    if chainless > 0 {
        say(format!(
            "The table of call chains was full for {} of the aggregated samples, which have no chain. \
             Record with more --stacks, or a shorter --epoch.",
            percent(chainless, aggregated)
        ));
    }
    let late = ledger.counter("late");
    if late > 0 {
        say(format!(
            "{} of the samples seen came after the deadline of the run, because precise was stopped or \
             the machine was too busy.",
            percent(late, seen)
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
            "To stay within --overhead, the {what} was changed {times} times, between {least} and \
             {most}. Shares, averages, percentiles and order weigh each sample by the events that it \
             stands for."
        ));
    }
    let other = ledger.counter("table_missing").saturating_add(ledger.counter("read_failed"));
    if other > 0 {
        say(format!(
            "{} of the samples seen could not be read, or their CPU had no table.",
            percent(other, seen)
        ));
    }
    let discarded = ledger.discarded.values().fold(0u64, |sum, n| sum.saturating_add(*n));
    if discarded > 0 {
        say(format!("{} of the aggregated samples were discarded.", percent(discarded, aggregated)));
    }
    if !ledger.counters.is_empty() && kept.saturating_add(discarded) != aggregated {
        say(format!(
            "The rows hold {kept} samples, but {} were aggregated and not discarded.",
            aggregated.saturating_sub(discarded)
        ));
    }
    if ledger.throttled > 0 {
        say(format!(
            "The kernel throttled the event {} times, so busy moments are under-represented.",
            ledger.throttled
        ));
    }
    if ledger.lost > 0 {
        say(format!("The kernel lost {} samples.", ledger.lost));
    }
    if running < 0.995 {
        say(format!("The event was multiplexed: it counted {:.1}% of the time.", running * 100.0));
    }
    let exact = ledger.counter("exact");
    if event.verdict.precise && event.marks_exact && exact < seen {
        say(format!("{} of the samples are not marked as exact.", percent(seen - exact, seen)));
    }
    for (wanted, name, what) in [
        (event.fields.address, "no_address", "data address"),
        (event.fields.data_source, "no_data_source", "memory level"),
        (event.fields.latency, "no_latency", "latency"),
        (event.fields.outcome, "no_raw", "record of the IBS registers"),
    ] {
        let count = ledger.counter(name);
        if wanted && count > 0 {
            say(format!("{} of the aggregated samples have no {what}.", percent(count, aggregated)));
        }
    }
    findings
}

fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    // Neither "0.0%" for something nor "100.0%" for not all.
    match share {
        s if part > 0 && s < 0.001 => "less than 0.1%".to_owned(),
        s if part < whole && s > 0.999 => "more than 99.9%".to_owned(),
        s => format!("{:.1}%", s * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use precise_model::testing::Builder;

    #[test]
    fn a_clean_run() {
        let mut builder = Builder::new();
        builder.cell().samples(1000);
        let trust = trust(&builder.build());
        assert!(trust.is_clean(), "{trust:?}");
        assert_eq!(
            trust.events[0].summary,
            "precise (level 2 granted), 100.0% of samples exact; ledger closes; coverage 100.0%"
        );
    }

    #[test]
    fn everything_that_can_go_wrong_is_said() {
        let mut builder = Builder::new();
        builder.cell().samples(1000);
        let mut capture = builder.build();
        let event = &mut capture.meta.events[0];
        event.verdict.precise = false;
        event.verdict.granted = 0;
        let ledger = &mut event.ledger;
        for (name, count) in [("seen", 1500), ("table_full", 100), ("no_address", 1), ("exact", 0)] {
            ledger.counters.insert(name.to_owned(), count);
        }
        ledger.rejected = vec![("latency > 30".to_owned(), 399)];
        ledger.event_count *= 2;
        ledger.running_ns /= 4;
        (ledger.throttled, ledger.lost) = (3, 4);
        let event = &trust(&capture).events[0];
        assert_eq!(event.unaccounted, 1);
        assert!(!event.closes && event.coverage_remarkable);
        assert_eq!(
            event.summary,
            "NOT PRECISE (level 0 granted), 0.0% of samples exact; 6.7% LOST in the table; LEDGER DOES NOT CLOSE; coverage 50.0%"
        );
        assert_eq!(
            event.findings,
            [
                "The table was full for 6.7% of the samples seen, so rare combinations are missing.",
                "The kernel throttled the event 3 times, so busy moments are under-represented.",
                "The kernel lost 4 samples.",
                "The event was multiplexed: it counted 25.0% of the time.",
                "0.1% of the aggregated samples have no data address.",
                "The ledger does not close: it is off by 1 of the samples that the program saw. This is a bug in precise.",
                "The samples account for 50.0% of the counted events: some samples never reached the program, for example while another eBPF program or a bpf(2) call ran on the CPU.",
            ]
        );
    }

    #[test]
    fn an_import_without_a_ledger_says_so() {
        let mut builder = Builder::new();
        builder.cell();
        let mut capture = builder.build();
        capture.meta.events[0].ledger = Default::default();
        let event = &trust(&capture).events[0];
        assert_eq!(event.summary, "precise (level 2 granted); no ledger");
        assert_eq!(event.findings.len(), 1);
    }
}
