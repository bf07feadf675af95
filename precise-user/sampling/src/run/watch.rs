//! The thread that finds the cgroups that a filter matches, including those created during the run.
//!
//! If the perf_event controller is on the v2 hierarchy, the kernel reports new cgroups
//! (`PERF_RECORD_CGROUP`). The thread still walks the tree once a second: for other machines, and
//! because a container gets its name some time after its cgroup.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustc_hash::FxHashSet;

use super::event_filter::open_cgroups;
use crate::error::{ErrorClass, SamplingError};
use crate::kernel::watched::Watched;
use crate::machine::Root;
use crate::rights;
use crate::symbols::cgroup::{Cgroups, Hierarchy, Mounted, PerfEventOn};
use crate::symbols::container::Owners;
use crate::symbols::pattern::Pattern;
use precise_records::record::{IdentifiedRecord, Record};

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
        let cgroups = open_cgroups().map_err(|error| {
            SamplingError::new(ErrorClass::Failed, "cannot list the cgroups").because(error)
        })?;
        let mut worker = CgroupWatcher {
            patterns,
            sets,
            kernel_tells: cgroups.report().perf_event == PerfEventOn::V2,
            mounted: cgroups.mounted(Hierarchy::V2),
            cgroups,
            owners: Owners::new(Root::default()),
            added: FxHashSet::default(),
            full: 0,
        };
        rights::raised_for_names(|| worker.walk());
        let (tell, told) = channel::<(u64, String)>();
        let body = move || rights::raised_for_names(|| worker.follow(&told));
        let thread = std::thread::Builder::new().name("cgroups".into()).spawn(body).map_err(|error| {
            SamplingError::new(ErrorClass::Failed, "cannot start the thread that watches the cgroups")
                .because(error)
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
    added: FxHashSet<u64>,
    full: u64,
}

impl CgroupWatcher {
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
        for cgroup in self.cgroups.all(Hierarchy::V2) {
            self.look(cgroup.id, &cgroup.path);
        }
    }

    fn look(&mut self, id: u64, path: &str) {
        if self.added.contains(&id) {
            return;
        }
        let Self { patterns, owners, mounted, .. } = self;
        let meant = patterns.iter().any(|pattern| pattern.holds(path, mounted, || owners.now(path)));
        if meant && self.added.insert(id) {
            let kept = self.sets.iter().filter(|set| set.add(id)).count();
            self.full += u64::from(kept < self.sets.len());
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let patterns: Vec<&str> = self.patterns.iter().map(Pattern::text).collect();
        notes.push(format!("-G {}: {} cgroups matched in total", patterns.join(", -G "), self.added.len()));
        if self.full > 0 {
            notes.push(format!(
                "{} of the cgroups did not fit in the filter, so their samples are missing",
                self.full
            ));
        }
        notes
    }
}
