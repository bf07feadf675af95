//! Reads the columns of a row group, some rows at a time. The bytes are not trusted.

use std::sync::Arc;

use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescriptor;

use super::claims;
use super::flat::{ColumnType, FlatColumn};
use super::own_pages::{OwnKind, OwnPages};
use super::page_zstd::PageZstd;
use super::ranged::Ranged;
use super::read_error::Stop;
use super::text_pages::{ChunkTexts, Claimed, FoundTexts, TextPages, as_numbers};

/// A row group whose columns can be opened.
pub(super) struct GroupReader<'a> {
    file: &'a Ranged,
    group: &'a RowGroupMetaData,
    rows: usize,
    /// The number of the group, from 0.
    number: usize,
    /// Whether a column whose statistics tell its only value is not read.
    skims: bool,
    claimed: Claimed,
    zstd: PageZstd,
}

impl<'a> GroupReader<'a> {
    /// Returns the row groups of a file. The pages of a row group may have at most `limit` bytes.
    /// If it `skims`, columns whose statistics tell the only value are not read.
    pub fn all(
        file: &'a Ranged,
        metadata: &'a ParquetMetaData,
        limit: u64,
        skims: bool,
    ) -> impl Iterator<Item = Result<Self, Stop>> {
        let groups = metadata.row_groups().iter().enumerate();
        let zstd = PageZstd::new(limit / 8 * 3);
        let last = metadata.num_row_groups().saturating_sub(1);
        groups.map(move |(number, group)| {
            if number == last {
                zstd.keep_no_more();
            }
            Self::of(file, (number, group), &zstd, limit, skims)
        })
    }

    /// Returns the row group of a number, as [`Self::all`] does; `None` if there is none.
    pub fn one(
        file: &'a Ranged,
        metadata: &'a ParquetMetaData,
        number: usize,
        limit: u64,
        skims: bool,
    ) -> Result<Option<Self>, Stop> {
        let group = metadata.row_groups().get(number);
        group.map(|group| Self::of(file, (number, group), &PageZstd::new(0), limit, skims)).transpose()
    }

    fn of(
        file: &'a Ranged,
        (number, group): (usize, &'a RowGroupMetaData),
        zstd: &PageZstd,
        limit: u64,
        skims: bool,
    ) -> Result<Self, Stop> {
        let rows = usize::try_from(group.num_rows()).map_err(|e| Stop::Corrupt(e.to_string()))?;
        let (claimed, zstd) = (Claimed::new(limit), zstd.clone());
        Ok(Self { file, group, rows, number, skims, claimed, zstd })
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
    pub fn open(&self, column: FlatColumn) -> Result<OpenColumn, Stop> {
        let name = column.name;
        let missing = || format!("the column {name} is missing");
        let place = self.place(name).ok_or_else(missing)?;
        let chunk = self.group.columns().get(place).ok_or_else(missing)?;
        let descriptor = chunk.column_descr_ptr();
        if !is_of(&descriptor, column) {
            return Err(Stop::Corrupt(format!(
                "the column {name} has the wrong type {} {:?}",
                descriptor.physical_type(),
                descriptor.logical_type_ref()
            )));
        }
        let nullable = descriptor.max_def_level() > 0;
        let mut closed = OpenColumn {
            column,
            most: most(column.kind),
            nullable,
            reader: None,
            same: None,
            values: Vec::new(),
            levels: Vec::new(),
            nulls: false,
            texts: FoundTexts::default(),
        };
        if self.skims
            && let Some(same) = same_value(chunk, closed.most)
        {
            (closed.same, closed.texts) = match same {
                SameValue::Null => (None, FoundTexts::default()),
                SameValue::Number(number) => (Some(number), FoundTexts::default()),
                SameValue::Text(text) => (Some(0), FoundTexts::only(text)),
            };
            return Ok(closed);
        }
        let is_text = column.kind == ColumnType::Text;
        let too_much = |bytes: u64| {
            let what = format!("row group {} with the column {name} claims", self.number);
            Stop::Memory { what, bytes, limit: self.claimed.limit }
        };
        let (start, length) = chunk.byte_range();
        self.claimed.fits(length).map_err(too_much)?;
        let file = self.file.holding(start, length).map_err(|e| format!("column {name}: {e}"))?;
        let claim = claims::of_chunk(&file, chunk, is_text).map_err(|e| format!("column {name}: {e}"))?;
        self.claimed.add(claim.bytes).map_err(too_much)?;
        let signed = matches!(column.kind, ColumnType::I64 | ColumnType::Time);
        let kind = OwnKind { physical: descriptor.physical_type(), signed, most: closed.most };
        let own = (kind, nullable);
        let found = ChunkTexts::new(closed.texts.clone(), self.claimed.clone());
        if let Some(pages) = OwnPages::of((&file, chunk), claim.pages, &self.zstd, own, found) {
            return Ok(OpenColumn { reader: Some(PagesReader::Own(pages)), ..closed });
        }
        let broken = |e: ParquetError| format!("its columns cannot be read: {name}: {e}");
        let pages = SerializedPageReader::new(Arc::new(file), chunk, self.rows, None).map_err(broken)?;
        let (reader, texts) = if is_text {
            let (pages, texts) = TextPages::of(pages, nullable, self.claimed.clone());
            let descriptor = as_numbers(&descriptor).map_err(broken)?;
            (get_column_reader(Arc::new(descriptor), Box::new(pages)), texts)
        } else {
            (get_column_reader(descriptor, Box::new(pages)), FoundTexts::default())
        };
        Ok(OpenColumn { reader: Some(PagesReader::Parquet(reader)), texts, ..closed })
    }
}

/// Returns the largest number that a column of this type can have.
fn most(kind: ColumnType) -> u64 {
    match kind {
        ColumnType::Bool => 1,
        ColumnType::U8 => u8::MAX.into(),
        ColumnType::U16 => u16::MAX.into(),
        ColumnType::U32 | ColumnType::Text => u32::MAX.into(),
        ColumnType::U64 => u64::MAX,
        ColumnType::I64 | ColumnType::Time => i64::MAX.cast_unsigned(),
    }
}

/// Returns whether a column of a file has the type of `column`. It may allow nulls even if `column`
/// does not.
fn is_of(found: &ColumnDescriptor, column: FlatColumn) -> bool {
    let (physical, logical) = column.value_type();
    found.max_rep_level() == 0
        && found.max_def_level() <= 1
        && found.physical_type() == physical
        && found.logical_type_ref() == logical.as_ref()
}

/// What reads the pages of a column.
enum PagesReader {
    Own(OwnPages),
    Parquet(ColumnReader),
}

/// A column of a row group that is being read, with the values of the last rows.
pub(super) struct OpenColumn {
    column: FlatColumn,
    /// The largest number that is possible.
    most: u64,
    nullable: bool,
    /// `None` if each row has the same value, which is in `same`.
    reader: Option<PagesReader>,
    same: Option<u64>,
    /// The values as numbers: flags are 0 and 1, texts are their places; null is 0.
    values: Vec<u64>,
    /// The definition levels, of a column that may have nulls: 0 is null. Empty if none is.
    levels: Vec<i16>,
    /// Whether some of these values are null.
    nulls: bool,
    texts: FoundTexts,
}

impl OpenColumn {
    /// Returns the name of the column.
    pub fn name(&self) -> &'static str {
        self.column.name
    }

    /// Returns the type of the column.
    pub fn kind(&self) -> ColumnType {
        self.column.kind
    }

    /// Returns whether all rows of the row group have the same value.
    pub fn is_same(&self) -> bool {
        self.reader.is_none()
    }

    /// Returns a value of the rows that were read last.
    #[inline]
    pub fn get(&self, i: usize) -> Option<u64> {
        if self.is_same() {
            return self.same;
        }
        if self.nulls && self.levels.get(i).is_none_or(|level| *level == 0) {
            return None;
        }
        self.values.get(i).copied()
    }

    /// Reads the values of the next rows.
    pub fn read(&mut self, rows: usize) -> Result<(), String> {
        let Self { nullable, levels, values, .. } = self;
        let (name, nullable) = (self.column.name, *nullable);
        let is_signed = matches!(self.column.kind, ColumnType::I64 | ColumnType::Time);
        let reader = match &mut self.reader {
            None => return Ok(()),
            Some(PagesReader::Own(pages)) => {
                let read = pages.read(rows, values, levels);
                self.nulls = !levels.is_empty();
                return read.map_err(|error| format!("its rows cannot be read: column {name}: {error}"));
            }
            Some(PagesReader::Parquet(reader)) => reader,
        };
        match reader {
            ColumnReader::Int32ColumnReader(reader) => {
                let found = read(reader, nullable, rows, levels).map_err(|e| unreadable(name, &e))?;
                spread(levels, &found, values, |number| u64::from(number.cast_unsigned()));
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let found = read(reader, nullable, rows, levels).map_err(|e| unreadable(name, &e))?;
                if is_signed && found.iter().any(|number| *number < 0) {
                    let e = ParquetError::General("it has a negative number".to_owned());
                    return Err(unreadable(name, &e));
                }
                spread(levels, &found, values, i64::cast_unsigned);
            }
            ColumnReader::BoolColumnReader(reader) => {
                let found = read(reader, nullable, rows, levels).map_err(|e| unreadable(name, &e))?;
                spread(levels, &found, values, u64::from);
            }
            _ => return Err(format!("the column {name} has a type that no column has")),
        }
        if let Some(number) = values.iter().find(|number| **number > self.most) {
            return Err(format!("the column {name} has {number}, which is too large for it"));
        }
        self.nulls = nullable && self.levels.contains(&0);
        Ok(())
    }

    /// Adds the values of the last rows to a hash for each row.
    pub fn mix(&self, hashes: &mut [u64]) {
        for (hash, value) in hashes.iter_mut().zip(&self.values) {
            *hash = (hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    /// Notes which of the last rows differ from the rows at `places` of a list of values.
    pub fn compare(&self, values: &[Option<u64>], places: &[u32], differs: &mut [bool]) {
        for (i, (place, differs)) in places.iter().zip(differs).enumerate() {
            *differs |= values.get(*place as usize) != Some(&self.get(i));
        }
    }

    /// Takes the texts that were found since the last call. Their places go on after those of the
    /// texts before.
    pub fn texts<T>(
        &mut self,
        into: &mut Vec<T>,
        mut convert: impl FnMut(&[u8]) -> Result<T, String>,
    ) -> Result<(), String> {
        for text in self.texts.take() {
            into.push(convert(&text)?);
        }
        Ok(())
    }
}

/// Returns the text of bytes of a column of this name.
pub(super) fn utf8<'a>(column: &str, bytes: &'a [u8]) -> Result<&'a str, String> {
    std::str::from_utf8(bytes).map_err(|e| unreadable(column, &e))
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

/// Gives each row its value, as a number.
fn spread<N: Copy>(levels: &[i16], found: &[N], values: &mut Vec<u64>, of: impl Fn(N) -> u64) {
    values.clear();
    if found.len() >= levels.len() {
        values.extend(found.iter().map(|number| of(*number)));
    } else if found.is_empty() {
        values.resize(levels.len(), 0);
    } else {
        let mut found = found.iter();
        values.extend(levels.iter().map(|level| match level {
            0 => 0,
            _ => found.next().map_or(0, |number| of(*number)),
        }));
    }
}

/// The value that all rows of a chunk have.
enum SameValue {
    Null,
    Number(u64),
    Text(Bytes),
}

/// Returns the value that all rows of a chunk have, as its statistics tell; `None` if they do not,
/// or if it is larger than `most`.
fn same_value(chunk: &ColumnChunkMetaData, most: u64) -> Option<SameValue> {
    let statistics = chunk.statistics()?;
    let (nulls, values) = (statistics.null_count_opt()?, u64::try_from(chunk.num_values()).ok()?);
    if nulls == values {
        return Some(SameValue::Null);
    }
    if nulls > 0 {
        return None;
    }
    let number = match statistics {
        Statistics::Boolean(of) => same(of).map(|value| u64::from(*value)),
        Statistics::Int32(of) => same(of).map(|value| u64::from(value.cast_unsigned())),
        Statistics::Int64(of) => same(of).map(|value| value.cast_unsigned()),
        Statistics::ByteArray(of) => {
            return same(of).map(|text| SameValue::Text(Bytes::copy_from_slice(text.data())));
        }
        _ => None,
    };
    number.filter(|number| *number <= most).map(SameValue::Number)
}

/// Returns the only value between the smallest and the largest one.
fn same<T: PartialEq>(of: &ValueStatistics<T>) -> Option<&T> {
    // Those of long texts are shorter than the texts.
    let exact = of.min_is_exact() && of.max_is_exact();
    of.min_opt().filter(|min| exact && of.max_opt() == Some(min))
}
