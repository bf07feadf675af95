//! Numbers in readable form.

use crate::stats::Share;
use chrono::DateTime;
pub use precise_model::digits::{percent, percent_change, percent_to, thousands};

/// Formats a number with three significant digits and a unit prefix: `1.23G`. Exact below 1,000.
pub fn short(number: u64) -> String {
    const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    let mut value = number as f64;
    let mut step = 0;
    // 999.5 would be printed as 1000.
    while value >= 999.5 && step + 1 < PREFIXES.len() {
        value /= 1000.0;
        step += 1;
    }
    let digits = match value {
        _ if step == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{}", PREFIXES[step])
}

/// Formats a share with the longer arm of its interval, in percentage points: `12.3% ±0.4`.
pub fn share(share: &Share) -> String {
    let half = (share.half_width() * 100.0).max(0.1);
    format!("{} ±{half:.1}", percent(share.value))
}

/// Formats core cycles: an integer, with thousands separators; one decimal below 100.
pub fn cycles(value: f64) -> String {
    if value < 99.95 && value.fract() != 0.0 {
        format!("{value:.1}")
    } else {
        thousands(value.round() as u64)
    }
}

/// Formats a duration: `250 ms`, `10.0 s`, `2 min 5 s`, `3 h 20 min`.
pub fn duration(nanoseconds: u64) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    match seconds {
        0 => format!("{} ms", nanoseconds / 1_000_000),
        1..=119 => format!("{:.1} s", nanoseconds as f64 / 1e9),
        120..=7199 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Formats nanoseconds since the Unix epoch: `2026-11-21 03:12:45 UTC`.
pub fn utc(unix_ns: u64) -> String {
    let time = i64::try_from(unix_ns).ok().map(DateTime::from_timestamp_nanos);
    time.map_or_else(|| "unknown".to_owned(), |time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(thousands(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(
            [999, 1000, 9_995, 99_950, 999_499, 999_500].map(short),
            ["999", "1.00k", "10.0k", "100k", "999k", "1.00M"]
        );
        assert_eq!(short(u64::MAX), "18.4E");
        assert_eq!(utc(1_700_000_000_000_000_000), "2023-11-14 22:13:20 UTC");
        assert_eq!(share(&Share::wilson(500, 1000)), "50.0% ±3.1");
        assert_eq!([12.0, 12.34, 1234.5].map(cycles), ["12", "12.3", "1,235"]);
        assert_eq!(
            [250_000_000, 10_000_000_000, 125_000_000_000, 12_000_000_000_000].map(duration),
            ["250 ms", "10.0 s", "2 min 5 s", "3 h 20 min"]
        );
    }
}
