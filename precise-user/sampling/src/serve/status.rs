//! The state of the run as pages show it: ledger, rates, cost.

use std::time::{Duration, Instant};

use crate::error::SamplingError;
use crate::kernel::event::Rate;
use crate::machine::{CpuState, Root};
use crate::run::cost::own_cpu_ns;
use crate::run::naming::RowSink;
use crate::run::opening::SampledEvent;
use crate::run::plan::Plan;
use crate::run::running::Running;
use precise_model::{Ledger, RateChange};

/// The state of one event.
#[derive(Clone, Debug, Default)]
pub(super) struct EventStatus {
    pub name: String,
    pub encoding: String,
    pub unit: String,
    pub exact: bool,
    pub level: u8,
    pub filter: String,
    pub period: Option<u64>,
    pub frequency: Option<u64>,
    pub rate_changes: u64,
    pub ledger: Ledger,
}

/// The state of the run at the end of an epoch. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct ServeStatus {
    pub events: Vec<EventStatus>,
    pub budget: Option<f64>,
    /// The overhead of the last epoch, as a fraction of the busiest CPU.
    pub overhead: f64,
    /// The cost of sampling on each CPU.
    pub sampling: Vec<f64>,
    pub reading: f64,
    pub process: u64,
    pub resident: Option<u64>,
    /// The number of online CPUs that should be sampled and are not; `None` if it is unknown.
    pub unsampled: Option<usize>,
    /// The number of lost sideband records.
    pub sideband_lost: u64,
    pub epochs: usize,
    /// The start of sampling and the end of the last epoch, in nanoseconds since the Unix epoch.
    pub start_ns: u64,
    pub last_epoch_ns: u64,
    /// When this was updated; `None` before the first time.
    pub updated: Option<Instant>,
    /// The length of an epoch.
    pub epoch: Duration,
}

impl ServeStatus {
    /// Returns the state before the first epoch.
    pub fn new<S: RowSink>(plan: &Plan, run: &Running<S>) -> Self {
        let requests: Vec<_> = run.session.events.iter().map(|event| &event.planned.request).collect();
        // Two series with the same name could not be told apart.
        let unique = |name: &str| requests.iter().filter(|request| request.name == name).count() == 1;
        let events = run.session.events.iter().map(|event| {
            let request = &event.planned.request;
            EventStatus {
                name: if unique(&request.name) { &request.name } else { &request.encoding }.clone(),
                encoding: request.encoding.clone(),
                unit: request.unit.clone(),
                exact: request.exact_at(event.granted),
                level: event.granted,
                filter: plan.filter_text.clone(),
                ..EventStatus::default()
            }
        });
        Self {
            events: events.collect(),
            budget: plan.budget,
            epoch: plan.epoch,
            start_ns: run.start_unix_ns,
            last_epoch_ns: run.start_unix_ns,
            ..Self::default()
        }
    }

    /// Updates the state after an epoch, in which these were the changes of each event's rate.
    pub fn update<S: RowSink>(
        &mut self,
        run: &mut Running<S>,
        changes: &[Vec<RateChange>],
    ) -> Result<(), SamplingError> {
        let rates = run.cost.rates().into_iter().zip(changes);
        for ((status, event), (rate, changes)) in
            self.events.iter_mut().zip(&mut run.session.events).zip(rates)
        {
            (status.period, status.frequency) = match rate {
                Rate::Period(period) => (Some(period), None),
                Rate::Frequency(frequency) => (None, Some(frequency)),
                Rate::Count => (None, None),
            };
            status.rate_changes += changes.len() as u64;
            status.ledger = event.ledger(None)?;
        }
        let dropped = run.dropped();
        for (status, dropped) in self.events.iter_mut().zip(dropped) {
            status.ledger.discarded.insert("the naming thread was behind".to_owned(), *dropped);
        }
        self.overhead = run.cost.last_window();
        self.sampling = run.cost.sampling().to_vec();
        self.reading = run.cost.reading();
        self.process = own_cpu_ns();
        self.resident = resident();
        self.unsampled = unsampled(&run.session.events);
        self.sideband_lost = run.sideband_lost();
        self.epochs = run.epochs;
        self.updated = Some(Instant::now());
        self.last_epoch_ns = self.start_ns + run.elapsed().as_nanos() as u64;
        Ok(())
    }
}

/// Returns the number of online CPUs on which an event should count and does not; `None` if they
/// cannot be read. An event that was stopped counts nowhere, and its ledger has the reason.
fn unsampled(events: &[SampledEvent]) -> Option<usize> {
    let now = Root::default().cpus(CpuState::Online).ok()?;
    Some(now.iter().filter(|cpu| events.iter().any(|event| event.sampler.lacks(**cpu))).count())
}

/// Returns the resident memory of the process in bytes.
fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse::<u64>().ok()?;
    Some(pages * crate::kernel::map_memory::page_size() as u64)
}
