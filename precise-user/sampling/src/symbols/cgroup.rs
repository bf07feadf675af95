//! Lookup of cgroup paths by id, and of cgroups by path.
//!
//! The id of a cgroup is the inode number of its directory. Ids are unique only within a hierarchy,
//! and a machine may have several hierarchies: the v2 hierarchy, whose ids the BPF helpers return,
//! and a v1 hierarchy with the perf_event controller, whose ids `PERF_SAMPLE_CGROUP` contains.
//! [`Cgroups::report`] returns which of them this machine has.
//!
//! In a cgroup namespace the mount shows the root of the namespace as `/`. Paths and levels count
//! from there, so a filter by level must not be built inside such a namespace.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::recent::Recent;
use precise_filter::pattern::matches;
use precise_model::{CompactSort as _, Reason};

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;

/// The shortest time between two walks of the tree because of an unknown id.
const REWALK: Duration = Duration::from_secs(1);
/// Maximum number of cgroups that one walk visits.
const MAX_WALK: usize = 1 << 16;
/// Number of cgroups that are kept, unless more exist at a time; the same number of older ones is
/// kept as well.
const MAX_KNOWN: usize = 1 << 12;

/// A cgroup hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hierarchy {
    /// The unified hierarchy (v2).
    V2,
    /// The hierarchy with the perf_event controller: a v1 hierarchy, or the unified one.
    PerfEvent,
}

/// The hierarchy that the perf_event controller is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfEventOn {
    /// The unified hierarchy. Cgroup ids in samples and from BPF helpers are the same.
    V2,
    /// A v1 hierarchy.
    V1 {
        /// The mount point; `None` if it is not mounted: its ids then have no names.
        mount: Option<PathBuf>,
    },
    /// Unknown: neither hierarchy is mounted, or the kernel lacks the controller.
    Nowhere,
}

/// The cgroup hierarchies of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupTree {
    /// Mount point of the unified hierarchy; `None` if it is not mounted.
    pub v2: Option<PathBuf>,
    /// The hierarchy with the perf_event controller.
    pub perf_event: PerfEventOn,
}

/// A cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// The id: the inode number of its directory.
    pub id: u64,
    /// Path from the root of its hierarchy: `/system.slice/nginx.service`.
    pub path: Arc<str>,
    /// Level: the number of steps below the root, which has level 0.
    /// `bpf_get_current_ancestor_cgroup_id` takes this number.
    pub level: u32,
}

/// The mount point of a hierarchy, against which patterns are resolved.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Mounted {
    /// The mount point, which a pattern may begin with; empty if the hierarchy is not mounted.
    pub point: String,
}

impl Mounted {
    /// Returns the pattern relative to the root of the hierarchy.
    pub fn pattern(&self, pattern: &str) -> String {
        let inside = pattern
            .strip_prefix(&self.point)
            .filter(|rest| !self.point.is_empty() && (rest.is_empty() || rest.starts_with('/')));
        format!("/{}", inside.unwrap_or(pattern).trim_matches('/'))
    }
}

/// A mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// The mount point.
    point: PathBuf,
    /// The cgroup that is mounted there: `/`, or the root of a subtree.
    top: String,
}

impl Mount {
    /// Returns the folder of the mount point below `root`.
    fn dir(&self, root: &Path) -> PathBuf {
        root.join(self.point.strip_prefix("/").unwrap_or(&self.point))
    }
}

/// The known cgroups of one hierarchy.
#[derive(Debug, Default)]
struct Tree {
    mount: Option<Mount>,
    /// Known cgroups by id, including removed ones, because their samples may still arrive.
    known: Recent<u64, Cgroup>,
    /// Number of cgroups at the last walk.
    alive: usize,
    walked: Option<Instant>,
}

/// The cgroups of this machine.
#[derive(Debug)]
pub struct Cgroups {
    root: PathBuf,
    report: CgroupTree,
    v2: Tree,
    /// The v1 hierarchy with the perf_event controller; `None` if the controller is on the unified
    /// hierarchy.
    v1: Option<Tree>,
    rewalk: Duration,
}

impl Cgroups {
    /// Finds the hierarchies in `proc/self/mountinfo` and `proc/cgroups` below `root`, and walks
    /// them.
    pub fn open(root: &Path) -> io::Result<Self> {
        let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo"))?;
        let controllers = std::fs::read_to_string(root.join("proc/cgroups")).unwrap_or_default();
        let v2 = find_mount(&mounts, "cgroup2", |_| true);
        let v1 = find_mount(&mounts, "cgroup", |options| options.split(',').any(|o| o == "perf_event"));
        let perf_event = match (perf_event_hierarchy(&controllers), &v1) {
            (_, Some(mount)) => PerfEventOn::V1 { mount: Some(mount.point.clone()) },
            (Some(hierarchy), None) if hierarchy != 0 => PerfEventOn::V1 { mount: None },
            // Newer kernels list only controllers that can be on v1.
            _ if v2.is_some() => PerfEventOn::V2,
            _ => PerfEventOn::Nowhere,
        };
        let report = CgroupTree { v2: v2.as_ref().map(|mount| mount.point.clone()), perf_event };
        let on_v1 = matches!(report.perf_event, PerfEventOn::V1 { .. });
        let mut cgroups = Self {
            root: root.to_owned(),
            report,
            v2: Tree { mount: v2, ..Tree::default() },
            v1: on_v1.then(|| Tree { mount: v1, ..Tree::default() }),
            rewalk: REWALK,
        };
        cgroups.refresh();
        Ok(cgroups)
    }

    /// Returns the cgroups of a recording: empty, until [`Self::made`] adds some.
    pub fn recorded() -> Self {
        Self {
            root: PathBuf::new(),
            report: CgroupTree { v2: None, perf_event: PerfEventOn::Nowhere },
            v2: Tree::default(),
            v1: None,
            rewalk: REWALK,
        }
    }

    /// Returns which hierarchies the machine has.
    pub fn report(&self) -> &CgroupTree {
        &self.report
    }

    /// Walks all trees now, so that cgroups that are removed later still have names.
    pub fn refresh(&mut self) {
        self.v2.walk(&self.root);
        if let Some(tree) = &mut self.v1 {
            tree.walk(&self.root);
        }
    }

    /// Forgets the cgroups that have been removed and that nobody asked for since the last call.
    pub fn forget_unused(&mut self) {
        self.v2.forget_unused(&self.root);
        if let Some(tree) = &mut self.v1 {
            tree.forget_unused(&self.root);
        }
    }

    /// Returns the path of the cgroup `id`. For an unknown id the tree is walked again, but at most
    /// once a second.
    pub fn path(&mut self, hierarchy: Hierarchy, id: u64) -> Result<Arc<str>, Reason> {
        let rewalk = self.rewalk;
        let (root, tree) = self.tree(hierarchy);
        if let Some(cgroup) = tree.find(id) {
            return Ok(cgroup.path);
        }
        if id != 0 && tree.walked.is_none_or(|at| at.elapsed() >= rewalk) {
            tree.walk(root);
        }
        tree.find(id).map(|cgroup| cgroup.path).ok_or(Reason::CgroupGone)
    }

    /// Adds a new cgroup that the kernel reported for the perf_event controller's hierarchy: it may
    /// be removed before the tree is walked again.
    pub fn made(&mut self, id: u64, path: &str) {
        let (_, tree) = self.tree(Hierarchy::PerfEvent);
        let level = path.trim_end_matches('/').matches('/').count() as u32;
        tree.remember([Cgroup { id, path: path.into(), level }]);
    }

    /// Returns the existing cgroups whose path matches `pattern`, sorted by path. `*` matches any
    /// text within one step of the path, `**` any text, `?` one character. The pattern may begin
    /// with the mount point.
    pub fn find(&mut self, hierarchy: Hierarchy, pattern: &str) -> Vec<Cgroup> {
        let pattern = self.mounted(hierarchy).pattern(pattern);
        let mut found = self.all(hierarchy);
        found.retain(|cgroup| matches(pattern.as_bytes(), cgroup.path.as_bytes()));
        found.compact_sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    /// Returns the existing cgroups.
    pub fn all(&mut self, hierarchy: Hierarchy) -> Vec<Cgroup> {
        let (root, tree) = self.tree(hierarchy);
        tree.walk(root)
    }

    /// Returns whether a cgroup that a walk did not find exists: a walk is bounded. A cgroup that
    /// cannot be examined counts as existing.
    pub fn exists(&mut self, hierarchy: Hierarchy, id: u64, path: &str) -> bool {
        let (root, tree) = self.tree(hierarchy);
        let Some(mount) = &tree.mount else { return false };
        let inside = path.strip_prefix(mount.top.trim_end_matches('/')).unwrap_or(path);
        let dir = mount.dir(root).join(inside.trim_start_matches('/'));
        match std::fs::symlink_metadata(dir) {
            Ok(stat) => stat.ino() == id,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Returns the mount point of a hierarchy, against which patterns are resolved.
    pub fn mounted(&self, hierarchy: Hierarchy) -> Mounted {
        let tree = match (hierarchy, &self.v1) {
            (Hierarchy::PerfEvent, Some(tree)) => tree,
            _ => &self.v2,
        };
        let point = tree.mount.as_ref().map(|mount| mount.point.to_string_lossy().into_owned());
        Mounted { point: point.unwrap_or_default() }
    }

    fn tree(&mut self, hierarchy: Hierarchy) -> (&Path, &mut Tree) {
        let tree = match (hierarchy, &mut self.v1) {
            (Hierarchy::PerfEvent, Some(tree)) => tree,
            _ => &mut self.v2,
        };
        (&self.root, tree)
    }
}

impl Tree {
    /// Returns a known cgroup, and keeps it from being discarded next.
    fn find(&mut self, id: u64) -> Option<Cgroup> {
        self.known.get(&id).cloned()
    }

    /// Adds cgroups, and discards the least recently used ones when there are too many.
    fn remember(&mut self, found: impl IntoIterator<Item = Cgroup>) {
        if self.known.bound(MAX_KNOWN.max(2 * self.alive)) {
            // A live cgroup that was discarded is found by a walk, which is allowed at once.
            self.walked = None;
        }
        found.into_iter().for_each(|cgroup| self.known.insert(cgroup.id, cgroup));
    }

    /// Discards cgroups that have been removed and that nobody asked for since the last call.
    fn forget_unused(&mut self, root: &Path) {
        self.known.turn();
        self.walk(root);
    }

    /// Visits all cgroups, adds them to the known ones, and returns them.
    fn walk(&mut self, root: &Path) -> Vec<Cgroup> {
        let Some(mount) = &self.mount else {
            self.walked = Some(Instant::now());
            return Vec::new();
        };
        let top = mount.top.trim_end_matches('/').to_owned();
        let level = top.matches('/').count() as u32;
        let point = mount.dir(root);
        let mut found = Vec::new();
        let mut pending = vec![(point, top, level)];
        while let Some((dir, path, level)) = pending.pop() {
            // A cgroup that is removed during the walk is skipped.
            let Ok(stat) = std::fs::symlink_metadata(&dir) else { continue };
            let shown = if path.is_empty() { "/" } else { &path };
            found.push(Cgroup { id: stat.ino(), path: shown.into(), level });
            let Ok(entries) = std::fs::read_dir(&dir) else { continue };
            for entry in entries.flatten() {
                if found.len() + pending.len() < MAX_WALK && entry.file_type().is_ok_and(|kind| kind.is_dir())
                {
                    let name = entry.file_name();
                    pending.push((entry.path(), format!("{path}/{}", name.to_string_lossy()), level + 1));
                }
            }
        }
        self.alive = found.len();
        self.remember(found.iter().cloned());
        self.walked = Some(Instant::now());
        found
    }
}

/// Returns the hierarchy number of perf_event in `/proc/cgroups`; 0 is the unified hierarchy.
fn perf_event_hierarchy(controllers: &str) -> Option<u32> {
    let line = controllers.lines().find_map(|line| line.strip_prefix("perf_event"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns a mount of the file system `kind` whose super options satisfy `wanted`. Prefers a mount
/// of the whole hierarchy to a mount of a subtree.
fn find_mount(mountinfo: &str, kind: &str, wanted: impl Fn(&str) -> bool) -> Option<Mount> {
    let mounts = mountinfo.lines().filter_map(|line| {
        // id parent major:minor root point options tags… - type source super-options
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (top, point) = (unescape(left.next()?), unescape(left.next()?));
        let mut right = right.split(' ');
        let is_kind = right.next()? == kind;
        let options = right.nth(1)?;
        (is_kind && wanted(options)).then(|| Mount { point: point.into(), top })
    });
    mounts.min_by_key(|mount| mount.top.trim_end_matches('/').matches('/').count())
}

/// Decodes the kernel's octal escapes of space, tab, newline and backslash.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}
