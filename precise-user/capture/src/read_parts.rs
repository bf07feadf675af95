//! The parts of rows that consist of several columns.

use rustc_hash::FxHashMap;

use super::file::Column;
use super::known_callers::{ChainCallers, KnownCallers};
use super::limits::ReadLimits;
use super::read_columns::{GroupReader, OpenColumn};
use super::read_error::Stop;
use super::read_values::{FlagColumn, NameColumn, NumberColumn, TextColumn};
use super::stack_json::{self, JsonFrame};
use precise_model::{
    Capture, Chain, ChainEnd, CodeLocation, DataLocation, Frame, Interner, LocationId, Name, NameId, Names,
    Projection, Reason, RowPart, Stack, StackId,
};

/// Returns the bytes that an item takes in a table of an [`Interner`]: in the table, in the larger
/// table that it may be copied to, and in the index.
const fn in_a_table<T>() -> u64 {
    (3 * size_of::<T>() + Interner::BYTES) as u64
}

/// The tables of a capture that is being read, whose items are found by their contents.
#[derive(Default)]
pub(super) struct LocationTables {
    code: Interner,
    data: Interner,
    stacks: Interner,
    /// The callers of chains, by their texts.
    pub callers: KnownCallers,
    /// The bytes that the tables take.
    pub bytes: u64,
}

impl LocationTables {
    fn code(&mut self, capture: &mut Capture, location: CodeLocation) -> LocationId {
        let (before, lists) = (capture.code.len(), size_of_val(location.inlined_into.as_slice()));
        let id = self.code.intern(&mut capture.code, location);
        if capture.code.len() > before {
            self.bytes += in_a_table::<CodeLocation>() + 2 * lists as u64;
        }
        id
    }

    fn data(&mut self, capture: &mut Capture, location: DataLocation) -> LocationId {
        let before = capture.data.len();
        let id = self.data.intern(&mut capture.data, location);
        if capture.data.len() > before {
            self.bytes += in_a_table::<DataLocation>();
        }
        id
    }

    /// Returns the locations of callers, which are added to the capture if they are new.
    fn callers(&mut self, capture: &mut Capture, callers: &ChainCallers) -> Vec<LocationId> {
        let mut ids;
        match callers {
            ChainCallers::Own(callers) => {
                ids = Vec::with_capacity(callers.len());
                ids.extend(callers.iter().map(|caller| self.code(capture, caller.clone())));
            }
            ChainCallers::Known(places) => {
                ids = Vec::with_capacity(places.len());
                for place in places {
                    let Some((location, id)) = self.callers.get(*place) else { continue };
                    ids.push(match id {
                        Some(id) => id,
                        None => {
                            let location = location.clone();
                            let id = self.code(capture, location);
                            self.callers.set_id(*place, id);
                            id
                        }
                    });
                }
            }
        }
        ids
    }

    fn stack(&mut self, capture: &mut Capture, stack: Stack) -> StackId {
        let (before, lists) = (capture.stacks.len(), size_of_val(stack.callers.as_slice()));
        let id = self.stacks.intern(&mut capture.stacks, stack);
        if capture.stacks.len() > before {
            self.bytes += in_a_table::<Stack>() + 2 * lists as u64;
        }
        id
    }
}

/// A process or a thread: its number and its name.
pub(super) struct TaskColumns {
    number: NumberColumn<u32>,
    name: NameColumn,
}

impl TaskColumns {
    pub fn open(group: &GroupReader<'_>, number: Column, name: [Column; 2]) -> Result<Self, Stop> {
        Ok(Self { number: NumberColumn::open(group, number)?, name: NameColumn::open(group, name)? })
    }

    pub fn read(&mut self, rows: usize, names: &mut Names) -> Result<(), String> {
        self.number.read(rows)?;
        self.name.read(rows, names)
    }

    pub fn visit<'a>(&'a self, all: &mut Vec<&'a OpenColumn>) {
        self.number.visit(all);
        self.name.visit(all);
    }

    pub fn get(&self, i: usize) -> (u32, Name) {
        (self.number.get(i).unwrap_or_default(), self.name.get(i))
    }
}

/// The columns of a code location.
pub(super) struct CodeColumns {
    address: NumberColumn<u64>,
    module: NameColumn,
    file_offset: NumberColumn<u64>,
    function: NameColumn,
    place: Option<PlaceColumns>,
    line: Option<LineColumns>,
    inlined: Option<TextColumn<Vec<Frame>>>,
    /// The location of the row before, which many rows share.
    last: Option<(CodeKey, LocationId)>,
    /// The locations so far, by what distinguishes them within the row group.
    known: FxHashMap<CodeKey, LocationId>,
}

/// Where exactly an instruction is.
struct PlaceColumns {
    build_id: TextColumn<NameId>,
    function_offset: NumberColumn<u64>,
}

struct LineColumns {
    source: NameColumn,
    line: NumberColumn<u32>,
}

/// A code location, with texts of the row group by their places.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct CodeKey {
    kernel: bool,
    address: u64,
    file_offset: u64,
    function_offset: u64,
    module: Name,
    function: Name,
    build_id: NameId,
    source: Name,
    line: u32,
    inlined: Option<u32>,
}

impl CodeColumns {
    /// Opens the columns of these parts; `None` if no part needs the code.
    pub fn open(group: &GroupReader<'_>, parts: Projection) -> Result<Option<Self>, Stop> {
        if !parts.has_any(Projection::CODE) {
            return Ok(None);
        }
        let place = match parts.has(RowPart::Instruction) {
            true => Some(PlaceColumns {
                build_id: TextColumn::open(group, Column::BuildId)?,
                function_offset: NumberColumn::open(group, Column::FunctionOffset)?,
            }),
            false => None,
        };
        let line = match parts.has(RowPart::Line) {
            true => Some(LineColumns {
                source: NameColumn::open(group, [Column::SourceFile, Column::SourceReason])?,
                line: NumberColumn::open(group, Column::Line)?,
            }),
            false => None,
        };
        let inlined = match parts.has(RowPart::Inlined) {
            true => Some(TextColumn::open(group, Column::Inlined)?),
            false => None,
        };
        Ok(Some(Self {
            address: NumberColumn::open(group, Column::Ip)?,
            module: NameColumn::open(group, [Column::Module, Column::ModuleReason])?,
            file_offset: NumberColumn::open(group, Column::FileOffset)?,
            function: NameColumn::open(group, [Column::Function, Column::FunctionReason])?,
            place,
            line,
            inlined,
            last: None,
            known: FxHashMap::default(),
        }))
    }

    pub fn read(&mut self, rows: usize, names: &mut Names, longest: usize) -> Result<(), String> {
        self.address.read(rows)?;
        self.module.read(rows, names)?;
        self.file_offset.read(rows)?;
        self.function.read(rows, names)?;
        if let Some(place) = &mut self.place {
            place.build_id.read(rows, |text| Ok(names.intern(text)))?;
            place.function_offset.read(rows)?;
        }
        if let Some(line) = &mut self.line {
            line.source.read(rows, names)?;
            line.line.read(rows)?;
        }
        if let Some(inlined) = &mut self.inlined {
            inlined.read(rows, |text| frames(short(Column::Inlined, text, longest)?, names))?;
        }
        Ok(())
    }

    pub fn visit<'a>(&'a self, all: &mut Vec<&'a OpenColumn>) {
        self.address.visit(all);
        self.module.visit(all);
        self.file_offset.visit(all);
        self.function.visit(all);
        if let Some(place) = &self.place {
            place.build_id.visit(all);
            place.function_offset.visit(all);
        }
        if let Some(line) = &self.line {
            line.source.visit(all);
            line.line.visit(all);
        }
        if let Some(inlined) = &self.inlined {
            inlined.visit(all);
        }
    }

    /// Returns the location of a row, which is added to the capture if it is new.
    pub fn get(
        &mut self,
        i: usize,
        kernel: bool,
        capture: &mut Capture,
        tables: &mut LocationTables,
    ) -> Option<LocationId> {
        // The kernel may hide the address of its code, and still name it.
        let address = self.address.get(i);
        if address.is_none() && !self.module.has(i) {
            return None;
        }
        let key = self.key(i, kernel, address.unwrap_or_default());
        if let Some((_, id)) = self.last.filter(|(last, _)| *last == key) {
            return Some(id);
        }
        let id = match self.known.get(&key) {
            Some(id) => *id,
            None => {
                let id = tables.code(capture, self.location(i, &key));
                self.known.insert(key, id);
                id
            }
        };
        self.last = Some((key, id));
        Some(id)
    }

    fn key(&self, i: usize, kernel: bool, address: u64) -> CodeKey {
        let function = self.function.get(i);
        let file_offset = self.file_offset.get(i).unwrap_or_default();
        let not_recorded = Name::Unknown(Reason::NotRecorded);
        // Code without a symbol is called by its place.
        let nameless = matches!(function, Name::Unknown(_));
        let exact = self.place.is_some();
        CodeKey {
            kernel,
            address: if exact || (nameless && kernel) { address } else { 0 },
            file_offset: if exact || nameless { file_offset } else { 0 },
            function_offset: self.place.as_ref().and_then(|p| p.function_offset.get(i)).unwrap_or_default(),
            module: self.module.get(i),
            function,
            build_id: self.place.as_ref().and_then(|p| p.build_id.get(i)).copied().unwrap_or_default(),
            source: self.line.as_ref().map_or(not_recorded, |line| line.source.get(i)),
            line: self.line.as_ref().and_then(|line| line.line.get(i)).unwrap_or_default(),
            inlined: self.inlined.as_ref().and_then(|inlined| inlined.key(i)),
        }
    }

    fn location(&self, i: usize, key: &CodeKey) -> CodeLocation {
        let CodeKey { kernel, address, file_offset, function_offset, module, .. } = *key;
        let CodeKey { function, build_id, source, line, .. } = *key;
        let inlined = self.inlined.as_ref().and_then(|inlined| inlined.get(i));
        CodeLocation {
            kernel,
            runtime_address: address,
            module,
            build_id,
            file_offset,
            function,
            function_offset,
            source,
            line,
            inlined_into: inlined.cloned().unwrap_or_default(),
        }
    }
}

/// The columns of a call chain.
pub(super) struct StackColumns {
    callers: TextColumn<ChainCallers>,
    reason: TextColumn<Reason>,
    elsewhere: FlagColumn,
    cut: FlagColumn,
    end: TextColumn<Option<ChainEnd>>,
    /// The stacks that were built so far, by the place of the text, because many rows have the same
    /// chain.
    known: FxHashMap<(u32, bool, bool, Option<ChainEnd>), StackId>,
}

impl StackColumns {
    pub fn open(group: &GroupReader<'_>) -> Result<Self, Stop> {
        Ok(Self {
            callers: TextColumn::open(group, Column::Stack)?,
            reason: TextColumn::open(group, Column::StackReason)?,
            elsewhere: FlagColumn::open(group, Column::StackElsewhere)?,
            cut: FlagColumn::open(group, Column::StackCut)?,
            end: TextColumn::open(group, Column::StackEnd)?,
            known: FxHashMap::default(),
        })
    }

    /// Reads the chains of the next rows. Callers are remembered in `known`.
    pub fn read(
        &mut self,
        rows: usize,
        names: &mut Names,
        known: &mut KnownCallers,
        limits: &ReadLimits,
    ) -> Result<(), String> {
        let (longest, most) = (limits.list(), limits.callers());
        self.callers
            .read_bytes(rows, |text| known.decode(short(Column::Stack, text, longest)?, names, most))?;
        self.reason.read(rows, |text| Ok(Reason::parse(text).unwrap_or(Reason::Failed)))?;
        self.elsewhere.read(rows)?;
        self.cut.read(rows)?;
        // A newer writer may have reasons that this version does not know.
        self.end.read(rows, |text| Ok(ChainEnd::parse(text)))
    }

    pub fn visit<'a>(&'a self, all: &mut Vec<&'a OpenColumn>) {
        self.callers.visit(all);
        self.reason.visit(all);
        self.elsewhere.visit(all);
        self.cut.visit(all);
        self.end.visit(all);
    }

    /// Returns the chain of a row, which is added to the capture if it is new.
    pub fn get(&mut self, i: usize, capture: &mut Capture, tables: &mut LocationTables) -> Chain {
        let Some((key, callers)) = self.callers.key(i).zip(self.callers.get(i)) else {
            return Chain::Unknown(self.reason.get(i).copied().unwrap_or(Reason::NotRecorded));
        };
        let flag = |flags: &FlagColumn| flags.must(i).unwrap_or(false);
        let (elsewhere, cut) = (flag(&self.elsewhere), flag(&self.cut));
        let end = self.end.get(i).copied().flatten();
        let id = *self.known.entry((key, elsewhere, cut, end)).or_insert_with(|| {
            let callers = tables.callers(capture, callers);
            tables.stack(capture, Stack { callers, elsewhere, cut, end })
        });
        Chain::Known(id)
    }
}

/// The columns of a data location.
pub(super) struct DataColumns {
    address: NumberColumn<u64>,
    region: NameColumn,
    offset: NumberColumn<u64>,
    variable: NameColumn,
    variable_offset: NumberColumn<u64>,
}

impl DataColumns {
    pub fn open(group: &GroupReader<'_>) -> Result<Self, Stop> {
        Ok(Self {
            address: NumberColumn::open(group, Column::Address)?,
            region: NameColumn::open(group, [Column::Region, Column::RegionReason])?,
            offset: NumberColumn::open(group, Column::RegionOffset)?,
            variable: NameColumn::open(group, [Column::Variable, Column::VariableReason])?,
            variable_offset: NumberColumn::open(group, Column::VariableOffset)?,
        })
    }

    pub fn read(&mut self, rows: usize, names: &mut Names) -> Result<(), String> {
        self.address.read(rows)?;
        self.region.read(rows, names)?;
        self.offset.read(rows)?;
        self.variable.read(rows, names)?;
        self.variable_offset.read(rows)
    }

    pub fn visit<'a>(&'a self, all: &mut Vec<&'a OpenColumn>) {
        self.address.visit(all);
        self.region.visit(all);
        self.offset.visit(all);
        self.variable.visit(all);
        self.variable_offset.visit(all);
    }

    /// Returns the location of a row, which is added to the capture if it is new.
    pub fn get(&self, i: usize, capture: &mut Capture, tables: &mut LocationTables) -> Option<LocationId> {
        let location = DataLocation {
            runtime_address: self.address.get(i)?,
            region: self.region.get(i),
            file_offset: self.offset.get(i).unwrap_or_default(),
            variable: self.variable.get(i),
            variable_offset: self.variable_offset.get(i).unwrap_or_default(),
        };
        Some(tables.data(capture, location))
    }
}

/// Returns a text with a list if it is not too long to be parsed.
fn short<T: AsRef<[u8]> + ?Sized>(column: Column, text: &T, longest: usize) -> Result<&T, String> {
    let length = text.as_ref().len();
    if length <= longest {
        return Ok(text);
    }
    Err(format!("the column {} has a text of {length} bytes; {longest} are possible", column.name()))
}

fn frames(text: &str, names: &mut Names) -> Result<Vec<Frame>, String> {
    let frames: Vec<JsonFrame> =
        serde_json::from_str(text).map_err(|e| format!("the column inlined cannot be parsed: {e}"))?;
    Ok(stack_json::frames(&frames, names))
}
