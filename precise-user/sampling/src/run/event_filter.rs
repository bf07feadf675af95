//! The filter of one event: combines the user's filter with the event's built-in filter, and
//! compiles both for the eBPF program.

use std::{cell::RefCell, io, path::Path};

use precise_common::config::watched;

use crate::kernel::event::Rate;
use crate::machine::MachineInfo;
use crate::pmu::{EventRequest, Exactness, TaggedFields};
use crate::symbols::cgroup::{Cgroups, Hierarchy};
use precise_filter as filter;
use precise_filter::pattern::Pattern;
use precise_filter::{
    CgroupMatch, CompileError, Compiled, EventFields, Expr, OptionalFields, ParseError, Resolver, parse,
};
use precise_model::{CompactSort as _, TaggedOf};

use super::plan::PlannedEvent;

/// An error in the filter of an event.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The built-in filter of the event does not parse, which is a bug.
    #[error("the built-in filter of {event} is invalid: {source}")]
    Own {
        /// The event.
        event: String,
        /// The error of the parser.
        source: ParseError,
    },
    /// The filter uses a field that the event does not record, or is too long for the program.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The cgroups of this machine cannot be listed.
    #[error("cannot list the cgroups: {0}")]
    Cgroups(#[source] io::Error),
}

/// An error in the name of a cgroup.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// The cgroups of this machine cannot be listed.
    #[error("cannot list the cgroups: {0}")]
    Unreadable(#[source] io::Error),
    /// The machine has only cgroup v1.
    #[error("cgroups need a v2 hierarchy, and this machine has only v1, which eBPF programs cannot see")]
    OnlyV1,
    /// The text is not a valid cgroup name.
    #[error("{text}: {why}")]
    Syntax {
        /// The text.
        text: String,
        /// What is wrong with the text.
        why: String,
    },
    /// A plain path does not exist.
    #[error("{0}: this cgroup does not exist in the v2 hierarchy")]
    Missing(String),
}

/// The cgroups that a filter keeps.
#[derive(Debug, Default)]
pub struct WantedCgroups {
    /// Paths of existing cgroups; none is below another.
    paths: Vec<String>,
    /// Patterns of cgroups that may be created later.
    pub watch: Vec<Pattern>,
}

impl WantedCgroups {
    /// Returns the names of the cgroups for use in a filter.
    pub fn names(&self) -> Vec<String> {
        let patterns = self.watch.iter().map(|pattern| pattern.text().to_owned());
        self.paths.iter().cloned().chain(patterns).collect()
    }
}

/// Returns the cgroups that these texts name; see [`Pattern`].
///
/// # Errors
///
/// Returns an error for the first text that names no cgroup, or if this machine has no cgroup v2
/// hierarchy.
pub fn wanted_cgroups(texts: &[String]) -> Result<WantedCgroups, CgroupError> {
    let mut wanted = WantedCgroups::default();
    if texts.is_empty() {
        return Ok(wanted);
    }
    let mut cgroups = open_cgroups().map_err(CgroupError::Unreadable)?;
    if cgroups.report().v2.is_none() {
        return Err(CgroupError::OnlyV1);
    }
    for text in texts {
        let pattern = Pattern::parse(text).map_err(|why| CgroupError::Syntax { text: text.clone(), why })?;
        if pattern.may_grow() {
            wanted.watch.push(pattern);
            continue;
        }
        let matching = cgroups.find(Hierarchy::V2, text);
        if matching.is_empty() {
            return Err(CgroupError::Missing(text.clone()));
        }
        wanted.paths.extend(matching.into_iter().map(|cgroup| cgroup.path.to_string()));
    }
    wanted.paths = topmost(wanted.paths);
    Ok(wanted)
}

/// Sorts the paths, and removes duplicates and paths below another one, which add nothing.
fn topmost(mut paths: Vec<String>) -> Vec<String> {
    paths.compact_sort();
    paths.dedup();
    let all = paths.clone();
    paths.retain(|path| {
        !all.iter().any(|other| {
            other != path
                && path.strip_prefix(other.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
        })
    });
    paths
}

/// Resolves the cgroup names in filters: the cgroups of this machine, and the patterns that are
/// watched.
struct Cgroup<'a> {
    cgroups: RefCell<Cgroups>,
    watch: &'a [Pattern],
}

impl Resolver for Cgroup<'_> {
    fn cgroup(&self, path: &str) -> Result<CgroupMatch, String> {
        let mut cgroups = self.cgroups.try_borrow_mut().map_err(|error| error.to_string())?;
        if cgroups.report().v2.is_none() {
            return Err("this machine has no cgroup v2 hierarchy mounted".to_owned());
        }
        if let Some(pattern) = self.watch.iter().find(|pattern| pattern.text() == path) {
            let (first, last) = {
                let written = cgroups.mounted(Hierarchy::V2).pattern(pattern.text());
                pattern.levels(&written, watched::LEVELS as u32 - 1)
            };
            return Ok(CgroupMatch::Watched { first, last });
        }
        match cgroups.find(Hierarchy::V2, path).as_slice() {
            [one] => Ok(CgroupMatch::Subtree { id: one.id, level: one.level }),
            [] => Err("this cgroup does not exist in the v2 hierarchy".to_owned()),
            several => Err(format!("{} cgroups match; the filter must name a single one", several.len())),
        }
    }
}

/// Returns an event with its compiled filter: the user's `expression` combined with the event's
/// built-in filter. Requests the registers of IBS only if the filter needs them, because they cost
/// a copy in every sample. Cgroups that match a pattern in `watch` may be created later.
///
/// # Errors
///
/// Returns an error if the event lacks a field of the expression, a cgroup does not exist, or the
/// filter is too long for the program.
pub fn plan(
    expression: Option<&Expr>,
    mut request: EventRequest,
    rate: Rate,
    machine: &MachineInfo,
    watch: &[Pattern],
) -> Result<PlannedEvent, FilterError> {
    let filter = compile(expression, &request, machine, watch)?;
    if filter.needs.access && request.tagged.is_none() {
        request.tagged =
            Some(TaggedFields { of: TaggedOf::Access, zen3_errata: machine.cpu.ibs_zen3_errata() });
    }
    Ok(PlannedEvent { request, rate, filter })
}

fn compile(
    expression: Option<&Expr>,
    request: &EventRequest,
    machine: &MachineInfo,
    watch: &[Pattern],
) -> Result<Compiled, FilterError> {
    let own = request.filter.as_deref().map(parse::parse).transpose();
    let own = own.map_err(|source| FilterError::Own { event: request.name.clone(), source })?;
    let Some(whole) = Expr::all(own.into_iter().chain(expression.cloned())) else {
        return Ok(Compiled::default());
    };
    let of = |what| request.tagged.is_some_and(|tagged| tagged.of == what);
    // In a planned event, `tagged` is set to the access if the filter needs its registers.
    let registers = request.pmu == "ibs_op" && (request.tagged.is_none() || of(TaggedOf::Access));
    let fields = OptionalFields {
        address: request.fields.address,
        latency: request.fields.latency,
        data_src: request.fields.data_source,
        // The kernel derives these two from the address.
        phys_address: request.fields.address,
        page_size: request.fields.address,
        branch: of(TaggedOf::Branch),
        fetch: of(TaggedOf::Fetch),
        access: registers,
        ccx: registers && machine.cpu.ibs_tells_ccx(),
    };
    filter::check(&whole, &EventFields { name: &request.name, fields }, &[])?;
    // Before Linux 6.2, IBS fills only the legacy bits of the data source.
    let legacy_levels =
        request.exactness == Exactness::Ibs && !machine.kernel.is_some_and(|version| version.at_least(6, 2));
    let cgroups = open_cgroups().map_err(FilterError::Cgroups)?;
    let resolver = Cgroup { cgroups: RefCell::new(cgroups), watch };
    Ok(filter::compile(&whole, filter::CompilerOptions { legacy_levels }, &resolver)?)
}

/// Opens the cgroups of this machine.
///
/// # Errors
///
/// Returns an error if the cgroups cannot be listed.
pub(crate) fn open_cgroups() -> io::Result<Cgroups> {
    Cgroups::open(Path::new("/"))
}

#[cfg(test)]
#[path = "event_filter_tests.rs"]
mod tests;
