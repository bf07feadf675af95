//! Drops the instructions that no path reaches, and puts those that run one after the other next to
//! each other.

use std::collections::BTreeMap;

use aya_obj::generated::{bpf_insn, bpf_line_info};

use super::{Code, CodeError, Program, operation::Operation};

/// Lays out a program, with the functions that it calls.
pub(super) fn lay_out(program: &mut Program<'_>) -> Result<(), CodeError> {
    let mut layout = Layout::of(program.instructions, program.lines);
    layout.place_all()?;
    let Layout { placed, lines, functions, .. } = layout;
    *program.instructions = placed;
    *program.lines = lines;
    program.functions.retain_mut(|info| {
        let start = functions.get(&(info.insn_off as usize));
        info.insn_off = start.map_or(0, |start| *start as u32);
        start.is_some()
    });
    program.functions.sort_by_key(|info| info.insn_off);
    Ok(())
}

struct Layout<'a> {
    code: Code<'a>,
    lines_of_code: &'a [bpf_line_info],
    /// The new place of each instruction; `None` while it has none.
    places: Vec<Option<usize>>,
    placed: Vec<bpf_insn>,
    lines: Vec<bpf_line_info>,
    /// The new places of the functions, by their places in `code`.
    functions: BTreeMap<usize, usize>,
    /// The instructions whose distances are not written yet: the new place of each, and the place
    /// in `code` of what it names.
    open: Vec<(usize, usize)>,
    /// Where branches lead to, in `code`.
    branches: Vec<usize>,
}

impl<'a> Layout<'a> {
    fn of(code: &'a [bpf_insn], lines_of_code: &'a [bpf_line_info]) -> Self {
        Self {
            code: Code(code),
            lines_of_code,
            places: vec![None; code.len()],
            placed: Vec::new(),
            lines: Vec::new(),
            functions: BTreeMap::new(),
            open: Vec::new(),
            branches: Vec::new(),
        }
    }

    /// Places the function at 0, and all that it needs.
    fn place_all(&mut self) -> Result<(), CodeError> {
        let mut wanted = vec![0];
        while let Some(function) = wanted.pop() {
            if !self.functions.contains_key(&function) {
                let start = self.placed.len();
                self.functions.insert(function, start);
                self.place_function(function, &mut wanted)?;
                // It may begin with a jump, which has no place.
                self.places[function].get_or_insert(start);
            }
        }
        for (at, target) in std::mem::take(&mut self.open) {
            let place = self.places.get(target).copied().flatten();
            let place = place.ok_or(CodeError::Outside(target as i64))?;
            let distance = place as i64 - at as i64 - 1;
            let operation = Code(&self.placed).operation(at)?;
            let instruction = &mut self.placed[at];
            if operation.function().is_some() {
                instruction.imm = i32::try_from(distance).map_err(|_| CodeError::TooLong)?;
            } else {
                instruction.off = i16::try_from(distance).map_err(|_| CodeError::TooLong)?;
            }
        }
        Ok(())
    }

    /// Places one function: from its start as far as the path goes without a jump, then what its
    /// branches lead to, the last branch first.
    fn place_function(&mut self, start: usize, wanted: &mut Vec<usize>) -> Result<(), CodeError> {
        let mut line = None;
        self.branches.push(start);
        while let Some(branch) = self.branches.pop() {
            let mut at = self.destination(branch)?;
            if self.places[at].is_some() {
                continue;
            }
            while self.places[at].is_none() {
                let operation = self.code.operation(at)?;
                let after = at + operation.slots();
                let target = match operation {
                    Operation::Branch { distance, .. } => {
                        Some(self.destination(self.code.target(at, distance.into())?)?)
                    }
                    _ => None,
                };
                self.places[at] = Some(self.placed.len());
                // A branch whose ways are the same one is left out.
                if target.is_none() || target != self.destination(after).ok() {
                    self.note_line(at, &mut line);
                    self.place(at, operation, target, wanted)?;
                }
                match operation {
                    Operation::Exit => break,
                    // An endless loop of jumps.
                    Operation::Jump(distance) => {
                        let target = self.code.target(at, distance.into())?;
                        self.open.push((self.placed.len() - 1, target));
                        self.places[target] = self.places[at];
                        break;
                    }
                    _ => at = self.destination(after)?,
                }
                if self.places[at].is_some() {
                    self.open.push((self.placed.len(), at));
                    self.placed.push(jump());
                }
            }
        }
        Ok(())
    }

    /// Places an instruction. `target` is where it branches to.
    fn place(
        &mut self,
        at: usize,
        operation: Operation,
        target: Option<usize>,
        wanted: &mut Vec<usize>,
    ) -> Result<(), CodeError> {
        if let Some(distance) = operation.function() {
            let function = self.code.target(at, distance)?;
            self.open.push((self.placed.len(), function));
            wanted.push(function);
        }
        if let Some(target) = target {
            self.open.push((self.placed.len(), target));
            self.branches.push(target);
        }
        let after = at + operation.slots();
        self.placed.extend(self.code.0.get(at..after).ok_or(CodeError::Outside(after as i64))?);
        Ok(())
    }

    /// Notes the source line of an instruction that is about to be placed, if the one before has
    /// another one.
    fn note_line(&mut self, at: usize, line: &mut Option<usize>) {
        let of_this = self.lines_of_code.partition_point(|line| line.insn_off as usize <= at).checked_sub(1);
        if let (Some(index), true) = (of_this, of_this != *line) {
            let insn_off = self.placed.len() as u32;
            self.lines.push(bpf_line_info { insn_off, ..self.lines_of_code[index] });
            *line = of_this;
        }
    }

    /// Returns where a path goes on that has reached this instruction: behind all jumps. In an
    /// endless loop of jumps, one of them.
    fn destination(&self, at: usize) -> Result<usize, CodeError> {
        let mut here = at;
        for _ in 0..=self.code.0.len() {
            match self.code.operation(here)? {
                Operation::Jump(distance) => here = self.code.target(here, distance.into())?,
                _ => break,
            }
        }
        Ok(here)
    }
}

/// Returns a jump whose distance is not written yet.
fn jump() -> bpf_insn {
    let mut instruction =
        bpf_insn { code: 0, _bitfield_align_1: [], _bitfield_1: Default::default(), off: 0, imm: 0 };
    Operation::NOTHING.write(&mut instruction);
    instruction
}
