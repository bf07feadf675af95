//! A live run that writes its rows to a capture.

use std::{path::Path, process::ExitStatus, time::Duration};

use super::keeping::{Keeping, Kept, Writing};
use super::running::{Opened, Running};
use crate::error::{ErrorClass, SamplingError};
use crate::run::plan::Plan;
use crate::unwind::UnwindReport;
use precise_capture::WriteError;
use precise_model::{EventInfo, Machine, Meta, Overhead, SCHEMA_VERSION};

/// Reports the progress of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunProgress {
    /// Sampling has begun.
    Started {
        /// Memory of the tables in the kernel, in bytes; constant during the run.
        table_bytes: usize,
        /// Memory of the rings, in bytes; constant during the run.
        ring_bytes: usize,
        /// One sentence for each step down in precision.
        findings: Vec<String>,
    },
    /// An epoch has ended.
    Epoch {
        /// The number of the epoch, from 0.
        number: usize,
        /// Number of samples that the program has seen so far.
        seen: u64,
        /// Time since sampling began.
        elapsed: Duration,
    },
}

/// A finished run.
#[derive(Debug)]
pub struct FinishedRun {
    /// Metadata of the run.
    pub meta: Meta,
    /// The capture of the run.
    pub kept: Kept,
    /// Exit status of the command; `None` if there was none, or it did not end by itself.
    pub command: Option<ExitStatus>,
    /// Why the kill switch ended the run; `None` if it did not.
    pub stopped: Option<String>,
}

/// Runs a plan to its end. Writes the capture to `output` epoch by epoch; it is complete when this
/// function returns. Without `output` the capture is only returned.
///
/// # Errors
///
/// Returns an error if nothing can be sampled or the capture cannot be written. Losses after the
/// start are counted and do not end the run.
pub async fn run(
    plan: &Plan,
    output: Option<&Path>,
    mut progress: impl FnMut(RunProgress),
) -> Result<FinishedRun, SamplingError> {
    let opened = Opened::open(plan)?;
    let started = RunProgress::Started {
        table_bytes: opened.table_bytes(),
        ring_bytes: opened.ring_bytes(),
        findings: opened.findings(),
    };
    let unwritten = |error: WriteError| SamplingError::new(ErrorClass::Failed, error.to_string());
    let (keeping, mut writer) = Keeping::start(output).map_err(unwritten)?;
    let (machine, events) = opened.drafts(plan);
    let draft = draft(plan, machine, events);
    let mut notes = opened.notes();
    notes.extend(draft.notes.iter().cloned());
    writer.survive_crashes(Meta { notes, ..draft.clone() });
    let mut run = opened.start(plan, Writing::to(writer))?;
    // A command that cannot be run is an error before anything is said of the run.
    run.session.release(plan.duration)?;
    progress(started);
    let each = |run: &mut Running<Writing>| {
        progress(RunProgress::Epoch {
            number: run.epochs - 1,
            seen: run.session.events.iter().map(|event| event.sampler.seen()).sum(),
            elapsed: run.elapsed(),
        });
        Ok(())
    };
    let end = run.until_end(plan.epoch, each).await?;
    let command = run.session.stop(end)?;
    run.end_epoch()?;
    let UnwindReport { usage, notes: unwound } = run.end_unwinding().unwrap_or_default();
    let (overhead, changes, of_cost) = run.cost.finish(&run.session.events);
    let overhead = Overhead { unwinding: (usage.room > 0).then_some(usage), ..overhead };
    run.session.end_command();

    let mut meta = Meta {
        start_unix_ns: run.start_unix_ns,
        events: run.session.finish(plan, changes)?,
        overhead: Some(overhead),
        ..draft
    };
    let (mut session, named) = run.name_the_rest()?;
    let writer = named.sink.written()?;
    for (event, dropped) in meta.events.iter_mut().zip(named.dropped) {
        if dropped > 0 {
            event.ledger.discarded.insert("the naming thread was behind".to_owned(), dropped);
        }
    }
    meta.epochs = named.epochs;
    let of_plan = std::mem::take(&mut meta.notes);
    meta.notes = session
        .notes(named.busiest)
        .into_iter()
        .chain(of_cost)
        .chain(unwound)
        .chain(named.notes)
        .chain(of_plan)
        .collect();
    let stopped = session.stopped().map(str::to_owned);
    let kept = keeping.finish(writer, &meta)?;
    Ok(FinishedRun { meta, kept, command, stopped })
}

/// Returns the metadata that is known before sampling.
pub(crate) fn draft(plan: &Plan, machine: Machine, events: Vec<EventInfo>) -> Meta {
    let promoted = plan.promoted_lines.map(|_| {
        "data addresses were kept only for cache lines that a load found modified in another core's cache \
         (c2c)"
            .to_owned()
    });
    Meta {
        schema: SCHEMA_VERSION,
        producer: format!("precise {}", env!("CARGO_PKG_VERSION")),
        command: plan.command_line.clone(),
        machine,
        dimensions: plan.dimensions.clone(),
        address_granule: plan.address_granule,
        promoted_lines: plan.promoted_lines.map(u64::from),
        filter: plan.filter_text.clone(),
        target: plan.words(),
        events,
        notes: promoted.into_iter().collect(),
        ..Meta::default()
    }
}
