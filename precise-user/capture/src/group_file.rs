//! The file that a capture is written to: row groups, and what describes them.
//!
//! The writer of the parquet crate keeps the description of each row group in memory until the end
//! of the file: 50 KB for the columns of a capture, and a run that goes on for days has thousands
//! of row groups. Here a description is kept as the footer will have it, compressed with the first
//! one as dictionary, and all are in one block of memory: small blocks that stay would keep the
//! pages around them in memory, too. Those that a checkpoint has written are read back from the
//! file at its end.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader,
    ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, TypePtr};
use zstd::bulk::{Compressor, Decompressor};

use super::row_group::RowGroup;

/// The magic number at the start and at the end of a Parquet file.
const MAGIC: &[u8; 4] = b"PAR1";
/// The length and the magic number after the thrift structure of a footer, in bytes.
pub(super) const FOOTER_END: usize = 8;
/// How much the descriptions are compressed: they resemble the first one, so little is enough.
const LEVEL: i32 = 3;

/// A Parquet file that is being written, row group by row group.
pub(super) struct GroupFile<W: Write> {
    bytes: TrackedWrite<W>,
    schema: SchemaDescPtr,
    properties: WriterPropertiesPtr,
    /// The footers in the file that describe row groups.
    written: Vec<WrittenFooter>,
    /// The row groups since the last of these footers.
    groups: Descriptions,
}

/// A footer that is in the file already.
struct WrittenFooter {
    position: u64,
    /// The length in bytes.
    length: usize,
    /// The number of row groups that it describes.
    groups: usize,
}

/// An output whose bytes can be read while it is written.
pub(super) trait ReadBack {
    /// Returns bytes that were written, and flushed.
    fn read_back(&self, position: u64, length: usize) -> io::Result<Vec<u8>>;
}

/// The descriptions of row groups. Each is the footer of a file that has only this one.
#[derive(Default)]
struct Descriptions {
    /// The first one, to which the others are compressed.
    first: Vec<u8>,
    /// All of them, compressed, one after the other.
    compressed: Vec<u8>,
    /// For each of them, where it ends in `compressed`, and its length before it was compressed.
    ends: Vec<(usize, usize)>,
}

impl Descriptions {
    fn add(&mut self, footer: Vec<u8>) -> io::Result<()> {
        let bytes = Compressor::with_dictionary(LEVEL, &self.first)?.compress(&footer)?;
        self.compressed.extend(bytes);
        self.ends.push((self.compressed.len(), footer.len()));
        if self.first.is_empty() {
            self.first = footer;
        }
        Ok(())
    }

    /// Returns the description of row group `number`.
    fn get(&self, number: usize) -> io::Result<Vec<u8>> {
        let missing = || io::Error::other("a row group without a description");
        let begin = number.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |(end, _)| *end);
        let (end, length) = self.ends.get(number).ok_or_else(missing)?;
        let bytes = self.compressed.get(begin..*end).ok_or_else(missing)?;
        let dictionary = if number == 0 { &[][..] } else { &self.first };
        Decompressor::with_dictionary(dictionary)?.decompress(bytes, *length)
    }
}

impl<W: Write + Send> GroupFile<W> {
    /// Starts the file.
    pub fn start(output: W, schema: TypePtr, properties: WriterPropertiesPtr) -> io::Result<Self> {
        let mut bytes = TrackedWrite::new(output);
        bytes.write_all(MAGIC)?;
        let schema = Arc::new(SchemaDescriptor::new(schema));
        Ok(Self { bytes, schema, properties, written: Vec::new(), groups: Descriptions::default() })
    }

    /// Writes a row group, which is empty afterwards.
    pub fn add(&mut self, group: &mut RowGroup) -> Result<(), ParquetError> {
        let number = i32::try_from(self.groups()).map_err(|error| ParquetError::External(error.into()))?;
        let Self { bytes, schema, properties, .. } = self;
        let mut writer =
            SerializedRowGroupWriter::new(Arc::clone(schema), Arc::clone(properties), bytes, number, None);
        group.write_to(&mut writer, schema, properties)?;
        let description = RowGroupMetaData::clone(&*writer.close()?);
        let footer = footer(schema, properties.created_by(), vec![description], Vec::new())?;
        self.groups.add(footer).map_err(external)
    }

    /// Returns the number of row groups that were written.
    pub fn groups(&self) -> usize {
        self.written.iter().map(|footer| footer.groups).sum::<usize>() + self.groups.ends.len()
    }

    /// Returns the position in the file.
    pub fn position(&self) -> u64 {
        self.bytes.bytes_written() as u64
    }

    /// Returns the footer of a file with the row groups since the last [`Self::wrote_footer`], and
    /// these pairs.
    pub fn footer(&self, pairs: Vec<KeyValue>) -> Result<Vec<u8>, ParquetError> {
        footer(&self.schema, self.properties.created_by(), self.in_memory()?, pairs)
    }

    /// Says that what [`Self::footer`] returned, of this length, is in the file at `position`. The
    /// descriptions in it leave memory.
    pub fn wrote_footer(&mut self, position: u64, length: usize) {
        let groups = std::mem::take(&mut self.groups).ends.len();
        self.written.push(WrittenFooter { position, length, groups });
    }

    fn in_memory(&self) -> Result<Vec<RowGroupMetaData>, ParquetError> {
        let one = |number| self.decoded(&self.groups.get(number).map_err(external)?);
        let all: Result<Vec<_>, _> = (0..self.groups.ends.len()).map(one).collect();
        Ok(all?.into_iter().flatten().collect())
    }

    /// Adds bytes that are not of a row group.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.write_all(bytes)
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.bytes.flush()
    }

    /// Returns the output.
    pub fn output(&self) -> &W {
        self.bytes.inner()
    }

    /// Returns the output. What is written to it directly is not counted, and damages the file.
    pub fn output_mut(&mut self) -> &mut W {
        self.bytes.inner_mut()
    }

    /// Completes the file with these pairs.
    pub fn finish(mut self, pairs: Vec<KeyValue>) -> Result<W, ParquetError>
    where
        W: ReadBack,
    {
        self.bytes.flush().map_err(external)?;
        let mut groups = Vec::new();
        for written in &self.written {
            let footer = self.bytes.inner().read_back(written.position, written.length).map_err(external)?;
            groups.extend(self.decoded(&footer)?);
        }
        groups.extend(self.in_memory()?);
        let footer = footer(&self.schema, self.properties.created_by(), groups, pairs)?;
        self.bytes.write_all(&footer).map_err(external)?;
        self.bytes.into_inner()
    }

    /// Returns the row groups of a footer.
    fn decoded(&self, footer: &[u8]) -> Result<Vec<RowGroupMetaData>, ParquetError> {
        let thrift = footer.get(..footer.len().saturating_sub(FOOTER_END)).unwrap_or_default();
        // All share one schema. Otherwise each would bring its own.
        let options = ParquetMetaDataOptions::new().with_schema(Arc::clone(&self.schema));
        let decoded = ParquetMetaDataReader::decode_metadata_with_options(thrift, Some(&options))?;
        Ok(decoded.row_groups().to_vec())
    }
}

/// Returns the footer of a file with these row groups and pairs.
pub(super) fn footer(
    schema: &SchemaDescPtr,
    created_by: &str,
    groups: Vec<RowGroupMetaData>,
    pairs: Vec<KeyValue>,
) -> Result<Vec<u8>, ParquetError> {
    let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
    let pairs = (!pairs.is_empty()).then_some(pairs);
    let file = FileMetaData::new(1, rows, Some(created_by.to_owned()), pairs, Arc::clone(schema), None);
    let mut bytes = Vec::new();
    ParquetMetaDataWriter::new(&mut bytes, &ParquetMetaData::new(file, groups)).finish()?;
    Ok(bytes)
}

fn external(error: io::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

#[cfg(test)]
impl ReadBack for Vec<u8> {
    fn read_back(&self, position: u64, length: usize) -> io::Result<Vec<u8>> {
        let position = usize::try_from(position).map_err(io::Error::other)?;
        self.get(position..position + length).map(<[u8]>::to_vec).ok_or(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};

    use super::{FOOTER_END, GroupFile, RowGroup};
    use crate::file::schema;
    use crate::write_rows::batch;
    use precise_model::testing::CaptureBuilder;

    /// All that a reader can know of a row group is in the footer, and little of it in memory.
    #[test]
    fn a_description_is_small_and_complete() {
        let mut file = GroupFile::start(Vec::new(), schema().unwrap(), Arc::default()).unwrap();
        let rows = |group: u32| {
            let mut builder = CaptureBuilder::new();
            for row in 0..100 {
                let pid = group * 100 + row;
                let cell = builder.cell().samples(3).process(pid, &format!("job-{pid}"));
                let _ = cell.cgroup(pid.into(), &format!("/batch/{pid:064x}"));
            }
            let capture = builder.build();
            let mut rows = RowGroup::start();
            rows.add(&batch(&capture, &capture.rows).unwrap()).unwrap();
            rows
        };
        (0..50).for_each(|group| file.add(&mut rows(group)).unwrap());
        assert_eq!(file.groups(), 50);
        let (first, all) = (file.groups.ends[0].0, file.groups.compressed.len());
        assert!(first < 4096 && all < first + 49 * 1024, "{first} bytes for the first, {all} for all");
        let some = file.footer(Vec::new()).unwrap();
        assert!(some.ends_with(b"PAR1") && some.len() > FOOTER_END);
        // What is in the file leaves memory.
        let position = file.position();
        file.write_all(&some).unwrap();
        file.wrote_footer(position, some.len());
        assert!(file.groups() == 50 && file.groups.compressed.capacity() == 0);
        file.add(&mut rows(50)).unwrap();

        let whole = SerializedFileReader::new(Bytes::from(file.finish(Vec::new()).unwrap())).unwrap();
        let meta = whole.metadata();
        assert_eq!((meta.num_row_groups(), meta.file_metadata().num_rows()), (51, 5100));
        let numbers: Vec<_> = meta.row_groups().iter().filter_map(|group| group.ordinal()).collect();
        assert_eq!(numbers, (0..51).collect::<Vec<i32>>());
        let has_limits = |column: &_| {
            let column: &parquet::file::metadata::ColumnChunkMetaData = column;
            column.statistics().is_some_and(|values| values.min_bytes_opt().is_some())
        };
        let pid = crate::Column::ALL.iter().position(|column| column.name() == "pid").unwrap();
        assert!(meta.row_groups().iter().all(|group| has_limits(group.column(pid))));
    }
}
