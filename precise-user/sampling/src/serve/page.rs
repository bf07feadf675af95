//! Makes the page that is scraped.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use precise_common::ledger::Counter;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeCounterValue, MetricEncoder, NoLabelSet, text},
    metrics::MetricType,
    registry::Registry,
};

use super::{
    captures::{CaptureCounts, CapturesTable},
    format::{self, PageFormat},
    label::LabelPair,
    metric::{self, MetricKind, PageMetric},
    push::{PushCounts, PushTable},
    status::{EventStatus, ServeStatus},
    totals::{EDGES, LatencyHistogram, Shared, TotalsSnapshot},
    traffic::Traffic,
};
use crate::kernel::clock::thread_cpu_ns;

/// The data from which pages are made, and the page of the last epoch.
///
/// A page is made when it is requested for the first time after an epoch, so that a run that is
/// scraped less often than its epochs end does not pay for pages that nobody reads.
#[derive(Debug)]
pub(super) struct Page {
    totals: Shared,
    status: Mutex<ServeStatus>,
    traffic: Arc<Traffic>,
    /// `None` if the run keeps no captures.
    captures: Option<Arc<CaptureCounts>>,
    /// One for each place to which profiles are pushed.
    pushes: Arc<[Arc<PushCounts>]>,
    made: Mutex<Made>,
}

/// The page of an epoch. Answers share its memory.
#[derive(Debug, Default)]
struct Made {
    /// The number of epochs that had ended; `None` before the first page.
    epochs: Option<usize>,
    open_metrics: Bytes,
    /// The page in the format of Prometheus; `None` until it is requested.
    prometheus: Option<Bytes>,
}

impl Page {
    pub fn new(
        totals: Shared,
        status: ServeStatus,
        captures: Option<Arc<CaptureCounts>>,
        pushes: Arc<[Arc<PushCounts>]>,
    ) -> Self {
        let (status, traffic) = (Mutex::new(status), Arc::default());
        Self { totals, status, traffic, captures, pushes, made: Mutex::default() }
    }

    /// Sets the state of the run that pages show from now on.
    pub fn show(&self, status: &ServeStatus) {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone_from(status);
    }

    /// Returns the counters of the server, which pages show.
    pub fn traffic(&self) -> Arc<Traffic> {
        self.traffic.clone()
    }

    /// Calls `of` with the state of the run.
    pub fn status<T>(&self, of: impl FnOnce(&ServeStatus) -> T) -> T {
        of(&self.status.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the page of the last epoch. It is made once per epoch and format. Must be called on
    /// the thread that answers requests, whose CPU time the page shows; `painting` is that of the
    /// page for people, in nanoseconds.
    pub fn text(&self, format: PageFormat, painting: u64) -> Result<Bytes, fmt::Error> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let epochs = shown.epochs;
        let newer = (made.epochs != Some(epochs)).then(|| shown.clone());
        drop(shown);
        if let Some(status) = newer {
            let mut text = String::with_capacity(made.open_metrics.len() + 4096);
            let contents = Contents {
                status,
                totals: self.totals.with(|totals| totals.snapshot()),
                answering: thread_cpu_ns() + painting,
                traffic: self.traffic.clone(),
                captures: self.captures.as_ref().map(|counts| counts.table()),
                pushes: self.pushes.iter().map(|counts| counts.table()).collect(),
            };
            let mut registry = Registry::default();
            registry.register_collector(Box::new(contents));
            text::encode(&mut text, &registry)?;
            *made = Made { epochs: Some(epochs), open_metrics: text.into(), prometheus: None };
        }
        Ok(match format {
            PageFormat::OpenMetrics => made.open_metrics.clone(),
            PageFormat::Prometheus => {
                let Made { open_metrics, prometheus, .. } = &mut *made;
                // The page was made from a string.
                let text = || format::of_open_metrics(&String::from_utf8_lossy(open_metrics)).into();
                prometheus.get_or_insert_with(text).clone()
            }
        })
    }
}

/// What a page shows.
#[derive(Debug)]
struct Contents {
    status: ServeStatus,
    totals: TotalsSnapshot,
    /// CPU time of the thread that answers requests, in nanoseconds.
    answering: u64,
    traffic: Arc<Traffic>,
    captures: Option<CapturesTable>,
    pushes: Vec<PushTable>,
}

impl Collector for Contents {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Self { status, totals, .. } = self;
        let mut families = Families(&mut encoder);
        let of = |event: u16| status.events.get(usize::from(event)).map_or("", |event| &event.name);
        let with_event = |event: u16, labels: &[LabelPair]| -> Vec<LabelPair> {
            let event = std::iter::once(("event", of(event).to_owned().into()));
            event.chain(labels.iter().cloned()).collect()
        };
        let series = || totals.series.iter().map(|(event, series)| (*event, series));
        families.counters(
            metric::SAMPLES,
            series().map(|(event, series)| (with_event(event, &series.labels), series.samples)),
        )?;
        families.counters(
            metric::EVENTS,
            series().map(|(event, series)| (with_event(event, &series.labels), series.events)),
        )?;
        families.histograms(
            metric::LATENCY,
            series().filter_map(|(event, series)| {
                Some((with_event(event, &series.labels), series.latency.as_deref()?))
            }),
        )?;
        let overflow = (0u16..).zip(&status.events);
        families.counters(
            metric::OVERFLOW,
            overflow.map(|(index, event)| (vec![name(event)], totals.overflow(index))),
        )?;
        let (series, limit) = totals.room;
        families.gauge(metric::SERIES, series as f64)?;
        families.gauge(metric::SERIES_LIMIT, limit as f64)?;
        families.events(status)?;
        families.run(status)?;
        self.captures.iter().try_for_each(|captures| families.captures(captures))?;
        if !self.pushes.is_empty() {
            families.pushes(&self.pushes)?;
        }
        families.server(self.answering, &self.traffic)
    }
}

fn name(event: &EventStatus) -> LabelPair {
    ("event", event.name.clone().into())
}

fn pair(name: &'static str, value: impl Into<Cow<'static, str>>) -> LabelPair {
    (name, value.into())
}

fn seconds(ns: f64) -> f64 {
    ns / 1e9
}

/// Encodes the families of metrics, one after the other.
struct Families<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Families<'_, '_> {
    fn begin(&mut self, metric: PageMetric) -> Result<MetricEncoder<'_>, fmt::Error> {
        let kind = match metric.kind {
            MetricKind::Counter => MetricType::Counter,
            MetricKind::Gauge => MetricType::Gauge,
            MetricKind::Histogram => MetricType::Histogram,
            MetricKind::Info => MetricType::Info,
        };
        self.0.encode_descriptor(metric.name, metric.help, None, kind)
    }

    fn counters<V: EncodeCounterValue>(
        &mut self,
        metric: PageMetric,
        values: impl Iterator<Item = (Vec<LabelPair>, V)>,
    ) -> fmt::Result {
        let mut encoder = self.begin(metric)?;
        for (labels, value) in values {
            encoder.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }

    fn counter<V: EncodeCounterValue>(&mut self, metric: PageMetric, value: V) -> fmt::Result {
        self.begin(metric)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn gauges(
        &mut self,
        metric: PageMetric,
        values: impl Iterator<Item = (Vec<LabelPair>, f64)>,
    ) -> fmt::Result {
        let mut encoder = self.begin(metric)?;
        for (labels, value) in values {
            encoder.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn gauge(&mut self, metric: PageMetric, value: f64) -> fmt::Result {
        self.begin(metric)?.encode_gauge(&value)
    }

    fn histograms<'c>(
        &mut self,
        metric: PageMetric,
        values: impl Iterator<Item = (Vec<LabelPair>, &'c LatencyHistogram)>,
    ) -> fmt::Result {
        let mut encoder = self.begin(metric)?;
        for (labels, latency) in values {
            let edges = EDGES.iter().map(|edge| f64::from(*edge)).chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = edges.zip(latency.counts).collect();
            let count = latency.counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
            let mut encoder = encoder.encode_family(&labels)?;
            encoder.encode_histogram::<NoLabelSet>(latency.sum, count, &buckets, None)?;
        }
        Ok(())
    }

    fn infos(&mut self, metric: PageMetric, values: impl Iterator<Item = Vec<LabelPair>>) -> fmt::Result {
        let mut encoder = self.begin(metric)?;
        values.into_iter().try_for_each(|labels| encoder.encode_info(&labels))
    }

    /// Encodes the metrics of each event.
    fn events(&mut self, status: &ServeStatus) -> fmt::Result {
        let events = || status.events.iter();
        self.infos(
            metric::EVENT,
            events().map(|event| {
                vec![
                    name(event),
                    pair("encoding", event.encoding.clone()),
                    pair("unit", event.unit.clone()),
                    pair("exact", if event.exact { "yes" } else { "no" }),
                    pair("level", event.level.to_string()),
                    pair("filter", event.filter.clone()),
                ]
            }),
        )?;
        let known = |of: fn(&EventStatus) -> Option<u64>| {
            events().filter_map(move |event| Some((vec![name(event)], of(event)? as f64)))
        };
        self.gauges(metric::PERIOD, known(|event| event.period))?;
        self.gauges(metric::FREQUENCY, known(|event| event.frequency))?;
        let counter = |of: fn(&EventStatus) -> u64| events().map(move |event| (vec![name(event)], of(event)));
        self.counters(metric::RATE_CHANGES, counter(|event| event.rate_changes))?;
        self.counters(
            metric::LEDGER,
            events().flat_map(|event| {
                let rejected = ("rejected", event.ledger.filtered_total());
                let fates = metric::fates().map(|end| (end.name(), event.ledger.counter(end)));
                fates.chain([rejected]).map(|(fate, count)| (vec![name(event), pair("fate", fate)], count))
            }),
        )?;
        self.counters(
            metric::REJECTED,
            events().flat_map(|event| {
                event
                    .ledger
                    .rejected
                    .iter()
                    .map(|(clause, count)| (vec![name(event), pair("clause", clause.clone())], *count))
            }),
        )?;
        let unaccounted = events().map(|event| (vec![name(event)], event.ledger.unaccounted() as f64));
        self.gauges(metric::UNACCOUNTED, unaccounted)?;
        self.counters(
            metric::INCOMPLETE,
            events().flat_map(|event| {
                metric::missing().map(|(fact, counter)| {
                    (vec![name(event), pair("missing", fact.label())], event.ledger.counter(counter))
                })
            }),
        )?;
        self.counters(metric::LOST, counter(|event| event.ledger.lost))?;
        self.counters(
            metric::DISCARDED,
            events().flat_map(|event| {
                event
                    .ledger
                    .discarded
                    .iter()
                    .map(|(reason, count)| (vec![name(event), pair("reason", reason.clone())], *count))
            }),
        )?;
        self.counters(metric::THROTTLED, counter(|event| event.ledger.throttled))?;
        let stopped = |event: &EventStatus| u64::from(event.ledger.runaway.is_some());
        let stopped = events().map(|event| (vec![name(event)], stopped(event) as f64));
        self.gauges(metric::STOPPED, stopped)?;
        self.counters(metric::COUNTED, counter(|event| event.ledger.event_count))?;
        self.counters(metric::SEEN, counter(|event| event.ledger.counter(Counter::PeriodSeen)))?;
        let time = |of: fn(&EventStatus) -> u64| {
            events().map(move |event| (vec![name(event)], seconds(of(event) as f64)))
        };
        self.counters(metric::ENABLED, time(|event| event.ledger.enabled_ns))?;
        self.counters(metric::RUNNING, time(|event| event.ledger.running_ns))
    }

    /// Encodes the metrics of the run.
    fn run(&mut self, status: &ServeStatus) -> fmt::Result {
        if let Some(budget) = status.budget {
            self.gauge(metric::BUDGET, budget)?;
        }
        self.gauge(metric::OVERHEAD, status.overhead)?;
        let cpus = (0u32..).zip(&status.sampling);
        let sampling = cpus.map(|(cpu, ns)| (vec![pair("cpu", cpu.to_string())], seconds(*ns)));
        self.counters(metric::SAMPLING, sampling)?;
        self.counter(metric::READING, seconds(status.reading))?;
        self.counter(metric::PROCESS_CPU, seconds(status.process as f64))?;
        self.counter(metric::SIDEBAND, status.sideband_lost)?;
        self.counter(metric::EPOCHS, status.epochs as u64)?;
        self.gauge(metric::LAST_EPOCH, seconds(status.last_epoch_ns as f64))?;
        self.gauge(metric::PROCESS_START, seconds(status.start_ns as f64))?;
        if let Some(cpus) = status.unsampled {
            self.gauge(metric::UNSAMPLED, cpus as f64)?;
        }
        if let Some(resident) = status.resident {
            self.gauge(metric::PROCESS_MEMORY, resident as f64)?;
        }
        let version = pair("version", env!("CARGO_PKG_VERSION"));
        self.infos(metric::BUILD, std::iter::once(vec![version]))
    }

    /// Encodes the metrics of captures.
    fn captures(&mut self, captures: &CapturesTable) -> fmt::Result {
        self.counter(metric::CAPTURES, captures.written)?;
        if captures.last_ns > 0 {
            self.gauge(metric::LAST_CAPTURE, seconds(captures.last_ns as f64))?;
        }
        self.gauge(metric::KEPT_CAPTURES, captures.kept as f64)?;
        self.gauge(metric::KEPT_BYTES, captures.bytes as f64)?;
        for (metric, label, values) in [
            (metric::REMOVED, "reason", &captures.removed),
            (metric::UNCAPTURED, "reason", &captures.failed),
            (metric::DROPPED, "reason", &captures.dropped),
            (metric::UPLOADS, "result", &captures.uploads),
        ] {
            self.counters(metric, values.iter().map(|(value, count)| (vec![pair(label, *value)], *count)))?;
        }
        self.counter(metric::UPLOAD_RETRIES, captures.retries)?;
        self.gauge(metric::UPLOADS_WAITING, captures.waiting as f64)
    }

    /// Encodes the metrics of pushes.
    fn pushes(&mut self, pushes: &[PushTable]) -> fmt::Result {
        let to = |push: &PushTable| pair("to", push.place.clone());
        for (metric, list) in [
            (metric::PUSHED, (|push| &push.samples) as fn(&PushTable) -> &Vec<(&'static str, u64)>),
            (metric::PUSH_REQUESTS, |push| &push.requests),
        ] {
            let counts = pushes.iter().flat_map(|push| {
                list(push).iter().map(move |(how, count)| (vec![to(push), pair("result", *how)], *count))
            });
            self.counters(metric, counts)?;
        }
        for (metric, value) in [
            (metric::PUSH_REFUSED, (|push| push.refused) as fn(&PushTable) -> u64),
            (metric::PUSH_RETRIES, |push| push.retries),
        ] {
            self.counters(metric, pushes.iter().map(|push| (vec![to(push)], value(push))))?;
        }
        for (metric, value) in [
            (metric::PUSH_WAITING, (|push| push.waiting) as fn(&PushTable) -> u64),
            (metric::PUSH_BYTES, |push| push.bytes),
        ] {
            self.gauges(metric, pushes.iter().map(|push| (vec![to(push)], value(push) as f64)))?;
        }
        let last = pushes.iter().filter(|push| push.last_ns > 0);
        self.gauges(metric::LAST_PUSH, last.map(|push| (vec![to(push)], seconds(push.last_ns as f64))))
    }

    /// Encodes the metrics of the server.
    fn server(&mut self, answering: u64, traffic: &Traffic) -> fmt::Result {
        self.counter(metric::ANSWERING, seconds(answering as f64))?;
        let answers = traffic.answers();
        self.counters(
            metric::REQUESTS,
            answers.map(|(status, count)| (vec![pair("status", status.as_str().to_owned())], count)),
        )?;
        let closings = traffic.closings();
        self.counters(metric::CLOSED, closings.map(|(why, count)| (vec![pair("reason", why.name())], count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::traffic::Closed;
    use crate::serve::{SeriesLabel, SeriesTotals};
    use precise_model::{Ledger, Machine};

    fn status() -> ServeStatus {
        let mut ledger = Ledger { event_count: 1_000, throttled: 2, ..Ledger::default() };
        ledger.counters =
            [(Counter::Seen, 11), (Counter::Aggregated, 7), (Counter::Late, 1), (Counter::PeriodSeen, 990)]
                .into();
        ledger.rejected.push(("comm == \"a\\b\n\"".to_owned(), 3));
        let event =
            EventStatus { name: "loads".to_owned(), period: Some(97), ledger, ..EventStatus::default() };
        ServeStatus { events: vec![event], sampling: vec![1.5e9, 0.0], epochs: 3, ..ServeStatus::default() }
    }

    fn page() -> Page {
        let totals = SeriesTotals::new(&SeriesLabel::parse_list("cgroup").unwrap(), 10, Machine::default());
        let pushes = [Arc::new(PushCounts::new("otlp=http://collector:4318".into()))];
        Page::new(Shared::new(totals), status(), Some(Arc::default()), Arc::new(pushes))
    }

    fn text(page: &Page) -> String {
        String::from_utf8(page.text(PageFormat::OpenMetrics, 0).unwrap().into()).unwrap()
    }

    fn has(text: &str, line: &str) -> bool {
        text.lines().any(|found| found == line)
    }

    #[test]
    fn what_a_page_says() {
        let page = page();
        page.traffic().closed(Closed::Displaced);
        let text = text(&page);
        for line in [
            "# TYPE precise_ledger_samples counter",
            "precise_ledger_samples_total{event=\"loads\",fate=\"aggregated\"} 7",
            "precise_ledger_samples_total{event=\"loads\",fate=\"rejected\"} 3",
            "precise_ledger_samples_total{event=\"loads\",fate=\"late\"} 1",
            "precise_ledger_samples_total{event=\"loads\",fate=\"table_full\"} 0",
            "precise_rejected_samples_total{event=\"loads\",clause=\"comm == \\\"a\\\\b\\n\\\"\"} 3",
            "precise_unaccounted_samples{event=\"loads\"} 0.0",
            "precise_period_events{event=\"loads\"} 97.0",
            "precise_sampling_seconds_total{cpu=\"0\"} 1.5",
            "precise_event_stopped{event=\"loads\"} 0.0",
            "precise_counted_events_total{event=\"loads\"} 1000",
            "precise_epochs_total 3",
            "precise_series_limit 10.0",
            "precise_requests_total{status=\"421\"} 0",
            "precise_closed_connections_total{reason=\"displaced\"} 1",
            "precise_captures_total 0",
            "precise_uncaptured_samples_total{reason=\"disk_full\"} 0",
            "precise_uploads_total{result=\"failed\"} 0",
            "precise_pushed_samples_total{to=\"otlp=http://collector:4318\",result=\"displaced\"} 0",
            "precise_push_requests_total{to=\"otlp=http://collector:4318\",result=\"partial\"} 0",
            "precise_push_waiting_samples{to=\"otlp=http://collector:4318\"} 0.0",
            "# EOF",
        ] {
            assert!(has(&text, line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("precise_overhead_budget_ratio"), "nothing governs this one");
        assert!(text.ends_with("# EOF\n"));
    }

    // `precise_ledger_samples` and `precise_unaccounted_samples` add up to all samples that reached
    // the program, so every fate of a sample needs a row.
    #[test]
    fn every_end_of_a_sample_has_a_row() {
        let text = text(&page());
        let rows = text.lines().filter(|line| line.starts_with("precise_ledger_samples_total{")).count();
        let ends = Counter::ALL.iter().filter(|counter| counter.fate().ends()).count();
        // Rejected samples have a row without a counter, and the counter of streaming runs has no
        // row.
        assert_eq!(rows, ends);
        for (_, counter) in metric::missing() {
            assert_eq!(counter.fate().part_of(), Some(Counter::Aggregated));
        }
    }

    #[test]
    fn every_family_is_in_the_catalogue_and_described_once() {
        let text = text(&page());
        let families: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .filter_map(|line| line.split(' ').next())
            .collect();
        for (at, family) in families.iter().enumerate() {
            assert!(PageMetric::ALL.iter().any(|metric| metric.name == *family), "{family}");
            assert!(!families[at + 1..].contains(family), "{family} is described twice");
        }
    }

    #[test]
    fn a_page_is_made_once_for_each_epoch() {
        let page = page();
        for format in [PageFormat::OpenMetrics, PageFormat::Prometheus] {
            let first = page.text(format, 0).unwrap();
            assert_eq!(first.as_ptr(), page.text(format, 0).unwrap().as_ptr(), "{format:?}");
        }
        page.show(&ServeStatus { epochs: 4, ..status() });
        for format in [PageFormat::OpenMetrics, PageFormat::Prometheus] {
            let second = page.text(format, 0).unwrap();
            assert!(has(std::str::from_utf8(&second).unwrap(), "precise_epochs_total 4"), "{format:?}");
        }
    }

    #[test]
    fn both_formats_have_the_same_values() {
        let page = page();
        let values = |text: &Bytes| -> Vec<String> {
            let text = std::str::from_utf8(text).unwrap();
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        let open = page.text(PageFormat::OpenMetrics, 0).unwrap();
        let prometheus = page.text(PageFormat::Prometheus, 0).unwrap();
        assert_eq!(values(&open), values(&prometheus));
        let text = std::str::from_utf8(&prometheus).unwrap();
        for metric in PageMetric::ALL {
            // Every value belongs to a family that is described under the name that its line has.
            let described = has(
                text,
                &format!(
                    "# TYPE {} {}",
                    metric.full_name(),
                    match metric.kind {
                        MetricKind::Counter => "counter",
                        MetricKind::Gauge | MetricKind::Info => "gauge",
                        MetricKind::Histogram => "histogram",
                    }
                ),
            );
            let there = text.lines().any(|line| line.starts_with(&metric.full_name()));
            assert!(described || !there, "{}:\n{text}", metric.name);
        }
    }
}
