//! Builds the guest's initramfs: an init, the modules that it loads, and its settings, as a cpio
//! archive, which the kernel unpacks.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::kernel::Kernel;
use super::pmu::GuestPmu;
use super::sh;

/// The kernel modules that the guest needs to mount the host's files, in the order of their
/// dependencies. Modules that are built into a kernel are left out.
const MODULES: [&str; 8] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "fuse",
    "virtiofs",
    "overlay",
];

/// Compiles the guest's init: with std only, and static, because it runs before any libraries are
/// available.
pub fn build_init(lab: &Path, source: &Path) -> Result<PathBuf> {
    let binary = lab.join("build/init");
    let stamp = lab.join("build/init.rs");
    let content = std::fs::read(source)?;
    if !binary.exists() || std::fs::read(&stamp).ok().as_ref() != Some(&content) {
        std::fs::create_dir_all(lab.join("build"))?;
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        sh::run(
            Command::new(rustc)
                .args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-C", "panic=abort"])
                .args(["-C", "strip=symbols", "--crate-name", "lab_init", "-o"])
                .arg(&binary)
                .arg(source),
        )?;
        std::fs::write(stamp, content)?;
    }
    Ok(binary)
}

/// Packs the archive: /init, /modules/*, the list of modules with their parameters, and the
/// environment of the tests.
pub fn pack(
    init: &Path,
    kernel: &Kernel,
    pmu: GuestPmu,
    pmu_module: Option<&Path>,
    environment: &[(&str, String)],
) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    archive.folder("modules");
    archive.file("init", 0o755, &std::fs::read(init)?);
    let mut list = String::new();
    for name in MODULES {
        if let Some(content) = kernel.module(name)? {
            archive.file(&format!("modules/{name}.ko"), 0o644, &content);
            list += &format!("{name}\n");
        }
    }
    if let (Some(vendor), Some(file)) = (pmu.vendor(), pmu_module) {
        let name = vendor.module();
        archive.file(&format!("modules/{name}.ko"), 0o644, &std::fs::read(file)?);
        list += &format!("{name} model={}\n", pmu.name());
    }
    archive.file("modules.list", 0o644, list.as_bytes());
    let environment: String = environment.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
    archive.file("environment", 0o644, environment.as_bytes());
    Ok(archive.finish())
}

/// A cpio archive in the "newc" format: a header of hexadecimal words, the name, the content, each
/// padded to four bytes.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    files: u32,
}

impl Archive {
    fn folder(&mut self, name: &str) {
        self.entry(name, 0o040_755, &[]);
    }

    fn file(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entry(name, 0o100_000 | mode, content);
    }

    fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.files += 1;
        let (size, name_size) = (content.len() as u64, name.len() as u64 + 1);
        let (inode, links) = (u64::from(self.files), 1);
        let header = [inode, mode.into(), 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend(b"070701");
        for word in header {
            self.bytes.extend(format!("{word:08x}").into_bytes());
        }
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_its_entries_aligned_and_a_trailer() {
        let mut archive = Archive::default();
        archive.file("init", 0o755, b"hello");
        let bytes = archive.finish();
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(&bytes[6 + 8..6 + 16], b"000081ed");
        assert_eq!(&bytes[110..115], b"init\0");
        assert_eq!(&bytes[116..121], b"hello");
        assert_eq!(&bytes[124..130], b"070701");
        assert_eq!(&bytes[124 + 110..124 + 120], b"TRAILER!!!");
        assert_eq!(bytes.len() % 4, 0);
    }
}
