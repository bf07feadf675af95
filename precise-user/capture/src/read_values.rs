//! Columns of a batch, converted to the types of the model.

use super::batch::ColumnValues;
use super::file::Column;
use super::read_columns::GroupReader;
use super::read_error::Stop;
use precise_model::{Name, NameId, Names, Reason};

/// A column of numbers.
pub(super) struct NumberColumn<T> {
    column: Column,
    values: Vec<Option<T>>,
}

impl<T: Copy + TryFrom<u64>> NumberColumn<T> {
    pub fn of(batch: &mut GroupReader<'_>, column: Column) -> Result<Self, Stop> {
        let name = column.name();
        let values = match batch.column(column.flat())? {
            ColumnValues::Small(values) => narrow(name, &values)?,
            ColumnValues::Large(values) => narrow(name, &values)?,
            _ => return Err(Stop::Corrupt(format!("the column {name} has no numbers"))),
        };
        Ok(Self { column, values })
    }

    pub fn get(&self, i: usize) -> Option<T> {
        self.values.get(i).copied().flatten()
    }

    pub fn must(&self, i: usize) -> Result<T, String> {
        self.get(i).ok_or_else(|| needed(self.column))
    }
}

/// Converts the numbers to the type that the rows use.
fn narrow<T: TryFrom<u64>, N: Copy + Into<u64>>(
    name: &str,
    values: &[Option<N>],
) -> Result<Vec<Option<T>>, String> {
    let narrow = |number: N| {
        let number = number.into();
        T::try_from(number).map_err(|_| format!("the column {name} has {number}, which is too large for it"))
    };
    values.iter().map(|value| value.map(narrow).transpose()).collect()
}

fn needed(column: Column) -> String {
    format!("the column {} is null in a row that needs a value", column.name())
}

/// A column of flags.
pub(super) struct FlagColumn {
    column: Column,
    values: Vec<Option<bool>>,
}

impl FlagColumn {
    pub fn of(batch: &mut GroupReader<'_>, column: Column) -> Result<Self, Stop> {
        match batch.column(column.flat())? {
            ColumnValues::Flags(values) => Ok(Self { column, values }),
            _ => Err(Stop::Corrupt(format!("the column {} has no flags", column.name()))),
        }
    }

    pub fn get(&self, i: usize) -> Option<bool> {
        self.values.get(i).copied().flatten()
    }

    pub fn must(&self, i: usize) -> Result<bool, String> {
        self.get(i).ok_or_else(|| needed(self.column))
    }
}

/// A column of text, each distinct text turned into a `T` once.
pub(super) struct TextColumn<T> {
    keys: Vec<Option<u32>>,
    values: Vec<T>,
}

impl<T> TextColumn<T> {
    pub fn of(
        batch: &mut GroupReader<'_>,
        column: Column,
        mut convert: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<Self, Stop> {
        let ColumnValues::Texts(texts) = batch.column(column.flat())? else {
            return Err(Stop::Corrupt(format!("the column {} has no text", column.name())));
        };
        let values = texts.distinct.iter().map(|text| convert(text)).collect::<Result<_, _>>()?;
        Ok(Self { keys: texts.keys, values })
    }

    pub fn get(&self, i: usize) -> Option<&T> {
        self.entry(i).map(|(_, value)| value)
    }

    /// Returns the result of `get`, with its index among the distinct texts.
    pub fn entry(&self, i: usize) -> Option<(u32, &T)> {
        let key = (*self.keys.get(i)?)?;
        Some((key, self.values.get(key as usize)?))
    }
}

/// A column of names, with the column of reasons for missing names.
pub(super) struct NameColumn {
    pub name: TextColumn<NameId>,
    reason: TextColumn<Reason>,
}

impl NameColumn {
    pub fn of(
        batch: &mut GroupReader<'_>,
        [name, reason]: [Column; 2],
        names: &mut Names,
    ) -> Result<Self, Stop> {
        Ok(Self {
            name: TextColumn::of(batch, name, |text| Ok(names.intern(text)))?,
            // A newer writer may have reasons that this version does not know: they still are
            // reasons.
            reason: TextColumn::of(batch, reason, |text| Ok(Reason::parse(text).unwrap_or(Reason::Failed)))?,
        })
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
