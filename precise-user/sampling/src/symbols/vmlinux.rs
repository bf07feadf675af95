//! Where the image of the running kernel with its debug information is: `vmlinux`.

use std::path::{Path, PathBuf};

use crate::machine::Root;

/// The release, in the names of files.
const RELEASE: &str = "RELEASE";
/// Where packages of Debian, Ubuntu, Fedora, RHEL and openSUSE put it, as perf knows them
/// (`vmlinux_paths__init` of tools/perf/util/symbol.c). Only root can put a file there.
const INSTALLED: [&str; 5] = [
    "usr/lib/debug/boot/vmlinux-RELEASE",
    "usr/lib/debug/boot/vmlinux-RELEASE.debug",
    "usr/lib/debug/lib/modules/RELEASE/vmlinux",
    "usr/lib/debug/usr/lib/modules/RELEASE/vmlinux.debug",
    "boot/vmlinux-RELEASE",
];
/// Where a kernel that was built on this machine is. `build` leads to a folder of any user.
const BUILT: [&str; 2] = ["lib/modules/RELEASE/vmlinux", "lib/modules/RELEASE/build/vmlinux"];

/// Returns where root may have installed the image of the kernel that runs below `root`, as paths
/// below `root`.
pub fn installed(root: &Path) -> Vec<PathBuf> {
    named(root, &INSTALLED)
}

/// Returns the other places where the image may be. The user who built the kernel may have written
/// it.
pub fn built(root: &Path) -> Vec<PathBuf> {
    named(root, &BUILT)
}

fn named(root: &Path, places: &[&str]) -> Vec<PathBuf> {
    let Ok(release) = Root(root.to_owned()).read("/proc/sys/kernel/osrelease") else { return Vec::new() };
    // A release is one component of a path.
    if release.is_empty() || release.contains('/') {
        return Vec::new();
    }
    places.iter().map(|place| PathBuf::from(place.replace(RELEASE, &release))).collect()
}
