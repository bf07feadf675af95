//! The paths of the checkout that a task works on, and of its build output.

use std::env;
use std::path::{Path, PathBuf};
#[cfg(test)]
use std::process::Command;

/// Returns the root of the checkout. Cargo passes it when it runs a task; a copied binary uses the
/// path where it was built.
pub fn root() -> PathBuf {
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().map_or(xtask.clone(), Path::to_path_buf)
}

/// Returns the paths of the source files, from the root: those that git tracks, and new ones that
/// it does not ignore. Some of them may be deleted already.
#[cfg(test)]
pub fn files() -> Vec<String> {
    let mut list = Command::new("git");
    list.args(["ls-files", "-co", "--exclude-standard"]).current_dir(root());
    crate::process::output(&mut list).unwrap().lines().map(str::to_owned).collect()
}

/// Returns the folder for everything that can be built again.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Returns cargo's home folder: downloaded sources and installed binaries.
pub fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))
}

/// Returns the folder of the Python environment for tools from PyPI.
pub fn venv() -> PathBuf {
    target().join("venv")
}

/// Returns the folder of a Debian package that is unpacked without being installed.
pub fn unpacked(package: &str) -> PathBuf {
    target().join("unpacked").join(package)
}
