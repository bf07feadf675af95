//! `PERF_RECORD_COMPRESSED`: one zstd stream, split into records at arbitrary places.

use bytes::{Bytes, BytesMut};
use zstd::stream::raw::{Decoder, InBuffer, Operation as _, OutBuffer};

/// The largest number of bytes that are decompressed at a time.
const CHUNK: usize = 256 << 10;

/// The decompressed stream, from the first compressed record to the last.
pub struct Inflate {
    decoder: Decoder<'static>,
    compressed: Bytes,
    /// Whether the output was full: there may be more without more input.
    pending: bool,
}

impl std::fmt::Debug for Inflate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inflate").field("compressed", &self.compressed.len()).finish_non_exhaustive()
    }
}

impl Inflate {
    /// Starts the stream.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { decoder: Decoder::new()?, compressed: Bytes::new(), pending: false })
    }

    /// Returns whether all input has been decompressed and taken.
    pub fn is_done(&self) -> bool {
        self.compressed.is_empty() && !self.pending
    }

    /// Adds the content of a record. All output of the last one must have been taken.
    pub fn put(&mut self, compressed: Bytes) {
        self.compressed = compressed;
        self.pending = false;
    }

    /// Appends at most [`CHUNK`] bytes to `out`.
    pub fn take(&mut self, out: &mut BytesMut) -> std::io::Result<()> {
        let begin = out.len();
        out.resize(begin + CHUNK, 0);
        let mut input = InBuffer::around(&self.compressed);
        let mut output = OutBuffer::around(&mut out[begin..]);
        let result = self.decoder.run(&mut input, &mut output);
        let (read, written) = (input.pos(), output.pos());
        out.truncate(begin + written);
        result?;
        self.pending = written == CHUNK;
        if read == 0 && written == 0 {
            // There is no progress: the stream has ended before its input.
            self.compressed.clear();
            self.pending = false;
        } else {
            self.compressed = self.compressed.slice(read..);
        }
        Ok(())
    }
}
