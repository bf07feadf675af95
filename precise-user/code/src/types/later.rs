//! Pointers whose type only later code says.
//!
//! What allocates returns bytes, and an object is written before it has a name: the pointer has no
//! variable yet. But as long as the same value is in a register, what is said about it later was
//! true before: that a variable of some type holds it, or that it was stored where such a pointer
//! belongs.

use iced_x86::{FlowControl, InstructionInfo, InstructionInfoFactory, Mnemonic, OpKind};
use rustc_hash::FxHashMap;

use super::access::{self, loaded, number, target, writes};
use super::step::{CLOBBERED, Context};
use super::value::{KnownValue, Pointer, PointerSource, REGISTERS, UNKNOWN, ValueState};
use super::{Access, RegisterNumber, Untyped};
use crate::Instruction;

/// Maximum number of accesses of a block that wait for a type.
const MAX_OPEN: usize = 256;

/// An access through a pointer that nothing is known about yet.
struct OpenAccess {
    at: usize,
    state: ValueState,
    base: RegisterNumber,
    /// The registers that hold the pointer now, one bit each.
    holders: u16,
}

/// The accesses of one block that wait for a type.
#[derive(Default)]
pub(super) struct LaterTypes {
    open: Vec<OpenAccess>,
}

impl LaterTypes {
    /// Adds an instruction whose access has no type yet.
    pub fn wait(&mut self, instruction: &Instruction, at: usize, state: &ValueState, accesses: &[Access]) {
        let base = number(instruction.decoded.memory_base());
        let unknown = accesses.iter().any(|access| access.place == Err(Untyped::NoRegister));
        if let Some(base) = base.filter(|base| unknown && state.get(*base) == UNKNOWN)
            && self.open.len() < MAX_OPEN
        {
            self.open.push(OpenAccess { at, state: state.clone(), base, holders: 1 << base });
        }
    }

    /// Looks at the next instruction of the block, before it is executed. Accesses that have a type
    /// now are put into `found`.
    pub fn see(
        &mut self,
        instructions: &[Instruction],
        info: &InstructionInfo,
        at: usize,
        state: &ValueState,
        context: &mut Context<'_>,
        found: &mut FxHashMap<u64, Vec<Access>>,
    ) {
        let Some(now) = instructions.get(at).filter(|_| !self.open.is_empty()) else { return };
        let stored = stored(now, info, at, state, context);
        self.open.retain_mut(|open| {
            let held =
                (0..REGISTERS as RegisterNumber).filter(|register| open.holders & (1 << register) != 0);
            let of_variable = |register| match state.get(register) {
                KnownValue::Pointer(pointer) if pointer.source == PointerSource::Variable => Some(pointer),
                _ => None,
            };
            let pointer = held.filter_map(of_variable).next().or_else(|| {
                stored.filter(|(register, _)| open.holders & (1 << register) != 0).map(|(_, pointer)| pointer)
            });
            let Some(pointer) = pointer else {
                open.holders = passed(open.holders, now, info);
                return open.holders != 0;
            };
            if let Some(instruction) = instructions.get(open.at) {
                let pointer = Pointer { source: PointerSource::Flow, ..pointer };
                open.state.set(open.base, KnownValue::Pointer(pointer));
                let (mut factory, known) = (InstructionInfoFactory::new(), context.known);
                let info = factory.info(&instruction.decoded);
                let decoded = &instruction.decoded;
                let accesses = access::accesses(decoded, info, open.at, &open.state, known, context.types);
                if accesses.iter().all(|access| access.place.is_ok()) {
                    found.insert(instruction.offset, accesses);
                }
            }
            false
        });
    }
}

/// Returns the register that an instruction stores where a pointer of a known type belongs.
fn stored(
    now: &Instruction,
    info: &InstructionInfo,
    at: usize,
    state: &ValueState,
    context: &mut Context<'_>,
) -> Option<(RegisterNumber, Pointer)> {
    let decoded = &now.decoded;
    let moves = decoded.mnemonic() == Mnemonic::Mov && decoded.op1_kind() == OpKind::Register;
    let memory = info.used_memory().iter().find(|memory| writes(memory.access()))?;
    if !moves || memory.memory_size().size() != 8 {
        return None;
    }
    let register = number(decoded.op1_register())?;
    // A place on the stack has the type of what was there before.
    let place = target(memory, state, context.types);
    if !matches!(place.address, KnownValue::Pointer(_)) {
        return None;
    }
    match loaded(&place, at, state, context.known, context.types) {
        KnownValue::Pointer(pointer) => Some((register, pointer)),
        _ => None,
    }
}

/// Returns the registers that still hold a value after an instruction, of those that held it.
fn passed(holders: u16, now: &Instruction, info: &InstructionInfo) -> u16 {
    let decoded = &now.decoded;
    if matches!(decoded.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
        return CLOBBERED.iter().fold(holders, |held, register| held & !(1 << register));
    }
    let mut after = holders;
    for used in info.used_registers().iter().filter(|used| writes(used.access())) {
        if let Some(register) = number(used.register()) {
            after &= !(1 << register);
        }
    }
    let copies = decoded.mnemonic() == Mnemonic::Mov
        && decoded.op0_kind() == OpKind::Register
        && decoded.op1_kind() == OpKind::Register
        && decoded.op0_register().is_gpr64();
    if copies
        && let (Some(to), Some(from)) = (number(decoded.op0_register()), number(decoded.op1_register()))
        && holders & (1 << from) != 0
    {
        after |= 1 << to;
    }
    after
}
