//! `--by` of what makes captures: group keys, and the dimensions that they need.

use precise::error::{Class, Failure};
use precise::model::keys::Key;
use precise::model::{Dimension, Fields};
use precise::pmu::EventRequest;

/// Dimensions with what call chains need, where they are among them.
pub fn with_chains(mut dimensions: Vec<Dimension>) -> Result<Vec<Dimension>, Failure> {
    if !dimensions.contains(&Dimension::Stack) {
        return Ok(dimensions);
    }
    if dimensions.contains(&Dimension::Address) {
        return Err(Failure::new(
            Class::Usage,
            "a capture can hold call chains (-g, --by stack) or data addresses (--by address), but not both",
        )
        .advise("Make two captures: one with -g, one with --by address."));
    }
    for needed in [Dimension::Ip, Dimension::Process] {
        if !dimensions.contains(&needed) {
            dimensions.push(needed);
        }
    }
    Ok(dimensions)
}

/// The dimensions that the group keys of `--by` need, each once. None for keys that every capture has, such as `event`.
pub fn parse(by: &str) -> Result<Vec<Dimension>, Failure> {
    let keys = Key::parse_list(by).map_err(|error| Failure::new(Class::Usage, error.to_string()))?;
    if keys.is_empty() {
        return Err(Failure::new(Class::Usage, "--by names no group key")
            .advise(format!("Group keys are: {}.", Key::list())));
    }
    Ok(Key::dimensions(&keys))
}

/// Refuses dimensions that samples of none of these events have.
pub fn are_there(dimensions: &[Dimension], requests: &[&EventRequest]) -> Result<(), Failure> {
    let lacking = |has: fn(&Fields) -> bool| !requests.iter().any(|request| has(&request.fields));
    for (dimension, missing, what) in [
        (Dimension::Address, lacking(|fields| fields.address), "data addresses"),
        (Dimension::PageSize, lacking(|fields| fields.address), "data addresses, and so no page sizes"),
        (Dimension::Latency, lacking(|fields| fields.latency), "latencies"),
        (Dimension::Source, lacking(|fields| fields.data_source), "memory levels"),
        (Dimension::Outcome, lacking(|fields| fields.outcome), "outcomes of branches or fetches"),
    ] {
        if missing && dimensions.contains(&dimension) {
            let names: Vec<_> = requests.iter().map(|request| request.name.as_str()).collect();
            return Err(Failure::new(
                Class::Usage,
                format!("samples of {} have no {what}", names.join(" and ")),
            )
            .advise("`precise list` shows which events have them."));
        }
    }
    Ok(())
}
