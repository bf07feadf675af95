//! A row group that is being written.
//!
//! Parquet stores a row group column by column, and a run delivers rows. So each column is encoded
//! in memory as its values arrive, and is written to the file when the row group is complete.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl, get_column_writer};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::SchemaDescriptor;

use super::batch::{Batch, Values};
use super::file::Column;

/// A row group that is being written, with one [`Chunk`] for each of [`Column::ALL`].
pub(super) struct RowGroup {
    chunks: Vec<Chunk>,
    /// The number of rows so far.
    pub rows: usize,
}

/// The encoded values of one column.
struct Chunk {
    writer: ColumnWriter<'static>,
    pages: Pages,
}

/// The finished pages of a chunk. The column's writer and the chunk each own a handle to them.
#[derive(Clone, Default)]
struct Pages(Arc<Mutex<Finished>>);

#[derive(Default)]
struct Finished {
    /// The compressed pages.
    bytes: Vec<u8>,
    /// The number of bytes that they have when they are decompressed.
    decompressed: usize,
}

impl RowGroup {
    /// Starts a row group with this schema, which must be that of [`Column::ALL`].
    pub fn start(schema: &SchemaDescriptor, properties: &WriterPropertiesPtr) -> Self {
        let chunk = |column: &_| {
            let pages = Pages::default();
            let writer =
                get_column_writer(Arc::clone(column), Arc::clone(properties), Box::new(pages.clone()));
            Chunk { writer, pages }
        };
        Self { chunks: schema.columns().iter().map(chunk).collect(), rows: 0 }
    }

    /// Adds rows.
    pub fn add(&mut self, batch: &Batch) -> Result<(), ParquetError> {
        for ((chunk, values), column) in self.chunks.iter_mut().zip(&batch.columns).zip(Column::ALL) {
            let written = write(&mut chunk.writer, column.nullable(), values)?;
            if written != batch.rows {
                let what =
                    format!("the column {} has {written} values for {} rows", column.name(), batch.rows);
                return Err(ParquetError::General(what));
            }
        }
        self.rows += batch.rows;
        Ok(())
    }

    /// Returns the bytes of the finished pages when they are decompressed. Dictionaries and what
    /// refers to them are not among them before the end of the row group.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.pages.decompressed()).sum()
    }

    /// Writes the row group to a file.
    pub fn write_to<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        for Chunk { writer, pages } in self.chunks {
            let closed = writer.close()?;
            group.append_column(&pages.take(), closed)?;
        }
        Ok(())
    }
}

impl Pages {
    fn decompressed(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).decompressed
    }

    fn take(&self) -> Bytes {
        let mut finished = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Bytes::from(std::mem::take(&mut finished.bytes))
    }
}

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pages.bytes.len() as u64;
        pages.decompressed += page.uncompressed_size();
        let mut sink = TrackedWrite::new(&mut pages.bytes);
        let mut spec = SerializedPageWriter::new(&mut sink).write_page(page)?;
        sink.flush()?;
        spec.offset += before;
        Ok(spec)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        Ok(())
    }
}

/// Writes the values of one column. Returns the number of rows that have a value, or a null where
/// the column allows nulls.
fn write(writer: &mut ColumnWriter<'static>, nullable: bool, values: &Values) -> Result<usize, ParquetError> {
    match (writer, values) {
        (ColumnWriter::BoolColumnWriter(writer), Values::Flags(flags)) => {
            put(writer, nullable, flags.iter().copied())
        }
        (ColumnWriter::Int32ColumnWriter(writer), Values::Small(numbers)) => {
            put(writer, nullable, numbers.iter().map(|n| n.map(u32::cast_signed)))
        }
        (ColumnWriter::Int64ColumnWriter(writer), Values::Large(numbers)) => {
            put(writer, nullable, numbers.iter().map(|n| n.map(u64::cast_signed)))
        }
        (ColumnWriter::Int64ColumnWriter(writer), Values::Times(times)) => {
            put(writer, nullable, times.iter().copied())
        }
        (ColumnWriter::ByteArrayColumnWriter(writer), Values::Texts(texts)) => {
            let distinct: Vec<ByteArray> =
                texts.distinct.iter().map(|text| ByteArray::from(text.as_str())).collect();
            put(writer, nullable, texts.keys.iter().map(|key| distinct.get((*key)? as usize).cloned()))
        }
        (_, values) => {
            Err(ParquetError::General(format!("values of another type than their column's: {values:?}")))
        }
    }
}

fn put<T: DataType>(
    writer: &mut ColumnWriterImpl<'static, T>,
    nullable: bool,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<usize, ParquetError> {
    let (mut levels, mut present) = (Vec::new(), Vec::new());
    for value in values {
        // The definition level of a flat column: 1 if there is a value, 0 for null.
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    writer.write_batch(&present, nullable.then_some(&levels[..]), None)?;
    Ok(if nullable { levels.len() } else { present.len() })
}
