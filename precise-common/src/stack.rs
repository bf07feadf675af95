//! Call chains: how the program hands them over.
//!
//! The kernel unwinds the chain of a sampled task into `perf_sample_data.callchain`. The program
//! looks for it in a table of chains by an id that is made of its entries alone, and a cell holds
//! the id. So the same chain has the same id on every CPU and in every epoch, and no id is ever
//! given out again for another one.

/// Frames of a chain that are kept: `kernel.perf_event_max_stack` as every distribution has it.
pub const MAX_FRAMES: usize = 127;
/// Entries of a chain that are kept: its frames, and the markers between kernel and user space.
pub const ENTRIES: usize = MAX_FRAMES + 3;

/// An entry that is no address: the entries behind it are the kernel's (`PERF_CONTEXT_KERNEL`).
pub const CONTEXT_KERNEL: u64 = -128_i64 as u64;
/// The entries behind it are user space's (`PERF_CONTEXT_USER`).
pub const CONTEXT_USER: u64 = -512_i64 as u64;
/// From here on, an entry is a marker (`PERF_CONTEXT_MAX`).
pub const CONTEXT_FIRST: u64 = -4095_i64 as u64;

/// Ids that are no chain's: why there is none.
pub mod none {
    /// The run takes no chains.
    pub const NOT_TAKEN: u64 = 0;
    /// The table of chains had no room.
    pub const FULL: u64 = 1;
    /// The kernel gave none: a task without user memory, say.
    pub const NOT_GIVEN: u64 = 2;
    /// It could not be read.
    pub const UNREADABLE: u64 = 3;
}

/// The first id that is a chain's.
const FIRST: u64 = 16;

/// One chain in the table that the program shares with user space. Id 0: free.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Slot {
    /// Its id.
    pub id: u64,
    /// How many entries it has.
    pub length: u64,
    /// From the innermost frame to the outermost.
    pub entries: [u64; ENTRIES],
}

const _: () = assert!(size_of::<Slot>() == 1056);

/// What the id of a chain begins with.
pub const SEED: u64 = 0x7072_6563_6973_6521;

/// The next entry of a chain, mixed into what its id will be.
#[inline(always)]
pub const fn mix(hash: u64, entry: u64) -> u64 {
    let mixed = (hash ^ entry).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// The id, when all entries are mixed into it. Two different chains have the same one by a chance
/// of 2⁻⁶⁴: among a million, of 1 in 37 million.
#[inline(always)]
pub const fn id(hash: u64) -> u64 {
    let mixed = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let id = mixed ^ mixed >> 32;
    if id < FIRST { id + FIRST } else { id }
}

/// The id of a chain, as the program computes it.
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
            assert!(*id >= FIRST && !ids[i + 1..].contains(id), "{ids:x?}");
        }
    }
}
