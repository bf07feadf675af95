//! The thread that finds cgroups which a filter means, also those that are made while the run goes
//! on.
//!
//! The kernel says which cgroups are made (`PERF_RECORD_CGROUP`) where the perf_event controller is
//! on the v2 hierarchy; the tree is walked once a second all the same: for the other machines, and
//! because a container has its name only some time after its cgroup.

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

/// How often the tree is walked.
const WALK: Duration = Duration::from_secs(1);

/// The thread. It ends when this is dropped or finished.
#[derive(Debug)]
pub(crate) struct Watch {
    tell: Option<Sender<(u64, String)>>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Watch {
    /// Finds what there is now, and watches from then on. `sets` are those of each event's program.
    ///
    /// # Errors
    ///
    /// When the cgroups cannot be found, or no thread can be started.
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

    /// Tells it of the cgroups that were made.
    pub fn follow(&self, entries: &[IdentifiedRecord]) {
        let Some(tell) = &self.tell else { return };
        for entry in entries {
            if let Record::Cgroup { id, path } = &entry.record {
                // It only ends before its time when it dies, and then the walk has died with it.
                let _dead = tell.send((*id, path.to_string()));
            }
        }
    }

    /// Ends it. What the reader of the capture should know.
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
    /// Looks at each cgroup that it is told of, and walks the tree once a second, until the sender
    /// is gone. Returns the notes.
    fn follow(&mut self, told: &Receiver<(u64, String)>) -> Vec<String> {
        let mut walked = Instant::now();
        loop {
            // Not a second after the last message: where cgroups come and go all the time, it would
            // never be walked.
            match told.recv_timeout(WALK.saturating_sub(walked.elapsed())) {
                Ok((id, path)) if self.kernel_tells => self.look(id, &path),
                // Ids of another hierarchy say nothing of this one, which is walked in time.
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
