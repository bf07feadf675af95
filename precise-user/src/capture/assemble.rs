//! From cells to rows: what a cell's numbers mean, at the time they were taken.

use std::{ops::Range, sync::Arc};

use precise_common::cell::Cell;
use rustc_hash::FxHashMap;

use super::model::{CodeLocation, DataLocation, Dimension, LocationId, Measures, Name, Names, Reason, Row};
use crate::symbols::{
    CodeQuery, DataQuery, Processes, Symbolizer,
    cgroup::{Cgroups, Hierarchy},
    mapping::{Image, Mapped},
};

/// What an assembler needs to know of the run.
#[derive(Clone, Debug)]
pub struct AssemblerOptions {
    /// What rows are grouped by. Cells that differ only in something else become one row.
    pub dimensions: Vec<Dimension>,
    /// Data addresses are multiples of this.
    pub address_granule: u64,
    /// The hierarchy that the cells' cgroup ids belong to.
    pub hierarchy: Hierarchy,
}

/// What identifies a code location, so that each is resolved once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CodeKey {
    Kernel(u64),
    /// The same instruction of a file, in whatever process.
    File(Arc<Image>, u64),
    /// Code without a file: of one address space only.
    Private(u64, u64),
    Unknown(u32, u64, Reason),
}

/// Everything of a row but its measures and its epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RowKey {
    event: u16,
    cpu: Option<u16>,
    cgroup_id: u64,
    pid: u32,
    tid: u32,
    process: Name,
    kernel: bool,
    code: Option<LocationId>,
    data: Option<LocationId>,
    data_src: u64,
    latency_bucket: Option<u8>,
    exact: bool,
}

/// Turns the cells of each epoch into rows, and addresses into locations.
#[derive(Debug)]
pub struct Assembler {
    options: AssemblerOptions,
    names: Names,
    code: Vec<CodeLocation>,
    data: Vec<DataLocation>,
    code_ids: FxHashMap<CodeKey, LocationId>,
    data_ids: FxHashMap<(u64, u64), LocationId>,
    symbolizer: Symbolizer,
    cgroups: Cgroups,
    ambiguous: u64,
}

/// One epoch's cells of one event.
#[derive(Clone, Copy, Debug)]
pub struct EpochCells<'a> {
    /// Index of the epoch.
    pub epoch: u32,
    /// Index of the event.
    pub event: u16,
    /// `(cpu, cell)`.
    pub cells: &'a [(usize, Cell)],
    /// When they were taken, on the sideband's clock.
    pub window: &'a Range<u64>,
}

impl Assembler {
    /// A new one; it owns the symbolizer.
    pub fn new(options: AssemblerOptions, symbolizer: Symbolizer, cgroups: Cgroups) -> Self {
        Self {
            options,
            names: Names::default(),
            code: Vec::new(),
            data: Vec::new(),
            code_ids: FxHashMap::default(),
            data_ids: FxHashMap::default(),
            symbolizer,
            cgroups,
            ambiguous: 0,
        }
    }

    /// Names what was mapped for the first time, while it is still there.
    pub fn open_early(&self, processes: &mut Processes) {
        let files = processes.take_new_files();
        if !files.is_empty() {
            self.symbolizer.open_early(files);
        }
    }

    /// Remembers the name of a cgroup that was made.
    pub fn cgroup_made(&mut self, id: u64, path: &str) {
        self.cgroups.made(id, path);
    }

    /// The rows of one event's cells.
    pub fn rows(&mut self, cells: EpochCells<'_>, processes: &Processes) -> Vec<Row> {
        let (code, images) = self.locate_code(cells, processes);
        let data = self.locate_data(cells, processes);
        let mut groups: FxHashMap<RowKey, Measures> = FxHashMap::default();
        let mut processes_seen: FxHashMap<(u32, Option<u64>), Name> = FxHashMap::default();
        for (index, (cpu, cell)) in cells.cells.iter().enumerate() {
            let key = &cell.key;
            let process = if self.has(Dimension::Process) || self.has(Dimension::Thread) {
                *processes_seen.entry((key.pid(), images[index])).or_insert_with(|| {
                    let named = match images[index] {
                        Some(generation) => processes.generation_name(key.pid(), generation, cells.window),
                        None => processes.process_name(key.pid(), cells.window),
                    };
                    named.map_or_else(Name::Unknown, |found| Name::Known(self.names.intern(&found.value)))
                })
            } else {
                Name::Unknown(Reason::NotRecorded)
            };
            let row = RowKey {
                event: cells.event,
                cpu: if self.has(Dimension::Cpu) { u16::try_from(*cpu).ok() } else { None },
                cgroup_id: key.cgroup,
                pid: key.pid(),
                tid: key.tid(),
                process,
                kernel: key.class().kernel(),
                code: code[index],
                data: data[index],
                data_src: key.class().data_src(),
                latency_bucket: key.class().latency_bucket().and_then(|bucket| u8::try_from(bucket).ok()),
                exact: key.class().exact(),
            };
            groups.entry(row).or_default().add(&Measures {
                count: cell.count.into(),
                period_sum: cell.period_sum,
                latency_sum: cell.latency_sum,
                latency_max: cell.latency_max,
            });
        }
        let cgroup_names = self.cgroup_names(&groups);
        let mut rows: Vec<Row> = groups
            .into_iter()
            .map(|(key, measures)| {
                let RowKey { event, cpu, cgroup_id, pid, tid, process, kernel, .. } = key;
                let RowKey { code, data, data_src, latency_bucket, exact, .. } = key;
                let cgroup =
                    cgroup_names.get(&cgroup_id).copied().unwrap_or(Name::Unknown(Reason::NotRecorded));
                Row {
                    epoch: cells.epoch,
                    event,
                    cpu,
                    cgroup_id,
                    cgroup,
                    pid,
                    tid,
                    process,
                    kernel,
                    code,
                    data,
                    data_src,
                    latency_bucket,
                    exact,
                    measures,
                }
            })
            .collect();
        // A capture of the same samples is the same file: hash maps have no order of their own.
        rows.sort_unstable_by_key(|row| {
            (
                row.code,
                row.data,
                row.cgroup_id,
                row.pid,
                row.tid,
                row.cpu,
                row.data_src,
                row.latency_bucket,
                row.exact,
            )
        });
        rows
    }

    fn has(&self, dimension: Dimension) -> bool {
        self.options.dimensions.contains(&dimension)
    }

    /// The code location of each cell, and the generation of the process whose image it is in.
    fn locate_code(
        &mut self,
        cells: EpochCells<'_>,
        processes: &Processes,
    ) -> (Vec<Option<LocationId>>, Vec<Option<u64>>) {
        let mut ids = vec![None; cells.cells.len()];
        let mut images = vec![None; cells.cells.len()];
        if !self.has(Dimension::Ip) {
            return (ids, images);
        }
        let mut pending: Vec<(CodeKey, CodeQuery)> = Vec::new();
        let mut keys = Vec::with_capacity(cells.cells.len());
        for (index, (_, cell)) in cells.cells.iter().enumerate() {
            let (ip, pid) = (cell.key.ip, cell.key.pid());
            let query = if cell.key.class().kernel() {
                CodeQuery::kernel(ip)
            } else {
                CodeQuery::user(processes, pid, ip, cells.window)
            };
            if query.ambiguous {
                self.ambiguous += u64::from(cell.count);
            }
            images[index] = query.mapping.as_ref().ok().map(|mapped| mapped.generation);
            let key = code_key(&query, pid);
            keys.push(key.clone());
            if !self.code_ids.contains_key(&key) {
                // The id is where the answer will be put; entering it now keeps duplicates out of the batch.
                let id = (self.code.len() + pending.len()) as LocationId;
                self.code_ids.insert(key.clone(), id);
                pending.push((key, query));
            }
        }
        let queries = pending.into_iter().map(|(_, query)| query).collect();
        self.code.extend(self.symbolizer.resolve_code(&mut self.names, queries));
        for (id, key) in ids.iter_mut().zip(&keys) {
            *id = self.code_ids.get(key).copied();
        }
        (ids, images)
    }

    fn locate_data(&mut self, cells: EpochCells<'_>, processes: &Processes) -> Vec<Option<LocationId>> {
        let mut ids = vec![None; cells.cells.len()];
        if !self.has(Dimension::Address) {
            return ids;
        }
        let granule = self.options.address_granule;
        let mut queries = Vec::new();
        for (id, (_, cell)) in ids.iter_mut().zip(cells.cells) {
            let address = cell.key.address;
            if address == 0 {
                continue;
            }
            let query = DataQuery::new(processes, cell.key.pid(), address, granule, cells.window);
            let space = if query.kernel {
                0
            } else {
                query.mapping.as_ref().map_or(!0, |mapped: &Mapped| mapped.generation)
            };
            let next = (self.data.len() + queries.len()) as LocationId;
            *id = Some(*self.data_ids.entry((space, address)).or_insert_with(|| {
                queries.push(query);
                next
            }));
        }
        self.data.extend(self.symbolizer.resolve_data(&mut self.names, queries));
        ids
    }

    fn cgroup_names(&mut self, groups: &FxHashMap<RowKey, Measures>) -> FxHashMap<u64, Name> {
        let mut found = FxHashMap::default();
        if !self.has(Dimension::Cgroup) {
            return found;
        }
        for key in groups.keys() {
            found.entry(key.cgroup_id).or_insert_with(|| {
                match self.cgroups.path(self.options.hierarchy, key.cgroup_id) {
                    Ok(path) => Name::Known(self.names.intern(&path)),
                    Err(reason) => Name::Unknown(reason),
                }
            });
        }
        found
    }

    /// Samples for which two images of one process could be meant.
    pub fn ambiguous(&self) -> u64 {
        self.ambiguous
    }

    /// The tables that the rows refer to, and what the symbolizer has to say.
    pub fn finish(mut self) -> (Names, Vec<CodeLocation>, Vec<DataLocation>, Vec<String>) {
        let mut notes = self.symbolizer.take_notes();
        let not_opened = self.symbolizer.not_opened();
        if not_opened > 0 {
            notes.push(format!("{not_opened} files could not be opened while they were mapped"));
        }
        (self.names, self.code, self.data, notes)
    }
}

fn code_key(query: &CodeQuery, pid: u32) -> CodeKey {
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
