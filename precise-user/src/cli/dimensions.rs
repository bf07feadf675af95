//! `--by` of what makes captures: names of dimensions.

use precise::error::{Class, Failure};
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

/// The dimensions of a list of words, each once.
pub fn parse(words: &[String]) -> Result<Vec<Dimension>, Failure> {
    let mut dimensions = Vec::new();
    for word in words {
        let dimension = match word.trim() {
            "function" | "line" | "sym" | "symbol" | "module" | "dso" | "srcline" => Some(Dimension::Ip),
            "pid" | "comm" => Some(Dimension::Process),
            "tid" => Some(Dimension::Thread),
            "addr" | "variable" | "region" | "page" | "cacheline" => Some(Dimension::Address),
            "branch" | "fetch" => Some(Dimension::Outcome),
            "page_size" | "data_page_size" | "data_pgsz" => Some(Dimension::PageSize),
            "level" | "snoop" | "tlb" | "mem" => Some(Dimension::Source),
            name => Dimension::ALL.into_iter().find(|dimension| dimension.as_str() == name),
        };
        let Some(dimension) = dimension else {
            let all: Vec<_> = Dimension::ALL.iter().map(|dimension| dimension.as_str()).collect();
            return Err(Failure::new(Class::Usage, format!("'{word}' is not a dimension"))
                .advise(format!("Valid dimensions: {}.", all.join(", "))));
        };
        if !dimensions.contains(&dimension) {
            dimensions.push(dimension);
        }
    }
    Ok(dimensions)
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
