//! Columns of a row group, converted to the types of the model.

use parquet::file::reader::ChunkReader;

use super::file::Column;
use super::read_columns::{GroupReader, OpenColumn};
use super::read_error::Stop;
use precise_model::{Name, NameId, Names, Reason};

/// A column of numbers.
pub(super) struct NumberColumn<T> {
    open: OpenColumn,
    values: Vec<Option<T>>,
}

impl<T: Copy + TryFrom<u64>> NumberColumn<T> {
    pub fn open(group: &mut GroupReader<impl ChunkReader + 'static>, column: Column) -> Result<Self, Stop> {
        Ok(Self { open: group.open(column)?, values: Vec::new() })
    }

    /// Reads the values of the next rows.
    pub fn read(&mut self, rows: usize) -> Result<(), String> {
        self.open.numbers(rows, &mut self.values, |number| T::try_from(number).ok())
    }

    pub fn get(&self, i: usize) -> Option<T> {
        self.values.get(i).copied().flatten()
    }

    pub fn must(&self, i: usize) -> Result<T, String> {
        self.get(i).ok_or_else(|| needed(self.open.column()))
    }
}

fn needed(column: Column) -> String {
    format!("the column {} is null in a row that needs a value", column.name())
}

/// A column of flags.
pub(super) struct FlagColumn {
    open: OpenColumn,
    values: Vec<Option<bool>>,
}

impl FlagColumn {
    pub fn open(group: &mut GroupReader<impl ChunkReader + 'static>, column: Column) -> Result<Self, Stop> {
        Ok(Self { open: group.open(column)?, values: Vec::new() })
    }

    /// Reads the values of the next rows.
    pub fn read(&mut self, rows: usize) -> Result<(), String> {
        self.open.flags(rows, &mut self.values)
    }

    pub fn get(&self, i: usize) -> Option<bool> {
        self.values.get(i).copied().flatten()
    }

    pub fn must(&self, i: usize) -> Result<bool, String> {
        self.get(i).ok_or_else(|| needed(self.open.column()))
    }
}

/// A column of text, each distinct text turned into a `T` once for the row group.
pub(super) struct TextColumn<T> {
    open: OpenColumn,
    keys: Vec<Option<u32>>,
    values: Vec<T>,
}

impl<T> TextColumn<T> {
    pub fn open(group: &mut GroupReader<impl ChunkReader + 'static>, column: Column) -> Result<Self, Stop> {
        Ok(Self { open: group.open(column)?, keys: Vec::new(), values: Vec::new() })
    }

    /// Reads the values of the next rows.
    pub fn read(
        &mut self,
        rows: usize,
        convert: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<(), String> {
        self.open.numbers(rows, &mut self.keys, |key| u32::try_from(key).ok())?;
        self.open.texts(&mut self.values, convert)
    }

    /// Returns the place of a row's text among the distinct texts of the row group.
    pub fn key(&self, i: usize) -> Option<u32> {
        self.keys.get(i).copied().flatten()
    }

    pub fn get(&self, i: usize) -> Option<&T> {
        self.values.get(self.key(i)? as usize)
    }
}

/// A column of names, with the column of reasons for missing names.
pub(super) struct NameColumn {
    pub name: TextColumn<NameId>,
    reason: TextColumn<Reason>,
}

impl NameColumn {
    pub fn open(
        group: &mut GroupReader<impl ChunkReader + 'static>,
        [name, reason]: [Column; 2],
    ) -> Result<Self, Stop> {
        Ok(Self { name: TextColumn::open(group, name)?, reason: TextColumn::open(group, reason)? })
    }

    /// Reads the names of the next rows.
    pub fn read(&mut self, rows: usize, names: &mut Names) -> Result<(), String> {
        self.name.read(rows, |text| Ok(names.intern(text)))?;
        // A newer writer may have reasons that this version does not know: they still are reasons.
        self.reason.read(rows, |text| Ok(Reason::parse(text).unwrap_or(Reason::Failed)))
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
