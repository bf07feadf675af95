//! Unwinds copies of stacks, by the tables and the steps that the program uses on the stack itself.

use std::cell::Cell;
use std::sync::Arc;

use precise_common::stack::{CONTEXT_USER, ENTRIES};
use precise_common::unwind::{End, Memory, Region, Rule, UnwindFrame, step};
use rustc_hash::FxHashSet;

use super::tables::{CodeTables, Fallback, UnwindReport};
use crate::error::SamplingError;
use crate::kernel::unwind::{UnwindMemory, UnwindSizes};
use crate::symbols::CodeFiles;
use precise_records::record::IdentifiedRecord;

/// Size of the arrays in bytes, of which only what is written takes memory: enough for all programs
/// of a large machine.
const BYTES: usize = 256 << 20;

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
    pub bytes: Box<[u8]>,
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

    /// Adds the callers of a process in user space to a chain, and why there are no more.
    pub fn unwind(&mut self, pid: u32, copy: &StackCopy, chain: &mut Vec<u64>) {
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
