//! Writing a capture, at once or epoch by epoch.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};

use super::checkpoint::{self, Schedule};
use super::file::{Column, META_KEY, ROW_GROUP_ROWS, SCHEMA_KEY, schema};
use super::file_output::FileOutput;
use super::group_file::GroupFile;
use super::reserve::Reserve;
use super::row_group::{RowGroup, SHORTEST_GROUP};
use super::write_rows::batch;
use precise_model::{Capture, Meta, Row, SCHEMA_VERSION};

/// The size of the values without a dictionary at which a row group ends early, in bytes. With the
/// dictionaries this is less than a reader decodes at one time (128 MiB).
const GROUP_BYTES: usize = 32 << 20;
/// A row group with this many rows ends early when it is old ([`longest_group`]). Then memory
/// depends less on the length of the run, and the file is no larger: with half of these rows, the
/// dictionaries that each row group has made it half as large again.
const SOME_ROWS: usize = 8 << 10;
/// The largest number of rows that become columns at one time.
const BATCH_ROWS: usize = 4096;

/// Returns how long rows are collected for a row group, `running` after the start. Their number
/// must not grow with the length of the run: a reader holds the descriptions of all.
fn longest_group(running: Duration) -> Duration {
    (running / 128).max(SHORTEST_GROUP)
}

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
/// dropped removes what it wrote, unless it is in a partial file
/// ([`CaptureWriter::survive_crashes`]). It holds one row group in memory: at most 65,536 rows, and
/// about 64 MiB of values; of 8,192 rows and more, those of 30 s, or of a longer time in
/// a run of more than an hour.
pub struct CaptureWriter {
    file: GroupFile<FileOutput>,
    /// The row group that is not in the file yet.
    group: RowGroup,
    /// When the first of its rows came; `None` if no rows wait.
    began: Option<Instant>,
    begin: Instant,
    path: PathBuf,
    /// `None` if the capture cannot be read before it is complete.
    checkpoints: Option<Checkpoints>,
    reserve: Reserve,
}

/// The checkpoints of a capture.
struct Checkpoints {
    schedule: Schedule,
    /// The metadata that is known from the start.
    draft: Meta,
    /// The position of the last one in the file; 0 before the first.
    last: u64,
    /// The number of epochs up to the last one.
    epochs: usize,
    /// Why there are no more of them.
    failed: Option<io::Error>,
}

impl CaptureWriter {
    /// Starts a capture at `path`; `-` is the standard output.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let output =
            FileOutput::create(path).map_err(|source| WriteError::Io { path: path.to_owned(), source })?;
        Self::start(output, path.to_owned())
    }

    /// Keeps the capture that this one replaces: see [`FileOutput::keep_old`].
    pub fn keep_old(mut self) -> Result<Self, WriteError> {
        let kept = self.file.output_mut().keep_old();
        kept.map_err(|source| WriteError::Io { path: self.path.clone(), source })?;
        Ok(self)
    }

    /// Starts a capture that is written to a stream.
    pub fn to_stream(stream: Box<dyn Write + Send>) -> Result<Self, WriteError> {
        Self::start(FileOutput::stream(stream), PathBuf::from("-"))
    }

    fn start(output: FileOutput, path: PathBuf) -> Result<Self, WriteError> {
        let properties = properties().map_err(|e| failed(&path, e))?;
        let schema = schema().map_err(|e| failed(&path, e))?;
        let file = match GroupFile::start(output, schema, properties) {
            Ok(file) => file,
            Err(source) => return Err(WriteError::Io { path, source }),
        };
        Ok(Self {
            file,
            group: RowGroup::start(),
            began: None,
            begin: Instant::now(),
            path,
            checkpoints: None,
            reserve: Reserve::taken(),
        })
    }

    /// Adds rows. They refer to the names, locations, epochs and events of `capture`; the rows of
    /// `capture` itself are ignored.
    pub fn append_epoch(&mut self, capture: &Capture, rows: &[Row]) -> Result<(), WriteError> {
        self.reserve.give();
        let appended = self.append(capture, rows);
        self.reserve.take();
        appended
    }

    fn append(&mut self, capture: &Capture, rows: &[Row]) -> Result<(), WriteError> {
        let mut rest = rows;
        while !rest.is_empty() {
            let (group, began) = (&mut self.group, *self.began.get_or_insert_with(Instant::now));
            let (now, later) = rest.split_at(rest.len().min(BATCH_ROWS).min(ROW_GROUP_ROWS - group.rows));
            let batch = batch(capture, now).map_err(WriteError::Model)?;
            group.add(&batch).map_err(|e| failed(&self.path, e))?;
            let old = group.rows >= SOME_ROWS && began.elapsed() >= longest_group(self.begin.elapsed());
            if old || group.rows == ROW_GROUP_ROWS || group.bytes() >= GROUP_BYTES {
                self.finish_group()?;
            }
            rest = later;
        }
        if self.checkpoints.as_mut().is_some_and(|all| all.failed.is_none() && all.schedule.is_due()) {
            self.checkpoint(&capture.meta)?;
        }
        Ok(())
    }

    /// Makes the capture of a long run survive a crash: after 15 s, and then at intervals of 30 s
    /// to ten minutes, the rows so far can be read from a partial file beside the target, whose
    /// name ends with `.partial`. `draft` is the metadata that is known from the start; epochs
    /// and the start of the run come from what is appended. Call it before the first epoch.
    /// Has no effect if the target is a stream.
    pub fn survive_crashes(&mut self, draft: Meta) {
        self.survive(draft, Schedule::begin());
    }

    pub(super) fn survive(&mut self, draft: Meta, schedule: Schedule) {
        if self.file.output().is_stream() {
            return;
        }
        let draft = Meta { schema: SCHEMA_VERSION, ..draft };
        self.checkpoints = Some(Checkpoints { schedule, draft, last: 0, epochs: 0, failed: None });
    }

    /// Writes a checkpoint.
    fn checkpoint(&mut self, known: &Meta) -> Result<(), WriteError> {
        self.finish_group()?;
        let Some(all) = &mut self.checkpoints else { return Ok(()) };
        let meta = Meta {
            start_unix_ns: known.start_unix_ns,
            epochs: known.epochs.get(all.epochs..).unwrap_or_default().to_vec(),
            ..all.draft.clone()
        };
        if self.file.groups() == 0 {
            // Nothing was sampled yet.
            return Ok(());
        }
        let pairs = checkpoint::pairs(&meta).map_err(|e| WriteError::Model(e.to_string()))?;
        let footer = self.file.footer(pairs).map_err(|e| failed(&self.path, e))?;
        let position = self.file.position();
        let bytes = checkpoint::encode(position, all.last, &footer);
        (all.last, all.epochs) = (position, known.epochs.len());
        let io = |source| WriteError::Io { path: self.path.clone(), source };
        self.file.write_all(&bytes).and_then(|()| self.file.flush()).map_err(io)?;
        self.file.wrote_footer(position + (bytes.len() - footer.len()) as u64, footer.len());
        // The run can go on without a partial file; `finish` says so.
        all.failed = self.file.output_mut().checkpoint().err();
        Ok(())
    }

    /// Returns the partial file with the rows so far, if there is one. It stays if the capture is
    /// not completed.
    pub fn partial(&self) -> Option<&Path> {
        self.file.output().partial()
    }

    /// Returns the number of row groups that have left memory.
    pub fn row_groups(&self) -> usize {
        self.file.groups()
    }

    fn finish_group(&mut self) -> Result<(), WriteError> {
        if self.began.take().is_none() {
            return Ok(());
        }
        let added = self.file.add(&mut self.group);
        if added.is_err() {
            // Some of its columns are empty already.
            self.group = RowGroup::start();
        }
        added.map_err(|e| failed(&self.path, e))
    }

    /// Completes the capture with the metadata at the end of the run. The file then has its name
    /// and is on disk. Returns the name of the capture that it has replaced, if that was kept.
    pub fn finish(mut self, meta: &Meta) -> Result<Option<PathBuf>, WriteError> {
        let mut meta = Meta { schema: SCHEMA_VERSION, ..meta.clone() };
        if let Some(error) = self.checkpoints.as_ref().and_then(|all| all.failed.as_ref()) {
            meta.notes.push(format!(
                "the partial file of this run could not be kept, so a crash would have lost the run: {error}"
            ));
        }
        let json = serde_json::to_string(&meta).map_err(|e| WriteError::Model(e.to_string()))?;
        self.reserve.give();
        self.finish_group()?;
        let pairs = [(SCHEMA_KEY, SCHEMA_VERSION.to_string()), (META_KEY, json)];
        let pairs = pairs.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
        let output = self.file.finish(pairs).map_err(|e| failed(&self.path, e))?;
        output.commit().map_err(|source| WriteError::Io { path: self.path, source })
    }
}

/// Returns the properties of the file.
pub(super) fn properties() -> Result<WriterPropertiesPtr, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        // Statistics of pages would stay in memory until the end of the file, which may be days
        // away. Queries can skip row groups by the smallest and largest value of each column.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_dictionary_page_size_limit(Column::Process.dictionary())
        .set_column_dictionary_page_size_limit(
            Column::Stack.name().into(),
            Column::Stack.dictionary(),
        )
        .set_created_by(concat!("precise ", env!("CARGO_PKG_VERSION")).to_owned());
    Ok(Arc::new(properties.build()))
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
