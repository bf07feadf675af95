//! The names of the threads in a table.

use rustc_hash::FxHashMap;

use precise_model::keys::Key;
use precise_model::values::Value;
use precise_model::{Capture, Name, NameId};

/// Adds the names of threads to the thread ids among `values`, which are the values of the keys
/// `by`. A thread that changed its name has the last one. Nothing is added where the names are a
/// column of their own.
pub(crate) fn name_threads<'a>(
    capture: &Capture,
    by: &[Key],
    values: impl Iterator<Item = &'a mut Vec<Value>>,
) {
    let Some(at) = by.iter().position(|key| *key == Key::Tid).filter(|_| !by.contains(&Key::Thread)) else {
        return;
    };
    let names = last_names(capture);
    for value in values.filter_map(|values| values.get_mut(at)) {
        if let Value::Number(tid) = *value
            && let Some(name) = u32::try_from(tid).ok().and_then(|id| names.get(&id))
        {
            *value = Value::Thread { tid, name: capture.names.get(*name).to_owned() };
        }
    }
}

/// Returns the last name of each thread.
fn last_names(capture: &Capture) -> FxHashMap<u32, NameId> {
    // The rows of a file are in the order of their epochs, but not those of several events.
    let mut names: FxHashMap<u32, (u32, NameId)> = FxHashMap::default();
    for row in &capture.rows {
        if let Name::Known(name) = row.thread {
            let last = names.entry(row.tid).or_insert((row.epoch, name));
            // Of two names of one epoch, the order of rows does not decide.
            let told = |(epoch, name): (u32, NameId)| (epoch, capture.names.get(name));
            if told((row.epoch, name)) > told(*last) {
                *last = (row.epoch, name);
            }
        }
    }
    names.into_iter().map(|(tid, (_, name))| (tid, name)).collect()
}
