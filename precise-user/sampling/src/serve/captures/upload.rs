//! The thread that copies complete captures elsewhere. A store that is down delays nothing else.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::counts::{CaptureCounts, Uploaded};
use super::folder::unmark;
use crate::error::SamplingError;
use crate::rights;

/// How often a capture is tried.
const ATTEMPTS: u32 = 6;
/// The pause after the first failure. It doubles with each further one, up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(60);
/// How many captures may wait. They are in the folder in any case.
const MOST_WAITING: usize = 64;
/// How long the end of a run waits for the last upload.
const AT_THE_END: Duration = Duration::from_secs(3);

/// Copies a complete capture elsewhere. The arguments are its file, and whether an attempt before
/// this one may have copied it already.
pub struct Upload(Box<CopyCapture>);

type CopyCapture = dyn FnMut(&Path, bool) -> Result<(), String> + Send;

impl Upload {
    /// Makes an upload from a function. Its error is a sentence.
    pub fn new(copy: impl FnMut(&Path, bool) -> Result<(), String> + Send + 'static) -> Self {
        Self(Box::new(copy))
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upload(…)")
    }
}

/// The thread, and the captures that wait for it.
pub(super) struct Uploader {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    counts: Arc<CaptureCounts>,
}

#[derive(Default)]
struct Queue {
    /// The newest is the last.
    waiting: VecDeque<CaptureWaiting>,
    over: bool,
}

/// A capture that waits to be uploaded.
struct CaptureWaiting {
    path: PathBuf,
    /// Whether an earlier run may have uploaded a part of it.
    again: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the newest capture that waits, once there is one; `None` at the end.
    fn next(&self) -> Option<CaptureWaiting> {
        let idle = |queue: &mut Queue| queue.waiting.is_empty() && !queue.over;
        let mut queue = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        queue.waiting.pop_back()
    }

    /// Waits before the next attempt. Returns `false` if the run is over.
    fn pause(&self, pause: Duration) -> bool {
        let goes_on = |queue: &mut Queue| !queue.over;
        let waited = self.changed.wait_timeout_while(self.lock(), pause, goes_on);
        !waited.unwrap_or_else(PoisonError::into_inner).0.over
    }

    fn count_waiting(&self) {
        self.counts.waiting.store(self.lock().waiting.len() as u64, Relaxed);
    }

    /// Copies captures until the end, the newest first.
    fn work(&self, mut upload: Upload, first: Duration) {
        while let Some(capture) = self.next() {
            let how = self.copied(&capture, &mut upload, first);
            if matches!(how, Uploaded::Done | Uploaded::Gone) {
                unmark(&capture.path);
            }
            self.counts.uploaded(how);
            self.count_waiting();
        }
    }

    fn copied(&self, capture: &CaptureWaiting, upload: &mut Upload, mut pause: Duration) -> Uploaded {
        let CaptureWaiting { path, again } = capture;
        for attempt in 0..ATTEMPTS {
            if !path.exists() {
                return Uploaded::Gone;
            }
            if attempt > 0 {
                self.counts.retries.fetch_add(1, Relaxed);
            }
            if (upload.0)(path, *again || attempt > 0).is_ok() {
                return Uploaded::Done;
            }
            if attempt + 1 < ATTEMPTS && !self.pause(pause) {
                break;
            }
            pause = (2 * pause).min(LONGEST);
        }
        Uploaded::Failed
    }
}

impl Uploader {
    /// Starts the thread. It reads what a store answers, so it has no capabilities. The captures
    /// that an earlier run has `left` are uploaded after the newer ones of this run.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started.
    pub fn start(
        upload: Upload,
        left: Vec<PathBuf>,
        counts: Arc<CaptureCounts>,
    ) -> Result<Self, SamplingError> {
        let uploader = Self::patient(upload, counts, FIRST)?;
        left.into_iter().for_each(|path| uploader.add_waiting(CaptureWaiting { path, again: true }));
        Ok(uploader)
    }

    fn patient(upload: Upload, counts: Arc<CaptureCounts>, first: Duration) -> Result<Self, SamplingError> {
        let shared = Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new(), counts });
        let worker = shared.clone();
        let body = move || {
            // Without this the thread would do nothing; the captures are in the folder.
            if rights::drop_all().is_ok() {
                worker.work(upload, first);
            }
        };
        let thread = std::thread::Builder::new()
            .name("upload".into())
            .spawn(body)
            .map_err(|error| SamplingError::failed("cannot start the thread that uploads captures", error))?;
        Ok(Self { shared, thread })
    }

    /// Adds a capture of this run. If too many wait, the oldest is left to the next run.
    pub fn add(&self, path: PathBuf) {
        self.add_waiting(CaptureWaiting { path, again: false });
    }

    fn add_waiting(&self, capture: CaptureWaiting) {
        let mut queue = self.shared.lock();
        queue.waiting.push_back(capture);
        if queue.waiting.len() > MOST_WAITING {
            queue.waiting.pop_front();
            self.shared.counts.uploaded(Uploaded::Skipped);
        }
        drop(queue);
        self.shared.count_waiting();
        self.shared.changed.notify_all();
    }

    /// Ends the thread. Waits for what it does now, but not for a store that does not answer.
    pub fn end(self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
        let begin = Instant::now();
        while !self.thread.is_finished() && begin.elapsed() < AT_THE_END {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uploads files with a store that fails `failures` times. Returns the attempts and the counts.
    fn uploaded(failures: usize, files: usize) -> (Vec<(String, bool)>, super::super::CapturesTable) {
        let folder = tempfile::tempdir().unwrap();
        let (attempts, counts) = (Arc::new(Mutex::new(Vec::new())), Arc::new(CaptureCounts::default()));
        let (tried, begun) = (attempts.clone(), Arc::new(Mutex::new(())));
        let hold = begun.clone();
        let upload = Upload::new(move |path: &Path, again| {
            drop(hold.lock().unwrap());
            let mut tried = tried.lock().unwrap();
            tried.push((path.file_name().unwrap().to_str().unwrap().to_owned(), again));
            if tried.len() <= failures { Err("the store is down".to_owned()) } else { Ok(()) }
        });
        let uploader = Uploader::patient(upload, counts.clone(), Duration::from_millis(1)).unwrap();
        let held = begun.lock().unwrap();
        for number in 0..files {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, "").unwrap();
            uploader.add(path);
        }
        drop(held);
        let ended =
            |table: &super::super::CapturesTable| table.uploads.iter().map(|(_, count)| count).sum::<u64>();
        while ended(&counts.table()) < files as u64 {
            std::thread::sleep(Duration::from_millis(1));
        }
        uploader.end();
        let attempts = std::mem::take(&mut *attempts.lock().unwrap());
        (attempts, counts.table())
    }

    #[test]
    fn a_store_that_is_down_for_a_while_gets_the_capture() {
        let (attempts, table) = uploaded(2, 1);
        assert_eq!(attempts, [("0".to_owned(), false), ("0".to_owned(), true), ("0".to_owned(), true)]);
        assert_eq!((table.retries, table.uploads[0]), (2, ("done", 1)));
    }

    #[test]
    fn a_dead_store_is_given_up_and_the_next_capture_is_tried() {
        let (attempts, table) = uploaded(ATTEMPTS as usize, 2);
        assert_eq!(attempts.len(), ATTEMPTS as usize + 1);
        assert_eq!(table.uploads, [("done", 1), ("failed", 1), ("skipped", 0), ("gone", 0)]);
    }

    #[test]
    fn too_many_that_wait_leave_the_oldest_out() {
        let (attempts, table) = uploaded(0, MOST_WAITING + 10);
        // The first may have left the queue before the others came.
        assert!((9..=10).contains(&table.uploads[2].1), "{table:?}");
        assert_eq!(attempts.len() as u64, table.uploads[0].1);
        assert_eq!(table.waiting, 0);
    }
}
