//! Turns cells into rows: decodes the cells, and names their addresses as of the time of the
//! samples.

pub(crate) mod chains;
mod code;
mod rows;

use std::{ops::Range, sync::Arc};

use precise_common::{cell::Cell, stack::none};
use rustc_hash::FxHashMap;

use crate::run::cell_slot::CellSlot;
use crate::run::deadline::Deadline;
use crate::symbols::{
    CodeQuery, DataQuery, Processes, Symbolizer, Wait,
    cgroup::{Cgroups, Hierarchy},
    container::Owners,
    kernel_images::KernelImages,
    mapping::Mapped,
};
pub(crate) use code::{CodeKey, code_key};
use precise_code::ReturnSite;
use precise_model::digits::counted;
use precise_model::{Capture, CodeLocation, DataLocation, Dimension, Interner, LocationId, Row};
use precise_model::{Chain, Stack};
use precise_model::{Name, NameId, Names, Reason};
use precise_records::Chains;
use precise_records::record::MappedFileId;
use rows::Awaited;
pub(crate) use rows::BegunRows;

/// Minimum number of rows that are added up before there are cells for all of them.
const MIN_ROWS: usize = 1 << 16;

/// Options of an [`Assembler`].
#[derive(Clone, Debug)]
pub struct AssemblerOptions {
    /// Dimensions of the rows. Cells that differ only in other fields become one row.
    pub dimensions: Vec<Dimension>,
    /// Granule of data addresses in bytes; data addresses are multiples of it.
    pub address_granule: u64,
    /// The hierarchy of the cgroup ids in the cells.
    pub hierarchy: Hierarchy,
    /// Name of the machine that is sampled; empty if it is not known.
    pub host: String,
    /// What the cells of each event have in the place of the data address, if a run groups by both
    /// data addresses and call chains; empty in others.
    pub slots: Vec<CellSlot>,
}

/// Turns the cells of each epoch into rows, and addresses into locations.
#[derive(Debug)]
pub struct Assembler {
    options: AssemblerOptions,
    /// The tables that rows refer to. Its own list of rows stays empty.
    named: Capture,
    kernel_images: KernelImages,
    code_ids: FxHashMap<CodeKey, LocationId>,
    /// The image and the address of each data location, in the order of their ids.
    data_keys: Vec<(u64, u64)>,
    data_ids: Interner,
    stack_ids: Interner,
    /// What the code says about the return addresses of chains, so that each is read only once.
    return_sites: FxHashMap<CodeKey, Option<ReturnSite>>,
    /// `None` if nothing is named any more.
    symbolizer: Option<Symbolizer>,
    cgroups: Cgroups,
    owners: Owners,
    deadline: Deadline,
    /// The locations that were asked for, and are not in the tables yet.
    awaited: Awaited,
    /// Whether names that are not known yet are looked up.
    looks_up: bool,
    ambiguous: u64,
    /// The bytes of the callers of all stacks, in the table and in its index, and of the functions
    /// that all locations are inlined into.
    lists: usize,
    /// Number of samples that were not named before the run had to end.
    unnamed: u64,
    /// Number of samples that were not named because naming was behind.
    unnamed_behind: u64,
}

/// The cells of one event in one epoch.
#[derive(Clone, Copy, Debug)]
pub struct EpochCells<'a> {
    /// Index of the epoch.
    pub epoch: u32,
    /// Index of the event.
    pub event: u16,
    /// `(cpu, cell)`.
    pub cells: &'a [(usize, Cell)],
    /// The time window of the samples, on the sideband's clock.
    pub window: &'a Range<u64>,
    /// The time from which on the program unwound by tables that may be older than the mappings: it
    /// is before the window. The sideband's clock.
    pub unwound_since: u64,
    /// The call chains that the cells refer to.
    pub chains: &'a Chains,
    /// The id of each cell's call chain. `None`: if the run groups by call chain, the id is where
    /// the cell's data address would be.
    pub stacks: Option<&'a [u64]>,
}

impl EpochCells<'_> {
    /// Returns the id of the call chain of the cell with this index.
    fn stack(&self, index: usize) -> u64 {
        match self.stacks {
            Some(stacks) => stacks.get(index).copied().unwrap_or(none::NOT_TAKEN),
            None => self.cells.get(index).map_or(none::NOT_TAKEN, |(_, cell)| cell.key.address),
        }
    }
}

impl Assembler {
    /// Creates an assembler, which owns the symbolizer.
    pub fn new(options: AssemblerOptions, symbolizer: Symbolizer, cgroups: Cgroups, owners: Owners) -> Self {
        Self { symbolizer: Some(symbolizer), cgroups, owners, ..Self::unnamed(options) }
    }

    /// Creates an assembler that names nothing: each name has the reason [`Reason::NotInTime`].
    pub fn unnamed(options: AssemblerOptions) -> Self {
        // What the columns of a row say, beside what is in the row.
        let mut named = Capture::default();
        named.meta.machine.host.clone_from(&options.host);
        named.meta.dimensions.clone_from(&options.dimensions);
        Self {
            options,
            named,
            kernel_images: KernelImages::default(),
            code_ids: FxHashMap::default(),
            data_keys: Vec::new(),
            data_ids: Interner::default(),
            stack_ids: Interner::default(),
            return_sites: FxHashMap::default(),
            symbolizer: None,
            cgroups: Cgroups::recorded(),
            owners: Owners::recorded(),
            deadline: Deadline::default(),
            awaited: Awaited::default(),
            looks_up: true,
            ambiguous: 0,
            lists: 0,
            unnamed: 0,
            unnamed_behind: 0,
        }
    }

    /// Sets the deadline after which addresses are no longer looked up.
    pub fn end_by(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }

    /// Sets whether names that are not known yet are looked up. Those that were not are looked up
    /// when they are needed again.
    pub(crate) fn look_up(&mut self, looks_up: bool) {
        if looks_up && !self.looks_up {
            self.forget();
        }
        self.looks_up = looks_up;
    }

    /// Returns the options.
    pub fn options(&self) -> &AssemblerOptions {
        &self.options
    }

    /// Opens the files that were mapped for the first time, while they still exist, if the run
    /// needs names from them.
    pub fn open_early(&self, processes: &mut Processes, wait: Wait) {
        let files = processes.take_new_files();
        let named = [Dimension::Ip, Dimension::Address].iter().any(|dimension| self.has(*dimension));
        if let Some(symbolizer) = self.symbolizer.as_ref().filter(|_| named && !files.is_empty()) {
            symbolizer.open_early(files, wait);
        }
    }

    /// Stores the path of a new cgroup.
    pub fn cgroup_made(&mut self, id: u64, path: &str) {
        self.cgroups.made(id, path);
    }

    /// Sets where the parts of a recorded kernel were in memory.
    pub fn set_kernel_images(&mut self, images: KernelImages) {
        // Those of samples that were taken before.
        self.receive_all_names();
        self.kernel_images = images;
    }

    /// Returns the tables that rows refer to, including metadata that callers added. Its own list
    /// of rows is empty.
    pub fn named(&mut self) -> &mut Capture {
        &mut self.named
    }

    /// Discards names and locations to bound the memory. No row may refer to them any more, and no
    /// rows may be begun.
    pub fn forget(&mut self) {
        self.receive_all_names();
        self.named.names.clear();
        self.named.code.clear();
        self.named.data.clear();
        self.named.stacks.clear();
        self.stack_ids.clear();
        self.return_sites.clear();
        self.code_ids.clear();
        self.data_keys.clear();
        self.data_ids.clear();
        // They are looked up again for each epoch.
        self.named.meta.owners.clear();
        self.lists = 0;
    }

    /// Forgets the files, answers and cgroups that nobody asked for since the last call.
    pub fn forget_unused(&mut self) {
        if let Some(symbolizer) = &self.symbolizer {
            symbolizer.forget_unused();
        }
        self.cgroups.forget_unused();
        self.owners.forget_unused();
    }

    /// Returns whether a name of the row was not looked up in time.
    fn lacks_names(&self, row: &Row) -> bool {
        let late = |name: Name| name == Name::Unknown(Reason::NotInTime);
        let code =
            |id: &LocationId| self.named.code.get(*id as usize).is_some_and(|code| late(code.function));
        let data =
            |id: &LocationId| self.named.data.get(*id as usize).is_some_and(|data| late(data.variable));
        let callers = |stack: Chain| match stack {
            Chain::Known(id) => {
                self.named.stacks.get(id as usize).is_some_and(|s| s.callers.iter().any(code))
            }
            Chain::Unknown(_) => false,
        };
        late(row.process)
            || late(row.cgroup)
            || row.code.as_ref().is_some_and(code)
            || row.data.as_ref().is_some_and(data)
            || callers(row.stack)
    }

    fn has(&self, dimension: Dimension) -> bool {
        self.options.dimensions.contains(&dimension)
    }

    /// Returns the data location of each cell, and the queries for the locations that are new.
    fn locate_data(
        &mut self,
        cells: EpochCells<'_>,
        processes: &Processes,
    ) -> (Vec<Option<LocationId>>, Vec<DataQuery>) {
        let mut ids = vec![None; cells.cells.len()];
        let mut queries = Vec::new();
        // Without this dimension the field may hold something else.
        if !self.has(Dimension::Address) {
            return (ids, queries);
        }
        let granule = self.options.address_granule;
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
            let known = self.data_keys.len();
            *id = Some(self.data_ids.intern(&mut self.data_keys, (space, address)));
            if self.data_keys.len() > known {
                queries.push(query);
            }
        }
        (ids, queries)
    }

    fn resolve_data(&mut self, queries: Vec<DataQuery>) {
        let names = &mut self.named.names;
        let mut queries = queries.into_iter();
        if let Some(symbolizer) = &mut self.symbolizer {
            let go_on = go_on(self.looks_up, &self.deadline);
            self.named.data.extend(symbolizer.resolve_data_while(names, &mut queries, go_on));
        }
        let mappings = self.symbolizer.is_some();
        self.named.data.extend(queries.map(|query| late_data(&query, mappings)));
    }

    /// Returns the paths of the cells' cgroups, by id.
    fn cgroup_paths(&mut self, cells: EpochCells<'_>) -> FxHashMap<u64, Result<Arc<str>, Reason>> {
        let mut found = FxHashMap::default();
        if !self.has(Dimension::Cgroup) {
            return found;
        }
        for (_, cell) in cells.cells {
            let id = cell.key.cgroup;
            found.entry(id).or_insert_with(|| {
                if self.symbolizer.is_none() {
                    return Err(Reason::NotInTime);
                }
                let path = self.cgroups.path(self.options.hierarchy, id)?;
                // Now, because the name of a container disappears with the container.
                self.keep_owner(&path);
                Ok(path)
            });
        }
        found
    }

    fn keep_owner(&mut self, path: &str) {
        let owners = &mut self.named.meta.owners;
        if let Err(at) = owners.binary_search_by(|owner| owner.path.as_str().cmp(path))
            && let Some(owner) = self.owners.of(path)
        {
            owners.insert(at, (*owner).clone());
        }
    }

    /// Returns the memory of the locations, call chains and names that are remembered, in bytes,
    /// about: each is in a table and in its index.
    pub fn remembered_bytes(&self) -> usize {
        /// An entry of a table and of an index, which may be half full.
        const TABLES: usize = 4;
        let named = &self.named;
        TABLES * (named.code.len() + self.awaited.code) * size_of::<(CodeLocation, CodeKey)>()
            + TABLES * (named.data.len() + self.awaited.data) * size_of::<(DataLocation, u64)>()
            + TABLES * named.stacks.len() * size_of::<Stack>()
            + TABLES * self.return_sites.len() * size_of::<(CodeKey, Option<ReturnSite>)>()
            + self.lists
            + named.names.bytes()
    }

    /// Returns the number of samples whose address may belong to two images of one process.
    pub fn ambiguous(&self) -> u64 {
        self.ambiguous
    }

    /// Returns the number of samples that were not named before the run had to end.
    pub fn late(&self) -> u64 {
        self.unnamed
    }

    /// Returns the number of samples that were not named because naming was behind.
    pub(crate) fn behind(&self) -> u64 {
        self.unnamed_behind
    }

    /// Returns the tables that the rows refer to, the notes of the symbolizer, and the symbolizer,
    /// whose end has begun: dropping it waits for the end.
    pub fn finish(mut self) -> (Capture, Vec<String>, Option<Symbolizer>) {
        let mut notes = self.symbolizer.as_mut().map(Symbolizer::take_notes).unwrap_or_default();
        let not_opened = self.symbolizer.as_ref().map_or(0, Symbolizer::not_opened);
        if not_opened > 0 {
            notes.push(format!("{not_opened} mapped files could not be opened"));
        }
        if let Some(symbolizer) = &self.symbolizer {
            symbolizer.begin_to_end();
        }
        (self.named, notes, self.symbolizer)
    }
}

/// Returns whether to look up more names, as a question to ask again: a run that is over stops.
fn go_on(looks_up: bool, deadline: &Deadline) -> impl Fn() -> bool {
    move || looks_up && !deadline.names_are_over()
}

/// Returns the reason why a location that was not looked up has no names: the one why its mapping
/// is unknown, if the mappings are known (`mappings`) and it has none.
fn late_reason<T>(kernel: bool, mapping: &Result<T, Reason>, mappings: bool) -> Reason {
    match mapping {
        Err(reason) if mappings && !kernel => *reason,
        _ => Reason::NotInTime,
    }
}

/// Returns the location of code that was not looked up in time. The file and the offset in it are
/// known from the mapping. `mappings` says whether mappings were known.
pub(crate) fn late_code(names: &mut Names, query: &CodeQuery, mappings: bool) -> CodeLocation {
    let late = Name::Unknown(late_reason(query.kernel, &query.mapping, mappings));
    let file = query.mapping.as_ref().ok().filter(|_| !query.kernel);
    let file = file.and_then(|mapped| Some((mapped, mapped.mapping.image.as_ref()?)));
    CodeLocation {
        kernel: query.kernel,
        runtime_address: query.address,
        module: file.map_or(late, |(_, image)| Name::Known(names.intern(&image.name()))),
        build_id: match file.map(|(_, image)| image.id) {
            Some(MappedFileId::BuildId(id)) => names.intern(&id.hex()),
            _ => NameId::default(),
        },
        file_offset: file.map_or(0, |(mapped, _)| mapped.file_offset(query.address)),
        function: late,
        function_offset: 0,
        source: late,
        line: 0,
        inlined_into: Vec::new(),
    }
}

/// Returns the location of data that was not looked up in time. `mappings` says whether mappings
/// were known.
pub(crate) fn late_data(query: &DataQuery, mappings: bool) -> DataLocation {
    let late = Name::Unknown(late_reason(query.kernel, &query.mapping, mappings));
    DataLocation {
        runtime_address: query.address,
        region: late,
        file_offset: 0,
        variable: late,
        variable_offset: 0,
    }
}

/// Returns the note on samples that were not named in time.
pub(crate) fn late_note(samples: u64) -> Option<String> {
    (samples > 0).then(|| {
        format!(
            "{} not named in time, because the run had to end before all names were looked up: kept with \
             the reason `{}`",
            counted(samples, "sample"),
            Reason::NotInTime.as_str()
        )
    })
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
