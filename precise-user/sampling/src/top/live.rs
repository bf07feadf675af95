//! The run of a live view.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use precise_model::{Capture, RateChange, Row};
use tokio::sync::Notify;

use super::state::{Cost, State};
use super::window::{Snapshot, Window};
use crate::error::SamplingError;
use crate::run::cost::own_cpu_ns;
use crate::run::live::draft;
use crate::run::naming::RowSink;
use crate::run::plan::Plan;
use crate::run::running::{Opened, Running};
use crate::run::session::End;

/// A message from a run that is in progress.
#[derive(Debug)]
pub enum Progress<'a> {
    /// Sampling is about to start. The privileges that the run no longer needs are dropped, so
    /// threads may be started.
    Started(&'a Live),
    /// Sampling is over. The run ends when the receiver returns.
    Over(&'a Live),
}

/// The result of a live view.
#[derive(Debug)]
pub struct Ended {
    /// The notes of the run, one sentence each.
    pub notes: Vec<String>,
    /// Why the kill switch ended the run; `None` if it did not.
    pub stopped: Option<String>,
}

/// A handle to a live run, for the thread that shows it.
#[derive(Clone, Debug)]
pub struct Live {
    window: Arc<Mutex<Window>>,
    stop: Arc<Notify>,
    closed: Arc<AtomicBool>,
}

impl Live {
    pub(crate) fn new(window: Window) -> Self {
        Self { window: Arc::new(Mutex::new(window)), stop: Arc::default(), closed: Arc::default() }
    }

    /// Calls `use_it` with the window.
    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&mut Window) -> T) -> T {
        use_it(&mut self.window.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the newest window if it is not that of `version`, with its version.
    pub fn latest(&self, version: u64) -> Option<(u64, Snapshot)> {
        self.with(|window| {
            let now = window.version();
            if now == version { None } else { Some((now, window.snapshot()?)) }
        })
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// Tells the thread that shows the run to end.
    pub fn close(&self) {
        self.closed.store(true, Relaxed);
    }

    /// Returns whether the thread that shows the run must end.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }
}

impl RowSink for Live {
    fn take(&mut self, named: &mut Capture, rows: &[Row]) -> bool {
        self.with(|window| window.take(named, rows));
        // A run without an end must not accumulate data per epoch.
        named.meta.epochs.clear();
        named.meta.owners.clear();
        true
    }
}

/// Samples according to a plan and keeps the last `length`, until [`Live::stop`], the user or a
/// condition of the plan ends the run.
///
/// # Errors
///
/// Returns an error if nothing can be sampled. Losses after the start are counted and do not end
/// the run.
pub async fn run(
    plan: &Plan,
    length: Duration,
    mut progress: impl FnMut(Progress<'_>),
) -> Result<Ended, SamplingError> {
    let opened = Opened::open(plan)?;
    let (machine, events) = opened.drafts(plan);
    let mut meta = draft(plan, machine, events);
    meta.notes.extend(opened.notes());
    let live = Live::new(Window::new(length, meta));
    let mut run = opened.start(plan, live.clone())?;
    progress(Progress::Started(&live));
    run.session.release(plan.duration)?;
    let mut own = (run.elapsed(), own_cpu_ns());
    let each = |run: &mut Running<Live>| {
        let changes = run.cost.take_rate_changes();
        let notes = run.cost.take_notes().into_iter().chain(run.session.take_news()).collect();
        let state = State { notes, ..state(plan, &live, run, changes, &mut own)? };
        live.with(|window| window.state(state));
        Ok(())
    };
    let end = tokio::select! {
        end = run.until_end(plan.epoch, each) => end,
        () = live.stop.notified() => Ok(End::Signal),
    };
    progress(Progress::Over(&live));
    run.session.stop(end?)?;
    run.end_epoch()?;
    run.session.end_command();
    let (mut session, named) = run.name_the_rest()?;
    let notes = session.notes(named.busiest).into_iter().chain(named.notes).collect();
    Ok(Ended { notes, stopped: session.stopped().map(str::to_owned) })
}

/// Returns the state at the end of an epoch, without notes. `changes` are those of each event's
/// rate in the epoch; `own` is the time and the CPU time of this process at the end of the one
/// before.
pub(crate) fn state<S: RowSink>(
    plan: &Plan,
    live: &Live,
    run: &mut Running<S>,
    changes: Vec<Vec<RateChange>>,
    own: &mut (Duration, u64),
) -> Result<State, SamplingError> {
    let mut so_far = live.with(|window| window.rates_so_far());
    for (so_far, changes) in so_far.iter_mut().zip(&changes) {
        so_far.extend(changes);
    }
    let events = run.session.so_far(plan, &so_far)?;
    let now = (run.elapsed(), own_cpu_ns());
    let elapsed = now.0.saturating_sub(own.0).as_nanos().max(1) as f64;
    let process = now.1.saturating_sub(own.1) as f64 / elapsed;
    *own = now;
    Ok(State {
        events,
        changes,
        dropped: run.dropped().to_vec(),
        overhead: Some(run.cost.overhead(&run.session.events)),
        cost: Cost { sampling: run.cost.last_window(), budget: plan.budget, process },
        notes: Vec::new(),
    })
}
