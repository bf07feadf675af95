//! Builds the guest modules: our files from tests/lab/modules, with the kernel's own files of the
//! running version.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::kernel::Kernel;
use super::pmu::DriverVendor;
use super::sh;

/// Builds the vendor's module for a kernel, unless it was already built from the same files.
/// Returns the module file.
pub fn build(lab: &Path, modules: &Path, kernel: &Kernel, vendor: DriverVendor) -> Result<PathBuf> {
    let mut files = Vec::new();
    for dir in [modules.join("common"), modules.join(vendor.folder())] {
        for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
            let path = entry?.path();
            files.push((PathBuf::from(path.file_name().unwrap_or_default()), fs::read(&path)?));
        }
    }
    files.extend(kernel_files(kernel, vendor)?);
    files.sort();

    let dir = lab.join("build").join(&kernel.release).join(vendor.folder());
    let object = dir.join(format!("{}.ko", vendor.module()));
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    let (stamp, hash) = (dir.join("stamp"), format!("{:016x}", hasher.finish()));
    if object.exists() && fs::read_to_string(&stamp).is_ok_and(|old| old == hash) {
        return Ok(object);
    }

    eprintln!("lab: building {} for {}", vendor.module(), kernel.release);
    for (name, content) in &files {
        sh::write_if_changed(&dir.join(name), content)?;
    }
    sh::run(
        Command::new("make")
            .arg("-j2")
            .arg("-C")
            .arg(kernel.headers())
            .arg(format!("M={}", dir.display()))
            // The types of our own module are not needed, and pahole is not available on every
            // machine.
            .arg("CONFIG_DEBUG_INFO_BTF_MODULES=")
            .arg("modules"),
    )?;
    sh::run(Command::new("strip").arg("--strip-debug").arg(&object))?;
    fs::write(stamp, hash)?;
    Ok(object)
}

/// Returns the kernel's files that the module is compiled with, under the names by which it
/// includes them.
fn kernel_files(kernel: &Kernel, vendor: DriverVendor) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let from = kernel.events();
    let mut files = Vec::new();
    for name in vendor.kernel_files() {
        files.push((Path::new("events").join(name), fs::read(from.join(name))?));
    }
    for entry in fs::read_dir(&from)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "h") {
            files.push((Path::new("events").join(path.file_name().unwrap_or_default()), fs::read(&path)?));
        }
    }
    // The kernel includes perf_event.h once per object. Our modules include it more often, and it
    // has no include guard.
    for (name, _) in &mut files {
        if name.ends_with("perf_event.h") {
            name.set_file_name("perf_event_real.h");
        }
    }
    files.push((
        PathBuf::from("events/perf_event.h"),
        b"#pragma once\n#include \"perf_event_real.h\"\n".to_vec(),
    ));
    Ok(files)
}
