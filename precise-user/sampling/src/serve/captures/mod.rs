//! Rolling captures: the run as a series of captures of some minutes each, in one folder.
//!
//! The rows of the run go to a [`CaptureWriter`](precise_capture::CaptureWriter) as in a recording,
//! with checkpoints. When a capture is long enough it is completed with the ledger of its own time,
//! and the next one begins with the next epoch. So no sample is between two captures, and each is
//! read as any other.
//!
//! The folder is bounded by size and age, and a full disk ends the oldest captures first. The
//! newest complete capture is never removed. What is not in any capture is counted, with the
//! reason.

mod counts;
mod folder;
mod rolling;
mod segment;
mod upload;

pub(super) use counts::{CaptureCounts, CapturesTable};
pub use folder::Retention;
pub(super) use rolling::Rolling;
pub use upload::Upload;

use std::path::PathBuf;
use std::time::Duration;

/// How captures are kept beside the series.
#[derive(Debug)]
pub struct CapturesOptions {
    /// The folder. It is created if it does not exist.
    pub folder: PathBuf,
    /// The length of a capture.
    pub length: Duration,
    /// What is kept.
    pub retention: Retention,
    /// Copies each complete capture elsewhere; `None`: nowhere.
    pub upload: Option<Upload>,
}
