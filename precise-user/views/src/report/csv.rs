//! Reports as separated values.

use crate::csv::{percentile, shares};
use crate::report::Report;
use precise_model::csv::line;

/// Returns a header line and one line per group. `separator` may be any text; a field that contains
/// it or a quote is quoted as in RFC 4180. Every line repeats whether the event was precise and its
/// coverage, because lines are copied alone. Unknown values are empty.
pub fn report_csv(report: &Report, separator: &str) -> String {
    let mut out = String::new();
    let mut header = vec!["event".to_owned()];
    header.extend(report.by.iter().map(|key| key.name().to_owned()));
    let measures = [
        "samples",
        "share",
        "share_low",
        "share_high",
        "period_sum",
        "latency_sum",
        "latency_share",
        "latency_share_low",
        "latency_share_high",
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
        "precise",
        "coverage",
    ];
    header.extend(measures.map(str::to_owned));
    line(&mut out, &header, separator);
    for section in &report.events {
        let latency = |value: String| if section.event.has_latency { value } else { String::new() };
        for group in &section.groups.list {
            let mut fields = vec![section.event.name.clone()];
            fields.extend(group.values.iter().map(|value| value.text()));
            fields.extend([group.measures.count.to_string()]);
            fields.extend(shares(group.share));
            fields.extend([
                group.measures.period_sum.to_string(),
                latency(group.measures.latency_sum.to_string()),
            ]);
            fields.extend(group.latency_share.map_or([const { String::new() }; 3], shares));
            fields.extend([
                group.average.map_or_else(String::new, |a| format!("{a:.3}")),
                latency(group.measures.latency_max.to_string()),
            ]);
            fields.extend([group.p50, group.p90, group.p99].into_iter().flat_map(percentile));
            fields.extend([
                section.event.trust.precise.to_string(),
                section.event.trust.coverage.map_or_else(String::new, |c| format!("{c:.6}")),
            ]);
            line(&mut out, &fields, separator);
        }
    }
    out
}
