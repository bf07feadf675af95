//! Reports as lines of separated values.

use super::text::sanitize;
use crate::views::report::Report;
use crate::views::stats::{Percentile, Share};

/// A report, a line per group, with a header line. `separator` may be any text; a field that holds it or a
/// quote is quoted as RFC 4180 says. Every line repeats whether the event was precise and how
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

/// A share and its interval.
pub(super) fn shares(share: Share) -> [String; 3] {
    [share.value, share.low, share.high].map(|part| format!("{part:.6}"))
}

/// A percentile and its interval, core cycles; empty where there are too few samples.
pub(super) fn percentile(percentile: Option<Percentile>) -> [String; 3] {
    percentile.map_or([const { String::new() }; 3], |p| {
        [p.cycles.to_string(), p.interval[0].to_string(), p.interval[1].to_string()]
    })
}

/// A number, also as offsets are written: `+0x1c`.
fn is_number(field: &str) -> bool {
    let hex = field.trim_start_matches(['+', '-']).strip_prefix("0x");
    field.parse::<f64>().is_ok()
        || hex.is_some_and(|hex| !hex.is_empty() && hex.chars().all(|digit| digit.is_ascii_hexdigit()))
}

/// A line of fields, quoted where they must be, and harmless: to a terminal (as [`sanitize`] makes them), and to a
/// spreadsheet, which takes what begins with `=`, `+`, `-` or `@` for a formula. Such a field gets an apostrophe in front,
/// unless it is a number. The exact text is in the JSON.
pub(crate) fn line(out: &mut String, fields: &[String], separator: &str) {
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            *out += separator;
        }
        let mut field = sanitize(field);
        if field.starts_with(['=', '+', '-', '@']) && !is_number(&field) {
            field.insert(0, '\'');
        }
        let holds_separator = !separator.is_empty() && field.contains(separator);
        if holds_separator || field.contains('"') {
            out.push('"');
            *out += &field.replace('"', "\"\"");
            out.push('"');
        } else {
            *out += &field;
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn fields_are_harmless() {
        let fields = [
            "=cmd|' /C calc'!A0",
            "@SUM(1)",
            "-12.5",
            "+1e3",
            "+0x1c",
            "-0x1+A1",
            "-x",
            "a,\"b",
            "c\nd\u{1b}[2J",
            "é",
        ];
        let mut out = String::new();
        line(&mut out, &fields.map(str::to_owned), ",");
        assert_eq!(
            out,
            "'=cmd|' /C calc'!A0,'@SUM(1),-12.5,+1e3,+0x1c,'-0x1+A1,'-x,\"a,\"\"b\",c\u{fffd}d\u{fffd}[2J,é\n"
        );
    }
}
