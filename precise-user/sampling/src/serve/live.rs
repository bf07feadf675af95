//! The run whose samples are served.

use std::{process::ExitStatus, sync::Arc};

use super::{
    http::{self, Listening},
    label::Label,
    page::Page,
    status::Status,
    totals::{Shared, Totals},
};
use crate::error::SamplingError;
use crate::machine::{MachineInfo, Root};
use crate::run::plan::Plan;
use crate::run::running::{Opened, Running};

/// What a run tells while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Sampling has begun, and the first page can be had.
    Started {
        /// Kernel memory of the tables, bytes; constant during the run.
        table_bytes: usize,
        /// Memory of the rings, bytes; as well.
        ring_bytes: usize,
        /// What was granted, one sentence per step down, and what else a reader must know from the
        /// start.
        said: Vec<String>,
    },
    /// Something that whoever runs it should know, when it happens.
    Note(String),
}

/// A run that was ended.
#[derive(Debug)]
pub struct Ended {
    /// What the reader must know of it and was not said at the start, one sentence each.
    pub notes: Vec<String>,
    /// How the command ended, where one was run and ended by itself.
    pub command: Option<ExitStatus>,
    /// Why the kill switch ended the run, where it did.
    pub stopped: Option<String>,
}

/// Serves a plan's samples until somebody ends it, or something that the plan names.
///
/// # Errors
///
/// When nothing can be sampled. What is lost after the start is counted, and ends no run.
pub async fn run(
    plan: &Plan,
    labels: &[Label],
    limit: usize,
    listening: Listening,
    mut progress: impl FnMut(Progress),
) -> Result<Ended, SamplingError> {
    let opened = Opened::open(plan)?;
    let mut said = opened.findings();
    let unsaid: Vec<_> = opened.notes().into_iter().filter(|note| !said.contains(note)).collect();
    said.extend(unsaid);
    let started = Progress::Started {
        table_bytes: opened.table_bytes(),
        ring_bytes: opened.ring_bytes(),
        said: said.clone(),
    };
    let machine = MachineInfo::read(&Root::default()).machine;
    let totals = Shared::new(Totals::new(labels, limit, machine));
    let mut run = opened.start(plan, totals.clone())?;
    let mut status = Status::new(plan, &run);
    status.update(&mut run)?;
    let page = Arc::new(Page::new(totals, status.clone()));
    // It ends with the runtime's turn of this future: nobody is left waiting for an answer of a run
    // that is over.
    let answering = tokio::spawn(http::answer_all(listening, page.clone()));
    progress(started);
    run.session.release(plan.duration)?;
    let each = |run: &mut Running<Shared>| {
        status.update(run)?;
        page.show(&status);
        let notes = run.cost.take_notes().into_iter().chain(run.session.take_news());
        notes.for_each(|note| progress(Progress::Note(note)));
        Ok(())
    };
    let end = run.until_end(plan.epoch, each).await;
    answering.abort();
    let command = run.session.stop(end?)?;
    run.end_epoch()?;
    run.session.end_command();
    let (mut session, named) = run.name_the_rest()?;
    let notes = session.notes().into_iter().chain(named.notes).filter(|note| !said.contains(note)).collect();
    Ok(Ended { notes, command, stopped: session.stopped().map(str::to_owned) })
}
