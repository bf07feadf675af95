//! Whether a run samples every page fault of the machine, and so takes them at the kernel's
//! tracepoints.

use super::plan::{Plan, Target};
use crate::kernel::event::OpenRequest;
use crate::kernel::tracepoints::Tracepoints;
use crate::machine::MachineInfo;

/// Returns the tracepoints at which a program sees what an event of the plan samples: everything on
/// all CPUs, and whatever it costs. `None` if the event must be opened. `ids`: the
/// program must read the ids of tasks from the sample.
pub(super) fn tracepoints(
    plan: &Plan,
    request: &OpenRequest,
    ids: bool,
    machine: &MachineInfo,
) -> Option<Tracepoints> {
    let of_all = plan.target == Target::All && machine.online.iter().all(|cpu| plan.cpus.contains(cpu));
    // With a budget the period may have to grow.
    let each = plan.budget.is_none() && plan.promoted_lines.is_none() && plan.stream.is_none();
    let possible = of_all && each && plan.read_path.is_none() && !ids;
    Tracepoints::instead_of(request).filter(|_| possible)
}
