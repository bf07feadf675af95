//! Reads the columns of a flat table in batches of rows, as values. The bytes are not trusted.

use std::sync::Arc;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;
use rustc_hash::FxHashMap;

use super::batch::{ColumnValues, DistinctTexts};
use super::claims;
use super::flat::{ColumnType, FlatColumn};
use super::ranged::Ranged;
use super::read_error::Stop;

/// The current batch of rows of a row group, with the readers of its columns.
pub(super) struct FlatGroup<'a> {
    file: &'a Ranged,
    group: &'a RowGroupMetaData,
    /// The columns that were read so far; their readers continue with the rows that follow.
    open: FxHashMap<&'static str, Open>,
    /// The number of rows in this batch.
    rows: usize,
    /// The number of rows in the group after this batch.
    left: usize,
    /// The number of the group, from 0.
    number: usize,
    /// The bytes that the pages of the columns in `open` claim, and their limit.
    claimed: u64,
    limit: u64,
}

/// A column that is being read.
struct Open {
    column: FlatColumn,
    nullable: bool,
    reader: ColumnReader,
}

impl<'a> FlatGroup<'a> {
    /// Calls `each` for the rows of all row groups, at most `most` at a time. `each` must read the
    /// same columns each time. The pages of a row group may have at most `limit` bytes.
    pub fn for_each(
        file: &'a Ranged,
        metadata: &'a ParquetMetaData,
        (limit, most): (u64, usize),
        mut each: impl FnMut(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        for number in 0..metadata.num_row_groups() {
            let Some(mut group) = Self::group(file, metadata, number, limit)? else { continue };
            while group.next(most) {
                each(&mut group)?;
            }
        }
        Ok(())
    }

    /// Opens a row group; `None` if there is none of this number. Its pages may have at most
    /// `limit` bytes.
    pub fn group(
        file: &'a Ranged,
        metadata: &'a ParquetMetaData,
        number: usize,
        limit: u64,
    ) -> Result<Option<Self>, Stop> {
        let Some(group) = metadata.row_groups().get(number) else { return Ok(None) };
        let left = usize::try_from(group.num_rows()).map_err(|e| Stop::Corrupt(e.to_string()))?;
        Ok(Some(Self { file, group, open: FxHashMap::default(), rows: 0, left, number, claimed: 0, limit }))
    }

    /// Goes to the next rows, at most `most`. Returns whether there are any.
    pub fn next(&mut self, most: usize) -> bool {
        self.rows = self.left.min(most);
        self.left -= self.rows;
        self.rows > 0
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Reads the values of a column for the rows of this batch. The error describes what is wrong
    /// with the column.
    pub fn column(&mut self, column: FlatColumn) -> Result<ColumnValues, Stop> {
        let name = column.name;
        if !self.open.contains_key(name) {
            let open = self.open(column)?;
            self.open.insert(name, open);
        }
        let rows = self.rows;
        let open = self.open.get_mut(name).ok_or_else(|| missing(name))?;
        open.read(rows).map_err(|e| Stop::Corrupt(format!("its rows cannot be read: column {name}: {e}")))
    }

    fn place(&self, name: &str) -> Option<usize> {
        let columns = self.group.schema_descr().columns();
        // A column inside a group or a list has a longer path.
        columns.iter().position(|column| matches!(column.path().parts(), [only] if only == name))
    }

    fn open(&mut self, column: FlatColumn) -> Result<Open, Stop> {
        let name = column.name;
        let place = self.place(name).ok_or_else(|| missing(name))?;
        let chunk = self.group.columns().get(place).ok_or_else(|| missing(name))?;
        let descriptor = chunk.column_descr_ptr();
        if !is_of(&descriptor, &column).map_err(|e| e.to_string())? {
            return Err(Stop::Corrupt(format!(
                "the column {name} has the wrong type {} {:?}",
                descriptor.physical_type(),
                descriptor.logical_type_ref()
            )));
        }
        let texts = column.kind == ColumnType::Text;
        let (start, length) = chunk.byte_range();
        self.claim(name, length)?;
        let file = self.file.holding(start, length).map_err(|e| format!("column {name}: {e}"))?;
        let claim = claims::of_chunk(&file, chunk, texts).map_err(|e| format!("column {name}: {e}"))?;
        self.claimed = self.claim(name, claim)?;
        let nullable = descriptor.max_def_level() > 0;
        let rows = self.rows + self.left;
        let pages = SerializedPageReader::new(Arc::new(file), chunk, rows, None);
        let pages = pages.map_err(|e| format!("its columns cannot be read: {name}: {e}"))?;
        Ok(Open { column, nullable, reader: get_column_reader(descriptor, Box::new(pages)) })
    }

    /// Returns what the pages claim together with `more` bytes of a column, if that is possible.
    fn claim(&self, name: &str, more: u64) -> Result<u64, Stop> {
        let bytes = self.claimed.saturating_add(more);
        if bytes > self.limit {
            let what = format!("row group {} with the column {name} claims", self.number);
            return Err(Stop::Memory { what, bytes, limit: self.limit });
        }
        Ok(bytes)
    }
}

fn missing(name: &str) -> String {
    format!("the column {name} is missing")
}

/// Returns whether a column of a file has the type of `column`. It may allow nulls even if `column`
/// does not.
fn is_of(found: &ColumnDescriptor, column: &FlatColumn) -> Result<bool, ParquetError> {
    let expected = column.parquet_type()?;
    Ok(found.max_rep_level() == 0
        && found.max_def_level() <= 1
        && found.physical_type() == expected.get_physical_type()
        && found.logical_type_ref() == expected.get_basic_info().logical_type_ref())
}

impl Open {
    fn read(&mut self, rows: usize) -> Result<ColumnValues, ParquetError> {
        let nullable = self.nullable;
        Ok(match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => {
                ColumnValues::Flags(read(reader, nullable, rows, |flag| flag)?)
            }
            ColumnReader::Int32ColumnReader(reader) => {
                ColumnValues::Small(read(reader, nullable, rows, i32::cast_unsigned)?)
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let values = read(reader, nullable, rows, i64::cast_unsigned)?;
                let most = i64::MAX.cast_unsigned();
                if self.column.kind == ColumnType::I64 && values.iter().flatten().any(|v| *v > most) {
                    return Err(ParquetError::General("it has a negative number".to_owned()));
                }
                ColumnValues::Large(values)
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                ColumnValues::Texts(distinct(&read(reader, nullable, rows, |text| text)?)?)
            }
            _ => {
                let name = self.column.name;
                return Err(ParquetError::General(format!("{name} has a type that no column has")));
            }
        })
    }
}

/// Reads the next `rows` values.
fn read<T: DataType, V>(
    reader: &mut ColumnReaderImpl<T>,
    nullable: bool,
    rows: usize,
    value: impl Fn(T::T) -> V,
) -> Result<Vec<Option<V>>, ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (records, _, _) = reader.read_records(rows, nullable.then_some(&mut levels), None, &mut values)?;
    if records != rows {
        return Err(ParquetError::EOF(format!("it has {records} of the {rows} values that are left of it")));
    }
    let mut values = values.into_iter().map(value);
    if !nullable {
        return Ok(values.map(Some).collect());
    }
    Ok(levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect())
}

/// Returns each distinct text once. Values from a dictionary page share the dictionary's bytes, so
/// the address and length of its bytes identify a text without comparing contents.
fn distinct(values: &[Option<ByteArray>]) -> Result<DistinctTexts, ParquetError> {
    let mut known = FxHashMap::default();
    let mut texts = DistinctTexts { keys: Vec::with_capacity(values.len()), distinct: Vec::new() };
    // Equal texts often follow each other.
    let mut last = ((std::ptr::null(), 0), 0);
    for value in values {
        let Some(value) = value else {
            texts.keys.push(None);
            continue;
        };
        let place = (value.data().as_ptr(), value.len());
        if place != last.0 || place.1 == 0 {
            let key = match known.get(&place) {
                Some(key) => *key,
                None => {
                    let key = texts.distinct.len() as u32;
                    texts.distinct.push(value.as_utf8()?.to_owned());
                    known.insert(place, key);
                    key
                }
            };
            last = (place, key);
        }
        texts.keys.push(Some(last.1));
    }
    Ok(texts)
}
