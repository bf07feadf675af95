//! What a page says of the run itself: ledger, rates, cost.

use crate::error::SamplingError;
use crate::kernel::clock::process_cpu_ns;
use crate::kernel::event::Rate;
use crate::machine::Root;
use crate::run::plan::Plan;
use crate::run::running::Running;
use precise_model::{Ledger, parse_cpu_list};

use super::totals::Shared;

/// One event.
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

/// The run at the end of an epoch. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    pub events: Vec<EventStatus>,
    pub budget: Option<f64>,
    /// What the last epoch cost, as a part of the busiest CPU.
    pub overhead: f64,
    /// What samples cost each CPU.
    pub sampling: Vec<f64>,
    pub reading: f64,
    pub process: u64,
    pub resident: Option<u64>,
    /// CPUs that came online since the start; `None` where nobody knows.
    pub unsampled: Option<usize>,
    /// Records of what processes did that were lost.
    pub sideband_lost: u64,
    pub epochs: usize,
    /// Since the Unix epoch, so the next.
    pub start_ns: u64,
    pub last_epoch_ns: u64,
}

impl Status {
    /// Before the first epoch.
    pub fn new(plan: &Plan, run: &Running<Shared>) -> Self {
        let requests: Vec<_> = run.session.events.iter().map(|event| &event.planned.request).collect();
        // Two series of one name would be one to whoever reads them.
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
            start_ns: run.start_unix_ns,
            last_epoch_ns: run.start_unix_ns,
            ..Self::default()
        }
    }

    /// After an epoch.
    pub fn update(&mut self, run: &mut Running<Shared>) -> Result<(), SamplingError> {
        let rates = run.cost.take_changes();
        for ((status, event), (rate, changes)) in
            self.events.iter_mut().zip(&mut run.session.events).zip(rates)
        {
            (status.period, status.frequency) = match rate {
                Rate::Period(period) => (Some(period), None),
                Rate::Frequency(frequency) => (None, Some(frequency)),
                Rate::Count => (None, None),
            };
            status.rate_changes += changes as u64;
            status.ledger = event.ledger(None)?;
        }
        let dropped = run.dropped();
        for (status, dropped) in self.events.iter_mut().zip(dropped) {
            status.ledger.discarded.insert("the naming thread was behind".to_owned(), *dropped);
        }
        self.overhead = run.cost.last_epoch();
        self.sampling = run.cost.sampling().to_vec();
        self.reading = run.cost.reading();
        self.process = process_cpu_ns();
        self.resident = resident();
        self.unsampled = came_online(&run.session.machine.online);
        self.sideband_lost = run.sideband_lost();
        self.epochs = run.epochs;
        self.last_epoch_ns = self.start_ns + run.elapsed().as_nanos() as u64;
        Ok(())
    }
}

/// How many CPUs came online since these were.
fn came_online(then: &[u32]) -> Option<usize> {
    let list = Root::default().read("/sys/devices/system/cpu/online").ok()?;
    let now = parse_cpu_list(list.trim()).ok()?;
    Some(now.iter().filter(|cpu| !then.contains(cpu)).count())
}

/// Bytes of memory that the process has.
fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse::<u64>().ok()?;
    Some(pages * crate::kernel::map_memory::page_size() as u64)
}
