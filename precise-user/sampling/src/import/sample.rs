//! Builds the map key of a sample, as precise-ebpf/src/key.rs does in the kernel.

use std::sync::Arc;

use bytes::Bytes;
use precise_common::{
    cell::{CellKey, Class},
    data_src::DataSource,
    ibs::{self, OutcomeBits, fetch, op},
    latency,
    mode::in_kernel,
};

use super::{
    chains::{ImportedChain, PartialChain, Seen},
    events::ImportedEvent,
};
use precise_model::{Dimension, TaggedOf};
use precise_records::Registers;
use precise_records::record::sample::{Sample, SampleError, decode};
use precise_records::record::{MISC_CPUMODE, MISC_EXACT_IP, is_of_guest, sample_bits as bit};

/// The CPU of a sample whose event did not record it. It is more than any row can hold, so the row
/// has no CPU.
pub(super) const NO_CPU: u32 = u32::MAX;

/// The facts that are kept of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptFacts {
    /// The index of the event in the capture.
    pub event: u16,
    /// The number of the CPU; [`NO_CPU`] if the samples have none, and 0 if the capture does not
    /// group by it.
    pub cpu: u32,
    /// The process id, even if the capture does not group by it.
    pub pid: u32,
    /// The key of its cell.
    pub key: CellKey,
    /// The number of events that the sample represents.
    pub period: u64,
    /// The latency in core cycles; 0 if it has none.
    pub latency: u32,
    /// Whether it was taken while a guest ran, so that it has no addresses.
    pub in_guest: bool,
    /// The expected fields that the sample lacks, for the ledger.
    pub lacks: Lacks,
    /// The call chain.
    pub chain: SampleChain,
}

/// The call chain of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SampleChain {
    /// The capture does not group by it.
    None,
    /// It is complete.
    Known(ImportedChain),
    /// A part of it is still to be found.
    Partial(Arc<PartialChain>),
}

impl SampleChain {
    /// Returns the chain; `None` if there is none, or only a part.
    pub fn known(&self) -> Option<&ImportedChain> {
        match self {
            Self::Known(chain) => Some(chain),
            Self::None | Self::Partial(_) => None,
        }
    }

    /// Returns the bytes that this chain adds to the memory of earlier chains.
    pub fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Known(chain) => chain.bytes,
            Self::Partial(chain) => chain.bytes(),
        }
    }
}

/// Fields that a sample should have but lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Lacks {
    pub address: bool,
    pub data_source: bool,
    pub latency: bool,
    pub raw: bool,
}

/// The dimensions by which samples are grouped.
#[derive(Clone, Debug)]
pub(super) struct ImportGrouping {
    dimensions: Vec<Dimension>,
    address_mask: u64,
}

impl ImportGrouping {
    /// Creates a grouping by these dimensions, with data addresses rounded down to a power of two
    /// of bytes.
    pub fn new(dimensions: Vec<Dimension>, address_granule: u64) -> Self {
        Self { dimensions, address_mask: !(address_granule.max(1) - 1) }
    }

    /// Returns the dimensions.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Returns whether the capture groups by a dimension.
    pub fn has(&self, dimension: Dimension) -> bool {
        self.dimensions.contains(&dimension)
    }

    /// Returns a data address as the capture keeps it.
    pub fn address(&self, address: u64) -> u64 {
        if self.has(Dimension::Address) { address & self.address_mask } else { 0 }
    }

    /// Returns whose outcomes an event's rows contain; `None` if they contain none. A cell has room
    /// for either an outcome or a data source: if the capture groups by the source, an op keeps the
    /// source.
    pub fn outcomes_of(&self, known: &ImportedEvent) -> Option<TaggedOf> {
        let fetch = known.registers?.fetch;
        let by_outcome = known.info.fields.outcome
            && self.has(Dimension::Outcome)
            && (fetch || !self.has(Dimension::Source));
        by_outcome.then_some(if fetch { TaggedOf::Fetch } else { TaggedOf::Op })
    }
}

/// Decodes a sample.
pub(super) fn read(known: &ImportedEvent, misc: u16, body: Bytes) -> Result<Sample, SampleError> {
    Ok(decode(body, &known.attr.sample)?.on_host(misc))
}

/// Returns the call chain of a sample, as far as the sample has it.
pub(super) fn chain(
    known: &ImportedEvent,
    sample: &Sample,
    by: &ImportGrouping,
    seen: &mut Seen,
) -> SampleChain {
    if !by.has(Dimension::Stack) || !known.has_chains() {
        return SampleChain::None;
    }
    if known.copies {
        return SampleChain::Partial(Arc::new(PartialChain::copied(sample)));
    }
    if let Some(partial) = PartialChain::deferred(sample) {
        return SampleChain::Partial(Arc::new(partial));
    }
    SampleChain::Known(match known.attr.has_lbr_chains() {
        true => seen.lbr_chain(&sample.call_chain, &sample.branches),
        false => seen.chain(&sample.call_chain),
    })
}

/// Returns whether a sample is of kernel code. On a 32-bit machine the address does not tell.
fn of_kernel(misc: u16, ip: u64) -> bool {
    const KERNEL: u16 = 1;
    const USER: u16 = 2;
    match misc & MISC_CPUMODE {
        KERNEL => true,
        USER => false,
        _ => in_kernel(ip),
    }
}

/// Returns the facts of a sample. `period` replaces the sample's own, for members of a group.
pub(super) fn facts(
    known: &ImportedEvent,
    event: u16,
    misc: u16,
    sample: &Sample,
    chain: SampleChain,
    period: Option<u64>,
    by: &ImportGrouping,
) -> KeptFacts {
    let fields = known.info.fields;
    let tagged = known.registers.and_then(|registers| Tagged::read(registers, known.no_hitm, &sample.raw));
    let derive = |of: fn(&Tagged) -> u64| tagged.as_ref().map_or(0, of);
    let in_guest = is_of_guest(misc);
    let address = match (fields.address && !in_guest, known.attr.has(bit::ADDR)) {
        (false, _) => 0,
        (true, true) => sample.address,
        (true, false) => derive(|tagged| tagged.address),
    };
    let data_src = match (fields.data_source, known.attr.has(bit::DATA_SRC)) {
        (false, _) => 0,
        (true, true) => sample.data_src.unwrap_or(0),
        (true, false) => derive(|tagged| tagged.data_src),
    };
    let latency = if known.attr.has(bit::WEIGHT | bit::WEIGHT_STRUCT) {
        u32::try_from(sample.weight.latency).unwrap_or(u32::MAX)
    } else {
        derive(|tagged| tagged.latency.into()) as u32
    };
    let mut class = 0;
    if let Some(of) = by.outcomes_of(known) {
        if let Some(tagged) = &tagged {
            class |= if of == TaggedOf::Fetch {
                Class::FETCH_OUTCOME | tagged.outcome.0 & OutcomeBits::OF_FETCH
            } else {
                Class::OP_OUTCOME | tagged.outcome.0 & OutcomeBits::OF_OP
            };
        }
    } else if by.has(Dimension::Source) {
        class |= data_src & Class::DATA_SRC_MASK;
    }
    if by.has(Dimension::PageSize) && known.attr.has(bit::DATA_PAGE_SIZE) {
        class |= Class::of_page_size(sample.data_page_size);
    } else if by.has(Dimension::Address) && by.address_mask == !0 {
        // If the capture keeps every byte apart, it also needs the number of bytes accessed.
        class |= derive(|tagged| tagged.outcome.width_code().into()) << Class::WIDTH_SHIFT;
    }
    if by.has(Dimension::Latency) && latency != 0 {
        class |= Class::HAS_LATENCY | u64::from(latency::bucket(latency)) << Class::LATENCY_SHIFT;
    }
    if of_kernel(misc, sample.ip) {
        class |= Class::KERNEL;
    }
    if known.info.marks_exact && misc & MISC_EXACT_IP != 0 {
        class |= Class::EXACT;
    }
    // As in a live run, the names of functions and variables need the process.
    let process = if by.has(Dimension::Thread) {
        u64::from(sample.pid) << 32 | u64::from(sample.tid)
    } else if [Dimension::Process, Dimension::Ip, Dimension::Address].into_iter().any(|one| by.has(one)) {
        u64::from(sample.pid) << 32
    } else {
        0
    };
    let key = CellKey {
        ip: if by.has(Dimension::Ip) { sample.ip } else { 0 },
        address: by.address(address),
        cgroup: if by.has(Dimension::Cgroup) { sample.cgroup.unwrap_or(0) } else { 0 },
        process,
        class,
    };
    let own = if known.attr.has(bit::PERIOD) { sample.period } else { known.attr.period_or_frequency };
    let lacks = Lacks {
        address: fields.address && address == 0 && !in_guest,
        data_source: fields.data_source && DataSource::is_na(data_src),
        latency: fields.latency && latency == 0,
        raw: fields.outcome && tagged.is_none(),
    };
    KeptFacts {
        event,
        cpu: match (by.has(Dimension::Cpu), known.attr.has(bit::CPU)) {
            (true, true) => sample.cpu,
            (true, false) => NO_CPU,
            (false, _) => 0,
        },
        pid: sample.pid,
        key,
        period: period.unwrap_or(own),
        latency,
        in_guest,
        lacks,
        chain,
    }
}

/// What the IBS registers of a sample contain.
struct Tagged {
    outcome: OutcomeBits,
    address: u64,
    data_src: u64,
    latency: u32,
}

impl Tagged {
    /// Decodes the registers; `None` if the raw data is too short to be a record.
    fn read(registers: Registers, no_hitm: bool, raw: &[u8]) -> Option<Self> {
        if registers.fetch {
            let ctl = ibs::register(raw, fetch::CTL)?;
            let outcome = OutcomeBits::of_fetch(ctl, registers.zen3_errata);
            return Some(Self { outcome, address: 0, data_src: 0, latency: ibs::fetch_latency(ctl) });
        }
        let [data, data2, data3] =
            [ibs::register(raw, op::DATA)?, ibs::register(raw, op::DATA2)?, ibs::register(raw, op::DATA3)?];
        let outcome = OutcomeBits::of_op(data, data2, data3, registers.zen3_errata);
        let address =
            if outcome.has(OutcomeBits::ADDRESS_VALID) { ibs::register(raw, op::LINEAR)? } else { 0 };
        let caps = raw.first_chunk().map_or(0, |caps| u32::from_le_bytes(*caps));
        let missed = outcome.has(OutcomeBits::LOAD | OutcomeBits::L1_MISS);
        let latency = if missed { ibs::miss_latency(data3) } else { 0 };
        Some(Self { outcome, address, data_src: ibs::data_source(outcome, caps, no_hitm), latency })
    }
}
