//! Why a capture could not be read.

use std::io;

use precise_model::digits::thousands;

/// Why a capture could not be read. Each variant is another thing for the user to do.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system did not let us read it.
    #[error(
        "cannot read {path}: {source}. Check the name and the permissions: only the owner of a capture \
         may read it."
    )]
    Unreadable {
        /// As the user named it; `-` for the standard input.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Some other kind of file.
    #[error(
        "{path} is not a capture: it is not a Parquet file. Make a capture with `precise record -o \
        FILE`."
    )]
    NotParquet {
        /// As the user named it.
        path: String,
    },
    /// It begins as a Parquet file and does not end as one.
    #[error(
        "{path} is truncated: its end is missing, probably because a copy or download stopped early. \
         Copy it again."
    )]
    Truncated {
        /// As the user named it.
        path: String,
    },
    /// A Parquet file that `precise` did not write.
    #[error(
        "{path} is a Parquet file, but not a capture: its metadata has no `precise.schema`. If a tool \
         rewrote a capture, use the original file."
    )]
    Foreign {
        /// As the user named it.
        path: String,
    },
    /// Written by a newer `precise`.
    #[error(
        "{path} has schema version {found}, and this precise reads versions up to {known}. Use a newer \
         precise."
    )]
    Newer {
        /// As the user named it.
        path: String,
        /// Version of the file.
        found: u32,
        /// Newest version that this reader knows.
        known: u32,
    },
    /// A capture whose content makes no sense.
    #[error("{path} is a damaged capture: {what}. Copy it again from where it was recorded.")]
    Corrupt {
        /// As the user named it.
        path: String,
        /// What is wrong, without a full stop.
        what: String,
    },
    /// More rows than the reader may hold, also when all of its epochs are taken together.
    #[error(
        "{path} has {} rows, and at most {} fit in memory even after joining epochs. Query the file \
         with SQL, or record with fewer dimensions.", thousands(*rows), thousands(*limit)
    )]
    TooLarge {
        /// As the user named it.
        path: String,
        /// Rows in the file.
        rows: u64,
        /// Rows that are allowed.
        limit: u64,
    },
}
