//! A run whose samples are served over HTTP.

use std::{process::ExitStatus, sync::Arc};

use super::{
    http::{Listening, Server},
    label::SeriesLabel,
    page::Page,
    status::ServeStatus,
    totals::{SeriesTotals, Shared},
};
use crate::error::{ErrorClass, Remedy, SamplingError};
use crate::machine::{MachineInfo, Root};
use crate::run::plan::Plan;
use crate::run::running::{Opened, Running};

/// A message from a run that is in progress.
#[derive(Clone, Debug, PartialEq)]
pub enum ServeProgress {
    /// Sampling has started, and the first page is available.
    Started {
        /// The kernel memory of the tables in bytes; constant during the run.
        table_bytes: usize,
        /// The memory of the rings in bytes; constant during the run.
        ring_bytes: usize,
        /// One sentence per downgrade of precision, and anything else that a reader must know from
        /// the start.
        said: Vec<String>,
    },
    /// A note for the operator, sent when it applies.
    Note(String),
}

/// The result of a run.
#[derive(Debug)]
pub struct ServeEnd {
    /// Notes that were not in [`ServeProgress::Started`], one sentence each.
    pub notes: Vec<String>,
    /// The exit status of the command; `None` if no command ran, or if it did not end by itself.
    pub command: Option<ExitStatus>,
    /// Why the kill switch ended the run; `None` if it did not.
    pub stopped: Option<String>,
}

/// Samples according to a plan and serves the totals, until the user or a condition of the plan
/// ends the run.
///
/// # Errors
///
/// Returns an error if nothing can be sampled. Losses after the start are counted and do not end
/// the run.
pub async fn run(
    plan: &Plan,
    labels: &[SeriesLabel],
    limit: usize,
    listening: Listening,
    mut progress: impl FnMut(ServeProgress),
) -> Result<ServeEnd, SamplingError> {
    let opened = Opened::open(plan)?;
    let mut said = opened.findings();
    let unsaid: Vec<_> = opened.notes().into_iter().filter(|note| !said.contains(note)).collect();
    said.extend(unsaid);
    let started = ServeProgress::Started {
        table_bytes: opened.table_bytes(),
        ring_bytes: opened.ring_bytes(),
        said: said.clone(),
    };
    let machine = MachineInfo::read(&Root::default()).machine;
    let totals = Shared::new(SeriesTotals::new(labels, limit, machine));
    let mut run = opened.start(plan, totals.clone())?;
    let mut status = ServeStatus::new(plan, &run);
    status.update(&mut run)?;
    let page = Arc::new(Page::new(totals, status.clone()));
    // It stops when the run ends, so no client waits for an answer of a run that is over.
    let server = Server::start(listening, page.clone())?;
    run.session.release(plan.duration)?;
    progress(started);
    let each = |run: &mut Running<Shared>| {
        if server.is_finished() {
            let died = SamplingError::new(ErrorClass::Failed, "the thread that answers requests died");
            return Err(died.remedy(Remedy::ReportBug));
        }
        status.update(run)?;
        page.show(&status);
        let notes = run.cost.take_notes().into_iter().chain(run.session.take_news());
        notes.for_each(|note| progress(ServeProgress::Note(note)));
        Ok(())
    };
    let end = run.until_end(plan.epoch, each).await;
    drop(server);
    let command = run.session.stop(end?)?;
    run.end_epoch()?;
    run.session.end_command();
    let (mut session, named) = run.name_the_rest()?;
    let notes = session.notes(named.busiest).into_iter().chain(named.notes);
    let notes = notes.filter(|note| !said.contains(note)).collect();
    Ok(ServeEnd { notes, command, stopped: session.stopped().map(str::to_owned) })
}
