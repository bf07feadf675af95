//! Reads and writes captures as Parquet files: writes them during a run, reads them within limits.
//!
//! [`CaptureFile`] adds reading and writing to [`precise_model::Capture`]. A file is written
//! completely or not at all. Its bytes are not trusted when it is read: [`ReadError`] describes
//! what is wrong with them, and [`ReadLimits`] limits the memory use.
//!
//! ```
//! use precise_capture::{CaptureFile as _, ReadLimits, ReadError};
//! use precise_model::{Capture, testing::CaptureBuilder};
//!
//! # let folder = std::env::temp_dir().join(format!("captures-example-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("precise.parquet");
//! // `precise record` makes captures; the samples of this one are synthetic.
//! let mut made = CaptureBuilder::new();
//! made.cell().samples(3);
//! made.build().write(&path)?;
//!
//! let capture = Capture::read_limited(&path, &ReadLimits { rows: 1_000_000, ..ReadLimits::default() })?;
//! for event in &capture.meta.events {
//!     println!("{}: {} epochs", event.name, capture.meta.epochs.len());
//! }
//! assert_eq!(capture.rows.len(), 1);
//!
//! std::fs::write(&path, "no capture")?;
//! let refused: Result<Capture, ReadError> = Capture::read(&path);
//! assert!(refused.is_err());
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod allocated;
mod batch;
#[cfg(test)]
mod bomb_tests;
mod checkpoint;
mod claims;
mod dictionary_chunk;
mod file;
mod file_output;
#[cfg(test)]
mod file_tests;
mod flat;
mod flat_columns;
mod flat_file;
pub mod fold;
mod group_file;
mod hybrid;
mod known_callers;
mod limits;
mod own_pages;
mod owner;
mod page_zstd;
#[cfg(test)]
mod parts_tests;
mod ranged;
mod read;
mod read_columns;
mod read_error;
mod read_owners;
mod read_parts;
mod read_rows;
mod read_values;
mod repeats;
mod reserve;
mod row_group;
mod scan;
mod stack_json;
#[cfg(test)]
mod strategies;
mod temporary;
mod text_chunk;
mod text_pages;
mod varint;
mod waiting;
mod waiting_texts;
mod write;
#[cfg(test)]
mod write_memory_tests;
mod write_rows;

pub use batch::{Batch, ColumnValues, DistinctTexts};
pub use file::{Column, META_KEY, SCHEMA_KEY};
pub use file_output::{FileOutput, create_whole, folder_of, write_whole};
pub use flat::{ColumnType, FlatColumn};
pub use flat_columns::FlatValues;
pub use flat_file::{FlatBounds, FlatReader, FlatWriter};
pub use limits::ReadLimits;
pub use ranged::RangeSource;
pub use read::{CaptureFile, WantedParts, panics_are_answered};
pub use read_error::ReadError;
pub use scan::CaptureScan;
pub use temporary::{free_name, temporary};
pub use write::{CaptureWriter, WriteError};
pub use write_rows::batches;
