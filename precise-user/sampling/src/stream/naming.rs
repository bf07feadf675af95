//! The naming thread: symbolizes and writes samples, so that the run loop can return to the rings
//! quickly even if symbolization or the reader is slow.
//!
//! If this thread is slow, its queue fills up, the loop leaves the samples in the rings, the rings
//! fill up, and the kernel counts what does not fit. So memory is bounded, and every loss is
//! counted.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::{SyncSender, TrySendError, sync_channel},
};

use super::{
    Sink,
    worker::{Ended, Round, Work, Worker},
};
use crate::error::SamplingError;
use crate::run::naming_thread::NamingThread;

/// The maximum number of rounds that wait to be named.
const QUEUE: usize = 2;
/// A handle to the naming thread.
#[derive(Debug)]
pub(super) struct Naming {
    tell: SyncSender<Round>,
    enough: Arc<AtomicBool>,
    thread: NamingThread<Ended>,
}

impl Naming {
    /// Starts the thread, and returns after it has taken a snapshot of the running processes. `now`
    /// is the current time on the sideband's clock; `meanwhile` is called repeatedly until then.
    pub fn start<S: Sink + 'static>(
        work: Work,
        sink: S,
        now: u64,
        meanwhile: impl FnMut(),
    ) -> Result<Self, SamplingError> {
        let (tell, told) = sync_channel(QUEUE);
        let enough = Arc::new(AtomicBool::new(false));
        let thread = NamingThread::start(
            Worker::new(work, sink, Arc::clone(&enough)),
            move |worker| worker.look_around(now),
            move |worker| worker.run(&told),
            meanwhile,
        )?;
        Ok(Self { tell, enough, thread })
    }

    /// Returns whether no more samples are wanted.
    pub fn has_enough(&self) -> bool {
        self.enough.load(Ordering::Relaxed) || self.thread.is_finished()
    }

    /// Passes a round to the thread; returns it if the queue is full.
    pub fn offer(&self, round: Round) -> Option<Round> {
        match self.tell.try_send(round) {
            Err(TrySendError::Full(round)) => Some(round),
            // The thread ends early only if it panics, which `finish` reports.
            Ok(()) | Err(TrySendError::Disconnected(_)) => None,
        }
    }

    /// Passes the last rounds, and waits until everything is written.
    pub fn finish(self, last: impl IntoIterator<Item = Round>) -> Result<Ended, SamplingError> {
        for round in last {
            let _dead = self.tell.send(round);
        }
        drop(self.tell);
        self.thread.finish()
    }
}
