//! The owner of a cgroup, as far as its path tells.
//!
//! These paths are not standardised. They are what the runtimes create, with systemd as the cgroup
//! driver or without it (the `cgroupfs` driver), on v1 and v2:
//!
//! | program | path |
//! | --- | --- |
//! | systemd | `/system.slice/nginx.service`, `/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope` |
//! | Docker | `/system.slice/docker-ID.scope`, `/docker/ID`, or below a parent that the user chose |
//! | Podman | `/machine.slice/libpod-ID.scope/container`, `/libpod_parent/libpod-ID` |
//! | containerd, nerdctl | `/system.slice/nerdctl-ID.scope`, `/NAMESPACE/ID` |
//! | Kubernetes, systemd | `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/cri-containerd-ID.scope`, `crio-ID.scope`, `docker-ID.scope` |
//! | Kubernetes, cgroupfs | `/kubepods/burstable/podUID/ID`, `crio-ID` |
//! | containerd's old driver | `/system.slice/containerd.service/kubepods-burstable-podUID.slice:cri-containerd:ID` |
//! | LXC | `/lxc.payload.NAME`, `/lxc/NAME` |

use precise_model::Owner;

/// The owner of a cgroup, without the names that are on disk.
pub(super) struct ContainerFound<'a> {
    pub owner: Owner,
    /// The path below the container's own cgroup.
    pub inner: &'a str,
}

/// Returns the owner of the cgroup with this path: the innermost container, or the innermost unit.
pub(super) fn of_path(path: &str) -> Option<ContainerFound<'_>> {
    let mut owner = Owner { path: path.to_owned(), ..Owner::default() };
    let mut inner = "";
    let mut user = None;
    let mut rest = path;
    let mut above = "";
    while let Some((step, behind)) = next(rest) {
        let (pod, name) = step_of(step);
        if let Some(uid) = pod {
            // A pod inside a container belongs to a nested node (kind, k3d).
            owner.pod_uid = Some(uid);
            (owner.runtime, owner.container_id) = (None, None);
        }
        if let Some((runtime, id)) = name.or_else(|| bare(step, above, owner.pod_uid.is_some())) {
            owner.runtime = runtime.map(str::to_owned);
            owner.container_id = Some(id.to_owned());
            inner = behind;
        } else if owner.container_id.is_none() && is_unit(step) {
            // A slice is a folder of units, and counts only if there is no unit.
            let slice = |unit: &str| unit.ends_with(".slice");
            if !slice(step) || owner.unit.as_deref().is_none_or(slice) {
                owner.unit = Some(step.to_owned());
            }
            if step.starts_with("user@") {
                user = Some(step);
            }
        }
        above = step;
        rest = behind;
    }
    if let (Some(user), Some(unit)) = (user, &owner.unit)
        && unit != user
    {
        // Different users have units with the same names.
        owner.unit = Some(format!("{user}/{unit}"));
    }
    let known = owner.container_id.is_some() || owner.pod_uid.is_some() || owner.unit.is_some();
    // A folder that Podman or systemd creates inside every container carries no information.
    let inner = if matches!(inner, "/container" | "/init.scope") { "" } else { inner };
    known.then_some(ContainerFound { owner, inner })
}

/// Returns the first step of a path, and the rest with its slash.
fn next(path: &str) -> Option<(&str, &str)> {
    let path = path.trim_start_matches('/');
    (!path.is_empty()).then(|| path.split_at(path.find('/').unwrap_or(path.len())))
}

fn is_unit(step: &str) -> bool {
    [".service", ".scope", ".slice", ".socket", ".mount", ".swap"].iter().any(|kind| step.ends_with(kind))
}

/// The runtime and the id of a container.
type Container<'a> = (Option<&'static str>, &'a str);

/// Returns the pod uid and the container that one step of a path names.
fn step_of(step: &str) -> (Option<String>, Option<Container<'_>>) {
    // kubepods-burstable-podUID.slice:cri-containerd:ID
    if let Some((slice, rest)) = step.split_once(':')
        && let Some((runtime, id)) = rest.rsplit_once(':')
    {
        return (pod_uid(slice), is_id(id).then(|| (runtime_of(runtime), id)));
    }
    if let Some(uid) = pod_uid(step) {
        return (Some(uid), None);
    }
    if let Some(name) = step.strip_prefix("lxc.payload.").filter(|name| !name.is_empty()) {
        return (None, Some((Some("lxc"), name)));
    }
    let scope = step.strip_suffix(".scope").unwrap_or(step);
    // Excludes the monitor process that holds the terminal of a container, because it is not in the
    // container: crio-conmon-ID, libpod-conmon-ID.
    let container = scope
        .rsplit_once('-')
        .filter(|(prefix, id)| is_id(id) && !prefix.ends_with("conmon"))
        .map(|(prefix, id)| (runtime_of(prefix), id));
    (None, container)
}

/// Returns a container that is named only by its id, or by a name in a folder that contains only
/// containers.
fn bare<'a>(step: &'a str, above: &str, in_pod: bool) -> Option<Container<'a>> {
    match above {
        "docker" if is_id(step) => Some((Some("docker"), step)),
        "lxc" => Some((Some("lxc"), step)),
        _ if is_id(step) => Some((if in_pod { None } else { runtime_of(above) }, step)),
        _ => None,
    }
}

/// Returns the uid in `podUID` or `kubepods-burstable-podUID.slice`, with the dashes that names of
/// systemd units cannot contain.
fn pod_uid(step: &str) -> Option<String> {
    let step = step.strip_suffix(".slice").unwrap_or(step);
    let uid = match step.strip_prefix("pod") {
        Some(uid) => uid,
        None => step.split_once("kubepods").and_then(|(_, rest)| rest.rsplit_once("-pod"))?.1,
    };
    let uid = uid.replace('_', "-");
    // The uid is either random or the hash of a static pod's file.
    let digits = uid.bytes().filter(u8::is_ascii_hexdigit).count();
    let dashes = uid.bytes().filter(|byte| *byte == b'-').count();
    (digits == 32 && digits + dashes == uid.len() && matches!(dashes, 0 | 4)).then_some(uid)
}

fn runtime_of(prefix: &str) -> Option<&'static str> {
    match prefix {
        "docker" => Some("docker"),
        "cri-containerd" | "nerdctl" | "containerd" => Some("containerd"),
        "crio" | "cri-o" => Some("cri-o"),
        "libpod" | "libpod_parent" => Some("podman"),
        _ => None,
    }
}

/// Returns whether the text is the id of a container: 64 hexadecimal digits. Only such text becomes
/// part of a path on disk.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
