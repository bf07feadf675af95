//! The bytes of the history of processes, counted where they are allocated.
//!
//! Processes share what they have in common, so that no single owner knows what it takes. Each heap
//! block therefore carries a [`Charge`], which adds its bytes to the [`ByteAccount`] of the history
//! and subtracts them when the block is freed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What the allocator needs for a heap block beside its contents, in bytes: its header, and what is
/// lost to alignment.
pub(super) const BLOCK: usize = 16;
/// The bytes of the two counters of an [`Arc`].
pub(super) const COUNTERS: usize = 2 * size_of::<usize>();

/// A sum of bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct ByteAccount(Arc<AtomicUsize>);

impl ByteAccount {
    /// Returns the sum of all charges that exist.
    pub fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Adds `bytes` to the account, until the returned charge is dropped.
    pub fn charge(&self, bytes: usize) -> Charge {
        self.0.fetch_add(bytes, Relaxed);
        Charge { account: self.clone(), bytes }
    }
}

/// The bytes of one heap block, or of several that live equally long.
#[derive(Debug, Default)]
pub(super) struct Charge {
    account: ByteAccount,
    bytes: usize,
}

impl Charge {
    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the account.
    pub fn account(&self) -> &ByteAccount {
        &self.account
    }

    /// Changes the number of bytes.
    pub fn set(&mut self, bytes: usize) {
        // Wraps around where it subtracts, as the sum does.
        self.account.0.fetch_add(bytes.wrapping_sub(self.bytes), Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.0.fetch_sub(self.bytes, Relaxed);
    }
}
