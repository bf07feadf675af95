//! Step 3: the map key, made of the dimensions that the run groups by.

use precise_common::{
    cell::{CellKey, Class},
    config::{field, key, source},
    latency,
    mode::in_kernel,
};

use crate::{
    ledger::CpuCounters,
    read::{Facts, KernelRead, SampleContext, asks, config, guests_may_run},
};

/// Returns the map key of a sample; `None` if the sample cannot be read. Dimensions that the run
/// does not group by stay zero.
#[inline(always)]
pub fn of<A: KernelRead>(
    sample: &SampleContext<A>,
    facts: &Facts,
    ledger: &mut CpuCounters,
) -> Option<CellKey> {
    let mut result = CellKey::default();
    if asks!(key, has key::IP) {
        result.ip = facts.ip;
    }
    if asks!(key, has key::ADDRESS) {
        result.address = facts.address & config!(wide address_mask);
    }
    if asks!(key, has key::CGROUP) {
        result.cgroup = match sample.cgroup_set() {
            Some(set) => ledger.cgroup_of(set, || sample.cgroup()),
            None => sample.cgroup(),
        };
    }
    if asks!(key, has key::TID) {
        result.process = facts.ids.process << 32 | facts.ids.thread;
    } else if asks!(key, has key::PID) {
        result.process = facts.ids.process << 32;
    }
    let mut class = 0;
    if asks!(key, has key::DATA_SRC) {
        class |= facts.data_src & config!(wide data_src_mask);
    }
    if asks!(key, has key::OUTCOME)
        && let Some(outcome) = facts.outcome
    {
        let kind =
            if asks!(source, has source::IBS_FETCH) { Class::FETCH_OUTCOME } else { Class::OP_OUTCOME };
        class |= kind | outcome.0 & config!(wide data_src_mask);
    }
    if asks!(key, has key::WIDTH) {
        class |= (facts.width as u64 & Class::WIDTH_MASK) << Class::WIDTH_SHIFT;
    }
    if asks!(key, has key::PAGE_SIZE) {
        let size = sample.page_size()?;
        let of_host = if guests_may_run::<A>() { facts.guest.host_fact(size) } else { size };
        class |= Class::of_page_size(of_host);
    }
    if asks!(key, has key::LATENCY) && facts.latency != 0 {
        class |= Class::HAS_LATENCY | (latency::bucket(facts.latency) as u64) << Class::LATENCY_SHIFT;
    }
    if in_kernel(facts.ip) {
        class |= Class::KERNEL;
    }
    if asks!(fields, has field::EXACT) && facts.exact {
        class |= Class::EXACT;
    }
    result.class = class;
    Some(result)
}
