//! The names of containers and pods, from files of container runtimes and of the kubelet.
//!
//! | program | source | names |
//! | --- | --- | --- |
//! | kubelet | names of the links in /var/log/containers: `POD_NAMESPACE_CONTAINER-ID.log` | pod, namespace and container by id |
//! | kubelet | names of the folders in /var/log/pods: `NAMESPACE_POD_UID` | pod and namespace by uid |
//! | Docker | /var/lib/docker/containers/ID/config.v2.json | the container |
//! | containerd, nerdctl | /run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json | pod, namespace and container, from annotations |
//! | Podman, CRI-O | /var/lib/containers/storage/overlay-containers/containers.json | pod, namespace and container |
//!
//! Ids are checked before they become part of a path, names are truncated, and at most the first 4
//! MiB of a file are read.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::path::is_id;
use crate::machine::Root;
use precise_model::Owner;

/// How long a listing is used before it is read again, because each new container causes a lookup.
const FRESH: Duration = Duration::from_secs(1);
/// Maximum number of entries of a folder that are read; a node has some hundred pods.
const MAX_ENTRIES: usize = 1 << 16;
/// Maximum length of a name in bytes, as Kubernetes allows it.
const MAX_NAME: usize = 253;

const CONTAINER_LOGS: &str = "/var/log/containers";
const POD_LOGS: &str = "/var/log/pods";
const DOCKER: &str = "/var/lib/docker/containers";
const CONTAINERD: &str = "/run/containerd/io.containerd.runtime.v2.task";
const STORAGE: &str = "/var/lib/containers/storage/overlay-containers/containers.json";

/// The names that were read from disk.
#[derive(Debug)]
pub(super) struct Disk {
    root: Root,
    listed: Option<Instant>,
    /// Pod, namespace and container by container id.
    containers: FxHashMap<String, [String; 3]>,
    /// Namespace and pod by pod uid.
    pods: FxHashMap<String, [String; 2]>,
    /// Names by container id, as Podman and CRI-O store them.
    stored: FxHashMap<String, String>,
}

impl Disk {
    pub fn new(root: Root) -> Self {
        let (containers, pods, stored) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        Self { root, listed: None, containers, pods, stored }
    }

    /// Adds the names that are on disk at `now` to the owner found from the path.
    pub fn complete(&mut self, owner: &mut Owner, now: Instant) {
        if owner.container_id.is_none() && owner.pod_uid.is_none() {
            return;
        }
        if self.listed.is_none_or(|at| now.duration_since(at) >= FRESH) {
            self.list();
            self.listed = Some(now);
        }
        if let Some([namespace, pod]) = owner.pod_uid.as_ref().and_then(|uid| self.pods.get(uid)) {
            (owner.namespace, owner.pod) = (Some(namespace.clone()), Some(pod.clone()));
        }
        let Some(id) = owner.container_id.clone().filter(|id| is_id(id)) else { return };
        if let Some([pod, namespace, container]) = self.containers.get(&id) {
            owner.pod = Some(pod.clone());
            owner.namespace = Some(namespace.clone());
            owner.container = Some(container.clone());
        }
        if owner.container.is_none() {
            self.by_docker(owner, &id);
        }
        if owner.container.is_none() {
            self.by_containerd(owner, &id);
        }
        if owner.container.is_none()
            && let Some(name) = self.stored.get(&id)
        {
            by_storage(owner, name);
        }
    }

    /// Reads the listings again.
    fn list(&mut self) {
        // Missing files are not an error: few machines have all of them.
        let list = |path: &str| self.root.list(path).unwrap_or_default().into_iter().take(MAX_ENTRIES);
        self.containers = list(CONTAINER_LOGS)
            .filter_map(|name| {
                let (rest, id) = name.strip_suffix(".log")?.rsplit_once('-')?;
                let mut parts = rest.splitn(3, '_');
                let names = [parts.next()?, parts.next()?, parts.next()?].map(cut);
                is_id(id).then(|| (id.to_owned(), names))
            })
            .collect();
        self.pods = list(POD_LOGS)
            .filter_map(|name| {
                let mut parts = name.splitn(3, '_');
                let names = [parts.next()?, parts.next()?].map(cut);
                Some((parts.next()?.to_owned(), names))
            })
            .collect();
        self.stored = self.stored();
    }

    fn json(&self, path: &str) -> Option<Json> {
        serde_json::from_str(&self.root.read(path).ok()?).ok()
    }

    fn stored(&self) -> FxHashMap<String, String> {
        let Some(Json::Array(all)) = self.json(STORAGE) else { return FxHashMap::default() };
        all.iter()
            .take(MAX_ENTRIES)
            .filter_map(|one| {
                let name = one.get("names")?.get(0)?.as_str()?;
                Some((one.get("id")?.as_str()?.to_owned(), cut(name)))
            })
            .collect()
    }

    fn by_docker(&self, owner: &mut Owner, id: &str) {
        let Some(config) = self.json(&format!("{DOCKER}/{id}/config.v2.json")) else { return };
        let labels = config.get("Config").and_then(|config| config.get("Labels"));
        let label = |name: &str| labels.and_then(|labels| labels.get(name)).and_then(Json::as_str).map(cut);
        owner.runtime = Some("docker".to_owned());
        owner.pod = label("io.kubernetes.pod.name").or(owner.pod.take());
        owner.namespace = label("io.kubernetes.pod.namespace").or(owner.namespace.take());
        owner.container = label("io.kubernetes.container.name").or_else(|| {
            // Names that Docker itself stores begin with a slash.
            config.get("Name").and_then(Json::as_str).map(|name| cut(name.trim_start_matches('/')))
        });
    }

    fn by_containerd(&self, owner: &mut Owner, id: &str) {
        for namespace in self.root.list(CONTAINERD).unwrap_or_default().into_iter().take(16) {
            let Some(spec) = self.json(&format!("{CONTAINERD}/{namespace}/{id}/config.json")) else {
                continue;
            };
            let annotations = spec.get("annotations");
            let said = |name: &str| annotations.and_then(|all| all.get(name)).and_then(Json::as_str).map(cut);
            owner.runtime.get_or_insert_with(|| "containerd".to_owned());
            owner.pod = said("io.kubernetes.cri.sandbox-name").or(owner.pod.take());
            owner.namespace = said("io.kubernetes.cri.sandbox-namespace").or(owner.namespace.take());
            owner.container = said("io.kubernetes.cri.container-name").or_else(|| said("nerdctl/name"));
            if said("io.kubernetes.cri.container-type").as_deref() == Some("sandbox") {
                owner.container = Some("(pause)".to_owned());
            }
            return;
        }
    }
}

/// Sets the names from an entry of containers.json: `redis`, or
/// `k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT` for CRI-O.
fn by_storage(owner: &mut Owner, name: &str) {
    let parts: Vec<&str> = name.split('_').collect();
    if let ["k8s", container, pod, namespace, ..] = parts[..] {
        owner.runtime.get_or_insert_with(|| "cri-o".to_owned());
        owner.pod.get_or_insert_with(|| pod.to_owned());
        owner.namespace.get_or_insert_with(|| namespace.to_owned());
        owner.container = Some(if container == "POD" { "(pause)" } else { container }.to_owned());
    } else {
        owner.container = Some(name.to_owned());
    }
}

fn cut(name: &str) -> String {
    name.char_indices().take_while(|(at, c)| at + c.len_utf8() <= MAX_NAME).map(|(_, c)| c).collect()
}
