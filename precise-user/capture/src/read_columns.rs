//! Reads the columns of a row group, some rows at a time. The bytes are not trusted.

use std::sync::Arc;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use super::claims;
use super::file::{Column, ColumnType};
use super::read_error::Stop;
use super::text_pages::{Claimed, FoundTexts, TextPages, as_numbers};

/// A row group whose columns can be opened.
pub(super) struct GroupReader<'a, R: ChunkReader> {
    file: &'a Arc<R>,
    group: &'a RowGroupMetaData,
    rows: usize,
    /// The number of the group, from 0.
    number: usize,
    claimed: Claimed,
}

impl<'a, R: ChunkReader + 'static> GroupReader<'a, R> {
    /// Returns the row groups of a file. The pages of a row group may have at most `limit` bytes.
    pub fn all(
        file: &'a Arc<R>,
        metadata: &'a ParquetMetaData,
        limit: u64,
    ) -> impl Iterator<Item = Result<Self, Stop>> {
        metadata.row_groups().iter().enumerate().map(move |(number, group)| {
            let rows = usize::try_from(group.num_rows()).map_err(|e| Stop::Corrupt(e.to_string()))?;
            Ok(Self { file, group, rows, number, claimed: Claimed::new(limit) })
        })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn place(&self, name: &str) -> Option<usize> {
        let columns = self.group.schema_descr().columns();
        // A column inside a group or a list has a longer path.
        columns.iter().position(|column| matches!(column.path().parts(), [only] if only == name))
    }

    /// Opens a column at its first row. The error describes what is wrong with the column.
    pub fn open(&mut self, column: Column) -> Result<OpenColumn, Stop> {
        let name = column.name();
        let missing = || format!("the column {name} is missing");
        let place = self.place(name).ok_or_else(missing)?;
        let chunk = self.group.columns().get(place).ok_or_else(missing)?;
        let descriptor = chunk.column_descr_ptr();
        if !is_of(&descriptor, column).map_err(|e| e.to_string())? {
            return Err(Stop::Corrupt(format!(
                "the column {name} has the wrong type {} {:?}",
                descriptor.physical_type(),
                descriptor.logical_type_ref()
            )));
        }
        let is_text = column.kind() == ColumnType::Text;
        let claim =
            claims::of_chunk(&**self.file, chunk, is_text).map_err(|e| format!("column {name}: {e}"))?;
        self.claimed.add(claim).map_err(|bytes| {
            let what = format!("row group {} with the column {name} claims", self.number);
            Stop::Memory { what, bytes, limit: self.claimed.limit }
        })?;
        let nullable = descriptor.max_def_level() > 0;
        let broken = |e: ParquetError| format!("its columns cannot be read: {name}: {e}");
        let pages =
            SerializedPageReader::new(Arc::clone(self.file), chunk, self.rows, None).map_err(broken)?;
        let (reader, texts) = if is_text {
            let (pages, texts) = TextPages::of(pages, nullable, self.claimed.clone());
            let descriptor = as_numbers(&descriptor).map_err(broken)?;
            (get_column_reader(Arc::new(descriptor), Box::new(pages)), texts)
        } else {
            (get_column_reader(descriptor, Box::new(pages)), FoundTexts::default())
        };
        Ok(OpenColumn { column, nullable, reader, levels: Vec::new(), texts })
    }
}

/// Returns whether a column of a file has the type of `column`. It may allow nulls even if `column`
/// does not.
fn is_of(found: &ColumnDescriptor, column: Column) -> Result<bool, ParquetError> {
    let expected = column.parquet_type()?;
    Ok(found.max_rep_level() == 0
        && found.max_def_level() <= 1
        && found.physical_type() == expected.get_physical_type()
        && found.logical_type_ref() == expected.get_basic_info().logical_type_ref())
}

/// A column of a row group that is being read.
pub(super) struct OpenColumn {
    column: Column,
    nullable: bool,
    reader: ColumnReader,
    /// The definition levels of the last rows, kept for their memory.
    levels: Vec<i16>,
    texts: FoundTexts,
}

impl OpenColumn {
    /// Returns the column.
    pub fn column(&self) -> Column {
        self.column
    }

    /// Reads the next `rows` numbers; of a column of text, the places of its texts. `of` makes a
    /// value of each number.
    pub fn numbers<V: Copy>(
        &mut self,
        rows: usize,
        values: &mut Vec<Option<V>>,
        of: impl Fn(u64) -> Option<V>,
    ) -> Result<(), String> {
        let name = self.column.name();
        let large = |number| format!("the column {name} has {number}, which is too large for it");
        let of = |number| of(number).ok_or_else(|| large(number));
        let (nullable, levels) = (self.nullable, &mut self.levels);
        match &mut self.reader {
            ColumnReader::Int32ColumnReader(reader) => {
                let found = read(reader, nullable, rows, levels).map_err(|e| unreadable(name, &e))?;
                spread(nullable, levels, &found, values, |number| of(u64::from(number.cast_unsigned())))
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let found = read(reader, nullable, rows, levels).map_err(|e| unreadable(name, &e))?;
                if self.column.kind() == ColumnType::I64 && found.iter().any(|number| *number < 0) {
                    let e = ParquetError::General("it has a negative number".to_owned());
                    return Err(unreadable(name, &e));
                }
                spread(nullable, levels, &found, values, |number| of(number.cast_unsigned()))
            }
            _ => Err(format!("the column {name} has no numbers")),
        }
    }

    /// Reads the next `rows` flags.
    pub fn flags(&mut self, rows: usize, values: &mut Vec<Option<bool>>) -> Result<(), String> {
        let name = self.column.name();
        let ColumnReader::BoolColumnReader(reader) = &mut self.reader else {
            return Err(format!("the column {name} has no flags"));
        };
        let found = read(reader, self.nullable, rows, &mut self.levels).map_err(|e| unreadable(name, &e))?;
        spread(self.nullable, &self.levels, &found, values, Ok)
    }

    /// Takes the texts that were found since the last call. Their places go on after those of the
    /// texts before.
    pub fn texts<T>(
        &mut self,
        into: &mut Vec<T>,
        mut convert: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<(), String> {
        for text in self.texts.take() {
            let name = self.column.name();
            let text = std::str::from_utf8(&text).map_err(|e| unreadable(name, &e))?;
            into.push(convert(text)?);
        }
        Ok(())
    }
}

fn unreadable(name: &str, error: &dyn std::error::Error) -> String {
    format!("its rows cannot be read: column {name}: {error}")
}

/// Reads the next `rows` values: those that are not null, and the levels, which tell where they
/// are.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    nullable: bool,
    rows: usize,
    levels: &mut Vec<i16>,
) -> Result<Vec<T::T>, ParquetError> {
    let mut values = Vec::with_capacity(rows);
    levels.clear();
    let (records, _, _) = reader.read_records(rows, nullable.then_some(levels), None, &mut values)?;
    if records != rows {
        return Err(ParquetError::EOF(format!("it has {records} of the {rows} values that are left of it")));
    }
    Ok(values)
}

/// Gives each row its value.
fn spread<N: Copy, V: Copy>(
    nullable: bool,
    levels: &[i16],
    found: &[N],
    values: &mut Vec<Option<V>>,
    of: impl Fn(N) -> Result<V, String>,
) -> Result<(), String> {
    values.clear();
    if found.is_empty() {
        values.resize(levels.len(), None);
        return Ok(());
    }
    values.reserve(levels.len().max(found.len()));
    if !nullable || found.len() == levels.len() {
        return found.iter().try_for_each(|number| of(*number).map(|value| values.push(Some(value))));
    }
    let mut found = found.iter();
    levels.iter().try_for_each(|level| {
        let number = if *level > 0 { found.next() } else { None };
        number.map(|number| of(*number)).transpose().map(|value| values.push(value))
    })
}
