//! Cgroups to the names that people use: units, containers, pods.
//!
//! A path has ids (`path`); names are in what runtimes and the kubelet keep on disk (`state`). No
//! daemon is asked: that would need its socket, which is as good as root, and its time.

mod path;
mod state;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Instant};

use rustc_hash::FxHashMap;

use self::{path::of_path, state::Disk};
use crate::machine::Root;
use precise_model::Owner;

/// Cgroups that are remembered: some 3 MB at most. A node that makes more in one run names them
/// anew.
const MAX_KNOWN: usize = 1 << 13;

/// The owners of cgroups.
#[derive(Debug)]
pub struct Owners {
    /// `None`: of a recording, of which only the paths are known.
    disk: Option<Disk>,
    known: FxHashMap<Arc<str>, Option<Arc<Owner>>>,
}

impl Owners {
    /// With the names that are on disk below `root`.
    pub fn new(root: Root) -> Self {
        Self { disk: Some(Disk::new(root)), known: FxHashMap::default() }
    }

    /// Of a recording: what the paths say.
    pub fn recorded() -> Self {
        Self { disk: None, known: FxHashMap::default() }
    }

    /// The same, asked of the disk again where names were missing: a container has its name only
    /// after its cgroup.
    pub fn now(&mut self, path: &str) -> Option<Arc<Owner>> {
        let nameless = |owner: &Arc<Owner>| {
            owner.container_id.is_some() && owner.container.is_none()
                || owner.pod_uid.is_some() && owner.pod.is_none()
        };
        if self.known.get(path).is_some_and(|known| known.as_ref().is_some_and(nameless)) {
            self.known.remove(path);
        }
        self.of(path)
    }

    /// Whom the cgroup of a path belongs to; `None` for one that is nobody's, as the root is.
    pub fn of(&mut self, path: &str) -> Option<Arc<Owner>> {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let owner = of_path(path).map(|found| {
            let mut owner = found.owner;
            if let Some(disk) = &mut self.disk {
                disk.complete(&mut owner, Instant::now());
            }
            owner.name = named(&owner, found.inner);
            Arc::new(owner)
        });
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(path.into(), owner.clone());
        owner
    }
}

/// The shortest text that tells it from others, as far as that is known: names before ids, and ids
/// cut to what people type.
fn named(owner: &Owner, inner: &str) -> String {
    let short = |id: &str| id.get(..12).filter(|_| id.len() == 64).unwrap_or(id).to_owned();
    let container = owner.container.clone().or_else(|| owner.container_id.as_deref().map(short));
    let pod = match (&owner.namespace, &owner.pod, &owner.pod_uid) {
        (Some(namespace), Some(pod), _) => Some(format!("{namespace}/{pod}")),
        (None, Some(pod), _) => Some(pod.clone()),
        (_, None, Some(uid)) => Some(format!("pod {uid}")),
        (_, None, None) => None,
    };
    let name = match (pod, container, &owner.runtime, &owner.unit) {
        (Some(pod), Some(container), ..) => format!("{pod}/{container}"),
        (Some(pod), None, ..) => pod,
        (None, Some(container), Some(runtime), _) => format!("{container} ({runtime})"),
        (None, Some(container), None, _) => container,
        (None, None, _, Some(unit)) => unit.clone(),
        (None, None, _, None) => String::new(),
    };
    // A container that has cgroups of its own: which one.
    if inner.is_empty() { name } else { format!("{name} :{inner}") }
}
