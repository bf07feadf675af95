//! A live run whose rows become a capture.

use std::{path::Path, process::ExitStatus, time::Duration};

use super::keeping::{Keeping, Kept, Writing};
use super::running::{Opened, Running};
use crate::error::{ErrorClass, SamplingError};
use crate::run::plan::Plan;
use precise_capture::WriteError;
use precise_model::{Meta, SCHEMA_VERSION};

/// What a run tells while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Sampling has begun.
    Started {
        /// Kernel memory of the tables, bytes; constant during the run.
        table_bytes: usize,
        /// Memory of the rings, bytes; as well.
        ring_bytes: usize,
        /// What was granted, one sentence per step down.
        findings: Vec<String>,
    },
    /// An epoch has ended.
    Epoch {
        /// Its number, from 0.
        number: usize,
        /// Samples that the program has seen up to now.
        seen: u64,
        /// Since the start.
        elapsed: Duration,
    },
}

/// A finished run.
#[derive(Debug)]
pub struct Finished {
    /// What is known of the run.
    pub meta: Meta,
    /// What was seen.
    pub kept: Kept,
    /// How the command ended, where one was run and ended by itself.
    pub command: Option<ExitStatus>,
    /// Why the kill switch ended the run, where it did.
    pub stopped: Option<String>,
}

/// Runs a plan to its end. The capture goes to `output`, epoch by epoch, and is there when this
/// returns; without one, it is only handed out.
///
/// # Errors
///
/// When nothing can be sampled. What is lost after the start is counted, and ends no run.
pub async fn run(
    plan: &Plan,
    output: Option<&Path>,
    mut progress: impl FnMut(Progress),
) -> Result<Finished, SamplingError> {
    let opened = Opened::open(plan)?;
    let started = Progress::Started {
        table_bytes: opened.table_bytes(),
        ring_bytes: opened.ring_bytes(),
        findings: opened.findings(),
    };
    let unwritten = |error: WriteError| SamplingError::new(ErrorClass::Failed, error.to_string());
    let (keeping, writer) = Keeping::start(output).map_err(unwritten)?;
    let mut run = opened.start(plan, Writing(Ok(writer)))?;
    progress(started);
    run.session.release(plan.duration)?;
    let each = |run: &mut Running<Writing>| {
        progress(Progress::Epoch {
            number: run.epochs - 1,
            seen: run.session.events.iter().map(|event| event.sampler.seen()).sum(),
            elapsed: run.elapsed(),
        });
        Ok(())
    };
    let end = run.until_end(plan.epoch, each).await?;
    let command = run.session.stop(end)?;
    run.end_epoch()?;
    let (overhead, changes, of_cost) = run.cost.finish(&run.session.events);
    run.session.end_command();

    let mut meta = Meta {
        schema: SCHEMA_VERSION,
        producer: format!("precise {}", env!("CARGO_PKG_VERSION")),
        command: plan.command_line.clone(),
        machine: run.session.machine.machine.clone(),
        start_unix_ns: run.start_unix_ns,
        dimensions: plan.dimensions.clone(),
        address_granule: plan.address_granule,
        promoted_lines: plan.promoted_lines.map(u64::from),
        filter: plan.filter_text.clone(),
        target: plan.target.words(),
        events: run.session.finish(plan, changes)?,
        overhead: Some(overhead),
        ..Meta::default()
    };
    let (mut session, named) = run.name_the_rest()?;
    let writer = named.sink.0.map_err(unwritten)?;
    for (event, dropped) in meta.events.iter_mut().zip(named.dropped) {
        if dropped > 0 {
            event.ledger.discarded.insert("the naming thread was behind".to_owned(), dropped);
        }
    }
    meta.owners = named.owners;
    meta.epochs = named.epochs;
    meta.notes = session.notes().into_iter().chain(of_cost).chain(named.notes).collect();
    if plan.promoted_lines.is_some() {
        meta.notes.push(
            "data addresses were kept only for cache lines that a load found modified in another core's \
             cache (c2c)"
                .to_owned(),
        );
    }
    let stopped = session.stopped().map(str::to_owned);
    let kept = keeping.finish(writer, &meta)?;
    Ok(Finished { meta, kept, command, stopped })
}
