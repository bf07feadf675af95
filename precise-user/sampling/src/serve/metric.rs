//! The metrics of the page: name, kind and description, for the page and for its documentation.

use precise_common::ledger::{Counter, Fact, Fate};

use precise_model::text::wrap;

use super::label::SeriesLabel;

/// The kind of a metric, in the terms of OpenMetrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that only grows. Its name on the page ends in `_total`.
    Counter,
    /// A value that can grow and shrink.
    Gauge,
    /// Buckets with upper bounds, a sum and a count.
    Histogram,
    /// Always 1; the information is in the labels. Its name on the page ends in `_info`.
    Info,
}

/// A metric of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMetric {
    /// The name, without the suffix that its kind adds.
    pub name: &'static str,
    /// Its kind.
    pub kind: MetricKind,
    /// The names of its labels; `…` stands for the labels that the user chose.
    pub labels: &'static str,
    /// The description, in one line.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal, $labels:literal, $help:literal;)*) => {
        $(pub(super) const $constant: PageMetric =
            PageMetric { name: $name, kind: MetricKind::$kind, labels: $labels, help: $help };)*

        impl PageMetric {
            /// All metrics, in the order of the page.
            pub const ALL: &[Self] = &[$($constant),*];
        }
    };
}

metrics! {
    SAMPLES: Counter "precise_samples", "event, …",
        "Samples that passed the filter. Use this to judge how reliable the other metrics are.";
    EVENTS: Counter "precise_events", "event, …",
        "Events that the samples stand for: the sum of their periods, in the unit that \
         precise_event_info gives.";
    LATENCY: Histogram "precise_latency_cycles", "event, …",
        "Latencies in core cycles. Each sample counts as often as its period, so these estimate events, \
         not samples.";
    EVENT: Info "precise_event", "event, encoding, unit, exact, level, filter",
        "One series per event: its encoding, the unit of its period, whether its addresses are exact, \
         and its precise level.";
    PERIOD: Gauge "precise_period_events", "event",
        "Current period: events per sample. The limit of the overhead may change it. Absent in frequency mode.";
    FREQUENCY: Gauge "precise_frequency_hertz", "event",
        "Current frequency: samples requested per second per CPU. Absent if the period is fixed.";
    RATE_CHANGES: Counter "precise_rate_changes", "event",
        "Changes of the period or frequency to stay within the limit of the overhead.";
    LEDGER: Counter "precise_ledger_samples", "event, fate",
        "Samples that reached the program, by fate. With unaccounted samples at 0, the fates add up to \
         all samples.";
    REJECTED: Counter "precise_rejected_samples", "event, clause",
        "Rejected samples by the first clause of the filter that they failed: the fate `rejected` of \
         precise_ledger_samples.";
    UNACCOUNTED: Gauge "precise_unaccounted_samples", "event",
        "Samples that reached the program but have no fate. Anything but 0 is a bug in precise.";
    INCOMPLETE: Counter "precise_incomplete_samples", "event, missing",
        "Aggregated samples in which the hardware did not report a field that the run needs.";
    LOST: Counter "precise_lost_samples", "event",
        "Samples that the kernel reports as lost before they reached the program.";
    DISCARDED: Counter "precise_discarded_samples", "event, reason",
        "Aggregated samples that user space had to discard.";
    OVERFLOW: Counter "precise_overflow_samples", "event",
        "Samples that did not get a series of their own: they count in the series labelled `(others)`.";
    UNSAMPLED: Gauge "precise_unsampled_cpus", "",
        "CPUs that are online and should be sampled, and are not. For an instant after a CPU comes online this is normal.";
    SIDEBAND: Counter "precise_lost_process_records", "",
        "Lost records of process starts, mappings and cgroups: some samples may lack names.";
    THROTTLED: Counter "precise_throttled", "event",
        "Times that the kernel throttled the event because it was too frequent.";
    STOPPED: Gauge "precise_event_stopped", "event",
        "1 where precise stopped the event for good, as it took far more samples than were asked for; otherwise 0.";
    COUNTED: Counter "precise_counted_events", "event",
        "The event's own count, regardless of the filter. Coverage is precise_seen_events divided by this.";
    SEEN: Counter "precise_seen_events", "event",
        "Events that the samples stand for that reached the program, before the filter.";
    ENABLED: Counter "precise_enabled_seconds", "event",
        "Time that the event was enabled, over all CPUs or tasks.";
    RUNNING: Counter "precise_running_seconds", "event",
        "Time that the event counted; less than enabled if events shared counters.";
    BUDGET: Gauge "precise_overhead_budget_ratio", "",
        "Limit of the overhead per CPU, as a ratio of its time. Absent without a limit.";
    OVERHEAD: Gauge "precise_overhead_ratio", "",
        "Estimated overhead of the last epoch on the busiest CPU, as a ratio of its time: sampling and \
         a share of reading.";
    SAMPLING: Counter "precise_sampling_seconds", "cpu",
        "Estimated time that samples took per CPU: the program is measured on 1 of 64 samples, the \
         interrupt is assumed.";
    READING: Counter "precise_reading_seconds", "",
        "CPU time of the thread that reads the tables.";
    ANSWERING: Counter "precise_answering_seconds", "",
        "CPU time of the thread that makes the page and answers requests. It is not part of the overhead.";
    REQUESTS: Counter "precise_requests", "status",
        "Answered requests, by HTTP status.";
    CLOSED: Counter "precise_closed_connections", "reason",
        "Connections closed without an answer: `displaced` by a newer one, `refused` for lack of room, \
         over a `deadline`, `invalid` HTTP, `not_accepted` from the kernel.";
    CAPTURES: Counter "precise_captures", "",
        "Captures that were completed. This and the following are absent without --captures.";
    LAST_CAPTURE: Gauge "precise_last_capture_timestamp_seconds", "",
        "When the last capture was completed. Absent before the first one.";
    KEPT_CAPTURES: Gauge "precise_kept_captures", "",
        "Captures in the folder, with partial ones of runs that were killed.";
    KEPT_BYTES: Gauge "precise_kept_captures_bytes", "",
        "Size of the captures in the folder.";
    REMOVED: Counter "precise_removed_captures", "reason",
        "Captures that were removed: beyond --keep-bytes (`bytes`) or --keep-age (`age`), or because of a full disk (`disk_full`).";
    UNCAPTURED: Counter "precise_failed_captures", "reason",
        "Captures that could not be completed. What was written of them until then may be in a partial file.";
    DROPPED: Counter "precise_uncaptured_samples", "reason",
        "Samples that are in no complete capture. They are in the series.";
    UPLOADS: Counter "precise_uploads", "result",
        "Captures by what became of their upload: `done`, `failed` after all attempts, `skipped` because too many waited, `gone` because they were removed before.";
    UPLOAD_RETRIES: Counter "precise_upload_retries", "",
        "Attempts to upload a capture after its first one.";
    UPLOADS_WAITING: Gauge "precise_waiting_uploads", "",
        "Captures that wait to be uploaded.";
    PUSHED: Counter "precise_pushed_samples", "to, result",
        "Samples by what became of their push: `sent`, `partial` where the place took only some profiles of a request, \
         `refused` for good, `failed` after all attempts, `displaced` by newer ones before any attempt. \
         The metrics of pushes are absent without --push.";
    PUSH_REQUESTS: Counter "precise_push_requests", "to, result",
        "Requests with profiles, by what became of them.";
    PUSH_REFUSED: Counter "precise_push_refused_profiles", "to",
        "Profiles that a place refused, of a request that it took or of one that it refused whole.";
    PUSH_RETRIES: Counter "precise_push_retries", "to",
        "Attempts to push a request after its first one.";
    PUSH_WAITING: Gauge "precise_push_waiting_samples", "to",
        "Samples that wait to be pushed, or are being pushed.";
    PUSH_BYTES: Gauge "precise_push_waiting_bytes", "to",
        "Memory of the samples that wait, about.";
    LAST_PUSH: Gauge "precise_last_push_timestamp_seconds", "to",
        "When the place took a request last. Absent before the first one.";
    SERIES: Gauge "precise_series", "",
        "Combinations of labels that have a series now.";
    SERIES_LIMIT: Gauge "precise_series_limit", "",
        "Limit of precise_series.";
    EPOCHS: Counter "precise_epochs", "",
        "Epochs that have ended.";
    LAST_EPOCH: Gauge "precise_last_epoch_timestamp_seconds", "",
        "End of the last epoch: the page shows the state at this time.";
    BUILD: Info "precise_build", "version",
        "Version of precise.";
    PROCESS_CPU: Counter "process_cpu_seconds", "",
        "CPU time of the process, including naming.";
    PROCESS_MEMORY: Gauge "process_resident_memory_bytes", "",
        "Memory of the process.";
    PROCESS_START: Gauge "process_start_time_seconds", "",
        "Start of sampling.";
}

/// Returns the counters of the fates that a sample can have after it reached the program. Samples
/// that the filter rejected are counted per clause instead, and a served run never streams.
pub(super) fn fates() -> impl Iterator<Item = Counter> {
    let ends = |counter: &Counter| counter.fate().ends() && counter.fate() != Fate::Streamed;
    Counter::ALL.iter().copied().filter(ends)
}

/// Returns the facts that an aggregated sample may lack, with their counters.
pub(super) fn missing() -> impl Iterator<Item = (Fact, Counter)> {
    Counter::ALL.iter().filter_map(|counter| match counter.fate() {
        Fate::Lacks(fact) => Some((fact, *counter)),
        _ => None,
    })
}

impl PageMetric {
    /// Returns the name of the metric on the page, with its suffix.
    pub fn full_name(&self) -> String {
        let ending = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::Histogram => "",
        };
        format!("{}{ending}", self.name)
    }

    /// Returns the table of metrics for the documentation.
    pub fn table() -> String {
        let mut text = "| metric | labels | meaning |\n| --- | --- | --- |\n".to_owned();
        for metric in Self::ALL {
            let kind = if metric.kind == MetricKind::Histogram { " (histogram)" } else { "" };
            text += &format!("| `{}`{kind} | {} | {} |\n", metric.full_name(), metric.labels, metric.help);
        }
        let labels: Vec<String> = SeriesLabel::all().map(|label| format!("`{}`", label.name())).collect();
        let labels = format!("`…` stands for the chosen labels: {}.", labels.join(", "));
        format!("{text}\n{}\n", wrap(&labels, 100, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_no_kind_ends_twice() {
        for (at, metric) in PageMetric::ALL.iter().enumerate() {
            assert!(
                PageMetric::ALL[at + 1..].iter().all(|other| other.name != metric.name),
                "{}",
                metric.name
            );
            assert!(!metric.name.ends_with("_total") && !metric.name.ends_with("_info"), "{}", metric.name);
            assert!(metric.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", metric.name);
            assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{}", metric.help);
        }
    }
}
