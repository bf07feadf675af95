//! What became of the samples of a node, an hour and an event.

use std::collections::BTreeMap;

use precise_common::ledger::Fate;
use precise_model::{Counted, EventInfo};

/// The part of a capture that an hour has: of its samples, or if it has none, of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Portion {
    pub before: u64,
    pub inside: u64,
    pub total: u64,
}

impl Portion {
    /// Returns the hour's part of a number of the whole capture. The parts of all hours add up to
    /// the number.
    fn of(self, number: u64) -> u64 {
        let Self { before, inside, total } = self;
        let until = |part: u64| {
            let part = u128::from(number) * u128::from(part.min(total)) / u128::from(total.max(1));
            part as u64
        };
        until(before.saturating_add(inside)).saturating_sub(until(before))
    }
}

/// The sums of a row of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LedgerSums {
    pub captures: u64,
    pub sampled_ns: u64,
    pub cpus: u32,
    /// `None` if a capture has no such number.
    pub expected: Option<u64>,
    pub arrived: u64,
    pub kept: u64,
    pub rejected: u64,
    pub lost: u64,
    pub missed: u64,
    pub discarded: u64,
    pub samples: u64,
    /// Lost samples by reason.
    pub losses: BTreeMap<String, u64>,
    pub precise: bool,
    pub finding: Option<String>,
}

impl LedgerSums {
    /// Returns the portion of an event's ledger that an hour has.
    pub fn of(event: &EventInfo, portion: Portion) -> Self {
        let ledger = &event.ledger;
        let fate = |is: fn(Fate) -> bool| portion.of(ledger.total(is));
        let reason = |counted: Counted<'_>| match counted {
            Counted::Counter(counter) => counter.name().to_owned(),
            other => other.label(),
        };
        let losses = ledger.losses().map(|(counted, count)| (reason(counted), portion.of(count)));
        let verdict = &event.verdict;
        Self {
            captures: 1,
            sampled_ns: 0,
            cpus: 0,
            expected: ledger.expected.map(|expected| portion.of(expected)),
            arrived: fate(|fate| fate == Fate::Arrived),
            kept: fate(|fate| matches!(fate, Fate::Kept | Fate::Streamed)),
            rejected: fate(|fate| fate == Fate::Rejected),
            lost: fate(|fate| fate == Fate::Lost),
            missed: fate(|fate| fate == Fate::Missed),
            discarded: fate(|fate| fate == Fate::Discarded),
            samples: portion.inside,
            losses: losses.filter(|(_, count)| *count > 0).collect(),
            precise: verdict.precise,
            finding: verdict.findings.first().filter(|_| !verdict.precise).cloned(),
        }
    }

    /// Adds another capture of the same node, hour and event.
    pub fn add(&mut self, other: Self) {
        let Self { captures, sampled_ns, cpus, expected, arrived, kept, rejected, lost, .. } = other;
        for (total, more) in [
            (&mut self.captures, captures),
            (&mut self.sampled_ns, sampled_ns),
            (&mut self.arrived, arrived),
            (&mut self.kept, kept),
            (&mut self.rejected, rejected),
            (&mut self.lost, lost),
            (&mut self.missed, other.missed),
            (&mut self.discarded, other.discarded),
            (&mut self.samples, other.samples),
        ] {
            *total = total.saturating_add(more);
        }
        self.cpus = self.cpus.max(cpus);
        self.expected = self.expected.zip(expected).map(|(a, b)| a.saturating_add(b));
        for (reason, count) in other.losses {
            let total = self.losses.entry(reason).or_default();
            *total = total.saturating_add(count);
        }
        self.precise &= other.precise;
        // The same one in whatever order captures are added.
        self.finding = self.finding.take().into_iter().chain(other.finding).min();
    }

    /// Returns the lost samples by reason as a JSON object; `None` if there are none.
    pub fn losses_json(&self) -> Option<String> {
        (!self.losses.is_empty()).then(|| serde_json::to_string(&self.losses).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_portions_of_all_hours_add_up() {
        for number in [0, 1, 7, 1_000_003, u64::MAX] {
            let samples = [5_u64, 0, 17, 3];
            let total = samples.iter().sum();
            let (mut before, mut sum) = (0, 0);
            for inside in samples {
                sum += Portion { before, inside, total }.of(number);
                before += inside;
            }
            assert_eq!(sum, number);
            assert_eq!(Portion { before: 0, inside: total, total }.of(number), number);
        }
        assert_eq!(Portion::default().of(9), 0);
    }
}
