//! The events of a capture.

use crate::ViewError;
use precise_model::{Capture, EventInfo};

/// Returns the number of samples of an event in the capture.
pub fn samples(capture: &Capture, event: usize) -> u64 {
    let rows = capture.rows.iter().filter(|row| usize::from(row.event) == event);
    rows.fold(0, |sum, row| sum.saturating_add(row.measures.count))
}

/// Returns the event with this name, and its index. Without a name, returns the first event with
/// samples.
///
/// # Errors
///
/// Returns an error if there is no such event.
pub fn event_of<'a>(capture: &'a Capture, name: Option<&str>) -> Result<(usize, &'a EventInfo), ViewError> {
    let events = &capture.meta.events;
    let wanted = match name {
        Some(name) => events.iter().position(|event| event.name == name),
        None => (0..events.len()).find(|index| samples(capture, *index) > 0).or(Some(0)),
    };
    let found = wanted.and_then(|index| Some((index, events.get(index)?)));
    found.ok_or_else(|| {
        let known: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
        ViewError::NoSuchEvent { event: name.unwrap_or_default().to_owned(), known: known.join(", ") }
    })
}
