//! Holds back the exits of threads whose callers are still to come.
//!
//! The kernel writes the record of an exit before it takes the callers of the samples of the
//! thread's last system call: `do_exit` calls `perf_event_exit_task` before
//! `unwind_deferred_task_exit` (Linux 6.19). These callers are named by what the process
//! had mapped, so the exit takes effect after them.

use std::collections::{BTreeMap, VecDeque};

use precise_records::record::IdentifiedRecord;

/// How long an exit waits for the record of callers, in nanoseconds of the recording: the thread
/// may be preempted between the two records, and the second may be lost.
const LONGEST: u64 = 1_000_000_000;
/// The maximum number of exits that wait.
const MAX_HELD: usize = 1 << 14;

/// A process, and a thread of it.
type Thread = (u32, u32);

/// The exits that wait.
#[derive(Default)]
pub(super) struct HeldExits {
    held: BTreeMap<Thread, IdentifiedRecord>,
    /// The keys of `held` with the times of their exits, and of some that are no longer there,
    /// oldest first.
    order: VecDeque<(u64, Thread)>,
}

impl HeldExits {
    /// Holds back the exit of a thread.
    pub fn hold(&mut self, thread: Thread, exit: IdentifiedRecord) {
        self.order.push_back((exit.id.time, thread));
        self.held.insert(thread, exit);
    }

    /// Returns the exit of a thread whose callers came.
    pub fn of_thread(&mut self, pid: u32, tid: u32) -> Option<IdentifiedRecord> {
        self.held.remove(&(pid, tid))
    }

    /// Returns an exit of a process whose id another process gets.
    pub fn of_process(&mut self, pid: u32) -> Option<IdentifiedRecord> {
        let thread = *self.held.range((pid, 0)..=(pid, u32::MAX)).next()?.0;
        self.held.remove(&thread)
    }

    /// Returns an exit that has waited too long at this time, or for which there is no room.
    pub fn overdue(&mut self, now: u64) -> Option<IdentifiedRecord> {
        while let Some((time, thread)) = self.order.front().copied() {
            let waits = self.held.get(&thread).is_some_and(|exit| exit.id.time == time);
            if waits && now < time.saturating_add(LONGEST) && self.order.len() <= MAX_HELD {
                return None;
            }
            self.order.pop_front();
            if waits {
                return self.held.remove(&thread);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use precise_records::record::{Record, SampleId, TaskRecord};

    use super::*;

    fn held(exits: &mut HeldExits, pid: u32, tid: u32, time: u64) {
        let task = TaskRecord { pid, ppid: 1, tid, ptid: 1, time };
        let id = SampleId { pid, tid, time, ..SampleId::default() };
        exits.hold((pid, tid), IdentifiedRecord { record: Record::Exit(task), misc: 0, id });
    }

    #[test]
    fn an_exit_is_returned_once() {
        let mut exits = HeldExits::default();
        held(&mut exits, 7, 7, 1);
        held(&mut exits, 7, 8, 2);
        held(&mut exits, 9, 9, 3);
        assert!(exits.of_thread(7, 9).is_none());
        assert_eq!(exits.of_thread(7, 8).map(|exit| exit.id.time), Some(2));
        assert_eq!(exits.of_process(7).map(|exit| exit.id.time), Some(1));
        assert!(exits.of_process(7).is_none() && exits.of_thread(7, 7).is_none());
        // The same thread id again: the place of the first exit in the order is nobody's.
        held(&mut exits, 7, 7, LONGEST);
        assert!(exits.overdue(LONGEST).is_none());
        assert_eq!(exits.overdue(LONGEST + 3).map(|exit| exit.id.pid), Some(9));
        assert!(exits.overdue(LONGEST + 3).is_none());
        assert_eq!(exits.overdue(2 * LONGEST).map(|exit| exit.id.pid), Some(7));
        assert!(exits.held.is_empty() && exits.order.is_empty());
    }

    #[test]
    fn exits_that_wait_are_bounded() {
        let mut exits = HeldExits::default();
        for pid in 0..100_000 {
            held(&mut exits, pid, pid, 1);
            while exits.overdue(1).is_some() {}
            assert!(exits.held.len() <= MAX_HELD && exits.order.len() <= MAX_HELD);
        }
        assert_eq!(exits.held.len(), MAX_HELD);
    }
}
