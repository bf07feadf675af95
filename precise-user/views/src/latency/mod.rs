//! How slow accesses are, and for whom: percentiles and histograms.

pub mod csv;
pub mod plot;
#[cfg(test)]
mod tests;
pub mod text;
mod view;

pub use view::LatencyView;

use precise_common::latency;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{self, Event, Run};
use super::grouping::{Group, Grouping, Sum};
use super::needs::{self, Needs};
use super::stats::{Histogram, MIN_SAMPLES, Samples, Share};
use super::weighing::Weighing;
use super::{ViewError, trust};
use precise_model::keys::{Key, Sort};
use precise_model::values::Atom;
use precise_model::words::Served;
use precise_model::{Capture, Dimension, EventInfo, Row};

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyOptions {
    /// Whose latencies; `None` for the levels, where the capture has them.
    pub by: Option<Vec<Key>>,
    /// What to sort by.
    pub sort: Sort,
    /// Groups to keep.
    pub limit: Option<usize>,
    /// Samples with a latency below which nothing is said.
    pub min_samples: u64,
}

impl Default for LatencyOptions {
    fn default() -> Self {
        Self { by: None, sort: Sort::Samples, limit: None, min_samples: MIN_SAMPLES }
    }
}

/// Latencies of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Latency {
    /// Where the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// Whose latencies.
    pub by: Vec<Key>,
    /// Largest part that a printed latency is off, because of its bucket.
    pub relative_error: f64,
    /// One per event.
    pub events: Vec<LatencyEvent>,
}

/// Latencies of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyEvent {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// Samples with a latency.
    pub timed: u64,
    /// Samples without: in no number of this view.
    pub untimed: u64,
    /// Samples that are needed to say anything; present when there are fewer.
    pub too_few: Option<u64>,
    /// All of them; `None` where there are too few.
    pub all: Option<Distribution>,
    /// By the keys; the same order as the table.
    pub groups: Vec<Distribution>,
    /// Groups that the limit left out, and their samples.
    pub left_out: (usize, u64),
    /// Their part.
    #[serde(skip)]
    pub left_out_share: Share,
    /// What a reader must know of these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// Latencies of some accesses.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Distribution {
    /// Share, percentiles, maximum.
    #[serde(flatten)]
    pub group: Group,
    /// Buckets that have samples, in order.
    pub buckets: Vec<Bucket>,
    /// The same with what samples weigh.
    #[serde(skip)]
    pub histogram: Histogram,
    /// The bucket with the most samples, and what it belongs to.
    pub mode: Option<Mode>,
}

/// Samples of one latency, as exactly as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bucket {
    /// Smallest latency, core cycles.
    pub low: u64,
    /// Largest latency, core cycles.
    pub high: u64,
    /// Samples.
    pub samples: u64,
    /// Part of the samples that have a latency; where the governor changed the period, of the
    /// events that they stand for.
    pub share: f64,
}

/// The most frequent latency.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Mode {
    /// Its bucket.
    #[serde(flatten)]
    pub bucket: Bucket,
    /// The level that serves most accesses of this latency, and which part of them; `None` where
    /// the run did not record levels or the hardware did not say.
    pub served: Option<(String, Share)>,
    /// Where such a latency usually comes from: a rule of thumb, for captures that do not know.
    pub usually: &'static str,
}

/// Latencies up to which, in core cycles, an access usually comes from there. Rounded from what
/// vendors' manuals give for servers since 2015; the differences between two machines are larger
/// than what is cut off here.
const USUALLY: [(u64, &str); 6] = [
    (7, "the L1 cache"),
    (25, "the L2 cache"),
    (110, "the L3 cache"),
    (450, "memory of the same node, or a cache of another core"),
    (1000, "memory of another node, or a page walk"),
    (u64::MAX, "a queue: loaded memory, a lock, or a page walk with misses of its own"),
];

/// The latencies of a capture.
///
/// # Errors
///
/// When the capture does not know: the sentence names the command that records it.
pub fn latency(capture: &Capture, options: &LatencyOptions) -> Result<Latency, ViewError> {
    let needs = Needs::of::<LatencyView>();
    let by = options.by.clone().unwrap_or_else(|| match needs::has(capture, Dimension::Source) {
        true => vec![Key::Level],
        false => Vec::new(),
    });
    needs.and(&by).check(capture)?;
    needs::coarse(capture, &by)?;
    let trust = trust::trust(capture);
    let events = capture.meta.events.iter().zip(trust.events).enumerate();
    let events = events
        .map(|(index, (info, trust))| of_event(capture, options, &by, index, info, Event::of(info, trust)));
    Ok(Latency {
        run: Run::of(capture),
        relative_error: latency::RELATIVE_ERROR,
        events: events.collect(),
        by,
    })
}

fn of_event(
    capture: &Capture,
    options: &LatencyOptions,
    by: &[Key],
    index: usize,
    info: &EventInfo,
    event: Event,
) -> LatencyEvent {
    let rows = Grouping {
        capture,
        event: index,
        by,
        sort: options.sort,
        limit: options.limit,
        min_samples: options.min_samples,
    };
    let (groups, whole) = rows.sums(|row| row.latency_bucket.is_some());
    let timed = whole.samples.count;
    let untimed = super::samples(capture, index).saturating_sub(timed);
    let too_few = (timed < options.min_samples).then_some(options.min_samples);
    let mut list: Vec<_> =
        if too_few.is_some() || by.is_empty() { Vec::new() } else { groups.into_iter().collect() };
    rows.sort(&mut list);
    let kept = options.limit.unwrap_or(list.len()).min(list.len());
    let rest: Samples = list[kept..].iter().map(|(_, group)| group.samples).sum();
    let (left_out, left_out_share) = ((list.len() - kept, rest.count), rest.share_of(whole.samples));
    list.truncate(kept);
    let levels = needs::has(capture, Dimension::Source);
    let of = |key: &[Atom], sum: &Sum| {
        let histogram = sum.histogram.clone().unwrap_or_default();
        let mode = histogram.buckets().max_by(|(low, a), (high, b)| a.order(b).then(high.cmp(low)));
        let bucket = |found: (u32, Samples)| bucket(found, histogram.total());
        let at = |row: &Row| row.latency_bucket.map(u32::from) == mode.map(|(bucket, _)| bucket);
        let whose = |row: &Row| key.is_empty() || rows.key(row) == key;
        Distribution {
            group: sum.group(rows.values(key), &whole, true),
            mode: mode.map(|mode| Mode {
                bucket: bucket(mode),
                served: match levels {
                    true => served(rows.rows().filter(|r| at(r) && whose(r)), mode.1, rows.weighing()),
                    false => None,
                },
                usually: usually(latency::lower(mode.0)),
            }),
            buckets: histogram.buckets().map(bucket).collect(),
            histogram,
        }
    };
    let all = too_few.is_none().then(|| of(&[], &whole));
    let groups = list.iter().map(|(key, sum)| of(key, sum)).collect();
    let mut notes = Vec::new();
    if untimed > 0 {
        notes.push(format!("{untimed} of the samples have no latency and are in no number here."));
    }
    notes.extend(about::latency_limits(info));
    LatencyEvent { event, timed, untimed, too_few, all, groups, left_out, left_out_share, notes }
}

fn bucket((bucket, samples): (u32, Samples), all: Samples) -> Bucket {
    let (low, high) = (latency::lower(bucket), latency::lower(bucket + 1) - 1);
    Bucket { low, high, samples: samples.count, share: samples.share_of(all).value }
}

/// The level that most samples of some rows were served by.
fn served<'a>(
    rows: impl Iterator<Item = &'a Row>,
    all: Samples,
    weighing: Weighing,
) -> Option<(String, Share)> {
    let mut levels: FxHashMap<Served, Samples> = FxHashMap::default();
    for row in rows {
        if let Some(served) = Served::of(row.data_source()) {
            levels.entry(served).or_default().add(weighing.samples(row));
        }
    }
    let (level, samples) = levels.into_iter().max_by(|(x, a), (y, b)| a.order(b).then(x.cmp(y)))?;
    Some((level.to_string(), samples.share_of(all)))
}

fn usually(cycles: u64) -> &'static str {
    USUALLY.iter().find(|(most, _)| cycles <= *most).map_or("", |(_, place)| place)
}
