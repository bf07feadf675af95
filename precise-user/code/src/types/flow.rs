//! The data flow of one function, to its fixed point.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;

use iced_x86::{FlowControl, InstructionInfoFactory, Mnemonic};
use rustc_hash::{FxHashMap, FxHashSet};

use super::access::{self, stack};
use super::known::{KnownVariables, RSP};
use super::later::LaterTypes;
use super::step::Context;
use super::value::{KnownValue, ValueState};
use super::{Access, FunctionFacts, Types, Untyped};
use crate::Instruction;
use crate::flow::Flow;

/// Maximum number of instructions of a function.
const MAX_INSTRUCTIONS: usize = 1 << 16;
/// Maximum number of instructions that are executed until the fixed point.
const MAX_STEPS: usize = 1 << 20;
/// Maximum number of depths of the stack at the places from which code may be reached.
const MAX_DEPTHS: usize = 64;

/// Returns the accesses of instructions to memory, by the distance of the instruction from the
/// start of the function. Instructions that access no memory have an empty list.
///
/// # Errors
///
/// Returns an error if the function is too large.
pub fn accesses(
    instructions: &[Instruction],
    facts: &FunctionFacts,
    types: &mut dyn Types,
    wanted: &[u64],
) -> Result<FxHashMap<u64, Vec<Access>>, Untyped> {
    if instructions.len() > MAX_INSTRUCTIONS {
        return Err(Untyped::TooLarge);
    }
    let known = KnownVariables::of(instructions, facts).ok_or(Untyped::TooLarge)?;
    let context = Context { facts, known: &known, types };
    let mut analysis = Analysis {
        instructions,
        flow: Flow::edges(instructions),
        factory: InstructionInfoFactory::new(),
        context,
        entering: FxHashMap::default(),
        reached: vec![false; instructions.len()],
        steps: 0,
    };
    analysis.fix()?;
    Ok(analysis.find(&wanted.iter().copied().collect()))
}

/// The states at some places of a function, joined by the depth of the stack there; `None` where
/// the depth is unknown.
#[derive(Default)]
struct ByDepth(FxHashMap<Option<i64>, (usize, ValueState)>);

impl ByDepth {
    /// Adds the state at a place. Depths beyond [`MAX_DEPTHS`] are left out: no compiler makes
    /// them.
    fn add(&mut self, state: ValueState, types: &mut dyn Types) {
        let (depths, depth) = (self.0.len(), stack(&state));
        match self.0.entry(depth) {
            Entry::Occupied(mut known) => {
                let (places, joined) = known.get_mut();
                *places += 1;
                joined.join(&state, types);
            }
            Entry::Vacant(place) if depths < MAX_DEPTHS => drop(place.insert((1, state))),
            Entry::Vacant(_) => {}
        }
    }

    /// Returns the state at the depth that most places have, the deepest of several. Places whose
    /// depth is unknown count only if there are no others.
    fn most_common(self) -> Option<ValueState> {
        let rank = |(depth, (places, _)): &(Option<i64>, (usize, ValueState))| {
            (depth.is_some(), *places, Reverse(*depth))
        };
        self.0.into_iter().max_by_key(rank).map(|(_, (_, state))| state)
    }
}

struct Analysis<'a> {
    instructions: &'a [Instruction],
    flow: Flow,
    factory: InstructionInfoFactory,
    context: Context<'a>,
    /// The states at the starts of the blocks that were reached.
    entering: FxHashMap<usize, ValueState>,
    /// Whether each instruction was executed.
    reached: Vec<bool>,
    steps: usize,
}

impl Analysis<'_> {
    /// Executes blocks until no state changes any more.
    fn fix(&mut self) -> Result<(), Untyped> {
        let mut entry = ValueState::unknown();
        if self.context.facts.from_entry {
            entry.set(RSP, KnownValue::Stack(0));
        }
        self.run(vec![(0, entry)])?;
        // Blocks that are reached by a jump through a table, or when an exception is caught.
        // What fills the space before a loop is not executed, and leads nowhere.
        let orphan =
            |of: &Self, i: usize| !of.reached[i] && of.instructions[i].decoded.mnemonic() != Mnemonic::Nop;
        let all = 1..self.instructions.len();
        if !all.clone().any(|i| orphan(self, i)) {
            return Ok(());
        }
        let state = self.elsewhere().unwrap_or_else(ValueState::unknown);
        let first: Vec<usize> =
            all.clone().filter(|i| orphan(self, *i) && self.flow.before[*i].is_empty()).collect();
        self.run(first.into_iter().map(|i| (i, state.clone())).collect())?;
        // Some of them are also reached from code behind them: the head of a loop.
        for i in all {
            if orphan(self, i) {
                self.run(vec![(i, state.clone())])?;
            }
        }
        Ok(())
    }

    fn run(&mut self, starts: Vec<(usize, ValueState)>) -> Result<(), Untyped> {
        let mut open = Vec::new();
        for (start, state) in starts {
            self.entering.insert(start, state);
            open.push(start);
        }
        while let Some(start) = open.pop() {
            let Some(mut state) = self.entering.get(&start).cloned() else { continue };
            let end = self.execute(start, &mut state, |_, _, _, _| ());
            self.steps += end - start + 1;
            if self.steps > MAX_STEPS {
                return Err(Untyped::TooLarge);
            }
            for next in self.flow.after[end].clone() {
                let changed = match self.entering.get_mut(&next) {
                    Some(known) => known.join(&state, self.context.types),
                    None => self.entering.insert(next, state.clone()).is_none(),
                };
                if changed {
                    open.push(next);
                }
            }
        }
        Ok(())
    }

    /// Executes the block that begins at an instruction. Calls `see` before each instruction.
    /// Returns the last instruction of the block.
    fn execute(
        &mut self,
        start: usize,
        state: &mut ValueState,
        mut see: impl FnMut(usize, &ValueState, &iced_x86::InstructionInfo, &mut Context<'_>),
    ) -> usize {
        let mut at = start;
        loop {
            let Some(instruction) = self.instructions.get(at) else { return start };
            self.reached[at] = true;
            self.context.known.refine(at, state, self.context.types);
            let info = self.factory.info(&instruction.decoded);
            see(at, state, info, &mut self.context);
            self.context.step(&instruction.decoded, info, at, state);
            let next = at + 1;
            let alone = self.flow.after[at] == [next] && self.flow.before[next] == [at];
            if !alone || next >= self.instructions.len() {
                return at;
            }
            at = next;
        }
    }

    /// Returns the state with which blocks begin that no instruction names: that of all indirect
    /// jumps, or else of all calls, from which exceptions come. The stack is as deep there as at
    /// most of these: the kernel calls its tracer before the function has a frame.
    fn elsewhere(&mut self) -> Option<ValueState> {
        let leaves = |control: FlowControl| {
            move |i: &Instruction| match control {
                FlowControl::IndirectBranch => i.decoded.flow_control() == FlowControl::IndirectBranch,
                _ => matches!(i.decoded.flow_control(), FlowControl::Call | FlowControl::IndirectCall),
            }
        };
        [FlowControl::IndirectBranch, FlowControl::Call].into_iter().find_map(|control| {
            let leaves = leaves(control);
            let mut by_depth = ByDepth::default();
            for (start, mut state) in self.entering.clone() {
                let instructions = self.instructions;
                self.execute(start, &mut state, |at, state, info, context| {
                    let Some(instruction) = instructions.get(at).filter(|i| leaves(i)) else { return };
                    let mut after = state.clone();
                    context.step(&instruction.decoded, info, at, &mut after);
                    by_depth.add(after, context.types);
                });
            }
            let mut joined = by_depth.most_common()?;
            // Which of these places it was is not known, so one value is not against another.
            joined.forget_conflicts();
            Some(joined)
        })
    }

    /// Returns the accesses of instructions, once no state changes any more.
    fn find(&mut self, wanted: &FxHashSet<u64>) -> FxHashMap<u64, Vec<Access>> {
        let mut found = FxHashMap::default();
        let starts: Vec<(usize, ValueState)> =
            self.entering.iter().map(|(start, state)| (*start, state.clone())).collect();
        // What was not executed accesses nothing.
        let unreached = self.instructions.iter().zip(&self.reached).filter(|(_, reached)| !**reached);
        let wanted_of = unreached.filter(|(instruction, _)| wanted.contains(&instruction.offset));
        found.extend(wanted_of.map(|(instruction, _)| (instruction.offset, Vec::new())));
        for (start, mut state) in starts {
            let instructions = self.instructions;
            let mut later = LaterTypes::default();
            self.execute(start, &mut state, |at, state, info, context| {
                later.see(instructions, info, at, state, context, &mut found);
                let Some(instruction) = instructions.get(at).filter(|i| wanted.contains(&i.offset)) else {
                    return;
                };
                let accesses =
                    access::accesses(&instruction.decoded, info, at, state, context.known, context.types);
                later.wait(instruction, at, state, &accesses);
                found.insert(instruction.offset, accesses);
            });
        }
        found
    }
}
