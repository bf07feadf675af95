//! Parses the parts of an event's text: modifiers and terms.

use super::error::EncodeError;
use super::names;
use super::request::PreciseLevel;
use super::sysfs::{Pmu, Word};
use precise_model::encoding::number;
use precise_model::suggest::nearest;

type Result<T> = std::result::Result<T, EncodeError>;

/// The modifiers of an event.
#[derive(Clone, Debug, Default)]
pub(super) struct Modifiers {
    pub user: bool,
    pub kernel: bool,
    pub level: PreciseLevel,
}

impl Modifiers {
    pub fn parse(text: &str, modifiers: &str) -> Result<Self> {
        let error = |why: String| Err(EncodeError::Syntax { text: text.to_owned(), why });
        let (mut read, mut count) = (Self::default(), 0);
        for c in modifiers.chars() {
            match c {
                'u' => read.user = true,
                'k' => read.kernel = true,
                'p' => count += 1,
                'P' => read.level = PreciseLevel::Max,
                _ => return error(format!("'{c}' is not a modifier; valid modifiers: u, k, p, pp, ppp, P")),
            }
        }
        match count {
            0 => {}
            _ if read.level == PreciseLevel::Max => {
                return error("the modifiers p and P exclude each other".to_owned());
            }
            1..=3 => read.level = PreciseLevel::Given(count),
            _ => return error("more than three p; the highest level is 3".to_owned()),
        }
        Ok(read)
    }

    /// Returns the modifiers as text in a fixed order, after `separator`; empty if there are none.
    pub fn after(&self, separator: &str) -> String {
        let level = match self.level {
            PreciseLevel::Max => "P",
            PreciseLevel::Given(level) => &"ppp"[..usize::from(level.min(3))],
            PreciseLevel::Unspecified => "",
        };
        let text =
            format!("{}{}{level}", if self.user { "u" } else { "" }, if self.kernel { "k" } else { "" });
        if text.is_empty() { text } else { format!("{separator}{text}") }
    }
}

/// Returns the code of a raw event name: 0x1cd for `r1cd`.
pub(super) fn raw(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('r').filter(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, 16).ok()
}

/// The resolved terms of an event.
#[derive(Default)]
pub(super) struct Terms {
    /// Name and value of each term, in the order of first appearance.
    pub set: Vec<(String, u64)>,
    /// The name of a generic event, if the terms contain one.
    pub generic: Option<String>,
    pub name: Option<String>,
    pub period: Option<u64>,
}

impl Terms {
    fn put(&mut self, name: &str, value: u64) {
        match self.set.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.set.push((name.to_owned(), value)),
        }
    }
}

/// Resolves one term and adds it to `read`.
pub(super) fn resolve(text: &str, pmu: &Pmu, term: &str, read: &mut Terms) -> Result<()> {
    let syntax = |why: String| Err(EncodeError::Syntax { text: text.to_owned(), why });
    let (name, value) = match term.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (term, None),
    };
    if name == "name" {
        read.name = value.map(|value| value.trim_matches(['\'', '"']).to_owned());
        return Ok(());
    }
    if let (None, true) = (value, pmu.is_core()) {
        if names::hardware(name).is_some() || names::cache(name).is_some() {
            read.generic = Some(name.to_owned());
            return Ok(());
        }
        if let Some(config) = raw(name) {
            read.put("config", config);
            return Ok(());
        }
    }
    let word = Word::parse(name).is_some();
    let Some(max) =
        pmu.format.get(name).map(|format| format.max()).or((word || name == "period").then_some(u64::MAX))
    else {
        let mut known: Vec<String> = pmu.format.keys().chain(pmu.events.keys()).cloned().collect();
        known.extend(["config", "config1", "config2", "config3", "name", "period"].map(str::to_owned));
        let nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
        return Err(EncodeError::UnknownTerm {
            pmu: pmu.name.clone(),
            term: name.to_owned(),
            nearest,
            known,
        });
    };
    let value = match value {
        None if word || name == "period" => return syntax(format!("'{name}' needs a value")),
        None => 1,
        Some("?") => return syntax(format!("the event needs a value for '{name}'")),
        Some(value) => match number(value) {
            Some(value) => value,
            None => {
                return syntax(format!("'{value}' is not a number (decimal, or hexadecimal with 0x)"));
            }
        },
    };
    if value > max {
        return Err(EncodeError::TooLarge { pmu: pmu.name.clone(), term: name.to_owned(), value, max });
    }
    match name {
        "period" if value == 0 => return syntax("the period must be at least 1".to_owned()),
        "period" => read.period = Some(value),
        _ => read.put(name, value),
    }
    Ok(())
}
