//! Naming and writing, beside the run loop: the loop must be back at the rings soon, whatever names
//! and readers cost.
//!
//! When this thread is slow, its queue fills up, the loop leaves the samples in the rings, the
//! rings fill up, and the kernel counts what finds no room. So memory is bounded and nothing is
//! lost in silence.

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

/// Rounds that may wait to be named.
const QUEUE: usize = 2;
/// The thread.
#[derive(Debug)]
pub(super) struct Naming {
    tell: SyncSender<Round>,
    enough: Arc<AtomicBool>,
    thread: NamingThread<Ended>,
}

impl Naming {
    /// Starts it, and returns when it has looked at the processes that are running. `now` is the
    /// sideband's time; `meanwhile` is called again and again until then.
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

    /// Whether no more samples are wanted.
    pub fn has_enough(&self) -> bool {
        self.enough.load(Ordering::Relaxed) || self.thread.is_finished()
    }

    /// Hands over a round; gives it back when the thread is too far behind to take it.
    pub fn offer(&self, round: Round) -> Option<Round> {
        match self.tell.try_send(round) {
            Err(TrySendError::Full(round)) => Some(round),
            // The thread only ends before its time when it dies, which `finish` reports.
            Ok(()) | Err(TrySendError::Disconnected(_)) => None,
        }
    }

    /// Hands over the last rounds, and waits until all is written.
    pub fn finish(self, last: impl IntoIterator<Item = Round>) -> Result<Ended, SamplingError> {
        for round in last {
            let _dead = self.tell.send(round);
        }
        drop(self.tell);
        self.thread.finish()
    }
}
