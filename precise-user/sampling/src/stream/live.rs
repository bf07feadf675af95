//! Runs a streaming run from start to end.

use std::{
    process::ExitStatus,
    time::{Duration, Instant},
};

use super::chains::StreamChains;
use super::naming::StreamNaming;
use super::worker::{EventSource, FateCounts, Round, StreamWork};
use super::{Account, Sink, StreamField};
use crate::error::SamplingError;
use crate::kernel::clock::monotonic_ns;
use crate::kernel::event::{Rate, Trigger};
use crate::kernel::sideband::Mappings;
use crate::pmu::Exactness;
use crate::run::alarm::following;
use crate::run::naming::bytes_of;
use crate::run::naming_thread::NamedFirst;
use crate::run::opening::SampledEvent;
use crate::run::plan::Plan;
use crate::run::session::{RunEnd, Session};
use precise_model::CpuId;
use precise_records::Registers;

/// How often the rings are read. A timer is used instead of the kernel's wakeups: with
/// `wakeup_events` at the required 1, the kernel would wake this process at every sample and
/// disturb the measurement.
const ROUND: Duration = Duration::from_millis(10);
/// How often to check whether the command has ended, and whether a throttled event has resumed.
const HOUSEKEEPING: Duration = Duration::from_millis(50);
/// The maximum memory of the sideband records that wait for a slow naming thread, in bytes; more
/// stay in their rings.
const SIDEBAND_WAITING: usize = 16 << 20;

/// What is known of a run when sampling has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The memory of the rings in bytes; constant during the run.
    pub ring_bytes: usize,
    /// One sentence per downgrade of precision.
    pub findings: Vec<String>,
}

/// The result of a finished run.
#[derive(Debug)]
pub struct FinishedStream {
    /// The account of each event's samples.
    pub accounts: Vec<Account>,
    /// Notes that apply to the whole run, one sentence each.
    pub notes: Vec<String>,
    /// The number of online CPUs.
    pub cpus: u32,
    /// The exit status of the command; `None` if no command ran, or if it did not end by itself.
    pub command: Option<ExitStatus>,
    /// Why the kill switch ended the run; `None` if it did not.
    pub stopped: Option<String>,
}

/// Runs a plan to its end. Each sample that passes the filter goes to `sink`, with the names that
/// `fields` need.
///
/// # Errors
///
/// Returns an error if nothing can be sampled, or if the sink fails. Losses after the start are
/// counted and do not end the run.
pub async fn run<S: Sink + 'static>(
    plan: &Plan,
    fields: &[StreamField],
    sink: S,
    started: impl FnOnce(Started),
) -> Result<FinishedStream, SamplingError> {
    let data = fields.iter().any(|field| field.needs_data());
    let mappings = if data { Mappings::All } else { Mappings::Code };
    let (mut session, whereabouts) = Session::open(plan, mappings)?;
    let work = StreamWork {
        sources: session.events.iter().map(|event| source(event, &session.machine.cpu)).collect(),
        fields: fields.to_vec(),
        limit: plan.stream.and_then(|stream| stream.samples),
        chains: StreamChains::new(plan, &session, &whereabouts.symbolizer)?,
        whereabouts,
        deadline: session.deadline(),
    };
    let mut early = Vec::new();
    let naming =
        StreamNaming::start(work, sink, NamedFirst::of(plan, fields.contains(&StreamField::Thread)), || {
            early.append(&mut session.sideband());
            !session.must_end()
        })?;
    session.enable()?;
    session.release(plan.duration)?;
    started(Started {
        ring_bytes: session.events.iter().map(|event| event.sampler.ring_memory()).sum(),
        findings: [session.findings(), session.how_sampled().to_vec()].concat(),
    });
    let first = Round { sideband: early, ..Round::default() };
    let mut rings = Rings { session, waiting: Some(first) };
    let end = rings.until_end(&naming).await?;
    let command = rings.session.stop(end)?;
    let waiting = rings.waiting.take();
    let last = rings.read(u64::MAX);
    let mut session = rings.session;
    session.end_command();
    let written = naming.finish(waiting.into_iter().chain([last]), || session.gives_up())?;
    if let Some(error) = written.error {
        return Err(SamplingError::failed("cannot write the samples", error));
    }

    let mut accounts = Vec::new();
    let infos = session.finish(plan, Vec::new())?;
    let cut = written.cut;
    for ((event, info), counts) in session.events.iter().zip(infos).zip(written.counts) {
        let delivery = event.sampler.delivery()?;
        let FateCounts { written, left, malformed } = counts;
        let counted = written.saturating_add(left).saturating_add(malformed);
        let cut = if cut { delivery.read.saturating_sub(counted) } else { 0 };
        accounts.push(Account { event: info, delivery, written, left, malformed, cut });
    }
    let notes = session.notes(None).into_iter().chain(written.notes).collect();
    let stopped = session.stopped().map(str::to_owned);
    Ok(FinishedStream { accounts, notes, cpus: session.machine.machine.cpus, command, stopped })
}

fn source(event: &SampledEvent, cpu: &CpuId) -> EventSource {
    let request = &event.planned.request;
    let ibs = request.exactness == Exactness::Ibs;
    EventSource {
        registers: ibs
            .then(|| Registers { fetch: request.pmu == "ibs_fetch", zen3_errata: cpu.ibs_zen3_errata() }),
        name: request.name.clone(),
        layout: event.sampler.sample_layout(),
        exact: request.exactness == Exactness::Nature,
        stores: request.stores,
        // Nothing changes the rate of a streaming run, so software events keep their initial
        // period. Records of some do not contain it (`kernel::event::sample_type`), and records of
        // a timer contain the requested period, which may be shorter than the kernel's minimum for
        // timers.
        period: match (event.trigger, event.planned.rate) {
            (Trigger::Kernel | Trigger::Timer, Rate::Period(period)) => Some(period),
            _ => None,
        },
    }
}

/// The state of the loop that reads the rings.
struct Rings {
    session: Session,
    /// The round that the naming thread could not accept yet.
    waiting: Option<Round>,
}

impl Rings {
    async fn until_end(&mut self, naming: &StreamNaming) -> Result<RunEnd, SamplingError> {
        let begin = Instant::now();
        let (mut next_round, mut next_care) = (begin + ROUND, begin + HOUSEKEEPING);
        loop {
            if let Some(end) = self.session.wait(next_round.min(next_care)).await? {
                return Ok(end);
            }
            if next_round <= Instant::now() {
                self.round(naming);
                next_round = following(next_round, ROUND);
                if naming.has_enough() {
                    return Ok(RunEnd::Enough);
                }
            }
            if next_care <= Instant::now() {
                if let Some(end) = self.session.look_after()? {
                    return Ok(end);
                }
                next_care = following(next_care, HOUSEKEEPING);
            }
        }
    }

    /// Passes the contents of the rings to the naming thread. If its queue is full, samples stay in
    /// the rings, and the kernel counts those that do not fit.
    fn round(&mut self, naming: &StreamNaming) {
        if let Some(round) = self.waiting.take() {
            self.waiting = naming.offer(round);
        }
        match &mut self.waiting {
            None => {
                let round = self.read(monotonic_ns());
                self.waiting = naming.offer(round);
            }
            // Sideband records are kept in preference to samples, because later samples need them
            // for names.
            Some(round) if bytes_of(&round.sideband) < SIDEBAND_WAITING => {
                round.sideband.extend(self.session.sideband());
            }
            Some(_) => {}
        }
    }

    /// Reads the samples first and the sideband second, so that everything a sample needs for its
    /// names has been read.
    fn read(&mut self, began: u64) -> Round {
        let samples = self.session.events.iter_mut().map(|event| event.sampler.take_samples()).collect();
        Round { began, samples, sideband: self.session.sideband() }
    }
}
