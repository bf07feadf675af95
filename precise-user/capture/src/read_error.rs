//! The errors of reading a capture.

use std::io;

use precise_model::digits::thousands;

/// The reason why a capture could not be read. Each variant needs a different action of the user.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system denied reading the file.
    #[error(
        "cannot read {path}: {source}. Check the name and the permissions: only the owner of a capture \
         may read it."
    )]
    Unreadable {
        /// The file as the user named it; `-` for the standard input.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a Parquet file.
    #[error(
        "{path} is not a capture: it is not a Parquet file. Make a capture with `precise record -o FILE`."
    )]
    NotParquet {
        /// The file as the user named it.
        path: String,
    },
    /// The file starts like a Parquet file and does not end like one.
    #[error(
        "{path} is truncated: its end is missing, probably because a copy or download stopped early. \
         Copy it again."
    )]
    Truncated {
        /// The file as the user named it.
        path: String,
    },
    /// The file is a Parquet file that `precise` did not write.
    #[error(
        "{path} is a Parquet file, but not a capture: its metadata has no `precise.schema`. If a tool \
         rewrote a capture, use the original file."
    )]
    Foreign {
        /// The file as the user named it.
        path: String,
    },
    /// The file was written by a newer `precise`.
    #[error(
        "{path} has schema version {found}, and this precise reads versions up to {known}. Use a newer \
         precise."
    )]
    Newer {
        /// The file as the user named it.
        path: String,
        /// The schema version of the file.
        found: u32,
        /// The newest schema version that this reader knows.
        known: u32,
    },
    /// The file is a capture with invalid content.
    #[error("{path} is a damaged capture: {what}. Copy it again from where it was recorded.")]
    Corrupt {
        /// The file as the user named it.
        path: String,
        /// The problem, without a full stop.
        what: String,
    },
    /// The capture has more rows than the limit, even after joining all of its epochs.
    #[error(
        "{path} has {} rows, and at most {} fit in memory even after joining epochs. Query the file \
         with SQL, or record with fewer dimensions.", thousands(*rows), thousands(*limit)
    )]
    TooLarge {
        /// The file as the user named it.
        path: String,
        /// The number of rows in the file.
        rows: u64,
        /// The limit on the number of rows.
        limit: u64,
    },
    /// Something in the capture needs more memory than the limit.
    #[error(
        "{path} does not fit in memory: {what} {} MiB, and the limit is {} MiB. If precise wrote the \
         file, query it with SQL, or record with fewer dimensions; if not, do not trust it.",
        mib(*bytes), mib(*limit)
    )]
    Memory {
        /// The file as the user named it.
        path: String,
        /// What needs the memory, with a verb.
        what: String,
        /// The number of bytes that it needs.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
}

/// Returns a number of bytes in MiB, rounded up.
fn mib(bytes: u64) -> String {
    thousands(bytes.div_ceil(1 << 20))
}

/// The reason why reading rows stopped before the last one.
#[derive(Debug)]
pub(super) enum Stop {
    /// The rows are damaged, as this text describes.
    Corrupt(String),
    /// There are more rows than the limit.
    TooLarge,
    /// Something needs more memory than the limit.
    Memory {
        /// What needs it, with a verb.
        what: String,
        bytes: u64,
        limit: u64,
    },
}

impl Stop {
    /// Returns the error of a file with this number of rows, of which at most `limit` fit.
    pub fn of(self, label: &str, (rows, limit): (u64, u64)) -> ReadError {
        let path = label.to_owned();
        match self {
            Self::Corrupt(what) => ReadError::Corrupt { path, what },
            Self::TooLarge => ReadError::TooLarge { path, rows, limit },
            Self::Memory { what, bytes, limit } => ReadError::Memory { path, what, bytes, limit },
        }
    }
}

impl From<String> for Stop {
    fn from(what: String) -> Self {
        Self::Corrupt(what)
    }
}
