//! The window: the rows of the last epochs, and the state of the events at both ends of it.

use std::collections::{BTreeSet, VecDeque};
use std::iter::repeat_n;
use std::time::Duration;

use precise_model::{Capture, Epoch, Ledger, Meta, Name, RateChange, Row};

use super::owners::KeptOwners;
use super::state::{LiveCost, Rates, TopState, events_between, ledgers};
use super::tables::{MOST_BYTES, Mover, Tables};

/// The most rows that a window holds. A window that would have more has fewer epochs.
pub const MOST_ROWS: usize = 1 << 18;
/// Names without rows are removed when the names of a window have grown by a quarter, and by these
/// bytes.
const LEAST_GROWTH: usize = 256 << 10;
/// The most notes of the run that are kept.
const MOST_NOTES: usize = 20;
/// The reason for which the ledger counts the samples of an epoch that does not fit.
const TOO_LARGE: &str = "one epoch had more rows than the window holds";

/// The last seconds of a run.
#[derive(Clone, Debug)]
pub struct WindowSnapshot {
    /// The rows of the window with everything that a capture has. Its ledger and its rates are
    /// those of the window; its times count from the start of the window.
    pub capture: Capture,
    /// The time from the start of the run to the end of the window.
    pub elapsed: Duration,
    /// The cost at the end of the window.
    pub cost: LiveCost,
    /// Why the window is shorter than asked for, as a sentence; `None` if it is not.
    pub shortened: Option<String>,
}

/// An epoch. The rows come from the naming thread, the state from the run loop; either may be the
/// first.
#[derive(Debug, Default)]
struct Held {
    named: Option<NamedEpoch>,
    state: Option<TopState>,
}

#[derive(Debug)]
struct NamedEpoch {
    epoch: Epoch,
    /// The number of its rows.
    rows: usize,
    /// The number of samples of each event in the rows of all epochs so far, kept or not.
    in_rows: Vec<u64>,
    /// The number of those that were not kept.
    unkept: Vec<u64>,
}

/// The rows of the last epochs of a run, in bounded memory.
#[derive(Debug)]
pub struct Window {
    length_ns: u64,
    most_rows: usize,
    most_bytes: usize,
    /// What is known before sampling, and does not change.
    draft: Meta,
    tables: Tables,
    /// The bytes of names at which those without rows are removed.
    compact_at: usize,
    owners: KeptOwners,
    epochs: VecDeque<Held>,
    /// The rows of all epochs, one after the other, in one block of memory.
    rows: VecDeque<Row>,
    /// How many of `epochs` have rows, and how many have a state.
    with_rows: usize,
    with_state: usize,
    /// The ledgers at the start of the window.
    before: Vec<Ledger>,
    rates: Vec<Rates>,
    in_rows: Vec<u64>,
    /// The number of samples of each event that were not kept, since the start.
    unkept: Vec<u64>,
    notes: Vec<String>,
    shortened: bool,
    /// The number of complete epochs since the start of the run.
    version: u64,
}

impl Window {
    /// Makes a window of this length for a run whose events and machine `draft` describes.
    pub fn new(length: Duration, draft: Meta) -> Self {
        Self::bounded(length, draft, MOST_ROWS, MOST_BYTES)
    }

    /// Makes a window with at most these rows, and these bytes of names.
    pub(crate) fn bounded(length: Duration, draft: Meta, most_rows: usize, most_bytes: usize) -> Self {
        let events = draft.events.len();
        Self {
            length_ns: u64::try_from(length.as_nanos()).unwrap_or(u64::MAX),
            most_rows,
            most_bytes,
            rates: draft.events.iter().map(Rates::new).collect(),
            draft,
            tables: Tables::default(),
            compact_at: LEAST_GROWTH.min(most_bytes / 8),
            owners: KeptOwners::default(),
            epochs: VecDeque::new(),
            rows: VecDeque::new(),
            with_rows: 0,
            with_state: 0,
            before: vec![Ledger::default(); events],
            in_rows: vec![0; events],
            unkept: vec![0; events],
            notes: Vec::new(),
            shortened: false,
            version: 0,
        }
    }

    /// Returns the number of epochs that were complete so far. A snapshot changes when this does.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Adds the rows of the next epoch, which is the last of `named`.
    pub fn take(&mut self, named: &Capture, rows: &[Row]) {
        let Some(epoch) = named.meta.epochs.last().copied() else { return };
        if self.draft.start_unix_ns == 0 {
            self.draft.start_unix_ns = named.meta.start_unix_ns;
        }
        for row in rows {
            if let Some(sum) = self.in_rows.get_mut(usize::from(row.event)) {
                *sum = sum.saturating_add(row.measures.count);
            }
        }
        named.meta.owners.iter().for_each(|owner| self.owners.add(owner));
        let kept = if rows.len() > self.most_rows {
            self.drop_rows(rows);
            0
        } else {
            make_room(&mut self.rows, rows.len());
            let mut mover = Mover::new(named, &mut self.tables);
            self.rows.extend(rows.iter().map(|row| mover.row(row)));
            rows.len()
        };
        let (in_rows, unkept) = (self.in_rows.clone(), self.unkept.clone());
        self.held(self.with_rows).named = Some(NamedEpoch { epoch, rows: kept, in_rows, unkept });
        self.with_rows += 1;
        if self.with_rows <= self.with_state {
            self.completed();
        }
    }

    /// Adds the state at the end of the next epoch.
    pub(crate) fn state(&mut self, mut state: TopState) {
        for (rates, changes) in self.rates.iter_mut().zip(&state.changes) {
            rates.add(changes);
        }
        let new = std::mem::take(&mut state.notes);
        let room = MOST_NOTES.saturating_sub(self.notes.len());
        self.notes.extend(new.into_iter().take(room));
        self.held(self.with_state).state = Some(state);
        self.with_state += 1;
        if self.with_state <= self.with_rows {
            self.completed();
        }
    }

    /// Returns the rate changes for [`Session::so_far`](crate::run::session::Session::so_far).
    pub(crate) fn rates_so_far(&self) -> Vec<Vec<RateChange>> {
        self.rates.iter().map(Rates::so_far).collect()
    }

    fn held(&mut self, at: usize) -> &mut Held {
        if at >= self.epochs.len() {
            self.epochs.resize_with(at + 1, Held::default);
        }
        &mut self.epochs[at]
    }

    fn drop_rows(&mut self, rows: &[Row]) {
        self.shortened = true;
        for row in rows {
            if let Some(sum) = self.unkept.get_mut(usize::from(row.event)) {
                *sum = sum.saturating_add(row.measures.count);
            }
        }
    }

    /// Counts an epoch that is now complete. Removes the epochs that are too old, and those for
    /// which there is no memory.
    fn completed(&mut self) {
        self.version += 1;
        let newest = self.named().last().map_or(0, |named| named.epoch.end_ns);
        let start = newest.saturating_sub(self.length_ns);
        while self.complete() > 1 && self.named().next().is_some_and(|named| named.epoch.end_ns <= start) {
            self.pop();
        }
        while self.complete() > 1 && self.rows.len() > self.most_rows {
            self.shortened = true;
            self.pop();
        }
        if self.bytes() > self.compact_at {
            self.compact();
            while self.bytes() > self.most_bytes && self.complete() > 1 {
                self.shortened = true;
                for _ in 0..self.complete().div_ceil(2) {
                    self.pop();
                }
                self.compact();
            }
        }
    }

    /// Returns the memory of all names in bytes, about.
    fn bytes(&self) -> usize {
        self.tables.bytes() + self.owners.bytes()
    }

    fn complete(&self) -> usize {
        self.with_rows.min(self.with_state)
    }

    fn named(&self) -> impl Iterator<Item = &NamedEpoch> {
        self.epochs.iter().filter_map(|held| held.named.as_ref())
    }

    /// Removes the first epoch, which is complete.
    fn pop(&mut self) {
        let Some(Held { named: Some(named), state: Some(state) }) = self.epochs.pop_front() else { return };
        self.rows.drain(..named.rows);
        self.with_rows -= 1;
        self.with_state -= 1;
        self.before = ledgers_of(&named, &state);
        for rates in &mut self.rates {
            rates.forget_before(named.epoch.end_ns);
        }
    }

    /// Removes everything from the tables that no row refers to.
    fn compact(&mut self) {
        let mut tables = Tables::default();
        let mut mover = Mover::new(&self.tables, &mut tables);
        for row in &mut self.rows {
            *row = mover.row(row);
        }
        self.tables = tables;
        let paths = self.paths();
        self.owners.retain(|path| paths.contains(path));
        // Each item is moved some four times while it is in the window.
        let bytes = self.bytes();
        let growth = (bytes / 4).max(LEAST_GROWTH.min(self.most_bytes / 8));
        self.compact_at = (bytes + growth).min(self.most_bytes);
    }

    /// Returns the cgroups of all rows.
    fn paths(&self) -> BTreeSet<String> {
        let mut ids: Vec<_> = self
            .rows
            .iter()
            .filter_map(|row| match row.cgroup {
                Name::Known(id) => Some(id),
                Name::Unknown(_) => None,
            })
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter().map(|id| self.tables.names.get(id).to_owned()).collect()
    }

    /// Returns the window as a capture; `None` before the first epoch is complete.
    pub fn snapshot(&self) -> Option<WindowSnapshot> {
        let complete = || {
            let held = self.epochs.iter().take(self.complete());
            held.filter_map(|held| Some((held.named.as_ref()?, held.state.as_ref()?)))
        };
        let start_ns = complete().next()?.0.epoch.start_ns;
        let (named, state) = complete().next_back()?;
        let later = |ns: u64| ns.saturating_sub(start_ns);
        let events = events_between(state, &self.before, ledgers_of(named, state), &self.rates, start_ns);
        let epochs = complete().map(|(named, _)| Epoch {
            start_ns: later(named.epoch.start_ns),
            end_ns: later(named.epoch.end_ns),
        });
        let numbers =
            complete().enumerate().flat_map(|(number, (named, _))| repeat_n(number as u32, named.rows));
        let rows = self.rows.iter().zip(numbers).map(|(row, epoch)| Row { epoch, ..*row });
        let meta = Meta {
            start_unix_ns: self.draft.start_unix_ns + start_ns,
            epochs: epochs.collect(),
            events,
            owners: self.owners.all(),
            overhead: state.overhead,
            notes: self.draft.notes.iter().chain(&self.notes).cloned().collect(),
            ..self.draft.clone()
        };
        // The interners, which are as large, stay here.
        let Tables { names, code, data, stacks, .. } = &self.tables;
        let (names, code, data, stacks) = (names.clone(), code.clone(), data.clone(), stacks.clone());
        let shortened = self.shortened.then(|| {
            let seconds = later(named.epoch.end_ns) as f64 / 1e9;
            format!(
                "The window is shortened to {seconds:.0} s, because more rows or names would not fit in its \
                 memory."
            )
        });
        Some(WindowSnapshot {
            capture: Capture {
                meta,
                names,
                code,
                data,
                stacks,
                rows: rows.collect(),
                types: None,
                touches: None,
            },
            elapsed: Duration::from_nanos(named.epoch.end_ns),
            cost: state.cost,
            shortened,
        })
    }
}

/// Makes room for more rows. The whole block becomes resident over time, as the rows move through
/// it, so it is hardly larger than what is in it.
fn make_room(rows: &mut VecDeque<Row>, more: usize) {
    let needed = rows.len() + more;
    if needed > rows.capacity() {
        rows.reserve_exact(more + needed / 16);
    } else if needed < rows.capacity() / 2 {
        rows.shrink_to(needed + needed / 16);
    }
}

/// Returns the ledger of each event at the end of an epoch.
fn ledgers_of(named: &NamedEpoch, state: &TopState) -> Vec<Ledger> {
    ledgers(state, &named.in_rows, &[(TOO_LARGE, &named.unkept)])
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
