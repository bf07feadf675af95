//! The cell: one combination of dimensions with its measures, in one cache line.
//!
//! The kernel table is an array of cells in shared memory, with one partition per CPU and half. A
//! partition is written only by the BPF program on its own CPU, and user space reads it only after
//! the half has been retired, so no field needs an atomic.

use crate::data_src;
use crate::ibs::OutcomeBits;

/// The number of words of a map key.
pub const KEY_WORDS: usize = 5;

/// A cell: one combination of dimensions (the map key) with its measures. An all-zero cell is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Cell {
    /// The dimensions of the samples; see [`CellKey`].
    pub key: CellKey,
    /// The number of samples. To overflow it, an epoch would need more than 10⁹ samples with one
    /// key on one CPU. Zero means that the cell is free.
    pub count: u32,
    /// The largest latency, in core cycles.
    pub latency_max: u32,
    /// The sum of the latencies, in core cycles.
    pub latency_sum: u64,
    /// The sum of the samples' periods, in events: the number of events that the samples stand for,
    /// even if the period changes during a run.
    pub period_sum: u64,
}

/// The map key: the dimensions of a sample. A dimension that the run does not group by is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct CellKey {
    /// The runtime address of the instruction.
    pub ip: u64,
    /// The data address, with its low bits cleared to the granule that the run groups by. In a run
    /// that takes call chains, this is the id of the chain instead ([`crate::stack`]), because a
    /// cell is one cache line, and the combinations of addresses and chains would fill any table.
    /// Of an event whose instruction is the first frame of its chain, the address is in `ip` then.
    pub address: u64,
    /// The cgroup id, of the v2 hierarchy or of the perf_event controller's hierarchy.
    pub cgroup: u64,
    /// The process id (thread group) in the upper half, the thread id in the lower half.
    pub process: u64,
    /// The data source, latency bucket and flags; see [`Class`].
    pub class: u64,
}

const _: () = assert!(size_of::<Cell>() == 64 && align_of::<Cell>() == 8);
const _: () = assert!(size_of::<CellKey>() == KEY_WORDS * 8);

/// The last word of the map key, packed: the class of the access.
///
/// | bits | content |
/// | --- | --- |
/// | 0–45 | `perf_mem_data_src` as the kernel gave it, without its reserved bits |
/// | 46–53 | latency bucket ([`crate::latency::bucket`]) |
/// | 54 | the latency bucket is valid |
/// | 55 | the IP is in the kernel |
/// | 56 | the IP is exact |
/// | 57 | bits 0–45 are an [`OutcomeBits`] of an op instead of the data source |
/// | 58 | bits 0–45 are an [`OutcomeBits`] of a fetch instead of the data source |
/// | 59–62 | width of the access in bytes, as its power of two plus 1; or the size of the data's page, if bit 63 is set; 0 if not known |
/// | 63 | bits 59–62 are the size of the page |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Class(pub u64);

impl Class {
    /// The bits of `perf_mem_data_src` up to and including `mem_hops`.
    pub const DATA_SRC_MASK: u64 = data_src::MASK;
    /// The first bit of the latency bucket.
    pub const LATENCY_SHIFT: u32 = 46;
    /// The mask of the latency bucket, unshifted.
    pub const LATENCY_MASK: u64 = 0xff;
    /// Set if the latency bucket is valid.
    pub const HAS_LATENCY: u64 = 1 << 54;
    /// Set if the IP is in the kernel's half of the address space.
    pub const KERNEL: u64 = 1 << 55;
    /// Set if the hardware marked the IP as exact.
    pub const EXACT: u64 = 1 << 56;
    /// Set if the data source is replaced by an op's outcome.
    pub const OP_OUTCOME: u64 = 1 << 57;
    /// Set if the data source is replaced by a fetch's outcome.
    pub const FETCH_OUTCOME: u64 = 1 << 58;
    /// The first bit of the access width, which is encoded as in IbsOpData3, `DcMemAccWidth`.
    pub const WIDTH_SHIFT: u32 = 59;
    /// The mask of the access width, unshifted.
    pub const WIDTH_MASK: u64 = 0xf;
    /// Set if the access width is replaced by the size of the page.
    pub const PAGE_SIZE: u64 = 1 << 63;

    /// Returns the data source, `perf_mem_data_src` as a number; 0 if the run does not group by it.
    pub const fn data_src(self) -> u64 {
        if self.0 & (Self::OP_OUTCOME | Self::FETCH_OUTCOME) == 0 { self.0 & Self::DATA_SRC_MASK } else { 0 }
    }

    /// Returns the outcome of the tagged op; `None` if the run does not group by it.
    pub const fn op_outcome(self) -> Option<OutcomeBits> {
        if self.0 & Self::OP_OUTCOME == 0 { None } else { Some(OutcomeBits(self.0 & OutcomeBits::MASK)) }
    }

    /// Returns the outcome of the tagged fetch; `None` if the run does not group by it.
    pub const fn fetch_outcome(self) -> Option<OutcomeBits> {
        if self.0 & Self::FETCH_OUTCOME == 0 { None } else { Some(OutcomeBits(self.0 & OutcomeBits::MASK)) }
    }

    /// Returns the latency bucket; `None` if the run does not group by latency, or the sample had
    /// none.
    pub const fn latency_bucket(self) -> Option<u32> {
        if self.0 & Self::HAS_LATENCY != 0 {
            Some(((self.0 >> Self::LATENCY_SHIFT) & Self::LATENCY_MASK) as u32)
        } else {
            None
        }
    }

    /// Returns the class bits for a data page of `bytes` bytes; 0 if the size is not known.
    #[inline(always)]
    pub const fn of_page_size(bytes: u64) -> u64 {
        let code = match bytes {
            0x1000 => 1,
            0x20_0000 => 2,
            0x4000_0000 => 3,
            0x1_0000 => 4,
            0x4000 => 5,
            0x200_0000 => 6,
            0x2000_0000 => 7,
            0x40_0000 => 8,
            _ => 0,
        };
        Self::PAGE_SIZE | code << Self::WIDTH_SHIFT
    }

    /// Returns the size of the data's page in bytes; `None` if the run does not group by it, or the
    /// kernel did not know it.
    pub const fn page_size(self) -> Option<u64> {
        if self.0 & Self::PAGE_SIZE == 0 {
            return None;
        }
        Some(match self.0 >> Self::WIDTH_SHIFT & Self::WIDTH_MASK {
            1 => 0x1000,
            2 => 0x20_0000,
            3 => 0x4000_0000,
            4 => 0x1_0000,
            5 => 0x4000,
            6 => 0x200_0000,
            7 => 0x2000_0000,
            8 => 0x40_0000,
            _ => return None,
        })
    }

    /// Returns the width of the access in bytes; `None` if the run does not group by it, or the
    /// hardware did not report it.
    pub const fn width(self) -> Option<u16> {
        match self.0 >> Self::WIDTH_SHIFT & Self::WIDTH_MASK {
            _ if self.0 & Self::PAGE_SIZE != 0 => None,
            0 => None,
            log => Some(1 << (log - 1)),
        }
    }

    /// Returns whether the IP is in the kernel.
    pub const fn kernel(self) -> bool {
        self.0 & Self::KERNEL != 0
    }

    /// Returns whether the hardware marked the IP as exact.
    pub const fn exact(self) -> bool {
        self.0 & Self::EXACT != 0
    }
}

const _: () = assert!(crate::latency::BUCKETS as u64 <= Class::LATENCY_MASK + 1);
const _: () = assert!(OutcomeBits::MASK == Class::DATA_SRC_MASK);

impl CellKey {
    /// Returns the process id (thread group).
    pub const fn pid(&self) -> u32 {
        (self.process >> 32) as u32
    }

    /// Returns the thread id; 0 if the run does not group by thread.
    pub const fn tid(&self) -> u32 {
        self.process as u32
    }

    /// Returns the packed class.
    pub const fn class(&self) -> Class {
        Class(self.class)
    }

    /// Returns the hash of the key, whose lower bits are the index of the first cell to probe.
    ///
    /// The keys of a run are regular: thread ids count up, addresses are multiples of a page, and
    /// latency buckets are the upper bits of the class. So each word is multiplied by a number of
    /// its own before the words are added, because the shifted words of two dimensions can cancel.
    /// A product carries information only upward: the shift brings the upper half down, and the
    /// last product spreads it. The five factors have 32 bits, so that each is the operand of a
    /// BPF instruction and not a load of a 64-bit constant, which takes the space of two.
    #[inline(always)]
    pub const fn hashed(&self) -> u32 {
        let sum = times(self.ip, 0x9e37_79b1)
            .wrapping_add(times(self.address, 0x85eb_ca77))
            .wrapping_add(times(self.cgroup, 0xc2b2_ae3d))
            .wrapping_add(times(self.process, 0x27d4_eb2f))
            .wrapping_add(times(self.class, 0x1656_67b1));
        ((sum ^ sum >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }
}

/// Multiplies a word by a factor, sign-extended as the operand of an instruction is.
#[inline(always)]
const fn times(word: u64, factor: u32) -> u64 {
    word.wrapping_mul(factor.cast_signed() as u64)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{boxed::Box, format, string::String, vec, vec::Vec};

    use super::*;
    use crate::config::PROBES;

    /// The number of keys in each set of [`sets`].
    const KEYS: u64 = 1 << 14;

    /// A set of different keys, with its name.
    type Set = (String, Vec<CellKey>);

    /// Returns sets of keys as runs have them: regular in one or two dimensions, constant in the
    /// others.
    fn sets() -> Vec<Set> {
        let key = CellKey {
            ip: 0x5555_5555_6a10,
            address: 0x7f3a_2c00_0000,
            cgroup: 5121,
            process: 4242 << 32 | 4242,
            class: Class::HAS_LATENCY | 37 << Class::LATENCY_SHIFT | 0x1_0680_1042,
        };
        let mut sets: Vec<Set> = Vec::new();
        let mut add = |name: &str, of: Box<dyn Fn(u64) -> CellKey>| {
            sets.push((name.into(), (0..KEYS).map(of).collect()));
        };
        // A thread's arena, a page, a line, a huge page.
        for stride in [8192, 4096, 64, 2 << 20] {
            add(
                &format!("128 threads × 128 addresses {stride} bytes apart"),
                Box::new(move |i| CellKey {
                    address: key.address + i % 128 * stride,
                    process: key.process + i / 128,
                    ..key
                }),
            );
        }
        for shift in [6, 12, 13, 21, 30] {
            add(
                &format!("addresses {} bytes apart", 1u64 << shift),
                Box::new(move |i| CellKey { address: key.address + (i << shift), ..key }),
            );
        }
        add(
            "128 processes × 128 instructions",
            Box::new(move |i| CellKey {
                ip: key.ip + i % 128 * 4,
                address: 0,
                process: (4242 + i / 128) << 32,
                ..key
            }),
        );
        add(
            "64 instructions × 256 latency buckets",
            Box::new(move |i| CellKey {
                ip: key.ip + i % 64 * 7,
                address: 0,
                class: Class::HAS_LATENCY | (i / 64) << Class::LATENCY_SHIFT | 0x1_0680_1042,
                ..key
            }),
        );
        add(
            "8 instructions × 64 threads × 32 sources",
            Box::new(move |i| CellKey {
                ip: key.ip + i % 8 * 16,
                address: 0,
                process: key.process + i / 8 % 64,
                class: 1 << (5 + i / 512) | 2,
                ..key
            }),
        );
        add(
            "256 cgroups × 64 threads",
            Box::new(move |i| CellKey {
                cgroup: 5000 + i % 256,
                address: 0,
                process: (4242 + i / 64) << 32 | (4242 + i / 256),
                ..key
            }),
        );
        sets
    }

    /// Returns how many of `keys` find no place in a table of `cells` cells, and the largest number
    /// of probes of the others.
    fn fill<'a>(keys: impl Iterator<Item = &'a CellKey>, cells: usize) -> (usize, usize) {
        let mut used = vec![false; cells];
        let (mut full, mut most) = (0, 0);
        for key in keys {
            let first = key.hashed() as usize;
            match (0..PROBES as usize).find(|probe| !used[(first + probe) & (cells - 1)]) {
                Some(probe) => {
                    used[(first + probe) & (cells - 1)] = true;
                    most = most.max(probe + 1);
                }
                None => full += 1,
            }
        }
        (full, most)
    }

    #[test]
    fn regular_keys_fill_a_table_like_random_ones() {
        let cells = KEYS as usize;
        for (name, keys) in sets() {
            let (full, most) = fill(keys.iter(), 4 * cells);
            assert!(full == 0 && most <= 20, "a quarter full: {name}: {full} keys, {most} probes");
            // `PROBES` has the share of random keys that find no place: 1 in 9,000 and 1 in 170.
            for (percent, one_in) in [(60, 1000), (80, 100)] {
                let taken = cells * percent / 100;
                let (full, _) = fill(keys.iter().take(taken), cells);
                assert!(full * one_in <= taken, "{percent} % full: {name}: {full} of {taken} keys");
            }
        }
    }
}
