//! Some columns of a capture, without making rows of the model: for sums over many captures.

use std::sync::Arc;

use super::file::Column;
use super::flat::FlatColumn;
use super::flat_columns::{FlatValues, batches};
use super::limits::ReadLimits;
use super::ranged::RangeSource;
use super::read::{OpenedCapture, all_rows, answering_panics};
use super::read_columns::GroupReader;
use super::read_error::{ReadError, Stop};
use precise_model::Meta;

/// The largest number of rows that a scan returns at one time.
const BATCH_ROWS: usize = 16 << 10;

/// A capture whose columns are read as they are asked for.
pub struct CaptureScan {
    opened: OpenedCapture,
    label: String,
    limits: ReadLimits,
}

impl CaptureScan {
    /// Reads the metadata of a capture; `label` names it in errors.
    ///
    /// # Errors
    ///
    /// Returns an error like [`CaptureFile::read`](crate::CaptureFile::read).
    pub fn open(source: Arc<dyn RangeSource>, label: &str, limits: &ReadLimits) -> Result<Self, ReadError> {
        let opened = answering_panics(label, || OpenedCapture::new(source, label, limits))?;
        Ok(Self { opened, label: label.to_owned(), limits: *limits })
    }

    /// Returns everything that is not a row. It has no owners: those are columns.
    pub fn meta(&self) -> &Meta {
        &self.opened.meta
    }

    /// Returns whether the recording was cut off: then it has neither ledger nor verdict.
    pub fn is_cut(&self) -> bool {
        self.opened.cut
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.opened.claimed
    }

    /// Calls `each` with a number of rows and the values of these columns, in their order, until
    /// all rows were read. `each` returns what is wrong with the values.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is damaged, has more rows than [`ReadLimits::rows`], or needs
    /// more memory than [`ReadLimits::bytes`].
    pub fn read(
        &self,
        columns: &[Column],
        mut each: impl FnMut(usize, &[&FlatValues]) -> Result<(), String>,
    ) -> Result<(), ReadError> {
        let Self { opened, label, limits } = self;
        if opened.claimed > limits.rows {
            return Err(ReadError::TooLarge {
                path: label.clone(),
                rows: opened.claimed,
                limit: limits.rows,
            });
        }
        answering_panics(label, || {
            let columns: Vec<FlatColumn> = columns.iter().map(|column| column.flat()).collect();
            let mut read = 0;
            GroupReader::all(&opened.file, &opened.metadata, limits.pages(), true)
                .try_for_each(|group| {
                    read += batches(&group?, &columns, BATCH_ROWS, &mut each)?;
                    Ok(())
                })
                .map_err(|stop: Stop| stop.of(label, (opened.claimed, limits.rows)))?;
            all_rows(label, read, opened.claimed)
        })
    }
}
