//! The owner of a cgroup, in words that people use: a unit, a container, a pod.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The owner of a cgroup. A field that is not known is `None`. The users who start the units and
/// containers choose all of these texts, so the texts are as untrusted as the path.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Owner {
    /// The path of the cgroup, from the root of its hierarchy.
    pub path: String,
    /// The short name of the owner: `shop/web-0/nginx`, `redis (docker)`, `nginx.service`. Two
    /// cgroups may have the same name.
    pub name: String,
    /// The systemd unit that contains the cgroup: `nginx.service`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The container runtime, if the path shows it: `docker`, `containerd`, `cri-o`, `podman`,
    /// `lxc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The id of the container: 64 hexadecimal digits, or a name if the runtime uses names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// The name of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The UID of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// The name of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The namespace of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl Owner {
    /// Returns the memory of this value in bytes, about.
    pub fn bytes(&self) -> usize {
        let Self { path, name, unit, runtime, container_id, container, pod_uid, pod, namespace } = self;
        let optional = [unit, runtime, container_id, container, pod_uid, pod, namespace];
        let texts = optional.into_iter().flatten().chain([path, name]);
        size_of::<Self>() + texts.map(String::len).sum::<usize>()
    }
}
