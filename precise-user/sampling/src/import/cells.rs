//! The cells of the current epoch, per process. A process event, such as a new mapping or an exec,
//! completes the cells of its process, so that each cell is symbolized with the mappings of the
//! time of its samples.

use std::ops::Range;

use precise_common::{
    cell::{Cell, CellKey},
    stack::none,
};
use rustc_hash::FxHashMap;

use super::{chains::bytes_of, sample::KeptFacts};
use precise_model::Interner;
use precise_records::Chains;

/// The maximum number of cells in an epoch: about 64 MiB with their names. An epoch with more cells
/// ends early.
pub(super) const MAX_CELLS: usize = 1 << 17;

/// The maximum size of an epoch's call chains in bytes. An epoch with more ends early.
const MAX_CHAIN_BYTES: usize = 64 << 20;

/// The cells of one event of one process.
#[derive(Debug, Default)]
pub(super) struct OfEvent {
    /// The event's index in the capture.
    pub event: u16,
    /// The cells with their CPUs.
    pub cells: Vec<(usize, Cell)>,
    /// The id of each cell's call chain.
    pub stacks: Vec<u64>,
}

/// A cell of one CPU, whose samples have the same event and call chain.
#[derive(Debug)]
struct Counted {
    event: u16,
    cpu: u32,
    stack: u64,
    cell: Cell,
}

/// What tells the cells of a process apart: the event, the CPU, the key, and the id of the call
/// chain.
type Kind = (u16, u32, CellKey, u64);

impl Counted {
    fn kind(&self) -> Kind {
        (self.event, self.cpu, self.cell.key, self.stack)
    }
}

/// The event, the CPU, the instruction and the data address of a cell, which nearly always tell two
/// apart, and where the cell is in its table.
type Ordered = ((u16, u32, u64, u64), usize);

/// The cells of one process.
#[derive(Debug, Default)]
pub(super) struct OfProcess {
    /// One of each kind.
    cells: Vec<Counted>,
    places: Interner,
    /// The call chains to which the cells refer.
    chains: Chains,
    /// The times of the first and the last sample, or of its callers if they were taken later.
    first: u64,
    last: u64,
}

impl OfProcess {
    /// Returns the cells of each event in a deterministic order, the time window of their samples,
    /// and their call chains.
    pub fn by_event(self) -> (Vec<OfEvent>, Range<u64>, Chains) {
        let Self { cells, chains, first, last, .. } = self;
        let start =
            |(at, of): (usize, &Counted)| ((of.event, of.cpu, of.cell.key.ip, of.cell.key.address), at);
        let mut order: Vec<Ordered> = cells.iter().enumerate().map(start).collect();
        order.sort_unstable_by(|(a, at_a), (b, at_b)| {
            a.cmp(b).then_with(|| cells[*at_a].kind().cmp(&cells[*at_b].kind()))
        });
        let of_event = |of: &[Ordered]| OfEvent {
            event: of.first().map_or(0, |((event, ..), _)| *event),
            cells: of.iter().map(|((_, cpu, ..), at)| (*cpu as usize, cells[*at].cell)).collect(),
            stacks: of.iter().map(|(_, at)| cells[*at].stack).collect(),
        };
        let events = order.chunk_by(|((a, ..), _), ((b, ..), _)| a == b).map(of_event).collect();
        (events, first..last.saturating_add(1), chains)
    }
}

/// The cells of all processes.
#[derive(Debug, Default)]
pub(super) struct Cells {
    processes: FxHashMap<u32, OfProcess>,
    made: usize,
    chain_bytes: usize,
}

impl Cells {
    /// Adds a sample: when it was taken, and when its callers were. Returns whether the epoch must
    /// end.
    pub fn add(&mut self, time: u64, callers_at: u64, facts: &KeptFacts) -> bool {
        let process = self.processes.entry(facts.pid).or_insert_with(|| OfProcess {
            first: time,
            last: time,
            ..OfProcess::default()
        });
        process.first = process.first.min(time);
        process.last = process.last.max(time).max(callers_at);
        let stack = facts.chain.known().map_or(none::NOT_TAKEN, |chain| chain.id);
        let kind: Kind = (facts.event, facts.cpu, facts.key, stack);
        let cells = &mut process.cells;
        let at = process.places.index(&kind, cells.len(), |at| cells[at].kind() == kind) as usize;
        if at == cells.len() {
            self.made += 1;
            let cell = Cell { key: facts.key, ..Cell::default() };
            cells.push(Counted { event: facts.event, cpu: facts.cpu, stack, cell });
        }
        let cell = &mut cells[at].cell;
        cell.count += 1;
        cell.period_sum = cell.period_sum.saturating_add(facts.period);
        cell.latency_sum = cell.latency_sum.saturating_add(facts.latency.into());
        cell.latency_max = cell.latency_max.max(facts.latency);
        let full = cell.count == u32::MAX;
        if let Some(entries) = facts.chain.known().and_then(|chain| chain.entries.as_ref()) {
            let bytes = &mut self.chain_bytes;
            process.chains.entry(stack).or_insert_with(|| {
                *bytes += bytes_of(entries);
                entries.clone()
            });
        }
        self.made >= MAX_CELLS || self.chain_bytes >= MAX_CHAIN_BYTES || full
    }

    /// Removes and returns the cells of one process; `None` if it has none.
    pub fn take(&mut self, pid: u32) -> Option<OfProcess> {
        self.processes.remove(&pid)
    }

    /// Removes and returns the cells of all processes at the end of an epoch, sorted by process id.
    pub fn take_all(&mut self) -> Vec<OfProcess> {
        (self.made, self.chain_bytes) = (0, 0);
        let mut all: Vec<_> = std::mem::take(&mut self.processes).into_iter().collect();
        all.sort_unstable_by_key(|(pid, _)| *pid);
        all.into_iter().map(|(_, process)| process).collect()
    }
}
