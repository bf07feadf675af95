//! What makes the numbers of a capture doubtful.

use super::{Finding, Look, Number, Topic, Unit, thresholds};
use crate::stats::Share;
use crate::trust::{EventTrust, Trust};
use precise_model::EventInfo;

/// One per doubt, worst first.
pub(crate) fn findings(look: &Look<'_>, trust: &Trust) -> Vec<Finding> {
    let events = look.capture.meta.events.iter().zip(&trust.events);
    let mut findings: Vec<_> = events.flat_map(|(info, trust)| of_event(look, info, trust)).collect();
    findings.sort_by_key(|finding| finding.topic);
    findings
}

fn of_event(look: &Look<'_>, info: &EventInfo, trust: &EventTrust) -> Vec<Finding> {
    let ledger = &info.ledger;
    let seen = ledger.counter("seen");
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
        let exact = (info.marks_exact && seen > 0).then(|| Share::wilson(ledger.counter("exact"), seen));
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
        let number = Number::counted(Unit::Count, trust.unaccounted.unsigned_abs() as f64);
        let says = format!(
            "samples of {} are missing from the ledger or counted twice: this is a bug in precise",
            info.name
        );
        find(Topic::OpenLedger, Some(number), None, says, Vec::new());
    }
    let inside = ["table_full", "table_missing", "read_failed"].iter().map(|name| ledger.counter(name));
    let discarded = ledger.discarded.values().copied();
    let inside = inside.chain(discarded).fold(0u64, u64::saturating_add);
    let lost = inside.saturating_add(ledger.lost);
    let due = seen.saturating_add(ledger.lost);
    if due > 0 && lost as f64 / due as f64 > thresholds::LOST {
        let number = Number::counted(Unit::Share, lost as f64 / due as f64);
        let says = format!("of the samples of {} are not in the capture", info.name);
        let table = ledger.counter("table_full");
        let details = if table > 0 {
            vec![
                "The kernel's table was full, so rare combinations are missing. Record with more \
                --table-cells, or with fewer dimensions."
                    .to_owned(),
            ]
        } else {
            Vec::new()
        };
        find(Topic::Lost, Some(number), Some(thresholds::LOST), says, details);
    }
    if let Some(coverage) = trust.coverage.filter(|_| trust.coverage_remarkable) {
        let says = format!("of the events that {} counted are accounted for by its samples", info.name);
        let details = vec![
            if coverage < 1.0 {
                "Some samples never reached the program, so quiet moments may be over-represented."
            } else {
                "That is more than 100%, so the weights of the samples are doubtful."
            }
            .to_owned(),
        ];
        find(Topic::Coverage, Some(Number::counted(Unit::Share, coverage)), None, says, details);
    }
    if ledger.throttled > 0 {
        let number = Number::counted(Unit::Count, ledger.throttled as f64);
        let says = format!("times the kernel stopped {}, because the event was too frequent", info.name);
        let details =
            vec!["Busy moments are under-represented. Record with a longer period (-c).".to_owned()];
        find(Topic::Throttled, Some(number), None, says, details);
    }
    findings
}
