//! Reports as lines of separated values.

use crate::views::report::Report;
use crate::views::stats::Percentile;

/// A report, a line per group, with a header line. `separator` may be any text; a field that holds it, a
/// quote or a line break is quoted as RFC 4180 says. Every line repeats whether the event was precise and how
/// much of it was covered, because a line is copied alone. What is not known is empty.
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
        "latency_avg",
        "latency_max",
        "latency_p50",
        "latency_p90",
        "latency_p99",
        "precise",
        "coverage",
    ];
    header.extend(measures.map(str::to_owned));
    line(&mut out, &header, separator);
    for section in &report.events {
        let latency = |value: String| if section.has_latency { value } else { String::new() };
        let percentile = |p: &Option<Percentile>| p.map_or_else(String::new, |p| p.cycles.to_string());
        for group in &section.groups {
            let mut fields = vec![section.event.clone()];
            fields.extend(group.values.iter().map(|value| value.text()));
            fields.extend([
                group.measures.count.to_string(),
                format!("{:.6}", group.share.value),
                format!("{:.6}", group.share.low),
                format!("{:.6}", group.share.high),
                group.measures.period_sum.to_string(),
                latency(group.measures.latency_sum.to_string()),
                group.average.map_or_else(String::new, |a| format!("{a:.3}")),
                latency(group.measures.latency_max.to_string()),
                percentile(&group.p50),
                percentile(&group.p90),
                percentile(&group.p99),
                section.trust.precise.to_string(),
                section.trust.coverage.map_or_else(String::new, |c| format!("{c:.6}")),
            ]);
            line(&mut out, &fields, separator);
        }
    }
    out
}

fn line(out: &mut String, fields: &[String], separator: &str) {
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            *out += separator;
        }
        let holds_separator = !separator.is_empty() && field.contains(separator);
        if holds_separator || field.contains(['"', '\n', '\r']) {
            out.push('"');
            *out += &field.replace('"', "\"\"");
            out.push('"');
        } else {
            *out += field;
        }
    }
    out.push('\n');
}
