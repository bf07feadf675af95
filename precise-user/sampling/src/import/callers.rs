//! Finds the callers that samples do not have themselves: unwinds copies of stacks, and waits for
//! the kernel's deferred chains.

use std::collections::{BTreeMap, VecDeque};

use precise_common::stack::{CONTEXT_FIRST, CONTEXT_USER};
use precise_common::unwind::End;
use rustc_hash::FxHashMap;

use super::chains::{RestOfChain, Seen, words};
use super::sample::{KeptFacts, SampleChain};
use crate::error::SamplingError;
use crate::symbols::CodeFiles;
use crate::unwind::{Fallback, StackUnwinder, UnwindReport};
use precise_records::record::IdentifiedRecord;

/// Maximum memory of the samples that wait for a deferred chain, in bytes.
const MAX_WAITING: usize = 16 << 20;
/// Maximum memory of the last deferred chain of each thread, in bytes. Beyond it, all are
/// forgotten.
const MAX_LAST: usize = 16 << 20;

/// A thread, and the cookie of one of its stays in the kernel.
type Stay = (u32, u64);

/// What finds the callers.
#[derive(Default)]
pub(super) struct CallerFinder {
    /// Unwinds copies of stacks; `None` if no event has any.
    unwinder: Option<StackUnwinder>,
    /// The samples that wait for a deferred chain, with their times.
    waiting: BTreeMap<Stay, Vec<(u64, KeptFacts)>>,
    /// The keys of `waiting`, and of some that are no longer there, oldest first.
    order: VecDeque<Stay>,
    /// The memory of `waiting` and `order`, in bytes.
    bytes: usize,
    /// The last deferred chain of each thread, with the cookie of its stay in the kernel. The
    /// kernel writes one chain for each stay, and a thread that is preempted on its way back to
    /// user space has samples after it.
    last: FxHashMap<u32, (u64, Box<[u64]>)>,
    /// The memory of `last`, in bytes.
    last_bytes: usize,
}

impl CallerFinder {
    /// Prepares for copies of stacks. To be called before the first record.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no memory for unwind tables.
    pub fn expect_copies(&mut self) -> Result<(), SamplingError> {
        if self.unwinder.is_none() {
            self.unwinder = Some(StackUnwinder::new(Fallback { frame_pointers: true })?);
        }
        Ok(())
    }

    /// Sets who opens the files of code.
    pub fn open_with(&mut self, files: CodeFiles) {
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.open_with(files);
        }
    }

    /// Applies a record about processes, in the order of time.
    pub fn follow(&mut self, entry: &IdentifiedRecord) {
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.follow(entry);
        }
    }

    /// Completes the chain of a sample, in the order of time. Returns the sample, unless it waits
    /// for its callers.
    pub fn complete(&mut self, time: u64, mut facts: KeptFacts, seen: &mut Seen) -> Option<KeptFacts> {
        let SampleChain::Partial(partial) = &facts.chain else { return Some(facts) };
        let part = match &partial.rest {
            RestOfChain::Copied(part) => part,
            RestOfChain::Deferred { tid, cookie } => {
                if let Some((_, callers)) = self.last.get(tid).filter(|(last, _)| last == cookie) {
                    let chain = [&partial.kernel[..], callers].concat();
                    facts.chain = SampleChain::Known(seen.of(&chain));
                    return Some(facts);
                }
                self.wait((*tid, *cookie), time, facts);
                return None;
            }
        };
        let mut chain = partial.kernel.clone();
        match &mut self.unwinder {
            Some(unwinder) => unwinder.unwind(facts.pid, part, &mut chain),
            None => chain.push(End::NotYet.marker()),
        }
        facts.chain = SampleChain::Known(seen.of(&chain));
        Some(facts)
    }

    fn wait(&mut self, stay: Stay, time: u64, facts: KeptFacts) {
        self.bytes += bytes_of(&facts);
        let samples = self.waiting.entry(stay).or_default();
        if samples.is_empty() {
            self.order.push_back(stay);
        }
        samples.push((time, facts));
    }

    /// Completes the samples that waited for a deferred chain. Returns them.
    pub fn arrived(
        &mut self,
        tid: u32,
        cookie: u64,
        entries: &[u8],
        seen: &mut Seen,
    ) -> Vec<(u64, KeptFacts)> {
        let mut callers: Vec<u64> = words(entries).collect();
        if callers.first().is_none_or(|first| *first < CONTEXT_FIRST) {
            callers.insert(0, CONTEXT_USER);
        }
        let samples = self.take((tid, cookie), &callers, seen);
        self.forget_last(tid);
        if self.last_bytes > MAX_LAST {
            self.last = FxHashMap::default();
            self.last_bytes = 0;
        }
        self.last_bytes += bytes_of_last(&callers);
        self.last.insert(tid, (cookie, callers.into()));
        samples
    }

    fn forget_last(&mut self, tid: u32) {
        if let Some((_, callers)) = self.last.remove(&tid) {
            self.last_bytes = self.last_bytes.saturating_sub(bytes_of_last(&callers));
        }
    }

    /// Returns samples that have waited too long: for which there is no room, or, at the end of the
    /// recording, all. Their chains end in the kernel.
    pub fn overdue(&mut self, at_end: bool, seen: &mut Seen) -> Vec<(u64, KeptFacts)> {
        let mut overdue = Vec::new();
        while (at_end || self.bytes > MAX_WAITING)
            && let Some(stay) = self.order.pop_front()
        {
            overdue.extend(self.take(stay, &[End::Deferred.marker()], seen));
        }
        overdue
    }

    /// Returns whether samples of a thread wait for their callers.
    pub fn expects(&self, tid: u32) -> bool {
        self.stays(tid).next().is_some()
    }

    /// Returns the samples of a thread that has exited: a record that has not come will not come.
    /// Their chains end in the kernel.
    pub fn exited(&mut self, tid: u32, seen: &mut Seen) -> Vec<(u64, KeptFacts)> {
        self.forget_last(tid);
        let stays: Vec<Stay> = self.stays(tid).collect();
        stays.into_iter().flat_map(|stay| self.take(stay, &[End::Deferred.marker()], seen)).collect()
    }

    /// Returns the stays of a thread in the kernel that samples wait for.
    fn stays(&self, tid: u32) -> impl Iterator<Item = Stay> {
        self.waiting.range((tid, 0)..=(tid, u64::MAX)).map(|(stay, _)| *stay)
    }

    fn take(&mut self, stay: Stay, callers: &[u64], seen: &mut Seen) -> Vec<(u64, KeptFacts)> {
        let mut samples = self.waiting.remove(&stay).unwrap_or_default();
        for (_, facts) in &mut samples {
            self.bytes = self.bytes.saturating_sub(bytes_of(facts));
            if let SampleChain::Partial(partial) = &facts.chain {
                let chain = [&partial.kernel[..], callers].concat();
                facts.chain = SampleChain::Known(seen.of(&chain));
            }
        }
        if self.order.len() > 2 * self.waiting.len() + 64 {
            let Self { order, waiting, .. } = self;
            order.retain(|stay| waiting.contains_key(stay));
        }
        samples
    }

    /// Returns what became of the unwind tables; `None` if no stack had to be unwound.
    pub fn report(self) -> Option<UnwindReport> {
        self.unwinder.map(StackUnwinder::report)
    }
}

/// Returns the memory of a deferred chain that is kept for later samples, in bytes.
fn bytes_of_last(callers: &[u64]) -> usize {
    size_of_val(callers) + 2 * size_of::<(u32, (u64, Box<[u64]>))>()
}

/// Returns the memory of a sample that waits, in bytes, with its places in the tables.
fn bytes_of(facts: &KeptFacts) -> usize {
    2 * size_of::<(Stay, Vec<(u64, KeptFacts)>)>() + size_of::<(u64, KeptFacts)>() + facts.chain.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_chains_of_threads_are_bounded() {
        const THREADS: u32 = 100_000;
        let (mut finder, mut seen) = (CallerFinder::default(), Seen::default());
        let entries = [1; 8 * 64];
        for tid in 0..THREADS {
            assert!(finder.arrived(tid, 1, &entries, &mut seen).is_empty());
            assert!(finder.last_bytes <= MAX_LAST + 1024);
        }
        assert!(finder.last.len() < THREADS as usize / 2);
        for tid in 0..THREADS {
            assert!(finder.exited(tid, &mut seen).is_empty());
        }
        assert_eq!((finder.last.len(), finder.last_bytes), (0, 0));
    }
}
