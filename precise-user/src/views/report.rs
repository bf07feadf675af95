//! The report: rows grouped by any keys, with how sure each number is.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::ViewError;
use super::keys::{Key, Sort};
use super::report_values::Atom;
pub use super::report_values::Value;
use super::stats::{Histogram, MIN_SAMPLES, Percentile, Share};
use super::trust::{self, EventTrust};
use crate::capture::{Capture, Dimension, Epoch, EventInfo, Measures, Row};

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportOptions {
    /// What to group by, outermost first. Empty: one group per event.
    pub by: Vec<Key>,
    /// What to sort by.
    pub sort: Sort,
    /// Groups to keep per event; `None` keeps all.
    pub limit: Option<usize>,
    /// Rows that match all of these are looked at.
    pub filters: Vec<Match>,
    /// Samples of an event below which nothing is ranked: [`MIN_SAMPLES`].
    pub min_samples: u64,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            by: vec![Key::Function, Key::Module],
            sort: Sort::Samples,
            limit: None,
            filters: Vec::new(),
            min_samples: MIN_SAMPLES,
        }
    }
}

/// Keeps rows whose value of `key`, as text, is `text`; for names, whose value contains it.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// What to look at.
    pub key: Key,
    /// What it must be.
    pub text: String,
}

/// Groups of rows, per event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What was sampled, in words.
    pub target: String,
    /// Host that the capture was made on.
    pub host: String,
    /// Length of the run, nanoseconds.
    pub duration_ns: u64,
    /// The filter of the run; empty when there was none.
    pub filter: String,
    /// What the rows are grouped by.
    pub by: Vec<Key>,
    /// What the groups are sorted by.
    pub sort: Sort,
    /// One per event: samples of different events are never added up.
    pub events: Vec<Section>,
}

/// The groups of one event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// As the user named it.
    pub event: String,
    /// PMU and encoding.
    pub encoding: String,
    /// What one unit of the period is.
    pub unit: String,
    /// Events per sample; `None` in frequency mode.
    pub period: Option<u64>,
    /// Samples per second and CPU, in frequency mode.
    pub frequency: Option<u64>,
    /// Whether the groups have latencies.
    pub has_latency: bool,
    /// All rows of the event that match the filters: what shares are shares of.
    pub total: Measures,
    /// Groups in order; empty when there are too few samples.
    pub groups: Vec<Group>,
    /// Groups that the limit left out, and what they add up to.
    pub left_out: (usize, Measures),
    /// Samples that are needed to rank; present when there are fewer.
    pub too_few: Option<u64>,
    /// How far the numbers can be trusted.
    pub trust: EventTrust,
    /// What a reader must know of these numbers, beside [`Section::trust`]; one sentence each.
    pub notes: Vec<String>,
}

/// One combination of keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// One value per key.
    pub values: Vec<Value>,
    /// What was measured.
    pub measures: Measures,
    /// Part of the event's samples, with its interval.
    pub share: Share,
    /// Part of the events that all samples stand for.
    pub period_share: f64,
    /// Part of the sum of all latencies.
    pub latency_share: Option<f64>,
    /// Average latency, core cycles.
    pub average: Option<f64>,
    /// Median latency, where the capture has latency buckets and the group has enough samples; so the others.
    pub p50: Option<Percentile>,
    /// 90th percentile.
    pub p90: Option<Percentile>,
    /// 99th percentile.
    pub p99: Option<Percentile>,
}

/// Groups the rows of a capture.
pub fn report(capture: &Capture, options: &ReportOptions) -> Result<Report, ViewError> {
    let used: Vec<Key> = options.by.iter().copied().chain(options.filters.iter().map(|m| m.key)).collect();
    check(capture, &used)?;
    let meta = &capture.meta;
    let trust = trust::trust(capture);
    let sections = meta.events.iter().zip(trust.events).enumerate();
    let events = sections.map(|(index, (info, trust))| section(capture, options, index, info, trust));
    Ok(Report {
        target: meta.target.clone(),
        host: meta.machine.host.clone(),
        duration_ns: duration(&meta.epochs),
        filter: meta.filter.clone(),
        by: options.by.clone(),
        sort: options.sort,
        events: events.collect(),
    })
}

/// From the first epoch's begin to the last one's end, nanoseconds.
pub fn duration(epochs: &[Epoch]) -> u64 {
    match (epochs.first(), epochs.last()) {
        (Some(first), Some(last)) => last.end_ns.saturating_sub(first.start_ns),
        _ => 0,
    }
}

/// Whether the capture has what `keys` need.
pub fn check(capture: &Capture, keys: &[Key]) -> Result<(), ViewError> {
    let recorded = &capture.meta.dimensions;
    let has = |d: Dimension| {
        // A run by thread knows the process.
        recorded.contains(&d) || (d == Dimension::Process && recorded.contains(&Dimension::Thread))
    };
    let lacking: Vec<_> =
        keys.iter().filter_map(|k| k.dimension().filter(|d| !has(*d)).map(|d| (*k, d))).collect();
    if !lacking.is_empty() {
        let missing: Vec<_> =
            Dimension::ALL.into_iter().filter(|d| lacking.iter().any(|(_, other)| other == d)).collect();
        let by = Dimension::ALL.into_iter().filter(|d| recorded.contains(d) || missing.contains(d));
        let join = |words: Vec<&str>, between: &str| words.join(between);
        return Err(ViewError::NotRecorded {
            keys: join(lacking.iter().map(|(k, _)| k.name()).collect(), ", "),
            missing: join(missing.iter().map(|d| d.as_str()).collect(), ", "),
            by: join(by.map(Dimension::as_str).collect(), ","),
        });
    }
    let granule = capture.meta.address_granule;
    for (key, size) in [(Key::LineAddress, 64), (Key::Page, 4096)] {
        if keys.contains(&key) && granule > size {
            return Err(ViewError::TooCoarse { key: key.name(), granule });
        }
    }
    Ok(())
}

/// A group while rows are added to it.
#[derive(Default)]
struct Sum {
    measures: Measures,
    timed: u64,
    histogram: Option<Histogram>,
}

impl Sum {
    fn add(&mut self, row: &Row, buckets: bool) {
        self.measures.add(&row.measures);
        match row.latency_bucket {
            Some(bucket) => {
                self.timed = self.timed.saturating_add(row.measures.count);
                self.histogram.get_or_insert_default().add(bucket, row.measures.count);
            }
            // Without buckets nobody knows which samples had a latency: all count.
            None if !buckets => self.timed = self.timed.saturating_add(row.measures.count),
            None => {}
        }
    }

    fn average(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.measures.latency_sum as f64 / self.timed as f64)
    }
}

fn section(
    capture: &Capture,
    options: &ReportOptions,
    index: usize,
    info: &EventInfo,
    trust: EventTrust,
) -> Section {
    let buckets = capture.meta.dimensions.contains(&Dimension::Latency);
    let mut total = Measures::default();
    let mut groups: FxHashMap<Vec<Atom>, Sum> = FxHashMap::default();
    let mut wanted = Filters::new(capture, &options.filters);
    for row in capture.rows.iter().filter(|r| usize::from(r.event) == index) {
        if !wanted.pass(row) {
            continue;
        }
        total.add(&row.measures);
        let key = options.by.iter().map(|k| Atom::of(capture, row, *k)).collect();
        groups.entry(key).or_default().add(row, buckets);
    }
    let too_few = (total.count < options.min_samples).then_some(options.min_samples);
    let mut groups: Vec<_> = if too_few.is_some() { Vec::new() } else { groups.into_iter().collect() };
    sort(capture, options, &mut groups);
    let kept = options.limit.unwrap_or(groups.len()).min(groups.len());
    let mut rest = Measures::default();
    for (_, sum) in &groups[kept..] {
        rest.add(&sum.measures);
    }
    let left_out = (groups.len() - kept, rest);
    let has_latency = info.fields.latency;
    let part = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let groups = groups.into_iter().take(kept).map(|(key, sum)| {
        // A bucket's middle may lie above the largest latency in it.
        let most = sum.measures.latency_max;
        let bounded = |p: Percentile| Percentile { cycles: p.cycles.min(most.into()), ..p };
        let percentile = |fraction| sum.histogram.as_ref().and_then(|h| h.percentile(fraction)).map(bounded);
        Group {
            values: key.iter().zip(&options.by).map(|(atom, key)| atom.value(capture, *key)).collect(),
            share: Share::wilson(sum.measures.count, total.count),
            period_share: part(sum.measures.period_sum, total.period_sum),
            latency_share: has_latency.then(|| part(sum.measures.latency_sum, total.latency_sum)),
            average: sum.average().filter(|_| has_latency),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p99: percentile(0.99),
            measures: sum.measures,
        }
    });
    let mut notes = Vec::new();
    let untimed = info.ledger.counter("no_latency");
    if has_latency && !buckets && untimed > 0 {
        notes.push(format!("{untimed} samples have no latency; averages count them as 0."));
    }
    let granule = capture.meta.address_granule;
    if granule > 1 && options.by.contains(&Key::Address) {
        notes.push(format!("Addresses are multiples of {granule} bytes: the run grouped them so."));
    }
    Section {
        event: info.name.clone(),
        encoding: info.encoding.clone(),
        unit: info.unit.clone(),
        period: info.period,
        frequency: info.frequency,
        has_latency,
        total,
        groups: groups.collect(),
        left_out,
        too_few,
        trust,
        notes,
    }
}

/// Sorts by what was asked for, and by the keys where that is equal: a report is the same every time.
fn sort(capture: &Capture, options: &ReportOptions, groups: &mut [(Vec<Atom>, Sum)]) {
    let keys = |a: &[Atom], b: &[Atom]| {
        let pairs = a.iter().zip(b).map(|(a, b)| a.compare(b, capture));
        pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    };
    groups.sort_by(|(key_a, a), (key_b, b)| {
        let first = match options.sort {
            Sort::Samples => b.measures.count.cmp(&a.measures.count),
            Sort::Period => b.measures.period_sum.cmp(&a.measures.period_sum),
            Sort::Latency => b.measures.latency_sum.cmp(&a.measures.latency_sum),
            Sort::Average => b.average().unwrap_or(-1.0).total_cmp(&a.average().unwrap_or(-1.0)),
            Sort::Maximum => b.measures.latency_max.cmp(&a.measures.latency_max),
            Sort::Key(key) => match options.by.iter().position(|k| *k == key) {
                Some(at) => key_a[at].compare(&key_b[at], capture),
                None => std::cmp::Ordering::Equal,
            },
        };
        first.then_with(|| b.measures.count.cmp(&a.measures.count)).then_with(|| keys(key_a, key_b))
    });
}

/// Matches, each distinct value looked at once.
struct Filters<'a> {
    capture: &'a Capture,
    matches: Vec<(&'a Match, FxHashMap<Atom, bool>)>,
}

impl<'a> Filters<'a> {
    fn new(capture: &'a Capture, matches: &'a [Match]) -> Self {
        Self { capture, matches: matches.iter().map(|m| (m, FxHashMap::default())).collect() }
    }

    fn pass(&mut self, row: &Row) -> bool {
        let capture = self.capture;
        self.matches.iter_mut().all(|(wanted, seen)| {
            let atom = Atom::of(capture, row, wanted.key);
            *seen.entry(atom).or_insert_with(|| match atom.value(capture, wanted.key) {
                Value::Text(text) => text.contains(&wanted.text),
                other => other.text() == wanted.text,
            })
        })
    }
}
