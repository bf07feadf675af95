//! Unwinds copies of stacks, by the tables and the steps that the program uses on the stack itself.

use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use precise_common::stack::{CONTEXT_USER, CONTEXT_USER_DEFERRED, ENTRIES};
use precise_common::unwind::{End, Memory, Region, Rule, UnwindFrame, step};
use rustc_hash::FxHashSet;

use super::tables::{CodeTables, Fallback, UnwindReport, UnwindTarget};
use crate::error::SamplingError;
use crate::kernel::event::register;
use crate::kernel::unwind::{UnwindMemory, UnwindSizes};
use crate::symbols::CodeFiles;
use precise_records::record::IdentifiedRecord;
use precise_records::record::sample::Sample;

/// Size of the arrays in bytes: enough for all programs of a large machine. Only the pages that are
/// written take memory.
const BYTES: usize = 256 << 20;

/// `PERF_SAMPLE_REGS_ABI_*`.
const ABI_NONE: u64 = 0;
const ABI_64: u64 = 2;

/// What a sample has of its callers in user space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserPart {
    /// A copy of the stack.
    Copied(StackCopy),
    /// Nothing that can be unwound: the instruction, if it is known, and why it has no caller.
    Ended(Option<u64>, End),
}

impl UserPart {
    /// Returns what a sample has.
    pub fn of(sample: &Sample) -> Self {
        let (registers, stack) = (&sample.user_registers, &sample.user_stack);
        let [ip, sp, bp] = [register::IP, register::SP, register::BP].map(|number| registers.get(number));
        match (registers.abi, ip, sp, bp) {
            (ABI_64, Some(ip), Some(sp), Some(bp)) => {
                let is_cut = stack.bytes.len() == stack.wanted;
                Self::Copied(StackCopy { ip, sp, bp, bytes: stack.bytes.clone(), is_cut })
            }
            (ABI_NONE, ..) => Self::Ended(None, End::KernelOnly),
            _ => Self::Ended(ip, End::Unsupported),
        }
    }

    /// Returns the same with bytes of its own: those of a sample are a part of many samples'.
    pub fn detached(self) -> Self {
        match self {
            Self::Copied(copy) => {
                Self::Copied(StackCopy { bytes: Bytes::copy_from_slice(&copy.bytes), ..copy })
            }
            ended @ Self::Ended(..) => ended,
        }
    }

    /// Returns the number of bytes of the copy.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Copied(copy) => copy.bytes.len(),
            Self::Ended(..) => 0,
        }
    }
}

/// Returns the entries of a call chain before those of user space.
pub fn kernel_part(call_chain: &[u8]) -> impl Iterator<Item = u64> {
    let entries = call_chain.as_chunks().0.iter().map(|entry| u64::from_ne_bytes(*entry));
    // Half of the places are for user space, however deep the kernel's stack is.
    entries.take_while(|entry| !matches!(*entry, CONTEXT_USER | CONTEXT_USER_DEFERRED)).take(ENTRIES / 2)
}

/// A copy of the stack of a task in 64-bit code, and the registers that unwinding needs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StackCopy {
    /// The instruction pointer.
    pub ip: u64,
    /// The stack pointer: the address of the first byte of the copy.
    pub sp: u64,
    /// The frame pointer register.
    pub bp: u64,
    /// The bytes from the stack pointer on.
    pub bytes: Bytes,
    /// Whether the stack goes on behind the copy.
    pub is_cut: bool,
}

/// Unwinds copies of the stacks of processes, whose records it is told in the order of time.
pub struct StackUnwinder {
    memory: Arc<UnwindMemory>,
    tables: CodeTables,
    /// Processes whose mappings have changed since they were last published.
    changed: FxHashSet<u32>,
}

impl StackUnwinder {
    /// Creates an unwinder that knows no process.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has no memory for the tables.
    pub fn new(fallback: Fallback) -> Result<Self, SamplingError> {
        let memory = UnwindMemory::alone(UnwindSizes::within(BYTES))
            .map_err(|error| SamplingError::failed("cannot allocate memory for unwind tables", error))?;
        let memory = Arc::new(memory);
        let tables = CodeTables::new(memory.clone(), fallback);
        Ok(Self { memory, tables, changed: FxHashSet::default() })
    }

    /// Sets who opens the files of code. Until then, no file has a table.
    pub fn open_with(&mut self, files: CodeFiles) {
        self.tables.open_with(files);
    }

    /// Reads the mappings of the processes that are running.
    pub fn look_around(&mut self, followed: &UnwindTarget) {
        self.changed.extend(self.tables.look_around(followed));
    }

    /// Applies a record about processes. Tables are made when a stack needs them.
    pub fn follow(&mut self, entry: &IdentifiedRecord) {
        let Some(pid) = self.tables.spaces.apply(entry) else { return };
        if self.tables.spaces.get_mut(pid).is_some() {
            self.changed.insert(pid);
        } else {
            self.changed.remove(&pid);
            self.tables.publish(FxHashSet::from_iter([pid]));
        }
    }

    /// Adds the user's part of a process's chain, and why it has no more callers.
    pub fn unwind(&mut self, pid: u32, part: &UserPart, chain: &mut Vec<u64>) {
        let copy = match part {
            UserPart::Copied(copy) => copy,
            UserPart::Ended(ip, end) => {
                chain.extend(ip.iter().flat_map(|ip| [CONTEXT_USER, *ip]));
                chain.push(end.marker());
                return;
            }
        };
        if self.changed.remove(&pid) {
            self.tables.publish(FxHashSet::from_iter([pid]));
        }
        chain.push(CONTEXT_USER);
        let memory = CopiedStack { tables: &self.memory, copy, ended: Cell::new(false) };
        let regions = self.tables.regions(pid).unwrap_or(0);
        let StackCopy { ip, sp, bp, .. } = *copy;
        let mut frame = UnwindFrame { ip, sp, bp, exact: 1, region: Region::default() };
        let end = loop {
            // The last entry is the end.
            if chain.len() + 1 >= ENTRIES {
                break End::TooDeep;
            }
            chain.push(frame.ip);
            match step(&memory, regions, &mut frame) {
                Ok(()) => {}
                Err(End::Fault) if memory.ended.get() => break End::CopyEnded,
                Err(end) => break end,
            }
        };
        chain.push(end.marker());
    }

    /// Returns what was made, and notes on what was not.
    pub fn report(self) -> UnwindReport {
        self.tables.report()
    }
}

/// The tables, and the copy of a stack.
struct CopiedStack<'a> {
    tables: &'a UnwindMemory,
    copy: &'a StackCopy,
    /// Whether a word was wanted that lies above the copy, where the stack goes on.
    ended: Cell<bool>,
}

impl CopiedStack<'_> {
    fn read<const N: usize>(&self, address: u64) -> Option<&[u8; N]> {
        let place = usize::try_from(address.checked_sub(self.copy.sp)?).unwrap_or(usize::MAX);
        let found = self.copy.bytes.get(place..).and_then(<[u8]>::first_chunk);
        if found.is_none() && self.copy.is_cut {
            self.ended.set(true);
        }
        found
    }
}

impl Memory for CopiedStack<'_> {
    fn region(&self, index: u32) -> Option<Region> {
        self.tables.region(index)
    }

    fn page(&self, index: u32) -> Option<u64> {
        self.tables.page(index)
    }

    fn rows(&self, index: u32) -> Option<u64> {
        self.tables.rows(index)
    }

    fn rule(&self, index: u32) -> Option<Rule> {
        self.tables.rule(index)
    }

    fn word(&self, address: u64) -> Option<u64> {
        self.read(address).map(|word| u64::from_ne_bytes(*word))
    }

    fn words(&self, address: u64) -> Option<[u64; 2]> {
        Some([self.word(address)?, self.word(address.checked_add(8)?)?])
    }
}
