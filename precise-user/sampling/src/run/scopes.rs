//! The scopes in which the events of a plan are opened, and whether there are descriptors for all
//! of them.

use std::borrow::Cow;

use super::plan::{Plan, PlannedEvent, Target};
use crate::error::{ErrorClass, Remedy, SamplingError};
use crate::kernel::descriptors::{self, DescriptorLimits};
use crate::kernel::event::Scope;
use crate::kernel::explain;
use crate::pmu::EventRequest;

/// Descriptors for everything of a run that is not an event: programs, maps, the capture, the files
/// that are read for names.
const SPARE_DESCRIPTORS: u64 = 128;

/// Returns the scopes to open each event in: CPUs, or tasks on each CPU. `command` is the process
/// id of a held command.
pub(super) fn scopes(plan: &Plan, command: Option<u32>) -> Result<Vec<Scope>, SamplingError> {
    let on_every_cpu = |tids: Vec<u32>, on_exec: bool| {
        tids.into_iter()
            .flat_map(|tid| {
                // An event of a task can be opened for a CPU that is offline.
                let cpus = plan.cpus.iter().chain(&plan.later);
                cpus.map(move |cpu| Scope::Task { tid: tid as i32, cpu: *cpu, on_exec })
            })
            .collect::<Vec<_>>()
    };
    match (&plan.target, command) {
        (Target::All, _) => Ok(plan.cpus.iter().copied().map(Scope::Cpu).collect()),
        (Target::Command(_), Some(pid)) => Ok(on_every_cpu(vec![pid], true)),
        (Target::Command(_), None) => Ok(Vec::new()),
        (Target::Threads(tids), _) => Ok(on_every_cpu(tids.clone(), false)),
        (Target::Processes(pids), _) => {
            let mut tids = Vec::new();
            for pid in pids {
                let directory = format!("/proc/{pid}/task");
                let entries = std::fs::read_dir(&directory).map_err(|_| {
                    SamplingError::new(ErrorClass::Failed, format!("process {pid} does not exist"))
                        .remedy(Remedy::CheckIds)
                })?;
                tids.extend(
                    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()),
                );
            }
            Ok(on_every_cpu(tids, false))
        }
    }
}

/// Returns whether an event can be opened in a scope. Software events run on any CPU. An event of
/// one PMU of a hybrid CPU runs only on the CPUs of that PMU.
pub(super) fn exists_in(request: &EventRequest, scope: Scope) -> bool {
    request.cpus.as_ref().is_none_or(|cpus| cpus.contains(&scope.cpu()))
}

/// Returns the number of descriptors that the events of a plan need in these scopes.
pub(super) fn needed_descriptors(plan: &Plan, scopes: &[Scope]) -> u64 {
    let later: &[u32] = if plan.target == Target::All { &plan.later } else { &[] };
    let of = |planned: &PlannedEvent| {
        let request = &planned.request;
        let later = later.iter().map(|cpu| Scope::Cpu(*cpu));
        let places = scopes.iter().copied().chain(later).filter(|scope| exists_in(request, *scope));
        let places = places.count() as u64;
        places * (1 + u64::from(request.leader.is_some()))
    };
    plan.events.iter().map(of).sum()
}

/// Refuses a plan whose events need more descriptors than the process may have, before any of them
/// is open. The sideband needs one on each of `cpus` CPUs.
pub(super) fn descriptors_suffice(
    plan: &Plan,
    scopes: &[Scope],
    cpus: usize,
    limits: DescriptorLimits,
) -> Result<(), SamplingError> {
    let others = descriptors::open().unwrap_or(0) + cpus as u64 + SPARE_DESCRIPTORS;
    let need = needed_descriptors(plan, scopes);
    if need.saturating_add(others) > limits.soft {
        return Err(explain::too_many_files(need, others, limits.soft));
    }
    Ok(())
}

/// Returns the plan and its scopes, without the CPUs that are offline if there are descriptors only
/// for the others: CPUs that may never come online must not prevent a run. `command` is the process
/// id of a held command, `online` the number of online CPUs.
pub(super) fn affordable(
    plan: &Plan,
    command: Option<u32>,
    online: usize,
    limits: DescriptorLimits,
) -> Result<(Cow<'_, Plan>, Vec<Scope>), SamplingError> {
    let all = scopes(plan, command)?;
    match descriptors_suffice(plan, &all, online + plan.later.len(), limits) {
        Ok(()) => Ok((Cow::Borrowed(plan), all)),
        Err(_) if !plan.later.is_empty() => {
            let plan = Plan { later: Vec::new(), ..plan.clone() };
            let scopes = scopes(&plan, command)?;
            descriptors_suffice(&plan, &scopes, online, limits)?;
            Ok((Cow::Owned(plan), scopes))
        }
        Err(error) => Err(error),
    }
}
