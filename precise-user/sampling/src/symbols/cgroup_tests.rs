use std::fs;

use super::*;

const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/perf_event rw,relatime shared:9 - cgroup cgroup rw,perf_event
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
const UNIFIED: &str = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

fn tree(mountinfo: &str, controllers: &str, dirs: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(root.path().join("proc/self")).expect("a directory");
    fs::write(root.path().join("proc/self/mountinfo"), mountinfo).expect("written");
    fs::write(root.path().join("proc/cgroups"), controllers).expect("written");
    for dir in dirs {
        fs::create_dir_all(root.path().join(dir)).expect("a directory");
    }
    root
}

fn inode(root: &tempfile::TempDir, path: &str) -> u64 {
    fs::metadata(root.path().join(path)).expect("there").ino()
}

fn paths(found: &[Cgroup]) -> Vec<(&str, u32)> {
    found.iter().map(|c| (&*c.path, c.level)).collect()
}

#[test]
fn ids_are_inodes_and_vanished_names_stay() {
    let root =
        tree(UNIFIED, "", &["sys/fs/cgroup/system.slice/a.service", "sys/fs/cgroup/system.slice/b.service"]);
    let mut cgroups = Cgroups::open(root.path()).expect("readable");
    assert_eq!(cgroups.report().perf_event, PerfEventOn::V2);
    let a = inode(&root, "sys/fs/cgroup/system.slice/a.service");
    let top = inode(&root, "sys/fs/cgroup");
    for hierarchy in [Hierarchy::V2, Hierarchy::PerfEvent] {
        assert_eq!(cgroups.path(hierarchy, a).as_deref(), Ok("/system.slice/a.service"));
        assert_eq!(cgroups.path(hierarchy, top).as_deref(), Ok("/"));
        assert_eq!(cgroups.path(hierarchy, u64::MAX), Err(Reason::CgroupGone));
    }
    fs::remove_dir(root.path().join("sys/fs/cgroup/system.slice/a.service")).expect("removed");
    cgroups.refresh();
    assert_eq!(cgroups.path(Hierarchy::V2, a).as_deref(), Ok("/system.slice/a.service"));
    // A removed cgroup is no longer found by a pattern.
    assert_eq!(paths(&cgroups.find(Hierarchy::V2, "/system.slice/*")), [("/system.slice/b.service", 2)]);
}

#[test]
fn a_new_cgroup_is_found_but_the_tree_is_not_walked_for_each_unknown_id() {
    let root = tree(UNIFIED, "", &["sys/fs/cgroup"]);
    let mut cgroups = Cgroups::open(root.path()).expect("readable");
    fs::create_dir(root.path().join("sys/fs/cgroup/new")).expect("a directory");
    let new = inode(&root, "sys/fs/cgroup/new");
    cgroups.rewalk = Duration::from_secs(3600);
    assert_eq!(cgroups.path(Hierarchy::V2, new), Err(Reason::CgroupGone));
    cgroups.rewalk = Duration::ZERO;
    assert_eq!(cgroups.path(Hierarchy::V2, new).as_deref(), Ok("/new"));
}

#[test]
fn a_hybrid_machine_has_two_trees() {
    let root = tree(
        HYBRID,
        "#subsys_name\thierarchy\tnum_cgroups\tenabled\nperf_event\t4\t1\t1\n",
        &["sys/fs/cgroup/unified/web", "sys/fs/cgroup/perf_event/batch"],
    );
    let mut cgroups = Cgroups::open(root.path()).expect("readable");
    assert_eq!(
        *cgroups.report(),
        CgroupTree {
            v2: Some("/sys/fs/cgroup/unified".into()),
            perf_event: PerfEventOn::V1 { mount: Some("/sys/fs/cgroup/perf_event".into()) },
        }
    );
    assert_eq!(paths(&cgroups.find(Hierarchy::V2, "**")), [("/", 0), ("/web", 1)]);
    assert_eq!(paths(&cgroups.find(Hierarchy::PerfEvent, "batch")), [("/batch", 1)]);
    let batch = inode(&root, "sys/fs/cgroup/perf_event/batch");
    assert_eq!(cgroups.path(Hierarchy::PerfEvent, batch).as_deref(), Ok("/batch"));
    assert_eq!(cgroups.path(Hierarchy::V2, batch), Err(Reason::CgroupGone));
    // The text that the user types may begin with the mount point.
    assert_eq!(paths(&cgroups.find(Hierarchy::V2, "/sys/fs/cgroup/unified/web/")), [("/web", 1)]);
}

#[test]
fn where_perf_event_is() {
    let on = |mounts: &str, controllers: &str| {
        let root = tree(mounts, controllers, &[]);
        Cgroups::open(root.path()).expect("readable").report().perf_event.clone()
    };
    let v2_only = "41 31 0:38 / /c rw - cgroup2 cgroup2 rw\n";
    assert_eq!(on(v2_only, "perf_event\t0\t1\t1\n"), PerfEventOn::V2);
    assert_eq!(on(v2_only, "perf_event\t7\t1\t1\n"), PerfEventOn::V1 { mount: None });
    assert_eq!(on("", "perf_event\t0\t1\t1\n"), PerfEventOn::Nowhere);
}

#[test]
fn a_mounted_subtree_knows_where_it_is() {
    let mounts = "41 31 0:38 /docker/ab\\040c /c rw - cgroup2 cgroup2 rw\n";
    let root = tree(mounts, "", &["c/inner"]);
    let mut cgroups = Cgroups::open(root.path()).expect("readable");
    assert_eq!(paths(&cgroups.find(Hierarchy::V2, "**")), [("/docker/ab c", 2), ("/docker/ab c/inner", 3)]);
}

#[test]
fn patterns() {
    for (pattern, text, expected) in [
        ("/a", "/a", true),
        ("/a", "/ab", false),
        ("/*.service", "/x.service", true),
        ("/*.service", "/s/x.service", false),
        ("/**.service", "/s/x.service", true),
        ("/**", "/", true),
        ("/*/b", "/a/b", true),
        ("/*/b", "/a/c/b", false),
        ("/a?", "/ab", true),
        ("/a?b", "/a/b", false),
        ("*", "", true),
        ("", "", true),
        ("", "x", false),
        ("/***", "/a/b", true),
    ] {
        assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
    }
    let stars = "*a".repeat(50);
    assert!(!matches(stars.as_bytes(), "b".repeat(4000).as_bytes()));
}

#[test]
fn this_machine() {
    let Ok(mut cgroups) = Cgroups::open(Path::new("/")) else { return };
    let Some(mount) = cgroups.report().v2.clone() else { return };
    let id = fs::metadata(&mount).expect("there").ino();
    let path = cgroups.path(Hierarchy::V2, id).expect("known");
    let found = cgroups.find(Hierarchy::V2, "**");
    assert!(found.iter().any(|c| c.id == id && c.path == path));
}

#[test]
fn a_cgroup_that_was_never_walked_has_the_name_that_the_kernel_gave() {
    let root = tree(UNIFIED, "", &["sys/fs/cgroup"]);
    let mut cgroups = Cgroups::open(root.path()).expect("readable");
    cgroups.made(4711, "/system.slice/brief.service");
    assert_eq!(cgroups.path(Hierarchy::V2, 4711).as_deref(), Ok("/system.slice/brief.service"));

    // Ids of another hierarchy say nothing about this one.
    let root = tree(HYBRID, "perf_event 3 5 1\n", &["sys/fs/cgroup/perf_event", "sys/fs/cgroup/unified"]);
    let mut cgroups = Cgroups::open(root.path()).expect("readable");
    cgroups.made(4711, "/a");
    assert_eq!(cgroups.path(Hierarchy::V2, 4711), Err(Reason::CgroupGone));
    assert_eq!(cgroups.path(Hierarchy::PerfEvent, 4711).as_deref(), Ok("/a"));
}

#[test]
fn cgroups_that_come_and_go_by_the_thousand_are_forgotten_and_the_last_ones_are_not() {
    let mut cgroups = Cgroups::recorded();
    let last = 100_000;
    for id in 1..=last {
        cgroups.made(id, &format!("/batch/job-{id}"));
        // A cgroup that is looked up all the time is kept.
        assert_eq!(cgroups.path(Hierarchy::PerfEvent, 1).as_deref(), Ok("/batch/job-1"));
    }
    let tree = &cgroups.v2;
    assert!(tree.known.len() <= 2 * MAX_KNOWN + 1);
    for id in last - MAX_KNOWN as u64 / 2..=last {
        assert!(cgroups.path(Hierarchy::PerfEvent, id).is_ok(), "{id}");
    }
    assert_eq!(cgroups.path(Hierarchy::PerfEvent, 2), Err(Reason::CgroupGone));
}
