//! Cgroup ids to paths, and paths to ids.
//!
//! The id of a cgroup is the inode number of its directory. Ids are unique within a hierarchy only,
//! and a machine may have several: the v2 one, whose ids the BPF helpers give, and a v1 one that
//! the perf_event controller is bound to, whose ids `PERF_SAMPLE_CGROUP` gives. [`Cgroups::report`]
//! says which case holds.
//!
//! In a cgroup namespace the mount shows the namespace's root as `/`: paths and levels count from
//! there, and a filter by level must not be built from inside one.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use precise_model::Reason;

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;

/// How often an unknown id makes the tree be walked again.
const REWALK: Duration = Duration::from_secs(1);
/// Cgroups that are visited in one walk.
const MAX_WALK: usize = 1 << 16;
/// Cgroups that are remembered, unless there are more at one time; and as many from before.
const MAX_KNOWN: usize = 1 << 12;

/// A tree of cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hierarchy {
    /// The unified one.
    V2,
    /// The one that the perf_event controller is on: v1's own, or the unified one.
    PerfEvent,
}

/// Where the perf_event controller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfEventOn {
    /// On the unified hierarchy: ids of samples and of helpers are the same.
    V2,
    /// On a v1 hierarchy of its own.
    V1 {
        /// Where it is mounted; without a mount its ids have no names.
        mount: Option<PathBuf>,
    },
    /// On none that is known: neither hierarchy is mounted, or the kernel lacks the controller.
    Nowhere,
}

/// Which hierarchies there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Where the unified hierarchy is mounted.
    pub v2: Option<PathBuf>,
    /// Where the perf_event controller is.
    pub perf_event: PerfEventOn,
}

/// One cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its id.
    pub id: u64,
    /// Path from the root of its hierarchy: `/system.slice/nginx.service`.
    pub path: Arc<str>,
    /// Steps below the root, which is 0: what `bpf_get_current_ancestor_cgroup_id` takes.
    pub level: u32,
}

/// What patterns of a hierarchy's paths are relative to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Mounted {
    /// Where it is mounted: a pattern may begin with it. Empty: it may not.
    pub point: String,
}

impl Mounted {
    /// A pattern from the root of the hierarchy.
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
    /// Where it is.
    point: PathBuf,
    /// The cgroup that is mounted there: `/`, or a subtree.
    top: String,
}

/// What is known of one hierarchy.
#[derive(Debug, Default)]
struct Tree {
    mount: Option<Mount>,
    /// Also what has vanished: its samples may still be to come.
    known: FxHashMap<u64, Cgroup>,
    /// What was known before there was too much of it: most of it has vanished.
    older: FxHashMap<u64, Cgroup>,
    /// Cgroups that there were at the last walk.
    alive: usize,
    walked: Option<Instant>,
}

/// The cgroups of this machine.
#[derive(Debug)]
pub struct Cgroups {
    root: PathBuf,
    report: Report,
    v2: Tree,
    /// Only where it is not the unified one.
    v1: Option<Tree>,
    rewalk: Duration,
}

impl Cgroups {
    /// Finds the hierarchies by `proc/self/mountinfo` and `proc/cgroups` below `root`.
    pub fn open(root: &Path) -> io::Result<Self> {
        let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo"))?;
        let controllers = std::fs::read_to_string(root.join("proc/cgroups")).unwrap_or_default();
        let v2 = find_mount(&mounts, "cgroup2", |_| true);
        let v1 = find_mount(&mounts, "cgroup", |options| options.split(',').any(|o| o == "perf_event"));
        let perf_event = match (perf_event_hierarchy(&controllers), &v1) {
            (_, Some(mount)) => PerfEventOn::V1 { mount: Some(mount.point.clone()) },
            (Some(hierarchy), None) if hierarchy != 0 => PerfEventOn::V1 { mount: None },
            // Newer kernels list only what can be on v1.
            _ if v2.is_some() => PerfEventOn::V2,
            _ => PerfEventOn::Nowhere,
        };
        let report = Report { v2: v2.as_ref().map(|mount| mount.point.clone()), perf_event };
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

    /// Those of a recording: only what [`Self::made`] tells.
    pub fn recorded() -> Self {
        Self {
            root: PathBuf::new(),
            report: Report { v2: None, perf_event: PerfEventOn::Nowhere },
            v2: Tree::default(),
            v1: None,
            rewalk: REWALK,
        }
    }

    /// Which hierarchies there are.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Walks all trees now, so that cgroups which vanish later have names.
    pub fn refresh(&mut self) {
        self.v2.walk(&self.root);
        if let Some(tree) = &mut self.v1 {
            tree.walk(&self.root);
        }
    }

    /// Path of the cgroup `id`. An unknown id makes the tree be walked again, though not more than
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

    /// Remembers a cgroup of the perf_event controller's hierarchy that the kernel says was made:
    /// it may be gone before the tree is walked again.
    pub fn made(&mut self, id: u64, path: &str) {
        let (_, tree) = self.tree(Hierarchy::PerfEvent);
        let level = path.trim_end_matches('/').matches('/').count() as u32;
        tree.remember([Cgroup { id, path: path.into(), level }]);
    }

    /// The cgroups there are now whose path matches `pattern`, by path. `*` stands for any text
    /// within one step of the path, `**` for any text, `?` for one character. The path may begin
    /// with the mount point.
    pub fn find(&mut self, hierarchy: Hierarchy, pattern: &str) -> Vec<Cgroup> {
        let pattern = self.mounted(hierarchy).pattern(pattern);
        let mut found = self.all(hierarchy);
        found.retain(|cgroup| matches(pattern.as_bytes(), cgroup.path.as_bytes()));
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    /// The cgroups there are now.
    pub fn all(&mut self, hierarchy: Hierarchy) -> Vec<Cgroup> {
        let (root, tree) = self.tree(hierarchy);
        tree.walk(root)
    }

    /// What patterns of its paths are relative to.
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
    /// What is known of a cgroup. What is asked for is not forgotten next.
    fn find(&mut self, id: u64) -> Option<Cgroup> {
        if let Some(cgroup) = self.known.get(&id) {
            return Some(cgroup.clone());
        }
        let cgroup = self.older.remove(&id)?;
        self.remember([cgroup.clone()]);
        Some(cgroup)
    }

    /// Remembers some; where there are too many, those from before the last time that there were
    /// are forgotten.
    fn remember(&mut self, found: impl IntoIterator<Item = Cgroup>) {
        if self.known.len() >= MAX_KNOWN.max(2 * self.alive) {
            self.older = std::mem::take(&mut self.known);
            // Whoever is alive and forgotten is found again at once.
            self.walked = None;
        }
        self.known.extend(found.into_iter().map(|cgroup| (cgroup.id, cgroup)));
    }

    /// Visits every cgroup, remembers them, and returns them.
    fn walk(&mut self, root: &Path) -> Vec<Cgroup> {
        let Some(mount) = &self.mount else {
            self.walked = Some(Instant::now());
            return Vec::new();
        };
        let top = mount.top.trim_end_matches('/').to_owned();
        let level = top.matches('/').count() as u32;
        let point = root.join(mount.point.strip_prefix("/").unwrap_or(&mount.point));
        let mut found = Vec::new();
        let mut pending = vec![(point, top, level)];
        while let Some((dir, path, level)) = pending.pop() {
            // One that vanishes meanwhile is passed over.
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

/// The hierarchy number of perf_event in `/proc/cgroups`; 0 is the unified one.
fn perf_event_hierarchy(controllers: &str) -> Option<u32> {
    let line = controllers.lines().find_map(|line| line.strip_prefix("perf_event"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The mount of file system `kind` whose super options satisfy `wanted`; one of the whole hierarchy
/// before one of a part.
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

/// Undoes the kernel's octal escapes of space, tab, newline and backslash.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// Whether `text` matches `pattern`. Takes time proportional to the product of their lengths,
/// whatever the stars.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // `reach[n]`: the pattern so far matches the first n bytes of the text.
    let mut reach = vec![false; text.len() + 1];
    if let Some(first) = reach.first_mut() {
        *first = true;
    }
    let mut rest = pattern;
    while let Some((&byte, tail)) = rest.split_first() {
        let (any_depth, star) = (rest.starts_with(b"**"), byte == b'*');
        rest = if any_depth { tail.get(1..).unwrap_or_default() } else { tail };
        let mut before = false;
        for (n, here) in reach.iter_mut().enumerate() {
            // `before`: for a star, whether it reaches up to n - 1; for a character, whether the
            // pattern before it does.
            let last = n.checked_sub(1).and_then(|at| text.get(at)).copied();
            let was = *here;
            if star {
                *here |= before && last.is_some_and(|b| any_depth || b != b'/');
                before = *here;
            } else {
                *here = before && last.is_some_and(|b| b == byte || (byte == b'?' && b != b'/'));
                before = was;
            }
        }
    }
    reach.last().copied().unwrap_or(false)
}
