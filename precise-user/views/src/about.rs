//! What every view reports about the run and about the event that its numbers come from.

use chrono::{DateTime, SecondsFormat};
use schemars::JsonSchema;
use serde::Serialize;

use super::trust::EventTrust;
use precise_model::{Capture, Epoch, EventInfo, Idle, PmuKind, RateChange};

/// Where and how a capture was made.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// What was sampled, in words, for example `all processes`.
    pub target: String,
    /// Name of the host that the capture was made on.
    pub host: String,
    /// When the run began, in RFC 3339 with milliseconds, in UTC. `None` if it is not known: a
    /// recording may have only the time since the boot of its machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// When the run ended, as `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Length of the run, in nanoseconds.
    pub duration_ns: u64,
    /// The filter of the run; empty if there was none.
    pub filter: String,
}

impl Run {
    /// Returns the description of the run that made `capture`.
    pub fn of(capture: &Capture) -> Self {
        let meta = &capture.meta;
        let at = |epoch: Option<u64>| {
            let since = epoch.filter(|_| meta.start_unix_ns > 0)?;
            rfc3339(meta.start_unix_ns.saturating_add(since))
        };
        Self {
            start: at(meta.epochs.first().map(|epoch| epoch.start_ns)),
            end: at(meta.epochs.last().map(|epoch| epoch.end_ns)),
            target: meta.target.clone(),
            host: meta.machine.host.clone(),
            duration_ns: duration(&meta.epochs),
            filter: meta.filter.clone(),
        }
    }
}

impl Run {
    /// Returns when the run was: "2026-11-23 14:03:10 to 14:03:40 UTC". `None` if that is unknown.
    pub fn when(&self) -> Option<String> {
        let (start, end) = (self.start.as_deref()?, self.end.as_deref()?);
        let part = |text: &str, range: std::ops::Range<usize>| text.get(range).map(str::to_owned);
        let (day, last) = (part(start, 0..10)?, part(end, 0..10)?);
        let (from, to) = (part(start, 11..19)?, part(end, 11..19)?);
        Some(match (day == last, from == to) {
            (true, true) => format!("{day} {from} UTC"),
            (true, false) => format!("{day} {from} to {to} UTC"),
            (false, _) => format!("{day} {from} to {last} {to} UTC"),
        })
    }
}

fn rfc3339(unix_ns: u64) -> Option<String> {
    let time = DateTime::from_timestamp_nanos(i64::try_from(unix_ns).ok()?);
    Some(time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// Returns the time from the start of the first epoch to the end of the last one, in nanoseconds.
pub fn duration(epochs: &[Epoch]) -> u64 {
    match (epochs.first(), epochs.last()) {
        (Some(first), Some(last)) => last.end_ns.saturating_sub(first.start_ns),
        _ => 0,
    }
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventSummary {
    /// Name of the event, as the user wrote it.
    #[serde(rename = "event")]
    pub name: String,
    /// PMU and encoding of the event.
    pub encoding: String,
    /// The unit that the period counts.
    pub unit: String,
    /// Sample period: events per sample. `None` in frequency mode.
    pub period: Option<u64>,
    /// Samples per second per CPU, in frequency mode; else `None`.
    pub frequency: Option<u64>,
    /// The changes that the overhead governor made to the period or frequency, in order. The first
    /// entry is the rate that the run started with. Empty if the governor changed nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateChange>,
    /// Whether the samples of this event have latencies.
    pub has_latency: bool,
    /// The samples of idle CPUs; absent if the event counts neither time nor cycles, or if it has
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// Ledger and verdict: how far the numbers of the event can be trusted.
    pub trust: EventTrust,
}

impl EventSummary {
    /// Returns the description of an event of a capture.
    pub fn of(info: &EventInfo, trust: EventTrust) -> Self {
        Self {
            name: info.name.clone(),
            encoding: info.encoding.clone(),
            unit: info.unit.clone(),
            period: info.period,
            frequency: info.frequency,
            rates: info.rates.clone(),
            has_latency: info.fields.latency,
            idle: info.idle,
            trust,
        }
    }
}

/// Returns what the hardware leaves out of the latencies of an event, one sentence each. Every view
/// that shows latencies prints these sentences.
pub fn latency_limits(info: &EventInfo) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(cycles) = info.hardware_filter.min_latency {
        notes.push(format!(
            "The hardware sampled only loads of at least {cycles} core cycles (ldlat). Faster loads are \
             in no number here, and percentiles cover only the slow ones."
        ));
    }
    if info.pmu == PmuKind::IbsOp {
        notes.push(
            "IBS measures latency only for loads that miss the L1 cache. Loads that hit L1 have no \
             latency and are in no percentile."
                .to_owned(),
        );
    }
    if info.hardware_filter.l3_miss_only {
        notes.push(
            "The hardware dropped accesses that did not miss the L3 cache, so faster accesses are missing."
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use precise_model::testing::{ibs_op, slow_loads};

    #[test]
    fn limits_of_the_hardware_are_said() {
        let mut event = EventInfo::default();
        assert!(latency_limits(&event).is_empty());
        slow_loads(&mut event, 30);
        assert!(latency_limits(&event)[0].contains("at least 30 core cycles"));
        let mut event = EventInfo::default();
        ibs_op(&mut event);
        event.hardware_filter.l3_miss_only = true;
        assert_eq!(latency_limits(&event).len(), 2);
    }
}
