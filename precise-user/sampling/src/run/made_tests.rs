//! Helpers for tests of naming: cells, sideband records, and an assembler without a run. They need
//! no privileges.

use precise_common::cell::{Cell, CellKey, Class};
use precise_common::mode::in_kernel;

use super::assemble::{Assembler, AssemblerOptions};
use super::event_filter::open_cgroups;
use crate::machine::Root;
use crate::reader::Reader;
use crate::symbols::cgroup::Hierarchy;
use crate::symbols::container::Owners;
use crate::symbols::made_tests::{self, at, comm, map};
use crate::symbols::{SymbolOptions, Symbolizer};
use precise_model::Dimension;
use precise_records::record::{IdentifiedRecord, Record};

pub(crate) use crate::symbols::made_tests::processes;

/// A nonexistent file that [`exec`] maps at [`CODE`].
pub(crate) const FILE: &str = "/no/such/file";
/// The address of the mapping.
pub(crate) const CODE: u64 = 0x40_0000;

/// Returns a cell of a process, with samples of period 10.
pub(crate) fn cell(pid: u32, ip: u64, count: u32) -> Cell {
    let kernel = if in_kernel(ip) { Class::KERNEL } else { 0 };
    let key = CellKey {
        ip,
        process: u64::from(pid) << 32 | u64::from(pid + 1),
        class: kernel,
        ..CellKey::default()
    };
    Cell { key, count, period_sum: u64::from(count) * 10, ..Cell::default() }
}

/// Returns the records of a process that executes another program, which maps [`FILE`].
pub(crate) fn exec(time: u64, pid: u32, name: &str) -> [IdentifiedRecord; 2] {
    exec_of(time, pid, name, FILE)
}

/// Returns the records of a process that executes another program, which maps the given file.
pub(crate) fn exec_of(time: u64, pid: u32, name: &str, path: &str) -> [IdentifiedRecord; 2] {
    [comm(time, pid, name, true), map(time + 1, pid, CODE, path)]
}

/// Returns the record of a process that exits.
pub(crate) fn exit(time: u64, pid: u32) -> IdentifiedRecord {
    made_tests::exit(time, pid, pid)
}

/// Returns the record of a new cgroup.
pub(crate) fn cgroup_made(time: u64, id: u64, path: &str) -> IdentifiedRecord {
    at(time, Record::Cgroup { id, path: path.into() })
}

/// Returns an assembler that groups by these dimensions, and data addresses by cache lines.
pub(crate) fn assembler(dimensions: &[Dimension]) -> Assembler {
    let options = AssemblerOptions {
        dimensions: dimensions.to_vec(),
        address_granule: 64,
        hierarchy: Hierarchy::V2,
        host: "host".to_owned(),
        slots: Vec::new(),
    };
    let symbolizer = Symbolizer::spawn(SymbolOptions::default(), Reader::start().unwrap()).unwrap();
    let nowhere = Root("/no/such/root".into());
    Assembler::new(options, symbolizer, open_cgroups().unwrap(), Owners::new(nowhere))
}
