//! A streaming run from its start to its end.

use std::{process::ExitStatus, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use super::naming::Naming;
use super::worker::{Counts, Round, Source, Work};
use super::{Account, Field, Sink};
use crate::error::{ErrorClass, SamplingError};
use crate::kernel::clock::monotonic_ns;
use crate::kernel::event::{Rate, Trigger};
use crate::kernel::sideband::Mappings;
use crate::pmu::Exactness;
use crate::run::opening::Sampled;
use crate::run::plan::Plan;
use crate::run::session::{End, Session};
use precise_model::CpuId;
use precise_records::Registers;

/// How often the rings are read. By the clock, and not when the kernel says that one has something:
/// it would say so for every sample (`wakeup_events` must be 1), and each wakeup would disturb what
/// is being measured.
const ROUND: Duration = Duration::from_millis(10);
/// How often the command is asked whether it has ended, and a throttled event whether it goes on.
const HOUSEKEEPING: Duration = Duration::from_millis(50);
/// Sideband records that may wait for a thread that is behind; more stay in their rings.
const SIDEBAND_WAITING: usize = 1 << 16;

/// What a run tells when sampling has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Memory of the rings, bytes; constant during the run.
    pub ring_bytes: usize,
    /// What was granted, one sentence per step down.
    pub findings: Vec<String>,
}

/// A finished run.
#[derive(Debug)]
pub struct Finished {
    /// Where each event's samples went.
    pub accounts: Vec<Account>,
    /// What belongs to no single event, one sentence each.
    pub notes: Vec<String>,
    /// Online CPUs of the machine.
    pub cpus: u32,
    /// How the command ended, where one was run and ended by itself.
    pub command: Option<ExitStatus>,
    /// Why the kill switch ended the run, where it did.
    pub stopped: Option<String>,
}

/// Runs a plan to its end; each sample that passes goes to `sink`, with what `fields` need.
///
/// # Errors
///
/// When nothing can be sampled, or the sink refuses. What is lost after the start is counted, and
/// ends no run.
pub async fn run<S: Sink + 'static>(
    plan: &Plan,
    fields: &[Field],
    sink: S,
    started: impl FnOnce(Started),
) -> Result<Finished, SamplingError> {
    let data = fields.iter().any(|field| field.needs_data());
    let mappings = if data { Mappings::All } else { Mappings::Code };
    let (mut session, whereabouts) = Session::open(plan, mappings)?;
    let work = Work {
        sources: session.events.iter().map(|event| source(event, &session.machine.cpu)).collect(),
        fields: fields.to_vec(),
        limit: plan.stream.and_then(|stream| stream.samples),
        whereabouts,
    };
    let mut early = Vec::new();
    let naming = Naming::start(work, sink, monotonic_ns(), || early.append(&mut session.sideband()))?;
    session.enable()?;
    started(Started {
        ring_bytes: session.events.iter().map(|event| event.sampler.ring_memory()).sum(),
        findings: session.findings(),
    });
    session.release(plan.duration)?;
    let first = Round { sideband: early, ..Round::default() };
    let mut rings = Rings { session, waiting: Some(first) };
    let end = rings.until_end(&naming).await?;
    let command = rings.session.stop(end)?;
    let waiting = rings.waiting.take();
    let last = rings.read(u64::MAX);
    let mut session = rings.session;
    session.end_command();
    let written = naming.finish(waiting.into_iter().chain([last]))?;
    if let Some(error) = written.error {
        return Err(SamplingError::new(ErrorClass::Failed, "cannot write the samples").because(error));
    }

    let mut accounts = Vec::new();
    let infos = session.finish(plan, Vec::new())?;
    for ((event, info), counts) in session.events.iter().zip(infos).zip(written.counts) {
        let delivery = event.sampler.delivery()?;
        let Counts { written, left, malformed } = counts;
        accounts.push(Account { event: info, delivery, written, left, malformed });
    }
    let notes = session.notes().into_iter().chain(written.notes).collect();
    let stopped = session.stopped().map(str::to_owned);
    Ok(Finished { accounts, notes, cpus: session.machine.machine.cpus, command, stopped })
}

fn source(event: &Sampled, cpu: &CpuId) -> Source {
    let request = &event.planned.request;
    let ibs = request.exactness == Exactness::Ibs;
    Source {
        registers: ibs
            .then(|| Registers { fetch: request.pmu == "ibs_fetch", zen3_errata: cpu.ibs_zen3_errata() }),
        name: request.name.clone(),
        sample_type: event.sampler.sample_type(),
        exact: request.exactness == Exactness::Nature,
        stores: request.stores,
        // Nothing changes a rate here, so that software events keep the period they began with. The
        // records of some do not have it (`kernel::event::sample_type`), and those of a timer have
        // what was asked for, which may be less than the kernel sets a timer for.
        period: match (event.trigger, event.planned.rate) {
            (Trigger::Kernel | Trigger::Timer, Rate::Period(period)) => Some(period),
            _ => None,
        },
    }
}

/// What the loop reads.
struct Rings {
    session: Session,
    /// A round that the naming thread had no room for.
    waiting: Option<Round>,
}

impl Rings {
    async fn until_end(&mut self, naming: &Naming) -> Result<End, SamplingError> {
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut housekeeping = interval(HOUSEKEEPING);
        housekeeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                end = self.session.over() => return Ok(end),
                _ = rounds.tick() => {
                    self.round(naming);
                    if naming.has_enough() {
                        return Ok(End::Enough);
                    }
                }
                _ = housekeeping.tick() => {
                    if let Some(end) = self.session.look_after()? {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// Hands over what the rings have. What the naming thread has no room for stays in the rings,
    /// where the kernel counts what does not fit.
    fn round(&mut self, naming: &Naming) {
        if let Some(round) = self.waiting.take() {
            self.waiting = naming.offer(round);
        }
        match &mut self.waiting {
            None => {
                let round = self.read(monotonic_ns());
                self.waiting = naming.offer(round);
            }
            // Names of what is yet to come: worth more memory than samples.
            Some(round) if round.sideband.len() < SIDEBAND_WAITING => {
                round.sideband.extend(self.session.sideband());
            }
            Some(_) => {}
        }
    }

    /// Reads the samples, then the sideband: whatever a sample needs to be named was recorded
    /// before it.
    fn read(&mut self, began: u64) -> Round {
        let samples = self.session.events.iter_mut().map(|event| event.sampler.take_samples()).collect();
        Round { began, samples, sideband: self.session.sideband() }
    }
}
