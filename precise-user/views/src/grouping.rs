//! Groups rows by keys. The tables of all views are made of such groups.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::stats::{Estimate, Histogram, Percentile, Samples, Share, Weight, astray};
use super::thread_names::name_threads;
use super::weighing::Weighing;
use precise_model::keys::{Key, Sort};
use precise_model::values::{RawValue, Value};
use precise_model::{Capture, Interner, Measures, Row};

/// The groups of one event.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct Groups {
    /// Sums over all rows that were included. Shares are relative to these.
    pub total: Measures,
    /// Estimated number of events that all samples stand for. Present if sample periods vary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// The groups, in order. With too few samples the order means nothing.
    #[serde(rename = "groups")]
    pub list: Vec<Group>,
    /// Number of groups that the limit left out, and their sums.
    pub left_out: (usize, Measures),
    /// Share of the groups that the limit left out.
    #[serde(skip)]
    pub left_out_share: Share,
    /// Number of samples that a ranking needs. Present if there are fewer.
    pub too_few: Option<u64>,
}

/// The rows with one combination of key values.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Group {
    /// One value per group key.
    pub values: Vec<Value>,
    /// The sums over the rows of the group.
    pub measures: Measures,
    /// Fraction of the event's samples, with its interval. If the governor changed the period,
    /// fraction of the events that the samples stand for.
    pub share: Share,
    /// Estimated number of events that the samples stand for. Present if sample periods vary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Fraction of the events that all samples stand for.
    pub period_share: Share,
    /// Fraction of the sum of all latencies; `None` without latencies.
    pub latency_share: Option<Share>,
    /// Average latency, in core cycles; `None` without latencies.
    pub average: Option<f64>,
    /// Median latency. `None` unless the capture has latency buckets and the group has enough
    /// samples, as for the other percentiles.
    pub p50: Option<Percentile>,
    /// 90th percentile of the latency.
    pub p90: Option<Percentile>,
    /// 99th percentile of the latency.
    pub p99: Option<Percentile>,
    /// 99.9th percentile of the latency.
    pub p999: Option<Percentile>,
}

/// Describes how rows are grouped.
pub(crate) struct Grouping<'a> {
    /// The capture with the rows.
    pub capture: &'a Capture,
    /// The index of the event.
    pub event: usize,
    /// Group keys, outermost first.
    pub by: &'a [Key],
    /// The order of the groups.
    pub sort: Sort,
    /// Number of groups to keep; `None` keeps all.
    pub limit: Option<usize>,
    /// Minimum number of samples for a ranking.
    pub min_samples: u64,
}

/// Sums over rows.
#[derive(Clone, Default)]
pub(crate) struct Sum {
    pub measures: Measures,
    /// All samples.
    pub samples: Samples,
    /// Samples that have a latency, as far as is known.
    pub timed: Samples,
    /// Histogram of latencies, if the run recorded latency as a dimension.
    pub histogram: Option<Histogram>,
    /// Number of events that the samples stand for.
    period: Weight,
    /// Latencies, weighted like their samples.
    latency: Weight,
}

impl Sum {
    /// Adds a row.
    pub fn add(&mut self, row: &Row, weighing: Weighing) {
        let (measures, samples, latency) = (&row.measures, weighing.samples(row), weighing.latency(row));
        self.measures.add(measures);
        self.samples.add(samples);
        self.period.add(Weight::even(measures.period_sum, measures.count));
        self.latency.add(latency);
        match row.latency_bucket {
            Some(bucket) => {
                self.timed.add(samples);
                self.histogram.get_or_insert_default().add_known(bucket, samples, latency.sum);
            }
            // Without latency buckets it is unknown which samples had a latency, so all of them
            // count.
            None if !weighing.buckets => self.timed.add(samples),
            None => {}
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        self.measures.add(&other.measures);
        self.samples.add(other.samples);
        self.timed.add(other.timed);
        self.period.add(other.period);
        self.latency.add(other.latency);
        if let Some(histogram) = &other.histogram {
            self.histogram.get_or_insert_default().merge(histogram);
        }
    }

    /// Returns the average latency of the samples that have one, in core cycles.
    pub fn average(&self) -> Option<f64> {
        (self.timed.count > 0).then(|| self.latency.sum / self.timed.weight.sum)
    }

    /// Returns the events that the samples stand for.
    pub fn events(&self) -> Weight {
        self.period
    }

    /// Returns the weighted sum of all latencies, in core cycles. Groups are ordered by it.
    pub fn latency(&self) -> f64 {
        self.latency.sum
    }

    /// Returns a percentile of the latencies; `fraction` is between 0 and 1.
    pub fn percentile(&self, fraction: f64) -> Option<Percentile> {
        let histogram = self.histogram.as_ref()?;
        Some(histogram.percentile(fraction)?.at_most(self.measures.latency_max))
    }

    /// Returns the fraction of the latencies of `whole`.
    pub fn latency_share(&self, whole: &Self) -> Share {
        Share::weighted(self.latency, whole.latency)
    }

    /// Returns the sum as a group whose shares are relative to `whole`.
    pub fn group(&self, values: Vec<Value>, whole: &Self, has_latency: bool) -> Group {
        Group {
            values,
            share: self.samples.share_of(whole.samples),
            estimate: None,
            period_share: Share::weighted(self.period, whole.period),
            latency_share: self.average().filter(|_| has_latency).map(|_| self.latency_share(whole)),
            average: self.average().filter(|_| has_latency),
            p50: self.percentile(0.5),
            p90: self.percentile(0.9),
            p99: self.percentile(0.99),
            p999: self.percentile(0.999),
            measures: self.measures,
        }
    }
}

/// What the order of groups needs of their sums.
#[derive(Clone, Copy, Default)]
struct Rank {
    samples: Samples,
    latency: f64,
}

impl Rank {
    fn of(sum: &Sum) -> Self {
        Self { samples: sum.samples, latency: sum.latency() }
    }
}

/// Values by key. A key that is known already is looked up without a list of its own.
struct ByKey<T> {
    /// The number of values of each key.
    width: usize,
    /// The values of all keys, in the order in which they were met.
    keys: Vec<RawValue>,
    values: Vec<T>,
    places: Interner,
}

impl<T: Default> ByKey<T> {
    fn new(by: &[Key]) -> Self {
        Self { width: by.len(), keys: Vec::new(), values: Vec::new(), places: Interner::default() }
    }

    /// Returns the value of a key, which is added if it is new.
    fn of(&mut self, key: &[RawValue]) -> &mut T {
        let Self { width, keys, values, places } = self;
        let is_at = |place: usize| keys.get(place * *width..(place + 1) * *width) == Some(key);
        let place = places.index(&key, values.len(), is_at) as usize;
        if place == values.len() {
            keys.extend_from_slice(key);
            values.push(T::default());
        }
        &mut values[place]
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the key at a place.
    fn key(&self, place: usize) -> &[RawValue] {
        &self.keys[place * self.width..][..self.width]
    }

    /// Returns the keys and their values.
    fn all(&self) -> impl Iterator<Item = (&[RawValue], &T)> {
        self.values.iter().enumerate().map(|(place, value)| (self.key(place), value))
    }

    /// Returns the keys and their values.
    fn into_all(mut self) -> Vec<(Vec<RawValue>, T)> {
        let values = std::mem::take(&mut self.values);
        values.into_iter().enumerate().map(|(place, value)| (self.key(place).to_vec(), value)).collect()
    }
}

/// The sums of groups in their order, the number and the sum of those beyond the limit, and the sum
/// of all.
struct Parts {
    groups: Vec<(Vec<RawValue>, Sum)>,
    left_out: (usize, Sum),
    whole: Sum,
}

impl<'a> Grouping<'a> {
    /// Returns how the rows of the event are weighted.
    pub fn weighing(&self) -> Weighing {
        Weighing::of(self.capture, self.event)
    }

    /// Returns the event's rows.
    pub fn rows(&self) -> impl Iterator<Item = &'a Row> + use<'a> {
        let event = self.event;
        self.capture.rows.iter().filter(move |row| usize::from(row.event) == event)
    }

    /// Sums the rows for which `keep` returns true, by key and in total.
    pub fn sums(&self, mut keep: impl FnMut(&Row) -> bool) -> (Vec<(Vec<RawValue>, Sum)>, Sum) {
        let weighing = self.weighing();
        let (mut groups, mut whole) = (ByKey::<Sum>::new(self.by), Sum::default());
        let mut key = Vec::with_capacity(self.by.len());
        for row in self.rows().filter(|row| keep(row)) {
            self.fill(&mut key, row);
            groups.of(&key).add(row, weighing);
            whole.add(row, weighing);
        }
        (groups.into_all(), whole)
    }

    /// Returns the groups of the rows for which `keep` returns true, in order.
    pub fn groups(&self, keep: impl FnMut(&Row) -> bool) -> Groups {
        let Parts { groups, left_out: (others, rest), whole } = match (self.limit, self.sort) {
            (Some(limit), Sort::Samples | Sort::Latency) => self.first(limit, keep),
            _ => self.all(keep),
        };
        let total = whole.measures;
        let too_few = (total.count < self.min_samples).then_some(self.min_samples);
        let left_out_share = rest.samples.share_of(whole.samples);
        let left_out = (others, rest.measures);
        let has_latency = self.capture.meta.events.get(self.event).is_some_and(|e| e.fields.latency);
        let event = self.capture.meta.events.get(self.event);
        let varies = event.is_some_and(|event| event.period.is_none());
        let slack = event.map_or(0.0, |event| astray(event, self.capture.meta.machine.cpus));
        let estimate = |sum: &Sum| varies.then(|| Estimate::of(sum.period, slack));
        let mut list: Vec<Group> = groups
            .into_iter()
            .map(|(key, sum)| Group {
                estimate: estimate(&sum),
                ..sum.group(self.values(&key), &whole, has_latency)
            })
            .collect();
        name_threads(self.capture, self.by, list.iter_mut().map(|group| &mut group.values));
        Groups { total, estimate: estimate(&whole), list, left_out, left_out_share, too_few }
    }

    /// Returns the sums of all groups, of which the first are kept.
    fn all(&self, keep: impl FnMut(&Row) -> bool) -> Parts {
        let (mut groups, whole) = self.sums(keep);
        self.sort(&mut groups);
        let others = groups.split_off(self.limit.unwrap_or(groups.len()).min(groups.len()));
        let mut rest = Sum::default();
        others.iter().for_each(|(_, sum)| rest.merge(sum));
        Parts { groups, left_out: (others.len(), rest), whole }
    }

    /// Returns the sums of the first groups. The order of the others needs less of them than a sum,
    /// which takes several times as much: there may be as many groups as samples.
    fn first(&self, limit: usize, mut keep: impl FnMut(&Row) -> bool) -> Parts {
        let weighing = self.weighing();
        let mut ranks = ByKey::<Rank>::new(self.by);
        let mut key = Vec::with_capacity(self.by.len());
        for row in self.rows().filter(|row| keep(row)) {
            self.fill(&mut key, row);
            let rank = ranks.of(&key);
            rank.samples.add(weighing.samples(row));
            rank.latency += weighing.latency(row).sum;
        }
        let all = ranks.len();
        let mut first: Vec<(Vec<RawValue>, Rank)> = Vec::new();
        let cut = |first: &mut Vec<(Vec<RawValue>, Rank)>| {
            first.sort_by(|(key_a, a), (key_b, b)| self.compare((key_a, a), (key_b, b)));
            first.truncate(limit);
        };
        let mut last = None;
        for group in ranks.all() {
            // Most groups are behind the last of the first so far.
            let last_so_far = last.and_then(|at: usize| first.get(at));
            if last_so_far.is_some_and(|(key, rank)| self.compare(group, (key, rank)).is_gt()) {
                continue;
            }
            let (key, rank) = group;
            first.push((key.to_vec(), *rank));
            if first.len() >= limit.saturating_mul(2).max(1024) {
                cut(&mut first);
                last = limit.checked_sub(1);
            }
        }
        cut(&mut first);

        let places: FxHashMap<&[RawValue], usize> =
            first.iter().enumerate().map(|(place, (key, _))| (&**key, place)).collect();
        let mut sums = vec![Sum::default(); first.len()];
        let (mut rest, mut whole) = (Sum::default(), Sum::default());
        for row in self.rows().filter(|row| keep(row)) {
            self.fill(&mut key, row);
            let place = places.get(&*key).and_then(|place| sums.get_mut(*place));
            place.unwrap_or(&mut rest).add(row, weighing);
            whole.add(row, weighing);
        }
        let others = all - first.len();
        let groups = first.into_iter().map(|(key, _)| key).zip(sums).collect();
        Parts { groups, left_out: (others, rest), whole }
    }

    /// Returns the key values of a row, in compact form.
    pub fn key(&self, row: &Row) -> Vec<RawValue> {
        self.by.iter().map(|key| RawValue::of(self.capture, row, *key)).collect()
    }

    /// Replaces `key` by the key values of a row: millions of rows need no list of their own.
    pub fn fill(&self, key: &mut Vec<RawValue>, row: &Row) {
        key.clear();
        key.extend(self.by.iter().map(|key| RawValue::of(self.capture, row, *key)));
    }

    /// Returns the values that a compact key stands for.
    pub fn values(&self, key: &[RawValue]) -> Vec<Value> {
        key.iter().zip(self.by).map(|(atom, key)| atom.value_beside(self.capture, *key, self.by)).collect()
    }

    /// Sorts groups by the requested measure, and groups of equal measure by their keys, so that a
    /// report is always the same.
    pub fn sort(&self, groups: &mut [(Vec<RawValue>, Sum)]) {
        groups.sort_by(|(key_a, a), (key_b, b)| {
            let first = match self.sort {
                Sort::Samples | Sort::Latency => Ordering::Equal,
                Sort::Period => b.measures.period_sum.cmp(&a.measures.period_sum),
                Sort::Average => b.average().unwrap_or(-1.0).total_cmp(&a.average().unwrap_or(-1.0)),
                Sort::Maximum => b.measures.latency_max.cmp(&a.measures.latency_max),
                Sort::Key(key) => match self.by.iter().position(|k| *k == key) {
                    Some(at) => key_a[at].compare(&key_b[at], self.capture),
                    None => Ordering::Equal,
                },
            };
            first.then_with(|| self.compare((key_a, &Rank::of(a)), (key_b, &Rank::of(b))))
        });
    }

    /// Compares groups by samples or latency, if one of these is the requested measure, then by the
    /// number of samples and their keys.
    fn compare(&self, (key_a, a): (&[RawValue], &Rank), (key_b, b): (&[RawValue], &Rank)) -> Ordering {
        let first = match self.sort {
            Sort::Samples => b.samples.order(&a.samples),
            Sort::Latency => b.latency.total_cmp(&a.latency),
            _ => Ordering::Equal,
        };
        let keys = || {
            let mut pairs = key_a.iter().zip(key_b).map(|(a, b)| a.compare(b, self.capture));
            pairs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        first.then(b.samples.count.cmp(&a.samples.count)).then_with(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use precise_model::testing::CaptureBuilder;

    /// The first groups are those of the order of all, however many there are.
    #[test]
    fn the_first_groups_are_the_first_of_all() {
        let mut builder = CaptureBuilder::new();
        for row in 0..5000_u32 {
            let cell = builder.cell().samples(1 + u64::from(row * 7919 % 5)).latency(row * 31 % 900);
            let _ = cell.process(row % 2500, &format!("job-{}", row % 40));
        }
        let capture = builder.build();
        for sort in [Sort::Samples, Sort::Latency] {
            for by in [&[Key::Pid][..], &[Key::Process, Key::Pid]] {
                let limit = Some(7);
                let grouping = Grouping { capture: &capture, event: 0, by, sort, limit, min_samples: 0 };
                let keep = |row: &Row| !row.pid.is_multiple_of(3);
                let (first, all) = (grouping.first(7, keep), grouping.all(keep));
                let told = |parts: &Parts| {
                    let of = |sum: &Sum| (sum.measures, sum.samples, sum.latency());
                    let groups: Vec<_> =
                        parts.groups.iter().map(|(key, sum)| (key.clone(), of(sum))).collect();
                    (groups, parts.left_out.0, of(&parts.left_out.1), of(&parts.whole))
                };
                assert_eq!(told(&first), told(&all), "{sort:?}");
                assert_eq!(first.groups.len(), 7);
            }
        }
    }
}
