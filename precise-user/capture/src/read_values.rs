//! Columns of a row group, converted to the types of the model.

use std::marker::PhantomData;

use super::file::Column;
use super::read_columns::{GroupReader, OpenColumn, utf8};
use super::read_error::Stop;
use precise_model::{Name, NameId, Names, Reason};

/// A column of numbers of the type `T`.
pub(super) struct NumberColumn<T> {
    open: OpenColumn,
    kind: PhantomData<T>,
}

impl<T: TryFrom<u64>> NumberColumn<T> {
    pub fn open(group: &GroupReader<'_>, column: Column) -> Result<Self, Stop> {
        Ok(Self { open: group.open(column.flat())?, kind: PhantomData })
    }

    /// Reads the values of the next rows.
    pub fn read(&mut self, rows: usize) -> Result<(), String> {
        self.open.read(rows)
    }

    pub fn get(&self, i: usize) -> Option<T> {
        self.open.get(i).and_then(|number| T::try_from(number).ok())
    }

    pub fn must(&self, i: usize) -> Result<T, String> {
        self.get(i).ok_or_else(|| needed(self.open.name()))
    }

    /// Adds the column to a list.
    pub fn visit<'a>(&'a self, all: &mut Vec<&'a OpenColumn>) {
        all.push(&self.open);
    }
}

fn needed(name: &str) -> String {
    format!("the column {name} is null in a row that needs a value")
}

/// A column of flags.
pub(super) struct FlagColumn(NumberColumn<u8>);

impl FlagColumn {
    pub fn open(group: &GroupReader<'_>, column: Column) -> Result<Self, Stop> {
        NumberColumn::open(group, column).map(Self)
    }

    /// Reads the values of the next rows.
    pub fn read(&mut self, rows: usize) -> Result<(), String> {
        self.0.read(rows)
    }

    pub fn get(&self, i: usize) -> Option<bool> {
        self.0.get(i).map(|flag| flag != 0)
    }

    pub fn must(&self, i: usize) -> Result<bool, String> {
        self.0.must(i).map(|flag| flag != 0)
    }

    /// Adds the column to a list.
    pub fn visit<'a>(&'a self, all: &mut Vec<&'a OpenColumn>) {
        self.0.visit(all);
    }
}

/// A column of text, each distinct text turned into a `T` once for the row group.
pub(super) struct TextColumn<T> {
    open: OpenColumn,
    values: Vec<T>,
}

impl<T> TextColumn<T> {
    pub fn open(group: &GroupReader<'_>, column: Column) -> Result<Self, Stop> {
        Ok(Self { open: group.open(column.flat())?, values: Vec::new() })
    }

    /// Reads the values of the next rows.
    pub fn read(
        &mut self,
        rows: usize,
        mut convert: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<(), String> {
        let name = self.open.name();
        self.read_bytes(rows, |bytes| convert(utf8(name, bytes)?))
    }

    /// Reads the values of the next rows, whose texts may be anything.
    pub fn read_bytes(
        &mut self,
        rows: usize,
        convert: impl FnMut(&[u8]) -> Result<T, String>,
    ) -> Result<(), String> {
        self.open.read(rows)?;
        self.open.texts(&mut self.values, convert)
    }

    /// Returns the place of a row's text among the distinct texts of the row group.
    pub fn key(&self, i: usize) -> Option<u32> {
        self.open.get(i).and_then(|key| u32::try_from(key).ok())
    }

    pub fn get(&self, i: usize) -> Option<&T> {
        self.values.get(self.key(i)? as usize)
    }

    /// Adds the column to a list.
    pub fn visit<'a>(&'a self, all: &mut Vec<&'a OpenColumn>) {
        all.push(&self.open);
    }
}

/// A column of names, with the column of reasons for missing names.
pub(super) struct NameColumn {
    pub name: TextColumn<NameId>,
    reason: TextColumn<Reason>,
}

impl NameColumn {
    pub fn open(group: &GroupReader<'_>, [name, reason]: [Column; 2]) -> Result<Self, Stop> {
        Ok(Self { name: TextColumn::open(group, name)?, reason: TextColumn::open(group, reason)? })
    }

    /// Reads the names of the next rows.
    pub fn read(&mut self, rows: usize, names: &mut Names) -> Result<(), String> {
        self.name.read(rows, |text| Ok(names.intern(text)))?;
        // A newer writer may have reasons that this version does not know: they still are reasons.
        self.reason.read(rows, |text| Ok(Reason::parse(text).unwrap_or(Reason::Failed)))
    }

    /// Adds the columns to a list.
    pub fn visit<'a>(&'a self, all: &mut Vec<&'a OpenColumn>) {
        self.name.visit(all);
        self.reason.visit(all);
    }

    /// Returns whether the row has a name, or a reason for its lack.
    pub fn has(&self, i: usize) -> bool {
        self.name.get(i).is_some() || self.reason.get(i).is_some()
    }

    pub fn get(&self, i: usize) -> Name {
        match (self.name.get(i), self.reason.get(i)) {
            (Some(id), _) => Name::Known(*id),
            (None, Some(reason)) => Name::Unknown(*reason),
            (None, None) => Name::Unknown(Reason::NotRecorded),
        }
    }
}
