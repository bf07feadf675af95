//! Reading the parts of a table, only the row groups and columns that a question needs.

use std::ops::Range;
use std::sync::Arc;

use precise_capture::{FlatBounds, FlatColumn, FlatReader, FlatValues, ReadLimits};

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

/// Some rows of a row group of a part.
pub struct FleetBatch<'a> {
    values: &'a [&'a FlatValues],
    /// The rows that were picked.
    runs: Vec<Range<usize>>,
    /// Whether it is the first one of its row group.
    first: bool,
}

impl<'a> FleetBatch<'a> {
    /// Returns the numbers of the rows that were picked.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        self.runs.iter().cloned().flatten()
    }

    /// Returns whether the batch is the first one of a row group: texts have other places than
    /// before.
    pub fn is_first(&self) -> bool {
        self.first
    }

    /// Returns the values of column `at` among those asked for.
    pub fn column(&self, at: usize) -> Option<&'a FlatValues> {
        self.values.get(at).copied()
    }

    /// Returns the number of a row in column `at` among those asked for; of a text, its place.
    /// `None` if it is null.
    pub fn number(&self, at: usize, row: usize) -> Option<u64> {
        self.column(at)?.number(row)
    }

    /// Returns the text of a row in column `at` among those asked for; `None` if it is null.
    pub fn text(&self, at: usize, row: usize) -> Option<&'a str> {
        self.column(at)?.text(row)
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
    fn runs(&self, rows: usize, values: &[&FlatValues]) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = std::iter::once(0..rows).collect();
        for (text, values) in self.texts().zip(values) {
            // A text may have two places; null stands for the empty name.
            let keys: Vec<bool> = values.texts().iter().map(|other| other == text).collect();
            let is = |row: &usize| match values.number(*row) {
                None => text.is_empty(),
                Some(key) => keys.get(key as usize) == Some(&true),
            };
            let mut left: Vec<Range<usize>> = Vec::new();
            for row in runs.into_iter().flatten().filter(is) {
                match left.last_mut() {
                    Some(run) if run.end == row => run.end += 1,
                    _ => left.push(row..row + 1),
                }
            }
            runs = left;
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
            let mut first = true;
            reader.read(group, &all, BATCH_ROWS, |rows, values| {
                let (own, values) = values.split_at(own.len().min(values.len()));
                let runs = pick.runs(rows, own);
                if !runs.is_empty() {
                    each(&FleetBatch { values, runs, first });
                    first = false;
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    read.map_err(FleetError::Table)
}
