//! The names, locations and call chains of a window, without those that no row refers to any more.

use rustc_hash::FxHashMap;

use precise_model::{
    Capture, Chain, CodeLocation, DataLocation, Frame, Interner, LocationId, Name, NameId, Names, Row, Stack,
    StackId,
};

/// The most memory that the tables of a window take, in bytes, about. A window whose names take
/// more has fewer epochs.
pub const MOST_BYTES: usize = 64 << 20;

/// The tables that rows refer to, each item once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub names: Names,
    pub code: Vec<CodeLocation>,
    pub data: Vec<DataLocation>,
    pub stacks: Vec<Stack>,
    interners: [Interner; 3],
    /// The bytes of the lists inside of locations and chains.
    lists: usize,
}

impl Tables {
    /// Returns the memory of the tables in bytes, about.
    pub fn bytes(&self) -> usize {
        self.names.bytes()
            + self.code.len() * (size_of::<CodeLocation>() + Interner::BYTES)
            + self.data.len() * (size_of::<DataLocation>() + Interner::BYTES)
            + self.stacks.len() * (size_of::<Stack>() + Interner::BYTES)
            + self.lists
    }
}

/// Copies what rows refer to from one set of tables to another.
pub(crate) struct Mover<'a> {
    from: RowTables<'a>,
    into: &'a mut Tables,
    /// The new ids, by the old ones.
    names: FxHashMap<NameId, NameId>,
    code: FxHashMap<LocationId, Option<LocationId>>,
    data: FxHashMap<LocationId, Option<LocationId>>,
    stacks: FxHashMap<StackId, Option<StackId>>,
}

/// Tables that rows refer to.
#[derive(Clone, Copy)]
pub(crate) struct RowTables<'a> {
    names: &'a Names,
    code: &'a [CodeLocation],
    data: &'a [DataLocation],
    stacks: &'a [Stack],
}

impl<'a> From<&'a Capture> for RowTables<'a> {
    fn from(capture: &'a Capture) -> Self {
        let Capture { names, code, data, stacks, .. } = capture;
        Self { names, code, data, stacks }
    }
}

impl<'a> From<&'a Tables> for RowTables<'a> {
    fn from(tables: &'a Tables) -> Self {
        let Tables { names, code, data, stacks, .. } = tables;
        Self { names, code, data, stacks }
    }
}

impl<'a> Mover<'a> {
    pub fn new(from: impl Into<RowTables<'a>>, into: &'a mut Tables) -> Self {
        let (names, code) = (FxHashMap::default(), FxHashMap::default());
        let (data, stacks) = (FxHashMap::default(), FxHashMap::default());
        Self { from: from.into(), into, names, code, data, stacks }
    }

    /// Returns a row that refers to the new tables.
    pub fn row(&mut self, row: &Row) -> Row {
        Row {
            cgroup: self.name(row.cgroup),
            process: self.name(row.process),
            thread: self.name(row.thread),
            code: row.code.and_then(|id| self.code(id)),
            data: row.data.and_then(|id| self.data(id)),
            stack: match row.stack {
                Chain::Known(id) => self.stack(id).map_or(Chain::NONE, Chain::Known),
                unknown @ Chain::Unknown(_) => unknown,
            },
            ..*row
        }
    }

    fn name_id(&mut self, id: NameId) -> NameId {
        let Self { from, into, names, .. } = self;
        *names.entry(id).or_insert_with(|| into.names.intern(from.names.get(id)))
    }

    fn name(&mut self, name: Name) -> Name {
        match name {
            Name::Known(id) => Name::Known(self.name_id(id)),
            unknown @ Name::Unknown(_) => unknown,
        }
    }

    fn code(&mut self, id: LocationId) -> Option<LocationId> {
        if let Some(known) = self.code.get(&id) {
            return *known;
        }
        let moved = self.from.code.get(id as usize).map(|old| {
            let frames = old.inlined_into.iter();
            let inlined_into: Vec<Frame> = frames
                .map(|frame| Frame {
                    function: self.name_id(frame.function),
                    source: self.name_id(frame.source),
                    line: frame.line,
                })
                .collect();
            CodeLocation {
                module: self.name(old.module),
                build_id: self.name_id(old.build_id),
                function: self.name(old.function),
                source: self.name(old.source),
                inlined_into,
                ..*old
            }
        });
        let moved = moved.map(|location| {
            let (known, bytes) = (self.into.code.len(), size_of_val(&*location.inlined_into));
            let id = self.into.interners[0].intern(&mut self.into.code, location);
            self.into.lists += if self.into.code.len() > known { bytes } else { 0 };
            id
        });
        self.code.insert(id, moved);
        moved
    }

    fn data(&mut self, id: LocationId) -> Option<LocationId> {
        if let Some(known) = self.data.get(&id) {
            return *known;
        }
        let moved = self.from.data.get(id as usize).map(|old| DataLocation {
            region: self.name(old.region),
            variable: self.name(old.variable),
            ..*old
        });
        let moved = moved.map(|location| self.into.interners[1].intern(&mut self.into.data, location));
        self.data.insert(id, moved);
        moved
    }

    fn stack(&mut self, id: StackId) -> Option<StackId> {
        if let Some(known) = self.stacks.get(&id) {
            return *known;
        }
        let moved = self.from.stacks.get(id as usize).map(|old| Stack {
            callers: old.callers.iter().filter_map(|caller| self.code(*caller)).collect(),
            ..*old
        });
        let moved = moved.map(|stack| {
            let (known, bytes) = (self.into.stacks.len(), size_of_val(&*stack.callers));
            let id = self.into.interners[2].intern(&mut self.into.stacks, stack);
            self.into.lists += if self.into.stacks.len() > known { bytes } else { 0 };
            id
        });
        self.stacks.insert(id, moved);
        moved
    }
}
