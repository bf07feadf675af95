//! The grammar of `--fail-on`: `p99(latency) by cgroup > +10%`.
//!
//! ```text
//! condition = metric [ "by" key { "," key } ] ( ">" | "<" ) bound
//! metric    = "count" | "rate" | "share" | "share(" key "==" value ")" | "mean(latency)" | "p" number "(latency)"
//! bound     = [ "+" | "-" ] number ( "%" | "pp" | "cycles" )
//! ```
//!
//! A bound with a sign is a change from BASE to NEW; a bound without a sign is a limit of NEW
//! alone.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use precise_filter::ParseError;
use precise_model::keys::Key;

/// A condition that fails the check if it is true.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The metric to compare.
    pub metric: Metric,
    /// The keys of the groups; empty for the whole event.
    pub by: Vec<Key>,
    /// The side of the bound that fails.
    pub side: Side,
    /// The bound of the metric.
    pub bound: MetricBound,
}

/// A metric of the samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The number of events that the samples stand for, in the whole run.
    Count,
    /// The number of events per second of the run.
    Rate,
    /// The group's share of the event's samples.
    Share,
    /// The share of the group's samples for which a key has a value.
    ShareOf(Key, String),
    /// The mean latency, in core cycles.
    Mean,
    /// A percentile of the latency, in core cycles.
    Percentile(Percent),
}

/// The number of a percentile without rounding: thousandths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(u32);

impl Percent {
    /// Returns the percentile as a fraction, in 0..1.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 100_000.0
    }
}

/// The side of a bound that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// `>`: values above the bound fail.
    Above,
    /// `<`: values below the bound fail.
    Below,
}

/// The bound of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricBound {
    /// A change relative to BASE: 0.1 for `+10%`.
    Relative(f64),
    /// A change in the metric's own unit: parts of 1 for `+2pp`, core cycles for `+20 cycles`.
    Difference(f64),
    /// A value of NEW, independent of BASE: parts of 1, or core cycles.
    Level(f64),
}

impl Condition {
    /// Returns the keys that the condition needs: those of its groups, and that of its metric.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = self.by.clone();
        if let Metric::ShareOf(key, _) = self.metric {
            keys.push(key);
        }
        keys
    }
}

impl Metric {
    /// Returns whether the metric is computed from latencies.
    pub fn is_latency(&self) -> bool {
        matches!(self, Self::Mean | Self::Percentile(_))
    }

    /// Returns whether the metric is a share of samples.
    pub fn is_share(&self) -> bool {
        matches!(self, Self::Share | Self::ShareOf(..))
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("count"),
            Self::Rate => f.write_str("rate"),
            Self::Share => f.write_str("share"),
            Self::ShareOf(key, value) => write!(f, "share({key} == {value})"),
            Self::Mean => f.write_str("mean(latency)"),
            Self::Percentile(percent) => write!(f, "p{percent}(latency)"),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:03}", self.0 / 1000, self.0 % 1000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.metric)?;
        if !self.by.is_empty() {
            let keys: Vec<_> = self.by.iter().map(|key| key.name()).collect();
            write!(f, " by {}", keys.join(","))?;
        }
        f.write_str(match self.side {
            Side::Above => " > ",
            Side::Below => " < ",
        })?;
        // Decimals are printed as they were typed: 100 × 0.07 is 7.000000000000001.
        let percent = |value: f64| (value * 1e8).round() / 1e6;
        match (self.bound, self.metric.is_latency()) {
            (MetricBound::Relative(value), _) => write!(f, "{:+}%", percent(value)),
            (MetricBound::Difference(value), true) => write!(f, "{value:+} cycles"),
            (MetricBound::Difference(value), false) => write!(f, "{:+}pp", percent(value)),
            (MetricBound::Level(value), true) => write!(f, "{value} cycles"),
            (MetricBound::Level(value), false) => write!(f, "{}%", percent(value)),
        }
    }
}

/// Parses a condition.
///
/// # Errors
///
/// Returns an error with the text, the position and the reason if it is not a condition.
pub fn parse(text: &str) -> Result<Condition, ParseError> {
    let mut reader = Reader { text, at: 0 };
    let metric = reader.metric()?;
    let by = reader.by()?;
    if metric == Metric::Share && by.is_empty() {
        return Err(reader.error(
            reader.at,
            "the share of what? The share of all samples is always 100%",
            Some("write `share by function`, or `share(level == RAM hit)`"),
        ));
    }
    let side = reader.side()?;
    let bound = reader.bound(&metric)?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.error(
            reader.at,
            "unexpected text after the condition",
            Some("use one `--fail-on` per condition"),
        ));
    }
    Ok(Condition { metric, by, side, bound })
}

const METRICS: &str = "valid metrics: count, rate, share, share(KEY == VALUE), mean(latency), \
    percentiles such as p50(latency) or p99.9(latency)";

/// The rest of a text.
struct Reader<'a> {
    text: &'a str,
    /// The number of bytes that were read.
    at: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, at: usize, message: impl Into<String>, help: Option<&str>) -> ParseError {
        ParseError {
            message: message.into(),
            help: help.map(str::to_owned),
            text: self.text.to_owned(),
            column: self.text[..at].chars().count(),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips white space, then reads the characters that satisfy `of`.
    fn take(&mut self, of: impl Fn(char) -> bool) -> &'a str {
        self.space();
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !of(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Reads `token` if it is next, and returns whether it was.
    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str, help: &str) -> Result<(), ParseError> {
        if self.eat(token) {
            return Ok(());
        }
        Err(self.error(self.at, format!("expected `{token}`"), Some(help)))
    }

    fn metric(&mut self) -> Result<Metric, ParseError> {
        self.space();
        let begin = self.at;
        let word = self.take(|c| c.is_alphanumeric() || c == '.' || c == '_').to_ascii_lowercase();
        match word.as_str() {
            "" => Err(self.error(begin, "expected a metric", Some(METRICS))),
            "count" => Ok(Metric::Count),
            "rate" => Ok(Metric::Rate),
            "share" if self.eat("(") => self.share_of(),
            "share" => Ok(Metric::Share),
            "mean" | "avg" => self.of_latency(&word).map(|()| Metric::Mean),
            _ => {
                let number = word.strip_prefix('p').filter(|n| n.starts_with(|c: char| c.is_ascii_digit()));
                let Some(number) = number else {
                    return Err(self.error(begin, format!("`{word}` is not a metric"), Some(METRICS)));
                };
                let Some(percent) = percentile(number) else {
                    return Err(self.error(
                        begin,
                        format!("`{number}` is not a valid percentile"),
                        Some("percentiles are between 0 and 100, with at most three decimals: p50, p99.9"),
                    ));
                };
                self.of_latency(&word).map(|()| Metric::Percentile(percent))
            }
        }
    }

    fn of_latency(&mut self, word: &str) -> Result<(), ParseError> {
        let help = format!("write {word}(latency)");
        self.expect("(", &help)?;
        self.expect("latency", &help)?;
        self.expect(")", &help)
    }

    fn share_of(&mut self) -> Result<Metric, ParseError> {
        const HELP: &str = "for example: share(level == RAM hit), share(kernel == kernel)";
        self.space();
        let begin = self.at;
        let word = self.take(|c| c.is_alphanumeric() || c == '_' || c == '-');
        let key = self.key(begin, word)?;
        self.expect("==", HELP)?;
        self.space();
        let begin = self.at;
        let quoted = self.eat("\"");
        let rest = self.rest();
        let value = rest.split(if quoted { '"' } else { ')' }).next().unwrap_or_default();
        self.at += value.len();
        if quoted {
            self.expect("\"", "this quote is never closed")?;
        }
        self.expect(")", HELP)?;
        let value = if quoted { value } else { value.trim() };
        if value.is_empty() {
            return Err(self.error(begin, "expected a value", Some(HELP)));
        }
        Ok(Metric::ShareOf(key, value.to_owned()))
    }

    fn key(&self, begin: usize, word: &str) -> Result<Key, ParseError> {
        Key::parse(word).map_err(|error| self.error(begin, error.to_string(), None))
    }

    fn by(&mut self) -> Result<Vec<Key>, ParseError> {
        let mut keys = Vec::new();
        if !self.eat("by") {
            return Ok(keys);
        }
        loop {
            self.space();
            let begin = self.at;
            let word = self.take(|c| c.is_alphanumeric() || c == '_' || c == '-');
            let key = self.key(begin, word)?;
            if !keys.contains(&key) {
                keys.push(key);
            }
            if !self.eat(",") {
                return Ok(keys);
            }
        }
    }

    fn side(&mut self) -> Result<Side, ParseError> {
        self.space();
        let begin = self.at;
        match self.take(|c| "<>=!".contains(c)) {
            ">" => Ok(Side::Above),
            "<" => Ok(Side::Below),
            "" => {
                Err(self.error(begin, "expected > or <", Some("for example: p99(latency) by cgroup > +10%")))
            }
            _ => Err(self.error(
                begin,
                "write the condition with > or <",
                Some("a value exactly at the bound cannot be distinguished from one next to it"),
            )),
        }
    }

    fn bound(&mut self, metric: &Metric) -> Result<MetricBound, ParseError> {
        let example = if metric.is_latency() {
            "write a bound as +10% (change from BASE), +20 cycles (more than BASE) or 500 cycles (value \
             of NEW)"
        } else if metric.is_share() {
            "write a bound as +10% (change from BASE's share), +2pp (percentage points) or 30% (share in NEW)"
        } else {
            "write a bound as +10% or -10% (change from BASE)"
        };
        self.space();
        let begin = self.at;
        let sign = if self.eat("+") { Some(1.0) } else { self.eat("-").then_some(-1.0) };
        let digits = self.take(|c| c.is_ascii_digit() || c == '.' || c == '_').replace('_', "");
        let number = digits.parse::<f64>().ok().filter(|n| n.is_finite() && *n < 1e12);
        let Some(number) = number else {
            return Err(self.error(begin, "expected a bound", Some(example)));
        };
        self.space();
        let at_unit = self.at;
        let unit = self.take(|c| c.is_alphabetic() || c == '%').to_ascii_lowercase();
        let latency = metric.is_latency();
        let bound = match (unit.as_str(), sign) {
            ("%", Some(sign)) => MetricBound::Relative(sign * number / 100.0),
            ("pp", Some(sign)) if metric.is_share() => MetricBound::Difference(sign * number / 100.0),
            ("cycles" | "cycle", Some(sign)) if latency => MetricBound::Difference(sign * number),
            ("%", None) if metric.is_share() => MetricBound::Level(number / 100.0),
            ("cycles" | "cycle", None) if latency => MetricBound::Level(number),
            ("%" | "pp", None) => {
                let message = format!("is {digits}{unit} a change or a value? Write a sign for a change");
                return Err(self.error(begin, message, Some(example)));
            }
            (unit, _) => {
                let message = if unit.is_empty() {
                    "the bound needs a unit".to_owned()
                } else {
                    format!("a bound of {metric} cannot be in `{unit}`")
                };
                return Err(self.error(at_unit, message, Some(example)));
            }
        };
        let (fault, help) = match bound {
            MetricBound::Relative(0.0) | MetricBound::Difference(0.0) => (
                "no number of samples can show that nothing changed at all",
                "write the change that you accept, such as +5%",
            ),
            MetricBound::Relative(change) if change <= -1.0 => ("no value can fall by 100% or more", example),
            MetricBound::Level(0.0) => {
                ("no value can be below 0, and no share can be shown to be exactly 0", example)
            }
            MetricBound::Level(share) if metric.is_share() && share >= 1.0 => {
                ("no share can exceed 100%", example)
            }
            MetricBound::Difference(points) if metric.is_share() && points.abs() >= 1.0 => {
                ("no share can change by 100 percentage points or more", example)
            }
            _ => return Ok(bound),
        };
        Err(self.error(begin, fault, Some(help)))
    }
}

fn percentile(number: &str) -> Option<Percent> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || whole.len() > 2 || decimals.len() > 3 {
        return None;
    }
    let thousandths: u32 = format!("{whole}{decimals:0<3}").parse().ok()?;
    (thousandths > 0).then_some(Percent(thousandths))
}
