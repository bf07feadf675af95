//! `struct perf_event_attr`: the attributes with which an event was opened.

use bytes::{Buf, Bytes, TryGetError};

use crate::record::sample::SampleLayout;
use crate::record::{RecordLayout, sample_bits as bit};

/// `PERF_TYPE_*`: the numbers of PMUs that are the same on every machine.
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

/// The attributes that a reader of samples needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Attr {
    /// The number of the PMU.
    pub type_: u32,
    /// The code of the counted event.
    pub config: u64,
    /// An extension of `config`, such as `ldlat`.
    pub config1: u64,
    /// An extension of `config`.
    pub config2: u64,
    /// An extension of `config`.
    pub config3: u64,
    /// The period in events per sample, or the frequency in samples per second.
    pub period_or_frequency: u64,
    /// The layout of samples and sample ids.
    pub sample: SampleLayout,
    /// The bits after `read_format`.
    pub flags: u64,
}

impl Attr {
    /// The smallest size that the kernel ever used: `PERF_ATTR_SIZE_VER0`.
    const SMALLEST: usize = 64;

    /// Parses the attributes. Fields that the writer did not have are zero.
    ///
    /// # Errors
    ///
    /// Returns an error if there are fewer bytes than any version had.
    pub fn parse(bytes: &Bytes) -> Result<Self, TryGetError> {
        if bytes.len() < Self::SMALLEST {
            return Err(TryGetError { requested: Self::SMALLEST, available: bytes.len() });
        }
        let size = bytes.slice(4..8).get_u32_le() as usize;
        // Bytes after the attribute's own size do not belong to it.
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

    /// Returns whether the event was opened with a frequency, so that periods vary.
    pub const fn by_frequency(&self) -> bool {
        self.flag(10)
    }

    /// Returns the granted precision level, 0 to 3.
    pub const fn precise_ip(&self) -> u8 {
        (self.flags >> 15 & 3) as u8
    }

    /// Returns whether user space, and whether the kernel, is excluded.
    pub const fn excludes(&self) -> (bool, bool) {
        (self.flag(4), self.flag(5))
    }

    /// Returns whether samples have call chains, of the kernel's unwinder or of the LBR. With
    /// `--call-graph dwarf` they have a copy of the stack instead: see [`Self::has_stack_copies`].
    pub const fn has_call_chains(&self) -> bool {
        const EXCLUDE_CALLCHAIN_USER: u32 = 22;
        self.has(bit::CALLCHAIN) && !self.has_stack_copies() && !self.flag(EXCLUDE_CALLCHAIN_USER)
    }

    /// Returns whether samples have a copy of the user stack, and registers, which a reader must
    /// unwind.
    pub const fn has_stack_copies(&self) -> bool {
        self.has(bit::STACK_USER) && self.has(bit::REGS_USER)
    }

    /// Returns whether the branch records are the callers in user space (`--call-graph lbr`). The
    /// kernel's own chain is then only right up to the interrupted instruction.
    pub const fn has_lbr_chains(&self) -> bool {
        /// `PERF_SAMPLE_BRANCH_CALL_STACK`.
        const CALL_STACK: u64 = 1 << 11;
        self.has(bit::CALLCHAIN)
            && self.has(bit::BRANCH_STACK)
            && self.sample.branch_sample_type & CALL_STACK != 0
    }

    /// Returns whether tasks that the sampled ones create are counted by the same event id.
    pub const fn inherits(&self) -> bool {
        self.flag(1)
    }

    /// Returns whether samples have at least one of these fields: `PERF_SAMPLE_*`.
    pub const fn has(&self, bits: u64) -> bool {
        self.sample.sample_type & bits != 0
    }

    /// Returns the layout of the sample id at the end of other records.
    pub const fn layout(&self) -> RecordLayout {
        RecordLayout { sample_type: self.sample.sample_type, sample_id_all: self.flag(18) }
    }

    /// Returns the position of the event id: in words from the start of a sample, and from the end
    /// of any other record. `None` if it is not there.
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
