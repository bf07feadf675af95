//! Turns the call chains of cells into stacks of named frames. A chain ends at the first return
//! address that no call precedes.

use precise_code::ReturnSite;
use precise_common::cell::Cell;
use precise_common::stack::{MAX_FRAMES, none};
use precise_common::unwind::program;
use rustc_hash::{FxHashMap, FxHashSet};

use super::code::CodeBatch;
use super::{Assembler, EpochCells, code_key, go_on};
use crate::symbols::{CodeQuery, Processes};
use precise_model::stack::{self, Frames, TakenFrame};
use precise_model::{Chain, ChainEnd, Dimension, LocationId, Reason, Stack};

/// What identifies a chain: it has the same locations wherever it occurs in a process, whichever
/// instruction was sampled. Process, id, and whether the sample is kernel code.
type ChainKey = (u32, u64, bool);

/// What the code says about a return address of a process, by the last byte before the address.
type Sites = FxHashMap<(u32, u64), Option<ReturnSite>>;

/// A call chain of a process, with the locations of its frames.
struct LocatedChain {
    frames: Vec<LocationId>,
    /// Whether the first frame is the instruction that the interrupt arrived at.
    interrupted: bool,
    end: Option<ChainEnd>,
    /// The generation of the process that has the code of the first caller in user space.
    generation: Option<u64>,
}

impl Assembler {
    /// Returns the call chain of each cell, or why it has none. Where the instruction of a cell
    /// does not tell the generation of its process, because it is the kernel's, its callers do.
    pub(super) fn locate_stacks(
        &mut self,
        cells: EpochCells<'_>,
        batch: &mut CodeBatch<'_>,
        code: &[Option<LocationId>],
        generations: &mut [Option<u64>],
    ) -> Vec<Chain> {
        if !self.has(Dimension::Stack) {
            return vec![Chain::NONE; cells.cells.len()];
        }
        let processes = batch.processes;
        let mut chains = distinct(cells);
        let unwound = cells.unwound_since..cells.window.end;
        let mut replaced: FxHashMap<(u32, u64), bool> = FxHashMap::default();
        for ((pid, ..), chain) in &mut chains {
            let program = chain.program;
            cut_replaced(chain, |address| {
                let replaced = replaced.entry((*pid, address));
                *replaced.or_insert_with(|| processes.code_was_replaced(*pid, address, &unwound))
                    || program != program::NONE
                        && processes.code_of_later_program(*pid, program, address, &unwound)
            });
        }
        let sites = self.sites(&chains, processes, cells);
        let mut located: FxHashMap<ChainKey, LocatedChain> = FxHashMap::default();
        for (key, mut chain) in chains {
            let pid = key.0;
            cut(&mut chain, |address| sites.get(&(pid, address)).copied().flatten());
            let mut generation = None;
            let ids = chain.frames.iter().map(|frame| {
                let found = self.find_code(batch, pid, frame.kernel, frame.address);
                generation = generation.or(found.generation);
                found.id
            });
            let frames = ids.collect();
            let Frames { interrupted, end, .. } = chain;
            located.insert(key, LocatedChain { frames, interrupted, end, generation });
        }
        self.resolve(batch);
        for (index, generation) in generations.iter_mut().enumerate() {
            let chain =
                cells.cells.get(index).and_then(|(_, cell)| located.get(&chain_key(cells, index, cell)));
            *generation = generation.or_else(|| chain?.generation);
        }
        let of_cell = |(index, (cell, leaf)): (usize, (&(usize, Cell), &Option<LocationId>))| {
            let key = chain_key(cells, index, &cell.1);
            match (located.get(&key), key.1) {
                (Some(chain), _) => self.stack_of(chain, *leaf),
                (None, none::NOT_TAKEN) => Chain::NONE,
                (None, none::NOT_GIVEN) => Chain::Unknown(Reason::StackNotGiven),
                (None, none::FULL) => Chain::Unknown(Reason::StackFull),
                (None, _) => Chain::Unknown(Reason::StackUnreadable),
            }
        };
        cells.cells.iter().zip(code).enumerate().map(of_cell).collect()
    }

    /// Returns the stack of a sample at `leaf` with this chain.
    fn stack_of(&mut self, chain: &LocatedChain, leaf: Option<LocationId>) -> Chain {
        let LocatedChain { frames, interrupted, end, .. } = chain;
        let Some(leaf) = leaf else { return Chain::NONE };
        let cut = end.map_or(frames.len() >= MAX_FRAMES, |end| end == ChainEnd::TooDeep);
        let joined = stack::join(&self.named.code, &self.named.names, leaf, frames, *interrupted);
        let stack = Stack { cut, end: *end, ..joined };
        let (before, bytes) = (self.named.stacks.len(), 2 * size_of_val(stack.callers.as_slice()));
        let id = self.stack_ids.intern(&mut self.named.stacks, stack);
        self.lists += if self.named.stacks.len() > before { bytes } else { 0 };
        Chain::Known(id)
    }

    /// Returns what the code says about all return addresses of the chains. Each place of a file is
    /// read only once.
    fn sites(
        &mut self,
        chains: &[(ChainKey, Frames)],
        processes: &Processes,
        cells: EpochCells<'_>,
    ) -> Sites {
        let mut sites = Sites::default();
        let mut new = Vec::new();
        for ((pid, ..), chain) in chains.iter().filter(|(_, chain)| chain.end.is_some()) {
            for frame in chain.frames.iter().filter(|frame| is_return(**frame)) {
                let address = (*pid, frame.address);
                if sites.contains_key(&address) {
                    continue;
                }
                let query = CodeQuery::user(processes, *pid, frame.address, cells.window);
                let known = match &query.mapping {
                    // No code, as far as all records say.
                    Err(Reason::Unmapped) => Some(Some(ReturnSite::None)),
                    _ => self.return_sites.get(&code_key(&query, *pid)).copied(),
                };
                sites.insert(address, known.flatten());
                if known.is_none() {
                    new.push((*pid, query));
                }
            }
        }
        self.ask_sites(new, &mut sites);
        sites
    }

    /// Asks about the code of queries, each with its process. Without an answer, nothing is cut.
    fn ask_sites(&mut self, queries: Vec<(u32, CodeQuery)>, sites: &mut Sites) {
        let Some(symbolizer) = &mut self.symbolizer else { return };
        let mut asked = queries.iter().map(|(_, query)| query.clone());
        let answers = symbolizer.return_sites_while(&mut asked, go_on(self.looks_up, &self.deadline));
        for ((pid, query), site) in queries.into_iter().zip(answers) {
            self.return_sites.insert(code_key(&query, pid), site);
            sites.insert((pid, query.address), site);
        }
    }
}

/// Ends a chain that was unwound here before the first return address that is none, by what `site`
/// says about each. Chains of the kernel, and of recordings, stay as they were delivered.
pub(crate) fn cut(chain: &mut Frames, site: impl Fn(u64) -> Option<ReturnSite>) {
    let Some(end) = chain.end else { return };
    let mut handler_returns = false;
    let mut wrong = None;
    for (at, frame) in chain.frames.iter_mut().enumerate().filter(|(_, frame)| is_return(**frame)) {
        if std::mem::take(&mut handler_returns) {
            // The instruction that a signal interrupted, which may be the first of a function.
            frame.address = frame.address.saturating_add(1);
            continue;
        }
        match site(frame.address) {
            Some(ReturnSite::Signal) => handler_returns = true,
            Some(ReturnSite::None) => {
                wrong = Some(at);
                break;
            }
            Some(ReturnSite::Call | ReturnSite::Thread) | None => {}
        }
    }
    if let Some(wrong) = wrong {
        chain.frames.truncate(wrong);
        // The callers of a program that is not known yet are a guess, which was wrong. Where there
        // is no code, the program may have found that too.
        let known = matches!(end, ChainEnd::NotYet | ChainEnd::NoRegion);
        chain.end = Some(if known { end } else { ChainEnd::NoCall });
    }
}

/// Ends a chain that was unwound here before the first address of user code where `replaced` tells
/// that code was replaced: the table may have been that of the code before it, and names cannot be
/// told apart.
fn cut_replaced(chain: &mut Frames, mut replaced: impl FnMut(u64) -> bool) {
    let Some(end) = chain.end else { return };
    let Some(at) = chain.frames.iter().position(|frame| !frame.kernel && replaced(frame.address)) else {
        return;
    };
    chain.frames.truncate(at);
    chain.interrupted &= at > 0;
    chain.end = Some(if end == ChainEnd::NotYet { end } else { ChainEnd::Changed });
}

/// Returns whether a frame is a return address in user code.
pub(crate) fn is_return(frame: TakenFrame) -> bool {
    frame.is_return && !frame.kernel
}

fn chain_key(cells: EpochCells<'_>, index: usize, cell: &Cell) -> ChainKey {
    (cell.key.pid(), cells.stack(index), cell.key.class().kernel())
}

/// Returns the distinct chains of the cells.
fn distinct(cells: EpochCells<'_>) -> Vec<(ChainKey, Frames)> {
    let mut seen = FxHashSet::default();
    let keys = cells.cells.iter().enumerate().map(|(index, (_, cell))| chain_key(cells, index, cell));
    let new = keys.filter(|key| cells.chains.contains_key(&key.1) && seen.insert(*key));
    new.filter_map(|key| Some((key, stack::frames(cells.chains.get(&key.1)?, key.2)))).collect()
}

#[cfg(test)]
mod tests {
    use precise_common::stack::CONTEXT_USER;
    use precise_common::unwind::End;

    use super::*;

    /// Cuts a chain of a function at 1 and return addresses from 101 on, about which the code says
    /// this. Returns the addresses that are left, and the end.
    fn after(end: End, sites: &[Option<ReturnSite>]) -> (Vec<u64>, Option<ChainEnd>) {
        let mut entries = vec![CONTEXT_USER, 1];
        entries.extend((1..=sites.len() as u64).map(|at| 100 * at + 1));
        entries.push(end.marker());
        let mut chain = stack::frames(&entries, false);
        cut(&mut chain, |address| sites.get((address / 100) as usize - 1).copied().flatten());
        (chain.frames.iter().map(|frame| frame.address).collect(), chain.end)
    }

    #[test]
    fn a_chain_ends_before_a_return_address_that_no_call_precedes() {
        let (call, none) = (Some(ReturnSite::Call), Some(ReturnSite::None));
        assert_eq!(after(End::Root, &[call, None, call]), (vec![1, 100, 200, 300], Some(ChainEnd::Root)));
        assert_eq!(after(End::Root, &[call, none, call]), (vec![1, 100], Some(ChainEnd::NoCall)));
        assert_eq!(after(End::Fault, &[none, none]), (vec![1], Some(ChainEnd::NoCall)));
        assert_eq!(after(End::NotYet, &[call, none]), (vec![1, 100], Some(ChainEnd::NotYet)));
        let go = Some(ReturnSite::Thread);
        assert_eq!(after(End::Root, &[call, go]), (vec![1, 100, 200], Some(ChainEnd::Root)));
    }

    #[test]
    fn a_chain_ends_before_code_that_was_replaced() {
        let cut = |end: End, wrong: u64| {
            let mut chain = stack::frames(&[CONTEXT_USER, 1, 101, 201, end.marker()], false);
            cut_replaced(&mut chain, |address| address == wrong);
            (chain.frames.len(), chain.interrupted, chain.end)
        };
        assert_eq!(cut(End::Root, 7), (3, true, Some(ChainEnd::Root)));
        assert_eq!(cut(End::Root, 200), (2, true, Some(ChainEnd::Changed)));
        assert_eq!(cut(End::Root, 1), (0, false, Some(ChainEnd::Changed)));
        assert_eq!(cut(End::NotYet, 100), (1, true, Some(ChainEnd::NotYet)));
    }

    #[test]
    fn an_interrupted_instruction_is_no_return_address() {
        let (call, none, signal) = (Some(ReturnSite::Call), Some(ReturnSite::None), Some(ReturnSite::Signal));
        let found = after(End::Root, &[call, signal, none, call, none]);
        assert_eq!(found, (vec![1, 100, 200, 301, 400], Some(ChainEnd::NoCall)));
    }

    #[test]
    fn chains_of_others_stay_as_they_are() {
        let mut chain = stack::frames(&[CONTEXT_USER, 1, 101], false);
        cut(&mut chain, |_| Some(ReturnSite::None));
        assert_eq!((chain.frames.len(), chain.end), (2, None));
    }
}
