//! What cells have in the place of the data address, in runs that group by call chains.

use std::borrow::Cow;
use std::collections::HashMap;

use precise_common::cell::Cell;
use precise_common::stack::FIRST_ID;
use precise_model::{Dimension, stack};

use super::naming::Drained;
use super::plan::Plan;
use crate::pmu::EventRequest;

/// What the cells of an event have in the place of the data address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CellSlot {
    /// The data address, and no call chain.
    #[default]
    Address,
    /// The id of the call chain, and no data address.
    Chain,
    /// The id of the call chain; and the data address in the place of the instruction, which is the
    /// first frame of the chain. If there is no chain, the instruction is in its own place, and the
    /// data address is lost.
    Both,
}

impl CellSlot {
    /// Returns what the cells of an event have in a run that groups by these dimensions.
    pub fn of(dimensions: &[Dimension], request: &EventRequest) -> Self {
        let has = |dimension| dimensions.contains(&dimension);
        if !has(Dimension::Stack) {
            Self::Address
        } else if !has(Dimension::Address) || !request.fields.address {
            Self::Chain
        } else if starts_its_chain(request) {
            Self::Both
        } else {
            Self::Address
        }
    }

    /// Returns whether samples have call chains.
    pub fn has_chain(self) -> bool {
        self != Self::Address
    }

    /// Returns whether samples have data addresses.
    pub fn has_address(self) -> bool {
        self != Self::Chain
    }

    /// Returns the cells of an event with each part in its own place, and the ids of their chains.
    pub fn split(self, drained: &Drained) -> SplitCells<'_> {
        let Drained { cells, chains } = drained;
        if self == Self::Address {
            return SplitCells { cells: cells.into(), stacks: Vec::new() };
        }
        let stacks = cells.iter().map(|(_, cell)| cell.key.address).collect();
        let mut cells = cells.clone();
        let mut first: HashMap<(u64, bool), Option<u64>> = HashMap::new();
        for (_, Cell { key, .. }) in &mut cells {
            let (id, kernel) = (std::mem::take(&mut key.address), key.class().kernel());
            if self == Self::Both && id >= FIRST_ID {
                let ip = first.entry((id, kernel)).or_insert_with(|| {
                    let found = stack::frames(chains.get(&id)?, kernel);
                    found.frames.first().filter(|_| found.interrupted).map(|frame| frame.address)
                });
                (key.address, key.ip) = (key.ip, ip.unwrap_or(0));
            }
        }
        SplitCells { cells: cells.into(), stacks }
    }
}

/// Cells with each part in its own place, and the ids of their call chains; no ids if the event
/// takes no chains.
pub struct SplitCells<'a> {
    /// `(cpu, cell)`.
    pub cells: Cow<'a, [(usize, Cell)]>,
    /// The id of each cell's chain.
    pub stacks: Vec<u64>,
}

/// Returns whether the sampled instruction of an event is the first frame of its chain. A page
/// fault takes both from the registers of the fault (`perf_sw_event` in the kernel's fault handler;
/// kernel/events/callchain.c, `get_perf_callchain`).
fn starts_its_chain(request: &EventRequest) -> bool {
    request.pmu == "software" && request.unit == "page faults"
}

/// Returns a note if events have no call chains because they have data addresses.
pub(crate) fn note(plan: &Plan) -> Option<String> {
    if !plan.dimensions.contains(&Dimension::Stack) {
        return None;
    }
    let without = plan.events.iter().filter(|event| !plan.slot(&event.request).has_chain());
    let names: Vec<&str> = without.map(|event| event.request.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!(
            "{names}: data addresses, and no call chains, because a cell has room for only one of them. Page faults have both"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use precise_common::cell::{CellKey, Class};
    use precise_common::stack::{CONTEXT_KERNEL, CONTEXT_USER, none};

    use super::*;

    const KERNEL: u64 = 0xffff_8000_0000_0000;

    #[test]
    fn each_part_gets_its_own_place() {
        let cell = |ip, address, class| {
            (
                0,
                Cell {
                    key: CellKey { ip, address, class, ..CellKey::default() },
                    count: 1,
                    ..Cell::default()
                },
            )
        };
        let kernel = Class::KERNEL;
        let mut drained = Drained {
            cells: vec![cell(0x7000, 100, 0), cell(0x8000, 101, kernel), cell(0x40, none::FULL, 0)],
            ..Drained::default()
        };
        let entries = |entries: &[u64]| Arc::from(entries);
        drained.chains.insert(100, entries(&[CONTEXT_USER, 0x40, 0x50]));
        drained.chains.insert(101, entries(&[CONTEXT_KERNEL, KERNEL, KERNEL + 9, CONTEXT_USER, 0x60]));
        let parts = |split: &SplitCells<'_>| -> Vec<(u64, u64)> {
            split.cells.iter().map(|(_, cell)| (cell.key.ip, cell.key.address)).collect()
        };
        let both = CellSlot::Both.split(&drained);
        assert_eq!(parts(&both), [(0x40, 0x7000), (KERNEL, 0x8000), (0x40, 0)]);
        assert_eq!(both.stacks, [100, 101, none::FULL]);
        let chain = CellSlot::Chain.split(&drained);
        assert_eq!(parts(&chain), [(0x7000, 0), (0x8000, 0), (0x40, 0)]);
        assert_eq!(chain.stacks, both.stacks);
        let address = CellSlot::Address.split(&drained);
        assert_eq!((&*address.cells, address.stacks.len()), (&*drained.cells, 0));
    }
}
