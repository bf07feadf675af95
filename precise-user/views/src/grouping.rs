//! Grouping of rows by keys. The tables of all views are made of these groups.

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::stats::{Estimate, Histogram, Percentile, Samples, Share, Weight, astray};
use super::weighing::Weighing;
use precise_model::keys::{Key, Sort};
use precise_model::values::{Atom, Value};
use precise_model::{Capture, Measures, Row};

/// The groups of one event.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct Groups {
    /// The sum of all selected rows: shares are relative to it.
    pub total: Measures,
    /// The estimated number of events that all samples stand for; present if their periods differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// The groups in sort order; empty if there are too few samples to rank.
    #[serde(rename = "groups")]
    pub list: Vec<Group>,
    /// The number of groups that the limit left out, and the sum of their measures.
    pub left_out: (usize, Measures),
    /// The share of the groups that the limit left out.
    #[serde(skip)]
    pub left_out_share: Share,
    /// The number of samples needed to rank; present if there are fewer.
    pub too_few: Option<u64>,
}

/// A group: one combination of key values.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Group {
    /// The values of the keys, one per key.
    pub values: Vec<Value>,
    /// The measures of the group.
    pub measures: Measures,
    /// The share of the event's samples, with its interval. If the governor changed the period, the
    /// share of the events that the samples stand for.
    pub share: Share,
    /// The estimated number of events that the samples stand for; present if their periods differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// The share of the events that all samples stand for.
    pub period_share: Share,
    /// The share of the sum of all latencies.
    pub latency_share: Option<Share>,
    /// The average latency, in core cycles.
    pub average: Option<f64>,
    /// The median latency. This and the other percentiles are present if the capture has latency
    /// buckets and the group has enough samples.
    pub p50: Option<Percentile>,
    /// The 90th percentile of the latency.
    pub p90: Option<Percentile>,
    /// The 99th percentile of the latency.
    pub p99: Option<Percentile>,
    /// The 99.9th percentile of the latency.
    pub p999: Option<Percentile>,
}

/// The way in which rows are grouped.
pub(crate) struct Grouping<'a> {
    /// The capture with the rows.
    pub capture: &'a Capture,
    /// The index of the event.
    pub event: usize,
    /// The group keys, outermost first.
    pub by: &'a [Key],
    /// The measure that groups are sorted by.
    pub sort: Sort,
    /// The number of groups to keep; `None` keeps all.
    pub limit: Option<usize>,
    /// The number of samples below which groups are not ranked.
    pub min_samples: u64,
}

/// The sum of some rows.
#[derive(Clone, Default)]
pub(crate) struct Sum {
    pub measures: Measures,
    /// All samples.
    pub samples: Samples,
    /// The samples with a latency, or all samples if the run recorded no latency buckets.
    pub timed: Samples,
    /// The latencies; `None` if the run did not record them as a dimension.
    pub histogram: Option<Histogram>,
    /// The events that the samples stand for.
    period: Weight,
    /// The latencies, each multiplied by the weight of its sample.
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
            // Without buckets it is not known which samples have a latency, so all of them count.
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

    /// Returns the sum of all latencies in core cycles, each multiplied by the weight of its
    /// sample. Groups are sorted by it.
    pub fn latency(&self) -> f64 {
        self.latency.sum
    }

    /// Returns a percentile of the latency.
    pub fn percentile(&self, fraction: f64) -> Option<Percentile> {
        let histogram = self.histogram.as_ref()?;
        Some(histogram.percentile(fraction)?.at_most(self.measures.latency_max))
    }

    /// Returns the share of the latencies of `whole`.
    pub fn latency_share(&self, whole: &Self) -> Share {
        Share::weighted(self.latency, whole.latency)
    }

    /// Makes a group of the sum, with its shares of `whole`.
    pub fn group(&self, values: Vec<Value>, whole: &Self, has_latency: bool) -> Group {
        Group {
            values,
            share: self.samples.share_of(whole.samples),
            estimate: None,
            period_share: Share::weighted(self.period, whole.period),
            latency_share: has_latency.then(|| self.latency_share(whole)),
            average: self.average().filter(|_| has_latency),
            p50: self.percentile(0.5),
            p90: self.percentile(0.9),
            p99: self.percentile(0.99),
            p999: self.percentile(0.999),
            measures: self.measures,
        }
    }
}

impl<'a> Grouping<'a> {
    /// Returns the rules for adding up the rows.
    pub fn weighing(&self) -> Weighing {
        Weighing::of(self.capture, self.event)
    }

    /// Returns the rows of the event.
    pub fn rows(&self) -> impl Iterator<Item = &'a Row> + use<'a> {
        let event = self.event;
        self.capture.rows.iter().filter(move |row| usize::from(row.event) == event)
    }

    /// Returns the rows for which `keep` returns true, added up by key, and their total.
    pub fn sums(&self, mut keep: impl FnMut(&Row) -> bool) -> (FxHashMap<Vec<Atom>, Sum>, Sum) {
        let weighing = self.weighing();
        let (mut groups, mut whole) = (FxHashMap::<Vec<Atom>, Sum>::default(), Sum::default());
        for row in self.rows().filter(|row| keep(row)) {
            groups.entry(self.key(row)).or_default().add(row, weighing);
            whole.add(row, weighing);
        }
        (groups, whole)
    }

    /// Returns the groups of the rows for which `keep` returns true, in order.
    pub fn groups(&self, keep: impl FnMut(&Row) -> bool) -> Groups {
        let (groups, whole) = self.sums(keep);
        let total = whole.measures;
        let too_few = (total.count < self.min_samples).then_some(self.min_samples);
        let mut groups: Vec<_> = if too_few.is_some() { Vec::new() } else { groups.into_iter().collect() };
        self.sort(&mut groups);
        let kept = self.limit.unwrap_or(groups.len()).min(groups.len());
        let (mut rest, mut samples) = (Measures::default(), Samples::default());
        for (_, sum) in &groups[kept..] {
            rest.add(&sum.measures);
            samples.add(sum.samples);
        }
        let (left_out, left_out_share) = ((groups.len() - kept, rest), samples.share_of(whole.samples));
        let has_latency = self.capture.meta.events.get(self.event).is_some_and(|e| e.fields.latency);
        let groups = groups.into_iter().take(kept);
        let event = self.capture.meta.events.get(self.event);
        let varies = event.is_some_and(|event| event.period.is_none());
        let slack = event.map_or(0.0, |event| astray(event, self.capture.meta.machine.cpus));
        let estimate = |sum: &Sum| varies.then(|| Estimate::of(sum.period, slack));
        let list = groups.map(|(key, sum)| Group {
            estimate: estimate(&sum),
            ..sum.group(self.values(&key), &whole, has_latency)
        });
        Groups { total, estimate: estimate(&whole), list: list.collect(), left_out, left_out_share, too_few }
    }

    /// Returns the key of a row.
    pub fn key(&self, row: &Row) -> Vec<Atom> {
        self.by.iter().map(|key| Atom::of(self.capture, row, *key)).collect()
    }

    /// Returns the values of a key.
    pub fn values(&self, key: &[Atom]) -> Vec<Value> {
        key.iter().zip(self.by).map(|(atom, key)| atom.value(self.capture, *key)).collect()
    }

    /// Sorts by the requested measure, and groups with the same measure by their keys, so that
    /// reports are reproducible.
    pub fn sort(&self, groups: &mut [(Vec<Atom>, Sum)]) {
        let keys = |a: &[Atom], b: &[Atom]| {
            let pairs = a.iter().zip(b).map(|(a, b)| a.compare(b, self.capture));
            pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        };
        groups.sort_by(|(key_a, a), (key_b, b)| {
            let first = match self.sort {
                Sort::Samples => b.samples.order(&a.samples),
                Sort::Period => b.measures.period_sum.cmp(&a.measures.period_sum),
                Sort::Latency => b.latency().total_cmp(&a.latency()),
                Sort::Average => b.average().unwrap_or(-1.0).total_cmp(&a.average().unwrap_or(-1.0)),
                Sort::Maximum => b.measures.latency_max.cmp(&a.measures.latency_max),
                Sort::Key(key) => match self.by.iter().position(|k| *k == key) {
                    Some(at) => key_a[at].compare(&key_b[at], self.capture),
                    None => std::cmp::Ordering::Equal,
                },
            };
            first.then_with(|| b.measures.count.cmp(&a.measures.count)).then_with(|| keys(key_a, key_b))
        });
    }
}
