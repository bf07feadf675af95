//! The thread of a place: it encodes intervals and sends them, the newest first. A place that is
//! down delays nothing else.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use precise_model::Capture;

use super::counts::{PushCounts, Pushed};
use super::{PushAnswer, PushBackend, PushMessage, PushPlace};
use crate::error::SamplingError;
use crate::rights;
use crate::run::running::unix_ns;

/// How often a request is tried.
const ATTEMPTS: u32 = 5;
/// The pause after the first failure, about. It doubles with each further one.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause that a place can ask for.
const LONGEST: Duration = Duration::from_secs(300);
/// How long the end of a run waits for what is being sent.
const AT_THE_END: Duration = Duration::from_secs(3);

/// The samples of an interval.
#[derive(Debug)]
pub(super) struct PushInterval {
    /// The samples with everything that a capture has.
    pub capture: Capture,
    /// The number of samples.
    pub samples: u64,
    /// Its memory in bytes, about.
    pub bytes: usize,
}

/// The thread, and the intervals that wait for it.
pub(super) struct PushSender {
    shared: Arc<SenderShared>,
    thread: JoinHandle<()>,
}

struct SenderShared {
    queue: Mutex<IntervalQueue>,
    changed: Condvar,
    counts: Arc<PushCounts>,
    /// The most bytes that wait.
    most: usize,
}

#[derive(Default)]
struct IntervalQueue {
    /// The newest is the last.
    waiting: VecDeque<Arc<PushInterval>>,
    bytes: usize,
    over: bool,
}

impl SenderShared {
    fn lock(&self) -> MutexGuard<'_, IntervalQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an interval. If too many bytes wait, the oldest go.
    fn add(&self, interval: Arc<PushInterval>) {
        self.counts.waits(interval.samples);
        let mut queue = self.lock();
        queue.bytes += interval.bytes;
        queue.waiting.push_back(interval);
        while queue.bytes > self.most && queue.waiting.len() > 1 {
            if let Some(oldest) = queue.waiting.pop_front() {
                queue.bytes -= oldest.bytes;
                self.counts.count(Pushed::Displaced, 0, oldest.samples);
            }
        }
        self.counts.bytes.store(queue.bytes as u64, Relaxed);
        drop(queue);
        self.changed.notify_all();
    }

    /// Returns the newest interval, once there is one; `None` at the end.
    fn next(&self) -> Option<Arc<PushInterval>> {
        let idle = |queue: &mut IntervalQueue| queue.waiting.is_empty() && !queue.over;
        let mut queue = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let newest = queue.waiting.pop_back()?;
        queue.bytes -= newest.bytes;
        self.counts.bytes.store(queue.bytes as u64, Relaxed);
        Some(newest)
    }

    /// Waits before the next attempt. Returns `false` if the run is over.
    fn pause(&self, pause: Duration) -> bool {
        let goes_on = |queue: &mut IntervalQueue| !queue.over;
        let waited = self.changed.wait_timeout_while(self.lock(), pause, goes_on);
        !waited.unwrap_or_else(PoisonError::into_inner).0.over
    }

    /// Sends intervals until the end.
    fn work(&self, backend: &mut dyn PushBackend, first: Duration) {
        while let Some(interval) = self.next() {
            let messages = backend.encode(&interval.capture);
            // Samples of a request count with it. There should be no others.
            let in_messages = messages.iter().map(|message| message.samples).fold(0, u64::saturating_add);
            self.counts.count(Pushed::Failed, 0, interval.samples.saturating_sub(in_messages));
            drop(interval);
            let mut down = false;
            for message in messages {
                // A place that did not take one request after all attempts gets no other of this
                // interval: the next one has its turn.
                let how = if down { Pushed::Failed } else { self.sent(&message, backend, first) };
                down |= how == Pushed::Failed;
                self.counts.count(how, 1, message.samples);
            }
        }
    }

    fn sent(&self, message: &PushMessage, backend: &mut dyn PushBackend, mut pause: Duration) -> Pushed {
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                self.counts.retries.fetch_add(1, Relaxed);
            }
            let after = match backend.send(message) {
                PushAnswer::Taken { refused, .. } => {
                    let refused = refused.min(message.profiles);
                    self.counts.refused.fetch_add(refused, Relaxed);
                    if refused > 0 && refused == message.profiles {
                        return Pushed::Refused;
                    }
                    self.counts.last_ns.store(unix_ns(), Relaxed);
                    return if refused == 0 { Pushed::Sent } else { Pushed::Partial };
                }
                PushAnswer::Refused { .. } => {
                    self.counts.refused.fetch_add(message.profiles, Relaxed);
                    return Pushed::Refused;
                }
                PushAnswer::Later { after, .. } => after,
            };
            let pause_now = after.map_or_else(|| about(pause), |after| after.min(LONGEST));
            if attempt + 1 < ATTEMPTS && !self.pause(pause_now) {
                break;
            }
            pause = (2 * pause).min(LONGEST);
        }
        Pushed::Failed
    }
}

/// Returns the time, or up to half more or less: the nodes of a fleet do not come back together.
fn about(time: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 1024;
    time.mul_f64(0.5 + random as f64 / 1024.0)
}

impl PushSender {
    /// Starts the thread. It reads what others answer, so it has no capabilities.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started.
    pub fn start(place: PushPlace, counts: Arc<PushCounts>, most: usize) -> Result<Self, SamplingError> {
        Self::patient(place, counts, most, FIRST)
    }

    fn patient(
        place: PushPlace,
        counts: Arc<PushCounts>,
        most: usize,
        first: Duration,
    ) -> Result<Self, SamplingError> {
        let queue = Mutex::default();
        let shared = Arc::new(SenderShared { queue, changed: Condvar::new(), counts, most });
        let (worker, mut backend) = (shared.clone(), place.backend);
        let body = move || {
            // Without this the thread would do nothing; what waits is counted.
            if rights::drop_all().is_ok() {
                worker.work(&mut *backend, first);
            }
        };
        let thread = std::thread::Builder::new()
            .name("push".into())
            .spawn(body)
            .map_err(|error| SamplingError::failed("cannot start the thread that pushes profiles", error))?;
        Ok(Self { shared, thread })
    }

    /// Adds an interval. If too many bytes wait, the oldest go.
    pub fn add(&self, interval: Arc<PushInterval>) {
        self.shared.add(interval);
    }

    /// Tells the thread that no interval will follow: what waits is tried once more.
    pub fn close(&self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
    }

    /// Waits for the end of the thread, but not for a place that does not answer. Returns the
    /// number of samples that were not sent.
    pub fn end(self, since: Instant) -> u64 {
        while !self.thread.is_finished() && since.elapsed() < AT_THE_END {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.shared.counts.waiting.load(Relaxed)
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
