//! Makes a program short before it is loaded.
//!
//! The object has the code of every feature, and [`super::patch`] writes into it what a run uses.
//! The kernel removes what is never reached, but nothing else: numbers are computed from numbers,
//! values that nobody reads are stored, and the parts that remain lie where the compiler put them,
//! each behind a jump. A sample arrives when neither code nor stack is in the CPU's caches, so the
//! sampled program waits for all of that (docs/journal/0032-short-code.md).
//!
//! Each pass leaves a program that does the same. [`fold`] replaces what is known, and [`sweep`]
//! removes what is not needed; both write jumps to the next instruction. [`layout`] puts the rest
//! together. [`words`] moves values from the frame to registers. The kernel's verifier looks at the
//! result as at any program.

mod arithmetic;
mod fold;
mod frame;
mod layout;
mod liveness;
#[cfg(test)]
mod machine;
mod operation;
mod state;
mod sweep;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use aya_obj::{
    Function,
    generated::{bpf_func_info, bpf_insn, bpf_line_info},
};

use self::operation::{CodeError, Operation};

/// How often the passes may find more to do.
const ROUNDS: usize = 8;

/// Makes a program short, with the functions that it calls.
pub(super) fn shorten(program: &mut Function) -> Result<(), CodeError> {
    let (functions, lines) = (&mut program.func_info, &mut program.line_info);
    let mut parts = Program {
        instructions: &mut program.instructions,
        functions: &mut functions.func_info,
        lines: &mut lines.line_info,
    };
    parts.shorten()?;
    functions.num_info = functions.func_info.len() as u32;
    lines.num_info = lines.line_info.len() as u32;
    Ok(())
}

/// A program, and what is said of its instructions by their numbers.
struct Program<'a> {
    instructions: &'a mut Vec<bpf_insn>,
    functions: &'a mut Vec<bpf_func_info>,
    lines: &'a mut Vec<bpf_line_info>,
}

impl Program<'_> {
    fn shorten(&mut self) -> Result<(), CodeError> {
        layout::lay_out(self)?;
        for _ in 0..ROUNDS {
            self.simplify()?;
            if !words::promote(self.instructions)? {
                break;
            }
        }
        words::pack(self.instructions)
    }

    /// Replaces and removes until there is nothing more to do.
    fn simplify(&mut self) -> Result<(), CodeError> {
        for _ in 0..ROUNDS {
            let length = self.instructions.len();
            let changed = fold::fold(self.instructions)? | sweep::sweep(self.instructions)?;
            layout::lay_out(self)?;
            if !changed && self.instructions.len() == length {
                break;
            }
        }
        Ok(())
    }
}

/// Writes operations in place of instructions. One of a single slot may take the place of a wide
/// load, both of whose slots are written then. Returns whether there was any.
fn write(code: &mut [bpf_insn], changes: &BTreeMap<usize, Operation>) -> Result<bool, CodeError> {
    for (at, change) in changes {
        let slots = Code(code).operation(*at)?.slots();
        for instruction in &mut code[*at..*at + slots] {
            change.write(instruction);
        }
    }
    Ok(!changes.is_empty())
}

/// A program's instructions, of which some are functions that it calls.
#[derive(Clone, Copy)]
struct Code<'a>(&'a [bpf_insn]);

impl Code<'_> {
    fn operation(self, at: usize) -> Result<Operation, CodeError> {
        let instruction = self.0.get(at).ok_or(CodeError::Outside(at as i64))?;
        Operation::of(instruction, self.0.get(at + 1)).ok_or(CodeError::Unknown(at))
    }

    /// Returns what an instruction at `at` names by its distance.
    fn target(self, at: usize, distance: i32) -> Result<usize, CodeError> {
        let target = at as i64 + 1 + i64::from(distance);
        let inside = usize::try_from(target).ok().filter(|target| *target < self.0.len());
        inside.ok_or(CodeError::Outside(target))
    }

    /// Returns the starts of the program and of its functions.
    fn functions(self) -> Result<Vec<usize>, CodeError> {
        let mut starts = vec![0];
        let mut at = 0;
        while at < self.0.len() {
            let operation = self.operation(at)?;
            if let Some(distance) = operation.function() {
                starts.push(self.target(at, distance)?);
            }
            at += operation.slots();
        }
        starts.sort_unstable();
        starts.dedup();
        Ok(starts)
    }

    /// Returns the instructions that may run after one: the next in place, and the one it names.
    fn successors(self, at: usize, operation: Operation) -> Result<[Option<usize>; 2], CodeError> {
        let target = |distance: i16| self.target(at, distance.into()).map(Some);
        Ok(match operation {
            Operation::Exit => [None, None],
            Operation::Jump(distance) => [None, target(distance)?],
            Operation::Branch { distance, .. } => [Some(at + 1), target(distance)?],
            operation => [Some(at + operation.slots()), None],
        })
    }

    /// Returns the instructions of a function that some path reaches, in their order.
    fn instructions(self, function: usize) -> Result<Vec<(usize, Operation)>, CodeError> {
        let mut instructions = Vec::new();
        self.each(function, |at, operation| {
            instructions.push((at, operation));
            Ok(())
        })?;
        instructions.sort_unstable_by_key(|(at, _)| *at);
        Ok(instructions)
    }

    /// Returns where the jumps and branches of a function lead to.
    fn targets(self, function: usize) -> Result<BTreeSet<usize>, CodeError> {
        let mut targets = BTreeSet::new();
        self.each(function, |at, operation| {
            if let Operation::Jump(distance) | Operation::Branch { distance, .. } = operation {
                targets.insert(self.target(at, distance.into())?);
            }
            Ok(())
        })?;
        Ok(targets)
    }

    /// Calls `visit` for each instruction of a function that some path reaches.
    fn each(
        self,
        function: usize,
        mut visit: impl FnMut(usize, Operation) -> Result<(), CodeError>,
    ) -> Result<(), CodeError> {
        let mut seen = vec![false; self.0.len()];
        let mut paths = vec![function];
        while let Some(mut at) = paths.pop() {
            while !std::mem::replace(seen.get_mut(at).ok_or(CodeError::Outside(at as i64))?, true) {
                let operation = self.operation(at)?;
                visit(at, operation)?;
                let [next, named] = self.successors(at, operation)?;
                let Some(first) = next.or(named) else { break };
                paths.extend(named.filter(|_| next.is_some()));
                at = first;
            }
        }
        Ok(())
    }
}
