//! Reader of `perf.data`, the container that `perf record` writes, as a file or through a pipe.
//!
//! [`RecordingReader::open`] reads the header, and [`RecordingReader::next_event`] returns one
//! record after the other, in the order of the file. Compressed records are decompressed on the
//! way. The bytes are not trusted: whatever they are, memory stays below a few megabytes, nothing
//! panics, and [`RecordingItem::End`] reports what could not be read.
//!
//! The format: tools/perf/Documentation/perf.data-file-format.txt of Linux, and
//! tools/perf/util/header.c.

mod attr;
mod error;
mod features;
mod head;
mod inflate;
mod reader;
mod stream;
#[cfg(test)]
mod tests;

pub use attr::{Attr, pmu_type};
pub use error::{Error, ReadLoss};
pub use features::{Clock, Features};
pub use head::Described;
pub use reader::{RecordingItem, RecordingReader};
