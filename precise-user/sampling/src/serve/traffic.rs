//! Counters of what the server answered and what it refused.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hyper::StatusCode;

/// Every status of an answer.
pub(super) const STATUSES: [StatusCode; 8] = [
    StatusCode::OK,
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::MISDIRECTED_REQUEST,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// Why the server closed a connection before it had sent an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// It made room for a newer one.
    Displaced,
    /// There was no room for it, as all others were being answered.
    Refused,
    /// The request or the answer took too long.
    Deadline,
    /// The request was not valid HTTP, or its head was too long.
    Invalid,
    /// The kernel did not hand it over, for example for lack of file descriptors.
    NotAccepted,
}

impl Closed {
    /// Every reason, in the order of the page.
    pub const ALL: [Self; 5] =
        [Self::Displaced, Self::Refused, Self::Deadline, Self::Invalid, Self::NotAccepted];

    /// Returns the reason as it is on the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Displaced => "displaced",
            Self::Refused => "refused",
            Self::Deadline => "deadline",
            Self::Invalid => "invalid",
            Self::NotAccepted => "not_accepted",
        }
    }
}

/// The counters since the start.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    answered: [AtomicU64; STATUSES.len()],
    closed: [AtomicU64; Closed::ALL.len()],
}

impl Traffic {
    /// Counts an answer.
    pub fn answered(&self, status: StatusCode) {
        let counters = STATUSES.iter().zip(&self.answered);
        counters.filter(|(of, _)| **of == status).for_each(|(_, count)| add(count));
    }

    /// Counts a connection that was closed without an answer.
    pub fn closed(&self, why: Closed) {
        let counters = Closed::ALL.iter().zip(&self.closed);
        counters.filter(|(of, _)| **of == why).for_each(|(_, count)| add(count));
    }

    /// Returns the number of answers by status.
    pub fn answers(&self) -> impl Iterator<Item = (StatusCode, u64)> {
        STATUSES.into_iter().zip(self.answered.iter().map(|count| count.load(Relaxed)))
    }

    /// Returns the number of connections that were closed without an answer, by reason.
    pub fn closings(&self) -> impl Iterator<Item = (Closed, u64)> {
        Closed::ALL.into_iter().zip(self.closed.iter().map(|count| count.load(Relaxed)))
    }

    /// Returns the number of connections that were closed for one reason.
    #[cfg(test)]
    pub fn closed_for(&self, why: Closed) -> u64 {
        self.closings().filter(|(of, _)| *of == why).map(|(_, count)| count).sum()
    }
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}
