//! What is known of a run when a part of it ends, be it a capture or an interval that is pushed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use precise_model::{EventInfo, Ledger, Meta, Overhead, Row};

use crate::top::{Rates, TopState, events_between, ledgers};

/// The states at the ends of the epochs whose rows have not come yet. The run loop adds them, and
/// the naming thread takes them. The lock is held only for that.
#[derive(Clone, Default)]
pub(super) struct EpochStates(Arc<Mutex<VecDeque<TopState>>>);

impl EpochStates {
    /// Adds the state at the end of the next epoch.
    pub fn add(&self, state: TopState) {
        self.lock().push_back(state);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<TopState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run up to the end of the last epoch whose rows have come.
pub(super) struct RunSoFar {
    states: EpochStates,
    /// The number of epochs whose rows have come.
    epochs: u64,
    /// The samples of each event in the rows of all epochs so far.
    in_rows: Vec<u64>,
    last: TopState,
    ledgers: Vec<Ledger>,
    rates: Vec<Rates>,
}

impl RunSoFar {
    /// Starts with a run that `draft` describes, and that has no epoch yet.
    pub fn new(draft: &Meta, states: EpochStates) -> Self {
        Self {
            states,
            epochs: 0,
            in_rows: vec![0; draft.events.len()],
            last: TopState::default(),
            ledgers: vec![Ledger::default(); draft.events.len()],
            rates: draft.events.iter().map(Rates::new).collect(),
        }
    }

    /// Ends the epoch before the one whose rows have come now, and returns its state; `None` if
    /// there is none. It was added before those rows were made.
    pub fn end_epoch(&mut self) -> Option<&TopState> {
        let state = if self.epochs > 0 { self.states.lock().pop_front() } else { None };
        self.end_with(state?)
    }

    /// Ends the last epoch of the run, and returns its state; `None` if there is none.
    pub fn end_last_epoch(&mut self) -> Option<&TopState> {
        let state = self.states.lock().pop_back();
        self.end_with(state?)
    }

    fn end_with(&mut self, state: TopState) -> Option<&TopState> {
        for (rates, changes) in self.rates.iter_mut().zip(&state.changes) {
            rates.add(changes);
        }
        self.ledgers = ledgers(&state, &self.in_rows, &[]);
        self.last = state;
        Some(&self.last)
    }

    /// Adds the rows of the next epoch.
    pub fn add(&mut self, rows: &[Row]) {
        for row in rows {
            if let Some(sum) = self.in_rows.get_mut(usize::from(row.event)) {
                *sum = sum.saturating_add(row.measures.count);
            }
        }
        self.epochs += 1;
    }

    /// Begins a part at `start_ns` of the run, and returns the ledger of each event there.
    pub fn begin_part(&mut self, start_ns: u64) -> Vec<Ledger> {
        self.rates.iter_mut().for_each(|rates| rates.forget_before(start_ns));
        self.ledgers.clone()
    }

    /// Returns the events of the part that began at `start_ns` with the ledgers `before`, and ends
    /// now.
    pub fn events_of_part(&self, before: &[Ledger], start_ns: u64) -> Vec<EventInfo> {
        events_between(&self.last, before, self.ledgers.clone(), &self.rates, start_ns)
    }

    /// Returns what sampling has cost so far.
    pub fn overhead(&self) -> Option<Overhead> {
        self.last.overhead
    }
}
