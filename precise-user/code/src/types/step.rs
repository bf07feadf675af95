//! What one instruction does to the values in registers and on the stack.

use iced_x86::{FlowControl, Instruction, InstructionInfo, Mnemonic, OpKind, Register};

use super::access::{effective, fixed_global, loaded, number, per_cpu, stack, target, writes};
use super::arithmetic::{difference, plus, sum, times};
use super::known::{KnownVariables, RSP};
use super::residue::Residue;
use super::value::{KnownValue, Pointer, PointerSource, UNKNOWN, ValueState, ZERO, join};
use super::{FunctionFacts, RegisterNumber, Types};

const RAX: RegisterNumber = 0;
const RBP: RegisterNumber = 5;
/// The registers that a called function may overwrite (System V ABI for x86-64, §3.2.1): rax, rcx,
/// rdx, rsi, rdi, r8 to r11.
pub(super) const CLOBBERED: [RegisterNumber; 9] = [RAX, 1, 2, 6, 7, 8, 9, 10, 11];

/// How far below the rest of a frame the part that is aligned at run time is said to be. The true
/// distance is not known, and no frame is as large.
const REALIGNED: i64 = 1 << 32;

/// Returns the stack pointer once it was rounded down to an alignment.
fn realigned(old: KnownValue, mask: i64) -> Option<KnownValue> {
    let KnownValue::Stack(at) = old else { return None };
    (mask < 0 && mask.wrapping_neg().count_ones() == 1).then(|| KnownValue::Stack(at.wrapping_sub(REALIGNED)))
}

/// What a step needs beside the state.
pub(super) struct Context<'a> {
    pub facts: &'a FunctionFacts,
    pub known: &'a KnownVariables<'a>,
    pub types: &'a mut dyn Types,
}

impl Context<'_> {
    /// Changes `state`, from before an instruction to after it.
    pub fn step(
        &mut self,
        instruction: &Instruction,
        info: &InstructionInfo,
        at: usize,
        state: &mut ValueState,
    ) {
        if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            return self.call(instruction, state);
        }
        let result = self.result(instruction, info, at, state);
        let after = stack(state).zip(moves_stack(instruction));
        self.store(instruction, info, state);
        let destination = destination(instruction);
        for used in info.used_registers().iter().filter(|used| writes(used.access())) {
            if let Some(register) = number(used.register()) {
                state.set(register, UNKNOWN);
            }
        }
        if let Some((before, change)) = after {
            state.set(RSP, KnownValue::Stack(before.wrapping_add(change)));
        }
        if let Some((register, value)) = destination.zip(result) {
            state.set(register, value.passed_on());
        }
        if instruction.mnemonic() == Mnemonic::Leave {
            self.leave(state);
        }
    }

    fn call(&mut self, instruction: &Instruction, state: &mut ValueState) {
        for register in CLOBBERED {
            state.set(register, UNKNOWN);
        }
        let to = self.facts.returns.get(&instruction.next_ip()).and_then(|ty| self.types.pointee(*ty));
        if let Some(to) = to {
            state.set(RAX, KnownValue::Pointer(Pointer::to(to, PointerSource::Flow)));
        }
    }

    /// `leave` loads rbp from where it points, as `pop` would after `mov rsp, rbp`.
    fn leave(&self, state: &mut ValueState) {
        state.set(RSP, UNKNOWN);
        state.set(RBP, UNKNOWN);
    }

    /// Stores what an instruction writes to the stack.
    fn store(&mut self, instruction: &Instruction, info: &InstructionInfo, state: &mut ValueState) {
        for memory in info.used_memory().iter().filter(|memory| writes(memory.access())) {
            let KnownValue::Stack(address) = target(memory, state, self.types).address else { continue };
            let width = u32::try_from(memory.memory_size().size()).unwrap_or(0);
            let source = match instruction.mnemonic() {
                Mnemonic::Push if instruction.op0_kind() == OpKind::Register => {
                    number(instruction.op0_register())
                }
                Mnemonic::Mov if instruction.op1_kind() == OpKind::Register => {
                    number(instruction.op1_register())
                }
                _ => None,
            };
            match source.filter(|_| width == 8) {
                Some(source) => state.store(address, state.get(source)),
                None => state.overwrite(address, width),
            }
        }
    }

    /// Returns the value of the register that an instruction writes; `None` if nothing is known
    /// about it.
    fn result(
        &mut self,
        instruction: &Instruction,
        info: &InstructionInfo,
        at: usize,
        state: &ValueState,
    ) -> Option<KnownValue> {
        let destination = destination(instruction)?;
        let old = state.get(destination);
        let wide = instruction.op0_register().size() == 8;
        let constant = constant(instruction);
        // A value that is cut to 32 bits is no pointer.
        let cut = |value: KnownValue| match value {
            _ if wide => value,
            KnownValue::Number(number) => KnownValue::Number(number.cut()),
            _ => UNKNOWN,
        };
        let value = match instruction.mnemonic() {
            _ if instruction.op0_register().size() < 4 => return None,
            Mnemonic::Mov => match constant {
                Some(constant) if wide => {
                    let variable = self.per_cpu(ZERO, constant);
                    variable.unwrap_or_else(|| self.number(constant))
                }
                Some(constant) => self.number(constant & i64::from(u32::MAX)),
                None => cut(self.operand(instruction, 1, info, at, state)),
            },
            Mnemonic::Movsxd => match state_of(instruction, 1, state) {
                Some(KnownValue::Number(number)) => KnownValue::Number(number.cut()),
                _ => UNKNOWN,
            },
            Mnemonic::Pop => self.operand_in_memory(info, at, state),
            Mnemonic::Lea => cut(effective(instruction, state, self.types)),
            Mnemonic::Xor | Mnemonic::Sub if is_with_itself(instruction) => ZERO,
            Mnemonic::Add => match constant {
                Some(constant) => {
                    let variable = self.per_cpu(old, constant);
                    cut(variable.unwrap_or_else(|| plus(old, constant, self.types)))
                }
                None if is_with_itself(instruction) => cut(times(old, 2)),
                None => {
                    let other = self.operand(instruction, 1, info, at, state);
                    cut(sum(old, other, self.types))
                }
            },
            Mnemonic::Sub => match constant {
                Some(constant) => cut(plus(old, constant.wrapping_neg(), self.types)),
                None => {
                    let other = self.operand(instruction, 1, info, at, state);
                    cut(difference(old, other, self.types))
                }
            },
            Mnemonic::Inc => cut(plus(old, 1, self.types)),
            Mnemonic::Dec => cut(plus(old, -1, self.types)),
            Mnemonic::Imul => {
                let factor = (instruction.op_count() == 3).then(|| instruction.immediate(2));
                let factor = u32::try_from(factor?).ok()?;
                cut(times(state_of(instruction, 1, state).unwrap_or(UNKNOWN), factor))
            }
            Mnemonic::Shl => cut(times(old, 1_u32.checked_shl(u32::try_from(constant?).ok()?)?)),
            Mnemonic::And if destination == RSP => realigned(old, constant?)?,
            Mnemonic::And => {
                let zeros = constant.map_or(0, |mask| mask.trailing_zeros().min(31));
                KnownValue::Number(Residue::multiples(1 << zeros))
            }
            mnemonic if is_conditional_move(mnemonic) => {
                let other = self.operand(instruction, 1, info, at, state);
                cut(join(old, other, self.types))
            }
            _ => return None,
        };
        Some(value)
    }

    /// Returns the value of a constant, which may be the address of a global variable in a program
    /// that is linked to fixed addresses.
    fn number(&mut self, constant: i64) -> KnownValue {
        let global = fixed_global(constant.cast_unsigned(), self.types);
        global.unwrap_or(KnownValue::Number(Residue::exactly(constant)))
    }

    /// Returns the pointer to a variable of each CPU that a constant of 64 bits is, or that it is
    /// when what leads to the copy of this CPU was added to it.
    fn per_cpu(&mut self, old: KnownValue, constant: i64) -> Option<KnownValue> {
        if old != ZERO {
            return None;
        }
        per_cpu(constant.cast_unsigned(), self.types)
    }

    /// Returns the value of an operand in a register or in memory.
    fn operand(
        &mut self,
        instruction: &Instruction,
        operand: u32,
        info: &InstructionInfo,
        at: usize,
        state: &ValueState,
    ) -> KnownValue {
        match instruction.op_kind(operand) {
            OpKind::Register => state_of(instruction, operand, state).unwrap_or(UNKNOWN),
            OpKind::Memory => self.operand_in_memory(info, at, state),
            _ => UNKNOWN,
        }
    }

    fn operand_in_memory(&mut self, info: &InstructionInfo, at: usize, state: &ValueState) -> KnownValue {
        let Some(memory) = info.used_memory().first().filter(|m| m.memory_size().size() == 8) else {
            return UNKNOWN;
        };
        let target = target(memory, state, self.types);
        loaded(&target, at, state, self.known, self.types)
    }
}

/// Returns the general-purpose register that is the first operand, if the instruction writes it.
fn destination(instruction: &Instruction) -> Option<RegisterNumber> {
    let compares = matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push);
    let register = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Register;
    (register && !compares).then(|| number(instruction.op0_register())).flatten()
}

/// Returns the value of a register operand.
fn state_of(instruction: &Instruction, operand: u32, state: &ValueState) -> Option<KnownValue> {
    let register = instruction.op_kind(operand) == OpKind::Register;
    register.then(|| number(instruction.op_register(operand))).flatten().map(|number| state.get(number))
}

/// Returns the second operand if it is a constant.
fn constant(instruction: &Instruction) -> Option<i64> {
    let immediate = instruction.op_count() == 2
        && matches!(
            instruction.op1_kind(),
            OpKind::Immediate8
                | OpKind::Immediate16
                | OpKind::Immediate32
                | OpKind::Immediate64
                | OpKind::Immediate8to16
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate32to64
        );
    immediate.then(|| instruction.immediate(1).cast_signed())
}

/// Returns by how much an instruction moves the stack pointer; `None` if it does not, or if
/// [`Context::result`] says it.
fn moves_stack(instruction: &Instruction) -> Option<i64> {
    let change = i64::from(instruction.stack_pointer_increment());
    matches!(instruction.mnemonic(), Mnemonic::Push | Mnemonic::Pop | Mnemonic::Pushfq | Mnemonic::Popfq)
        .then_some(change)
}

/// Returns whether both operands of an instruction are the same register.
fn is_with_itself(instruction: &Instruction) -> bool {
    instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register()
        && instruction.op0_register() != Register::None
}

fn is_conditional_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Cmova, Cmovae, Cmovb, Cmovbe, Cmove, Cmovg, Cmovge, Cmovl, Cmovle, Cmovne, Cmovno, Cmovnp, Cmovns,
        Cmovo, Cmovp, Cmovs,
    };
    matches!(
        mnemonic,
        Cmova
            | Cmovae
            | Cmovb
            | Cmovbe
            | Cmove
            | Cmovg
            | Cmovge
            | Cmovl
            | Cmovle
            | Cmovne
            | Cmovno
            | Cmovnp
            | Cmovns
            | Cmovo
            | Cmovp
            | Cmovs
    )
}
