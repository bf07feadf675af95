//! The last minutes, made when somebody asks: the page for people, at `/`, and the capture, at
//! `/capture`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use precise_capture::CaptureFile as _;
use tokio::sync::Mutex;

use crate::kernel::clock::thread_cpu_ns;
use crate::top::{Live, WindowSnapshot};

/// How much time the page shows, unless the service says another.
pub const WINDOW: Duration = Duration::from_secs(300);
/// The most rows and bytes of names of these minutes.
pub(super) const MOST: (usize, usize) = (1 << 16, 16 << 20);
/// How long a page is sent again before another is made.
const FRESH: Duration = Duration::from_secs(5);
/// Between two pages passes this multiple of the time that the first took, so that pages take at
/// most 2 % of a CPU, however many clients ask; and as long between two captures.
const PAUSE: u32 = 50;

/// Makes the HTML of the page from the last minutes.
#[derive(Clone)]
pub struct Painter(Arc<PaintPage>);

type PaintPage = dyn Fn(WindowSnapshot) -> Result<String, String> + Send + Sync;

impl Painter {
    /// Makes a painter from a function. Its error is a sentence for the reader.
    pub fn new(paint: impl Fn(WindowSnapshot) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(paint))
    }
}

impl fmt::Debug for Painter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Painter(…)")
    }
}

/// What is made of the last minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrontPart {
    /// The page for people.
    Page,
    /// The capture, as its file.
    Capture,
}

/// The last minutes, and what was made of them.
#[derive(Debug)]
pub(super) struct Front {
    live: Live,
    paint: Painter,
    /// Each is locked while it is made, so that one of each is made at a time.
    page: Mutex<Painted>,
    capture: Mutex<Painted>,
    /// CPU time of making them, in nanoseconds.
    cpu_ns: AtomicU64,
}

/// What was made last.
#[derive(Debug)]
struct Painted {
    /// When, and how long it took; `None` if there is nothing.
    made: Option<(Instant, Duration)>,
    bytes: Result<Bytes, String>,
}

impl Default for Painted {
    fn default() -> Self {
        Self { made: None, bytes: Ok(Bytes::new()) }
    }
}

impl Painted {
    fn is_fresh(&self, now: Instant) -> bool {
        let fresh = |(at, took): (Instant, Duration)| now - at < FRESH.max(took.saturating_mul(PAUSE));
        self.made.is_some_and(fresh)
    }
}

impl Front {
    pub fn new(live: Live, paint: Painter) -> Self {
        Self { live, paint, page: Mutex::default(), capture: Mutex::default(), cpu_ns: AtomicU64::new(0) }
    }

    /// Returns the CPU time that pages and captures have taken, in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Relaxed)
    }

    /// Returns a part. It is made on a thread of its own, and to its end even if nobody waits for
    /// it any longer: clients that come and go would else have many made at the same time.
    ///
    /// # Errors
    ///
    /// Returns a sentence if there is none.
    pub async fn part(self: &Arc<Self>, part: FrontPart) -> Result<Bytes, String> {
        let front = self.clone();
        let died = |_| Err("the thread that makes it died".to_owned());
        tokio::spawn(async move { front.newest(part).await }).await.unwrap_or_else(died)
    }

    async fn newest(self: Arc<Self>, part: FrontPart) -> Result<Bytes, String> {
        let last = match part {
            FrontPart::Page => &self.page,
            FrontPart::Capture => &self.capture,
        };
        let mut last = last.lock().await;
        if last.is_fresh(Instant::now()) {
            return last.bytes.clone();
        }
        let begin = Instant::now();
        let front = self.clone();
        let bytes = tokio::task::spawn_blocking(move || front.make(part)).await;
        let bytes = bytes.unwrap_or_else(|_| Err("making it failed, which is a bug in precise".to_owned()));
        // Why there is nothing is not true for long.
        let made = bytes.is_ok().then(|| (Instant::now(), begin.elapsed()));
        *last = Painted { made, bytes: bytes.clone() };
        bytes
    }

    fn make(&self, part: FrontPart) -> Result<Bytes, String> {
        let begin = thread_cpu_ns();
        let made = match (self.live.latest(0), part) {
            (None, _) => Err("the first epoch has not ended yet".to_owned()),
            (Some((_, snapshot)), FrontPart::Page) => (self.paint.0)(snapshot).map(Bytes::from),
            (Some((_, snapshot)), FrontPart::Capture) => {
                snapshot.capture.to_bytes().map_err(|error| error.to_string())
            }
        };
        self.cpu_ns.fetch_add(thread_cpu_ns().saturating_sub(begin), Relaxed);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_took_long_is_sent_for_long() {
        let now = Instant::now();
        let made =
            |took: u64| Painted { made: Some((now, Duration::from_millis(took))), bytes: Ok(Bytes::new()) };
        assert!(!Painted::default().is_fresh(now));
        assert!(made(10).is_fresh(now + FRESH / 2) && !made(10).is_fresh(now + FRESH));
        assert!(made(1000).is_fresh(now + Duration::from_secs(49)));
        assert!(!made(1000).is_fresh(now + Duration::from_secs(51)));
    }
}
