//! The container that `perf record` writes: `perf.data`, as a file or through a pipe.
//!
//! [`Reader::open`] reads the head, [`Reader::next_event`] hands out one record after the other, as
//! they lie in the file. Records that are compressed are expanded on the way. Bytes are not
//! trusted: whatever is in them, memory stays below a few megabytes, nothing panics, and what
//! cannot be read is said by [`Event::End`].
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
pub use error::{Error, Loss};
pub use features::{Clock, Features};
pub use head::Described;
pub use reader::{Event, Reader};
