//! Opens perf maps (`/tmp/perf-PID.map`), in which a JIT lists the code that it generates. The
//! reader reads them.
//!
//! A map stays open, so that its names remain available after the process has exited.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::opening::{open_in_root, open_regular};
use super::procfs;
use crate::reader::Reader;
use crate::reader::protocol::FileId;

/// Maximum number of processes whose maps are held.
const MAX_PROCESSES: usize = 256;

/// The perf map of one process, if it has one.
#[derive(Debug)]
struct PerfMap {
    open: Option<(FileId, File)>,
    last_batch: u64,
}

/// Perf maps by process and generation.
#[derive(Debug)]
pub struct PerfMaps {
    proc: PathBuf,
    maps: FxHashMap<(u32, u64), PerfMap>,
    batch: u64,
    /// The batch of the last [`PerfMaps::forget_unused`].
    turned: u64,
}

impl PerfMaps {
    /// Creates an empty set of maps for the processes below `proc`.
    pub fn new(proc: PathBuf) -> Self {
        // Of its full size from the start: it is 10 KB, and a table that doubles leaves a hole.
        let maps = FxHashMap::with_capacity_and_hasher(MAX_PROCESSES, FxBuildHasher);
        Self { proc, maps, batch: 0, turned: 0 }
    }

    /// Begins a batch of queries. A process without a map is looked at once per batch.
    pub fn begin(&mut self) {
        self.batch += 1;
    }

    /// Closes the maps of processes that nobody asked for since the last call.
    pub fn forget_unused(&mut self, reader: &mut Reader) {
        let since = std::mem::replace(&mut self.turned, self.batch);
        let mut closed = Vec::new();
        self.maps.retain(|_, map| {
            let used = map.last_batch > since;
            closed.extend(map.open.as_ref().filter(|_| !used).map(|(id, _)| *id));
            used
        });
        reader.forget(closed);
    }

    /// Returns the map of process `pid`; `None` if it has none.
    pub fn find(&mut self, reader: &mut Reader, pid: u32, generation: u64) -> Option<(FileId, &File)> {
        let key = (pid, generation);
        if !self.maps.contains_key(&key) && self.maps.len() >= MAX_PROCESSES {
            let oldest = self.maps.iter().min_by_key(|(_, m)| m.last_batch).map(|(&k, _)| k)?;
            if let Some((id, _)) = self.maps.remove(&oldest).and_then(|map| map.open) {
                reader.forget(vec![id]);
            }
        }
        let map = self.maps.entry(key).or_insert(PerfMap { open: None, last_batch: 0 });
        if map.last_batch != self.batch {
            map.last_batch = self.batch;
            if map.open.is_none() {
                map.open = open(&self.proc, pid).map(|file| (reader.new_id(), file));
            }
        }
        map.open.as_ref().map(|(id, file)| (*id, file))
    }
}

/// Opens the map of a process. Its name has the pid that the process itself sees, and it is in the
/// `/tmp` that the process sees. As in perf, it is used only if the process's user or root wrote
/// it.
fn open(proc: &Path, pid: u32) -> Option<File> {
    let dir = proc.join(pid.to_string());
    let status = std::fs::read_to_string(dir.join("status")).unwrap_or_default();
    let inner = procfs::field(&status, "NStgid:").and_then(|n| n.parse().ok()).unwrap_or(pid);
    let path = |pid: u32| PathBuf::from(format!("/tmp/perf-{pid}.map"));
    let file = open_in_root(&dir.join("root"), &path(inner)).or_else(|_| open_regular(&path(pid))).ok()?;
    let owner = std::fs::metadata(&dir).map(|stat| stat.uid()).ok();
    let writer = file.metadata().ok()?.uid();
    // A process that has exited has no user to compare with.
    (writer == 0 || owner.is_none_or(|owner| owner == writer)).then_some(file)
}
