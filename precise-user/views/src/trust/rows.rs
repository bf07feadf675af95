//! The rows of the ledger, as they are shown.

use precise_common::ledger::{Counter, Fate};
use precise_model::Counted;

use super::{LedgerOf, LedgerRow};

/// Returns the rows of a ledger, in the order in which samples pass these stages.
pub(super) fn of_ledger(of: &LedgerOf<'_>, imported: bool) -> Vec<LedgerRow> {
    let (ledger, held) = (&of.event.ledger, of.held);
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
    let with = |is: &dyn Fn(Fate) -> bool| -> Vec<(Counted<'_>, u64)> {
        let numbers = ledger.numbers().filter(|(counted, _)| is(counted.fate()));
        numbers.filter(|(counted, count)| *count > 0 || stays(*counted)).collect()
    };
    let mut rows: Vec<LedgerRow> = Vec::new();
    rows.extend(with(&|fate| fate == Fate::Arrived).into_iter().map(counted));
    rows.extend(with(&|fate| fate == Fate::Rejected).into_iter().map(counted));
    for kept in with(&|fate| matches!(fate, Fate::Kept | Fate::Streamed)) {
        rows.push(counted(kept));
        // Samples that lack a fact have no row of their own; a finding reports how many there are.
        if let Counted::Counter(whole) = kept.0 {
            rows.extend(with(&|fate| fate == Fate::PartOf(whole)).into_iter().map(counted));
        }
    }
    rows.extend(with(&|fate| fate == Fate::Lost).into_iter().map(counted));
    rows.extend(with(&|fate| fate == Fate::Discarded).into_iter().map(counted));
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
    rows.extend(with(&|fate| fate == Fate::Missed).into_iter().map(counted).map(outside));
    let missed = ledger.expected.unwrap_or(0).saturating_sub(seen);
    if of.delivered.is_some() && missed > 0 {
        rows.push(LedgerRow {
            what: "missed".to_owned(),
            count: missed,
            share: None,
            meaning: "expected from the event's own counter, but never delivered".to_owned(),
        });
    }
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
