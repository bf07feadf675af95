//! Requests for symbols that are sent before their answers are waited for.
//!
//! The worker reads what the next addresses need while this process turns the last answer into
//! locations. Neither of the two would otherwise have anything to do while the other works.

use std::fs::File;

use super::{Level, Limit, Reader, TIME_LIMIT, Trouble};
use crate::reader::protocol::{FileId, ReaderRequest, Reply};
use crate::reader::wire;

/// Maximum number of requests that are sent ahead. The first addresses of a unit take ten times as
/// long as the rest: while the worker is at them, the answers to some batches can be turned into
/// locations, and it then has the next ones.
pub const MAX_AHEAD: usize = 4;
/// Maximum number of addresses of a request that is sent ahead.
const MAX_ADDRESSES_AHEAD: usize = 1024;
/// Minimum size in bytes of the send buffer of a socket, for requests to be sent ahead. A request
/// that does not fit into the buffer would wait for a worker that waits for its answer to be read.
/// An address takes at most ten bytes, and the kernel counts its own memory for a message too.
pub(super) const MIN_BUFFER: usize = MAX_AHEAD * 4 * 10 * MAX_ADDRESSES_AHEAD;

/// Stands for a request that was sent ahead.
#[derive(Debug, PartialEq, Eq)]
pub struct SentAhead(u64);

/// A request that was sent ahead.
#[derive(Debug)]
pub(super) struct Ahead {
    number: u64,
    /// Whether it asks for debug information.
    lines: bool,
    /// Whether it was the first request of its worker.
    was_fresh: bool,
    /// The answer, once it is received; or how the worker ended.
    answer: Option<Result<Reply, String>>,
}

impl Reader {
    /// Sends a request that [`Self::symbols`] would send, and does not wait for the answer. `None`:
    /// it was not sent, because others wait already, or because there is no worker, which
    /// [`Self::symbols`] will say.
    pub fn ask_ahead(
        &mut self,
        (id, file): (FileId, &File),
        supplement: Option<(FileId, &File)>,
        addresses: &[u64],
    ) -> Option<SentAhead> {
        let level = self.level(id);
        let fits = (1..=MAX_ADDRESSES_AHEAD).contains(&addresses.len());
        if level == Level::Nothing || !fits || self.ahead.len() >= MAX_AHEAD {
            return None;
        }
        if !self.worker().ok()?.takes_requests_ahead {
            return None;
        }
        let lines = level == Level::Lines;
        let (request, files) = symbols_request((id, file), supplement, lines, addresses);
        // The next request finds out why, and replaces the worker.
        self.send(&request, &files).ok()?;
        let was_fresh = std::mem::replace(&mut self.fresh, false);
        self.last_ahead += 1;
        self.ahead.push_back(Ahead { number: self.last_ahead, lines, was_fresh, answer: None });
        Some(SentAhead(self.last_ahead))
    }

    /// Waits for the answer to a request that was sent ahead, and returns whether it asked for
    /// debug information, and the answer. `None`: ask again, because the worker ended, and what it
    /// read before may have been the cause.
    pub(super) fn take_ahead(&mut self, sent: &SentAhead) -> Option<(bool, Result<Reply, Trouble>)> {
        let at = self.ahead.iter().position(|ahead| ahead.number == sent.0)?;
        self.receive_ahead(at + 1);
        // It is gone if the worker ended at one before it.
        let at = self.ahead.iter().position(|ahead| ahead.number == sent.0)?;
        let Ahead { lines, was_fresh, answer, .. } = self.ahead.remove(at)?;
        match answer? {
            Ok(Reply::Failed(why)) => Some((lines, Err(Trouble::Failed(why)))),
            Ok(reply) => Some((lines, Ok(reply))),
            Err(how) => was_fresh.then_some((lines, Err(Trouble::Died(how)))),
        }
    }

    /// Forgets a request that was sent ahead, whose answer nobody needs.
    pub fn forget_ahead(&mut self, sent: &SentAhead) {
        let _nobody_needs_it = self.take_ahead(sent);
    }

    /// Receives the answers to the first requests that were sent ahead. Each has the time of a
    /// request that is sent now.
    pub(super) fn receive_ahead(&mut self, count: usize) {
        for index in 0..count.min(self.ahead.len()) {
            let Some(worker) = &self.worker else { break };
            if self.ahead.get(index).is_none_or(|ahead| ahead.answer.is_some()) {
                continue;
            }
            let limit = Limit::start(Some(worker.clock), TIME_LIMIT);
            let answer = match wire::receive(&worker.socket, || limit.wait(&worker.socket)) {
                Ok((reply, _)) => Ok(reply),
                Err(error) => Err(self.lose(&error)),
            };
            // The end of a worker with its nursery says nothing about the file.
            let blames_no_file = answer.is_err() && self.nursery.is_lost();
            if let Some(ahead) = self.ahead.get_mut(index) {
                ahead.answer = Some(answer);
                ahead.was_fresh &= !blames_no_file;
            }
        }
        if self.worker.is_none() {
            // They were sent to a worker that has ended.
            self.ahead.retain(|ahead| ahead.answer.is_some());
        }
    }
}

/// Returns the request for symbols at addresses of a file, and the files to send with it.
pub(super) fn symbols_request<'a>(
    (file, open): (FileId, &'a File),
    supplement: Option<(FileId, &'a File)>,
    lines: bool,
    addresses: &[u64],
) -> (ReaderRequest, Vec<&'a File>) {
    let files = [open].into_iter().chain(supplement.map(|(_, open)| open)).collect();
    let supplement = supplement.map(|(id, _)| id);
    (ReaderRequest::Symbols { file, supplement, lines, addresses: addresses.to_vec() }, files)
}

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod tests;
