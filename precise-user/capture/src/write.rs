//! Writing a capture, at once or epoch by epoch.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;

use super::file::{META_KEY, ROW_GROUP_ROWS, SCHEMA_KEY, schema};
use super::file_output::Output;
use super::row_group::RowGroup;
use super::write_rows::batch;
use precise_model::{Capture, Meta, Row, SCHEMA_VERSION};

/// The largest dictionary of the call chains in a row group, in bytes. Up to this size, each chain
/// is written once, however many rows have it.
const STACK_DICTIONARY: usize = 64 << 20;

/// The reason why a capture could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file system returned an error.
    #[error(
        "cannot write the capture {}: {source}. An existing file of this name is unchanged. Free some \
         space, or write elsewhere with -o.", path.display()
    )]
    Io {
        /// The target as the user named it; `-` for the standard output.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The rows refer to something that the capture does not contain: a bug in the code that made
    /// them.
    #[error(
        "cannot write the capture: {0}. This is a bug in precise; please report it with the \
         command that you ran."
    )]
    Model(String),
}

/// Writes a capture while the run goes on. Rows leave memory when a row group is full.
///
/// Nothing is visible under the target's name before [`CaptureWriter::finish`]; a writer that is
/// dropped removes what it wrote. It holds at most 65,536 encoded rows and the dictionaries of one
/// row group in memory.
pub struct CaptureWriter {
    file: SerializedFileWriter<Output>,
    /// The row group that is not in the file yet; `None` if no rows wait.
    group: Option<RowGroup>,
    path: PathBuf,
}

impl CaptureWriter {
    /// Starts a capture at `path`; `-` is the standard output.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let output =
            Output::create(path).map_err(|source| WriteError::Io { path: path.to_owned(), source })?;
        Self::start(output, path.to_owned())
    }

    /// Starts a capture that is written to a stream.
    pub fn to_stream(stream: Box<dyn Write + Send>) -> Result<Self, WriteError> {
        Self::start(Output::stream(stream), PathBuf::from("-"))
    }

    fn start(output: Output, path: PathBuf) -> Result<Self, WriteError> {
        let level = ZstdLevel::try_new(3).map_err(|e| failed(&path, e))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            // Statistics of pages would stay in memory until the end of the file, which may be days
            // away. Queries can skip row groups by the smallest and largest value of each column.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            // A chain takes kilobytes, and many rows have the same one.
            .set_column_dictionary_page_size_limit("stack".into(), STACK_DICTIONARY)
            .set_created_by(concat!("precise ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let file =
            schema().and_then(|schema| SerializedFileWriter::new(output, schema, Arc::new(properties)));
        let file = file.map_err(|e| failed(&path, e))?;
        Ok(Self { file, group: None, path })
    }

    /// Adds rows. They refer to the names, locations, epochs and events of `capture`; the rows of
    /// `capture` itself are ignored.
    pub fn append_epoch(&mut self, capture: &Capture, rows: &[Row]) -> Result<(), WriteError> {
        let mut rest = rows;
        while !rest.is_empty() {
            let group = self.group.get_or_insert_with(|| RowGroup::start(&self.file));
            let (now, later) = rest.split_at(rest.len().min(ROW_GROUP_ROWS - group.rows));
            let batch = batch(capture, now).map_err(WriteError::Model)?;
            group.add(&batch).map_err(|e| failed(&self.path, e))?;
            if group.rows == ROW_GROUP_ROWS {
                self.finish_group()?;
            }
            rest = later;
        }
        Ok(())
    }

    fn finish_group(&mut self) -> Result<(), WriteError> {
        let Some(group) = self.group.take() else { return Ok(()) };
        group.finish(&mut self.file).map_err(|e| failed(&self.path, e))
    }

    /// Completes the capture with the metadata at the end of the run. The file then has its name
    /// and is on disk.
    pub fn finish(mut self, meta: &Meta) -> Result<(), WriteError> {
        let meta = Meta { schema: SCHEMA_VERSION, ..meta.clone() };
        let json = serde_json::to_string(&meta).map_err(|e| WriteError::Model(e.to_string()))?;
        self.finish_group()?;
        let mut metadata =
            |key: &str, value| self.file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        metadata(SCHEMA_KEY, SCHEMA_VERSION.to_string());
        metadata(META_KEY, json);
        let output = self.file.into_inner().map_err(|e| failed(&self.path, e))?;
        output.commit().map_err(|source| WriteError::Io { path: self.path, source })
    }
}

/// Returns the I/O error inside of a Parquet error, if there is one.
fn failed(path: &Path, error: ParquetError) -> WriteError {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(io) => *io,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    };
    WriteError::Io { path: path.to_owned(), source }
}
