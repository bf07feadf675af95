//! Random code, executed on a small machine and followed by the data flow: wherever the data flow
//! names an object, the machine must have accessed that object at that distance.
//!
//! The machine has arrays of objects in memory, so that an address says which object it is in. Code
//! is made one instruction at a time, and an instruction is dropped if no compiler would make it: a
//! pointer that leaves its array, or a value in a field of another type.

use std::collections::HashMap;

use super::*;
use crate::Instruction;
use crate::disassembly::disassemble;

const NODE: TypeId = TypeId(0);
const ITEM: TypeId = TypeId(1);
const LONG: TypeId = TypeId(2);
const TO_NODE: TypeId = TypeId(3);
const TO_ITEM: TypeId = TypeId(4);
const TO_LONG: TypeId = TypeId(5);
const SLOTS: TypeId = TypeId(6);

/// ```c
/// struct node { struct node *next; long a; struct item *items; long *counts; long slots[4]; };
/// struct item { long x; struct node *owner; };
/// ```
struct World;

impl Types for World {
    fn shape(&mut self, ty: TypeId) -> TypeShape {
        match ty {
            NODE | ITEM => TypeShape::Composite,
            SLOTS => TypeShape::Array { element: LONG },
            _ => TypeShape::Scalar,
        }
    }

    fn size(&mut self, ty: TypeId) -> Option<u64> {
        Some(match ty {
            NODE => 64,
            SLOTS => 32,
            ITEM => 16,
            _ => 8,
        })
    }

    fn pointee(&mut self, ty: TypeId) -> Option<TypeId> {
        match ty {
            TO_NODE => Some(NODE),
            TO_ITEM => Some(ITEM),
            TO_LONG => Some(LONG),
            _ => None,
        }
    }

    fn fields_at(&mut self, ty: TypeId, offset: u64) -> Vec<(TypeId, u64)> {
        let field = match (ty, offset / 8) {
            (NODE, 0) | (ITEM, 1) => TO_NODE,
            (NODE, 1) | (ITEM, 0) => LONG,
            (NODE, 2) => TO_ITEM,
            (NODE, 3) => TO_LONG,
            (NODE, 4..8) => return vec![(SLOTS, offset - 32)],
            _ => return Vec::new(),
        };
        vec![(field, offset % 8)]
    }

    fn erased(&mut self, _: TypeId) -> Option<TypeId> {
        None
    }

    fn global(&mut self, _: u64) -> Option<Global> {
        None
    }
}

/// An array of objects in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Region {
    ty: TypeId,
    start: u64,
    size: u64,
    count: u64,
}

/// Above 4 GiB, so that a pointer that is cut to 32 bits is none.
const REGIONS: [Region; 3] = [
    Region { ty: NODE, start: 0x10_0000_0000, size: 64, count: 6 },
    Region { ty: ITEM, start: 0x20_0000_0000, size: 16, count: 8 },
    Region { ty: LONG, start: 0x30_0000_0000, size: 8, count: 16 },
];
/// The registers with a pointer when the code begins, and what it points to.
const ARGUMENTS: [(usize, Region); 4] = [(7, REGIONS[0]), (6, REGIONS[1]), (2, REGIONS[0]), (12, REGIONS[2])];
/// The stack pointer at the entry.
const ENTRY: u64 = 0x7ff_0000_0000;
/// The bytes of the stack, below and above the entry.
const STACK: u64 = 256;
/// The distance from a region at which an address still looks like one that left it.
const MARGIN: u64 = 1 << 24;
const RSP: usize = 4;

/// Returns the region of an address, and the distance from the start of its object.
fn place(address: u64) -> Option<(Region, u64)> {
    let inside =
        |region: &Region| (region.start..region.start + region.size * region.count).contains(&address);
    let region = REGIONS.into_iter().find(inside)?;
    Some((region, (address - region.start) % region.size))
}

fn on_stack(address: u64) -> bool {
    address.abs_diff(ENTRY) < STACK
}

/// Returns whether an address has left its array, or points between two numbers.
fn is_astray(value: u64) -> bool {
    let near = |start: u64| value.abs_diff(start) < MARGIN;
    match place(value) {
        Some((region, offset)) => region.ty == LONG && offset != 0,
        None => REGIONS.iter().any(|region| near(region.start)) || (near(ENTRY) && !on_stack(value)),
    }
}

/// Pseudo-random numbers (Steele, Lea, Flood: SplitMix).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A memory operand: a base, perhaps an index with a power of two, and a displacement.
#[derive(Clone, Copy, Debug)]
struct Operand {
    base: usize,
    index: Option<(usize, u8)>,
    plus: i32,
}

/// An instruction of the machine.
#[derive(Clone, Copy, Debug)]
enum Code {
    Move(usize, usize),
    MoveLow(usize, usize),
    Constant(usize, i32),
    Load(usize, Operand),
    Store(Operand, usize),
    Address(usize, Operand),
    AddConstant(usize, i32),
    SubtractConstant(usize, i32),
    Add(usize, usize),
    Subtract(usize, usize),
    AddFrom(usize, Operand),
    Zero(usize),
    Push(usize),
    Pop(usize),
    MoveIf(usize, usize),
    Increment(usize),
    Multiply(usize, usize, i32),
    Shift(usize, u8),
    Mask(usize, i32),
    Exchange(usize, usize),
    Call,
}

/// Returns the bytes of an instruction with a register and a memory operand (Intel SDM 2A, §2.1.5).
fn with_memory(opcode: u8, register: usize, operand: Operand) -> Vec<u8> {
    let index = operand.index.map_or(4, |(index, _)| index);
    let scale = operand.index.map_or(0, |(_, scale)| scale);
    let high = |number: usize, bit: u8| if number > 7 { bit } else { 0 };
    let rex = 0x48 | high(register, 4) | high(operand.base, 1) | operand.index.map_or(0, |(i, _)| high(i, 2));
    let low = |number: usize| (number % 8) as u8;
    let modrm = 0x80 | low(register) << 3 | 4;
    let sib = scale << 6 | low(index) << 3 | low(operand.base);
    [vec![rex, opcode, modrm, sib], operand.plus.to_le_bytes().to_vec()].concat()
}

/// Returns the bytes of an instruction with two registers, or with one and the rest of the opcode.
fn with_registers(wide: bool, opcode: &[u8], register: usize, other: usize) -> Vec<u8> {
    let high = |number: usize, bit: u8| if number > 7 { bit } else { 0 };
    let rex = 0x40 | if wide { 8 } else { 0 } | high(register, 4) | high(other, 1);
    [&[rex], opcode, &[0xc0 | ((register % 8) as u8) << 3 | (other % 8) as u8]].concat()
}

impl Code {
    fn bytes(self) -> Vec<u8> {
        let constant = |bytes: Vec<u8>, value: i32| [bytes, value.to_le_bytes().to_vec()].concat();
        match self {
            Self::Move(to, from) => with_registers(true, &[0x89], from, to),
            Self::MoveLow(to, from) => with_registers(false, &[0x89], from, to),
            Self::Constant(to, value) => constant(with_registers(true, &[0xc7], 0, to), value),
            Self::Load(to, operand) => with_memory(0x8b, to, operand),
            Self::Store(operand, from) => with_memory(0x89, from, operand),
            Self::Address(to, operand) => with_memory(0x8d, to, operand),
            Self::AddConstant(to, value) => constant(with_registers(true, &[0x81], 0, to), value),
            Self::SubtractConstant(to, value) => constant(with_registers(true, &[0x81], 5, to), value),
            Self::Add(to, from) => with_registers(true, &[0x01], from, to),
            Self::Subtract(to, from) => with_registers(true, &[0x29], from, to),
            Self::AddFrom(to, operand) => with_memory(0x03, to, operand),
            Self::Zero(to) => with_registers(false, &[0x31], to, to),
            Self::Push(from) => vec![0x40 | u8::from(from > 7), 0x50 + (from % 8) as u8],
            Self::Pop(to) => vec![0x40 | u8::from(to > 7), 0x58 + (to % 8) as u8],
            Self::MoveIf(to, from) => with_registers(true, &[0x0f, 0x45], to, from),
            Self::Increment(to) => with_registers(true, &[0xff], 0, to),
            Self::Multiply(to, from, by) => constant(with_registers(true, &[0x69], to, from), by),
            Self::Shift(to, by) => [with_registers(true, &[0xc1], 4, to), vec![by]].concat(),
            Self::Mask(to, mask) => constant(with_registers(true, &[0x81], 4, to), mask),
            Self::Exchange(a, b) => with_registers(true, &[0x87], a, b),
            Self::Call => vec![0xe8, 0, 0x10, 0, 0],
        }
    }

    fn random(machine: &Machine, dice: &mut Dice) -> Self {
        // Few registers, so that values meet.
        let registers = [0, 1, 2, 3, 6, 7, 8, 12];
        let (to, from) = (dice.one(&registers), dice.one(&registers));
        let small = dice.one(&[8, 16, 24, 32, 40, 64, 128, -8, -16, -64, 4, 48]);
        let index = (dice.below(3) == 0).then(|| (dice.one(&registers), dice.below(4) as u8));
        let plus = dice.one(&[0, 0, 8, 16, 24, 32, 40, 56, -8, 64, 72]);
        // Most operands begin with a pointer.
        let pointer = |register: &usize| place(machine.registers[*register]).is_some();
        let pointers: Vec<usize> = registers.into_iter().filter(pointer).collect();
        let base = match dice.below(8) {
            0 => RSP,
            1..6 if !pointers.is_empty() => dice.one(&pointers),
            _ => from,
        };
        // Numbers are made of numbers, mostly, so that pointers live for some instructions.
        let to = if pointers.contains(&to) && dice.below(3) > 0 { dice.one(&registers) } else { to };
        let operand = Operand { base, index: index.filter(|_| base != RSP), plus };
        match dice.below(26) {
            0..3 => Self::Move(to, from),
            3..8 => Self::Load(to, operand),
            8..12 => Self::Store(operand, to),
            12..14 => Self::Address(to, operand),
            14 => Self::AddConstant(dice.one(&[to, to, RSP]), small),
            15 => Self::SubtractConstant(dice.one(&[to, to, RSP]), small),
            16 => Self::Add(to, from),
            17 => dice.one(&[Self::Subtract(to, from), Self::AddFrom(to, operand)]),
            18 => dice.one(&[Self::Zero(to), Self::Constant(to, small), Self::MoveLow(to, from)]),
            19 => Self::Push(from),
            20 => Self::Pop(to),
            21 => Self::MoveIf(to, from),
            22 => dice.one(&[Self::Increment(to), Self::Multiply(to, from, dice_factor(small))]),
            23 => Self::Shift(to, dice.one(&[3, 4, 6])),
            24 => Self::Mask(to, dice.one(&[3, -8, 7])),
            _ => dice.one(&[Self::Exchange(to, from), Self::Call]),
        }
    }
}

/// Returns a factor as compilers use it for the size of an element.
fn dice_factor(small: i32) -> i32 {
    small.abs().max(8)
}

/// Registers and memory.
#[derive(Clone)]
struct Machine {
    registers: [u64; 16],
    memory: HashMap<u64, u64>,
    /// The condition of conditional moves.
    condition: bool,
}

/// An instruction that no compiler would make here.
struct Implausible;

impl Machine {
    fn random(dice: &mut Dice) -> Self {
        let mut memory = HashMap::new();
        for region in REGIONS {
            for address in (region.start..region.start + region.size * region.count).step_by(8) {
                let field = World.fields_at(region.ty, (address - region.start) % region.size);
                let to = field.first().and_then(|(ty, _)| World.pointee(*ty));
                let to = REGIONS.into_iter().find(|region| Some(region.ty) == to);
                let value = match to {
                    Some(to) => to.start + to.size * dice.below(to.count),
                    None => dice.below(6),
                };
                memory.insert(address, value);
            }
        }
        let mut registers = [0; 16].map(|_: u64| dice.below(6));
        for (register, region) in ARGUMENTS {
            registers[register] = region.start + region.size * dice.below(region.count);
        }
        registers[RSP] = ENTRY;
        Self { registers, memory, condition: false }
    }

    fn address(&self, operand: Operand) -> u64 {
        let index = operand.index.map_or(0, |(index, scale)| self.registers[index] << scale);
        self.registers[operand.base].wrapping_add(index).wrapping_add(i64::from(operand.plus).cast_unsigned())
    }

    /// Returns the address that an operand accesses, if a compiler would make it.
    fn accessed(&self, operand: Operand) -> Result<u64, Implausible> {
        let address = self.address(operand);
        if let Some((index, scale)) = operand.index {
            let plus = i64::from(operand.plus).cast_unsigned();
            self.indexed(self.registers[operand.base], self.registers[index] << scale, plus)?;
        } else {
            self.moved(self.registers[operand.base], address)?;
        }
        let exists = address.is_multiple_of(8) && self.memory.contains_key(&address);
        if exists { Ok(address) } else { Err(Implausible) }
    }

    /// Checks that a constant does not lead from an array in an object to another field.
    fn moved(&self, from: u64, to: u64) -> Result<(), Implausible> {
        match (place(from), place(to)) {
            (Some((region, offset)), _) if region.ty != NODE || offset < 32 => Ok(()),
            (Some((_, from)), Some((_, offset))) if offset >= 32 || offset == from => Ok(()),
            (Some(_), _) => Err(Implausible),
            (None, _) => Ok(()),
        }
    }

    /// Checks that a sum is a number, or an element of the array to which one of the two points.
    fn indexed(&self, a: u64, b: u64, plus: u64) -> Result<(), Implausible> {
        let sum = a.wrapping_add(b).wrapping_add(plus);
        if on_stack(sum) || [a, b].into_iter().any(on_stack) || is_astray(sum) {
            return Err(Implausible);
        }
        let pointer = [a, b].into_iter().find_map(|value| place(value).map(|_| value.wrapping_add(plus)));
        match (pointer.map(place), place(sum)) {
            (None, None) => Ok(()),
            (Some(Some((region, from))), Some((other, to))) if region == other => {
                let slot = |offset: u64| region.ty == NODE && offset >= 32;
                let same =
                    |a: u64, b: u64| (a - region.start) / region.size == (b - region.start) / region.size;
                let within = !slot(from) || (slot(to) && same(pointer.unwrap_or(0), sum)) || from == to;
                if within { Ok(()) } else { Err(Implausible) }
            }
            _ => Err(Implausible),
        }
    }

    fn store(&mut self, address: u64, value: u64) -> Result<(), Implausible> {
        if let Some((region, offset)) = place(address) {
            let field = World.fields_at(region.ty, offset).first().map(|(ty, _)| *ty);
            let to = field.and_then(|ty| World.pointee(ty));
            let fits = match (to, place(value)) {
                (Some(to), Some((target, offset))) => target.ty == to && offset == 0,
                (Some(_), None) => value == 0,
                (None, _) => true,
            };
            if !fits {
                return Err(Implausible);
            }
        }
        self.memory.insert(address, value);
        Ok(())
    }

    fn set(&mut self, register: usize, value: u64) -> Result<(), Implausible> {
        if is_astray(value) {
            return Err(Implausible);
        }
        self.registers[register] = value;
        Ok(())
    }

    /// Executes an instruction. Returns the addresses that it accesses.
    fn execute(&mut self, code: Code, dice: &mut Dice) -> Result<Option<u64>, Implausible> {
        let get = |machine: &Self, register: usize| machine.registers[register];
        match code {
            Code::Move(to, from) => self.set(to, get(self, from))?,
            Code::MoveLow(to, from) => self.set(to, get(self, from) & 0xffff_ffff)?,
            Code::Constant(to, value) => self.set(to, i64::from(value).cast_unsigned())?,
            Code::Load(to, operand) => {
                let address = self.accessed(operand)?;
                self.set(to, self.memory[&address])?;
                return Ok(Some(address));
            }
            Code::AddFrom(to, operand) => {
                let address = self.accessed(operand)?;
                let (old, value) = (get(self, to), self.memory[&address]);
                self.indexed(old, value, 0)?;
                self.set(to, old.wrapping_add(value))?;
                return Ok(Some(address));
            }
            Code::Store(operand, from) => {
                // A slot of the stack exists once it was written.
                let slot = operand.base == RSP && operand.index.is_none() && on_stack(self.address(operand));
                let address = if slot { self.address(operand) } else { self.accessed(operand)? };
                if !address.is_multiple_of(8) || address == ENTRY {
                    return Err(Implausible);
                }
                self.store(address, get(self, from))?;
                return Ok(Some(address));
            }
            Code::Address(to, operand) => {
                if let Some((index, scale)) = operand.index {
                    let plus = i64::from(operand.plus).cast_unsigned();
                    self.indexed(get(self, operand.base), get(self, index) << scale, plus)?;
                    self.indexed(get(self, operand.base), get(self, index) << scale, 0)?;
                } else {
                    self.moved(get(self, operand.base), self.address(operand))?;
                }
                self.set(to, self.address(operand))?;
            }
            Code::AddConstant(to, value) | Code::SubtractConstant(to, value) => {
                let value = i64::from(value).cast_unsigned();
                let value = if let Code::AddConstant(..) = code { value } else { value.wrapping_neg() };
                if to == RSP && !value.is_multiple_of(8) {
                    return Err(Implausible);
                }
                self.moved(get(self, to), get(self, to).wrapping_add(value))?;
                self.set(to, get(self, to).wrapping_add(value))?;
            }
            Code::Add(to, from) => {
                self.indexed(get(self, to), get(self, from), 0)?;
                self.set(to, get(self, to).wrapping_add(get(self, from)))?;
            }
            Code::Subtract(to, from) => {
                let value = get(self, from);
                match (place(get(self, to)), place(value)) {
                    (_, Some(_)) if !on_stack(get(self, to)) => {}
                    _ => self.indexed(get(self, to), value.wrapping_neg(), 0)?,
                }
                self.set(to, get(self, to).wrapping_sub(value))?;
            }
            Code::Zero(to) => self.set(to, 0)?,
            Code::Push(from) => {
                let at = get(self, RSP) - 8;
                self.set(RSP, at)?;
                self.memory.insert(at, get(self, from));
            }
            Code::Pop(to) => {
                let at = get(self, RSP);
                let value = *self.memory.get(&at).ok_or(Implausible)?;
                self.set(RSP, at + 8)?;
                self.set(to, value)?;
            }
            Code::MoveIf(to, from) => {
                let (a, b) = (get(self, to), get(self, from));
                let alike = match (place(a), place(b)) {
                    (Some((a, x)), Some((b, y))) => a == b && x == y,
                    (None, None) => !on_stack(a) && !on_stack(b),
                    _ => false,
                };
                if !alike {
                    return Err(Implausible);
                }
                if self.condition {
                    self.set(to, b)?;
                }
            }
            Code::Increment(to) => self.set(to, get(self, to).wrapping_add(1))?,
            Code::Multiply(to, from, by) => {
                let by = i64::from(by).cast_unsigned();
                self.set(to, get(self, from).wrapping_mul(by))?;
            }
            Code::Shift(to, by) => self.set(to, get(self, to) << by)?,
            Code::Mask(to, mask) => self.set(to, get(self, to) & i64::from(mask).cast_unsigned())?,
            Code::Exchange(a, b) => self.registers.swap(a, b),
            Code::Call => {
                for register in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
                    self.registers[register] = dice.below(6);
                }
            }
        }
        self.condition = dice.below(2) == 0;
        Ok(None)
    }
}

/// A program with the address that each of its instructions accesses.
fn program(dice: &mut Dice) -> (Vec<Instruction>, Vec<Option<u64>>, Vec<Code>) {
    let mut machine = Machine::random(dice);
    let (mut bytes, mut accessed, mut codes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..200 {
        let code = Code::random(&machine, dice);
        let mut next = machine.clone();
        if let Ok(address) = next.execute(code, dice) {
            machine = next;
            bytes.extend(code.bytes());
            accessed.push(address);
            codes.push(code);
        }
    }
    (disassemble(&bytes, 0x1000), accessed, codes)
}

/// Returns what the data flow says that is not so, and the numbers of accesses to objects and of
/// those among them whose type is known.
fn compare(seed: u64) -> (Vec<String>, usize, usize) {
    let (code, accessed, codes) = program(&mut Dice(seed));
    assert_eq!(code.len(), accessed.len(), "{codes:?}");
    let variables = ARGUMENTS.map(|(register, region)| Variable {
        start: 0x1000,
        end: 0x1001,
        home: Home::Value(register as RegisterNumber, 0),
        ty: [TO_NODE, TO_ITEM, TO_LONG][region.ty.0 as usize],
        piece: None,
    });
    let facts = FunctionFacts {
        from_entry: true,
        described: true,
        variables: variables.to_vec(),
        ..FunctionFacts::default()
    };
    let wanted: Vec<u64> = code.iter().map(|instruction| instruction.offset).collect();
    let found = accesses(&code, &facts, &mut World, &wanted).unwrap();
    let (mut wrong, mut objects, mut typed) = (Vec::new(), 0, 0);
    for (number, (instruction, address)) in code.iter().zip(accessed).enumerate() {
        let Some((address, (region, offset))) = address.and_then(|a| Some((a, place(a)?))) else { continue };
        objects += 1;
        let [access] = found[&instruction.offset][..] else { panic!("{:?}", codes[number]) };
        let Ok(object) = access.place else { continue };
        typed += 1;
        // A pointer to an array in an object has the type of its elements.
        let same = match object.indexed {
            _ if object.ty == LONG => {
                offset % 8 == object.offset && World.shape(region.ty) == TypeShape::Scalar
                    || region.ty == NODE && offset >= 32
            }
            true => object.ty == region.ty && offset >= 32 && object.offset >= 32,
            false => object.ty == region.ty && offset == object.offset,
        };
        if !same {
            wrong.push(format!(
                "seed {seed}: {:?} at {address:#x} is {object:?}\n{:#?}",
                codes[number],
                &codes[..=number]
            ));
        }
    }
    (wrong, objects, typed)
}

#[test]
fn the_data_flow_agrees_with_a_machine() {
    let (mut objects, mut typed) = (0, 0);
    for seed in 0..3000 {
        let (wrong, of, known) = compare(seed);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        (objects, typed) = (objects + of, typed + known);
    }
    // A transfer function that forgets what it should follow fails here.
    let share = typed as f64 / objects as f64;
    assert!(share > 0.33, "{typed} of {objects}");
}
