//! The sentences about what a run lost, and about what makes its numbers doubtful.

use precise_common::ledger::{Counter, Fate};
use precise_model::digits::{counted, percent, thousands};
use precise_model::{Counted, CpuGap, Ledger, RateChange};

use super::{LedgerOf, part};
use crate::idle::only_idle_is_missing;

/// Returns every loss and doubt, one sentence each.
pub(super) fn doubts(of: &LedgerOf<'_>) -> Vec<String> {
    let ledger = &of.event.ledger;
    let mut doubts = losses(of);
    if ledger.counters.is_empty() {
        doubts.push("This capture has no ledger, so the number of missing samples is unknown.".to_owned());
    } else if ledger.unaccounted() != 0 {
        doubts.push(format!(
            "The ledger does not close: it is off by {} of the samples that the program saw. {}",
            thousands(ledger.unaccounted().unsigned_abs()),
            why_open(ledger)
        ));
    }
    doubts.extend(offline(&ledger.gaps));
    if let Some(delivered) = of.delivered {
        doubts.push(format!(
            "The samples account for {} of the counted events: {}.",
            percent(delivered),
            if delivered < 1.0 {
                "some samples never reached the program, for example while another eBPF program or a \
                 bpf(2) call ran on the CPU"
            } else {
                "more than 100%, so the weights of the samples are doubtful"
            }
        ));
    }
    doubts
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
pub(crate) fn why_open(ledger: &Ledger) -> String {
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
fn losses(of: &LedgerOf<'_>) -> Vec<String> {
    let (event, held) = (of.event, of.held);
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
            "{} HITM loads hit cache lines for which there was no slot, so more lines are shared than \
             shown. Record with more --lines.",
            thousands(no_room)
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
        say(changed_rate(&event.rates));
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
            thousands(aggregated.saturating_sub(discarded))
        ));
    }
    if let Some(runaway) = &ledger.runaway {
        say(format!(
            "The event was {runaway}. Nothing was sampled after that. Ask for less with -F or -c, and please report this \
             with the kernel release (uname -r)."
        ));
    }
    if ledger.throttled > 0 && !only_idle_is_missing(event, of.coverage_remarkable) {
        say(format!(
            "The kernel throttled the event {}, so busy moments are under-represented.",
            counted(ledger.throttled, "time")
        ));
    }
    if ledger.lost > 0 {
        say(format!("The kernel lost {}.", counted(ledger.lost, "sample")));
    }
    if of.running < 0.995 {
        say(format!("The event was multiplexed: it counted {} of the time.", percent(of.running)));
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

/// Returns the sentence about a period or a rate that was changed during the run.
fn changed_rate(rates: &[RateChange]) -> String {
    let periods = rates.iter().filter_map(|rate| rate.period);
    let frequencies = rates.iter().filter_map(|rate| rate.frequency);
    let (what, least, most) = match periods.clone().min().zip(periods.max()) {
        Some((least, most)) => ("period", least, most),
        None => ("rate", frequencies.clone().min().unwrap_or(0), frequencies.max().unwrap_or(0)),
    };
    format!(
        "To stay within --overhead, the {what} was changed {}, between {} and {}. Shares, averages, \
         percentiles and order weigh each sample by the events that it stands for.",
        counted(rates.len() as u64 - 1, "time"),
        thousands(least),
        thousands(most)
    )
}
