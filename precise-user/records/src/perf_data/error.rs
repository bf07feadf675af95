//! What can be wrong with a `perf.data`.

use std::io;

/// Why nothing of a file can be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system said no.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("not a perf.data file: it does not start with PERFILE2")]
    Foreign,
    /// The first format, of Linux before 2.6.32.
    #[error("the format is that of perf before Linux 2.6.32, which is not supported")]
    Old,
    /// Written by a machine of the other byte order.
    #[error("it was recorded on a big-endian machine; only little-endian files are supported")]
    BigEndian,
    /// `perf record --threads`.
    #[error("it is a directory (`perf record --threads`), which is not supported")]
    Directory,
    /// The head is damaged.
    #[error("its header is damaged: {0}")]
    Head(&'static str),
    /// A file, and not a pipe's stream, that cannot be read twice.
    #[error("it comes through a pipe, but its header is that of a file")]
    NotSeekable,
}

/// Why a file could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// The last record is not whole.
    #[error("it is truncated: it ends inside a record, at byte {at}")]
    Truncated {
        /// Where the record begins, in bytes from the start of the file.
        at: u64,
    },
    /// Fewer bytes than the head says.
    #[error("it is truncated: {missing} bytes of its records are missing")]
    Short {
        /// How many there are too few.
        missing: u64,
    },
    /// A record whose size cannot be, so that nothing behind it can be found.
    #[error("the record at byte {at} has an impossible size; the {left} bytes from there on are lost")]
    Size {
        /// Where it begins.
        at: u64,
        /// Bytes behind it; 0 where that is not known.
        left: u64,
    },
    /// Compressed records that do not expand, so that nothing behind them can be either.
    #[error("the compressed record at byte {at} cannot be decompressed")]
    Compressed {
        /// Where it begins.
        at: u64,
    },
    /// Reading failed on the way.
    #[error("reading stopped at byte {at}: {why}")]
    Read {
        /// Where.
        at: u64,
        /// What the system said.
        why: String,
    },
}
