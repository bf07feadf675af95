//! What became of pushes: counters for the page.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

precise_model::catalogue! {
    /// What became of a request and its samples.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Pushed: &'static str {
        /// The place took it.
        Sent => "sent",
        /// The place took only some of its profiles. It does not say which.
        Partial => "partial",
        /// The place will never take it.
        Refused => "refused",
        /// All attempts failed.
        Failed => "failed",
        /// Newer samples needed its memory, before any attempt.
        Displaced => "displaced",
    }
}

impl Pushed {
    const COUNT: usize = Self::ALL.len();

    /// Returns the value of the label.
    pub const fn name(self) -> &'static str {
        self.entry()
    }
}

/// The counters of one place since the start.
#[derive(Debug, Default)]
pub(crate) struct PushCounts {
    /// The name of the place.
    pub place: String,
    requests: [AtomicU64; Pushed::COUNT],
    samples: [AtomicU64; Pushed::COUNT],
    /// Profiles that were refused.
    pub refused: AtomicU64,
    /// Attempts after the first one of a request.
    pub retries: AtomicU64,
    /// When the place took a request last, in nanoseconds since the Unix epoch.
    pub last_ns: AtomicU64,
    /// The samples that wait, or are being sent.
    pub waiting: AtomicU64,
    /// The memory of what waits, in bytes.
    pub bytes: AtomicU64,
}

impl PushCounts {
    /// Makes the counters of a place.
    pub fn new(place: String) -> Self {
        Self { place, ..Self::default() }
    }

    /// Counts samples that wait from now on.
    pub fn waits(&self, samples: u64) {
        self.waiting.fetch_add(samples, Relaxed);
    }

    /// Counts what became of requests and of samples, which wait no longer.
    pub fn count(&self, how: Pushed, requests: u64, samples: u64) {
        for (counters, more) in [(&self.requests, requests), (&self.samples, samples)] {
            if let Some(counter) = counters.get(how as usize) {
                counter.fetch_add(more, Relaxed);
            }
        }
        self.waiting.fetch_sub(samples, Relaxed);
    }

    /// Returns the values of all counters.
    pub fn table(&self) -> PushTable {
        let read = |counters: &[AtomicU64]| -> Vec<(&'static str, u64)> {
            let names = Pushed::ALL.iter().map(|how| how.name());
            names.zip(counters.iter().map(|counter| counter.load(Relaxed))).collect()
        };
        PushTable {
            place: self.place.clone(),
            // What is displaced has not become a request.
            requests: read(&self.requests)
                .into_iter()
                .filter(|(name, _)| *name != Pushed::Displaced.name())
                .collect(),
            samples: read(&self.samples),
            refused: self.refused.load(Relaxed),
            retries: self.retries.load(Relaxed),
            last_ns: self.last_ns.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }
}

/// The values of [`PushCounts`], each list by the value of its label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PushTable {
    pub place: String,
    pub requests: Vec<(&'static str, u64)>,
    pub samples: Vec<(&'static str, u64)>,
    pub refused: u64,
    pub retries: u64,
    pub last_ns: u64,
    pub waiting: u64,
    pub bytes: u64,
}
