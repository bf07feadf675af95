//! Ranges of time: `20s..45s` after the start of the run, or `14:03:10..14:05` by the clock.

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
const YEAR: u64 = 365 * DAY;

/// A point of time as the user wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds after the start of the run.
    AfterStart(u64),
    /// Nanoseconds after midnight, UTC.
    OfDay(u64),
}

/// A range of time; each end may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The start; `None` for the start of the run.
    pub from: Option<Moment>,
    /// The end, which is not part of the range; `None` for the end of the run.
    pub to: Option<Moment>,
}

impl TimeRange {
    /// Parses a range: `20s..45s`, `1.5m..`, `..300ms`, `14:03:10..14:05`.
    ///
    /// # Errors
    ///
    /// Returns a sentence that names the text that is not valid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((from, to)) = text.split_once("..") else {
            return Err(format!("'{text}' is not a range of time, such as 20s..45s or 14:03:10.."));
        };
        let moment = |text: &str| (!text.is_empty()).then(|| Moment::parse(text)).transpose();
        let range = Self { from: moment(from.trim())?, to: moment(to.trim())? };
        match (range.from, range.to) {
            (None, None) => Err("a range of time needs a start or an end, as in 20s.. or ..45s".to_owned()),
            (Some(Moment::AfterStart(from)), Some(Moment::AfterStart(to))) if from >= to => {
                Err(format!("'{text}' ends before it starts"))
            }
            _ => Ok(range),
        }
    }

    /// Returns the start and the end in nanoseconds since the start of the run, which began at
    /// `start_unix_ns` (UTC; in 1970 if it is not known) and has epochs from `first` to `last`.
    pub(super) fn within(&self, start_unix_ns: u64, first: u64, last: u64) -> Result<(u64, u64), String> {
        let point = |moment: Moment| moment.since_start(start_unix_ns, last);
        let from = self.from.map(point).transpose()?.unwrap_or(first);
        let to = self.to.map(point).transpose()?.unwrap_or(last);
        if from >= to {
            return Err("--time ends before it starts, or lies outside the run".to_owned());
        }
        Ok((from, to))
    }
}

impl Moment {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a time, such as 20s, 500ms, 2m or 14:03:10 (UTC)");
        let nanoseconds = |seconds: f64| {
            let ns = (seconds * 1e9).round();
            (ns.is_finite() && (0.0..1e18).contains(&ns)).then_some(ns as u64).ok_or_else(wrong)
        };
        let plain = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            if digits { text.parse::<f64>().map_err(|_| wrong()) } else { Err(wrong()) }
        };
        if text.contains(':') {
            let parts: Vec<f64> = text.split(':').map(plain).collect::<Result<_, _>>()?;
            let (hours, minutes, seconds) = match parts[..] {
                [hours, minutes] => (hours, minutes, 0.0),
                [hours, minutes, seconds] => (hours, minutes, seconds),
                _ => return Err(wrong()),
            };
            let whole = hours.fract() == 0.0 && minutes.fract() == 0.0;
            if !whole || hours >= 24.0 || minutes >= 60.0 || seconds >= 60.0 {
                return Err(wrong());
            }
            return Ok(Self::OfDay(nanoseconds(hours * 3600.0 + minutes * 60.0 + seconds)?));
        }
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor = match unit {
            "" | "s" => 1.0,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        Ok(Self::AfterStart(nanoseconds(plain(number)? * factor)?))
    }

    /// Returns nanoseconds since the start of the run. A time of day before the start is that of
    /// the next day if the run lasted until then.
    fn since_start(self, start_unix_ns: u64, last: u64) -> Result<u64, String> {
        match self {
            Self::AfterStart(ns) => Ok(ns),
            // An import without the time of day counts from 1970.
            Self::OfDay(_) if start_unix_ns < YEAR => {
                Err("the capture does not know the time of day; use times since its start, such as 20s"
                    .into())
            }
            Self::OfDay(ns) => {
                let start = start_unix_ns % DAY;
                Ok(match ns.checked_sub(start) {
                    Some(since) => since,
                    None if ns + DAY - start <= last => ns + DAY - start,
                    None => 0,
                })
            }
        }
    }
}
