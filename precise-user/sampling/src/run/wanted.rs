//! What each sample of an event carries: what the program reads, and what a streaming run writes.

use super::plan::{Plan, PlannedEvent, Streaming};
use crate::error::SamplingError;
use crate::kernel::event::WantedFields;
use crate::kernel::explain;
use crate::machine::MachineInfo;
use crate::pmu::{self, EventRequest};
use precise_model::{Dimension, Fields};

/// Returns the fields of the samples of an event at a precise level. `ids`: the program must read
/// the ids of tasks from the sample, because elsewhere it finds those in the initial namespace.
pub(super) fn at(
    plan: &Plan,
    planned: &PlannedEvent,
    level: u8,
    ids: bool,
    machine: &MachineInfo,
) -> WantedFields {
    let request = &planned.request;
    let fields = request.fields_at(level);
    let chained = plan.slot(request).has_chain();
    let wanted = WantedFields {
        ids,
        address: fields.address,
        data_source: fields.data_source,
        latency: fields.latency,
        phys_address: planned.filter.needs.phys_address
            || (by_physical(plan, request, machine) && fields.address),
        page_size: planned.filter.needs.page_size || by_page_size(plan, fields),
        raw: request.tagged.is_some(),
        callchain: chained,
        // Older kernels refuse `bpf_get_stack` then, which the program must call there: see
        // `source::CALLS_FOR_CHAIN`.
        kernel_chain_only: chained && plan.unwinds() && machine.kernel.is_some_and(|it| it.at_least(6, 3)),
        // CLOCK_MONOTONIC is also the clock of the sideband and of the program's deadline.
        monotonic: true,
        ..WantedFields::default()
    };
    // Their cost is part of the sample's, and the kernel looks them up before the program runs.
    let looked_up = wanted.callchain || wanted.phys_address || wanted.page_size;
    let wanted = WantedFields { time: looked_up, ..wanted };
    plan.stream.map_or(wanted, |stream| streamed(wanted, stream, plan.copied_stack(), request))
}

/// Adds the optional fields of a streaming run to the fields that the program reads.
fn streamed(
    wanted: WantedFields,
    stream: Streaming,
    stack_copy: u32,
    request: &EventRequest,
) -> WantedFields {
    let Streaming { cgroup, raw, phys_address, page_size, chains, .. } = stream;
    let has_address = wanted.address;
    WantedFields {
        phys_address: wanted.phys_address || (phys_address && has_address),
        page_size: wanted.page_size || (page_size && has_address),
        cgroup,
        // The program does not look at chains, so the kernel takes what the record needs.
        callchain: chains,
        kernel_chain_only: stack_copy > 0,
        stack_copy,
        record: true,
        ids: true,
        time: true,
        period: true,
        // Of the supported PMUs, only IBS adds raw data.
        raw: wanted.raw || (raw && request.exactness == pmu::Exactness::Ibs),
        ..wanted
    }
}

/// Returns whether the run groups by page size and the samples of the event have addresses.
fn by_page_size(plan: &Plan, fields: Fields) -> bool {
    fields.address && plan.dimensions.contains(&Dimension::PageSize)
}

/// Returns whether promoted cache lines are identified by their physical address: only if it is
/// available when the program runs. On Intel this costs a page-table walk in the interrupt, as in
/// `perf c2c record`.
pub(super) fn by_physical(plan: &Plan, request: &EventRequest, machine: &MachineInfo) -> bool {
    let in_time = machine.kernel.is_some_and(|version| version.at_least(6, 3));
    plan.promoted_lines.is_some() && (in_time || request.exactness == pmu::Exactness::Ibs)
}

/// Refuses fields that the kernel fills in only after the program runs: no sample would have them.
pub(super) fn looked_up_in_time(
    plan: &Plan,
    planned: &PlannedEvent,
    machine: &MachineInfo,
) -> Result<(), SamplingError> {
    let needs = &planned.filter.needs;
    // On IBS the hardware delivers the physical address.
    let ibs = planned.request.exactness == pmu::Exactness::Ibs;
    let refusal = if needs.page_size {
        explain::looked_up_too_late("data_pgsz")
    } else if needs.phys_address && !ibs {
        explain::looked_up_too_late("phys_addr")
    } else if by_page_size(plan, planned.request.fields) {
        explain::no_page_sizes()
    } else {
        return Ok(());
    };
    match machine.kernel {
        Some(version) if version.at_least(6, 3) => Ok(()),
        _ => Err(refusal),
    }
}
