//! Reads the registers of IBS from the sample's raw record.

use core::{ffi::c_void, ptr};

use aya_ebpf::helpers::bpf_probe_read_kernel;
use precise_common::{
    config::source,
    ibs::{self, OutcomeBits, fetch, op},
    sample_bits,
};

use super::{KernelRead, SampleContext, asks, config};

/// The facts that are taken from the registers.
#[derive(Clone, Copy)]
pub struct TaggedFacts {
    /// The outcome of the op or fetch.
    pub outcome: OutcomeBits,
    /// The latency in core cycles: from tag to retirement for an op, of the fetch itself for a
    /// fetch.
    pub latency: u32,
    /// The target of a branch; 0 if there is none.
    pub target: u64,
}

impl TaggedFacts {
    /// What is known without a record.
    pub const NONE: Self = Self { outcome: OutcomeBits(0), latency: 0, target: 0 };
}

/// `perf_raw_frag.data`, followed by `.size`, which is packed.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Fragment {
    data: u64,
    size: u32,
}

/// The registers after the capabilities, which make them unaligned.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Record<const N: usize> {
    caps: u32,
    registers: [u64; N],
}

/// Reads the registers. Returns whether there was a record. Not inlined: each inlined use would be
/// a hundred instructions.
#[inline(never)]
pub fn read<A: KernelRead>(ctx: *mut c_void, tagged: &mut TaggedFacts) -> bool {
    read_into::<A>(ctx, tagged).is_some()
}

#[inline(always)]
fn read_into<A: KernelRead>(ctx: *mut c_void, tagged: &mut TaggedFacts) -> Option<()> {
    let sample = SampleContext::<A>::open(ctx);
    if asks!(source, has source::CHECK_FLAGS) && sample.lacks(sample_bits::RAW)? {
        return None;
    }
    let raw = A::u64(sample.data, config!(offsets.raw))?;
    if raw == 0 {
        return None;
    }
    let at = raw + config!(offsets.raw_data);
    // SAFETY: the helper checks the address.
    let fragment: Fragment = unsafe { bpf_probe_read_kernel(at as *const _).ok()? };
    let zen3 = asks!(source, has source::ZEN3_ERRATA);
    if asks!(source, has source::IBS_FETCH) {
        let record = record::<{ fetch::ALWAYS }>(&fragment)?;
        let ctl = register(&record, fetch::CTL);
        tagged.outcome = OutcomeBits::of_fetch(ctl, zen3);
        tagged.latency = ibs::fetch_latency(ctl);
        return Some(());
    }
    let record = record::<{ op::ALWAYS }>(&fragment)?;
    let data = register(&record, op::DATA);
    tagged.outcome =
        OutcomeBits::of_op(data, register(&record, op::DATA2), register(&record, op::DATA3), zen3);
    tagged.latency = ibs::tag_to_retire(data);
    let caps = record.caps;
    if caps & ibs::caps::BRANCH_TARGET != 0 && tagged.outcome.has(OutcomeBits::BRANCH) {
        let target = fragment.data + (ibs::HEADER + 8 * op::TARGET) as u64;
        // SAFETY: as above; the capabilities state that the register is there.
        tagged.target = unsafe { bpf_probe_read_kernel(target as *const u64).ok()? };
    }
    Some(())
}

/// Returns the first registers of the record; `None` if it is shorter, or cannot be read.
#[inline(always)]
fn record<const N: usize>(fragment: &Fragment) -> Option<Record<N>> {
    if (fragment.size as usize) < size_of::<Record<N>>() {
        return None;
    }
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_kernel(fragment.data as *const Record<N>).ok() }
}

#[inline(always)]
fn register<const N: usize>(record: &Record<N>, index: usize) -> u64 {
    // SAFETY: a field of a reference, at an index below `N` in all callers; unaligned, because the
    // record is packed.
    unsafe { ptr::read_unaligned((&raw const record.registers).cast::<u64>().add(index)) }
}
