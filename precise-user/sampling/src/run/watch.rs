//! The thread that finds the cgroups that a filter matches, including those created during the run.
//!
//! If the perf_event controller is on the v2 hierarchy, the kernel reports new cgroups
//! (`PERF_RECORD_CGROUP`). The thread still walks the tree once a second: for other machines, and
//! because a container gets its name some time after its cgroup. A walk also removes the cgroups
//! that are gone, so the set has room for those that come, however long the run lasts.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustc_hash::{FxHashMap, FxHashSet};

use super::event_filter::open_cgroups;
use crate::error::SamplingError;
use crate::kernel::watched::Watched;
use crate::machine::Root;
use crate::rights;
use crate::symbols::cgroup::{Cgroup, Cgroups, Hierarchy, Mounted, PerfEventOn};
use crate::symbols::container::Owners;
use precise_filter::pattern::Pattern;
use precise_model::digits::counted;
use precise_records::record::{IdentifiedRecord, Record};

/// How long the end of a run waits for the walk that is in progress.
const LAST_WALK: Duration = Duration::from_millis(500);
/// Interval between two walks of the tree.
const WALK: Duration = Duration::from_secs(1);

/// A handle to the thread. The thread ends when the handle is dropped or finished.
#[derive(Debug)]
pub(crate) struct Watch {
    tell: Option<Sender<(u64, String)>>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Watch {
    /// Finds the cgroups that exist now, and starts the thread that watches for new ones. `sets`
    /// holds the cgroup set of each event's program.
    ///
    /// # Errors
    ///
    /// Returns an error if the cgroups cannot be listed, or the thread cannot be started.
    pub fn start(patterns: Vec<Pattern>, sets: Vec<Arc<Watched>>) -> Result<Self, SamplingError> {
        let cgroups =
            open_cgroups().map_err(|error| SamplingError::failed("cannot list the cgroups", error))?;
        let kernel_tells = cgroups.report().perf_event == PerfEventOn::V2;
        let mut worker = CgroupWatcher::new(patterns, sets, cgroups, kernel_tells);
        rights::raised_for_names(|| worker.walk());
        let (tell, told) = channel::<(u64, String)>();
        let body = move || rights::raised_for_names(|| worker.follow(&told));
        let thread = std::thread::Builder::new().name("cgroups".into()).spawn(body).map_err(|error| {
            SamplingError::failed("cannot start the thread that watches the cgroups", error)
        })?;
        Ok(Self { tell: Some(tell), thread: Some(thread) })
    }

    /// Passes the new cgroups among the records to the thread.
    pub fn follow(&self, entries: &[IdentifiedRecord]) {
        let Some(tell) = &self.tell else { return };
        for entry in entries {
            if let Record::Cgroup { id, path } = &entry.record {
                // Sending fails only if the thread has died, and then the walk has ended as well.
                let _dead = tell.send((*id, path.to_string()));
            }
        }
    }

    /// Ends the thread. Returns its notes for the reader of the capture.
    pub fn finish(&mut self) -> Vec<String> {
        self.tell = None;
        let begin = Instant::now();
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            if begin.elapsed() >= LAST_WALK {
                self.thread = None;
                return vec![
                    "the thread that watches the cgroups was still reading them when the run ended"
                        .to_owned(),
                ];
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(notes)) => notes,
            Some(Err(_)) => {
                vec![
                    "the thread that watches the cgroups died, so cgroups created after that are missing"
                        .to_owned(),
                ]
            }
            None => Vec::new(),
        }
    }
}

struct CgroupWatcher {
    patterns: Vec<Pattern>,
    sets: Vec<Arc<Watched>>,
    kernel_tells: bool,
    mounted: Mounted,
    cgroups: Cgroups,
    owners: Owners,
    /// The existing cgroups that match, by id.
    members: FxHashMap<u64, Member>,
    /// Number of cgroups that matched since the start.
    matched: u64,
    /// Number of these that did not fit in every set at first.
    refused: u64,
}

/// A cgroup that matches.
struct Member {
    path: String,
    /// Whether the cgroup is in every set.
    fits: bool,
    /// Whether the last walk did not find the cgroup.
    missed: bool,
}

impl CgroupWatcher {
    fn new(patterns: Vec<Pattern>, sets: Vec<Arc<Watched>>, cgroups: Cgroups, kernel_tells: bool) -> Self {
        Self {
            patterns,
            sets,
            kernel_tells,
            mounted: cgroups.mounted(Hierarchy::V2),
            cgroups,
            owners: Owners::new(Root::default()),
            members: FxHashMap::default(),
            matched: 0,
            refused: 0,
        }
    }

    /// Checks each cgroup that it receives, and walks the tree once a second, until the sender is
    /// gone. Returns the notes.
    fn follow(&mut self, told: &Receiver<(u64, String)>) -> Vec<String> {
        let mut walked = Instant::now();
        loop {
            // Counts from the last walk, not from the last message: otherwise the tree would never
            // be walked on a machine that creates and removes cgroups all the time.
            match told.recv_timeout(WALK.saturating_sub(walked.elapsed())) {
                Ok((id, path)) if self.kernel_tells => self.look(id, &path),
                // The ids belong to another hierarchy; the walk finds the cgroup instead.
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.notes(),
            }
            if walked.elapsed() >= WALK {
                self.walk();
                walked = Instant::now();
            }
        }
    }

    fn walk(&mut self) {
        let alive = self.cgroups.all(Hierarchy::V2);
        self.forget(&alive);
        for cgroup in alive {
            self.look(cgroup.id, &cgroup.path);
        }
    }

    /// Removes the cgroups that are gone. `alive` holds those that a walk found.
    fn forget(&mut self, alive: &[Cgroup]) {
        if self.members.is_empty() {
            return;
        }
        let alive: FxHashSet<u64> = alive.iter().map(|cgroup| cgroup.id).collect();
        let Self { cgroups, members, sets, .. } = self;
        let before = members.len();
        members.retain(|id, member| {
            let missed = !alive.contains(id) && !cgroups.exists(Hierarchy::V2, *id, &member.path);
            // The kernel reports a cgroup before its directory can be seen, so one walk proves
            // nothing.
            let gone = missed && member.missed;
            member.missed = missed;
            !gone
        });
        if members.len() < before {
            sets.iter().for_each(|set| set.retain(|id| members.contains_key(&id)));
        }
    }

    fn look(&mut self, id: u64, path: &str) {
        let Self { patterns, owners, mounted, sets, members, .. } = self;
        let add = || sets.iter().filter(|set| set.add(id)).count() == sets.len();
        if let Some(member) = members.get_mut(&id) {
            // Other cgroups may be gone meanwhile.
            member.fits = member.fits || add();
        } else if patterns
            .iter()
            .any(|pattern| pattern.holds(path, &mounted.pattern(pattern.text()), || owners.now(path)))
        {
            let member = Member { path: path.to_owned(), fits: add(), missed: false };
            self.matched += 1;
            self.refused += u64::from(!member.fits);
            members.insert(id, member);
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let patterns: Vec<&str> = self.patterns.iter().map(Pattern::text).collect();
        notes.push(format!(
            "{} {}: {} matched in total",
            if patterns.len() == 1 { "pattern" } else { "patterns" },
            patterns.join(", "),
            counted(self.matched, "cgroup")
        ));
        if self.refused > 0 {
            notes.push(format!(
                "{} of the cgroups did not fit in the filter until others were gone, so samples of theirs \
                 are missing",
                self.refused
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use precise_common::config::watched::ROOM;

    use super::*;

    const MOUNTS: &str = "35 24 0:30 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n";

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let pods = root.path().join("sys/fs/cgroup/pods");
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        std::fs::write(root.path().join("proc/self/mountinfo"), MOUNTS).unwrap();
        std::fs::create_dir_all(&pods).unwrap();
        (root, pods)
    }

    fn watcher(root: &Path, sets: Vec<Arc<Watched>>) -> CgroupWatcher {
        let cgroups = Cgroups::open(root).unwrap();
        CgroupWatcher::new(vec![Pattern::parse("/pods/*").unwrap()], sets, cgroups, true)
    }

    fn ids(pods: &Path) -> Vec<u64> {
        use std::os::unix::fs::MetadataExt as _;
        pods.read_dir().unwrap().map(|entry| entry.unwrap().metadata().unwrap().ino()).collect()
    }

    /// Days of a node whose pods come and go: more of them than the set has room for, but never
    /// many at a time.
    #[test]
    fn cgroups_that_are_gone_leave_room() {
        const AT_A_TIME: u64 = 1500;
        let (root, pods) = tree();
        let sets = vec![Arc::new(Watched::alone()), Arc::new(Watched::alone())];
        let mut watcher = watcher(root.path(), sets.clone());
        std::fs::create_dir(pods.join("stays")).unwrap();
        watcher.walk();
        let stays = ids(&pods)[0];
        for round in 1..=3 {
            // The kernel reports them, and they are gone before the tree is walked.
            let reported = (round << 40) + 1..=(round << 40) + AT_A_TIME;
            reported.clone().for_each(|id| watcher.look(id, &format!("/pods/{id}")));
            let all_are_in = || sets.iter().all(|set| reported.clone().all(|id| set.contains(id)));
            assert!(all_are_in(), "round {round}");
            watcher.walk();
            assert!(all_are_in(), "one walk proves nothing");
            watcher.walk();
            assert!(watcher.members.keys().eq([&stays]), "round {round}");
            assert!(sets.iter().all(|set| set.contains(stays) && set.free() == ROOM as usize - 1));
        }
        assert_eq!(watcher.notes(), ["pattern /pods/*: 4,501 cgroups matched in total"]);
    }

    #[test]
    fn what_did_not_fit_gets_the_room_of_others() {
        let (root, pods) = tree();
        let set = Arc::new(Watched::alone());
        let mut watcher = watcher(root.path(), vec![set.clone()]);
        // Other cgroups fill the set.
        let others: Vec<u64> = (1 << 40..(1 << 40) + 3 * u64::from(ROOM)).filter(|id| set.add(*id)).collect();
        for id in others {
            watcher.members.insert(id, Member { path: "/pods/x".to_owned(), fits: true, missed: false });
        }
        std::fs::create_dir(pods.join("late")).unwrap();
        watcher.walk();
        let late = ids(&pods)[0];
        assert!(!set.contains(late));
        watcher.walk();
        assert!(set.contains(late) && watcher.members.len() == 1);
        assert_eq!((watcher.matched, watcher.refused), (1, 1));
        assert!(watcher.notes()[1].contains("did not fit"), "{:?}", watcher.notes());
    }

    /// A walk visits a bounded number of cgroups.
    #[test]
    fn what_a_walk_did_not_visit_is_not_gone() {
        let (root, pods) = tree();
        let set = Arc::new(Watched::alone());
        let mut watcher = watcher(root.path(), vec![set.clone()]);
        std::fs::create_dir(pods.join("deep")).unwrap();
        watcher.walk();
        let deep = ids(&pods)[0];
        for _ in 0..3 {
            watcher.forget(&[]);
        }
        assert!(set.contains(deep));
    }
}
