//! What can be wrong with a `perf.data`.

use std::io;

/// Why nothing of a file can be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system said no.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it is no perf.data file: it does not begin with PERFILE2")]
    Foreign,
    /// The first format, of Linux before 2.6.32.
    #[error("it is in the format of perf before Linux 2.6.32")]
    Old,
    /// Written by a machine of the other byte order.
    #[error("it was recorded on a big-endian machine; only little-endian files can be read")]
    BigEndian,
    /// `perf record --threads`.
    #[error("it is a directory, as `perf record --threads` makes it; one file holds a part of it only")]
    Directory,
    /// The head is damaged.
    #[error("its head is damaged: {0}")]
    Head(&'static str),
    /// A file, and not a pipe's stream, that cannot be read twice.
    #[error("its head says that it is a file, but it comes through a pipe")]
    NotSeekable,
}

/// Why a file could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// The last record is not whole.
    #[error("it ends in the middle of a record, at byte {at}")]
    Truncated {
        /// Where the record begins, in bytes from the start of the file.
        at: u64,
    },
    /// Fewer bytes than the head says.
    #[error("it ends {missing} bytes before its records do")]
    Short {
        /// How many there are too few.
        missing: u64,
    },
    /// A record whose size cannot be, so that nothing behind it can be found.
    #[error("the record at byte {at} has an impossible size: {left} bytes from there on are lost")]
    Size {
        /// Where it begins.
        at: u64,
        /// Bytes behind it; 0 where that is not known.
        left: u64,
    },
    /// Compressed records that do not expand, so that nothing behind them can be either.
    #[error("the compressed record at byte {at} cannot be expanded")]
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
