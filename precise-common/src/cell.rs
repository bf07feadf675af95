//! The cell: one combination of dimensions with its measures, in one cache line.
//!
//! The kernel table is an array of cells in shared memory, with one partition per CPU and half. A
//! partition is written only by the BPF program on its own CPU, and user space reads it only after
//! the half has been retired, so no field needs an atomic.

use crate::ibs::Outcome;

/// The number of words of a map key.
pub const KEY_WORDS: usize = 5;

/// A cell: one combination of dimensions (the map key) with its measures. An all-zero cell is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Cell {
    /// The dimensions of the samples; see [`Key`].
    pub key: Key,
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
pub struct Key {
    /// The runtime address of the instruction.
    pub ip: u64,
    /// The data address, with its low bits cleared to the granule that the run groups by. In a run
    /// that takes call chains, this is the id of the chain instead ([`crate::stack`]), because a
    /// cell is one cache line, and the combinations of addresses and chains would fill any table.
    pub address: u64,
    /// The cgroup id, of the v2 hierarchy or of the perf_event controller's hierarchy.
    pub cgroup: u64,
    /// The process id (thread group) in the upper half, the thread id in the lower half.
    pub process: u64,
    /// The data source, latency bucket and flags; see [`Class`].
    pub class: u64,
}

const _: () = assert!(size_of::<Cell>() == 64 && align_of::<Cell>() == 8);
const _: () = assert!(size_of::<Key>() == KEY_WORDS * 8);

/// The last word of the map key, packed: the class of the access.
///
/// | bits | content |
/// | --- | --- |
/// | 0–45 | `perf_mem_data_src` as the kernel gave it, without its reserved bits |
/// | 46–53 | latency bucket ([`crate::latency::bucket`]) |
/// | 54 | the latency bucket is valid |
/// | 55 | the IP is in the kernel |
/// | 56 | the IP is exact |
/// | 57 | bits 0–45 are an [`Outcome`] of an op instead of the data source |
/// | 58 | bits 0–45 are an [`Outcome`] of a fetch instead of the data source |
/// | 59–62 | width of the access in bytes, as its power of two plus 1; or the size of the data's page, if bit 63 is set; 0 if not known |
/// | 63 | bits 59–62 are the size of the page |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Class(pub u64);

impl Class {
    /// The bits of `perf_mem_data_src` up to and including `mem_hops`.
    pub const DATA_SRC_MASK: u64 = (1 << 46) - 1;
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
    pub const fn op_outcome(self) -> Option<Outcome> {
        if self.0 & Self::OP_OUTCOME == 0 { None } else { Some(Outcome(self.0 & Outcome::MASK)) }
    }

    /// Returns the outcome of the tagged fetch; `None` if the run does not group by it.
    pub const fn fetch_outcome(self) -> Option<Outcome> {
        if self.0 & Self::FETCH_OUTCOME == 0 { None } else { Some(Outcome(self.0 & Outcome::MASK)) }
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

impl Key {
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
}
