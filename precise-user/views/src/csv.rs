//! CSV output, for the views that support it.

use precise_model::csv::line;
use precise_model::keys::Key;

use crate::grouping::Group;
use crate::stats::{Percentile, Share};

/// Column names of a share and its interval.
pub(crate) const SHARE: [&str; 3] = ["share", "share_low", "share_high"];
/// Column names of the fields that [`latencies`] returns.
pub(crate) const LATENCIES: [&str; 14] = [
    "latency_avg",
    "latency_max",
    "latency_p50",
    "latency_p50_low",
    "latency_p50_high",
    "latency_p90",
    "latency_p90_low",
    "latency_p90_high",
    "latency_p99",
    "latency_p99_low",
    "latency_p99_high",
    "latency_p999",
    "latency_p999_low",
    "latency_p999_high",
];

/// The fields of an unknown share: all empty.
pub(crate) const NOTHING: [String; 3] = [const { String::new() }; 3];

/// Returns the fields of a share and its interval.
pub(crate) fn shares(share: Share) -> [String; 3] {
    [share.value, share.low, share.high].map(|part| format!("{part:.6}"))
}

/// Returns the fields of a percentile and its interval, in core cycles. They are empty if there are
/// too few samples.
pub(crate) fn percentile(percentile: Option<Percentile>) -> [String; 3] {
    percentile.map_or([const { String::new() }; 3], |p| {
        [p.cycles.to_string(), p.interval[0].to_string(), p.interval[1].to_string()]
    })
}

/// Returns the field of an average; empty if it is unknown.
pub(crate) fn average(average: Option<f64>) -> String {
    average.map_or_else(String::new, |average| format!("{average:.3}"))
}

/// Returns the fields of a group's average, maximum and percentiles.
pub(crate) fn latencies(group: &Group) -> Vec<String> {
    let timed = group.measures.latency_max > 0;
    let mut fields = vec![
        average(group.average.filter(|_| timed)),
        if timed { group.measures.latency_max.to_string() } else { String::new() },
    ];
    fields.extend([group.p50, group.p90, group.p99, group.p999].into_iter().flat_map(percentile));
    fields
}

/// Builds CSV lines, starting with a header.
pub(crate) struct CsvLines<'a> {
    separator: &'a str,
    header: Vec<String>,
    lines: String,
}

impl<'a> CsvLines<'a> {
    /// Starts a header with the given names, followed by the names of the group keys.
    pub fn new(separator: &'a str, first: &[&str], by: &[Key]) -> Self {
        let header = first.iter().map(|name| (*name).to_owned());
        let header = header.chain(by.iter().map(|key| key.name().to_owned())).collect();
        Self { separator, header, lines: String::new() }
    }

    /// Adds more names to the header.
    pub fn header(&mut self, names: &[&str], more: &[&str]) {
        self.header.extend(names.iter().chain(more).map(|name| (*name).to_owned()));
    }

    /// Adds a line.
    pub fn line(&mut self, fields: Vec<String>) {
        line(&mut self.lines, &fields, self.separator);
    }

    /// Returns the complete text.
    pub fn done(self) -> String {
        let mut out = String::new();
        line(&mut out, &self.header, self.separator);
        out + &self.lines
    }
}
