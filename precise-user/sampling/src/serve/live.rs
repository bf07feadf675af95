//! A run whose samples are served over HTTP.

use std::{process::ExitStatus, sync::Arc, time::Duration};

use super::{
    captures::{CapturesOptions, Rolling},
    front::{self, Front, Painter},
    http::{Listening, Server},
    label::SeriesLabel,
    page::Page,
    push::{PushOptions, Pusher},
    sink::Sinks,
    status::ServeStatus,
    totals::{SeriesTotals, Shared},
};
use crate::error::{ErrorClass, Remedy, SamplingError};
use crate::run::cost::own_cpu_ns;
use crate::run::live::draft;
use crate::run::plan::Plan;
use crate::run::running::{Opened, Running};
use crate::top::{self, Live, TopState, Window};

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

/// What a run serves, and to whom.
#[derive(Debug)]
pub struct Service {
    /// The labels of the series, besides the event.
    pub labels: Vec<SeriesLabel>,
    /// The most series.
    pub series: usize,
    /// The socket at which clients ask.
    pub listening: Listening,
    /// Makes the page for people.
    pub painter: Painter,
    /// How much time that page shows; by default [`WINDOW`](super::WINDOW).
    pub window: Duration,
    /// How captures are kept; `None`: none.
    pub captures: Option<CapturesOptions>,
    /// Where profiles are pushed; `None`: nowhere.
    pub push: Option<PushOptions>,
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
    service: Service,
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
    let Service { labels, series, listening, painter, window, captures, push } = service;
    let (machine, events) = opened.drafts(plan);
    let mut meta = draft(plan, machine.clone(), events);
    meta.notes.extend(opened.notes());
    let sinks = Sinks {
        totals: Shared::new(SeriesTotals::new(&labels, series, machine)),
        live: Live::new(Window::bounded(window, meta.clone(), front::MOST.0, front::MOST.1)),
        rolling: captures.map(|options| Rolling::start(options, meta.clone())).transpose()?,
        pusher: push.map(|options| Pusher::start(options, meta)).transpose()?,
    };
    let mut run = opened.start(plan, sinks.clone())?;
    let mut reporter = Reporter::new(plan, &run, &sinks);
    reporter.status.update(&mut run, &[])?;
    let counts = sinks.rolling.as_ref().map(Rolling::counts);
    let pushes = sinks.pusher.as_ref().map(Pusher::counts).unwrap_or_default();
    let page = Arc::new(Page::new(sinks.totals.clone(), reporter.status.clone(), counts, pushes));
    let front = Arc::new(Front::new(sinks.live.clone(), painter));
    // It stops when the run ends, so no client waits for an answer of a run that is over.
    let server = Server::start(listening, page.clone(), front)?;
    run.session.release(plan.duration)?;
    progress(started);
    let each = |run: &mut Running<Sinks>| {
        if server.is_finished() {
            let died = SamplingError::new(ErrorClass::Failed, "the thread that answers requests died");
            return Err(died.remedy(Remedy::ReportBug));
        }
        let notes = reporter.epoch(run)?;
        page.show(&reporter.status);
        notes.into_iter().for_each(|note| progress(ServeProgress::Note(note)));
        Ok(())
    };
    let end = run.until_end(plan.epoch, each).await;
    drop(server);
    let command = run.session.stop(end?)?;
    run.end_epoch()?;
    let mut notes = reporter.epoch(&mut run)?;
    run.session.end_command();
    let (mut session, named) = run.name_the_rest()?;
    // The last pushes and the last upload are under way at the same time.
    sinks.pusher.iter().for_each(Pusher::close);
    sinks.rolling.iter().for_each(Rolling::end);
    notes.extend(sinks.pusher.iter().flat_map(Pusher::end));
    notes.extend(session.notes(named.busiest).into_iter().chain(named.notes));
    notes.retain(|note| !said.contains(note));
    Ok(ServeEnd { notes, command, stopped: session.stopped().map(str::to_owned) })
}

/// Tells the pages and the captures of the state at the end of each epoch.
struct Reporter<'a> {
    plan: &'a Plan,
    sinks: &'a Sinks,
    status: ServeStatus,
    /// The time and the CPU time of this process at the end of the last epoch.
    own: (Duration, u64),
}

impl<'a> Reporter<'a> {
    fn new(plan: &'a Plan, run: &Running<Sinks>, sinks: &'a Sinks) -> Self {
        let (status, own) = (ServeStatus::new(plan, run), (run.elapsed(), own_cpu_ns()));
        Self { plan, sinks, status, own }
    }

    /// Reports an epoch that was handed to naming. Returns the notes of the run loop.
    fn epoch(&mut self, run: &mut Running<Sinks>) -> Result<Vec<String>, SamplingError> {
        let changes = run.cost.take_rate_changes();
        self.status.update(run, &changes)?;
        let notes: Vec<_> = run.cost.take_notes().into_iter().chain(run.session.take_news()).collect();
        let state = top::state(self.plan, &self.sinks.live, run, changes, &mut self.own)?;
        self.sinks.state(TopState { notes: notes.clone(), ..state });
        Ok(notes)
    }
}
