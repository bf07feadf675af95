//! How much memory reading a capture may take.

/// The limits of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// The largest number of rows in memory at one time. Each row costs about 150 bytes, plus the
    /// length of its names. If a capture has more rows, its epochs are joined in pairs, as often as
    /// necessary, and a note of the capture reports it.
    pub rows: u64,
    /// The largest number of bytes of everything but the rows: metadata, names, locations and call
    /// chains, of which at most half is kept, and the pages of the row group that is being decoded.
    pub bytes: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { rows: 16 << 20, bytes: 1 << 30 }
    }
}

impl ReadLimits {
    /// Returns the largest number of bytes that is kept beside the rows.
    pub(super) fn kept(&self) -> u64 {
        self.bytes / 2
    }

    /// Returns the largest number of bytes of the pages of a row group. As much again may be in
    /// memory for the compressed pages, and twice as much for the lists in their texts, the callers
    /// that are remembered, and a buffer for the next row group.
    pub(super) fn pages(&self) -> u64 {
        self.bytes / 8
    }

    /// Returns the length of the longest text with a list, which takes four times its length while
    /// it is parsed.
    pub(super) fn list(&self) -> usize {
        usize::try_from(self.bytes / 256).unwrap_or(usize::MAX)
    }

    /// Returns the bytes of callers after which no more are remembered.
    pub(super) fn callers(&self) -> u64 {
        self.bytes / 32
    }
}
