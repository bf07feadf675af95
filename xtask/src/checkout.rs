//! Where things are: the checkout that this task works on and what is built from it.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the checkout. Cargo says it when it runs a task; a binary that was copied knows
/// where it was built.
pub fn root() -> PathBuf {
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().map_or(xtask.clone(), Path::to_path_buf)
}

/// Where everything that can be built again goes.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Cargo's own folder: downloaded sources and installed binaries.
pub fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))
}

/// The Python environment of the tools that come from PyPI.
pub fn venv() -> PathBuf {
    target().join("venv")
}

/// Where a Debian package is unpacked that is not installed.
pub fn unpacked(package: &str) -> PathBuf {
    target().join("unpacked").join(package)
}
