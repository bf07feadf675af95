//! The ledger of an event: where every sample went.
//!
//! Each number has a [`Fate`], and every sum over the ledger is made by fate: no code lists
//! counters by name.

use std::collections::BTreeMap;

use precise_common::ledger::{Counter, Fate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuGap, Runaway};

/// The ledger of an event: where every expected sample went. All numbers are samples unless stated
/// otherwise.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// The event's own count over all CPUs or tasks, in the event's unit.
    pub event_count: u64,
    /// The number of samples that the event's count should give: the sum over CPUs or tasks of
    /// count divided by period, rounded down. `None` in frequency mode.
    pub expected: Option<u64>,
    /// The time that the event was enabled, in nanoseconds, summed over CPUs or tasks.
    pub enabled_ns: u64,
    /// The time that the event was counting, in nanoseconds; less than `enabled_ns` if it was
    /// multiplexed.
    pub running_ns: u64,
    /// The counters of the BPF program.
    pub counters: Counters,
    /// The rejected samples by clause of the filter: the clause as text, and the number of samples
    /// that failed it first.
    pub rejected: Vec<(String, u64)>,
    /// How often the kernel throttled the event because its rate was too high:
    /// `PERF_RECORD_THROTTLE` records, and an estimate for the records that did not fit into the
    /// ring buffer.
    pub throttled: u64,
    /// The samples that never reached the BPF program: the kernel reported them lost
    /// (`PERF_RECORD_LOST_SAMPLES`) or delivered them without running the program; and unreadable
    /// records of the event's ring buffer.
    pub lost: u64,
    /// The aggregated samples that user space could not keep, by reason.
    pub discarded: BTreeMap<String, u64>,
    /// How long the sampled CPUs were idle, in nanoseconds, as the kernel measured it: the sum over
    /// the CPUs. `None` unless a timer sampled whole CPUs, and in older captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<u64>,
    /// Why precise stopped the event before the run ended. `None` if the event ran to the end, as
    /// almost every event does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runaway: Option<Runaway>,
    /// The stretches in which the event did not count on a CPU of the run, because the CPU was
    /// offline, in order of time. Events of tasks have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<CpuGap>,
}

/// The counters of the BPF program, by name.
///
/// A capture of a newer version may have counters that this version does not know. They are kept
/// unchanged, and [`Counters::unknown`] returns them.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Returns the value of `counter`; 0 if it never counted.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0.get(counter.name()).copied().unwrap_or(0)
    }

    /// Sets the value of `counter`.
    pub fn set(&mut self, counter: Counter, value: u64) {
        self.0.insert(counter.name().to_owned(), value);
    }

    /// Returns whether no counter has a value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the name and value of each counter that this version does not know.
    pub fn unknown(&self) -> impl Iterator<Item = (&str, u64)> {
        let unknown = self.0.iter().filter(|(name, _)| Counter::by_name(name).is_none());
        unknown.map(|(name, value)| (name.as_str(), *value))
    }
}

impl FromIterator<(Counter, u64)> for Counters {
    fn from_iter<I: IntoIterator<Item = (Counter, u64)>>(counters: I) -> Self {
        Self(counters.into_iter().map(|(counter, value)| (counter.name().to_owned(), value)).collect())
    }
}

impl<const N: usize> From<[(Counter, u64); N]> for Counters {
    fn from(counters: [(Counter, u64); N]) -> Self {
        counters.into_iter().collect()
    }
}

/// The subject of one number of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted<'a> {
    /// A counter of the BPF program.
    Counter(Counter),
    /// Samples that failed this clause of the filter first.
    Clause(&'a str),
    /// Aggregated samples that user space could not keep, for this reason.
    Discarded(&'a str),
    /// Samples that never reached the BPF program: [`Ledger::lost`].
    Missed,
    /// How often the kernel throttled the event.
    Throttled,
}

impl Counted<'_> {
    /// Returns the fate of the samples that the number counts.
    pub const fn fate(self) -> Fate {
        match self {
            Self::Counter(counter) => counter.fate(),
            Self::Clause(_) => Fate::Rejected,
            Self::Discarded(_) => Fate::Discarded,
            Self::Missed => Fate::Missed,
            Self::Throttled => Fate::Measure,
        }
    }

    /// Returns the label of the number in tables for people.
    pub fn label(self) -> String {
        match self {
            Self::Counter(counter) => counter.info().label.to_owned(),
            Self::Clause(_) => "rejected".to_owned(),
            Self::Discarded(reason) => format!("discarded: {reason}"),
            Self::Missed => "lost".to_owned(),
            Self::Throttled => "throttled".to_owned(),
        }
    }

    /// Returns the meaning of the number, for people: the fate of the samples, and the cause of a
    /// loss.
    pub fn meaning(self) -> String {
        match self {
            Self::Counter(counter) => {
                let meaning = counter.info().meaning;
                match counter.fate() {
                    Fate::Lost => format!("lost: {meaning}"),
                    Fate::PartOf(_) | Fate::Lacks(_) => format!("of these: {meaning}"),
                    _ => meaning.to_owned(),
                }
            }
            Self::Clause(clause) => format!("failed the clause: {clause}"),
            Self::Discarded(_) => "aggregated, then discarded".to_owned(),
            Self::Missed => "samples that the kernel reports as dropped".to_owned(),
            Self::Throttled => "times that the kernel stopped the event".to_owned(),
        }
    }
}

impl Ledger {
    /// Returns a counter of the BPF program; 0 if it never counted.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter)
    }

    /// Returns every number of the ledger that has a fate: the program's counters in the
    /// catalogue's order, the clauses of the filter, then the numbers that were counted outside of
    /// the program. Counters that this version does not know are not included.
    pub fn numbers(&self) -> impl Iterator<Item = (Counted<'_>, u64)> {
        let counters =
            Counter::ALL.iter().map(|counter| (Counted::Counter(*counter), self.counter(*counter)));
        let clauses = self.rejected.iter().map(|(clause, count)| (Counted::Clause(clause), *count));
        let discarded = self.discarded.iter().map(|(reason, count)| (Counted::Discarded(reason), *count));
        let outside = [(Counted::Throttled, self.throttled), (Counted::Missed, self.lost)];
        counters.chain(clauses).chain(discarded).chain(outside)
    }

    /// Returns the number of samples over all fates for which `is` returns true.
    pub fn total(&self, is: impl Fn(Fate) -> bool) -> u64 {
        let picked = self.numbers().filter(|(counted, _)| is(counted.fate()));
        picked.fold(0, |sum: u64, (_, count)| sum.saturating_add(count))
    }

    /// Returns the number of samples that the filter rejected.
    pub fn filtered_total(&self) -> u64 {
        self.rejected.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Returns the number of samples that the program saw and did not want: the filter rejected
    /// them, or they were precise's own.
    pub fn rejected_total(&self) -> u64 {
        self.total(|fate| fate == Fate::Rejected)
    }

    /// Returns the number of aggregated samples that user space could not keep.
    pub fn discarded_total(&self) -> u64 {
        self.total(|fate| fate == Fate::Discarded)
    }

    /// Returns the number of samples that were taken and lost: before the BPF program, in it, or
    /// after it.
    pub fn lost_total(&self) -> u64 {
        self.total(Fate::is_loss)
    }

    /// Returns the number of samples that were taken, as far as they were counted: those that the
    /// BPF program saw, and those that were lost before it. This is the base of a share of lost
    /// samples.
    pub fn taken_total(&self) -> u64 {
        self.total(Fate::is_taken)
    }

    /// Returns the causes of lost samples with their numbers, only those above 0.
    pub fn losses(&self) -> impl Iterator<Item = (Counted<'_>, u64)> {
        self.numbers().filter(|(counted, count)| counted.fate().is_loss() && *count > 0)
    }

    /// Returns the samples that arrived and ended in no counter; negative if more ended than
    /// arrived. A value other than zero is a bug, or is due to counters that this version does not
    /// know ([`Counters::unknown`]), which do not take part in the sum.
    pub fn unaccounted(&self) -> i64 {
        let (arrived, ended) = (self.total(|fate| fate == Fate::Arrived), self.total(Fate::ends));
        let difference = i128::from(arrived) - i128::from(ended);
        difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Returns the number of events that are accounted for: the sum of the periods of the samples
    /// that the program saw. A timer takes few samples on idle CPUs, so there the idle time counts
    /// instead, if it is known ([`Self::idle_ns`]): it is at most what the event counted and no
    /// sample of a busy CPU stands for.
    pub fn accounted(&self) -> u64 {
        let seen = self.counter(Counter::PeriodSeen);
        let missing = self.event_count.saturating_sub(seen);
        let of_idle = self.idle_ns.unwrap_or(0).saturating_sub(self.counter(Counter::PeriodIdle));
        seen.saturating_add(of_idle.min(missing))
    }

    /// Returns the coverage: the product of [`Self::delivered`] and [`Self::present`]. 1.0 means
    /// that the event counted on every CPU all the time, and that the samples represent all that it
    /// counted, or idle time. `None` if the event counted nothing.
    pub fn coverage(&self) -> Option<f64> {
        Some(self.delivered()? * self.present())
    }

    /// Returns the events that are [accounted](Self::accounted) for, divided by the event's own
    /// count. `None` if the event counted nothing.
    pub fn delivered(&self) -> Option<f64> {
        (self.event_count > 0).then(|| self.accounted() as f64 / self.event_count as f64)
    }

    /// Returns the part of the CPUs' time in which the event was enabled: 1.0 unless a CPU was
    /// offline for a while. The event's own count does not show such a stretch.
    pub fn present(&self) -> f64 {
        match self.gap_ns() {
            0 => 1.0,
            gap_ns => self.enabled_ns as f64 / self.enabled_ns.saturating_add(gap_ns) as f64,
        }
    }

    /// Returns the time in nanoseconds in which the event did not count, summed over CPUs.
    pub fn gap_ns(&self) -> u64 {
        self.gaps.iter().fold(0, |sum, gap| sum.saturating_add(gap.duration_ns()))
    }

    /// Returns the ledger of the time since the same event had the ledger `earlier`. What is not a
    /// number stays as it is: `gaps` are those of the whole run.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: u64, then: u64| now.saturating_sub(then);
        let clause = |(clause, now): &(String, u64)| {
            let then = earlier.rejected.iter().find(|(other, _)| other == clause);
            (clause.clone(), less(*now, then.map_or(0, |(_, count)| *count)))
        };
        let counter = |(name, now): (&String, &u64)| {
            (name.clone(), less(*now, earlier.counters.0.get(name).copied().unwrap_or(0)))
        };
        let discarded = |(reason, now): (&String, &u64)| {
            (reason.clone(), less(*now, earlier.discarded.get(reason).copied().unwrap_or(0)))
        };
        Self {
            event_count: less(self.event_count, earlier.event_count),
            expected: self.expected.map(|now| less(now, earlier.expected.unwrap_or(0))),
            enabled_ns: less(self.enabled_ns, earlier.enabled_ns),
            running_ns: less(self.running_ns, earlier.running_ns),
            counters: Counters(self.counters.0.iter().map(counter).collect()),
            rejected: self.rejected.iter().map(clause).collect(),
            throttled: less(self.throttled, earlier.throttled),
            lost: less(self.lost, earlier.lost),
            discarded: self.discarded.iter().map(discarded).collect(),
            idle_ns: self.idle_ns.map(|now| less(now, earlier.idle_ns.unwrap_or(0))),
            runaway: self.runaway,
            gaps: self.gaps.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a ledger with `count` in each number that has a fate.
    fn ledger(count: impl Fn(usize) -> u64) -> Ledger {
        let counters = Counter::ALL.iter().enumerate().map(|(at, counter)| (*counter, count(at)));
        let mut ledger = Ledger { counters: counters.collect(), ..Ledger::default() };
        let at = Counter::ALL.len();
        ledger.rejected = vec![("a".to_owned(), count(at)), ("b".to_owned(), count(at + 1))];
        ledger.discarded = [("late".to_owned(), count(at + 2)), ("lost".to_owned(), count(at + 3))].into();
        (ledger.throttled, ledger.lost) = (count(at + 4), count(at + 5));
        ledger
    }

    /// Returns the same ledger as `ledger`, closed: as many samples arrived as ended.
    fn closed(count: impl Fn(usize) -> u64) -> Ledger {
        let mut ledger = ledger(count);
        ledger.counters.set(Counter::Seen, ledger.total(Fate::ends));
        ledger
    }

    /// Returns a copy of a ledger in which the number at `at` is higher by `by`.
    fn raised(ledger: &Ledger, at: usize, by: u64) -> Ledger {
        let mut raised = ledger.clone();
        let Some((counted, count)) = ledger.numbers().nth(at) else { panic!("no number {at}") };
        let to = count + by;
        match counted {
            Counted::Counter(counter) => raised.counters.set(counter, to),
            Counted::Clause(clause) => {
                raised
                    .rejected
                    .iter_mut()
                    .filter(|(text, _)| text == clause)
                    .for_each(|(_, count)| *count = to);
            }
            Counted::Discarded(reason) => drop(raised.discarded.insert(reason.to_owned(), to)),
            Counted::Missed => raised.lost = to,
            Counted::Throttled => raised.throttled = to,
        }
        raised
    }

    proptest! {
        // A ledger closes by the fates of its numbers and by nothing else, whatever the numbers
        // are.
        #[test]
        fn each_number_moves_the_sums_of_its_fate(counts in prop::collection::vec(0u64..1 << 40, 32), by in 1u64..1 << 40) {
            let before = closed(|at| counts[at % counts.len()]);
            prop_assert_eq!(before.unaccounted(), 0);
            for (at, (counted, _)) in before.numbers().enumerate() {
                let after = raised(&before, at, by);
                let fate = counted.fate();
                let moved = |is: bool| if is { by } else { 0 };
                let open = match fate {
                    Fate::Arrived => by as i64,
                    fate if fate.ends() => -(by as i64),
                    _ => 0,
                };
                prop_assert_eq!(after.unaccounted(), open, "{:?}", counted);
                prop_assert_eq!(after.lost_total(), before.lost_total() + moved(fate.is_loss()), "{:?}", counted);
                prop_assert_eq!(after.taken_total(), before.taken_total() + moved(fate.is_taken()), "{:?}", counted);
                let rejected = moved(fate == Fate::Rejected);
                prop_assert_eq!(after.rejected_total(), before.rejected_total() + rejected, "{:?}", counted);
            }
        }

        // What a window adds to the ledger at its start gives the ledger at its end.
        #[test]
        fn the_ledger_since_a_moment_has_what_came_after_it(
            then in prop::collection::vec(0u64..1 << 40, 32), more in prop::collection::vec(0u64..1 << 40, 32)
        ) {
            let before = closed(|at| then[at % then.len()]);
            let after = closed(|at| then[at % then.len()] + more[at % more.len()]);
            prop_assert_eq!(after.since(&before), closed(|at| more[at % more.len()]));
            prop_assert_eq!(after.since(&before).unaccounted(), 0);
            prop_assert_eq!(before.since(&after).taken_total(), 0);
        }

        #[test]
        fn no_numbers_overflow(count: u64, seen: u64) {
            let mut ledger = ledger(|_| count);
            ledger.counters.set(Counter::Seen, seen);
            let _ = (ledger.unaccounted(), ledger.lost_total(), ledger.taken_total());
        }
    }

    // Written out once: the fates that numbers must have for the sums to mean what their docs
    // state.
    #[test]
    fn samples_end_where_they_should() {
        let all = ledger(|_| 1);
        let of = |is: fn(Fate) -> bool| -> Vec<String> {
            let numbers = all.numbers().filter(|(counted, _)| is(counted.fate()));
            numbers.map(|(counted, _)| counted.label()).collect()
        };
        assert_eq!(of(|fate| fate == Fate::Arrived), ["seen"]);
        assert_eq!(
            of(Fate::ends),
            [
                "aggregated",
                "streamed",
                "own",
                "table full",
                "no table",
                "late",
                "unreadable",
                "rejected",
                "rejected"
            ]
        );
        assert_eq!(
            of(Fate::is_loss),
            ["table full", "no table", "late", "unreadable", "discarded: late", "discarded: lost", "lost"]
        );
        assert_eq!((all.lost_total(), all.taken_total()), (7, 2));
    }

    #[test]
    fn a_cpu_that_was_offline_lowers_the_coverage() {
        let mut ledger = Ledger { event_count: 1000, enabled_ns: 15_000_000_000, ..Ledger::default() };
        ledger.counters.set(Counter::PeriodSeen, 1000);
        assert_eq!((ledger.coverage(), ledger.present()), (Some(1.0), 1.0));
        let gap = CpuGap { cpu: 1, start_ns: 3_200_000_000, end_ns: 8_200_000_000 };
        ledger.gaps.push(gap);
        assert_eq!((ledger.delivered(), ledger.coverage()), (Some(1.0), Some(0.75)));
        assert_eq!(gap.to_string(), "CPU 1 from 3.2 s to 8.2 s");
    }

    #[test]
    fn counters_keep_their_names_in_captures() {
        let ledger =
            Ledger { counters: [(Counter::Seen, 3), (Counter::Late, 1)].into(), ..Ledger::default() };
        let json = serde_json::to_value(&ledger).unwrap();
        assert_eq!(json["counters"], serde_json::json!({ "late": 1, "seen": 3 }));
        assert_eq!(serde_json::from_value::<Ledger>(json).unwrap(), ledger);
    }

    #[test]
    fn counters_of_a_newer_version_are_kept_and_end_no_sample() {
        let text = r#"{"event_count": 9, "expected": null, "enabled_ns": 0, "running_ns": 0, "rejected": [], "lost": 0,
            "throttled": 0, "discarded": {}, "counters": {"seen": 5, "aggregated": 3, "to_be": 2}}"#;
        let ledger: Ledger = serde_json::from_str(text).unwrap();
        assert_eq!(ledger.counters.unknown().collect::<Vec<_>>(), [("to_be", 2)]);
        assert_eq!((ledger.unaccounted(), ledger.lost_total()), (2, 0));
        assert_eq!(serde_json::to_value(&ledger).unwrap()["counters"]["to_be"], 2);
    }
}
