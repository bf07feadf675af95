//! The naming thread: symbolizes and writes samples, so that the run loop can return to the rings
//! quickly even if symbolization or the reader is slow.
//!
//! If this thread is slow, its queue fills up, the loop leaves the samples in the rings, the rings
//! fill up, and the kernel counts what does not fit. So memory is bounded, and every loss is
//! counted.
//!
//! When the run must end, the thread may be stuck in a file or in a reader that does not read. Then
//! the run ends without it, and counts what it has not written.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

use super::{
    Sink,
    worker::{FateCounts, Round, StreamEnd, StreamWork, Worker},
};
use crate::error::SamplingError;
use crate::run::naming_thread::{NamedFirst, NamingThread};

/// The maximum number of rounds that wait to be named.
const QUEUE: usize = 2;
/// How often the end of a run checks whether the queue has space for the last rounds.
const CHECK: Duration = Duration::from_millis(5);

/// A handle to the naming thread.
#[derive(Debug)]
pub(super) struct StreamNaming {
    tell: SyncSender<Round>,
    enough: Arc<AtomicBool>,
    /// The counts up to the last chunk of samples that was written.
    counts: Arc<Mutex<Vec<FateCounts>>>,
    thread: NamingThread<StreamEnd>,
}

impl StreamNaming {
    /// Starts the thread, and returns after it has looked `around`. `meanwhile` is called
    /// repeatedly until then, and ends the wait by returning `false`.
    pub fn start<S: Sink + 'static>(
        work: StreamWork,
        sink: S,
        around: NamedFirst,
        meanwhile: impl FnMut() -> bool,
    ) -> Result<Self, SamplingError> {
        let (tell, told) = sync_channel(QUEUE);
        let enough = Arc::new(AtomicBool::new(false));
        let counts = Arc::new(Mutex::new(vec![FateCounts::default(); work.sources.len()]));
        let thread = NamingThread::start(
            Worker::new(work, sink, Arc::clone(&enough), Arc::clone(&counts)),
            move |worker| worker.look_around(&around),
            move |worker| worker.run(&told),
            meanwhile,
        )?;
        Ok(Self { tell, enough, counts, thread })
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

    /// Passes the last rounds, and waits until everything is written, or until `given_up` returns
    /// `true`.
    pub fn finish(
        self,
        last: impl IntoIterator<Item = Round>,
        mut given_up: impl FnMut() -> bool,
    ) -> Result<StreamEnd, SamplingError> {
        let mut last: VecDeque<Round> = last.into_iter().collect();
        while let Some(round) = last.pop_front() {
            if let Some(round) = self.offer(round) {
                if given_up() {
                    return Ok(self.leave());
                }
                last.push_front(round);
                std::thread::sleep(CHECK);
            }
        }
        let Self { tell, enough, counts, thread } = self;
        drop(tell);
        if thread.ends_before(given_up) { thread.finish() } else { Ok(left(thread, &enough, &counts)) }
    }

    /// Ends without the thread.
    fn leave(self) -> StreamEnd {
        left(self.thread, &self.enough, &self.counts)
    }
}

/// Leaves the thread, which writes no further sample. Returns what it has counted.
fn left(thread: NamingThread<StreamEnd>, enough: &AtomicBool, counts: &Mutex<Vec<FateCounts>>) -> StreamEnd {
    enough.store(true, Ordering::Relaxed);
    thread.leave();
    let counts = counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    StreamEnd { counts, cut: true, ..StreamEnd::default() }
}
