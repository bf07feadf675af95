//! Branch records (`perf record -b`): each sample carries the last taken branches before it. They
//! become samples of an event of their own, beside the event that was sampled.

use bytes::Bytes;
use precise_common::{cell::CellKey, cell::Class, ibs::OutcomeBits, latency, mode::in_kernel};
use precise_model::{Dimension, EventInfo, Fields, TaggedOf, Verdict};
use precise_records::perf_data::Attr;
use precise_records::record::sample::Sample;
use precise_records::record::sample_bits as bit;

use super::events::ImportedEvent;
use super::sample::{ImportGrouping, KeptFacts, Lacks, SampleChain};

/// The size of `struct perf_branch_entry` in bytes: where from, where to, flags.
const ENTRY: usize = 24;
/// `PERF_SAMPLE_BRANCH_NO_FLAGS` and `_NO_CYCLES`.
const NO_FLAGS: u64 = 1 << 14;
const NO_CYCLES: u64 = 1 << 15;

/// Returns whether the samples of an event have branch records that are not call chains.
pub(super) fn has_branches(attr: &Attr) -> bool {
    attr.has(bit::BRANCH_STACK) && !attr.has_lbr_chains()
}

/// Returns the event of an event's branch records.
pub(super) fn event(known: &ImportedEvent) -> ImportedEvent {
    let kinds = known.attr.sample.branch_sample_type;
    let mut findings = vec![format!(
        "each sample of {} carries the last taken branches before it; branches that were not taken are \
         not recorded",
        known.info.name
    )];
    if kinds & NO_FLAGS != 0 {
        findings.push("the file does not hold which of them were mispredicted".to_owned());
    }
    let info = EventInfo {
        name: format!("branches of {}", known.info.name),
        encoding: known.info.encoding.clone(),
        pmu: known.info.pmu.clone(),
        unit: "branches".to_owned(),
        period: Some(1),
        fields: Fields { address: true, latency: kinds & NO_CYCLES == 0, data_source: false, outcome: true },
        tagged: Some(TaggedOf::Branch),
        verdict: Verdict { precise: true, findings, ..Verdict::default() },
        ..EventInfo::default()
    };
    ImportedEvent { info, registers: None, ..known.clone() }
}

/// Returns the facts of each branch record of a sample; `like` are the facts of the sample.
pub(super) fn facts<'a>(
    index: u16,
    sample: &'a Sample,
    like: &'a KeptFacts,
    by: &'a ImportGrouping,
) -> impl Iterator<Item = KeptFacts> + use<'a> {
    entries(&sample.branches).filter(|[from, ..]| *from != 0).map(move |[from, to, flags]| {
        const MISPREDICTED: u64 = 1;
        let mut outcome = OutcomeBits::BRANCH | OutcomeBits::TAKEN;
        if flags & MISPREDICTED != 0 {
            outcome |= OutcomeBits::MISPREDICTED;
        }
        // Cycles since the branch before it, on CPUs that count them.
        let cycles = (flags >> 4 & 0xffff) as u32;
        let mut class = Class::OP_OUTCOME | outcome;
        if by.has(Dimension::Latency) && cycles != 0 {
            class |= Class::HAS_LATENCY | u64::from(latency::bucket(cycles)) << Class::LATENCY_SHIFT;
        }
        if in_kernel(from) {
            class |= Class::KERNEL;
        }
        KeptFacts {
            event: index,
            key: CellKey { ip: from, address: by.address(to), class, ..like.key },
            period: 1,
            latency: cycles,
            lacks: Lacks { latency: cycles == 0, ..Lacks::default() },
            chain: SampleChain::None,
            ..like.clone()
        }
    })
}

fn entries(branches: &Bytes) -> impl Iterator<Item = [u64; 3]> + '_ {
    branches.chunks_exact(ENTRY).map(|entry| {
        let (words, _) = entry.as_chunks();
        let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
        std::array::from_fn(|_| words.next().unwrap_or(0))
    })
}
