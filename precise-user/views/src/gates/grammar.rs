//! The grammar of `--require`: `precise,coverage>=99%,samples>=1000`.

use std::{cmp::Ordering, fmt};

use precise_model::digits::percent_to;

/// The number of decimals that a bound in percent may have.
const MAX_DECIMALS: usize = 6;
/// The number of parts of a whole share: percent with [`MAX_DECIMALS`] decimals.
const PARTS: u64 = 100 * 10u64.pow(MAX_DECIMALS as u32);

/// A requirement on a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The verdict says that instruction addresses are exact.
    Precise,
    /// A share is at least or at most the bound.
    Share(GateShare, AllowedSide, Parts),
    /// The capture has at least or at most this many samples.
    Samples(AllowedSide, u64),
}

precise_model::catalogue! {
    /// A share that a gate can require.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GateShare: &'static str {
        /// The part of the event's own count that the seen samples stand for.
        Coverage => "coverage",
        /// The part of the samples taken that is neither in the capture nor rejected by the filter.
        Lost => "lost",
        /// The part of the samples in the capture whose function has a name.
        Symbols => "symbols",
        /// The part of the samples seen that the hardware marks as exact.
        Exact => "exact",
    }
}

impl GateShare {
    /// Returns the name of the share in a gate.
    pub const fn name(self) -> &'static str {
        self.entry()
    }
}

/// The allowed side of a bound. The bound itself is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedSide {
    /// `>=`.
    AtLeast,
    /// `<=`.
    AtMost,
}

/// A share without rounding, in hundred-millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts(u64);

impl Parts {
    /// Returns whether `part` of `whole` is on the allowed side of this share.
    pub fn met_by(self, order: AllowedSide, part: u64, whole: u64) -> bool {
        match order {
            AllowedSide::AtLeast => self.compared(part, whole).is_ge(),
            AllowedSide::AtMost => self.compared(part, whole).is_le(),
        }
    }

    /// Compares `part` of `whole` with this share, without rounding.
    fn compared(self, part: u64, whole: u64) -> Ordering {
        let (is, bound) = (u128::from(part) * u128::from(PARTS), u128::from(self.0) * u128::from(whole));
        is.cmp(&bound)
    }

    /// Formats `part` of `whole` in percent with two decimals. It uses more decimals, up to
    /// [`MAX_DECIMALS`], if the rounded number would be on another side of this share than the
    /// exact one: a number that misses a bound must not look as if it met it.
    pub(super) fn beside(self, part: u64, whole: u64) -> String {
        let mut share = part as f64 / whole as f64;
        if part < whole {
            share = share.min(1f64.next_down());
        }
        let same_side = |text: &String| {
            let shown = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
            let shown = shown.map(|percent| (percent * PARTS as f64 / 100.0).round() as u64);
            shown.is_some_and(|shown| shown.cmp(&self.0) == self.compared(part, whole))
        };
        let mut texts = (2..=MAX_DECIMALS).map(|decimals| percent_to(share, decimals));
        texts.find(same_side).unwrap_or_else(|| percent_to(share, MAX_DECIMALS))
    }

    /// Parses `99%` or `99.5%`.
    fn parse(text: &str) -> Option<Self> {
        let number = text.strip_suffix('%')?.trim_end();
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || decimals.len() > 6 || number.contains('.') && !digits(decimals) {
            return None;
        }
        let parts: u64 = format!("{whole}{decimals:0<6}").parse().ok()?;
        // Coverage may be a little above 100 %, so the bound may be too.
        (parts <= 10 * PARTS).then_some(Self(parts))
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        write!(f, "{}%", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl fmt::Display for AllowedSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
        })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Precise => f.write_str("precise"),
            Self::Share(share, order, parts) => write!(f, "{}{order}{parts}", share.name()),
            Self::Samples(order, number) => write!(f, "samples{order}{number}"),
        }
    }
}

/// The error of a text that is not a gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a requirement: {why}")]
pub struct GateError {
    /// The text.
    pub text: String,
    /// What is wrong, and what would be right.
    pub why: String,
}

/// Parses gates, separated by commas.
///
/// # Errors
///
/// Returns the error of the first text that is not a gate.
pub fn parse(text: &str) -> Result<Vec<Gate>, GateError> {
    text.split(',').map(|part| one(part.trim())).collect()
}

fn one(text: &str) -> Result<Gate, GateError> {
    let error = |why: &str| GateError { text: text.to_owned(), why: why.to_owned() };
    let Some(at) = text.find(['<', '>', '=']) else {
        return match text {
            "precise" => Ok(Gate::Precise),
            "" => Err(error("it is empty")),
            _ if text == "samples" || GateShare::ALL.iter().any(|share| share.name() == text) => {
                Err(error("it needs a bound, such as coverage>=99% or samples>=1000"))
            }
            _ => Err(error("valid requirements: precise, coverage, samples, lost, symbols, exact")),
        };
    };
    let (name, rest) = (text[..at].trim_end(), &text[at..]);
    let order = match rest.get(..2) {
        Some(">=") => AllowedSide::AtLeast,
        Some("<=") => AllowedSide::AtMost,
        _ => return Err(error("write the bound with >= or <=")),
    };
    let bound = rest[2..].trim_start();
    match name {
        "precise" => Err(error("precise takes no bound; use exact>=99% for a share of exact samples")),
        "samples" => {
            let digits: String = bound.chars().filter(|&c| c != '_').collect();
            match digits.parse() {
                Ok(number) if !digits.starts_with('+') => Ok(Gate::Samples(order, number)),
                _ => Err(error("write a number of samples as 1000 or 1_000")),
            }
        }
        _ => match (GateShare::ALL.into_iter().find(|share| share.name() == name), Parts::parse(bound)) {
            (Some(share), Some(parts)) => Ok(Gate::Share(share, order, parts)),
            (Some(_), None) => Err(error("write a share in percent, such as 99% or 0.1%")),
            (None, _) => Err(error("valid requirements: precise, coverage, samples, lost, symbols, exact")),
        },
    }
}
