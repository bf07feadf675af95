//! A machine that runs a program in a test, on memory that is made up.
//!
//! Two programs do the same if they make the same calls with the same arguments, return the same
//! number and leave the same memory.

use std::collections::HashMap;

use aya_obj::generated::bpf_insn;

use super::{
    Code, arithmetic,
    operation::{Callee, FRAME, Operand, Operation, Place, operator},
};

/// The addresses of the frames, of which each has 512 bytes.
const FRAMES: u64 = 0x7fff_0000_0000;
/// The address of the program's first instruction.
const PROGRAM: u64 = 0x1000_0000_0000;

/// Helpers of the kernel that do more than return a number.
mod helper {
    pub(super) const LOOKUP: i32 = 1;
    pub(super) const COMM: i32 = 16;
    pub(super) const PROBE_READ_KERNEL: i32 = 113;
    pub(super) const LOOP: i32 = 181;
    pub(super) const WITHOUT_ARGUMENTS: [i32; 6] = [5, 8, 14, 80, 118, 158];
}

/// What a program did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub returned: u64,
    /// The calls, and the arguments of each.
    pub calls: Vec<(i32, Vec<u64>)>,
    /// The bytes outside of the frames that are not what they were.
    pub written: HashMap<u64, u8>,
}

/// Runs a program in the world of this seed. `None` if it does not end in time.
pub(super) fn run(code: &[bpf_insn], seed: u64) -> Option<Done> {
    let done = Done { returned: 0, calls: Vec::new(), written: HashMap::new() };
    let mut machine = Machine { code: Code(code), seed, frames: HashMap::new(), done, steps: 0 };
    let arguments = std::array::from_fn(|index| mixed(seed ^ 0xc0de ^ index as u64) & !7);
    machine.done.returned = machine.function(0, arguments, 0)?;
    Some(machine.done)
}

/// Returns a number that looks random (splitmix64).
fn mixed(seed: u64) -> u64 {
    let mut number = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

struct Machine<'a> {
    code: Code<'a>,
    seed: u64,
    frames: HashMap<u64, u8>,
    done: Done,
    steps: usize,
}

impl Machine<'_> {
    /// Runs a function with these registers from the first argument on.
    fn function(&mut self, start: usize, arguments: [u64; 5], depth: u64) -> Option<u64> {
        let mut registers = [0; 11];
        registers[1..6].copy_from_slice(&arguments);
        let bottom = FRAMES - 0x1000 * depth;
        registers[usize::from(FRAME)] = bottom;
        // What a function of before has left there.
        self.frames.retain(|address, _| *address >= bottom);
        let mut at = start;
        loop {
            self.steps += 1;
            if self.steps > 200_000 || depth > 8 {
                return None;
            }
            let operation = self.code.operation(at).unwrap();
            let value = |operand| match operand {
                Operand::Number(number) => i64::from(number) as u64,
                Operand::Register(register) => registers[usize::from(register)],
            };
            let address = |place: Place| {
                registers[usize::from(place.base)].wrapping_add(i64::from(place.offset) as u64)
            };
            let next = at + operation.slots();
            match operation {
                Operation::Compute { wide, operator, to, operand } => {
                    let left = if operator == operator::MOVE { 0 } else { registers[usize::from(to)] };
                    registers[usize::from(to)] =
                        arithmetic::compute(wide, operator, left, value(operand)).unwrap();
                }
                Operation::Convert { to, from } => {
                    let from = registers[usize::from(from.unwrap_or(to))];
                    registers[usize::from(to)] = from.swap_bytes();
                }
                Operation::Number { to, number } => registers[usize::from(to)] = number,
                Operation::Address { to, function: None } => {
                    registers[usize::from(to)] = self.code.0[at].imm as u64;
                }
                Operation::Address { to, function: Some(distance) } => {
                    let function = self.code.target(at, distance).unwrap();
                    registers[usize::from(to)] = PROGRAM + function as u64;
                }
                Operation::Load { to, from, bytes, signed: false } => {
                    registers[usize::from(to)] = self.load(address(from), bytes);
                }
                Operation::Load { .. } => unimplemented!("{operation:?}"),
                // One of them; which is not known.
                Operation::Atomic { to, bytes, operand } => {
                    let before = self.load(address(to), bytes);
                    let operand = usize::from(operand);
                    self.store(address(to), bytes, mixed(before ^ registers[operand]));
                    registers[0] = before;
                    registers[operand] = before;
                }
                Operation::Store { to, bytes, operand } => {
                    self.store(address(to), bytes, value(operand));
                }
                Operation::Jump(distance) => {
                    at = self.code.target(at, distance.into()).unwrap();
                    continue;
                }
                Operation::Branch { wide, comparison, left, right, distance } => {
                    let left = registers[usize::from(left)];
                    if arithmetic::compare(wide, comparison, left, value(right)).unwrap() {
                        at = self.code.target(at, distance.into()).unwrap();
                        continue;
                    }
                }
                Operation::Call(callee) => {
                    let arguments = [1, 2, 3, 4, 5].map(|register: usize| registers[register]);
                    registers[0] = match callee {
                        Callee::Function(distance) => {
                            let function = self.code.target(at, distance).unwrap();
                            self.function(function, arguments, depth + 1)?
                        }
                        Callee::Helper(number) => self.helper(number, arguments, depth)?,
                        Callee::Kernel(number) => self.helper(-number, arguments, depth)?,
                    };
                    // A call may leave anything there.
                    for (register, value) in registers.iter_mut().enumerate().take(6).skip(1) {
                        *value = mixed(self.done.calls.len() as u64 ^ register as u64);
                    }
                }
                Operation::Exit => return Some(registers[0]),
            }
            at = next;
        }
    }

    fn helper(&mut self, number: i32, arguments: [u64; 5], depth: u64) -> Option<u64> {
        let result = mixed(self.seed ^ mixed(self.done.calls.len() as u64));
        let [first, second, third, ..] = arguments;
        let mut read = match number {
            helper::LOOKUP => vec![first, self.load(second, 4)],
            // The second one is the function's address in this program.
            helper::LOOP => vec![first, third],
            _ if helper::WITHOUT_ARGUMENTS.contains(&number) => Vec::new(),
            _ => arguments.to_vec(),
        };
        // What the call could read of the frame.
        let bottom = FRAMES - 0x1000 * depth;
        for pointer in read.clone().into_iter().filter(|pointer| (bottom - 512..bottom).contains(pointer)) {
            read.extend((pointer..bottom).map(|address| u64::from(self.byte(address))));
        }
        self.done.calls.push((number, read));
        match number {
            helper::LOOKUP if result.is_multiple_of(8) => Some(0),
            helper::LOOKUP => Some(mixed(first.wrapping_add(result % 3)) & !0xfff | 1 << 60),
            helper::LOOP => {
                let function = (second - PROGRAM) as usize;
                for round in 0..first.min(3) {
                    if self.function(function, [round, third, 0, 0, 0], depth + 1)? != 0 {
                        break;
                    }
                }
                Some(first.min(3))
            }
            helper::COMM | helper::PROBE_READ_KERNEL => {
                for index in 0..second.min(64) {
                    let byte = self.byte(third.wrapping_add(index));
                    self.write(first.wrapping_add(index), byte);
                }
                Some(if result.is_multiple_of(8) { -14_i64 as u64 } else { 0 })
            }
            _ => Some(plausible(result)),
        }
    }

    fn byte(&self, address: u64) -> u8 {
        let is_frame = (FRAMES - 0x10000..FRAMES).contains(&address);
        let written = if is_frame { &self.frames } else { &self.done.written };
        let before = if is_frame { 0 } else { plausible(mixed(self.seed ^ address & !7)) };
        *written.get(&address).unwrap_or(&before.to_le_bytes()[(address & 7) as usize])
    }

    fn write(&mut self, address: u64, byte: u8) {
        // What is there already is not written, so that only what changes is compared.
        if self.byte(address) != byte {
            let is_frame = (FRAMES - 0x10000..FRAMES).contains(&address);
            let written = if is_frame { &mut self.frames } else { &mut self.done.written };
            written.insert(address, byte);
        }
    }

    fn load(&self, address: u64, bytes: u8) -> u64 {
        (0..bytes)
            .rev()
            .fold(0, |number, index| number << 8 | u64::from(self.byte(address.wrapping_add(index.into()))))
    }

    fn store(&mut self, address: u64, bytes: u8, number: u64) {
        for (index, byte) in number.to_le_bytes().into_iter().enumerate().take(bytes.into()) {
            self.write(address.wrapping_add(index as u64), byte);
        }
    }
}

/// Returns a number as memory has them: often 0, often small.
fn plausible(number: u64) -> u64 {
    match number % 4 {
        0 => 0,
        1 => number >> 32 & 0xf,
        _ => number,
    }
}
