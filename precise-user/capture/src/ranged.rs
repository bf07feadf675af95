//! Bytes that are read by ranges: of memory, of a file, or of an object in a store.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// The number of bytes that a reader of a near source asks for at one time.
const PIECE: u64 = 8 << 10;

/// Bytes that can be read by ranges. They must not change.
pub trait RangeSource: Send + Sync {
    /// Returns the number of bytes.
    fn length(&self) -> u64;

    /// Returns `length` bytes from `start`.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be read, or if there are fewer.
    fn range(&self, start: u64, length: usize) -> io::Result<Bytes>;

    /// Returns whether a small range costs little. Of other sources, such as an object that comes
    /// over a network, a column is read in one piece.
    fn is_near(&self) -> bool {
        true
    }
}

impl RangeSource for Bytes {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn range(&self, start: u64, length: usize) -> io::Result<Bytes> {
        let start = usize::try_from(start).map_err(io::Error::other)?;
        let end = start.checked_add(length).filter(|end| *end <= self.len());
        end.map(|end| self.slice(start..end)).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl RangeSource for File {
    fn length(&self) -> u64 {
        self.metadata().map_or(0, |file| file.len())
    }

    fn range(&self, start: u64, length: usize) -> io::Result<Bytes> {
        // A damaged file may claim any length.
        if start.saturating_add(length as u64) > self.length() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        self.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A source as the parquet crate reads it, with a part of it in memory.
#[derive(Clone)]
pub(super) struct Ranged {
    source: Arc<dyn RangeSource>,
    length: u64,
    held_at: u64,
    held: Bytes,
}

impl Ranged {
    pub fn new(source: Arc<dyn RangeSource>) -> Self {
        Self { length: source.length(), source, held_at: 0, held: Bytes::new() }
    }

    /// Returns the same bytes, with this range in memory if reading it by pieces would cost much.
    pub fn holding(&self, start: u64, length: u64) -> io::Result<Self> {
        if self.source.is_near() {
            return Ok(self.clone());
        }
        let held = self.source.range(start, usize::try_from(length).map_err(io::Error::other)?)?;
        Ok(Self { held_at: start, held, ..self.clone() })
    }

    fn read(&self, start: u64, length: usize) -> io::Result<Bytes> {
        let inside = start.checked_sub(self.held_at).and_then(|from| {
            let from = usize::try_from(from).ok()?;
            Some(from..from.checked_add(length).filter(|end| *end <= self.held.len())?)
        });
        match inside {
            Some(inside) => Ok(self.held.slice(inside)),
            None => self.source.range(start, length),
        }
    }
}

impl Length for Ranged {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Ranged {
    type T = RangeRead;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(RangeRead { ranged: self.clone(), at: start, piece: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        Ok(self.read(start, length)?)
    }
}

/// Reads from a position on.
pub(super) struct RangeRead {
    ranged: Ranged,
    at: u64,
    piece: Bytes,
}

impl Read for RangeRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            // What is held is a slice away; of the rest, a piece.
            let held = self.ranged.held_at + self.ranged.held.len() as u64;
            let end = if self.at < held { held } else { self.ranged.length };
            let length = end.saturating_sub(self.at).min(PIECE.max(buffer.len() as u64));
            self.piece = self.ranged.read(self.at, usize::try_from(length).map_err(io::Error::other)?)?;
            self.at += length;
        }
        let length = self.piece.len().min(buffer.len());
        let (to, _) = buffer.split_at_mut(length);
        self.piece.copy_to_slice(to);
        Ok(length)
    }
}
