//! The data dependence of a load: a walk back through the data flow of its function, within its
//! loop, to find where its address comes from.
//!
//! The walk follows registers, through moves, arithmetic, conditional moves and vector
//! instructions, and values that are saved to the stack and loaded from it again. It does not
//! follow values through other memory or through calls: it stops there, and the result tells the
//! two apart.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use iced_x86::{FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Instruction, flow::Flow};

/// The largest number of steps of one walk back. A walk through a function of 10,000 instructions
/// takes fewer steps than that for each register that it follows.
const MAX_STEPS: usize = 100_000;

/// The data that a load waits for before it can start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Dependence {
    /// Its own result of an earlier iteration: a pointer chase. One iteration cannot overlap with
    /// the next.
    Chase {
        /// The number of dependent loads per iteration, one after the other.
        hops: usize,
    },
    /// A load of a pointer chase, whose next hop does not wait for this load: the data of a node.
    BehindChase,
    /// Another load, which does not wait for an earlier iteration: a gather through an array of
    /// indices. Iterations may overlap.
    Gather,
    /// No load: for example, a walk through an array. Iterations may overlap.
    Independent,
    /// Not known.
    Unknown {
        /// The reason.
        why: UnknownDependence,
    },
}

/// The reason why the dependence of a load is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownDependence {
    /// The caller passes the address, and the load is in no loop of this function.
    Caller,
    /// A called function returned the address, or left it in a register.
    Call,
    /// The walk cannot follow the value: a jump through a table, or a stack pointer that moved.
    Lost,
}

impl UnknownDependence {
    /// Returns the reason in a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Caller => "the caller passes its address",
            Self::Call => "a call returns its address",
            Self::Lost => "its address could not be traced",
        }
    }
}

/// A load with its dependence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The data that the load waits for.
    pub dependence: Dependence,
    /// The loads that its address is computed from, by their index in the listing.
    pub from: Vec<usize>,
    /// The loads of its innermost loop, including itself, without those from the stack; empty if it
    /// is in no loop.
    pub in_loop: Vec<usize>,
}

/// A register or stack slot that holds a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Register(Register),
    /// A stack slot: the base register and the distance from it.
    Slot(Register, u64),
}

/// The effect of one instruction on registers and memory.
#[derive(Default)]
struct Step {
    /// The registers that its results are computed from, without those that only form an address.
    inputs: Vec<Register>,
    /// The registers that it writes, and whether it replaces the whole old value.
    outputs: Vec<(Register, bool)>,
    load: Option<Memory>,
    store: Option<Memory>,
    call: bool,
}

struct Memory {
    address: Vec<Register>,
    slot: Option<Holder>,
}

/// The ends of the walks back.
#[derive(Default)]
struct Sources {
    loads: BTreeSet<usize>,
    unknown: BTreeSet<UnknownDependence>,
}

/// A load, and the loop that it was walked back in, by first instruction and length.
type Walked = (usize, Option<(usize, usize)>);

/// The data flow of one function.
pub struct Dependences {
    flow: Flow,
    steps: Vec<Step>,
    /// The results of earlier walks.
    walked: FxHashMap<Walked, Rc<Sources>>,
}

impl std::fmt::Debug for Dependences {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dependences").field("instructions", &self.steps.len()).finish_non_exhaustive()
    }
}

impl Dependences {
    /// Analyses the whole code of a function, in the order of its addresses.
    pub fn of(instructions: &[Instruction]) -> Self {
        let mut factory = InstructionInfoFactory::new();
        // Unless rbp is the frame pointer, it is an ordinary register.
        let framed = instructions.iter().any(|Instruction { decoded, .. }| {
            decoded.mnemonic() == Mnemonic::Mov
                && decoded.op_register(0) == Register::RBP
                && decoded.op_register(1) == Register::RSP
        });
        let steps = instructions.iter().map(|instruction| step(&instruction.decoded, framed, &mut factory));
        Self { steps: steps.collect(), flow: Flow::of(instructions), walked: FxHashMap::default() }
    }

    /// Returns the load at an index of the listing with its dependence; `None` if the instruction
    /// is not a load.
    pub fn load(&mut self, at: usize) -> Option<Load> {
        self.steps.get(at)?.load.as_ref()?;
        let within = self.flow.innermost(at);
        let key = within.and_then(|within| Some((*within.first()?, within.len())));
        let mut known: BTreeMap<usize, Rc<Sources>> = BTreeMap::new();
        let mut open = vec![at];
        while let Some(load) = open.pop() {
            if known.contains_key(&load) {
                continue;
            }
            let walked = self.walked.get(&(load, key)).cloned();
            let sources = walked.unwrap_or_else(|| Rc::new(self.sources(load, within)));
            open.extend(&sources.loads);
            known.insert(load, sources);
        }
        let direct = known.get(&at)?;
        let dependence = if let Some(hops) = round(&known, at) {
            Dependence::Chase { hops }
        } else if known.keys().any(|load| round(&known, *load).is_some()) {
            Dependence::BehindChase
        } else if let Some(why) = direct.unknown.first() {
            Dependence::Unknown { why: *why }
        } else if direct.loads.is_empty() {
            Dependence::Independent
        } else {
            Dependence::Gather
        };
        let counts = |i: &&usize| {
            let load = self.steps.get(**i).and_then(|step| step.load.as_ref());
            load.is_some_and(|memory| memory.slot.is_none())
        };
        let in_loop = within.unwrap_or_default().iter().filter(counts).copied().collect();
        let from = direct.loads.iter().copied().collect();
        self.walked.extend(known.into_iter().map(|(load, sources)| ((load, key), sources)));
        Some(Load { dependence, from, in_loop })
    }

    /// Returns the loads that the address of a load is computed from.
    fn sources(&self, load: usize, within: Option<&[usize]>) -> Sources {
        let mut walk = Walk { all: self, within, seen: FxHashSet::default(), open: Vec::new() };
        let mut sources = Sources::default();
        // The stack belongs to the thread and is in a near cache, so a load from it does not wait
        // for its address.
        if let Some(Memory { address, slot: None }) = self.steps.get(load).and_then(|step| step.load.as_ref())
        {
            for register in address {
                walk.before(load, Holder::Register(*register), &mut sources);
            }
        }
        while let Some((at, holder)) = walk.open.pop() {
            if walk.seen.len() > MAX_STEPS {
                sources.unknown.insert(UnknownDependence::Lost);
                break;
            }
            walk.at(at, holder, &mut sources);
        }
        sources
    }

    /// Returns whether the address of a load changes from iteration to iteration. A load from the
    /// same address, such as one of the start of an array from the object that owns it, gives the
    /// same value each time.
    fn varies(&self, load: usize, within: &[usize]) -> bool {
        let Some(memory) = self.steps.get(load).and_then(|step| step.load.as_ref()) else { return false };
        let writes = |i: &usize| {
            self.steps.get(*i).is_some_and(|step| {
                memory.address.iter().any(|register| step.defines(Holder::Register(*register)).is_some())
            })
        };
        within.iter().any(writes)
    }
}

/// Returns the length, in loads, of the shortest dependence cycle from a load back to itself.
fn round(known: &BTreeMap<usize, Rc<Sources>>, load: usize) -> Option<usize> {
    let from = |load: &usize| known.get(load).map(|sources| &sources.loads);
    let mut reached: BTreeSet<usize> = from(&load)?.clone();
    let mut seen = reached.clone();
    let mut hops = 1;
    while !reached.is_empty() {
        if reached.contains(&load) {
            return Some(hops);
        }
        hops += 1;
        reached =
            reached.iter().filter_map(from).flatten().copied().filter(|next| seen.insert(*next)).collect();
    }
    None
}

struct Walk<'a> {
    all: &'a Dependences,
    within: Option<&'a [usize]>,
    seen: FxHashSet<(usize, Holder)>,
    open: Vec<(usize, Holder)>,
}

impl Walk<'_> {
    /// Continues the walk with the instructions before one.
    fn before(&mut self, at: usize, holder: Holder, sources: &mut Sources) {
        let before = self.all.flow.before.get(at).map(Vec::as_slice).unwrap_or_default();
        for earlier in before {
            // Values from before the loop do not matter for its iterations.
            let inside = self.within.is_none_or(|within| within.binary_search(earlier).is_ok());
            if inside && self.seen.insert((*earlier, holder)) {
                self.open.push((*earlier, holder));
            }
        }
        if self.within.is_none() && (at == 0 || before.is_empty()) {
            let stack = matches!(holder, Holder::Register(Register::RSP));
            if !stack {
                sources.unknown.insert(if at == 0 {
                    UnknownDependence::Caller
                } else {
                    UnknownDependence::Lost
                });
            }
        }
    }

    /// Checks whether one instruction computes the value in `holder`.
    fn at(&mut self, at: usize, holder: Holder, sources: &mut Sources) {
        let Some(step) = self.all.steps.get(at) else { return };
        if let Holder::Slot(base, _) = holder {
            let stored = step.store.as_ref().is_some_and(|memory| memory.slot == Some(holder));
            if stored {
                self.inputs(at, step, sources);
                // An instruction that adds to a slot also reads it.
                if step.load.is_none() {
                    return;
                }
            } else if !step.call && step.defines(Holder::Register(base)).is_some() {
                sources.unknown.insert(UnknownDependence::Lost);
                return;
            }
            return self.before(at, holder, sources);
        }
        let Some(whole) = step.defines(holder) else { return self.before(at, holder, sources) };
        if !whole {
            self.before(at, holder, sources);
        }
        if step.call {
            sources.unknown.insert(UnknownDependence::Call);
            return;
        }
        match &step.load {
            Some(Memory { slot: Some(slot), .. }) => self.before(at, *slot, sources),
            Some(memory) if !memory.address.is_empty() => {
                if self.within.is_none_or(|within| self.all.varies(at, within)) {
                    sources.loads.insert(at);
                }
            }
            // A global variable, or no memory.
            Some(_) | None => {}
        }
        self.inputs(at, step, sources);
    }

    fn inputs(&mut self, at: usize, step: &Step, sources: &mut Sources) {
        for register in &step.inputs {
            self.before(at, Holder::Register(*register), sources);
        }
    }
}

impl Step {
    /// Returns whether the instruction replaces the whole value of the holder; `None` if it does
    /// not write it.
    fn defines(&self, holder: Holder) -> Option<bool> {
        let Holder::Register(register) = holder else { return None };
        if self.call {
            return CLOBBERED.contains(&register).then_some(true);
        }
        let mut writes = self.outputs.iter().filter(|(written, _)| *written == register);
        let first = writes.next()?.1;
        Some(writes.fold(first, |whole, (_, other)| whole || *other))
    }
}

/// The registers that a called function may overwrite (System V ABI for x86-64, §3.2.1).
const CLOBBERED: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

fn step(instruction: &iced_x86::Instruction, framed: bool, factory: &mut InstructionInfoFactory) -> Step {
    let info = factory.info(instruction);
    let call = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
    let mut step = Step { call, ..Step::default() };
    let mut address = Vec::new();
    for memory in info.used_memory() {
        let registers = [memory.base(), memory.index()];
        let registers = registers.into_iter().map(Register::full_register);
        let registers: Vec<_> =
            registers.filter(|register| !matches!(register, Register::None | Register::RIP)).collect();
        let stack = match registers.as_slice() {
            [Register::RSP] => true,
            [Register::RBP] => framed,
            _ => false,
        };
        let slot = stack.then(|| Holder::Slot(registers[0], memory.displacement()));
        if reads(memory.access()) && step.load.is_none() {
            step.load = Some(Memory { address: registers.clone(), slot });
        }
        if writes(memory.access()) {
            step.store = Some(Memory { address: registers.clone(), slot });
        }
        address.extend(registers);
    }
    let explicit = |register: Register| {
        (0..instruction.op_count()).any(|operand| {
            instruction.op_kind(operand) == iced_x86::OpKind::Register
                && instruction.op_register(operand).full_register() == register
                && reads(info.op_access(operand))
        })
    };
    for used in info.used_registers() {
        let register = used.register().full_register();
        if reads(used.access()) && (!address.contains(&register) || explicit(register)) {
            step.inputs.push(register);
        }
        if writes(used.access()) {
            // A write of 32 bits clears the upper half; a write of 8 or 16 bits keeps the rest.
            let whole = !matches!(used.access(), OpAccess::CondWrite | OpAccess::ReadCondWrite)
                && (used.register().size() >= 4);
            step.outputs.push((register, whole));
        }
    }
    // The stack pointer is not a source of data addresses.
    step.inputs.retain(|register| *register != Register::RSP);
    step
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

#[cfg(test)]
#[path = "dependence_tests.rs"]
mod tests;
