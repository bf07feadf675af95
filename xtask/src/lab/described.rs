//! A kernel of Debian with its debug information, as a folder that looks like the root of a machine
//! on which it runs: what reads a kernel's code can read this one's, without starting it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::apt::Apt;
use super::sh;

/// Where the newest kernel comes from that the lab starts.
const SUITE: &str = "bookworm-backports";
/// The debug information of the kernel without modules, and its symbols, in the package.
const FILES: [&str; 2] = ["vmlinux", "System.map"];

/// Returns the folder, and fetches what is in it (310 MB) if it is not there.
pub fn described_kernel(lab: &Path) -> Result<PathBuf> {
    let folder = lab.join("described");
    if folder.join("complete").exists() {
        return Ok(folder);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let apt = Apt::new(lab.join("apt/described"), &[SUITE])?;
    let package = apt.dependency("linux-image-cloud-amd64-dbg", "linux-image-")?;
    let release = package.strip_prefix("linux-image-").and_then(|name| name.strip_suffix("-dbg"));
    let release = release.with_context(|| format!("{package} is no debug information of a kernel"))?;
    let debs = folder.join("debs");
    let debs_of = apt.download(&debs, std::slice::from_ref(&package))?;
    let deb = debs_of.first().context("nothing downloaded")?;
    for name in ["proc/sys/kernel", "sys/kernel/btf"] {
        fs::create_dir_all(folder.join(name))?;
    }
    let paths = FILES.map(|name| format!("./usr/lib/debug/boot/{name}-{release}"));
    sh::pipeline(
        r#"dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" "$3" "$4""#,
        &[deb.as_os_str(), folder.as_os_str(), paths[0].as_ref(), paths[1].as_ref()],
    )?;
    fs::remove_dir_all(&debs)?;
    let [vmlinux, symbols] = paths.map(|path| folder.join(path));
    // What the kernel shows of itself is in its file.
    for (section, place) in [(".notes", "sys/kernel/notes"), (".BTF", "sys/kernel/btf/vmlinux")] {
        let only = format!("--only-section={section}");
        sh::run(Command::new("objcopy").args(["-O", "binary", &only]).arg(&vmlinux).arg(folder.join(place)))?;
    }
    fs::hard_link(&vmlinux, folder.join("proc/kcore"))?;
    fs::rename(&symbols, folder.join("proc/kallsyms"))?;
    fs::write(folder.join("proc/sys/kernel/osrelease"), format!("{release}\n"))?;
    fs::write(folder.join("complete"), "")?;
    Ok(folder)
}
