use std::fs;

use super::*;

const ID: &str = "3f4e5d6c7b8a99887766554433221100ffeeddccbbaa00112233445566778899";
const UID: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
const SYSTEMD_UID: &str = "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0";

fn of(path: &str) -> Owner {
    Owners::recorded().of(path).map(|owner| (*owner).clone()).unwrap_or_default()
}

/// Creates a tree with these files; `->` makes a link.
fn disk(files: &[(String, String)]) -> (tempfile::TempDir, Owners) {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        match text.strip_prefix("->") {
            Some(target) => std::os::unix::fs::symlink(target, path).expect("a link"),
            None => fs::write(path, text).expect("written"),
        }
    }
    let owners = Owners::new(Root(folder.path().to_owned()));
    (folder, owners)
}

fn named_by(files: &[(String, String)], path: &str) -> Owner {
    let (_folder, mut owners) = disk(files);
    owners.of(path).map(|owner| (*owner).clone()).unwrap_or_default()
}

#[test]
fn units() {
    for (path, unit) in [
        ("/system.slice/nginx.service", "nginx.service"),
        ("/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service"),
        ("/init.scope", "init.scope"),
        ("/user.slice/user-1000.slice/session-3.scope", "session-3.scope"),
        ("/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service/init.scope"),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/app-foo.scope",
            "user@1000.service/app-foo.scope",
        ),
        // A path with only a slice, and a cgroup that a service creates below its own.
        ("/user.slice", "user.slice"),
        ("/system.slice/postgresql@15-main.service/workers", "postgresql@15-main.service"),
    ] {
        assert_eq!((of(path).name.as_str(), of(path).unit.as_deref()), (unit, Some(unit)), "{path}");
    }
    for nobody in ["/", "", "/a/b", "//"] {
        assert_eq!(Owners::recorded().of(nobody), None, "{nobody}");
    }
}

/// Path; runtime, pod uid if any, and the path below the container.
#[test]
fn containers_of_every_layout() {
    let pod = Some(UID);
    for (path, runtime, uid, inner) in [
        (format!("/system.slice/docker-{ID}.scope"), Some("docker"), None, ""),
        (format!("/docker/{ID}"), Some("docker"), None, ""),
        (format!("/docker/{ID}/init.scope"), Some("docker"), None, ""),
        (
            format!("/docker/{ID}/system.slice/cron.service"),
            Some("docker"),
            None,
            " :/system.slice/cron.service",
        ),
        (format!("/batch.slice/docker-{ID}.scope"), Some("docker"), None, ""),
        (
            format!("/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{ID}.scope"),
            Some("docker"),
            None,
            "",
        ),
        (format!("/machine.slice/libpod-{ID}.scope/container"), Some("podman"), None, ""),
        (format!("/libpod_parent/libpod-{ID}"), Some("podman"), None, ""),
        (format!("/system.slice/nerdctl-{ID}.scope"), Some("containerd"), None, ""),
        (format!("/default/{ID}"), None, None, ""),
        // Kubernetes with systemd as the cgroup driver.
        (
            format!(
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SYSTEMD_UID}.slice/cri-containerd-{ID}.scope"
            ),
            Some("containerd"),
            pod,
            "",
        ),
        (
            format!("/kubepods.slice/kubepods-pod{SYSTEMD_UID}.slice/crio-{ID}.scope/container"),
            Some("cri-o"),
            pod,
            "",
        ),
        (
            format!(
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SYSTEMD_UID}.slice/docker-{ID}.scope"
            ),
            Some("docker"),
            pod,
            "",
        ),
        // Kubernetes with cgroupfs as the cgroup driver.
        (format!("/kubepods/burstable/pod{UID}/{ID}"), None, pod, ""),
        (format!("/kubepods/pod{UID}/crio-{ID}"), Some("cri-o"), pod, ""),
        // The old cgroup driver of containerd, below a systemd service.
        (
            format!(
                "/system.slice/containerd.service/kubepods-burstable-pod{SYSTEMD_UID}.slice:cri-containerd:{ID}"
            ),
            Some("containerd"),
            pod,
            "",
        ),
        // A node in a container (kind): the owner is the pod's container, not the node's.
        (format!("/docker/{}/kubelet/kubepods/burstable/pod{UID}/{ID}", "a".repeat(64)), None, pod, ""),
        (
            format!(
                "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{SYSTEMD_UID}.slice/cri-containerd-{ID}.scope"
            ),
            Some("containerd"),
            pod,
            "",
        ),
    ] {
        let owner = of(&path);
        assert_eq!(owner.container_id.as_deref(), Some(ID), "{path}");
        assert_eq!((owner.runtime.as_deref(), owner.pod_uid.as_deref()), (runtime, uid), "{path}");
        let short = &ID[..12];
        let name = match (uid, runtime) {
            (Some(uid), _) => format!("pod {uid}/{short}"),
            (None, Some(runtime)) => format!("{short} ({runtime})"),
            (None, None) => short.to_owned(),
        };
        assert_eq!(owner.name, name + inner, "{path}");
    }
    assert_eq!(of("/lxc.payload.web").name, "web (lxc)");
    assert_eq!(of("/lxc/web").name, "web (lxc)");
}

#[test]
fn what_only_looks_like_one() {
    // The pod's own cgroup, a static pod, the monitor process of a container, and an id that is too
    // short.
    assert_eq!(of(&format!("/kubepods/burstable/pod{UID}")).name, format!("pod {UID}"));
    let hash = "0123456789abcdef0123456789abcdef";
    assert_eq!(of(&format!("/kubepods/pod{hash}")).pod_uid.as_deref(), Some(hash));
    let monitor = format!("/machine.slice/libpod-conmon-{ID}.scope");
    assert_eq!(of(&monitor).container_id, None);
    assert_eq!(of(&monitor).unit, Some(format!("libpod-conmon-{ID}.scope")));
    assert_eq!(of("/docker/abc").container_id, None);
    assert_eq!(of("/podcast.slice").name, "podcast.slice");
}

#[test]
fn the_kubelet_names_pods_and_containers() {
    let path = format!("/kubepods/burstable/pod{UID}/{ID}");
    let logs = format!("/var/log/containers/web-0_shop_nginx-{ID}.log");
    let owner = named_by(&[(logs, format!("->/var/log/pods/shop_web-0_{UID}/nginx/0.log"))], &path);
    assert_eq!(owner.name, "shop/web-0/nginx");
    assert_eq!((owner.pod.as_deref(), owner.namespace.as_deref()), (Some("web-0"), Some("shop")));
    // With only the pod's folder, the container is shown by its id.
    let owner = named_by(&[(format!("/var/log/pods/shop_web-0_{UID}/nginx/0.log"), String::new())], &path);
    assert_eq!(owner.name, format!("shop/web-0/{}", &ID[..12]));
}

#[test]
fn docker_containerd_podman_and_crio_name_their_own() {
    let docker = format!("/system.slice/docker-{ID}.scope");
    let config = format!("/var/lib/docker/containers/{ID}/config.v2.json");
    assert_eq!(
        named_by(&[(config, r#"{"Name":"/redis","Config":{"Labels":{}}}"#.into())], &docker).name,
        "redis (docker)"
    );

    let spec = |annotations: &str| {
        let path = format!("/run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json");
        vec![(path, format!(r#"{{"ociVersion":"1.1.0","annotations":{{{annotations}}}}}"#))]
    };
    let path = format!("/kubepods/pod{UID}/{ID}");
    let annotations = r#""io.kubernetes.cri.container-name":"nginx","io.kubernetes.cri.sandbox-name":"web-0","io.kubernetes.cri.sandbox-namespace":"shop""#;
    let owner = named_by(&spec(annotations), &path);
    assert_eq!((owner.name.as_str(), owner.runtime.as_deref()), ("shop/web-0/nginx", Some("containerd")));
    let nerdctl = format!("/system.slice/nerdctl-{ID}.scope");
    assert_eq!(named_by(&spec(r#""nerdctl/name":"cache""#), &nerdctl).name, "cache (containerd)");

    let storage = |name: &str| {
        let path = "/var/lib/containers/storage/overlay-containers/containers.json".to_owned();
        vec![(path, format!(r#"[{{"id":"{ID}","names":["{name}"],"layer":"x"}}]"#))]
    };
    let podman = format!("/machine.slice/libpod-{ID}.scope/container");
    assert_eq!(named_by(&storage("db"), &podman).name, "db (podman)");
    let crio = format!("/kubepods.slice/kubepods-pod{SYSTEMD_UID}.slice/crio-{ID}.scope");
    assert_eq!(named_by(&storage(&format!("k8s_nginx_web-0_shop_{UID}_0")), &crio).name, "shop/web-0/nginx");
}

#[test]
fn what_is_on_disk_is_not_trusted() {
    let docker = format!("/docker/{ID}");
    let config = |text: String| vec![(format!("/var/lib/docker/containers/{ID}/config.v2.json"), text)];
    let short = format!("{} (docker)", &ID[..12]);
    for broken in ["", "{", "[]", r#"{"Name":7}"#, "null"] {
        assert_eq!(named_by(&config(broken.into()), &docker).name, short, "{broken}");
    }
    let long = named_by(&config(format!(r#"{{"Name":"{}"}}"#, "x".repeat(10_000))), &docker);
    assert_eq!(long.container.map(|name| name.len()), Some(253));
    // Text that is not an id never becomes part of a path.
    let (_folder, mut owners) = disk(&[("/etc/config.v2.json".into(), r#"{"Name":"/stolen"}"#.into())]);
    let traversal = owners.of("/docker/../../../../etc");
    assert!(traversal.is_none_or(|owner| owner.container.is_none()));
}

proptest::proptest! {
    #[test]
    fn any_path_is_survived(path in "(/[a-z0-9.:@_-]{0,80}){0,6}|.*") {
        let _ = of(&path);
    }
}
