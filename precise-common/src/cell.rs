//! The cell: one combination of dimensions and its measures, one cache line.
//!
//! The kernel table is an array of cells in shared memory, one partition per CPU and half. A
//! partition is written only by its own CPU's program and read by user space only after the half
//! has been retired, so no field needs an atomic.

use crate::ibs::Outcome;

/// Words of a key.
pub const KEY_WORDS: usize = 5;

/// One combination of dimensions (the key) with its measures. An all-zero cell is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Cell {
    /// See [`Key`].
    pub key: Key,
    /// Samples. An epoch would need more than 10⁹ of one key on one CPU to overflow it; zero means
    /// that the cell is free.
    pub count: u32,
    /// Largest latency, in core cycles.
    pub latency_max: u32,
    /// Sum of latencies, in core cycles.
    pub latency_sum: u64,
    /// Sum of the samples' periods, in events: what the samples stand for, also when the period
    /// changes during a run.
    pub period_sum: u64,
}

/// The dimensions of a sample. What a run does not group by is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct Key {
    /// Runtime address of the instruction.
    pub ip: u64,
    /// Data address, its low bits cleared to the granule that the run groups by. In a run that
    /// takes call chains, the chain's id in its place ([`crate::stack`]): a cell is one cache line,
    /// and addresses times chains would fill any table.
    pub address: u64,
    /// Cgroup id, of the v2 hierarchy or of the perf_event controller's.
    pub cgroup: u64,
    /// Process id (thread group) in the upper half, thread id in the lower.
    pub process: u64,
    /// Data source, latency bucket and flags: see [`Class`].
    pub class: u64,
}

const _: () = assert!(size_of::<Cell>() == 64 && align_of::<Cell>() == 8);
const _: () = assert!(size_of::<Key>() == KEY_WORDS * 8);

/// The packed last key word: what kind of access it was.
///
/// | bits | what |
/// | --- | --- |
/// | 0–45 | `perf_mem_data_src` as the kernel gave it, without its reserved bits |
/// | 46–53 | latency bucket ([`crate::latency::bucket`]) |
/// | 54 | the latency bucket is valid |
/// | 55 | the IP lies in the kernel |
/// | 56 | the IP is exact |
/// | 57 | bits 0–45 are an [`Outcome`] of an op in place of the data source |
/// | 58 | bits 0–45 are an [`Outcome`] of a fetch in place of the data source |
/// | 59–62 | bytes of the access as a power of two, plus 1; or the size of the data's page, if bit 63 is set; 0 when not known |
/// | 63 | bits 59–62 are the size of the page |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Class(pub u64);

impl Class {
    /// Bits of `perf_mem_data_src` up to and including `mem_hops`.
    pub const DATA_SRC_MASK: u64 = (1 << 46) - 1;
    /// First bit of the latency bucket.
    pub const LATENCY_SHIFT: u32 = 46;
    /// Bits of the latency bucket, unshifted.
    pub const LATENCY_MASK: u64 = 0xff;
    /// Set when the latency bucket is valid.
    pub const HAS_LATENCY: u64 = 1 << 54;
    /// Set when the IP lies in the kernel's half of the address space.
    pub const KERNEL: u64 = 1 << 55;
    /// Set when the hardware marked the IP as exact.
    pub const EXACT: u64 = 1 << 56;
    /// Set when an op's outcome is in the place of the data source.
    pub const OP_OUTCOME: u64 = 1 << 57;
    /// Set when a fetch's outcome is in the place of the data source.
    pub const FETCH_OUTCOME: u64 = 1 << 58;
    /// First bit of the width of the access: as IBS has it in IbsOpData3, `DcMemAccWidth`.
    pub const WIDTH_SHIFT: u32 = 59;
    /// Bits of the width, unshifted.
    pub const WIDTH_MASK: u64 = 0xf;
    /// Set when the size of the page is in the place of the width.
    pub const PAGE_SIZE: u64 = 1 << 63;

    /// The data source, `perf_mem_data_src` as a number; 0 when the run does not group by it.
    pub const fn data_src(self) -> u64 {
        if self.0 & (Self::OP_OUTCOME | Self::FETCH_OUTCOME) == 0 { self.0 & Self::DATA_SRC_MASK } else { 0 }
    }

    /// What the tagged op did, where the run groups by it.
    pub const fn op_outcome(self) -> Option<Outcome> {
        if self.0 & Self::OP_OUTCOME == 0 { None } else { Some(Outcome(self.0 & Outcome::MASK)) }
    }

    /// What the tagged fetch did, where the run groups by it.
    pub const fn fetch_outcome(self) -> Option<Outcome> {
        if self.0 & Self::FETCH_OUTCOME == 0 { None } else { Some(Outcome(self.0 & Outcome::MASK)) }
    }

    /// The latency bucket, where the run groups by latency and the sample had one.
    pub const fn latency_bucket(self) -> Option<u32> {
        if self.0 & Self::HAS_LATENCY != 0 {
            Some(((self.0 >> Self::LATENCY_SHIFT) & Self::LATENCY_MASK) as u32)
        } else {
            None
        }
    }

    /// What says that the data's page has so many bytes; 0: not known.
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

    /// Bytes of the page that the data is on, where the run groups by it and the kernel knew it.
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

    /// Bytes of the access, where the run keeps accesses of different widths apart and the hardware
    /// said it.
    pub const fn width(self) -> Option<u16> {
        match self.0 >> Self::WIDTH_SHIFT & Self::WIDTH_MASK {
            _ if self.0 & Self::PAGE_SIZE != 0 => None,
            0 => None,
            log => Some(1 << (log - 1)),
        }
    }

    /// Whether the IP lies in the kernel.
    pub const fn kernel(self) -> bool {
        self.0 & Self::KERNEL != 0
    }

    /// Whether the hardware marked the IP as exact.
    pub const fn exact(self) -> bool {
        self.0 & Self::EXACT != 0
    }
}

const _: () = assert!(crate::latency::BUCKETS as u64 <= Class::LATENCY_MASK + 1);

impl Key {
    /// Process id (thread group).
    pub const fn pid(&self) -> u32 {
        (self.process >> 32) as u32
    }

    /// Thread id; 0 when the run does not group by thread.
    pub const fn tid(&self) -> u32 {
        self.process as u32
    }

    /// The packed class.
    pub const fn class(&self) -> Class {
        Class(self.class)
    }
}
