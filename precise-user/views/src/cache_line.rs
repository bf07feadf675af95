//! The unit in which memory is shared between CPUs.

/// Size of a cache line in bytes.
pub(crate) const LINE: u64 = 64;
