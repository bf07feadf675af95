//! The thread that names what was sampled, beside the run loop, which must be back in time whatever
//! names cost.

use std::{
    path::Path,
    sync::mpsc::{RecvTimeoutError, channel},
    thread::JoinHandle,
    time::Duration,
};

use crate::error::{ErrorClass, Remedy, SamplingError};
use crate::rights;
use crate::symbols::Processes;
use precise_records::record::{IdentifiedRecord, Record};

/// How long the start waits before it does something else meanwhile.
const PATIENCE: Duration = Duration::from_millis(5);

/// The thread; it ends with a `T`. Whoever drops it waits for its end, and must have hung up
/// before: a run that fails leaves no file behind that the thread was still writing.
#[derive(Debug)]
pub(crate) struct NamingThread<T>(Option<JoinHandle<T>>);

impl<T> Drop for NamingThread<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _failed_anyway = thread.join();
        }
    }
}

impl<T: Send + 'static> NamingThread<T> {
    /// Starts it with `prepare` (which looks at the processes that are running, so that one that
    /// ends right after has a name all the same), returns when that is done, and lets it go on with
    /// `run`. `meanwhile` is called again and again until then.
    pub fn start<W: Send + 'static>(
        mut worker: W,
        prepare: impl FnOnce(&mut W) + Send + 'static,
        run: impl FnOnce(W) -> T + Send + 'static,
        mut meanwhile: impl FnMut(),
    ) -> Result<Self, SamplingError> {
        let (begun, begin) = channel();
        let body = move || {
            rights::raised_for_names(|| {
                prepare(&mut worker);
                // Nobody waits any more only when the starting thread died.
                let _dead = begun.send(());
                run(worker)
            })
        };
        let thread = std::thread::Builder::new().name("naming".into()).spawn(body).map_err(|error| {
            SamplingError::new(ErrorClass::Failed, "cannot start the naming thread").because(error)
        })?;
        // Any other error is the thread's death, which `finish` reports.
        while let Err(RecvTimeoutError::Timeout) = begin.recv_timeout(PATIENCE) {
            meanwhile();
        }
        Ok(Self(Some(thread)))
    }

    /// Whether it has nothing more to do.
    pub fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until all is named.
    pub fn finish(mut self) -> Result<T, SamplingError> {
        let ended = self.0.take().and_then(|thread| thread.join().ok());
        ended.ok_or_else(|| {
            SamplingError::new(ErrorClass::Failed, "the naming thread died, and the samples are lost")
                .remedy(Remedy::ReportBug)
        })
    }
}

/// Finds the processes that are running at `now`, on the sideband's clock. Where it cannot, the
/// answer is a note.
pub(crate) fn look_around(processes: &mut Processes, now: u64) -> Option<String> {
    let error = processes.snapshot_all(Path::new("/"), now).err()?;
    Some(format!("cannot list the running processes: {error}"))
}

/// Follows what processes did, and tells `cgroup_made` of each new cgroup's id and path.
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
