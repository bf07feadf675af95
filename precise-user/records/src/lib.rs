//! Records that perf writes, decoded: from the rings of a live run, and from `perf.data`.
//!
//! Everything here is a pure function of bytes that somebody else chose. It never panics, allocates
//! within bounds, and says what it could not read.

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub mod order;
pub mod perf_data;
pub mod record;
mod registers;

pub use registers::Registers;

/// The call chains of an epoch, by the ids that its cells have: the entries as the kernel gave
/// them.
pub type Chains = FxHashMap<u64, Arc<[u64]>>;
