//! Why a capture could not be read.

use std::io;

use precise_model::digits::thousands;

/// Why a capture could not be read. Each variant is another thing for the user to do.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system did not let us read it.
    #[error(
        "cannot read {path}: {source}. Check the name and that you may read it (captures are readable by their \
         owner only)."
    )]
    Unreadable {
        /// As the user named it; `-` for the standard input.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Some other kind of file.
    #[error("{path} is not a Parquet file, so it is not a capture. `precise record -o FILE` makes captures.")]
    NotParquet {
        /// As the user named it.
        path: String,
    },
    /// It begins as a Parquet file and does not end as one.
    #[error(
        "{path} is cut off: its end is missing, so a copy or download of it stopped \
         early. Copy it again."
    )]
    Truncated {
        /// As the user named it.
        path: String,
    },
    /// A Parquet file that `precise` did not write.
    #[error(
        "{path} is a Parquet file, but not a capture: it has no `precise.schema` in its metadata. If a tool rewrote \
         a capture, use the original file."
    )]
    Foreign {
        /// As the user named it.
        path: String,
    },
    /// Written by a newer `precise`.
    #[error(
        "{path} has schema version {found}, and this precise reads up to {known}. Use the precise that made \
         it, or a newer one."
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
        "{path} has {} rows, and the {} that this reader holds are too few for those that differ in more than \
         time. Query it with SQL, or record with fewer dimensions.", thousands(*rows), thousands(*limit)
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
