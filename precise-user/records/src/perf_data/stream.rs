//! Reads a stream of records, one after the other.

use std::io::{ErrorKind, Read};

use bytes::{Buf as _, Bytes, BytesMut};

use super::{error::ReadLoss, features::split};
use crate::record::HEADER;

/// The number of bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// A record of any type, not yet decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// `header.type`.
    pub kind: u32,
    /// `header.misc`.
    pub misc: u16,
    /// The bytes after the header.
    pub body: Bytes,
    /// The start of the record, in bytes from the start of the file.
    pub at: u64,
}

/// Splits a record off the front of `bytes`. Returns `Ok(None)` if it is incomplete.
pub fn record(bytes: &mut Bytes, at: u64) -> Result<Option<Raw>, ReadLoss> {
    let mut header = bytes.as_ref();
    let (Ok(kind), Ok(misc), Ok(size)) =
        (header.try_get_u32_le(), header.try_get_u16_le(), header.try_get_u16_le())
    else {
        return Ok(None);
    };
    let size = usize::from(size);
    if size < HEADER {
        return Err(ReadLoss::Size { at, left: 0 });
    }
    let Ok(mut body) = split(bytes, size) else { return Ok(None) };
    body.advance(HEADER);
    Ok(Some(Raw { kind, misc, body, at }))
}

/// A stream of records.
#[derive(Debug)]
pub struct Stream<R> {
    input: R,
    bytes: Bytes,
    /// The position of the start of `bytes` in the file.
    at: u64,
    /// The number of bytes that are not read yet; `None`: up to the end.
    left: Option<u64>,
    ended: bool,
}

impl<R: Read> Stream<R> {
    /// Creates a stream of `length` bytes, the first of which is at position `at`.
    pub fn new(input: R, at: u64, length: Option<u64>) -> Self {
        Self { input, bytes: Bytes::new(), at, left: length, ended: false }
    }

    /// Returns the position of the next record, in bytes.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Returns the next record; `None` at the end.
    pub fn next_record(&mut self) -> Result<Option<Raw>, ReadLoss> {
        loop {
            let before = self.bytes.len();
            match record(&mut self.bytes, self.at) {
                Ok(Some(raw)) => {
                    self.at += (before - self.bytes.len()) as u64;
                    return Ok(Some(raw));
                }
                Ok(None) => {}
                Err(ReadLoss::Size { at, .. }) => {
                    let left = self.left.map_or(0, |left| left.saturating_add(before as u64));
                    return Err(ReadLoss::Size { at, left });
                }
                Err(other) => return Err(other),
            }
            if self.ended {
                return self.end();
            }
            self.fill()?;
        }
    }

    /// Skips bytes that belong to the last record and are not included in its size.
    pub fn skip(&mut self, mut size: u64) -> Result<(), ReadLoss> {
        while size > 0 {
            if self.bytes.is_empty() {
                if self.ended {
                    return self.end().map(drop);
                }
                self.fill()?;
                continue;
            }
            let step = size.min(self.bytes.len() as u64);
            self.bytes.advance(step as usize);
            self.at = self.at.saturating_add(step);
            size -= step;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<Option<Raw>, ReadLoss> {
        match (self.bytes.is_empty(), self.left.unwrap_or(0)) {
            (true, 0) => Ok(None),
            (true, missing) => Err(ReadLoss::Short { missing }),
            (false, _) => Err(ReadLoss::Truncated { at: self.at }),
        }
    }

    fn fill(&mut self) -> Result<(), ReadLoss> {
        let wanted = self.left.map_or(CHUNK, |left| usize::try_from(left).unwrap_or(CHUNK).min(CHUNK));
        let begin = self.bytes.len();
        let mut buffer = BytesMut::with_capacity(begin + wanted);
        buffer.extend_from_slice(&self.bytes);
        buffer.resize(begin + wanted, 0);
        let mut got = 0;
        while got < wanted {
            match self.input.read(&mut buffer[begin + got..]) {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadLoss::Read { at: self.at, why: error.to_string() }),
            }
        }
        buffer.truncate(begin + got);
        self.left = self.left.map(|left| left.saturating_sub(got as u64));
        self.ended = got < wanted || self.left == Some(0);
        self.bytes = buffer.freeze();
        Ok(())
    }
}
