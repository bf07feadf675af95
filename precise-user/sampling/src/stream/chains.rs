//! Call chains of streamed samples: unwinds copies of stacks, in the order of time, and joins each
//! chain with the sampled instruction as a run that aggregates does.

use std::collections::VecDeque;

use precise_code::ReturnSite;
use precise_common::mode::in_kernel;
use rustc_hash::FxHashMap;

use crate::error::SamplingError;
use crate::run::assemble::chains::{cut, is_return};
use crate::run::assemble::{CodeKey, code_key};
use crate::run::plan::{CallGraph, Plan};
use crate::run::session::Session;
use crate::symbols::{CodeQuery, Processes, Symbolizer};
use crate::unwind::{Fallback, StackUnwinder, UnwindTarget, UserPart, concerns_code, kernel_part};
use precise_model::stack::{self, Frames};
use precise_model::{ChainEnd, CodeLocation, LocationId, Names};
use precise_records::record::IdentifiedRecord;
use precise_records::record::sample::Sample;

/// Maximum number of return addresses about which the code's answer is remembered.
const MAX_SITES: usize = 1 << 16;

/// A chain of a streamed sample.
#[derive(Debug)]
pub(super) struct StreamedChain {
    /// The callers, the innermost first: address, and index of the code location, which processes
    /// share that map the same file.
    pub callers: Vec<(u64, usize)>,
    pub end: Option<ChainEnd>,
}

impl StreamedChain {
    /// Joins the sampled instruction with the frames of its chain.
    pub fn join(code: &[CodeLocation], names: &Names, leaf: usize, frames: &[usize], chain: &Frames) -> Self {
        let ids: Vec<LocationId> = frames.iter().map(|id| *id as LocationId).collect();
        let joined = stack::join(code, names, leaf as LocationId, &ids, chain.interrupted);
        // What is joined are the innermost frames.
        let addresses = chain.frames.iter().map(|frame| frame.address);
        let callers = addresses.zip(frames.iter().copied()).skip(ids.len() - joined.callers.len());
        Self { callers: callers.collect(), end: chain.end }
    }
}

/// What makes the chains.
pub(super) struct StreamChains {
    /// Unwinds copies of stacks; `None` if the kernel unwinds.
    unwinder: Option<StackUnwinder>,
    followed: UnwindTarget,
    /// Records about code, in the order of time, that are newer than the samples so far.
    ahead: VecDeque<IdentifiedRecord>,
    /// What the code says about return addresses, by the byte before them.
    sites: FxHashMap<CodeKey, Option<ReturnSite>>,
}

impl std::fmt::Debug for StreamChains {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamChains").field("followed", &self.followed).finish_non_exhaustive()
    }
}

impl StreamChains {
    /// Prepares for the chains of a run; `None` if it takes none.
    pub fn new(
        plan: &Plan,
        session: &Session,
        symbolizer: &Symbolizer,
    ) -> Result<Option<Self>, SamplingError> {
        if !plan.stream.is_some_and(|stream| stream.chains) {
            return Ok(None);
        }
        let mut unwinder = None;
        if plan.copied_stack() > 0 {
            let fallback = Fallback { frame_pointers: plan.call_graph == CallGraph::Auto };
            unwinder.insert(StackUnwinder::new(fallback)?).open_with(symbolizer.code_files());
        }
        let followed = session.unwind_target(plan);
        Ok(Some(Self { unwinder, followed, ahead: VecDeque::new(), sites: FxHashMap::default() }))
    }

    /// Reads the mappings of the processes that are running.
    pub fn look_around(&mut self) {
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.look_around(&self.followed);
        }
    }

    /// Takes records of the sideband, in the order of time.
    pub fn follow(&mut self, entries: &[IdentifiedRecord]) {
        if self.unwinder.is_some() {
            self.ahead.extend(entries.iter().filter(|entry| concerns_code(&entry.record)).cloned());
        }
    }

    /// Applies the records before a time, as all samples before it have been taken: a run without
    /// samples must not remember them.
    pub fn catch_up(&mut self, time: u64) {
        let Self { unwinder: Some(unwinder), ahead, .. } = self else { return };
        while let Some(entry) = ahead.pop_front_if(|entry| entry.id.time < time) {
            unwinder.follow(&entry);
        }
    }

    /// Returns the frames of samples, which come in the order of time.
    pub fn frames(&mut self, samples: &[&Sample]) -> Vec<Frames> {
        let of = |sample: &&Sample| {
            let mut entries: Vec<u64> = match &mut self.unwinder {
                Some(_) => kernel_part(&sample.call_chain).collect(),
                None => sample.call_chain.as_chunks().0.iter().map(|one| u64::from_ne_bytes(*one)).collect(),
            };
            if let Some(unwinder) = &mut self.unwinder {
                // The exec of a command and its first samples may have one time.
                while let Some(entry) = self.ahead.pop_front_if(|entry| entry.id.time <= sample.time) {
                    unwinder.follow(&entry);
                }
                unwinder.unwind(sample.pid, &UserPart::of(sample), &mut entries);
            }
            stack::frames(&entries, in_kernel(sample.ip))
        };
        samples.iter().map(of).collect()
    }

    /// Ends the chains that were unwound here before the first return address that no call
    /// precedes.
    pub fn cut(
        &mut self,
        samples: &[&Sample],
        chains: &mut [Frames],
        processes: &Processes,
        symbolizer: &mut Symbolizer,
    ) {
        if self.unwinder.is_none() {
            return;
        }
        if self.sites.len() > MAX_SITES {
            self.sites.clear();
        }
        let query = |sample: &Sample, address: u64| {
            let moment = sample.time..sample.time.saturating_add(1);
            CodeQuery::user(processes, sample.pid, address, &moment)
        };
        let mut new: FxHashMap<CodeKey, CodeQuery> = FxHashMap::default();
        for (sample, chain) in samples.iter().zip(&*chains) {
            for frame in chain.frames.iter().filter(|frame| is_return(**frame)) {
                let query = query(sample, frame.address);
                let key = code_key(&query, sample.pid);
                if !self.sites.contains_key(&key) {
                    new.entry(key).or_insert(query);
                }
            }
        }
        let (keys, queries): (Vec<_>, Vec<_>) = new.into_iter().unzip();
        let answers = symbolizer.return_sites_while(&mut queries.into_iter(), || true);
        self.sites.extend(keys.into_iter().zip(answers));
        for (sample, chain) in samples.iter().zip(chains) {
            cut(chain, |address| {
                self.sites.get(&code_key(&query(sample, address), sample.pid)).copied().flatten()
            });
        }
    }

    /// Returns notes on what could not be unwound.
    pub fn notes(self) -> Vec<String> {
        self.unwinder.map(|unwinder| unwinder.report().notes).unwrap_or_default()
    }
}
