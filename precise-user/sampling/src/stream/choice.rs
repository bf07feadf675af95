//! Chooses the fields that a streaming run writes, and what its records must carry for them.

use super::StreamField;
use crate::pmu::{EventRequest, Exactness};
use crate::run::plan::{Plan, PlannedEvent, Streaming};
use precise_model::{Fields, TaggedOf};

/// The error for a field that none of the events' samples have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("samples of {} have no {}", .events.join(" and "), .field.name())]
pub struct MissingField {
    /// The requested field.
    pub field: StreamField,
    /// The names of the events.
    pub events: Vec<String>,
}

/// Chooses the fields of a streaming run, without duplicates, and returns them with a plan whose
/// records carry them.
///
/// If any fields were requested, exactly those are chosen. Otherwise they are the fields that the
/// events have and that cost nothing extra: a selection that fits on a line, or, with `everything`,
/// all of them.
///
/// # Errors
///
/// Returns an error if the events do not have a requested field.
pub fn choose_fields(
    plan: Plan,
    asked: &[StreamField],
    everything: bool,
) -> Result<(Plan, Vec<StreamField>), MissingField> {
    let fields = fields_of(&plan.events, asked, everything)?;
    let stream = plan.stream.map(|streaming| carrying(streaming, &fields));
    Ok((Plan { stream, ..plan }, fields))
}

fn fields_of(
    events: &[PlannedEvent],
    asked: &[StreamField],
    everything: bool,
) -> Result<Vec<StreamField>, MissingField> {
    let exists = |field: StreamField| events.iter().any(|event| has(&event.request, field));
    if asked.is_empty() {
        let chosen = |field: &StreamField| by_default(*field, everything, events.len());
        return Ok(StreamField::all().filter(|field| exists(*field)).filter(chosen).collect());
    }
    let mut fields = Vec::new();
    for field in asked {
        if !exists(*field) {
            let events = events.iter().map(|event| event.request.name.clone()).collect();
            return Err(MissingField { field: *field, events });
        }
        if !fields.contains(field) {
            fields.push(*field);
        }
    }
    Ok(fields)
}

fn has(request: &EventRequest, field: StreamField) -> bool {
    // For branches and fetches, address and latency come from the IBS registers. The record's own
    // fields describe data accesses.
    let own = request.tagged.is_some_and(|tagged| !matches!(tagged.of, TaggedOf::Access | TaggedOf::Op));
    let fields = if own { Fields::default() } else { request.fields };
    field.exists(fields, request.exactness == Exactness::Ibs)
}

fn by_default(field: StreamField, everything: bool, events: usize) -> bool {
    match field {
        // These cost a page-table walk per sample, so they must be requested.
        StreamField::PhysAddress | StreamField::PageSize => false,
        _ if everything => true,
        StreamField::Event => events > 1,
        StreamField::Time
        | StreamField::Cpu
        | StreamField::Comm
        | StreamField::Pid
        | StreamField::Tid
        | StreamField::Period => true,
        StreamField::Latency
        | StreamField::Op
        | StreamField::Level
        | StreamField::Snoop
        | StreamField::Tlb
        | StreamField::Locked => true,
        StreamField::Address | StreamField::Variable | StreamField::Ip | StreamField::Symbol => true,
        _ => false,
    }
}

fn carrying(streaming: Streaming, fields: &[StreamField]) -> Streaming {
    let has = |field: StreamField| fields.contains(&field);
    Streaming {
        cgroup: has(StreamField::Cgroup),
        raw: has(StreamField::Raw) || has(StreamField::Registers),
        phys_address: has(StreamField::PhysAddress),
        page_size: has(StreamField::PageSize),
        ..streaming
    }
}
