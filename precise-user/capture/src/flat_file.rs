//! Flat Parquet tables that are not captures: written a row group at a time, read by row group and
//! column.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Type as Physical, ZstdLevel};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::reader::Length as _;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};
use zstd::bulk::Compressor;

use super::batch::{ColumnValues, DistinctTexts};
use super::dictionary_chunk::{LEVEL, write_numbers};
use super::file_output::{FileOutput, MemoryOutput};
use super::flat::{self, FlatColumn};
use super::flat_columns::{FlatValues, batches};
use super::group_file::footer;
use super::limits::ReadLimits;
use super::ranged::{RangeSource, Ranged};
use super::read::{answering_panics, check_chunks, footer as read_footer, value};
use super::read_columns::GroupReader;
use super::read_error::{ReadError, Stop};
use super::text_chunk::{NumberedTexts, write_texts};

/// A table that is being written to memory.
pub struct FlatWriter {
    bytes: TrackedWrite<FileOutput>,
    written: MemoryOutput,
    schema: SchemaDescPtr,
    properties: WriterPropertiesPtr,
    compressor: Compressor<'static>,
    groups: Vec<RowGroupMetaData>,
}

impl FlatWriter {
    /// Starts a table. `plain` names the columns whose values seldom repeat, which get no
    /// dictionary. The bytes of a table follow from its rows alone.
    ///
    /// # Errors
    ///
    /// Returns an error if the columns cannot be those of a table.
    pub fn start(columns: &[FlatColumn], plain: &[&str]) -> io::Result<Self> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL).map_err(io::Error::other)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_created_by("precise".to_owned());
        for name in plain {
            properties = properties.set_column_dictionary_enabled((*name).into(), false);
        }
        let schema = flat::schema(columns.iter().copied()).map_err(io::Error::other)?;
        let written = MemoryOutput::default();
        let mut bytes = TrackedWrite::new(FileOutput::stream(Box::new(written.clone())));
        bytes.write_all(b"PAR1")?;
        Ok(Self {
            bytes,
            written,
            schema: Arc::new(SchemaDescriptor::new(schema)),
            properties: Arc::new(properties.build()),
            compressor: Compressor::new(LEVEL)?,
            groups: Vec::new(),
        })
    }

    /// Adds a row group: the values of all columns, each with as many rows.
    ///
    /// # Errors
    ///
    /// Returns an error if the values are not those of the columns.
    pub fn group(&mut self, columns: &[ColumnValues]) -> io::Result<()> {
        self.add(columns).map_err(io::Error::other)
    }

    fn add(&mut self, columns: &[ColumnValues]) -> Result<(), ParquetError> {
        let Self { bytes, schema, properties, compressor, groups, .. } = self;
        let number = i32::try_from(groups.len()).map_err(|error| ParquetError::External(error.into()))?;
        let mut group =
            SerializedRowGroupWriter::new(Arc::clone(schema), Arc::clone(properties), bytes, number, None);
        for (values, column) in columns.iter().zip(schema.columns()) {
            let dictionary = properties.dictionary_enabled(column.path());
            let written = match (values, column.physical_type()) {
                (ColumnValues::Texts(texts), Physical::BYTE_ARRAY) if dictionary => {
                    let texts = NumberedTexts::of(texts);
                    write_texts(&mut group, column, properties, compressor, texts)?
                }
                (ColumnValues::Small(numbers), Physical::INT32) => {
                    let numbers = numbers.iter().map(|number| (number.map(u64::from), 1));
                    write_numbers(&mut group, column, compressor, numbers, dictionary)?
                }
                (ColumnValues::Large(numbers), Physical::INT64) => {
                    let numbers = numbers.iter().map(|number| (*number, 1));
                    write_numbers(&mut group, column, compressor, numbers, dictionary)?
                }
                (ColumnValues::Times(times), Physical::INT64) => {
                    let numbers = times.iter().map(|time| (time.map(i64::cast_unsigned), 1));
                    write_numbers(&mut group, column, compressor, numbers, dictionary)?
                }
                _ => false,
            };
            if written {
                continue;
            }
            let missing = || ParquetError::General(format!("the schema has no column {}", column.name()));
            let mut chunk = group.next_column()?.ok_or_else(missing)?;
            let nullable = column.max_def_level() > 0;
            match (chunk.untyped(), values) {
                (ColumnWriter::BoolColumnWriter(writer), ColumnValues::Flags(flags)) => {
                    put(writer, nullable, flags.iter().copied())
                }
                (ColumnWriter::Int32ColumnWriter(writer), ColumnValues::Small(numbers)) => {
                    put(writer, nullable, numbers.iter().map(|n| n.map(u32::cast_signed)))
                }
                (ColumnWriter::Int64ColumnWriter(writer), ColumnValues::Large(numbers)) => {
                    put(writer, nullable, numbers.iter().map(|n| n.map(u64::cast_signed)))
                }
                (ColumnWriter::Int64ColumnWriter(writer), ColumnValues::Times(times)) => {
                    put(writer, nullable, times.iter().copied())
                }
                (ColumnWriter::ByteArrayColumnWriter(writer), ColumnValues::Texts(texts)) => {
                    let all: Vec<ByteArray> =
                        texts.distinct.iter().map(|text| ByteArray::from(text.as_str())).collect();
                    let text = |key: &Option<u32>| all.get((*key)? as usize).cloned();
                    put(writer, nullable, texts.keys.iter().map(text))
                }
                _ => Err(ParquetError::General(format!("{} has other values", column.name()))),
            }?;
            chunk.close()?;
        }
        groups.push(RowGroupMetaData::clone(&*group.close()?));
        Ok(())
    }

    /// Completes the table with these key-value pairs, and returns its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the description of the table cannot be encoded.
    pub fn finish(mut self, pairs: &[(&str, &str)]) -> io::Result<Vec<u8>> {
        let pair = |(key, value): &(&str, &str)| KeyValue::new((*key).to_owned(), (*value).to_owned());
        let pairs = pairs.iter().map(pair).collect();
        let footer = footer(&self.schema, self.properties.created_by(), self.groups, pairs);
        self.bytes.write_all(&footer.map_err(io::Error::other)?)?;
        self.bytes.flush()?;
        drop(self.bytes);
        Ok(self.written.take())
    }
}

/// Writes the values of one column. A column without nulls leaves out what is null: the number of
/// its values is then wrong, which the row group refuses.
fn put<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    nullable: bool,
    values: impl Iterator<Item = Option<T::T>> + Clone,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> =
        if nullable { values.clone().map(|v| i16::from(v.is_some())).collect() } else { Vec::new() };
    let present: Vec<T::T> = values.flatten().collect();
    writer.write_batch(&present, nullable.then_some(&levels[..]), None).map(drop)
}

/// A table whose row groups and columns are read as they are asked for. The bytes are not trusted.
pub struct FlatReader {
    file: Ranged,
    metadata: ParquetMetaData,
    label: String,
    limits: ReadLimits,
}

/// The smallest and the largest value of a column in a row group. They may be wider than the
/// values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlatBounds {
    /// Of a column of numbers without a sign.
    Numbers(u64, u64),
    /// Of a column of texts.
    Texts(String, String),
}

impl FlatReader {
    /// Reads the description of a table; `label` names it in errors.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not a table or is damaged.
    pub fn open(source: Arc<dyn RangeSource>, label: &str, limits: &ReadLimits) -> Result<Self, ReadError> {
        answering_panics(label, || {
            let file = Ranged::new(source);
            let (metadata, _) = read_footer(&file, label, limits)?;
            check_chunks(&metadata, file.len())
                .map_err(|what| ReadError::Corrupt { path: label.to_owned(), what })?;
            Ok(Self { file, metadata, label: label.to_owned(), limits: *limits })
        })
    }

    /// Returns a value of the table's key-value metadata.
    pub fn value(&self, key: &str) -> Option<&str> {
        value(&self.metadata, key)
    }

    /// Returns the number of row groups.
    pub fn groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// Returns the number of rows of a row group; 0 if there is none of this number.
    pub fn rows(&self, group: usize) -> u64 {
        let group = self.metadata.row_groups().get(group);
        group.and_then(|group| u64::try_from(group.num_rows()).ok()).unwrap_or(0)
    }

    /// Returns the bounds of a column in a row group; `None` if the file does not have them. A null
    /// counts as the empty text; a column of numbers with nulls has no bounds.
    pub fn bounds(&self, group: usize, column: &str) -> Option<FlatBounds> {
        let columns = self.metadata.row_groups().get(group)?.columns().iter();
        let chunk = columns.into_iter().find(|chunk| chunk.column_path().string() == column)?;
        let statistics = chunk.statistics()?;
        let nulls = statistics.null_count_opt()?;
        match statistics {
            Statistics::Int32(of) if nulls == 0 => Some(FlatBounds::Numbers(
                of.min_opt()?.cast_unsigned().into(),
                of.max_opt()?.cast_unsigned().into(),
            )),
            Statistics::Int64(of) if nulls == 0 => {
                Some(FlatBounds::Numbers(of.min_opt()?.cast_unsigned(), of.max_opt()?.cast_unsigned()))
            }
            Statistics::ByteArray(of) => {
                let text = |bytes: &ByteArray| std::str::from_utf8(bytes.data()).ok().map(str::to_owned);
                let only_nulls = u64::try_from(chunk.num_values()).ok() == Some(nulls);
                let first = if nulls > 0 { String::new() } else { text(of.min_opt()?)? };
                let last = if only_nulls { String::new() } else { text(of.max_opt()?)? };
                Some(FlatBounds::Texts(first, last))
            }
            _ => None,
        }
    }

    /// Calls `each` with a number of rows and the values of these columns, in their order, until
    /// all rows of a row group were read, at most `most` at a time. `each` returns what is wrong
    /// with the values.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is damaged, or if it needs more memory than
    /// [`ReadLimits::bytes`].
    pub fn read(
        &self,
        group: usize,
        columns: &[FlatColumn],
        most: usize,
        each: impl FnMut(usize, &[&FlatValues]) -> Result<(), String>,
    ) -> Result<(), ReadError> {
        let Self { file, metadata, label, limits } = self;
        answering_panics(label, || {
            let read = || match GroupReader::one(file, metadata, group, limits.pages(), true)? {
                Some(group) => batches(&group, columns, most, each).map(drop),
                None => Ok(()),
            };
            read().map_err(|stop: Stop| stop.of(label, (self.rows(group), limits.rows)))
        })
    }
}

impl DistinctTexts {
    /// Returns a column of text by the number of each row's text in `distinct`.
    pub fn new(keys: Vec<Option<u32>>, distinct: Vec<String>) -> Self {
        Self { keys, distinct }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flat::ColumnType;

    const COLUMNS: [FlatColumn; 4] = [
        FlatColumn::must("service", ColumnType::Text, ""),
        FlatColumn::may("level", ColumnType::Text, ""),
        FlatColumn::must("count", ColumnType::I64, ""),
        FlatColumn::may("latency_max", ColumnType::U32, ""),
    ];

    fn values(rows: u32, service: &str) -> Vec<ColumnValues> {
        let texts = |keys, text: &str| {
            ColumnValues::Texts(DistinctTexts::new(keys, vec![text.to_owned(), "z".to_owned()]))
        };
        vec![
            texts((0..rows).map(|row| Some(row % 2)).collect(), service),
            texts((0..rows).map(|row| (row % 3 > 0).then_some(0)).collect(), "L1 hit"),
            ColumnValues::Large((0..rows).map(|row| Some(row.into())).collect()),
            ColumnValues::Small((0..rows).map(|row| (row % 5 > 0).then_some(row)).collect()),
        ]
    }

    fn table() -> Vec<u8> {
        let mut writer = FlatWriter::start(&COLUMNS, &["count"]).unwrap();
        writer.group(&values(1000, "a")).unwrap();
        writer.group(&values(10, "y")).unwrap();
        writer.finish(&[("made", "by a test")]).unwrap()
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let (bytes, again) = (table(), table());
        assert_eq!(bytes, again);
        let reader =
            FlatReader::open(Arc::new(bytes::Bytes::from(bytes)), "t", &ReadLimits::default()).unwrap();
        assert_eq!((reader.groups(), reader.rows(0), reader.rows(1), reader.rows(2)), (2, 1000, 10, 0));
        assert_eq!(reader.value("made"), Some("by a test"));
        assert_eq!(reader.bounds(1, "service"), Some(FlatBounds::Texts("y".into(), "z".into())));
        assert_eq!(reader.bounds(0, "count"), Some(FlatBounds::Numbers(0, 999)));
        assert_eq!(reader.bounds(0, "level"), Some(FlatBounds::Texts(String::new(), "L1 hit".into())));
        assert_eq!((reader.bounds(0, "latency_max"), reader.bounds(0, "none")), (None, None));
        let mut rows = 0;
        let each = |now: usize, columns: &[&FlatValues]| {
            let [counts, levels, again] = columns else { return Err("three columns".to_owned()) };
            for at in 0..now {
                assert_eq!(counts.number(at), Some((rows + at) as u64));
                assert_eq!(levels.text(at), ((rows + at) % 3 > 0).then_some("L1 hit"));
                assert_eq!(again.number(at), counts.number(at));
            }
            assert_eq!((counts.number(now), counts.text(0)), (None, None));
            rows += now;
            Ok(())
        };
        reader.read(0, &[COLUMNS[2], COLUMNS[1], COLUMNS[2]], 300, each).unwrap();
        assert_eq!(rows, 1000);
        let wrong = FlatColumn::must("count", ColumnType::Text, "");
        let error = reader.read(0, &[wrong], 300, |_, _| Ok(())).unwrap_err().to_string();
        assert!(error.contains("the column count has the wrong type"), "{error}");
    }

    #[test]
    fn texts_are_read_as_they_were_written() {
        const ROWS: u32 = 3000;
        const TEXTS: [FlatColumn; 2] =
            [FlatColumn::must("must", ColumnType::Text, ""), FlatColumn::may("may", ColumnType::Text, "")];
        // Few texts, some of them twice; one; none; and more bytes than a dictionary may have.
        let few = |n: u32| format!("text {}", n % 5);
        let long = |n: u32| format!("{n:0500}");
        for (distinct, most) in [
            ((0..10).map(few).collect::<Vec<_>>(), 10),
            (vec!["x".repeat(100)], 1),
            (vec![String::new(), "\u{fffd}é".to_owned()], 2),
            ((0..ROWS).map(long).collect(), ROWS),
        ] {
            for every in [1, 3, ROWS + 1] {
                let may = |row: u32| (row % every == every - 1).then_some((row * 7) % most);
                let keys =
                    [(0..ROWS).map(|row| Some(row % most)).collect::<Vec<_>>(), (0..ROWS).map(may).collect()];
                let columns =
                    keys.clone().map(|keys| ColumnValues::Texts(DistinctTexts::new(keys, distinct.clone())));
                let mut writer = FlatWriter::start(&TEXTS, &[]).unwrap();
                writer.group(&columns).unwrap();
                let bytes = bytes::Bytes::from(writer.finish(&[]).unwrap());
                let reader = FlatReader::open(Arc::new(bytes), "t", &ReadLimits::default()).unwrap();
                let text = |key: Option<u32>| key.map(|key| distinct[key as usize].as_str());
                let mut first = 0;
                let each = |rows: usize, values: &[&FlatValues]| {
                    for (values, keys) in values.iter().zip(&keys) {
                        for row in 0..rows {
                            assert_eq!(values.text(row), text(keys[first + row]), "{}", first + row);
                        }
                    }
                    first += rows;
                    Ok(())
                };
                reader.read(0, &TEXTS, 1000, each).unwrap();
                assert_eq!(first, ROWS as usize);
                let used = distinct.iter().min().cloned().zip(distinct.iter().max().cloned()).unwrap();
                let bounds = reader.bounds(0, "must");
                if used.0.len() < 64 {
                    assert_eq!(bounds, Some(FlatBounds::Texts(used.0, used.1)));
                }
                if every > ROWS {
                    let none = Some(FlatBounds::Texts(String::new(), String::new()));
                    assert_eq!(reader.bounds(0, "may"), none);
                }
            }
        }
        let missing = ColumnValues::Texts(DistinctTexts::new(vec![None], Vec::new()));
        let mut writer = FlatWriter::start(&TEXTS, &[]).unwrap();
        assert!(writer.group(&[missing.clone(), missing]).is_err());
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        const NUMBERS: [FlatColumn; 4] = [
            FlatColumn::must("small", ColumnType::U32, ""),
            FlatColumn::may("large", ColumnType::U64, ""),
            FlatColumn::may("time", ColumnType::Time, ""),
            FlatColumn::may("null", ColumnType::U8, ""),
        ];
        // More rows than a page has, and in the last case more different numbers than a dictionary.
        for (rows, different) in
            [(1_u32, 1_u32), (50_000, 1), (50_000, 3), (50_000, 1 << 15), (150_000, 1 << 30)]
        {
            let small = |row: u32| Some((row / 7).wrapping_mul(2_654_435_761) % different);
            let large = |row: u32| (row % 11 != 4).then_some(u64::MAX - u64::from(row % different));
            let time = |row: u32| (row >= 30_000).then_some(i64::from(row % different) << 20);
            let columns = [
                ColumnValues::Small((0..rows).map(small).collect()),
                ColumnValues::Large((0..rows).map(large).collect()),
                ColumnValues::Times((0..rows).map(time).collect()),
                ColumnValues::Small(vec![None; rows as usize]),
            ];
            let mut writer = FlatWriter::start(&NUMBERS, &[]).unwrap();
            writer.group(&columns).unwrap();
            let bytes = bytes::Bytes::from(writer.finish(&[]).unwrap());
            let reader = FlatReader::open(Arc::new(bytes), "t", &ReadLimits::default()).unwrap();
            let mut first = 0;
            let each = |count: usize, values: &[&FlatValues]| {
                for at in 0..count {
                    let row = first + at as u32;
                    let expected =
                        [small(row).map(u64::from), large(row), time(row).map(i64::cast_unsigned), None];
                    let found: Vec<_> = values.iter().map(|values| values.number(at)).collect();
                    assert_eq!(found, expected, "{row} of {rows}");
                }
                first += count as u32;
                Ok(())
            };
            reader.read(0, &NUMBERS, 1000, each).unwrap();
            assert_eq!(first, rows);
            let ends = (0..rows).filter_map(small).min().zip((0..rows).filter_map(small).max());
            let bounds = ends.map(|(min, max)| FlatBounds::Numbers(min.into(), max.into()));
            assert_eq!(reader.bounds(0, "small"), bounds);
            assert_eq!(reader.bounds(0, "null"), None);
        }
        let mut writer = FlatWriter::start(&NUMBERS[..1], &[]).unwrap();
        assert!(writer.group(&[ColumnValues::Small(vec![Some(1), None])]).is_err());
    }

    #[test]
    fn what_is_damaged_is_an_error() {
        let bytes = table();
        let open = |bytes: Vec<u8>| {
            FlatReader::open(Arc::new(bytes::Bytes::from(bytes)), "t", &ReadLimits::default())
        };
        for cut in 0..bytes.len() {
            assert!(open(bytes[..cut].to_vec()).is_err(), "{cut}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            if let Ok(reader) = open(damaged) {
                for group in 0..reader.groups().min(4) {
                    let _any = reader.read(group, &COLUMNS, 300, |_, _| Ok(()));
                }
            }
        }
    }

    #[test]
    fn a_column_of_other_values_is_refused() {
        let mut writer = FlatWriter::start(&COLUMNS, &[]).unwrap();
        let mut wrong = values(3, "a");
        wrong.swap(0, 2);
        assert!(writer.group(&wrong).is_err());
    }
}
