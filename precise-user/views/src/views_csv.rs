//! Views as lines of separated values: as [`crate::report::csv::report_csv`] writes them.

use crate::grouping::Group;
use crate::latency::Latency;
use crate::mem::Mem;
use crate::numa::Numa;
use crate::numa::text::title;
use crate::report::csv::{percentile, shares};
use crate::tlb::TlbView;
use precise_model::csv::line;
use precise_model::keys::Key;

const SHARE: [&str; 3] = ["share", "share_low", "share_high"];
const LATENCIES: [&str; 14] = [
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

/// Where loads and stores hit: a line per group.
pub fn mem_csv(mem: &Mem, separator: &str) -> String {
    let mut table = Lines::new(separator, &["event", "op"], &mem.by);
    table.header(&["samples"], &SHARE);
    table.header(&["latency_sum", "overhead", "overhead_low", "overhead_high"], &LATENCIES);
    for event in &mem.events {
        for accesses in &event.accesses {
            for group in &accesses.groups.list {
                let mut fields = vec![event.event.name.clone(), accesses.op.to_owned()];
                fields.extend(group.values.iter().map(|value| value.text()));
                fields.push(group.measures.count.to_string());
                fields.extend(shares(group.share));
                let timed = group.latency_share.filter(|_| accesses.timed);
                fields.push(timed.map_or_else(String::new, |_| group.measures.latency_sum.to_string()));
                fields.extend(timed.map_or([const { String::new() }; 3], shares));
                fields.extend(latencies(group));
                table.line(fields);
            }
        }
    }
    table.done()
}

/// Latencies: a line per group, of all groups where there are none.
pub fn latency_csv(view: &Latency, separator: &str) -> String {
    let mut table = Lines::new(separator, &["event"], &view.by);
    table.header(&["samples"], &SHARE);
    table.header(&[], &LATENCIES);
    table.header(&["mode_low", "mode_high", "mode_level"], &[]);
    for event in &view.events {
        let all = event.all.iter().filter(|_| view.by.is_empty());
        for distribution in event.groups.iter().chain(all) {
            let group = &distribution.group;
            let mut fields = vec![event.event.name.clone()];
            fields.extend(group.values.iter().map(|value| value.text()));
            fields.push(group.measures.count.to_string());
            fields.extend(shares(group.share));
            fields.extend(latencies(group));
            fields.extend(distribution.mode.as_ref().map_or([const { String::new() }; 3], |mode| {
                let level = mode.served.as_ref().map_or_else(String::new, |(level, _)| level.clone());
                [mode.bucket.low.to_string(), mode.bucket.high.to_string(), level]
            }));
            table.line(fields);
        }
    }
    table.done()
}

/// Page walks: a line per group.
pub fn tlb_csv(view: &TlbView, separator: &str) -> String {
    let mut table = Lines::new(separator, &["event"], &view.by);
    table.header(&["accesses", "walks", "walk_rate", "walk_rate_low", "walk_rate_high"], &SHARE);
    table.header(&["latency_avg_walked", "latency_avg_others"], &[]);
    for event in &view.events {
        for walks in &event.walks {
            let mut fields = vec![event.event.name.clone()];
            fields.extend(walks.values.iter().map(|value| value.text()));
            fields.extend([walks.accesses.to_string(), walks.walked.to_string()]);
            fields.extend(shares(walks.rate));
            fields.extend(shares(walks.share));
            fields.extend([average(walks.walked_average), average(walks.other_average)]);
            table.line(fields);
        }
    }
    table.done()
}

/// Node by node: a line per node of the CPU and place that served.
pub fn numa_csv(numa: &Numa, separator: &str) -> String {
    let mut table = Lines::new(separator, &["event", "cpu_node", "place"], &[]);
    table.header(&["samples"], &SHARE);
    table.header(&["latency_avg"], &[]);
    for event in &numa.events {
        for row in &event.from {
            for to in &row.to {
                let node = row.node.map_or_else(String::new, |node| node.to_string());
                let mut fields =
                    vec![event.event.name.clone(), node, title(to.place), to.samples.to_string()];
                fields.extend(to.share.map_or([const { String::new() }; 3], shares));
                fields.push(average(to.average));
                table.line(fields);
            }
        }
    }
    table.done()
}

/// What is not known is empty.
pub(crate) fn average(average: Option<f64>) -> String {
    average.map_or_else(String::new, |average| format!("{average:.3}"))
}

fn latencies(group: &Group) -> Vec<String> {
    let timed = group.measures.latency_max > 0;
    let mut fields = vec![
        average(group.average.filter(|_| timed)),
        if timed { group.measures.latency_max.to_string() } else { String::new() },
    ];
    fields.extend([group.p50, group.p90, group.p99, group.p999].into_iter().flat_map(percentile));
    fields
}

/// Lines with a header.
pub(crate) struct Lines<'a> {
    separator: &'a str,
    header: Vec<String>,
    lines: String,
}

impl<'a> Lines<'a> {
    /// A header of some names and the keys.
    pub fn new(separator: &'a str, first: &[&str], by: &[Key]) -> Self {
        let header = first.iter().map(|name| (*name).to_owned());
        let header = header.chain(by.iter().map(|key| key.name().to_owned())).collect();
        Self { separator, header, lines: String::new() }
    }

    /// More names of the header.
    pub fn header(&mut self, names: &[&str], more: &[&str]) {
        self.header.extend(names.iter().chain(more).map(|name| (*name).to_owned()));
    }

    /// A line.
    pub fn line(&mut self, fields: Vec<String>) {
        line(&mut self.lines, &fields, self.separator);
    }

    /// All of it.
    pub fn done(self) -> String {
        let mut out = String::new();
        line(&mut out, &self.header, self.separator);
        out + &self.lines
    }
}
