//! Hours and days of UTC, and their folders.

use std::fmt;

use chrono::{DateTime, NaiveDate, Timelike as _};

/// Nanoseconds of an hour.
const HOUR_NS: u64 = 3_600_000_000_000;

/// An hour of UTC, by its number since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FleetHour(pub u32);

impl FleetHour {
    /// Returns the hour that contains a time, in nanoseconds since the Unix epoch.
    pub fn of_ns(ns: u64) -> Self {
        // 2⁶⁴ ns have 5 million hours.
        Self((ns / HOUR_NS) as u32)
    }

    /// Returns when the hour begins, in nanoseconds since the Unix epoch.
    pub fn start_ns(self) -> u64 {
        u64::from(self.0).saturating_mul(HOUR_NS)
    }

    /// Returns when the hour ends, in nanoseconds since the Unix epoch.
    pub fn end_ns(self) -> u64 {
        self.start_ns().saturating_add(HOUR_NS)
    }

    /// Returns the day of the hour.
    pub fn day(self) -> FleetDay {
        FleetDay(self.0 / 24)
    }

    /// Returns the hour's folder: `date=2026-11-24/hour=19`.
    pub fn folder(self) -> String {
        format!("{}/hour={:02}", self.day().folder(), self.0 % 24)
    }

    /// Parses an hour as [`fmt::Display`] writes it; a time within the hour may be more exact:
    /// `2026-11-24T19`, `2026-11-24T19:30`. `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_once('T')?;
        let day = FleetDay::parse(date)?;
        let rest = rest.strip_suffix('Z').unwrap_or(rest);
        let mut parts = rest.split(':').map(|part| {
            let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| part.parse::<u32>().ok()).flatten()
        });
        let hour = parts.next()?.filter(|hour| *hour < 24)?;
        parts.all(|part| part.is_some_and(|part| part < 60)).then_some(Self(day.0 * 24 + hour))
    }
}

impl fmt::Display for FleetHour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{:02}", self.day(), self.0 % 24)
    }
}

/// A day of UTC, by its number since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FleetDay(pub u32);

impl FleetDay {
    /// Returns the hours of the day.
    pub fn hours(self) -> impl Iterator<Item = FleetHour> {
        (self.0 * 24..self.0 * 24 + 24).map(FleetHour)
    }

    /// Returns the first hour of the day.
    pub fn first(self) -> FleetHour {
        FleetHour(self.0 * 24)
    }

    /// Returns the day's folder: `date=2026-11-24`.
    pub fn folder(self) -> String {
        format!("date={self}")
    }

    /// Returns the day of a folder; `None` if it is not one of a day.
    pub(crate) fn of_folder(name: &str) -> Option<Self> {
        Self::parse(name.strip_prefix("date=")?)
    }

    /// Parses a day: `2026-11-24`. `None` if it is not one, or before 1970.
    pub fn parse(text: &str) -> Option<Self> {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        let seconds = date.and_hms_opt(0, 0, 0)?.and_utc().timestamp();
        u32::try_from(seconds / 86_400).ok().filter(|days| *days < 200_000 && seconds >= 0).map(Self)
    }

    /// Parses a day at the end of a label: `prod-node-1-20261124`. `None` if there is none.
    pub(crate) fn at_end(label: &str) -> Option<Self> {
        let (_, digits) = label.rsplit_once('-')?;
        let all = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let date = all.then(|| NaiveDate::parse_from_str(digits, "%Y%m%d").ok())??;
        Self::parse(&date.to_string())
    }
}

impl fmt::Display for FleetDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = DateTime::from_timestamp(i64::from(self.0) * 86_400, 0).unwrap_or_default();
        write!(f, "{}", date.date_naive())
    }
}

/// Returns the time in the name of a capture, in nanoseconds since the Unix epoch:
/// `20261124T190000Z` at its start or after a hyphen. `None` if the name has none.
pub(crate) fn time_in(name: &str) -> Option<u64> {
    let base = name.rsplit('/').next()?;
    base.split(['-', '.']).find_map(|part| {
        let (time, zone) = part.split_at_checked(15)?;
        let time =
            chrono::NaiveDateTime::parse_from_str(time, "%Y%m%dT%H%M%S").ok().filter(|_| zone == "Z")?;
        u64::try_from(time.with_nanosecond(0)?.and_utc().timestamp_nanos_opt()?).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_have_names_and_folders() {
        let hour = FleetHour::parse("2026-11-24T19").unwrap();
        assert_eq!(
            (hour.to_string(), hour.folder()),
            ("2026-11-24T19".into(), "date=2026-11-24/hour=19".into())
        );
        assert_eq!(FleetHour::of_ns(hour.start_ns()), hour);
        assert_eq!(FleetHour::of_ns(hour.end_ns() - 1), hour);
        assert_eq!(FleetHour::parse("2026-11-24T19:59Z"), Some(hour));
        for wrong in ["2026-11-24", "2026-11-24T24", "2026-13-01T00", "1969-12-31T23", "2026-11-24T1", "T"] {
            assert_eq!(FleetHour::parse(wrong), None, "{wrong}");
        }
        assert_eq!(hour.day().hours().next(), Some(hour.day().first()));
        assert_eq!(FleetDay::at_end("prod-node-1-20261124"), Some(hour.day()));
        assert_eq!((FleetDay::at_end("deploy-41"), FleetDay::at_end("20261124")), (None, None));
    }

    #[test]
    fn names_have_times() {
        let time = FleetHour::parse("2026-11-24T19").unwrap().start_ns();
        for name in ["l/20261124T190000Z-node-1-precise.parquet", "precise-20261124T190000Z-2.parquet"] {
            assert_eq!(time_in(name), Some(time), "{name}");
        }
        for name in ["precise.parquet", "0_unknown_12345678-node-1-plain.parquet", "20261124T190000Z/x"] {
            assert_eq!(time_in(name), None, "{name}");
        }
    }
}
