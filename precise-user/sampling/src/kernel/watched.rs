//! The set of cgroups that a filter watches, in memory shared with the program.

use std::{
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU64, Ordering},
};

use precise_common::config::{
    PROBES,
    watched::{REMOVED, ROOM, place},
};

use super::map_memory::SharedMemory;
use crate::error::SyscallError;

/// The set of watched cgroups of one program. Only one thread of user space changes it.
#[derive(Debug)]
pub struct Watched(SharedMemory);

impl Watched {
    /// Maps the map of a loaded program.
    ///
    /// # Errors
    ///
    /// Returns the error of mmap(2).
    pub fn map(map: BorrowedFd<'_>) -> Result<Self, SyscallError> {
        SharedMemory::map(map, ROOM as usize * size_of::<u64>()).map(Self)
    }

    /// Adds the id of a cgroup, with effect from the next sample. Returns whether there was room.
    pub fn add(&self, id: u64) -> bool {
        let mut free = None;
        for probe in 0..PROBES {
            let slot = self.slot(place(id, probe));
            let found = slot.load(Ordering::Relaxed);
            if found == id {
                return true;
            }
            if found == 0 || found == REMOVED {
                free = free.or(Some(slot));
            }
            if found == 0 {
                break;
            }
        }
        let Some(slot) = free else { return false };
        slot.store(id, Ordering::Relaxed);
        true
    }

    /// Removes the ids that `keep` refuses. The other ids are found at every moment, also by a
    /// program that is searching now.
    pub fn retain(&self, keep: impl Fn(u64) -> bool) {
        // The entries that a search for a kept id passes. Only the others may become free.
        let mut passed = vec![false; ROOM as usize];
        for at in 0..ROOM {
            let slot = self.slot(at);
            let id = slot.load(Ordering::Relaxed);
            if id == 0 || id == REMOVED {
                continue;
            }
            if !keep(id) {
                slot.store(REMOVED, Ordering::Relaxed);
                continue;
            }
            for on_the_way in (0..PROBES).map(|probe| place(id, probe)).take_while(|passed| *passed != at) {
                if let Some(passed) = passed.get_mut(on_the_way as usize) {
                    *passed = true;
                }
            }
        }
        for (at, passed) in (0..ROOM).zip(passed) {
            let slot = self.slot(at);
            if !passed && slot.load(Ordering::Relaxed) == REMOVED {
                slot.store(0, Ordering::Relaxed);
            }
        }
    }

    fn slot(&self, at: u32) -> &AtomicU64 {
        let at = (at % ROOM) as usize;
        // SAFETY: `at` is below `ROOM`, the number of mapped words, and the mapping lives as long
        // as this value. The program reads each word whole.
        unsafe { AtomicU64::from_ptr(self.0.as_ptr().cast::<u64>().add(at)) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};

    use super::*;

    impl Watched {
        /// Returns an empty set in memory that no program shares.
        pub(crate) fn alone() -> Self {
            // SAFETY: takes a name and flags, and returns a new descriptor or -1.
            let fd = unsafe { libc::memfd_create(c"watched".as_ptr(), libc::MFD_CLOEXEC) };
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            // SAFETY: a new descriptor, which nothing else owns.
            let file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
            file.set_len(u64::from(ROOM) * 8).unwrap();
            Self::map(file.as_fd()).unwrap()
        }

        /// Searches as the program does.
        pub(crate) fn contains(&self, id: u64) -> bool {
            let mut found = (0..PROBES).map(|probe| self.slot(place(id, probe)).load(Ordering::Relaxed));
            found.find(|found| *found == id || *found == 0) == Some(id)
        }

        /// Returns the number of entries that are free.
        pub(crate) fn free(&self) -> usize {
            (0..ROOM).filter(|at| self.slot(*at).load(Ordering::Relaxed) == 0).count()
        }
    }

    #[test]
    fn ids_come_and_go_for_ever() {
        let set = Watched::alone();
        // Half of the room at a time, ten times the room in total.
        let half = u64::from(ROOM) / 2;
        for round in 0..20 {
            let ids = round * half + 1..=(round + 1) * half;
            set.retain(|id| ids.contains(&(id + half)) && id % 16 == 0);
            let kept = ids.clone().filter_map(|id| id.checked_sub(half)).filter(|id| *id > 0 && id % 16 == 0);
            for id in kept {
                assert!(set.contains(id), "{id} was kept in round {round}");
            }
            set.retain(|id| ids.contains(&id));
            for id in ids.clone() {
                assert!(set.add(id), "no room for {id} in round {round}");
            }
            assert!(ids.clone().all(|id| set.contains(id)));
            assert!((round == 0 || !set.contains(ids.start() - 1)) && !set.contains(ids.end() + 1));
        }
        set.retain(|_| false);
        assert_eq!(set.free(), ROOM as usize, "a set without ids costs searches nothing");
    }

    #[test]
    fn a_full_set_empties() {
        let set = Watched::alone();
        let fitted: Vec<u64> = (1..=3 * u64::from(ROOM)).filter(|id| set.add(*id)).collect();
        assert_eq!(set.free(), 0);
        assert!(fitted.iter().all(|id| set.contains(*id)));
        set.retain(|id| id % 2 == 0);
        assert!(fitted.iter().all(|id| set.contains(*id) == (id % 2 == 0)));
        // An id that is added again is there once.
        for id in fitted.iter().filter(|id| *id % 2 == 0) {
            assert!(set.add(*id));
        }
        set.retain(|_| false);
        assert!(fitted.iter().all(|id| !set.contains(*id)));
        assert_eq!(set.free(), ROOM as usize);
    }
}
