//! Totals of samples by label since the start, in bounded memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use precise_common::latency;

use super::label::{LabelPair, SeriesLabel, pairs};
use precise_model::keys::Key;
use precise_model::labels::by_keys;
use precise_model::values::Value;
use precise_model::{Capture, Machine, Row};

/// How long a series is shown after its last sample. Prometheus itself drops a series five minutes
/// after it is no longer shown.
pub const IDLE: Duration = Duration::from_secs(600);

/// The largest latency of each bucket of the histogram, in core cycles: two buckets per power of
/// two. All are also edges of the program's latency buckets, so every latency falls into the
/// correct bucket.
pub(super) const EDGES: [u32; 22] = [
    15, 23, 31, 47, 63, 95, 127, 191, 255, 383, 511, 767, 1023, 1535, 2047, 3071, 4095, 6143, 8191, 12287,
    16383, 24575,
];

/// The value of every label of the series that collects the samples without a series of their own.
pub(super) const OTHERS: &str = "(others)";

/// The samples of one combination of labels, since the start.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The labels. The page puts the event's name before them.
    pub(super) labels: Arc<[LabelPair]>,
    /// The number of samples.
    pub samples: u64,
    /// The number of events that the samples represent: the sum of their periods.
    pub events: u64,
    /// The latencies; `None` if no sample had one.
    pub latency: Option<Box<LatencyHistogram>>,
    touched: Option<Instant>,
}

/// A histogram of latencies. Each sample is weighted with its period, so the histogram is that of
/// the events even if the governor changed the period.
#[derive(Clone, Debug, Default)]
pub struct LatencyHistogram {
    /// The sum of the latencies, in core cycles.
    pub sum: f64,
    /// The number of events per bucket of [`EDGES`]; the last bucket takes all higher latencies.
    pub counts: [u64; EDGES.len() + 1],
}

/// The totals at one moment, from which a page is made. A copy, so that the naming thread does not
/// wait for the page.
#[derive(Debug)]
pub(super) struct TotalsSnapshot {
    /// Every series with the index of its event.
    pub series: Vec<(u16, Series)>,
    /// The number of series, and its limit.
    pub room: (usize, usize),
    /// For each event, the number of samples that got no series of their own.
    overflow: BTreeMap<u16, u64>,
}

impl TotalsSnapshot {
    /// Returns the number of samples of an event that got no series of their own.
    pub fn overflow(&self, event: u16) -> u64 {
        self.overflow.get(&event).copied().unwrap_or_default()
    }
}

/// The counts that one epoch adds to a series.
#[derive(Default)]
struct Added {
    samples: u64,
    events: u64,
    latency: Option<Box<LatencyHistogram>>,
}

/// The totals of all series.
#[derive(Debug)]
pub struct SeriesTotals {
    labels: Vec<SeriesLabel>,
    keys: Vec<Key>,
    limit: usize,
    series: BTreeMap<(u16, Vec<String>), Series>,
    /// For each event, the samples that got no series of their own.
    others: BTreeMap<u16, Series>,
    /// The machine, which the names of NUMA nodes need; `None` after the first rows.
    machine: Option<Machine>,
}

impl SeriesTotals {
    /// Creates totals with at most `limit` series, by these labels.
    pub fn new(labels: &[SeriesLabel], limit: usize, machine: Machine) -> Self {
        Self {
            labels: labels.to_vec(),
            keys: labels.iter().map(|label| label.key()).collect(),
            limit,
            series: BTreeMap::new(),
            others: BTreeMap::new(),
            machine: Some(machine),
        }
    }

    /// Returns the number of series, and its limit.
    pub fn room(&self) -> (usize, usize) {
        (self.series.len(), self.limit)
    }

    /// Returns every series with the index of its event.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &Series)> {
        let own = self.series.iter().map(|((event, _), series)| (*event, series));
        own.chain(self.others.iter().map(|(event, series)| (*event, series)))
    }

    /// Returns the number of samples of an event that got no series of their own.
    pub fn overflow(&self, event: u16) -> u64 {
        self.others.get(&event).map_or(0, |series| series.samples)
    }

    /// Returns a copy for a page.
    pub(super) fn snapshot(&self) -> TotalsSnapshot {
        TotalsSnapshot {
            series: self.iter().map(|(event, series)| (event, series.clone())).collect(),
            room: self.room(),
            overflow: self.others.iter().map(|(event, series)| (*event, series.samples)).collect(),
        }
    }

    /// Adds the rows of an epoch that ended at `now`.
    fn add(&mut self, named: &Capture, rows: &[Row], now: Instant) {
        // Idle series are removed first, to make room for new ones.
        self.series.retain(|_, series| series.touched.is_some_and(|touched| now - touched < IDLE));
        for (event, values, added) in by_keys(named, rows, &self.keys, Added::add) {
            let key = (event, values.iter().map(Value::text).collect());
            let series = if self.series.contains_key(&key) || self.series.len() < self.limit {
                let series = self.series.entry(key).or_default();
                // The labels are updated each time, because the name of a container becomes known
                // later than its cgroup.
                series.labels = pairs(&self.labels, &values, named).into();
                series
            } else {
                let others = self.labels.iter().map(|label| (label.name(), OTHERS.into()));
                self.others
                    .entry(event)
                    .or_insert_with(|| Series { labels: others.collect(), ..Series::default() })
            };
            series.take(added);
            series.touched = Some(now);
        }
    }
}

impl Added {
    fn add(&mut self, row: &Row) {
        let measures = &row.measures;
        self.samples = self.samples.saturating_add(measures.count);
        self.events = self.events.saturating_add(measures.period_sum);
        if let Some(bucket) = row.latency_bucket {
            let latency = self.latency.get_or_insert_default();
            let slowest = latency::lower(u32::from(bucket) + 1) - 1;
            let at = EDGES.partition_point(|edge| u64::from(*edge) < slowest);
            if let Some(count) = latency.counts.get_mut(at) {
                *count = count.saturating_add(measures.period_sum);
            }
            latency.sum +=
                measures.latency_sum as f64 * measures.period_sum as f64 / measures.count.max(1) as f64;
        }
    }
}

impl Series {
    fn take(&mut self, added: Added) {
        self.samples = self.samples.saturating_add(added.samples);
        self.events = self.events.saturating_add(added.events);
        if let Some(added) = added.latency {
            let latency = self.latency.get_or_insert_default();
            latency.sum += added.sum;
            for (count, more) in latency.counts.iter_mut().zip(added.counts) {
                *count = count.saturating_add(more);
            }
        }
    }
}

/// Totals that the naming thread updates and pages read.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<SeriesTotals>>);

impl Shared {
    pub fn new(totals: SeriesTotals) -> Self {
        Self(Arc::new(Mutex::new(totals)))
    }

    /// Calls `of` with the totals. A poisoned lock does no harm: each series is updated in one
    /// step, so a thread that panicked left whole series behind.
    pub fn with<T>(&self, of: impl FnOnce(&mut SeriesTotals) -> T) -> T {
        of(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    /// Adds the rows of the last epoch of `named`.
    pub fn take(&self, named: &mut Capture, rows: &[Row]) {
        self.with(|totals| {
            if let Some(machine) = totals.machine.take() {
                named.meta.machine = machine;
            }
            totals.add(named, rows, Instant::now());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use precise_model::{Epoch, Measures, Name};

    fn capture() -> Capture {
        let mut named = Capture::default();
        named.meta.epochs.push(Epoch::default());
        named
    }

    fn row(named: &mut Capture, cgroup: &str, bucket: Option<u32>, count: u64, period: u64) -> Row {
        let cgroup = Name::Known(named.names.intern(cgroup));
        let cycles = bucket.map_or(0, latency::lower);
        Row {
            epoch: 0,
            event: 0,
            cpu: None,
            cgroup_id: 1,
            cgroup,
            pid: 0,
            tid: 0,
            process: Name::Unknown(precise_model::Reason::NotRecorded),
            thread: Name::Unknown(precise_model::Reason::NotRecorded),
            kernel: false,
            code: None,
            data: None,
            stack: precise_model::Chain::NONE,
            data_src: 0,
            outcome: None,
            latency_bucket: bucket.and_then(|bucket| u8::try_from(bucket).ok()),
            exact: false,
            width: None,
            page_size: None,
            measures: Measures {
                count,
                period_sum: count * period,
                latency_sum: count * cycles,
                latency_max: cycles as u32,
            },
        }
    }

    fn totals(limit: usize) -> SeriesTotals {
        SeriesTotals::new(&SeriesLabel::parse_list("cgroup").unwrap(), limit, Machine::default())
    }

    fn found(totals: &SeriesTotals) -> Vec<(String, u64)> {
        totals.iter().map(|(_, series)| (series.labels[0].1.to_string(), series.samples)).collect()
    }

    #[test]
    fn every_edge_is_one_of_the_programs() {
        for edge in EDGES {
            let bucket = latency::bucket(edge);
            assert_eq!(latency::lower(bucket + 1) - 1, u64::from(edge), "{edge} lies within a bucket");
        }
        // All latencies of a bucket of the program fall into the same bucket of the histogram.
        for bucket in 0..latency::BUCKETS {
            let mut named = capture();
            let row = row(&mut named, "/a", Some(bucket), 1, 1);
            let mut added = Added::default();
            added.add(&row);
            let at = added.latency.unwrap().counts.iter().position(|count| *count == 1).unwrap();
            let (low, high) = (latency::lower(bucket), latency::lower(bucket + 1) - 1);
            let above = at.checked_sub(1).and_then(|at| EDGES.get(at));
            assert!(above.is_none_or(|edge| u64::from(*edge) < low), "{bucket}");
            assert!(EDGES.get(at).is_none_or(|edge| high <= u64::from(*edge)), "{bucket}");
        }
    }

    #[test]
    fn epochs_add_up_and_periods_weigh() {
        let (mut named, mut totals, now) = (capture(), totals(10), Instant::now());
        let of_200 = latency::bucket(200);
        // Three samples with period 100, then one with period 1,000 after the governor increased
        // it.
        let rows = [row(&mut named, "/a", Some(of_200), 3, 100), row(&mut named, "/b", None, 5, 7)];
        totals.add(&named, &rows, now);
        let rows = [row(&mut named, "/a", Some(latency::bucket(3000)), 1, 1000)];
        totals.add(&named, &rows, now);
        assert_eq!(found(&totals), [("/a".to_owned(), 4), ("/b".to_owned(), 5)]);
        let (_, a) = totals.iter().next().unwrap();
        assert_eq!(a.events, 1300);
        let latency = a.latency.as_ref().unwrap();
        let counts: Vec<_> = EDGES.iter().zip(latency.counts).filter(|(_, count)| *count > 0).collect();
        assert_eq!(counts, [(&255, 300), (&3071, 1000)]);
        let cycles = |bucket| latency::lower(latency::bucket(bucket)) as f64;
        assert!((latency.sum - (300.0 * cycles(200) + 1000.0 * cycles(3000))).abs() < 1e-6);
        assert!(totals.iter().nth(1).unwrap().1.latency.is_none(), "what has no latency has no histogram");
    }

    #[test]
    fn series_are_bounded_and_nothing_is_lost() {
        let (mut named, mut totals, now) = (capture(), totals(2), Instant::now());
        let rows: Vec<Row> = (0..100).map(|n| row(&mut named, &format!("/{n:03}"), None, 1, 10)).collect();
        totals.add(&named, &rows[..2], now);
        totals.add(&named, &rows, now);
        let shown = found(&totals);
        assert_eq!(shown, [("/000".to_owned(), 2), ("/001".to_owned(), 2), (OTHERS.to_owned(), 98)]);
        assert_eq!((totals.room(), totals.overflow(0)), ((2, 2), 98));
    }

    #[test]
    fn who_is_idle_leaves_room_for_who_comes() {
        let (mut named, mut totals, now) = (capture(), totals(2), Instant::now());
        let [a, b, c] = ["/a", "/b", "/c"].map(|path| row(&mut named, path, None, 1, 10));
        totals.add(&named, &[a, b], now);
        totals.add(&named, &[a], now + IDLE / 2);
        totals.add(&named, &[c], now + IDLE);
        assert_eq!(found(&totals), [("/a".to_owned(), 2), ("/c".to_owned(), 1)]);
        totals.add(&named, &[b], now + IDLE);
        assert_eq!(totals.overflow(0), 1, "{:?}", found(&totals));
    }
}
