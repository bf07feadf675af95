//! The names of threads over time.
//!
//! The first thread of a process has the name of its process. The others are here: a thread begins
//! with the name of the thread that started it, and may take any other later. The memory is bounded
//! like that of processes: threads that have ended are forgotten first, then living ones, and both
//! are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::MAX_NAMES;
use crate::symbols::charge::{BLOCK, ByteAccount, Charge};

/// The identity of a thread: process id and thread id.
type ThreadId = (u32, u32);

/// The names of one thread.
#[derive(Debug, Default)]
struct ThreadHistory {
    /// The names, each with the time since when it applies, oldest first.
    names: Vec<(u64, Arc<str>)>,
    until: Option<u64>,
}

impl ThreadHistory {
    /// Returns the bytes that would be free without the thread.
    fn bytes(&self) -> usize {
        /// The entries in [`ThreadNames::by_id`] and [`ThreadNames::ended`]: the nodes of a B-tree
        /// are at least half full.
        const ENTRIES: usize = 2 * (size_of::<(ThreadId, ThreadHistory)>() + size_of::<(u64, ThreadId)>());
        ENTRIES + self.names.capacity() * size_of::<(u64, Arc<str>)>() + BLOCK
    }

    fn name(&mut self, time: u64, name: Arc<str>, horizon: u64) {
        if self.names.last().is_some_and(|(_, last)| *last == name) {
            return;
        }
        // A name that was replaced before the horizon is never asked for again.
        let replaced = self.names.iter().skip(1).take_while(|(since, _)| *since <= horizon).count();
        let full = usize::from(self.names.len() == MAX_NAMES);
        self.names.drain(..replaced.max(full));
        if self.names.is_empty() {
            // Most threads never have another name.
            self.names.reserve_exact(1);
        }
        self.names.push((time, name));
    }
}

/// The names of all threads but the first of each process.
#[derive(Debug)]
pub(super) struct ThreadNames {
    by_id: BTreeMap<ThreadId, ThreadHistory>,
    /// Ended threads in the order of their ends.
    ended: BTreeSet<(u64, ThreadId)>,
    /// Maximum number of bytes.
    limit: usize,
    /// Number of threads that were forgotten. One that takes a new name afterwards is known again,
    /// and may count twice.
    forgotten: u64,
    /// The bytes of all threads.
    charge: Charge,
}

impl ThreadNames {
    /// Creates an empty history, whose bytes count in `account`.
    pub fn new(limit: usize, account: &ByteAccount) -> Self {
        let charge = account.charge(0);
        Self { by_id: BTreeMap::new(), ended: BTreeSet::new(), limit, forgotten: 0, charge }
    }

    /// Returns the number of threads that were forgotten, though their names may be needed.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Returns the number of threads with a name.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the newest name of a thread.
    pub fn last(&self, id: ThreadId) -> Option<&Arc<str>> {
        Some(&self.by_id.get(&id)?.names.last()?.1)
    }

    /// Returns the newest name that the thread had in `window`.
    pub fn find(&self, id: ThreadId, window: &Range<u64>) -> Option<&Arc<str>> {
        let names = &self.by_id.get(&id)?.names;
        let before_end = names.iter().rev().find(|(since, _)| *since < window.end.max(1));
        before_end.map(|(_, name)| name)
    }

    /// Gives a thread a name, and begins the thread if it is not known.
    pub fn name(&mut self, id: ThreadId, time: u64, name: Arc<str>, horizon: u64) {
        let known = self.by_id.get(&id).map_or(0, ThreadHistory::bytes);
        let thread = self.by_id.entry(id).or_default();
        if let Some(until) = thread.until.take() {
            self.ended.remove(&(until, id));
        }
        thread.name(time, name, horizon);
        let bytes = thread.bytes();
        self.charge.set((self.charge.bytes() + bytes).saturating_sub(known));
        self.bound();
    }

    /// Ends a thread.
    pub fn end(&mut self, id: ThreadId, time: u64) {
        if let Some(thread) = self.by_id.get_mut(&id)
            && thread.until.is_none()
        {
            thread.until = Some(time);
            self.ended.insert((time, id));
        }
    }

    /// Ends all threads of a process: it has ended, or executes another program.
    pub fn end_all(&mut self, pid: u32, time: u64) {
        for (id, thread) in self.by_id.range_mut((pid, 0)..=(pid, u32::MAX)) {
            if thread.until.is_none() {
                thread.until = Some(time);
                self.ended.insert((time, *id));
            }
        }
    }

    /// Drops the threads that ended before `time`.
    pub fn forget_before(&mut self, time: u64) {
        while self.ended.first().is_some_and(|(until, _)| *until < time) {
            if let Some((_, id)) = self.ended.pop_first() {
                self.remove(id);
            }
        }
    }

    /// Forgets threads until the limit holds: those that ended first, then the living with the
    /// highest ids.
    fn bound(&mut self) {
        while self.charge.bytes() > self.limit {
            let last = || self.by_id.last_key_value().map(|(id, _)| *id);
            let Some(id) = self.ended.pop_first().map(|(_, id)| id).or_else(last) else { return };
            self.remove(id);
            self.forgotten += 1;
        }
    }

    fn remove(&mut self, id: ThreadId) {
        if let Some(thread) = self.by_id.remove(&id) {
            self.charge.set(self.charge.bytes().saturating_sub(thread.bytes()));
        }
    }
}
