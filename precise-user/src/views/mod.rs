//! Views: one question asked of a capture each. Pure: a capture goes in, a result comes out, nothing is
//! opened or printed.

pub mod heatmap;
pub mod keys;
pub mod report;
#[cfg(test)]
mod report_tests;
mod report_values;
pub mod stats;
pub mod summary;
pub mod trust;

/// Why a view has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The run did not record what the view groups by.
    #[error(
        "the capture cannot be grouped by {keys}: it was recorded without the dimension {missing}. Record \
         it with `precise record --by {by}`."
    )]
    NotRecorded {
        /// The keys that cannot be had.
        keys: String,
        /// The dimensions that they need.
        missing: String,
        /// A `--by` list that has all that the capture has, and what is missing.
        by: String,
    },
    /// The run recorded addresses too coarsely.
    #[error(
        "the capture cannot be grouped by {key}: its data addresses are multiples of {granule} bytes. Record it \
         with a finer address granule."
    )]
    TooCoarse {
        /// The key that cannot be had.
        key: &'static str,
        /// Bytes.
        granule: u64,
    },
}
