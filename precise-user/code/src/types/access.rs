//! The memory operands of an instruction, and the objects that they refer to.

use iced_x86::{InstructionInfo, Mnemonic, OpAccess, OpKind, Register, UsedMemory};

use super::arithmetic::{array_at, plus, sum, times};
use super::known::{KnownVariables, RSP};
use super::residue::Residue;
use super::value::{KnownValue, Pointer, PointerSource, UNKNOWN, ValueState, ZERO, pointer_at};
use super::{
    Access, AccessedObject, Global, PerCpu, RegisterNumber, TypeId, TypeOrigin, TypeShape, Types, Untyped,
};

/// Maximum number of arrays of arrays.
const MAX_ARRAYS: usize = 16;
/// The lowest address of a global variable at which linkers place a program that is linked to fixed
/// addresses. The kernel is at the upper end of all addresses.
const LOWEST_GLOBAL: u64 = 0x40_0000;

/// Returns the number of a general-purpose register; `None` for other registers.
pub(super) fn number(register: Register) -> Option<RegisterNumber> {
    let full = register.full_register();
    full.is_gpr64().then(|| u8::try_from(full.number()).ok()).flatten()
}

pub(super) fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

pub(super) fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// What a memory operand refers to.
#[derive(Clone, Copy)]
pub(super) struct OperandTarget {
    /// The value of its address.
    pub address: KnownValue,
    /// If there is an index, the address with what is known of it, and what the rest is a multiple
    /// of.
    indexed: Option<(KnownValue, u64)>,
    segment: SegmentKind,
    absolute: bool,
}

/// What the segment of a memory operand says about its address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SegmentKind {
    /// Nothing.
    Flat,
    /// The address is that of a variable of the CPU, or what a pointer to one says.
    PerCpu,
    /// The address is that of what leads from a variable to the copy of this CPU.
    Offset,
    /// It is relative to something unknown.
    Unknown,
}

/// Returns the value of the address of a memory operand.
pub(super) fn target(memory: &UsedMemory, state: &ValueState, types: &mut dyn Types) -> OperandTarget {
    let value = |register: Register| number(register).map(|number| state.get(number));
    let base = value(memory.base());
    let mut scaled = value(memory.index()).map(|index| times(index, memory.scale()));
    let constant = memory.displacement().cast_signed();
    let absolute = base.is_none();
    let (base, segment) = match (base, memory.segment()) {
        (Some(base), Register::GS) => pointed(base, constant, types),
        (None, Register::GS) => variable_of_cpu(memory.displacement(), types),
        (_, Register::FS) => (UNKNOWN, SegmentKind::Unknown),
        // What leads to the copy of this CPU plus an address: `mov runqueues(%rax)`.
        (Some(ZERO), _) => (per_cpu(memory.displacement(), types).unwrap_or(ZERO), SegmentKind::Flat),
        (Some(base), _) => match array_of(base, memory.displacement(), types) {
            // The registers say which element: `mov table(%rdx),%eax`.
            Some(array) => {
                scaled = Some(scaled.map_or(base, |scaled| sum(base, scaled, types)));
                (array, SegmentKind::Flat)
            }
            None => (plus_displacement(base, constant), SegmentKind::Flat),
        },
        (None, _) => (global(memory.displacement(), types).unwrap_or(UNKNOWN), SegmentKind::Flat),
    };
    let Some(scaled) = scaled else {
        return OperandTarget { address: base, indexed: None, segment, absolute };
    };
    // Which of the two is the pointer does not matter to the machine.
    let (base, scaled) = match (base, scaled) {
        (KnownValue::Number(_), KnownValue::Pointer(_)) => {
            (plus_displacement(scaled, constant), value(memory.base()).unwrap_or(UNKNOWN))
        }
        _ => (base, scaled),
    };
    let indexed = match scaled {
        KnownValue::Number(Residue { modulus, rest }) if modulus > 0 => {
            Some((plus_displacement(base, rest), modulus))
        }
        _ => None,
    };
    OperandTarget { address: sum(base, scaled, types), indexed, segment, absolute }
}

/// Returns the pointer to the global variable that a constant in the code is the address of.
pub(super) fn fixed_global(constant: u64, types: &mut dyn Types) -> Option<KnownValue> {
    if constant >= LOWEST_GLOBAL { global(constant, types) } else { None }
}

/// Returns the pointer to the global variable at a displacement, if the base register holds a
/// number: then that number is an index.
fn array_of(base: KnownValue, displacement: u64, types: &mut dyn Types) -> Option<KnownValue> {
    if matches!(base, KnownValue::Number(_)) { fixed_global(displacement, types) } else { None }
}

/// Returns the value of an address relative to the segment of the CPU's variables, and what that
/// segment says.
fn variable_of_cpu(address: u64, types: &mut dyn Types) -> (KnownValue, SegmentKind) {
    match types.per_cpu(address) {
        Some(PerCpu::Variable(global)) => (copy_of(global, address), SegmentKind::PerCpu),
        Some(PerCpu::Offset(global)) => (copy_of(global, address), SegmentKind::Offset),
        None => (UNKNOWN, SegmentKind::Unknown),
    }
}

/// Returns the value of a pointer to variables of the CPU plus the displacement of an operand. In a
/// program, the pointer is relative to a segment that it does not point into.
fn pointed(base: KnownValue, constant: i64, types: &dyn Types) -> (KnownValue, SegmentKind) {
    match base {
        KnownValue::Pointer(_) if types.has_per_cpu() => {
            (plus_displacement(base, constant), SegmentKind::PerCpu)
        }
        _ => (UNKNOWN, SegmentKind::Unknown),
    }
}

/// Returns the pointer to a variable of which each CPU has a copy.
pub(super) fn per_cpu(address: u64, types: &mut dyn Types) -> Option<KnownValue> {
    match types.per_cpu(address)? {
        PerCpu::Variable(global) => Some(copy_of(global, address)),
        PerCpu::Offset(_) => None,
    }
}

fn copy_of(global: Global, address: u64) -> KnownValue {
    let offset = address.wrapping_sub(global.address).cast_signed();
    KnownValue::Pointer(Pointer { offset, ..Pointer::to(global.ty, PointerSource::PerCpu) })
}

/// Returns a value plus the displacement of an operand, which does not move over elements.
fn plus_displacement(value: KnownValue, constant: i64) -> KnownValue {
    match value {
        KnownValue::Pointer(pointer) => {
            KnownValue::Pointer(Pointer { offset: pointer.offset.wrapping_add(constant), ..pointer })
        }
        KnownValue::Stack(at) => KnownValue::Stack(at.wrapping_add(constant)),
        _ => value,
    }
}

/// Returns the pointer to a global variable.
pub(super) fn global(address: u64, types: &mut dyn Types) -> Option<KnownValue> {
    let global = types.global(address)?;
    let offset = i64::try_from(address.checked_sub(global.address)?).ok()?;
    Some(KnownValue::Pointer(Pointer { offset, ..Pointer::to(global.ty, PointerSource::Global(global)) }))
}

/// Returns the pointer that a constant is, if it is the address of a variable.
fn address_of(constant: u64, types: &mut dyn Types) -> KnownValue {
    global(constant, types).or_else(|| per_cpu(constant, types)).unwrap_or(UNKNOWN)
}

/// Returns the accesses of an instruction to memory.
pub(super) fn accesses(
    instruction: &iced_x86::Instruction,
    info: &InstructionInfo,
    at: usize,
    state: &ValueState,
    known: &KnownVariables<'_>,
    types: &mut dyn Types,
) -> Vec<Access> {
    if instruction.mnemonic() == Mnemonic::Lea || instruction.mnemonic() == Mnemonic::Nop {
        return Vec::new();
    }
    let explicit = |memory: &&UsedMemory| {
        let implicit = memory.base() == Register::RSP && instruction.is_stack_instruction();
        !(implicit && instruction.memory_base() != Register::RSP)
    };
    let used: Vec<&UsedMemory> =
        info.used_memory().iter().filter(|m| reads(m.access()) || writes(m.access())).collect();
    // An operand that the instruction names says more than the stack that it implies.
    let named: Vec<&UsedMemory> = used.iter().copied().filter(explicit).collect();
    let chosen = if named.is_empty() { used } else { named };
    chosen
        .into_iter()
        .map(|memory| {
            let place = if instruction.is_stack_instruction() && !explicit(&memory) {
                Err(Untyped::Stack)
            } else {
                place(&target(memory, state, types), at, state, known, types)
            };
            let vector = (0..instruction.op_count()).any(|i| {
                instruction.op_kind(i) == OpKind::Register && instruction.op_register(i).is_vector_register()
            });
            let place = place.map_err(|why| match why {
                Untyped::NoRegister if vector => Untyped::Vector,
                why => why,
            });
            let width = u32::try_from(memory.memory_size().size()).unwrap_or(0);
            Access { width, reads: reads(memory.access()), writes: writes(memory.access()), place }
        })
        .collect()
}

/// Returns the object that a memory operand refers to.
fn place(
    target: &OperandTarget,
    at: usize,
    state: &ValueState,
    known: &KnownVariables<'_>,
    types: &mut dyn Types,
) -> Result<AccessedObject, Untyped> {
    if target.segment == SegmentKind::Unknown {
        return Err(Untyped::Segment);
    }
    let (base, index) = target.indexed.map_or((target.address, None), |(base, index)| (base, Some(index)));
    match base {
        KnownValue::Pointer(pointer) => {
            let origin = match pointer.source {
                PointerSource::Variable => TypeOrigin::Variable,
                PointerSource::Flow => TypeOrigin::Flow,
                PointerSource::Global(_) | PointerSource::PerCpu => TypeOrigin::Global,
            };
            object(pointer, index, origin, types)
        }
        KnownValue::Stack(address) => {
            let variable = known.on_stack(at, state, address, types).ok_or(Untyped::Stack)?;
            object(variable, index, TypeOrigin::Stack, types)
        }
        KnownValue::Number(_) if target.absolute => Err(Untyped::NoGlobal),
        KnownValue::Number(_) if known.is_empty() => Err(Untyped::NoVariables),
        KnownValue::Number(_) => Err(Untyped::NoRegister),
        KnownValue::Conflict => Err(Untyped::Conflict),
        KnownValue::Astray => Err(Untyped::Index),
    }
}

/// Returns the object at a pointer to which an index was added that is a multiple of `index`.
fn object(
    pointer: Pointer,
    index: Option<u64>,
    origin: TypeOrigin,
    types: &mut dyn Types,
) -> Result<AccessedObject, Untyped> {
    let global = if let PointerSource::Global(global) = pointer.source { Some(global) } else { None };
    let size = types.size(pointer.ty).unwrap_or(0);
    // An array of unknown length has no end.
    let endless = matches!(types.shape(pointer.ty), TypeShape::Array { .. }) && size == 0;
    if size == 0 && !endless {
        return Err(Untyped::NoType);
    }
    let whole = |index: u64| size > 0 && index.is_multiple_of(size);
    let neighbours = pointer.stepped || index.is_some_and(whole);
    let within = |offset: u64| offset < size || endless;
    let offset = match u64::try_from(pointer.offset) {
        Ok(offset) if within(offset) => offset,
        _ if neighbours && size > 0 => {
            pointer.offset.rem_euclid(i64::try_from(size).unwrap_or(i64::MAX)).unsigned_abs()
        }
        _ if index.is_some() => return Err(Untyped::Index),
        _ => return Err(Untyped::Outside),
    };
    if let Some(index) = index.filter(|index| !whole(*index)) {
        let scalar = types.shape(pointer.ty) == TypeShape::Scalar && index == 1;
        if !scalar && array_at(pointer.ty, offset, index, types).is_none() {
            return Err(Untyped::Index);
        }
    }
    let (ty, offset) = element(pointer.ty, offset, types).ok_or(Untyped::NoType)?;
    // An index that moves over whole objects does not change the byte.
    let size = types.size(ty).unwrap_or(0);
    let indexed = index.is_some_and(|index| size == 0 || !index.is_multiple_of(size));
    Ok(AccessedObject { ty, offset, indexed, origin, global })
}

/// Returns the element of an array, of arrays too, that contains a byte. Other types stay.
fn element(ty: TypeId, offset: u64, types: &mut dyn Types) -> Option<(TypeId, u64)> {
    let mut at = (ty, offset);
    for _ in 0..MAX_ARRAYS {
        let TypeShape::Array { element } = types.shape(at.0) else { return Some(at) };
        let size = types.size(element).filter(|size| *size > 0)?;
        at = (element, at.1 % size);
    }
    None
}

/// Returns the value of 8 bytes that an instruction loads from a memory operand.
pub(super) fn loaded(
    target: &OperandTarget,
    at: usize,
    state: &ValueState,
    known: &KnownVariables<'_>,
    types: &mut dyn Types,
) -> KnownValue {
    match target.segment {
        SegmentKind::Flat | SegmentKind::PerCpu => {}
        // The copy of this CPU has the type of what it is a copy of.
        SegmentKind::Offset => return ZERO,
        SegmentKind::Unknown => return UNKNOWN,
    }
    if let (KnownValue::Stack(address), None) = (target.address, target.indexed)
        && let Some(value) = state.slot(address)
    {
        return value;
    }
    let pointer = match target.address {
        KnownValue::Pointer(pointer) => Some(pointer),
        KnownValue::Stack(address) => known.on_stack(at, state, address, types),
        _ => None,
    };
    let Some(pointer) = pointer else { return UNKNOWN };
    let Ok(place) = object(pointer, None, TypeOrigin::Flow, types) else { return UNKNOWN };
    if place.global.is_some_and(|global| types.leads_to_cpu(global)) {
        return ZERO;
    }
    let to = pointer_at(place.ty, place.offset, types);
    to.map_or(UNKNOWN, |to| KnownValue::Pointer(Pointer::to(to, PointerSource::Flow)))
}

/// Returns the distance of the stack pointer from its value at the entry.
pub(super) fn stack(state: &ValueState) -> Option<i64> {
    if let KnownValue::Stack(at) = state.get(RSP) { Some(at) } else { None }
}

/// Returns the value that an address computation gives.
pub(super) fn effective(
    instruction: &iced_x86::Instruction,
    state: &ValueState,
    types: &mut dyn Types,
) -> KnownValue {
    let value = |register: Register| number(register).map(|number| state.get(number));
    let constant = instruction.memory_displacement64();
    let base = match instruction.memory_base() {
        Register::RIP | Register::EIP => return address_of(constant, types),
        base => value(base),
    };
    let index = value(instruction.memory_index());
    let scaled = index.map(|index| times(index, instruction.memory_index_scale()));
    let joined = match (base, scaled) {
        // `lea (%rdi,%rdi,2),%rax` multiplies by 3, and `lea (%rdi,%rdi,8),%rax` by 9.
        (Some(base @ KnownValue::Number(_)), Some(_))
            if instruction.memory_base() == instruction.memory_index() =>
        {
            times(base, instruction.memory_index_scale().saturating_add(1))
        }
        (Some(base), Some(scaled)) => sum(base, scaled, types),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => return address_of(constant, types),
    };
    if joined == ZERO
        && let Some(pointer) = per_cpu(constant, types)
    {
        return pointer;
    }
    plus(joined, constant.cast_signed(), types)
}
