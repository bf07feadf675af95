//! `precise tlb`: how many accesses need a page walk, how long these take, and which code or data
//! causes them.
//!
//! A page walk happens if no TLB can translate the address of an access:
//!
//! ```
//! use precise_model::testing::{CaptureBuilder, L1, RAM_WALK};
//! use precise_views::tlb::{TlbOptions, tlb};
//!
//! let mut made = CaptureBuilder::new();
//! made.cell().samples(300).latency(5).data_src(L1).code(0x1000, "/bin/w", "sum", "", 0);
//! made.cell().samples(60).latency(5).data_src(L1).code(0x2000, "/bin/w", "chase", "", 0);
//! made.cell().samples(40).latency(900).data_src(RAM_WALK).code(0x2000, "/bin/w", "chase", "", 0);
//!
//! let result = tlb(&made.build(), &TlbOptions::default())?;
//!
//! let event = &result.events[0];
//! // 40 of all 400 accesses needed a page walk: 10 %.
//! assert_eq!(event.all.rate.value, 0.10);
//! // All walks are in `chase`, where 40 % of the accesses need one and then take 900 cycles.
//! let chase = &event.walks[0];
//! assert_eq!((chase.values[0].text(), chase.rate.value), ("chase".to_owned(), 0.40));
//! assert_eq!((chase.walked_average, chase.other_average), (Some(900.0), Some(5.0)));
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
#[cfg(test)]
mod tests;
pub mod text;
mod view;

pub use view::PageWalks;

use precise_common::data_src::Tlb;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{self, EventSummary, Run};
use super::grouping::{Grouping, Groups, Sum};
use super::needs::{self, Needs};
use super::stats::{MIN_SAMPLES, Samples, Share};
use super::{ViewError, trust};
use precise_model::digits::counted;
use precise_model::keys::{Key, Sort};
use precise_model::values::{RawValue, Value};
use precise_model::words;
use precise_model::{Capture, Dimension, Row};

/// Options for `precise tlb`.
#[derive(Clone, Debug, PartialEq)]
pub struct TlbOptions {
    /// Group keys; `None` chooses the most useful ones that the capture has.
    pub by: Option<Vec<Key>>,
    /// Number of groups to keep; `None` for all.
    pub limit: Option<usize>,
    /// Minimum number of accesses for a ranking.
    pub min_samples: u64,
}

impl Default for TlbOptions {
    fn default() -> Self {
        Self { by: None, limit: None, min_samples: MIN_SAMPLES }
    }
}

/// The result of `precise tlb`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TlbView {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// Group keys.
    pub by: Vec<Key>,
    /// One entry per event.
    pub events: Vec<TlbEvent>,
}

/// The page walks of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TlbEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Accesses grouped by how their address was translated.
    pub levels: Groups,
    /// Page walks of all accesses.
    pub all: Walks,
    /// Page walks by page size, for accesses whose page size is known. Sizes without page walks are
    /// included.
    pub sizes: Vec<Walks>,
    /// Page walks by group, most walks first.
    pub walks: Vec<Walks>,
    /// Number of groups that the limit left out, and the number of their walks.
    pub left_out: (usize, u64),
    /// Number of samples for which the hardware did not report how the address was translated.
    pub without: u64,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// The page walks of some accesses.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Walks {
    /// One value per group key.
    pub values: Vec<Value>,
    /// Number of accesses whose translation is known.
    pub accesses: u64,
    /// Number of accesses that needed a page walk or more.
    pub walked: u64,
    /// Fraction of these accesses that needed a page walk.
    pub rate: Share,
    /// Fraction of all page walks.
    pub share: Share,
    /// Average latency of the accesses with a page walk, in core cycles. It includes the walk and
    /// the data.
    pub walked_average: Option<f64>,
    /// Average latency of the accesses without a page walk, in core cycles.
    pub other_average: Option<f64>,
}

/// Returns whether an access needed a page walk or more; `None` if the data source does not tell.
///
/// "L2 miss" means on Intel that the access missed the second-level TLB, and on AMD that it missed
/// both TLBs. In each case a page walk follows.
fn walked(row: &Row) -> Option<bool> {
    words::tlb(row.data_source()).map(|tlb| matches!(tlb, Tlb::Walk | Tlb::Miss | Tlb::Fault))
}

/// Returns the page walks of a capture.
///
/// # Errors
///
/// Returns an error if the capture lacks data sources or a requested dimension. The message names
/// the command that records it.
pub fn tlb(capture: &Capture, options: &TlbOptions) -> Result<TlbView, ViewError> {
    let needs = Needs::of::<PageWalks>();
    let by = options.by.clone().unwrap_or_else(|| {
        let best = [(Dimension::Ip, Key::Function), (Dimension::Process, Key::Process)];
        best.into_iter().filter(|(d, _)| needs::has(capture, *d)).map(|(_, key)| key).take(1).collect()
    });
    needs.and(&by).check(capture)?;
    needs::coarse(capture, &by)?;
    let trust = trust::trust(capture);
    let events = capture.meta.events.iter().zip(trust.events).enumerate();
    let events = events.map(|(index, (info, trust))| {
        let event = EventSummary::of(info, trust);
        let mut result = of_event(capture, options, &by, index, event);
        result.notes.extend(about::latency_limits(info));
        result
    });
    Ok(TlbView { run: Run::of(capture), events: events.collect(), by })
}

fn of_event(
    capture: &Capture,
    options: &TlbOptions,
    by: &[Key],
    index: usize,
    event: EventSummary,
) -> TlbEvent {
    let grouping = |by| Grouping {
        capture,
        event: index,
        by,
        sort: Sort::Samples,
        limit: None,
        min_samples: options.min_samples,
    };
    let levels = grouping(&[Key::Op, Key::Tlb]).groups(|row| walked(row).is_some());
    let rows = grouping(by);
    let (mut list, all_with) = rows.sums(|row| walked(row) == Some(true));
    let (other, all_other) = rows.sums(|row| walked(row) == Some(false));
    let mut other: FxHashMap<_, _> = other.into_iter().collect();
    let total = all_with.samples;
    let has_latency = event.has_latency;
    let of = |values, with: &Sum, other: &Sum| walks(values, with, other, total, has_latency);
    let sizes = match needs::has(capture, Dimension::PageSize) && levels.too_few.is_none() {
        true => by_size(&Grouping { sort: Sort::Key(Key::PageSize), ..grouping(&[Key::PageSize]) }, of),
        false => Vec::new(),
    };
    if levels.too_few.is_some() {
        list.clear();
    }
    rows.sort(&mut list);
    let kept = options.limit.unwrap_or(list.len()).min(list.len());
    let rest = list[kept..].iter().fold(0u64, |sum, (_, with)| sum.saturating_add(with.measures.count));
    let left_out = (list.len() - kept, rest);
    let without = super::samples(capture, index).saturating_sub(levels.total.count);
    let mut notes = Vec::new();
    if without > 0 {
        notes.push(format!(
            "In {} the hardware did not report how the address was translated: they are in no table.",
            counted(without, "sample")
        ));
    }
    TlbEvent {
        all: of(Vec::new(), &all_with, &all_other),
        sizes,
        walks: list[..kept]
            .iter()
            .map(|(key, with)| of(rows.values(key), with, &other.remove(key).unwrap_or_default()))
            .collect(),
        event,
        levels,
        left_out,
        without,
        notes,
    }
}

/// Returns the page walks for every accessed page size, in ascending order. Empty if no size is
/// known.
fn by_size(rows: &Grouping<'_>, of: impl Fn(Vec<Value>, &Sum, &Sum) -> Walks) -> Vec<Walks> {
    let of_walk =
        |walk| -> FxHashMap<_, _> { rows.sums(|row| walked(row) == Some(walk)).0.into_iter().collect() };
    let (mut with, mut other) = (of_walk(true), of_walk(false));
    let (mut both, _) = rows.sums(|row| walked(row).is_some());
    if both.iter().flat_map(|(key, _)| key).all(|size| *size == RawValue::NotGiven) {
        return Vec::new();
    }
    rows.sort(&mut both);
    let mut take =
        |key: &Vec<RawValue>| (with.remove(key).unwrap_or_default(), other.remove(key).unwrap_or_default());
    let each = both.iter().map(|(key, _)| {
        let (with, other) = take(key);
        of(rows.values(key), &with, &other)
    });
    each.collect()
}

fn walks(values: Vec<Value>, with: &Sum, other: &Sum, total: Samples, has_latency: bool) -> Walks {
    let accesses = with.samples.and(other.samples);
    let average = |sum: &Sum| sum.average().filter(|average| has_latency && *average > 0.0);
    Walks {
        values,
        accesses: accesses.count,
        walked: with.samples.count,
        rate: with.samples.share_of(accesses),
        share: with.samples.share_of(total),
        walked_average: average(with),
        other_average: average(other),
    }
}
