//! Where the address of a load comes from: a walk back through the data flow of its function,
//! within its loop.
//!
//! What is followed: registers, through moves, arithmetic, conditional moves and vector
//! instructions; and values that were put aside on the stack and taken from there again. What is
//! not: values that go through other memory, and through calls. Both ends are named as what they
//! are.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use iced_x86::{FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Instruction, flow::Flow};

/// Steps of one walk back at most. A walk through a function of 10,000 instructions takes less than
/// that for each register that it follows.
const MAX_STEPS: usize = 100_000;

/// What a load waits for before it can begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Dependence {
    /// For its own result of an earlier round: a pointer chase. Nothing of one round can overlap
    /// with the next.
    Chase {
        /// Loads of one round, one behind the other.
        hops: usize,
    },
    /// For a load of a pointer chase, whose next hop does not wait for it: the data of a node.
    BehindChase,
    /// For another load, which waits for none of an earlier round: a gather by an array of indices.
    /// Rounds may overlap.
    Gather,
    /// For no load: an array that is walked. Rounds may overlap.
    Independent,
    /// Not known.
    Unknown {
        /// Why not.
        why: Why,
    },
}

/// Why it is not known what a load waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The address is the caller's, and the load is in no loop of this function.
    Caller,
    /// It is what a called function returned, or left in a register.
    Call,
    /// It was put somewhere that the walk does not follow: a jump through a table, a stack that
    /// moved.
    Lost,
}

impl Why {
    /// In a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Caller => "the caller passes its address",
            Self::Call => "a call returns its address",
            Self::Lost => "its address could not be traced",
        }
    }
}

/// A load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// What it waits for.
    pub dependence: Dependence,
    /// The loads that its address is made of, by their place in the listing.
    pub from: Vec<usize>,
    /// The loads of its innermost loop, itself included, the stack's left out; empty where it is in
    /// none.
    pub in_loop: Vec<usize>,
}

/// Something that holds a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Register(Register),
    /// On the stack, by the register that it is found with, and the distance.
    Slot(Register, u64),
}

/// What one instruction does with registers and memory.
#[derive(Default)]
struct Step {
    /// What its results are made of, without what only makes an address.
    inputs: Vec<Register>,
    /// Registers that it writes, and whether nothing of the old value is left.
    outputs: Vec<(Register, bool)>,
    load: Option<Memory>,
    store: Option<Memory>,
    call: bool,
}

struct Memory {
    address: Vec<Register>,
    slot: Option<Holder>,
}

/// Where walks back ended.
#[derive(Default)]
struct Sources {
    loads: BTreeSet<usize>,
    unknown: BTreeSet<Why>,
}

/// A load, and the loop that it was walked back in: its first instruction, and its length.
type Walked = (usize, Option<(usize, usize)>);

/// The data flow of one function.
pub struct Dependences {
    flow: Flow,
    steps: Vec<Step>,
    /// What was walked already.
    walked: FxHashMap<Walked, Rc<Sources>>,
}

impl std::fmt::Debug for Dependences {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dependences").field("instructions", &self.steps.len()).finish_non_exhaustive()
    }
}

impl Dependences {
    /// Of the whole code of a function, in the order of its addresses.
    pub fn of(instructions: &[Instruction]) -> Self {
        let mut factory = InstructionInfoFactory::new();
        // Where it is no frame pointer, it is a register like others.
        let framed = instructions.iter().any(|Instruction { decoded, .. }| {
            decoded.mnemonic() == Mnemonic::Mov
                && decoded.op_register(0) == Register::RBP
                && decoded.op_register(1) == Register::RSP
        });
        let steps = instructions.iter().map(|instruction| step(&instruction.decoded, framed, &mut factory));
        Self { steps: steps.collect(), flow: Flow::of(instructions), walked: FxHashMap::default() }
    }

    /// What the load at a place of the listing waits for; `None` where that is no load.
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

    /// What the address of a load is made of.
    fn sources(&self, load: usize, within: Option<&[usize]>) -> Sources {
        let mut walk = Walk { all: self, within, seen: FxHashSet::default(), open: Vec::new() };
        let mut sources = Sources::default();
        // The stack is the thread's own, and near: who waits for its address waits for nothing.
        if let Some(Memory { address, slot: None }) = self.steps.get(load).and_then(|step| step.load.as_ref())
        {
            for register in address {
                walk.before(load, Holder::Register(*register), &mut sources);
            }
        }
        while let Some((at, holder)) = walk.open.pop() {
            if walk.seen.len() > MAX_STEPS {
                sources.unknown.insert(Why::Lost);
                break;
            }
            walk.at(at, holder, &mut sources);
        }
        sources
    }

    /// Whether the address of a load changes from round to round: what loads from the same place
    /// each time, such as the begin of an array out of its owner, gives the same each time.
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

/// The shortest way from a load over what it waits for back to itself, in loads.
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
    /// Goes on with what comes before an instruction.
    fn before(&mut self, at: usize, holder: Holder, sources: &mut Sources) {
        let before = self.all.flow.before.get(at).map(Vec::as_slice).unwrap_or_default();
        for earlier in before {
            // What a loop begins with does not matter to its rounds.
            let inside = self.within.is_none_or(|within| within.binary_search(earlier).is_ok());
            if inside && self.seen.insert((*earlier, holder)) {
                self.open.push((*earlier, holder));
            }
        }
        if self.within.is_none() && (at == 0 || before.is_empty()) {
            let stack = matches!(holder, Holder::Register(Register::RSP));
            if !stack {
                sources.unknown.insert(if at == 0 { Why::Caller } else { Why::Lost });
            }
        }
    }

    /// Looks at one instruction for who made the value in `holder`.
    fn at(&mut self, at: usize, holder: Holder, sources: &mut Sources) {
        let Some(step) = self.all.steps.get(at) else { return };
        if let Holder::Slot(base, _) = holder {
            let stored = step.store.as_ref().is_some_and(|memory| memory.slot == Some(holder));
            if stored {
                self.inputs(at, step, sources);
                // What adds to a slot reads it too.
                if step.load.is_none() {
                    return;
                }
            } else if !step.call && step.defines(Holder::Register(base)).is_some() {
                sources.unknown.insert(Why::Lost);
                return;
            }
            return self.before(at, holder, sources);
        }
        let Some(whole) = step.defines(holder) else { return self.before(at, holder, sources) };
        if !whole {
            self.before(at, holder, sources);
        }
        if step.call {
            sources.unknown.insert(Why::Call);
            return;
        }
        match &step.load {
            Some(Memory { slot: Some(slot), .. }) => self.before(at, *slot, sources),
            Some(memory) if !memory.address.is_empty() => {
                if self.within.is_none_or(|within| self.all.varies(at, within)) {
                    sources.loads.insert(at);
                }
            }
            // A global variable, or no memory at all.
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
    /// Whether it writes a register, and if so, whether nothing of the old value is left.
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

/// What a called function need not keep (System V ABI for x86-64, §3.2.1).
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
            // A write of 32 bits clears the rest, one of 8 or 16 leaves it.
            let whole = !matches!(used.access(), OpAccess::CondWrite | OpAccess::ReadCondWrite)
                && (used.register().size() >= 4);
            step.outputs.push((register, whole));
        }
    }
    // What leaves the stack as it was, or only moves its end, makes no address of data.
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
