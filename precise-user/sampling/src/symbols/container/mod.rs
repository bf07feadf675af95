//! The owners of cgroups, by the names that people use: units, containers, pods.
//!
//! The path of a cgroup contains ids (`path`); names are in the files of container runtimes and of
//! the kubelet (`state`). No daemon is asked: that would need access to its socket, which is
//! equivalent to root, and would cost its time.

mod path;
mod state;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Instant};

use self::{path::of_path, state::Disk};
use super::recent::Recent;
use crate::machine::Root;
use precise_model::Owner;

/// Maximum number of cgroups since the last turn that are kept: with older ones about 3 MB.
const MAX_KNOWN: usize = 1 << 12;

/// The owners of cgroups, by path.
#[derive(Debug)]
pub struct Owners {
    /// The names on disk; `None` for a recording, of which only the paths are known.
    disk: Option<Disk>,
    known: Recent<Arc<str>, Option<Arc<Owner>>>,
}

impl Owners {
    /// Creates a lookup that also uses the names on disk below `root`.
    pub fn new(root: Root) -> Self {
        Self { disk: Some(Disk::new(root)), known: Recent::default() }
    }

    /// Creates a lookup for a recording, which uses only the paths.
    pub fn recorded() -> Self {
        Self { disk: None, known: Recent::default() }
    }

    /// Returns the owner as [`Self::of`] does, but reads the disk again if names were missing: a
    /// container gets its name some time after its cgroup.
    pub fn now(&mut self, path: &str) -> Option<Arc<Owner>> {
        let nameless = |owner: &Arc<Owner>| {
            owner.container_id.is_some() && owner.container.is_none()
                || owner.pod_uid.is_some() && owner.pod.is_none()
        };
        let path: Arc<str> = path.into();
        if self.known.get(&path).is_some_and(|known| known.as_ref().is_some_and(nameless)) {
            self.known.remove(&path);
        }
        self.of_shared(path)
    }

    /// Returns the owner of the cgroup with this path; `None` if it has no owner, such as the root.
    pub fn of(&mut self, path: &str) -> Option<Arc<Owner>> {
        self.of_shared(path.into())
    }

    /// Forgets the cgroups that nobody asked for since the last call.
    pub fn forget_unused(&mut self) {
        self.known.turn();
    }

    fn of_shared(&mut self, path: Arc<str>) -> Option<Arc<Owner>> {
        if let Some(known) = self.known.get(&path) {
            return known.clone();
        }
        let owner = of_path(&path).map(|found| {
            let mut owner = found.owner;
            if let Some(disk) = &mut self.disk {
                disk.complete(&mut owner, Instant::now());
            }
            owner.name = named(&owner, found.inner);
            Arc::new(owner)
        });
        self.known.bound(MAX_KNOWN);
        self.known.insert(path, owner.clone());
        owner
    }
}

/// Returns the shortest name that distinguishes the owner from others: names rather than ids, and
/// ids shortened to the length that people type.
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
    // If the container has cgroups of its own, adds which one it is.
    if inner.is_empty() { name } else { format!("{name} :{inner}") }
}
