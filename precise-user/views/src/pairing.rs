//! Pairs two captures for a comparison: matches their events, checks that these were sampled in the
//! same way, and groups rows by the names of their keys.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::grouping::{Grouping, Sum};
use super::{ViewError, needs};
use precise_model::keys::{Key, Sort};
use precise_model::values::Value;
use precise_model::{Capture, EventInfo, Row};

/// Why two captures cannot be compared. Each message is a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// One of the captures lacks a dimension.
    #[error("of {which}: {error}")]
    View {
        /// The capture that lacks it: BASE or NEW.
        which: &'static str,
        /// What is missing.
        error: Box<ViewError>,
    },
    /// The captures have no event in common.
    #[error(
        "the captures have no event in common: BASE has {base}, NEW has {new}. Record both with the \
         same `-e`."
    )]
    NoCommonEvent {
        /// Events of BASE.
        base: String,
        /// Events of NEW.
        new: String,
    },
    /// An event was sampled differently in the two captures.
    #[error(
        "{event} was sampled differently: {what} is {base} in BASE and {new} in NEW, so the shares \
         cannot be compared. Record both with the same flags."
    )]
    OtherBasis {
        /// Name of the event.
        event: String,
        /// The property that differs.
        what: &'static str,
        /// Its value in BASE.
        base: String,
        /// Its value in NEW.
        new: String,
    },
}

/// The events that two captures have in common.
pub(crate) struct Pairs {
    /// Indexes of each common event in BASE and in NEW.
    pub events: Vec<(usize, usize)>,
    /// Other differences between the captures, one sentence each.
    pub notes: Vec<String>,
}

/// Returns the events that both captures have.
///
/// # Errors
///
/// Returns an error if the captures were sampled differently, have no event in common, or lack a
/// dimension.
pub(crate) fn pairs(base: &Capture, new: &Capture, by: &[Key]) -> Result<Pairs, PairError> {
    for (which, capture) in [("BASE", base), ("NEW", new)] {
        needs::check_keys(capture, by).map_err(|error| PairError::View { which, error: Box::new(error) })?;
    }
    let events: Vec<(usize, usize)> = (0..base.meta.events.len())
        .filter_map(|b| {
            let name = &base.meta.events[b].name;
            new.meta.events.iter().position(|event| event.name == *name).map(|n| (b, n))
        })
        .collect();
    let names = |capture: &Capture| {
        capture.meta.events.iter().map(|e| e.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    if events.is_empty() {
        return Err(PairError::NoCommonEvent { base: names(base), new: names(new) });
    }
    let mut notes = Vec::new();
    if events.len() < base.meta.events.len().max(new.meta.events.len()) {
        notes.push(format!(
            "Only events that both captures have are compared: BASE has {}, NEW has {}.",
            names(base),
            names(new)
        ));
    }
    if base.meta.machine.cpu != new.meta.machine.cpu {
        notes.push(format!(
            "The captures were made on different CPUs ({} and {}), so a difference need not come from \
             the program.",
            base.meta.machine.cpu, new.meta.machine.cpu
        ));
    }
    for (b, n) in &events {
        same_basis(base, &base.meta.events[*b], new, &new.meta.events[*n])?;
    }
    Ok(Pairs { events, notes })
}

/// Groups by the text of their key values.
pub(crate) type GroupsByText = FxHashMap<Vec<String>, (Vec<Value>, Sum)>;

/// Returns an event's rows grouped by the text of their key values, and their total. The comparison
/// uses text because name ids differ between captures.
pub(crate) fn named(capture: &Capture, event: usize, by: &[Key]) -> (GroupsByText, Sum) {
    named_if(capture, event, by, |_| true)
}

/// Returns the same groups for only those rows for which `keep` returns true.
pub(crate) fn named_if(
    capture: &Capture,
    event: usize,
    by: &[Key],
    keep: impl FnMut(&Row) -> bool,
) -> (GroupsByText, Sum) {
    let grouping = Grouping { capture, event, by, sort: Sort::Samples, limit: None, min_samples: 0 };
    let (groups, whole) = grouping.sums(keep);
    let mut named = GroupsByText::default();
    for (key, sum) in groups {
        let values = grouping.values(&key);
        let text = values.iter().map(Value::text).collect();
        // Two different keys can have the same text, for example the bits of an outcome.
        match named.entry(text) {
            Entry::Occupied(mut found) => found.get_mut().1.merge(&sum),
            Entry::Vacant(free) => {
                free.insert((values, sum));
            }
        }
    }
    (named, whole)
}

/// Returns an error if an event was sampled differently in the two captures.
fn same_basis(a: &Capture, base: &EventInfo, b: &Capture, new: &EventInfo) -> Result<(), PairError> {
    let rate = |event: &EventInfo| match (event.period, event.frequency) {
        (Some(period), _) => format!("one sample per {period}"),
        (None, Some(hertz)) => format!("{hertz} samples per second"),
        (None, None) if event.governed() => "a period that --overhead changed".to_owned(),
        (None, None) => "unknown".to_owned(),
    };
    // Two fixed periods of different length sample the same population; a varying period weights it
    // differently. A period that the governor changed is compared by the events that samples stand
    // for. That is possible with a fixed period too, so both kinds are comparable.
    let kind = |event: &EventInfo| {
        let fixed = event.period.is_some() || event.rates.iter().any(|rate| rate.period.is_some());
        if fixed { "fixed" } else { "varying" }.to_owned()
    };
    let or_none = |text: &str| if text.is_empty() { "none".to_owned() } else { format!("`{text}`") };
    let precision =
        |event: &EventInfo| if event.verdict.precise { "precise" } else { "not precise" }.to_owned();
    let checks = [
        ("the encoding", or_none(&base.encoding), or_none(&new.encoding)),
        ("the period", kind(base), kind(new)),
        ("the unit", or_none(&base.unit), or_none(&new.unit)),
        ("the filter", or_none(&a.meta.filter), or_none(&b.meta.filter)),
        ("the precision", precision(base), precision(new)),
    ];
    for (what, in_base, in_new) in checks {
        if in_base != in_new {
            let (in_base, in_new) =
                if what == "the period" { (rate(base), rate(new)) } else { (in_base, in_new) };
            return Err(PairError::OtherBasis { event: base.name.clone(), what, base: in_base, new: in_new });
        }
    }
    Ok(())
}
