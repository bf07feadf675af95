//! What the path of a cgroup says of its owner.
//!
//! Nobody standardised these paths. They are what the runtimes make, with systemd as their cgroup
//! driver or without (the `cgroupfs` driver), on v1 and v2:
//!
//! | who | path |
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

/// An owner without the names that are on disk.
pub(super) struct ContainerFound<'a> {
    pub owner: Owner,
    /// What is below the container's own cgroup.
    pub inner: &'a str,
}

/// Whom the cgroup of a path belongs to: the innermost container, or the innermost unit.
pub(super) fn of_path(path: &str) -> Option<ContainerFound<'_>> {
    let mut owner = Owner { path: path.to_owned(), ..Owner::default() };
    let mut inner = "";
    let mut user = None;
    let mut rest = path;
    let mut above = "";
    while let Some((step, behind)) = next(rest) {
        let (pod, name) = step_of(step);
        if let Some(uid) = pod {
            // A pod inside of a container is a node of its own (kind, k3d).
            owner.pod_uid = Some(uid);
            (owner.runtime, owner.container_id) = (None, None);
        }
        if let Some((runtime, id)) = name.or_else(|| bare(step, above, owner.pod_uid.is_some())) {
            owner.runtime = runtime.map(str::to_owned);
            owner.container_id = Some(id.to_owned());
            inner = behind;
        } else if owner.container_id.is_none() && is_unit(step) {
            // Slices are folders of units, and name nobody where there is a unit.
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
        // Units of different users have the same names.
        owner.unit = Some(format!("{user}/{unit}"));
    }
    let known = owner.container_id.is_some() || owner.pod_uid.is_some() || owner.unit.is_some();
    // Podman's and systemd's own folder in a container says nothing.
    let inner = if matches!(inner, "/container" | "/init.scope") { "" } else { inner };
    known.then_some(ContainerFound { owner, inner })
}

/// The first step of a path, and the rest with its slash.
fn next(path: &str) -> Option<(&str, &str)> {
    let path = path.trim_start_matches('/');
    (!path.is_empty()).then(|| path.split_at(path.find('/').unwrap_or(path.len())))
}

fn is_unit(step: &str) -> bool {
    [".service", ".scope", ".slice", ".socket", ".mount", ".swap"].iter().any(|kind| step.ends_with(kind))
}

/// Runtime and id.
type Container<'a> = (Option<&'static str>, &'a str);

/// Pod and container that one step names.
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
    // The process beside the container that holds its terminal is not in it: crio-conmon-ID,
    // libpod-conmon-ID.
    let container = scope
        .rsplit_once('-')
        .filter(|(prefix, id)| is_id(id) && !prefix.ends_with("conmon"))
        .map(|(prefix, id)| (runtime_of(prefix), id));
    (None, container)
}

/// A container that is called by its id alone, or by a name in a folder that has nothing else.
fn bare<'a>(step: &'a str, above: &str, in_pod: bool) -> Option<Container<'a>> {
    match above {
        "docker" if is_id(step) => Some((Some("docker"), step)),
        "lxc" => Some((Some("lxc"), step)),
        _ if is_id(step) => Some((if in_pod { None } else { runtime_of(above) }, step)),
        _ => None,
    }
}

/// The uid in `podUID` or `kubepods-burstable-podUID.slice`, with the dashes that systemd's names
/// cannot have.
fn pod_uid(step: &str) -> Option<String> {
    let step = step.strip_suffix(".slice").unwrap_or(step);
    let uid = match step.strip_prefix("pod") {
        Some(uid) => uid,
        None => step.split_once("kubepods").and_then(|(_, rest)| rest.rsplit_once("-pod"))?.1,
    };
    let uid = uid.replace('_', "-");
    // A random uid, or the hash of a static pod's file.
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

/// The id of a container: 64 hexadecimal digits. Nothing else becomes part of a path on disk.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
