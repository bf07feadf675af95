//! A row group that is being written.
//!
//! Parquet stores a row group column by column, and a run delivers rows. So the values of each
//! column wait in memory until the row group is complete. They are encoded then, one column after
//! the other: an encoder of the parquet crate takes 70 KB before its first value and 8 bytes for
//! each value, and all columns have 68 of them. That encoder is for what has no dictionary here:
//! texts that are too long for one, flags, and columns without a value.

use std::io::Write;
use std::time::Duration;

use parquet::basic::{Compression, Type as Physical};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::SchemaDescriptor;
use zstd::bulk::Compressor;

use super::batch::Batch;
use super::dictionary_chunk::{LEVEL, write_numbers};
use super::file::Column;
use super::text_chunk::{NumberedTexts, write_texts};
use super::waiting::Waiting;
use super::waiting_texts::TextTable;

/// How long rows are collected for a row group, at least.
pub(super) const SHORTEST_GROUP: Duration = Duration::from_secs(30);
/// The number of values that are encoded at one time.
const SLICE: usize = 1024;

/// The most memory that the columns of a row group keep for the next one, in bytes. Memory that a
/// run takes again for each row group lies elsewhere each time, between what stays, and over an
/// hour more and more of the heap is resident (docs/journal/0009-waiting-rows.md). What is larger
/// comes from the kernel and goes back to it.
const MOST_KEPT: usize = 4 << 20;

/// A row group that is being written, with the values of each of [`Column::ALL`].
pub(super) struct RowGroup {
    columns: Vec<Waiting>,
    /// The number of rows so far.
    pub rows: usize,
}

impl RowGroup {
    /// Starts a row group.
    pub fn start() -> Self {
        Self { columns: Column::ALL.iter().map(|_| Waiting::default()).collect(), rows: 0 }
    }

    /// Adds rows.
    pub fn add(&mut self, batch: &Batch) -> Result<(), ParquetError> {
        for ((waiting, values), column) in self.columns.iter_mut().zip(&batch.columns).zip(Column::ALL) {
            waiting.add(column, batch.rows, values).map_err(ParquetError::General)?;
        }
        self.rows += batch.rows;
        Ok(())
    }

    /// Returns the bytes of the row group in the file before compression. Dictionaries that are
    /// not full and what refers to them are not among them.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Waiting::bytes).sum()
    }

    /// Writes the row group to a file with the schema of [`Column::ALL`], and starts the next one.
    pub fn write_to<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        schema: &SchemaDescriptor,
        properties: &WriterPropertiesPtr,
    ) -> Result<(), ParquetError> {
        let mut compressor = Compressor::new(LEVEL)?;
        for ((waiting, column), described) in self.columns.iter_mut().zip(Column::ALL).zip(schema.columns()) {
            let texts = waiting.take_texts();
            // Pages that are made here are always compressed.
            let own = matches!(properties.compression(described.path()), Compression::ZSTD(_));
            let written = match described.physical_type() {
                _ if !own => false,
                Physical::BYTE_ARRAY => {
                    let texts = NumberedTexts::of_runs(&texts, waiting.runs(), column.dictionary());
                    write_texts(group, described, properties, &mut compressor, texts)?
                }
                Physical::INT32 | Physical::INT64 => {
                    write_numbers(group, described, &mut compressor, waiting.runs(), true)?
                }
                _ => false,
            };
            if !written {
                let missing = || ParquetError::General(format!("the schema has no column {}", column.name()));
                let mut chunk = group.next_column()?.ok_or_else(missing)?;
                write(chunk.untyped(), column.nullable(), waiting, &texts)?;
                chunk.close()?;
            }
            waiting.clear(texts);
        }
        self.rows = 0;
        if self.columns.iter().map(Waiting::kept).sum::<usize>() > MOST_KEPT {
            *self = Self::start();
        }
        Ok(())
    }
}

/// Writes the values of one column.
fn write(
    writer: &mut ColumnWriter<'_>,
    nullable: bool,
    waiting: &Waiting,
    texts: &TextTable,
) -> Result<(), ParquetError> {
    match writer {
        ColumnWriter::BoolColumnWriter(writer) => put(writer, nullable, waiting, |flag| flag != 0),
        ColumnWriter::Int32ColumnWriter(writer) => put(writer, nullable, waiting, |number| number as i32),
        ColumnWriter::Int64ColumnWriter(writer) => put(writer, nullable, waiting, u64::cast_signed),
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            put(writer, nullable, waiting, |index| ByteArray::from(texts.text(index)))
        }
        _ => Err(ParquetError::General("the schema has a type that no column has".to_owned())),
    }
}

fn put<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    nullable: bool,
    waiting: &Waiting,
    value: impl Fn(u64) -> T::T,
) -> Result<(), ParquetError> {
    let (mut levels, mut present) = (Vec::with_capacity(SLICE), Vec::with_capacity(SLICE));
    for (run, mut length) in waiting.runs() {
        let same = run.map(&value);
        while length > 0 {
            let now = length.min(SLICE - levels.len());
            length -= now;
            // The definition level of a flat column: 1 if there is a value, 0 for null.
            levels.resize(levels.len() + now, i16::from(same.is_some()));
            if let Some(same) = &same {
                present.resize(present.len() + now, same.clone());
            }
            if levels.len() == SLICE {
                writer.write_batch(&present, nullable.then_some(&levels[..]), None)?;
                levels.clear();
                present.clear();
            }
        }
    }
    writer.write_batch(&present, nullable.then_some(&levels[..]), None)?;
    Ok(())
}
