//! Chooses the fields that a streaming run writes, and what its records must carry for them.

use super::Field;
use crate::pmu::{EventRequest, Exactness};
use crate::run::plan::{Plan, PlannedEvent, Streaming};
use precise_model::{Fields, TaggedOf};

/// The error for a field that none of the events' samples have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("samples of {} have no {}", .events.join(" and "), .field.name())]
pub struct MissingField {
    /// The requested field.
    pub field: Field,
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
    asked: &[Field],
    everything: bool,
) -> Result<(Plan, Vec<Field>), MissingField> {
    let fields = fields_of(&plan.events, asked, everything)?;
    let stream = plan.stream.map(|streaming| carrying(streaming, &fields));
    Ok((Plan { stream, ..plan }, fields))
}

fn fields_of(events: &[PlannedEvent], asked: &[Field], everything: bool) -> Result<Vec<Field>, MissingField> {
    let exists = |field: Field| events.iter().any(|event| has(&event.request, field));
    if asked.is_empty() {
        let chosen = |field: &Field| by_default(*field, everything, events.len());
        return Ok(Field::all().filter(|field| exists(*field)).filter(chosen).collect());
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

fn has(request: &EventRequest, field: Field) -> bool {
    // For branches and fetches, address and latency come from the IBS registers. The record's own
    // fields describe data accesses.
    let own = request.tagged.is_some_and(|tagged| !matches!(tagged.of, TaggedOf::Access | TaggedOf::Op));
    let fields = if own { Fields::default() } else { request.fields };
    field.exists(fields, request.exactness == Exactness::Ibs)
}

fn by_default(field: Field, everything: bool, events: usize) -> bool {
    match field {
        // These cost a page-table walk per sample, so they must be requested.
        Field::PhysAddress | Field::PageSize => false,
        _ if everything => true,
        Field::Event => events > 1,
        Field::Time | Field::Cpu | Field::Comm | Field::Pid | Field::Tid | Field::Period => true,
        Field::Latency | Field::Op | Field::Level | Field::Snoop | Field::Tlb | Field::Locked => true,
        Field::Address | Field::Variable | Field::Ip | Field::Symbol => true,
        _ => false,
    }
}

fn carrying(streaming: Streaming, fields: &[Field]) -> Streaming {
    let has = |field: Field| fields.contains(&field);
    Streaming {
        cgroup: has(Field::Cgroup),
        raw: has(Field::Raw) || has(Field::Registers),
        phys_address: has(Field::PhysAddress),
        page_size: has(Field::PageSize),
        ..streaming
    }
}
