//! `struct perf_event_attr`: how an event was opened.

use bytes::{Buf, Bytes, TryGetError};

use crate::record::sample::SampleLayout;
use crate::record::{Layout, sample_bits as bit};

/// `PERF_TYPE_*`: numbers of the PMUs that are the same on every machine.
pub mod pmu_type {
    /// Generic hardware events.
    pub const HARDWARE: u32 = 0;
    /// Software events.
    pub const SOFTWARE: u32 = 1;
    /// Generic cache events.
    pub const HW_CACHE: u32 = 3;
    /// Raw events of the core's PMU.
    pub const RAW: u32 = 4;
}

/// The part of the attributes that a reader of samples needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Attr {
    /// PMU.
    pub type_: u32,
    /// What it counts.
    pub config: u64,
    /// More of it: `ldlat`, for one.
    pub config1: u64,
    /// More of it.
    pub config2: u64,
    /// More of it.
    pub config3: u64,
    /// Events per sample, or samples per second.
    pub period_or_frequency: u64,
    /// What samples and sample ids are made of.
    pub sample: SampleLayout,
    /// The bits behind `read_format`.
    pub flags: u64,
}

impl Attr {
    /// Smallest size that the kernel ever had: `PERF_ATTR_SIZE_VER0`.
    const SMALLEST: usize = 64;

    /// Reads one; fields that its writer did not have are zero.
    ///
    /// # Errors
    ///
    /// When there are fewer bytes than any version had.
    pub fn parse(bytes: &Bytes) -> Result<Self, TryGetError> {
        if bytes.len() < Self::SMALLEST {
            return Err(TryGetError { requested: Self::SMALLEST, available: bytes.len() });
        }
        let size = bytes.slice(4..8).get_u32_le() as usize;
        // What lies behind its own size is not of this attribute.
        let end = if size < Self::SMALLEST { bytes.len() } else { size.min(bytes.len()) };
        let word = |at: usize| {
            bytes.get(at..at + 8).filter(|_| at + 8 <= end).map_or(0, |mut bytes| bytes.get_u64_le())
        };
        Ok(Self {
            type_: bytes.slice(0..4).get_u32_le(),
            config: word(8),
            period_or_frequency: word(16),
            config1: word(56),
            config2: word(64),
            config3: word(128),
            flags: word(40),
            sample: SampleLayout {
                sample_type: word(24),
                read_format: word(32),
                branch_sample_type: word(72),
                regs_user: word(80),
                regs_intr: word(96),
            },
        })
    }

    const fn flag(&self, bit: u32) -> bool {
        self.flags >> bit & 1 != 0
    }

    /// Whether it was opened by frequency, so that periods vary.
    pub const fn by_frequency(&self) -> bool {
        self.flag(10)
    }

    /// The level of precision that was granted, 0 to 3.
    pub const fn precise_ip(&self) -> u8 {
        (self.flags >> 15 & 3) as u8
    }

    /// Whether user space, and the kernel, were left out.
    pub const fn excludes(&self) -> (bool, bool) {
        (self.flag(4), self.flag(5))
    }

    /// Whether the kernel unwound the stacks of user space, by frame pointers. With `--call-graph
    /// dwarf` and `lbr` it did not: the chain is left to whoever reads the stack's copy or the
    /// branch record.
    pub const fn has_call_chains(&self) -> bool {
        const EXCLUDE_CALLCHAIN_USER: u32 = 22;
        self.has(bit::CALLCHAIN) && !self.has(bit::STACK_USER) && !self.flag(EXCLUDE_CALLCHAIN_USER)
    }

    /// Whether samples have these fields: `PERF_SAMPLE_*`.
    pub const fn has(&self, bits: u64) -> bool {
        self.sample.sample_type & bits != 0
    }

    /// Where the sample id behind other records is.
    pub const fn layout(&self) -> Layout {
        Layout { sample_type: self.sample.sample_type, sample_id_all: self.flag(18) }
    }

    /// Where the id of the event is: in words from the front of a sample, and from the back of any
    /// other record. `None`: it is not there.
    pub fn id_places(&self) -> (Option<usize>, Option<usize>) {
        let sample_type = self.sample.sample_type;
        let words = |bits: u64| (sample_type & bits).count_ones() as usize;
        if self.has(bit::IDENTIFIER) {
            return (Some(0), Some(1));
        }
        if !self.has(bit::ID) {
            return (None, None);
        }
        (Some(words(bit::IP | bit::TID | bit::TIME | bit::ADDR)), Some(1 + words(bit::STREAM_ID | bit::CPU)))
    }
}
