//! The filter of one event: what the user wants of it, and what makes it what its name says, compiled for the program.

use std::{cell::RefCell, path::Path};

use precise_common::config::watched;

use crate::error::{Class, Failure};
use crate::kernel::event::Rate;
use crate::machine::MachineInfo;
use crate::pmu::{EventRequest, Exactness, Tagged};
use crate::symbols::cgroup::{Cgroups, Hierarchy};
use crate::symbols::pattern::Pattern;
use precise_filter as filter;
use precise_filter::{CgroupMatch, Compiled, EventFields, Expr, Fields, Resolver, parse};
use precise_model::TaggedOf;

use super::plan::PlannedEvent;

/// The cgroups of this machine, for the names in filters, and the patterns that are watched.
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
            let (first, last) = pattern.levels(&cgroups.mounted(Hierarchy::V2), watched::LEVELS as u32 - 1);
            return Ok(CgroupMatch::Watched { first, last });
        }
        match cgroups.find(Hierarchy::V2, path).as_slice() {
            [one] => Ok(CgroupMatch::Subtree { id: one.id, level: one.level }),
            [] => Err("there is no such cgroup in the v2 hierarchy".to_owned()),
            several => Err(format!("{} cgroups match; name a single one, or use -G", several.len())),
        }
    }
}

/// An event with its filter: what `expression` asks, and what makes it what its name says. Where that is about the registers
/// of IBS, they are asked for: they cost a copy in every sample, so only then. Of cgroups, those in `watch` may still come.
///
/// # Errors
///
/// When the event has not what the expression asks about, a cgroup is not there, or it is too long for the program.
pub fn plan(
    expression: Option<&Expr>,
    mut request: EventRequest,
    rate: Rate,
    machine: &MachineInfo,
    watch: &[Pattern],
) -> Result<PlannedEvent, Failure> {
    let filter = compile(expression, &request, machine, watch)?;
    if filter.needs.access && request.tagged.is_none() {
        request.tagged = Some(Tagged { of: TaggedOf::Access, zen3_errata: machine.cpu.ibs_zen3_errata() });
    }
    Ok(PlannedEvent { request, rate, filter })
}

fn compile(
    expression: Option<&Expr>,
    request: &EventRequest,
    machine: &MachineInfo,
    watch: &[Pattern],
) -> Result<Compiled, Failure> {
    let own = request.filter.as_deref().map(parse::parse).transpose().map_err(|error| {
        Failure::new(Class::Failed, format!("the built-in filter of {} is invalid: {error}", request.name))
    })?;
    let Some(whole) = Expr::all(own.into_iter().chain(expression.cloned())) else {
        return Ok(Compiled::default());
    };
    let usage = |error: &dyn std::fmt::Display| Failure::new(Class::Usage, error.to_string());
    let of = |what| request.tagged.is_some_and(|tagged| tagged.of == what);
    // Once planned, `tagged` is of the access where the filter asks about it.
    let registers = request.pmu == "ibs_op" && (request.tagged.is_none() || of(TaggedOf::Access));
    let fields = Fields {
        address: request.fields.address,
        latency: request.fields.latency,
        data_src: request.fields.data_source,
        // What the kernel derives from the address.
        phys_address: request.fields.address,
        page_size: request.fields.address,
        branch: of(TaggedOf::Branch),
        fetch: of(TaggedOf::Fetch),
        access: registers,
        ccx: registers && machine.cpu.ibs_tells_ccx(),
    };
    filter::check(&whole, &EventFields { name: &request.name, fields }, &[])
        .map_err(|error| usage(&error))?;
    // IBS fills only the legacy bits of the data source before 6.2.
    let legacy_levels =
        request.exactness == Exactness::Ibs && !machine.kernel.is_some_and(|version| version.at_least(6, 2));
    let resolver = Cgroup { cgroups: RefCell::new(open_cgroups()?), watch };
    filter::compile(&whole, filter::Options { legacy_levels }, &resolver).map_err(|error| usage(&error))
}

/// The cgroups of this machine.
///
/// # Errors
///
/// When they cannot be found.
pub fn open_cgroups() -> Result<Cgroups, Failure> {
    Cgroups::open(Path::new("/"))
        .map_err(|error| Failure::new(Class::Failed, format!("cannot list the cgroups: {error}")))
}
