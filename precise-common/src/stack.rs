//! Call chains: how the BPF program passes them to user space.
//!
//! The kernel unwinds the chain of a sampled task into `perf_sample_data.callchain`. The program
//! looks it up in a table of chains by an id that is computed from its entries alone, and a cell
//! stores the id. So the same chain has the same id on every CPU and in every epoch, and an id is
//! never reused for another chain.

/// The largest number of frames that are kept of a chain: the default of
/// `kernel.perf_event_max_stack` in all distributions.
pub const MAX_FRAMES: usize = 127;
/// The largest number of entries that are kept of a chain: its frames, the markers between kernel
/// and user space, and the marker of its end.
pub const ENTRIES: usize = MAX_FRAMES + 3;

/// A marker, not an address: the entries after it are the kernel's (`PERF_CONTEXT_KERNEL`).
pub const CONTEXT_KERNEL: u64 = -128_i64 as u64;
/// A marker, not an address: the entries after it are user space's (`PERF_CONTEXT_USER`).
pub const CONTEXT_USER: u64 = -512_i64 as u64;
/// A marker, not an address: the next entry is a cookie, and the entries of user space come later,
/// in a record with the same cookie (`PERF_CONTEXT_USER_DEFERRED`, Linux 6.19).
pub const CONTEXT_USER_DEFERRED: u64 = -640_i64 as u64;
/// The smallest marker (`PERF_CONTEXT_MAX`): entries from this value on are not addresses.
pub const CONTEXT_FIRST: u64 = -4095_i64 as u64;

/// Ids without a chain, which give the reason why there is none.
pub mod none {
    /// The run does not take chains.
    pub const NOT_TAKEN: u64 = 0;
    /// The table of chains was full.
    pub const FULL: u64 = 1;
    /// The kernel gave no chain, for example for a task without user memory.
    pub const NOT_GIVEN: u64 = 2;
    /// The chain could not be read.
    pub const UNREADABLE: u64 = 3;
}

/// The number of entries of the buffer in which a chain is made: a power of two, so that an index
/// is limited by its bits.
pub const BUFFER: usize = 256;

/// The smallest id of a chain.
pub const FIRST_ID: u64 = 16;

/// A chain in the table that the BPF program shares with user space. Id 0: the slot is free.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct StackSlot {
    /// The id of the chain.
    pub id: u64,
    /// The number of entries.
    pub length: u64,
    /// The entries, from the innermost frame to the outermost.
    pub entries: [u64; ENTRIES],
}

const _: () = assert!(size_of::<StackSlot>() == 1056);

/// The start value of a chain's hash.
pub const SEED: u64 = 0x7072_6563_6973_6521;

/// Mixes the next entry of a chain into its hash.
#[inline(always)]
pub const fn mix(hash: u64, entry: u64) -> u64 {
    let mixed = (hash ^ entry).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// Returns the id for the hash of all entries. Two different chains have the same id with a
/// probability of 2⁻⁶⁴; among a million chains, the probability of any collision is 1 in 37
/// million.
#[inline(always)]
pub const fn id(hash: u64) -> u64 {
    let mixed = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let id = mixed ^ mixed >> 32;
    if id < FIRST_ID { id + FIRST_ID } else { id }
}

/// Returns the id of a chain, as the BPF program computes it.
pub fn id_of(entries: &[u64]) -> u64 {
    id(entries.iter().fold(SEED, |hash, entry| mix(hash, *entry)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_order_and_length_and_are_no_reason() {
        let ids = [&[][..], &[1], &[1, 2], &[2, 1], &[1, 2, 0], &[0, 1, 2]].map(id_of);
        for (i, id) in ids.iter().enumerate() {
            assert!(*id >= FIRST_ID && !ids[i + 1..].contains(id), "{ids:x?}");
        }
    }
}
