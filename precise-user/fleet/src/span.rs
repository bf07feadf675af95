//! Spans of time, in whole hours.

use std::fmt;

use crate::hour::{FleetDay, FleetHour};

/// Some hours of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetSpan {
    /// The first hour.
    pub first: FleetHour,
    /// The hour after the last.
    pub end: FleetHour,
}

/// The longest span, in hours: a year and a day.
const MOST: u32 = 366 * 24;

impl FleetSpan {
    /// Parses a day, an hour, or two of them with `..` between, both included: `2026-11-24`,
    /// `2026-11-24T19`, `2026-11-24T19..2026-11-24T22`. `None` if it is not one, or longer than a
    /// year.
    pub fn parse(text: &str) -> Option<Self> {
        let one = |text: &str| match FleetDay::parse(text) {
            Some(day) => Some(Self::of_day(day)),
            None => FleetHour::parse(text).map(|hour| Self { first: hour, end: FleetHour(hour.0 + 1) }),
        };
        let span = match text.split_once("..") {
            Some((from, to)) => Self { first: one(from)?.first, end: one(to)?.end },
            None => one(text)?,
        };
        (span.first < span.end && span.hours() <= MOST).then_some(span)
    }

    /// Returns the last hours that are over at a time, in nanoseconds since the Unix epoch.
    pub fn last(hours: u32, now_ns: u64) -> Self {
        let end = FleetHour::of_ns(now_ns);
        Self { first: FleetHour(end.0.saturating_sub(hours.clamp(1, MOST))), end }
    }

    /// Returns a whole day.
    pub fn of_day(day: FleetDay) -> Self {
        Self { first: day.first(), end: FleetHour(day.first().0 + 24) }
    }

    /// Returns the span as [`Self::parse`] takes it.
    pub fn spelled(self) -> String {
        let last = FleetHour(self.end.0.saturating_sub(1));
        if last <= self.first { self.first.to_string() } else { format!("{}..{last}", self.first) }
    }

    /// Returns the span of the same length before this one.
    #[must_use]
    pub fn earlier(self) -> Self {
        Self { first: FleetHour(self.first.0.saturating_sub(self.hours())), end: self.first }
    }

    /// Returns the number of hours.
    pub fn hours(self) -> u32 {
        self.end.0.saturating_sub(self.first.0)
    }

    /// Returns the day before the span, which says which nodes are expected.
    pub fn before(self) -> Self {
        Self { first: FleetHour(self.first.0.saturating_sub(24)), end: self.first }
    }

    /// Returns whether an hour is in the span.
    pub fn has(self, hour: FleetHour) -> bool {
        self.first <= hour && hour < self.end
    }

    /// Returns the days that the span has something of.
    pub(crate) fn days(self) -> impl Iterator<Item = FleetDay> {
        let last = self.end.0.saturating_sub(1) / 24;
        (self.first.0 / 24..=last).filter(move |_| self.first < self.end).map(FleetDay)
    }

    /// Returns whether the span has all of a day.
    pub(crate) fn has_day(self, day: FleetDay) -> bool {
        self.first <= day.first() && day.first().0 + 24 <= self.end.0
    }
}

impl fmt::Display for FleetSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.first.day(), FleetHour(self.end.0.saturating_sub(1)).day());
        // The end of a day is its 24:00.
        let until = self.end.0.saturating_sub(last.0 * 24);
        write!(f, "{first} {:02}:00 to ", self.first.0 % 24)?;
        if first != last {
            write!(f, "{last} ")?;
        }
        write!(f, "{until:02}:00 UTC")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_parsed_and_shown() {
        for (text, shown, hours) in [
            ("2026-11-24", "2026-11-24 00:00 to 24:00 UTC", 24),
            ("2026-11-24T19", "2026-11-24 19:00 to 20:00 UTC", 1),
            ("2026-11-24..2026-11-25", "2026-11-24 00:00 to 2026-11-25 24:00 UTC", 48),
            ("2026-11-24T19..2026-11-24T22", "2026-11-24 19:00 to 23:00 UTC", 4),
            ("2026-11-24T23..2026-11-25", "2026-11-24 23:00 to 2026-11-25 24:00 UTC", 25),
        ] {
            let span = FleetSpan::parse(text).unwrap();
            assert_eq!((span.to_string().as_str(), span.hours()), (shown, hours));
            assert_eq!(FleetSpan::parse(&span.spelled()), Some(span));
            assert_eq!((span.earlier().hours(), span.earlier().end), (hours, span.first));
        }
        for wrong in ["", "..", "2026-11-25..2026-11-24", "2026-11-24..", "2020-01-01..2026-01-01", "24h"] {
            assert_eq!(FleetSpan::parse(wrong), None, "{wrong}");
        }
        let now = FleetHour::parse("2026-11-25T14").unwrap();
        let last = FleetSpan::last(24, now.start_ns() + 59 * 60_000_000_000);
        assert_eq!(last.to_string(), "2026-11-24 14:00 to 2026-11-25 14:00 UTC");
        assert_eq!(last.before().to_string(), "2026-11-23 14:00 to 2026-11-24 14:00 UTC");
        assert!(last.has(last.first) && !last.has(last.end) && last.days().count() == 2);
        let day = FleetSpan::parse("2026-11-24").unwrap();
        assert!(day.has_day(day.first.day()) && !last.has_day(day.first.day()));
        assert_eq!(day.days().count(), 1);
    }
}
