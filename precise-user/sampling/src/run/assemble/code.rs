//! Finds the code locations of instructions and callers. Many cells have the same instruction, and
//! most chains the same callers, so each address of a process is looked up once per window.

use std::ops::Range;
use std::sync::Arc;

use precise_model::{CodeLocation, Dimension, LocationId, Reason};
use rustc_hash::FxHashMap;

use super::{Assembler, EpochCells, go_on, late_code};
use crate::symbols::mapping::Image;
use crate::symbols::{CodeQuery, Processes};

/// The identity of a code location, so that each location is resolved only once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CodeKey {
    Kernel(u64),
    /// An instruction at an offset of a file, the same in all processes.
    File(Arc<Image>, u64),
    /// Code without a file, in one generation of one process.
    Private(u64, u64),
    Unknown(u32, u64, Reason),
}

/// Returns the identity of the location that the query asks for.
pub(crate) fn code_key(query: &CodeQuery, pid: u32) -> CodeKey {
    if query.kernel {
        return CodeKey::Kernel(query.address);
    }
    match &query.mapping {
        Ok(mapped) => match &mapped.mapping.image {
            Some(image) => CodeKey::File(image.clone(), mapped.file_offset(query.address)),
            None => CodeKey::Private(mapped.generation, query.address),
        },
        Err(reason) => CodeKey::Unknown(pid, query.address, *reason),
    }
}

/// A location of code that a process had in a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundCode {
    pub id: LocationId,
    /// The generation of the process that has it mapped.
    pub generation: Option<u64>,
    /// Whether an earlier program of the process may have had the address instead.
    ambiguous: bool,
}

/// What was found in one window, and the queries whose answers already have ids.
#[derive(Debug)]
pub(super) struct CodeBatch<'a> {
    pub processes: &'a Processes,
    window: &'a Range<u64>,
    /// By process, whether it is kernel code, and address.
    found: FxHashMap<(u32, bool, u64), FoundCode>,
    pub queries: Vec<CodeQuery>,
}

impl<'a> CodeBatch<'a> {
    pub fn new(processes: &'a Processes, window: &'a Range<u64>) -> Self {
        Self { processes, window, found: FxHashMap::default(), queries: Vec::new() }
    }
}

/// The code location of each cell, and the generation of the process that has it mapped.
pub(super) type CodeOfCells = (Vec<Option<LocationId>>, Vec<Option<u64>>);

impl Assembler {
    /// Returns the code of each cell.
    pub(super) fn locate_code(&mut self, cells: EpochCells<'_>, batch: &mut CodeBatch<'_>) -> CodeOfCells {
        let mut ids = vec![None; cells.cells.len()];
        let mut images = vec![None; cells.cells.len()];
        if !self.has(Dimension::Ip) {
            return (ids, images);
        }
        for (index, (_, cell)) in cells.cells.iter().enumerate() {
            let found = self.find_code(batch, cell.key.pid(), cell.key.class().kernel(), cell.key.ip);
            if found.ambiguous {
                self.ambiguous += u64::from(cell.count);
            }
            images[index] = found.generation;
            ids[index] = Some(found.id);
        }
        (ids, images)
    }

    /// Returns the location of an address, with the id that it will have when the batch is
    /// resolved.
    pub(super) fn find_code(
        &mut self,
        batch: &mut CodeBatch<'_>,
        pid: u32,
        kernel: bool,
        address: u64,
    ) -> FoundCode {
        let CodeBatch { processes, window, found, queries } = batch;
        *found.entry((pid, kernel, address)).or_insert_with(|| {
            let query = match kernel {
                true => CodeQuery::kernel(address),
                false => CodeQuery::user(processes, pid, address, window),
            };
            let (generation, ambiguous) = (query.generation(), query.ambiguous);
            let next = (self.named.code.len() + self.awaited.code + queries.len()) as LocationId;
            // The id is the index of the future answer; entering it now keeps duplicates out of the
            // batch.
            let id = *self.code_ids.entry(code_key(&query, pid)).or_insert_with(|| {
                queries.push(query);
                next
            });
            FoundCode { id, generation, ambiguous }
        })
    }

    /// Waits for the answers of all queries of the batch.
    pub(super) fn resolve(&mut self, batch: &mut CodeBatch<'_>) {
        let mut queries = std::mem::take(&mut batch.queries).into_iter();
        if let Some(symbolizer) = &mut self.symbolizer {
            let go_on = go_on(self.looks_up, &self.deadline);
            let found = symbolizer.resolve_code_while(&mut self.named.names, &mut queries, go_on);
            self.add_code(found);
        }
        let mappings = self.symbolizer.is_some();
        let names = &mut self.named.names;
        self.named.code.extend(queries.map(|query| late_code(names, &query, mappings)));
    }

    /// Adds the answers of the symbolizer to the table.
    pub(super) fn add_code(&mut self, mut found: Vec<CodeLocation>) {
        for location in &mut found {
            if location.kernel {
                self.kernel_images.describe(location, &mut self.named.names);
            }
            self.lists += size_of_val(location.inlined_into.as_slice());
        }
        self.named.code.extend(found);
    }
}
