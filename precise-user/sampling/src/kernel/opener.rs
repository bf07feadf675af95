//! A thread that keeps the right to open events, for CPUs that come online during a run.
//!
//! The kernel detaches the events of a CPU that goes offline, and never attaches them again. So
//! they must be opened anew, after the run has dropped its privileges. Capabilities belong to a
//! thread: this one keeps those that opening needs, and opens nothing but what it was given at its
//! start, on the CPU that it is told.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread::JoinHandle,
    time::Duration,
};

use super::blueprint::{Blueprint, OpenedEvent};
use super::event::Rate;
use super::sampler::Sampler;
use super::sideband::{Mappings, OfCpu};
use crate::error::SamplingError;
use crate::rights;

/// What was opened on a CPU.
#[derive(Debug)]
pub struct OpenedCpu {
    /// The sideband, which counts already.
    pub sideband: OfCpu,
    /// The run's events in their order; `None` where the event was not asked for.
    pub events: Vec<Option<OpenedEvent>>,
}

/// The answer to [`Opener::ask`].
#[derive(Debug)]
pub struct OpenAnswer {
    /// The number of the CPU.
    pub cpu: u32,
    /// What was opened there, or the kernel's first refusal.
    pub opened: Result<OpenedCpu, SamplingError>,
}

struct Ask {
    cpu: u32,
    rates: Vec<Option<Rate>>,
}

/// A handle to the thread, which ends when the handle is dropped.
#[derive(Debug)]
pub struct Opener {
    ask: Option<Sender<Ask>>,
    answers: Receiver<OpenAnswer>,
    thread: Option<JoinHandle<()>>,
}

impl Opener {
    /// Starts the thread. Call it before the privileges are dropped, and after the events of the
    /// run are open. `mappings` are those of the sideband.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started, or a descriptor cannot be duplicated.
    pub fn start<'a>(
        samplers: impl Iterator<Item = &'a Sampler>,
        mappings: Mappings,
    ) -> Result<Self, SamplingError> {
        let blueprints: Vec<Blueprint> = samplers.map(Sampler::blueprint).collect::<Result<_, _>>()?;
        let (ask, asked) = channel::<Ask>();
        let (tell, answers) = channel();
        let body = move || {
            // Without the rights the kernel refuses, and the refusal is the answer.
            let _refused_later = rights::keep_for_opening();
            for Ask { cpu, rates } in asked {
                let opened = open(&blueprints, &rates, cpu, mappings);
                if tell.send(OpenAnswer { cpu, opened }).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("opener".into()).spawn(body).map_err(|error| {
            SamplingError::failed("cannot start the thread that opens events on CPUs that come online", error)
        })?;
        Ok(Self { ask: Some(ask), answers, thread: Some(thread) })
    }

    /// Asks for the sideband on a CPU, and for each of the run's events that has a rate in `rates`.
    /// Each question has one answer.
    pub fn ask(&self, cpu: u32, rates: Vec<Option<Rate>>) {
        if let Some(ask) = &self.ask {
            // Sending fails only if the thread has died; then there is no answer.
            let _dead = ask.send(Ask { cpu, rates });
        }
    }

    /// Returns the next answer, if it comes within `patience`. Opening takes microseconds, but may
    /// have to wait for another CPU that is coming or going.
    pub fn answer(&self, patience: Duration) -> Option<OpenAnswer> {
        self.answers.recv_timeout(patience).ok()
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.ask = None;
        // The thread has no more to do than the question that it is working on.
        let _panicked = self.thread.take().map(JoinHandle::join);
    }
}

/// Opens everything that is asked for on a CPU, or nothing.
fn open(
    blueprints: &[Blueprint],
    rates: &[Option<Rate>],
    cpu: u32,
    mappings: Mappings,
) -> Result<OpenedCpu, SamplingError> {
    let sideband = OfCpu::open(cpu, mappings)?;
    let mut events = Vec::new();
    for (blueprint, rate) in blueprints.iter().zip(rates) {
        let opened = rate.map(|rate| blueprint.open(rate, cpu)).transpose()?;
        events.push(opened);
    }
    Ok(OpenedCpu { sideband, events })
}
