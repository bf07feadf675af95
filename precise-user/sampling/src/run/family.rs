//! The processes that a command has started, so that they end with it.

use std::{collections::BTreeMap, fs, os::fd::OwnedFd, path::Path};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::symbols::pids;

/// The descendants of a command that can be found: the children of its processes. A process whose
/// parent has ended (a daemon) belongs to the init process and is not found.
#[derive(Debug)]
pub(super) struct Family {
    command: u32,
    /// The descendants by process id. The descriptor refers to the process even after its end, so a
    /// signal never reaches another process that got its id.
    members: BTreeMap<u32, OwnedFd>,
}

impl Family {
    /// Finds the descendants of a running child of this process.
    pub fn of(command: u32) -> Self {
        let mut family = Self { command, members: BTreeMap::new() };
        family.grow();
        family
    }

    /// Adds the descendants that were started since.
    pub fn grow(&mut self) {
        loop {
            let before = self.members.len();
            for pid in pids(Path::new("/")).unwrap_or_default() {
                if pid != self.command && !self.members.contains_key(&pid) && self.is_parent_of(pid) {
                    self.add(pid);
                }
            }
            // A child may come before its parent in the list.
            if self.members.len() == before {
                break;
            }
        }
    }

    /// Sends a signal to all descendants. A descendant that may not be sent signals continues.
    pub fn signal(&self, signal: Signal) {
        for process in self.members.values() {
            let _ended_or_not_permitted = pidfd_send_signal(process, signal);
        }
    }

    /// Returns whether all descendants have ended.
    pub fn has_ended(&self) -> bool {
        self.members.values().all(has_ended)
    }

    fn is_parent_of(&self, pid: u32) -> bool {
        parent(pid).is_some_and(|parent| parent == self.command || self.members.contains_key(&parent))
    }

    fn add(&mut self, pid: u32) {
        let Some(process) = open(pid) else { return };
        // The id may have been reused before it was opened. While the process lives, its id is its
        // own.
        if self.is_parent_of(pid) && !has_ended(&process) {
            self.members.insert(pid, process);
        }
    }
}

/// Returns the parent of a process: the second field after the name, which may have any characters
/// (proc_pid_stat(5)).
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn open(pid: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()
}

/// Returns whether a process has ended: its descriptor is then readable (pidfd_open(2)).
fn has_ended(process: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&at_once)) == Ok(1)
}
