//! `precise latency`: percentiles and histograms of access latencies.
//!
//! The median shows the usual access, the 99th percentile the slowest 1 %:
//!
//! ```
//! use precise_model::testing::{CaptureBuilder, L1, RAM};
//! use precise_views::latency::{LatencyOptions, latency};
//!
//! let mut made = CaptureBuilder::new();
//! made.cell().samples(900).latency(5).data_src(L1);
//! made.cell().samples(100).latency(300).data_src(RAM);
//!
//! let result = latency(&made.build(), &LatencyOptions::default())?;
//!
//! let all = &result.events[0].all.as_ref().expect("enough samples").group;
//! // Half of the accesses take 5 core cycles or less: they hit the L1 cache.
//! assert_eq!(all.p50.expect("enough samples").cycles, 5.0);
//! // The slowest 10 % go to memory. Latencies are kept in buckets; 300 cycles are in 288 to 319.
//! let p99 = all.p99.expect("enough samples");
//! assert!(288.0 <= p99.cycles && p99.cycles <= 319.0);
//! // By level: the median of the loads from the L1 cache alone, which have most samples.
//! assert_eq!(result.events[0].groups[0].group.values[0].text(), "L1 hit");
//! # Ok::<(), precise_views::ViewError>(())
//! ```

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

use super::about::{self, EventSummary, Run};
use super::grouping::{Group, Grouping, Sum};
use super::needs::{self, Needs};
use super::stats::{Histogram, MIN_SAMPLES, Samples, Share};
use super::thread_names::name_threads;
use super::{ViewError, trust};
use precise_model::digits::thousands;
use precise_model::keys::{Key, Sort};
use precise_model::values::RawValue;
use precise_model::words::Served;
use precise_model::{Capture, Dimension, EventInfo};

/// Options for `precise latency`.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyOptions {
    /// Group keys; `None` groups by memory level if the capture has levels.
    pub by: Option<Vec<Key>>,
    /// Order of the groups.
    pub sort: Sort,
    /// Number of groups to keep; `None` for all.
    pub limit: Option<usize>,
    /// Minimum number of samples with a latency.
    pub min_samples: u64,
}

impl Default for LatencyOptions {
    fn default() -> Self {
        Self { by: None, sort: Sort::Samples, limit: None, min_samples: MIN_SAMPLES }
    }
}

/// The result of `precise latency`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Latency {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// Group keys.
    pub by: Vec<Key>,
    /// Largest relative error of a printed latency that the width of its bucket causes, as a
    /// fraction.
    pub relative_error: f64,
    /// One entry per event.
    pub events: Vec<LatencyEvent>,
}

/// The latencies of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Number of samples with a latency.
    pub timed: u64,
    /// Number of samples without a latency. No number of this view includes them.
    pub untimed: u64,
    /// Number of samples with a latency that are needed. Present if there are fewer.
    pub too_few: Option<u64>,
    /// Latencies of all samples; `None` if there are too few.
    pub all: Option<Distribution>,
    /// Latencies by group, in the order of the table.
    pub groups: Vec<Distribution>,
    /// Number of groups that the limit left out, and the number of their samples.
    pub left_out: (usize, u64),
    /// Share of the groups that the limit left out.
    #[serde(skip)]
    pub left_out_share: Share,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// The latencies of some accesses.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Distribution {
    /// Share, percentiles and maximum.
    #[serde(flatten)]
    pub group: Group,
    /// The buckets that have samples, in ascending order.
    pub buckets: Vec<LatencyBucket>,
    /// The weighted histogram of the same latencies.
    #[serde(skip)]
    pub histogram: Histogram,
    /// The bucket with the most samples, and its probable source.
    pub mode: Option<LatencyMode>,
}

/// One bucket of the histogram, as fine as the capture keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyBucket {
    /// Smallest latency of the bucket, in core cycles.
    pub low: u64,
    /// Largest latency of the bucket, in core cycles.
    pub high: u64,
    /// Number of samples.
    pub samples: u64,
    /// Fraction of the samples that have a latency. If the governor changed the period, fraction of
    /// the events that these samples stand for.
    pub share: f64,
}

/// The most frequent latency.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyMode {
    /// The bucket with the most samples.
    #[serde(flatten)]
    pub bucket: LatencyBucket,
    /// The level that serves most accesses of this latency, and its fraction of them. `None` if the
    /// run did not record levels, or the hardware did not report them.
    pub served: Option<(String, Share)>,
    /// Where such a latency usually comes from: a rule of thumb, for captures without levels.
    pub usually: &'static str,
}

/// Upper limits, in core cycles, of the latencies that usually come from each source. They are
/// rounded from vendors' manuals for servers since 2015; two machines differ by more than the
/// rounding.
const USUALLY: [(u64, &str); 6] = [
    (7, "the L1 cache"),
    (25, "the L2 cache"),
    (110, "the L3 cache"),
    (450, "memory of the same node, or a cache of another core"),
    (1000, "memory of another node, or a page walk"),
    (u64::MAX, "a queue: loaded memory, a lock, or a page walk with misses of its own"),
];

/// Returns the latencies of a capture.
///
/// # Errors
///
/// Returns an error if the capture lacks latencies or a requested dimension. The message names the
/// command that records it.
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
    let events = events.map(|(index, (info, trust))| {
        of_event(capture, options, &by, index, info, EventSummary::of(info, trust))
    });
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
    event: EventSummary,
) -> LatencyEvent {
    let rows = Grouping {
        capture,
        event: index,
        by,
        sort: options.sort,
        limit: options.limit,
        min_samples: options.min_samples,
    };
    let (mut list, whole) = rows.sums(|row| row.latency_bucket.is_some());
    let timed = whole.samples.count;
    let untimed = super::samples(capture, index).saturating_sub(timed);
    let too_few = (timed < options.min_samples).then_some(options.min_samples);
    if too_few.is_some() || by.is_empty() {
        list.clear();
    }
    rows.sort(&mut list);
    let kept = options.limit.unwrap_or(list.len()).min(list.len());
    let rest: Samples = list[kept..].iter().map(|(_, group)| group.samples).sum();
    let (left_out, left_out_share) = ((list.len() - kept, rest.count), rest.share_of(whole.samples));
    list.truncate(kept);
    let modes: Vec<_> = [&whole].into_iter().chain(list.iter().map(|(_, sum)| sum)).map(mode_of).collect();
    let served = match needs::has(capture, Dimension::Source) {
        true => served(&rows, &list, &modes),
        false => vec![None; modes.len()],
    };
    let of = |at: usize, key: &[RawValue], sum: &Sum| {
        let histogram = sum.histogram.clone().unwrap_or_default();
        let bucket = |found: (u32, Samples)| bucket(found, histogram.total());
        Distribution {
            group: sum.group(rows.values(key), &whole, true),
            mode: modes[at].map(|mode| LatencyMode {
                bucket: bucket(mode),
                served: served[at].clone(),
                usually: usually(latency::lower(mode.0)),
            }),
            buckets: histogram.buckets().map(bucket).collect(),
            histogram,
        }
    };
    let all = too_few.is_none().then(|| of(0, &[], &whole));
    let mut groups: Vec<_> = list.iter().enumerate().map(|(at, (key, sum))| of(at + 1, key, sum)).collect();
    name_threads(capture, by, groups.iter_mut().map(|found| &mut found.group.values));
    let mut notes = Vec::new();
    if untimed > 0 && timed > 0 {
        notes.push(format!(
            "{} of the samples have no latency and are in no number here.",
            thousands(untimed)
        ));
    }
    notes.extend(about::latency_limits(info));
    LatencyEvent { event, timed, untimed, too_few, all, groups, left_out, left_out_share, notes }
}

fn bucket((bucket, samples): (u32, Samples), all: Samples) -> LatencyBucket {
    let (low, high) = (latency::lower(bucket), latency::lower(bucket + 1) - 1);
    LatencyBucket { low, high, samples: samples.count, share: samples.share_of(all).value }
}

/// Returns the bucket with the most samples, and these.
fn mode_of(sum: &Sum) -> Option<(u32, Samples)> {
    sum.histogram.as_ref()?.buckets().max_by(|(low, a), (high, b)| a.order(b).then(high.cmp(low)))
}

/// Returns the level that served most samples of the largest bucket: of all rows, and of each
/// group. `modes` has these buckets in the same order.
fn served(
    rows: &Grouping<'_>,
    groups: &[(Vec<RawValue>, Sum)],
    modes: &[Option<(u32, Samples)>],
) -> Vec<Option<(String, Share)>> {
    let weighing = rows.weighing();
    let places: FxHashMap<&[RawValue], usize> =
        groups.iter().enumerate().map(|(at, (key, _))| (&**key, at + 1)).collect();
    let mut levels: Vec<FxHashMap<Served, Samples>> = vec![FxHashMap::default(); modes.len()];
    let mut key = Vec::new();
    for row in rows.rows() {
        let Some((bucket, served)) = row.latency_bucket.zip(Served::of(row.data_source())) else { continue };
        rows.fill(&mut key, row);
        let own = if groups.is_empty() { None } else { places.get(&*key).copied() };
        for at in [Some(0), own].into_iter().flatten() {
            if modes[at].is_some_and(|(mode, _)| mode == u32::from(bucket)) {
                levels[at].entry(served).or_default().add(weighing.samples(row));
            }
        }
    }
    let most = levels.into_iter().zip(modes).map(|(levels, mode)| {
        let (level, samples) = levels.into_iter().max_by(|(x, a), (y, b)| a.order(b).then(x.cmp(y)))?;
        Some((level.to_string(), samples.share_of((*mode)?.1)))
    });
    most.collect()
}

fn usually(cycles: u64) -> &'static str {
    USUALLY.iter().find(|(most, _)| cycles <= *most).map_or("", |(_, place)| place)
}
