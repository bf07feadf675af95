//! The open connections: how many there may be, and which one makes room for another.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::task::AbortHandle;

use super::traffic::{Closed, Traffic};
use precise_model::CompactSort as _;

/// How long an answer is safe from making room for another connection. A page of 50 MB takes half
/// a second on a line of one gigabit.
const SAFE: Duration = Duration::from_secs(1);

/// The limits of connections and of what they take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Maximum number of open connections.
    pub connections: usize,
    /// Maximum number of open connections of one peer.
    pub of_one_peer: usize,
    /// Time limit for the head of a request.
    pub head: Duration,
    /// Time limit of a connection, from its start to the last byte of the answer.
    pub whole: Duration,
    /// Maximum memory of older pages that slow clients still read, in bytes.
    pub older_pages: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 128,
            of_one_peer: 32,
            head: Duration::from_secs(5),
            whole: Duration::from_secs(15),
            older_pages: 64 << 20,
        }
    }
}

/// The open connections, the oldest first.
#[derive(Debug)]
pub(super) struct Connections {
    bounds: Bounds,
    traffic: Arc<Traffic>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: Vec<Open>,
    next: u64,
}

#[derive(Debug)]
struct Open {
    number: u64,
    peer: IpAddr,
    /// The answer that the connection is sending; `None` if it is idle: no complete request came
    /// yet.
    answer: Option<Answer>,
    /// Ends the connection. `None` until it has started.
    task: Option<AbortHandle>,
}

#[derive(Debug)]
struct Answer {
    since: Instant,
    /// The address and size of the page in memory, which answers share.
    page: (usize, usize),
}

/// The place of an open connection, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    connections: Arc<Connections>,
    number: u64,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.connections.lock().open.retain(|open| open.number != self.number);
    }
}

/// Returns what counts as one peer: an IPv4 address, or the network that one IPv6 host has for
/// itself.
fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

impl Connections {
    pub fn new(bounds: Bounds, traffic: Arc<Traffic>) -> Arc<Self> {
        Arc::new(Self { bounds, traffic, state: Mutex::default() })
    }

    /// Returns a place for a new connection; `None` if there is none. The oldest idle connection
    /// makes room, of the same peer if that peer has too many. If none is idle, the oldest answer
    /// does, once it is no longer safe.
    pub fn admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<ConnectionPlace> {
        let peer = peer(address);
        let mut state = self.lock();
        let of_peer = state.open.iter().filter(|open| open.peer == peer).count();
        let displaced = if of_peer >= self.bounds.of_one_peer {
            Some(state.displace(|open| open.peer == peer, now))
        } else if state.open.len() >= self.bounds.connections {
            Some(state.displace(|_| true, now))
        } else {
            None
        };
        let displaced = match displaced {
            Some(None) => {
                self.traffic.closed(Closed::Refused);
                return None;
            }
            other => other.flatten(),
        };
        let number = state.next;
        state.next += 1;
        state.open.push(Open { number, peer, answer: None, task: None });
        drop(state);
        self.end(displaced);
        Some(ConnectionPlace { connections: self.clone(), number })
    }

    /// Sets the task that serves a connection.
    pub fn started(&self, number: u64, task: AbortHandle) {
        if let Some(open) = self.lock().open.iter_mut().find(|open| open.number == number) {
            open.task = Some(task);
        }
    }

    /// Ends connections that are no longer in the list. Not called under the lock, which the end of
    /// a connection takes.
    fn end(&self, displaced: impl IntoIterator<Item = Open>) {
        for open in displaced {
            self.traffic.closed(Closed::Displaced);
            if let Some(task) = open.task {
                task.abort();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change of the list is one step, so a thread that panicked left a whole list behind.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionPlace {
    /// Returns the number of the connection.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Records that the connection sends `page`. Ends the oldest answers if slow clients hold more
    /// memory of older pages than is allowed.
    pub fn answers(&self, page: &Bytes, now: Instant) {
        let page = (page.as_ptr() as usize, page.len());
        let mut state = self.connections.lock();
        let mut displaced = Vec::new();
        if let Some(open) = state.open.iter_mut().find(|open| open.number == self.number) {
            open.answer = Some(Answer { since: now, page });
        }
        while state.older_pages(page) > self.connections.bounds.older_pages {
            let older = |open: &Open| open.answer.as_ref().is_some_and(|answer| answer.page != page);
            let Some(at) = state.open.iter().position(older) else { break };
            displaced.push(state.open.remove(at));
        }
        drop(state);
        self.connections.end(displaced);
    }
}

impl State {
    /// Removes the connection among `those` that makes room for another, if there is one.
    fn displace(&mut self, those: impl Fn(&Open) -> bool, now: Instant) -> Option<Open> {
        let idle = |open: &Open| open.answer.is_none();
        let slow = |open: &Open| open.answer.as_ref().is_some_and(|answer| now - answer.since >= SAFE);
        let at = self.open.iter().position(|open| those(open) && idle(open));
        let at = at.or_else(|| self.open.iter().position(|open| those(open) && slow(open)))?;
        Some(self.open.remove(at))
    }

    /// Returns the memory of all pages that are being sent, except for the page `now`.
    fn older_pages(&self, now: (usize, usize)) -> usize {
        let mut pages: Vec<_> =
            self.open.iter().filter_map(|open| Some(open.answer.as_ref()?.page)).collect();
        pages.compact_sort();
        pages.dedup();
        pages.into_iter().filter(|page| *page != now).map(|(_, bytes)| bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections() -> Arc<Connections> {
        let bounds = Bounds { connections: 6, of_one_peer: 3, older_pages: 250, ..Bounds::default() };
        Connections::new(bounds, Arc::default())
    }

    fn from(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn is_open(place: &ConnectionPlace) -> bool {
        place.connections.lock().open.iter().any(|open| open.number == place.number)
    }

    #[test]
    fn the_oldest_idle_connection_of_the_peer_makes_room() {
        let (connections, now) = (connections(), Instant::now());
        let page = Bytes::from_static(b"page");
        let other = connections.admit(from(9), now).unwrap();
        let of_peer: Vec<_> = (0..3).map(|_| connections.admit(from(1), now).unwrap()).collect();
        of_peer[0].answers(&page, now);
        let new = connections.admit(from(1), now).unwrap();
        assert!(is_open(&other) && is_open(&of_peer[0]) && is_open(&of_peer[2]) && is_open(&new));
        assert!(!is_open(&of_peer[1]), "the oldest that is idle");
        assert_eq!(connections.traffic.closed_for(Closed::Displaced), 1);
        // Answers are safe for a while.
        of_peer[2].answers(&page, now);
        new.answers(&page, now);
        assert!(connections.admit(from(1), now + SAFE / 2).is_none());
        assert_eq!(connections.traffic.closed_for(Closed::Refused), 1);
        assert!(connections.admit(from(1), now + SAFE).is_some());
        assert!(!is_open(&of_peer[0]) && is_open(&of_peer[2]));
    }

    #[test]
    fn there_is_an_end_to_all_peers_together() {
        let (connections, now) = (connections(), Instant::now());
        let places: Vec<_> = (1..=20).map(|last| connections.admit(from(last), now).unwrap()).collect();
        assert_eq!(places.iter().filter(|place| is_open(place)).count(), 6);
        assert!(places[14..].iter().all(is_open), "the newest");
        drop(places);
        assert!(connections.lock().open.is_empty());
    }

    #[test]
    fn slow_readers_hold_a_bounded_number_of_old_pages() {
        let (connections, now) = (connections(), Instant::now());
        let places: Vec<_> = (1..=5).map(|last| connections.admit(from(last), now).unwrap()).collect();
        let pages: Vec<_> = (0..3).map(|_| Bytes::from(vec![0; 100])).collect();
        // Two share a page.
        places[0].answers(&pages[0], now);
        places[1].answers(&pages[0], now);
        places[2].answers(&pages[1], now);
        places[3].answers(&pages[2], now);
        assert!(places.iter().all(is_open));
        places[4].answers(&Bytes::from(vec![0; 1000]), now);
        assert!(!is_open(&places[0]) && !is_open(&places[1]), "the oldest page");
        assert!(places[2..].iter().all(is_open));
    }

    #[test]
    fn a_peer_is_a_host() {
        let of = |text: &str| peer(text.parse().unwrap());
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::7"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
