//! Pushes: the samples of each interval, as a capture in memory, to backends of others.
//!
//! The naming thread adds the rows of each epoch to the interval ([`gather`]), without what
//! profiles do not have: times, ids of processes and threads, data addresses. So rows of different
//! epochs are joined, and an interval takes little more memory than one epoch. When it is long
//! enough, or takes its part of the memory, it goes to the thread of each place ([`sender`]), with
//! the ledger of its own time. No sample is between two intervals.
//!
//! How profiles are encoded and sent is above: [`PushBackend`]. A place that is down costs its
//! thread, and the memory of what waits for it; newer intervals displace older ones. What was not
//! sent is counted, with the reason.

mod counts;
mod gather;
mod sender;

pub(super) use counts::{PushCounts, PushTable};
pub(super) use gather::Pusher;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use precise_model::Capture;

/// What is pushed beside the series.
#[derive(Debug)]
pub struct PushOptions {
    /// The length of an interval.
    pub every: Duration,
    /// The most memory in bytes of what waits for one place, about.
    pub bytes: usize,
    /// The places.
    pub places: Vec<PushPlace>,
}

/// A place that takes profiles.
pub struct PushPlace {
    /// What metrics and messages call it. No two places have one name.
    pub name: String,
    /// Makes and sends the requests.
    pub backend: Box<dyn PushBackend>,
}

impl fmt::Debug for PushPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushPlace({})", self.name)
    }
}

/// Makes requests of captures, and sends them. Both happen on a thread of the place's own.
pub trait PushBackend: Send {
    /// Returns the requests for an interval. Each of its samples is in one of them.
    fn encode(&mut self, capture: &Capture) -> Vec<PushMessage>;

    /// Sends a request, within a bounded time.
    fn send(&mut self, message: &PushMessage) -> PushAnswer;
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushMessage {
    /// What comes after the address of the place; may be empty.
    pub query: String,
    /// The body.
    pub body: Bytes,
    /// The number of profiles in it.
    pub profiles: u64,
    /// The number of samples in it. A sample that is in several profiles counts once.
    pub samples: u64,
}

/// What a place made of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushAnswer {
    /// It took all but this number of profiles.
    Taken {
        /// The number of profiles that it did not take.
        refused: u64,
        /// What it said about them, or about all; may be empty.
        said: String,
    },
    /// It may take the request later.
    Later {
        /// The time that it asked for.
        after: Option<Duration>,
        /// Why not now, as a sentence without a full stop.
        why: String,
    },
    /// It will never take it.
    Refused {
        /// The reason, as a sentence without a full stop.
        why: String,
    },
}
