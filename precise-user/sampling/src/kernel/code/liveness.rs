//! Which registers and which words of the frame are read later, at each instruction.

use std::ops::Range;

use super::{
    Code, CodeError, frame,
    operation::{Callee, FRAME, Operand, Operation, Place, operator},
};

/// What is read later: a bit for each register, and one for each word of the frame, of which the
/// lowest has the lowest address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    pub registers: u16,
    frame: u128,
}

impl Read {
    fn register(&mut self, register: u8) {
        self.registers |= 1 << register;
    }

    fn operand(&mut self, operand: Operand) {
        if let Operand::Register(register) = operand {
            self.register(register);
        }
    }

    fn sets(&mut self, register: u8) {
        self.registers &= !(1 << register);
    }

    /// Returns whether any of the eight bytes at an offset of the frame is read.
    pub fn has_word(self, offset: i16) -> bool {
        self.frame & bits(frame::touched(offset.into(), 8)) != 0
    }
}

/// What is read after each instruction of a function.
pub(super) struct Liveness<'a> {
    code: Code<'a>,
    /// The lowest offset of the frame that others may access; see [`frame::shared`].
    pub shared_from: i32,
    /// The words of the frame that others may read at any time.
    shared: u128,
    /// What is read from each instruction on.
    before: Vec<Read>,
}

impl<'a> Liveness<'a> {
    /// Looks at these instructions of a function, in their order. What only an instruction reads
    /// whose result nobody reads is not read.
    pub fn of(
        code: Code<'a>,
        function: usize,
        instructions: &[(usize, Operation)],
    ) -> Result<Self, CodeError> {
        let shared_from = frame::shared(code, function)?;
        let shared = bits(frame::touched(shared_from, -shared_from));
        let mut liveness =
            Self { code, shared_from, shared, before: vec![Read::default(); code.0.len() + 1] };
        loop {
            let mut changed = false;
            for (at, operation) in instructions.iter().rev() {
                let mut read = liveness.after(*at, *operation)?;
                if !is_unread(*operation, read) {
                    reads(*operation, &mut read);
                }
                changed |= liveness.before[*at] != read;
                liveness.before[*at] = read;
            }
            if !changed {
                return Ok(liveness);
            }
        }
    }

    /// Returns what is read from an instruction on.
    pub fn before(&self, at: usize) -> Read {
        self.before[at]
    }

    /// Returns what is read after an instruction.
    pub fn after(&self, at: usize, operation: Operation) -> Result<Read, CodeError> {
        let result = u16::from(operation == Operation::Exit);
        let mut read = Read { registers: result, frame: self.shared };
        for next in self.code.successors(at, operation)?.into_iter().flatten() {
            let Read { registers, frame } = self.before[next];
            read.registers |= registers;
            read.frame |= frame;
        }
        Ok(read)
    }
}

/// Returns whether an instruction does nothing but set what nobody reads.
pub(super) fn is_unread(operation: Operation, read: Read) -> bool {
    match operation {
        Operation::Store { to, bytes, .. } => to.base == FRAME && touched(to, bytes) & read.frame == 0,
        operation => operation.sets().is_some_and(|register| read.registers >> register & 1 == 0),
    }
}

/// Changes what is read after an instruction to what is read before it.
fn reads(operation: Operation, read: &mut Read) {
    if let Some(register) = operation.sets() {
        read.sets(register);
    }
    match operation {
        Operation::Compute { operator, to, operand, .. } => {
            if operator != operator::MOVE {
                read.register(to);
            }
            read.operand(operand);
        }
        Operation::Convert { to, from } => {
            read.register(to);
            read.register(from.unwrap_or(to));
        }
        Operation::Load { from, bytes, .. } => {
            read.register(from.base);
            if from.base == FRAME {
                read.frame |= touched(from, bytes);
            }
        }
        Operation::Store { to, bytes, operand } => {
            if to.base == FRAME {
                read.frame &= !bits(frame::covered(to.offset.into(), bytes.into()).unwrap_or_default());
            }
            read.register(to.base);
            read.operand(operand);
        }
        Operation::Atomic { to, bytes, operand } => {
            for register in [to.base, operand, 0] {
                read.register(register);
            }
            if to.base == FRAME {
                read.frame |= touched(to, bytes);
            }
        }
        Operation::Branch { left, right, .. } => {
            read.register(left);
            read.operand(right);
        }
        Operation::Call(callee) => {
            for register in 0..=5 {
                read.sets(register);
            }
            for register in 1..=arguments(callee) {
                read.register(register);
            }
        }
        Operation::Number { .. } | Operation::Address { .. } | Operation::Jump(_) | Operation::Exit => {}
    }
}

/// Returns how many registers a call reads: all that there may be, unless it is one that most
/// samples make.
fn arguments(callee: Callee) -> u8 {
    /// `bpf_ktime_get_ns`, `bpf_get_smp_processor_id`, `bpf_get_current_pid_tgid`,
    /// `bpf_get_current_cgroup_id`, `bpf_jiffies64`, `bpf_get_current_task_btf`.
    const NONE: [i32; 6] = [5, 8, 14, 80, 118, 158];
    /// `bpf_map_lookup_elem`.
    const LOOKUP: i32 = 1;
    match callee {
        Callee::Helper(LOOKUP) => 2,
        Callee::Helper(number) if NONE.contains(&number) => 0,
        _ => 5,
    }
}

/// Returns the words of the frame of which an access touches some bytes.
fn touched(place: Place, bytes: u8) -> u128 {
    bits(frame::touched(place.offset.into(), bytes.into()))
}

/// Returns the bits of these words.
fn bits(words: Range<usize>) -> u128 {
    words.fold(0, |all, word| all | 1 << word)
}
