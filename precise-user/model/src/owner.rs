//! Whom a cgroup belongs to, in words that people use: a unit, a container, a pod.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The owner of a cgroup. What is not known is `None`; all of it is chosen by whoever starts units
/// and containers, and so no more to be trusted than the path.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Owner {
    /// Path of the cgroup, from the root of its hierarchy.
    pub path: String,
    /// What people call it: `shop/web-0/nginx`, `redis (docker)`, `nginx.service`. Two cgroups may
    /// have the same one.
    pub name: String,
    /// The systemd unit that the cgroup is in: `nginx.service`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Who runs the container, as far as the path says: `docker`, `containerd`, `cri-o`, `podman`,
    /// `lxc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// Id of the container: 64 hexadecimal digits, or a name where the runtime takes names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// Name of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Uid of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// Name of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Namespace of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
