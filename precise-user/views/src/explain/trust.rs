//! Findings that make the numbers of a capture doubtful.

use precise_common::ledger::Counter;

use super::{Finding, FindingUnit, Look, Number, Topic, thresholds};
use crate::idle::only_idle_is_missing;
use crate::stats::Share;
use crate::trust::{EventTrust, Trust, offline, why_open};
use precise_model::Counted;
use precise_model::digits::{percent, thousands};
use precise_model::{CompactSort as _, EventInfo, Ledger};

/// Returns one finding per doubt, worst first.
pub(crate) fn findings(look: &Look<'_>, trust: &Trust) -> Vec<Finding> {
    let events = look.capture.meta.events.iter().zip(&trust.events);
    let mut findings: Vec<_> = events.flat_map(|(info, trust)| of_event(look, info, trust)).collect();
    findings.compact_sort_by_key(|finding| finding.topic);
    findings
}

fn of_event(look: &Look<'_>, info: &EventInfo, trust: &EventTrust) -> Vec<Finding> {
    let ledger = &info.ledger;
    let seen = ledger.counter(Counter::Seen);
    let mut findings = Vec::new();
    let mut find = |topic, number: Option<Number>, threshold, says: String, details: Vec<String>| {
        findings.push(Finding {
            topic,
            event: info.name.clone(),
            number,
            threshold,
            says,
            details,
            command: look.command("report"),
        });
    };
    if !info.verdict.precise {
        let exact =
            (info.marks_exact && seen > 0).then(|| Share::wilson(ledger.counter(Counter::Exact), seen));
        let says = match exact {
            Some(_) => format!(
                "of the samples of {} are marked as exact by the hardware: function names are mostly \
                 right, but lines and instructions are not",
                info.name
            ),
            None => format!(
                "the instruction addresses of {} are not exact: function names are mostly right, but \
                 lines and instructions are not",
                info.name
            ),
        };
        find(Topic::NotPrecise, exact.map(Number::share), None, says, info.verdict.findings.clone());
    }
    if trust.ledger.is_empty() {
        let says = format!("{} has no ledger, so the number of missing samples is unknown", info.name);
        find(Topic::OpenLedger, None, None, says, Vec::new());
    } else if !trust.closes {
        let number = Number::counted(FindingUnit::Count, trust.unaccounted.unsigned_abs() as f64);
        let says = format!("samples of {} are missing from the ledger or counted twice", info.name);
        find(Topic::OpenLedger, Some(number), None, says, vec![why_open(ledger)]);
    }
    let (lost, taken) = (ledger.lost_total(), ledger.taken_total());
    if taken > 0 && lost as f64 / taken as f64 > thresholds::LOST {
        let number = Number::counted(FindingUnit::Share, lost as f64 / taken as f64);
        let says = format!("of the samples of {} are not in the capture", info.name);
        find(Topic::Lost, Some(number), Some(thresholds::LOST), says, losses(ledger, taken));
    }
    if let Some(coverage) = trust.coverage.filter(|_| trust.coverage_remarkable) {
        let says = if ledger.gaps.is_empty() {
            format!("of the events that {} counted are accounted for by its samples", info.name)
        } else {
            format!("of the run's CPU time and events are accounted for by the samples of {}", info.name)
        };
        let details = match offline(&ledger.gaps) {
            Some(offline) => vec![offline],
            None if coverage < 1.0 => {
                vec![
                    "Some samples never reached the program, so quiet moments may be over-represented."
                        .to_owned(),
                ]
            }
            None => vec!["That is more than 100%, so the weights of the samples are doubtful.".to_owned()],
        };
        find(Topic::Coverage, Some(Number::counted(FindingUnit::Share, coverage)), None, says, details);
    }
    if ledger.throttled > 0 && !only_idle_is_missing(info, trust.coverage_remarkable) {
        let number = Number::counted(FindingUnit::Count, ledger.throttled as f64);
        let says = format!("times the kernel stopped {}, because the event was too frequent", info.name);
        let details =
            vec!["Busy moments are under-represented. Record with a longer period (-c).".to_owned()];
        find(Topic::Throttled, Some(number), None, says, details);
    }
    if let Some(runaway) = &ledger.runaway {
        let says = format!("{} was {runaway}", info.name);
        let details =
            vec!["The capture has nothing of what came after. Ask for less with -F or -c.".to_owned()];
        find(Topic::Stopped, None, None, says, details);
    }
    findings
}

/// Returns one sentence for each cause of lost samples, with what to do about it.
fn losses(ledger: &Ledger, taken: u64) -> Vec<String> {
    let mut details = Vec::new();
    for (counted, count) in ledger.losses() {
        let how_many = format!("{} ({})", percent(count as f64 / taken as f64), thousands(count));
        let text = match counted {
            Counted::Counter(Counter::TableFull) => format!(
                "{how_many}: the kernel's table was full, so rare combinations are missing. Record with more \
                 --table-cells, or with fewer dimensions."
            ),
            Counted::Counter(Counter::Late) => format!(
                "{how_many}: they came after the deadline of the run, because precise was stopped or the machine was too busy."
            ),
            Counted::Counter(counter) => format!("{how_many}: {}.", counter.info().meaning),
            Counted::Discarded(reason) => format!("{how_many}: aggregated, then discarded: {reason}."),
            other => format!("{how_many}: {}.", other.meaning()),
        };
        details.push(text);
    }
    details
}
