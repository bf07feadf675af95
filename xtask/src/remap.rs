//! Paths of this machine, and what stands for them in everything that is shipped: an object or a
//! binary has the same bytes wherever it is built.

use std::fs;
use std::path::PathBuf;

use crate::checkout;

/// Returns each folder with its name in a build. If several match a path, the last one counts.
pub fn folders() -> Vec<(PathBuf, &'static str)> {
    let mut folders = vec![(checkout::root(), "/precise")];
    if let Some(home) = checkout::cargo_home() {
        // The folders are named after registries; the names would reveal where the crates came
        // from.
        let registries = fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
        let registries: Vec<PathBuf> = registries.map(|registry| registry.path()).collect();
        folders.push((home, "/cargo"));
        folders.extend(registries.into_iter().map(|registry| (registry, "/cargo")));
    }
    folders
}
