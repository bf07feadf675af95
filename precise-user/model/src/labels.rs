//! Rows added up by keys, epoch by epoch while a run goes on. The keys' values label each series of
//! numbers.

use rustc_hash::FxHashMap;

use super::keys::Key;
use crate::values::{RawValue, Value};
use crate::{Capture, Row};

/// Adds up the rows of each event and combination of keys. `capture` has the names and locations
/// that the rows refer to.
pub fn by_keys<'a, T: Default>(
    capture: &Capture,
    rows: impl IntoIterator<Item = &'a Row>,
    keys: &[Key],
    mut add: impl FnMut(&mut T, &Row),
) -> Vec<(u16, Vec<Value>, T)> {
    let mut groups: FxHashMap<(u16, Vec<RawValue>), T> = FxHashMap::default();
    for row in rows {
        let key = keys.iter().map(|key| RawValue::of(capture, row, *key)).collect();
        add(groups.entry((row.event, key)).or_default(), row);
    }
    let values =
        |atoms: &[RawValue]| atoms.iter().zip(keys).map(|(atom, key)| atom.value(capture, *key)).collect();
    groups.into_iter().map(|((event, atoms), sum)| (event, values(&atoms), sum)).collect()
}
