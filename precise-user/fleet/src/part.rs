//! Reading the parts of a table, only the row groups and columns that a question needs.

use std::ops::Range;
use std::sync::Arc;

use precise_capture::{ColumnValues, DistinctTexts, FlatBounds, FlatColumn, FlatReader, ReadLimits};

use crate::bucket::{FleetBucket, FleetError, with_ranges};
use crate::manifest::ManifestPart;
use crate::tables::{EVENT, SERVICE};

/// The largest number of rows of a batch.
const BATCH_ROWS: usize = 16 << 10;
/// The memory that reading a part may take.
pub(crate) const LIMITS: ReadLimits = ReadLimits { rows: u64::MAX, bytes: 1 << 30 };

/// Which rows of a part are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FleetPick {
    /// Only those of this service; the empty name stands for rows without one.
    pub service: Option<String>,
    /// Only those of this event.
    pub event: Option<String>,
}

/// Some rows of a part.
#[derive(Debug)]
pub struct FleetBatch<'a> {
    values: &'a [ColumnValues],
    /// The rows that were picked.
    runs: Vec<Range<usize>>,
}

impl<'a> FleetBatch<'a> {
    /// Returns a batch of which all rows are picked.
    pub(crate) fn all(rows: usize, values: &'a [ColumnValues]) -> Self {
        Self { values, runs: std::iter::once(0..rows).collect() }
    }

    /// Returns the numbers of the rows that were picked.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        self.runs.iter().cloned().flatten()
    }

    /// Returns the values of column `at` among those asked for, of a type with 64 bits. Empty if it
    /// has another type.
    pub fn large(&self, at: usize) -> &[Option<u64>] {
        match self.values.get(at) {
            Some(ColumnValues::Large(values)) => values,
            _ => &[],
        }
    }

    /// Returns the values of column `at` among those asked for, of a type with at most 32 bits.
    /// Empty if it has another type.
    pub fn small(&self, at: usize) -> &[Option<u32>] {
        match self.values.get(at) {
            Some(ColumnValues::Small(values)) => values,
            _ => &[],
        }
    }

    /// Returns the values of column `at` among those asked for, if they are texts.
    pub fn texts(&self, at: usize) -> Option<&DistinctTexts> {
        match self.values.get(at) {
            Some(ColumnValues::Texts(texts)) => Some(texts),
            _ => None,
        }
    }

    /// Returns the text of a row in column `at` among those asked for; `None` if it is null.
    pub fn text(&self, at: usize, row: usize) -> Option<&str> {
        self.texts(at)?.get(row)
    }

    /// Returns the values of column `at` among those asked for, as the file has them.
    pub fn values(&self, at: usize) -> Option<&ColumnValues> {
        self.values.get(at)
    }
}

impl FleetPick {
    /// Returns whether a part may have rows that are wanted.
    fn part(&self, part: &ManifestPart) -> bool {
        match (&self.service, &part.services) {
            (Some(wanted), Some((first, last))) => first <= wanted && wanted <= last,
            _ => true,
        }
    }

    /// Returns whether a row group may have rows that are wanted.
    fn group(&self, reader: &FlatReader, group: usize) -> bool {
        [(&self.service, SERVICE), (&self.event, EVENT)].into_iter().all(|(wanted, column)| {
            match (wanted, reader.bounds(group, column.name)) {
                (Some(wanted), Some(FlatBounds::Texts(first, last))) => first <= *wanted && *wanted <= last,
                _ => true,
            }
        })
    }

    /// Returns the rows of a batch that are wanted. The values begin with those of the columns that
    /// [`FleetPick::columns`] returns.
    fn runs(&self, rows: usize, values: &[ColumnValues]) -> Vec<Range<usize>> {
        let mut wanted = Vec::new();
        for (text, values) in self.texts().zip(values) {
            let ColumnValues::Texts(texts) = values else { continue };
            // Null stands for the empty name.
            let keys: Vec<bool> = texts.distinct.iter().map(|other| other == text).collect();
            let is =
                |key: &Option<u32>| key.map_or(text.is_empty(), |key| keys.get(key as usize) == Some(&true));
            let these: Vec<bool> = texts.keys.iter().map(is).collect();
            wanted = if wanted.is_empty() {
                these
            } else {
                wanted.iter().zip(these).map(|(a, b): (&bool, bool)| *a && b).collect()
            };
        }
        if self.texts().next().is_none() {
            return std::iter::once(0..rows).collect();
        }
        let mut runs: Vec<Range<usize>> = Vec::new();
        for at in (0..rows).filter(|at| wanted.get(*at) == Some(&true)) {
            match runs.last_mut() {
                Some(run) if run.end == at => run.end += 1,
                _ => runs.push(at..at + 1),
            }
        }
        runs
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        [&self.service, &self.event].into_iter().flatten()
    }

    fn columns(&self) -> impl Iterator<Item = FlatColumn> {
        let both = [self.service.is_some().then_some(SERVICE), self.event.is_some().then_some(EVENT)];
        both.into_iter().flatten()
    }
}

/// Calls `each` with the rows of a part that are wanted, as values of these columns. Row groups
/// that have none are not read.
///
/// # Errors
///
/// Returns an error if the part cannot be read.
pub fn read_part(
    bucket: &Arc<dyn FleetBucket>,
    part: &ManifestPart,
    pick: &FleetPick,
    columns: &[FlatColumn],
    mut each: impl FnMut(&FleetBatch<'_>),
) -> Result<(), FleetError> {
    if !pick.part(part) {
        return Ok(());
    }
    let read = with_ranges(bucket, (&part.name, part.bytes), |source| {
        let reader = FlatReader::open(source, &part.name, &LIMITS)?;
        let own: Vec<FlatColumn> = pick.columns().collect();
        let all = [&own[..], columns].concat();
        for group in (0..reader.groups()).filter(|group| pick.group(&reader, *group)) {
            reader.read(group, &all, BATCH_ROWS, |rows, values| {
                let (own, values) = values.split_at(own.len().min(values.len()));
                let runs = pick.runs(rows, own);
                if !runs.is_empty() {
                    each(&FleetBatch { values, runs });
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    read.map_err(FleetError::Table)
}
