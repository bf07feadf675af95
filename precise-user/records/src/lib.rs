//! Decoders for perf's records: from the ring buffers of a live run, and from `perf.data`.
//!
//! All code here is a pure function of untrusted bytes. It never panics, allocates within bounds,
//! and reports what it could not read.

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub mod order;
pub mod perf_data;
pub mod record;
mod registers;

pub use registers::Registers;

/// The call chains of an epoch, by the ids that its cells use. Each chain has the entries as the
/// kernel delivered them.
pub type Chains = FxHashMap<u64, Arc<[u64]>>;
