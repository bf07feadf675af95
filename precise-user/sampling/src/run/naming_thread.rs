//! The thread that names samples, so that the run loop is never delayed by symbolization.

use std::{
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::error::{ErrorClass, Remedy, SamplingError};
use crate::kernel::clock::monotonic_ns;
use crate::rights;
use crate::run::plan::{Plan, Target};
use crate::symbols::{Processes, Wait};
use precise_records::record::{IdentifiedRecord, Record};

/// How long the start waits between two calls of `meanwhile`.
const PATIENCE: Duration = Duration::from_millis(5);

/// How long a failed run waits for the thread.
const FAILED_RUN: Duration = Duration::from_secs(1);
/// How often to check whether the thread has ended.
const CHECK: Duration = Duration::from_millis(5);

/// A handle to the naming thread, which returns a `T`. Dropping it waits for the thread's end for
/// [`FAILED_RUN`], so the channel to the thread must be closed before. A thread that is stuck then
/// continues until the process ends, so everything that matters of it must be shared.
#[derive(Debug)]
pub(crate) struct NamingThread<T> {
    thread: Option<JoinHandle<T>>,
    /// Is disconnected when the thread ends.
    ended: Receiver<()>,
}

impl<T> Drop for NamingThread<T> {
    fn drop(&mut self) {
        let begin = Instant::now();
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && begin.elapsed() < FAILED_RUN
        {
            std::thread::sleep(CHECK);
        }
    }
}

impl<T: Send + 'static> NamingThread<T> {
    /// Starts the thread with `prepare`, waits until that is done, and then lets the thread
    /// continue with `run`. `prepare` reads the running processes, so that a process that ends soon
    /// after the start still has a name. `meanwhile` is called repeatedly until `prepare` is done;
    /// if it returns `false`, the start no longer waits.
    pub fn start<W: Send + 'static>(
        mut worker: W,
        prepare: impl FnOnce(&mut W) + Send + 'static,
        run: impl FnOnce(W) -> T + Send + 'static,
        mut meanwhile: impl FnMut() -> bool,
    ) -> Result<Self, SamplingError> {
        let (begun, begin) = channel();
        let body = move || {
            rights::raised_for_names(|| {
                prepare(&mut worker);
                // Sending fails only if the starting thread has died.
                let _dead = begun.send(());
                run(worker)
            })
        };
        let thread = std::thread::Builder::new()
            .name("naming".into())
            .spawn(body)
            .map_err(|error| SamplingError::failed("cannot start the naming thread", error))?;
        // Any other error means that the thread has died, which `finish` reports.
        while let Err(RecvTimeoutError::Timeout) = begin.recv_timeout(PATIENCE) {
            if !meanwhile() {
                break;
            }
        }
        Ok(Self { thread: Some(thread), ended: begin })
    }

    /// Returns whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the thread has named everything, or until `given_up` returns `true`. Returns
    /// whether the thread has ended.
    pub fn ends_before(&self, mut given_up: impl FnMut() -> bool) -> bool {
        while !self.is_finished() {
            if given_up() {
                return false;
            }
            if self.ended.recv_timeout(CHECK) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
        }
        true
    }

    /// No longer waits for the thread, which continues until the process ends.
    pub fn leave(mut self) {
        self.thread = None;
    }

    /// Waits until the thread has named everything, and returns its result.
    pub fn finish(mut self) -> Result<T, SamplingError> {
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        ended.ok_or_else(|| {
            SamplingError::new(ErrorClass::Failed, "the naming thread died, and the samples are lost")
                .remedy(Remedy::ReportBug)
        })
    }
}

/// What is looked at before the first sample.
#[derive(Debug, Default)]
pub(crate) struct NamedFirst {
    /// The time on the sideband's clock.
    pub now: u64,
    /// The ids of the processes or threads that are sampled, if the run has been given any.
    pub sampled: Vec<u32>,
    /// Whether all processes are sampled.
    pub all: bool,
    /// Whether the names of threads are needed.
    pub threads: bool,
}

impl NamedFirst {
    /// Returns what a run looks at now.
    /// `threads` says whether the names of threads are needed.
    pub fn of(plan: &Plan, threads: bool) -> Self {
        let sampled = match &plan.target {
            Target::Processes(ids) | Target::Threads(ids) => ids.clone(),
            Target::All | Target::Command(_) => Vec::new(),
        };
        let all = matches!(plan.target, Target::All);
        Self { now: monotonic_ns(), sampled, all, threads }
    }

    /// Reads the processes that are running and may be sampled. Returns a note if they cannot be
    /// listed. `open` opens the files that they have mapped, and waits until they are open if its
    /// argument says so: those of a sampled process can be files that nobody else has, and it may
    /// end at once.
    ///
    /// Of a command nothing is read: all that it is comes with its exec. A machine may run
    /// thousands of processes, and reading those that nobody samples would delay the start.
    pub fn look(
        &self,
        processes: &mut Processes,
        mut open: impl FnMut(&mut Processes, Wait),
    ) -> Option<String> {
        let root = Path::new("/");
        processes.read_threads(self.threads);
        for id in &self.sampled {
            // A process that has ended is not sampled.
            let _ended = processes.snapshot_proc_of(root, *id, self.now);
        }
        if !self.sampled.is_empty() {
            open(processes, Wait::UntilOpen);
        }
        if !self.all {
            return None;
        }
        let error = processes.snapshot_all(root, self.now).err();
        open(processes, Wait::No);
        error.map(|error| format!("cannot list the running processes: {error}"))
    }
}

/// Applies sideband records to the history of processes, and calls `cgroup_made` with the id and
/// path of each new cgroup.
pub(crate) fn follow(
    entries: &[IdentifiedRecord],
    processes: &mut Processes,
    mut cgroup_made: impl FnMut(u64, &str),
) {
    for entry in entries {
        match &entry.record {
            Record::Cgroup { id, path } => cgroup_made(*id, path),
            _ => processes.apply(entry),
        }
    }
}
