//! The errors of reading a `perf.data`.

use std::io;

/// The reason why nothing of a file can be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system returned an error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not a `perf.data`.
    #[error("not a perf.data file: it does not start with PERFILE2")]
    Foreign,
    /// The file has the first format, which perf wrote before Linux 3.4.
    #[error("the format is that of perf before Linux 3.4 (PERFFILE), which is not supported")]
    Old,
    /// The file was written on a machine with the other byte order.
    #[error("it was recorded on a big-endian machine; only little-endian files are supported")]
    BigEndian,
    /// The path is a directory, written by `perf record --threads`.
    #[error("it is a directory (`perf record --threads`), which is not supported")]
    Directory,
    /// The header is damaged.
    #[error("its header is damaged: {0}")]
    Head(&'static str),
    /// The input is a pipe, but its format is that of a file, which must be read twice.
    #[error("it comes through a pipe, but its header is that of a file")]
    NotSeekable,
}

/// The reason why a file could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadLoss {
    /// The last record is incomplete.
    #[error("it is truncated: it ends inside a record, at byte {at}")]
    Truncated {
        /// The start of the record, in bytes from the start of the file.
        at: u64,
    },
    /// The file has fewer bytes than its header states.
    #[error("it is truncated: {missing} bytes of its records are missing")]
    Short {
        /// The number of missing bytes.
        missing: u64,
    },
    /// A record has an impossible size, so no record after it can be found.
    #[error("the record at byte {at} has an impossible size; the {left} bytes from there on are lost")]
    Size {
        /// The start of the record, in bytes from the start of the file.
        at: u64,
        /// The number of bytes after it; 0 if it is not known.
        left: u64,
    },
    /// A compressed record cannot be decompressed, so none after it can be either.
    #[error("the compressed record at byte {at} cannot be decompressed")]
    Compressed {
        /// The start of the record, in bytes from the start of the file.
        at: u64,
    },
    /// Reading failed in the middle of the file.
    #[error("reading stopped at byte {at}: {why}")]
    Read {
        /// The position, in bytes from the start of the file.
        at: u64,
        /// The system's error.
        why: String,
    },
}
