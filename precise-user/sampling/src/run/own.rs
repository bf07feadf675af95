//! The samples of precise itself: which processes are its own, and how the program learns it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use precise_common::config::{Config, source};

use super::opening::SampledEvent;
use super::plan::Plan;
use crate::machine::{MachineInfo, Root};
use crate::reader::Reader;
use precise_model::Dimension;

/// Returns whether the ids that this process has are the ones that the program sees: those in
/// the initial namespace, or since Linux 6.3 in that of the process that opened the event, if it is
/// another one.
fn has_ids_of_program(machine: &MachineInfo, root: &Root) -> bool {
    let prepared = machine.kernel.is_some_and(|version| version.at_least(6, 3));
    prepared || root.has_initial_pids()
}

/// Lets the program leave out the samples of this process, if the plan asks for it and the program
/// can tell them.
pub(crate) fn leave_out(config: &mut Config, plan: &Plan, machine: &MachineInfo) {
    if plan.leaves_out_own() && has_ids_of_program(machine, &Root::default()) {
        config.own = std::process::id();
        config.source |= source::REJECT_OWN;
    }
}

/// Returns a note if the samples of this process should be left out and are not.
pub(crate) fn note(plan: &Plan, machine: &MachineInfo) -> Option<String> {
    (plan.leaves_out_own() && !has_ids_of_program(machine, &Root::default())).then(|| {
        "the samples of precise itself are included: before Linux 6.3 they cannot be told from others in a \
         pid namespace of its own"
            .to_owned()
    })
}

/// The helper processes of a run that leaves out its own samples.
#[derive(Debug)]
pub(crate) struct Helpers {
    /// See [`Reader::helpers`].
    now: Arc<AtomicU64>,
    /// What the programs were told last.
    told: u64,
}

impl Helpers {
    /// Returns the helpers that the programs must know; `None` if the run does not leave them out.
    /// If the run names addresses, the worker is started now, because the page faults of its start
    /// cannot be told from others before its id is known.
    pub fn of(plan: &Plan, reader: &mut Reader) -> Option<Self> {
        if !plan.leaves_out_own() {
            return None;
        }
        let asks = |dimension| plan.dimensions.contains(&dimension);
        if plan.stream.is_some() || asks(Dimension::Ip) || asks(Dimension::Address) {
            // The first file that is read reports why there is no worker.
            let _confinement = reader.confinement();
        }
        Some(Self { now: reader.helpers(), told: 0 })
    }

    /// Tells the program of each event which processes the helpers are, if they have changed.
    pub fn announce(&mut self, events: &[SampledEvent]) {
        let now = self.now.load(Ordering::Relaxed);
        if now != self.told {
            events.iter().for_each(|event| event.sampler.program().table.set_own(now));
            self.told = now;
        }
    }
}
