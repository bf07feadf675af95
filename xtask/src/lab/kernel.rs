//! The guests' kernels: Debian's cloud images with their headers, and of their source only
//! arch/x86/events. Everything is fetched by name, stored by version under the lab's folder, and
//! used from there without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::apt::Apt;
use super::sh;

/// A kernel series that the lab can fetch.
pub struct KernelSeries {
    /// The name on the command line.
    pub name: &'static str,
    suites: &'static [&'static str],
}

/// The oldest kernel that the project supports in a distribution, and the newest that Debian 12's
/// compiler can build modules for.
pub const SERIES: [KernelSeries; 2] = [
    KernelSeries { name: "6.1", suites: &["bookworm", "bookworm-updates", "bookworm-security"] },
    KernelSeries { name: "6.12", suites: &["bookworm-backports"] },
];

/// Returns why a series is not available; `None` if it is.
pub fn why_not(series: &str) -> Option<&'static str> {
    (series == "7.2").then_some(
        "kernel 7.2 cannot be had: Debian's trixie-backports has gone on to 7.3, and what builds modules for either \
         needs the C library of Debian 13 (linux-kbuild wants glibc 2.38), but the lab builds on Debian 12; \
         --kernel 6.12 is the newest that runs",
    )
}

/// A prepared kernel.
pub struct Kernel {
    /// The series by which it was requested.
    pub series: &'static str,
    /// The release, as `uname -r` prints it in the guest.
    pub release: String,
    dir: PathBuf,
}

impl Kernel {
    /// Prepares the kernel of a series: the one that was fetched before, or, with `refresh` or if
    /// there is none, the one that Debian has today.
    pub fn prepare(lab: &Path, series: &'static KernelSeries, refresh: bool) -> Result<Self> {
        let kernels = lab.join("kernels");
        let chosen = kernels.join(format!("{}.release", series.name));
        if !refresh && let Ok(release) = fs::read_to_string(&chosen) {
            let kernel = Self::at(&kernels, series, release.trim());
            if kernel.is_complete() {
                return Ok(kernel);
            }
        }
        eprintln!("lab: fetching kernel {} from Debian ({})", series.name, series.suites.join(", "));
        let apt = Apt::new(lab.join("apt").join(series.name), series.suites)?;
        let image = apt.dependency("linux-image-cloud-amd64", "linux-image-")?;
        let release = image.strip_prefix("linux-image-").unwrap_or(&image);
        let kernel = Self::at(&kernels, series, release);
        if !kernel.is_complete() {
            kernel.fetch(&apt).with_context(|| format!("cannot prepare kernel {release}"))?;
        }
        fs::write(&chosen, format!("{release}\n"))?;
        Ok(kernel)
    }

    fn at(kernels: &Path, series: &'static KernelSeries, release: &str) -> Self {
        Self { series: series.name, release: release.to_owned(), dir: kernels.join(release) }
    }

    fn is_complete(&self) -> bool {
        self.dir.join("complete").exists()
    }

    fn fetch(&self, apt: &Apt) -> Result<()> {
        let flavour = self.release.as_str();
        let common = flavour.strip_suffix("-cloud-amd64").context("not a cloud kernel")?;
        // The kbuild package of 6.1 is named after the series, later ones after the release.
        let kbuild = apt
            .dependency(&format!("linux-headers-{flavour}"), "linux-kbuild-")
            .context("which linux-kbuild do the headers want?")?;
        let packages = [
            format!("linux-image-{flavour}"),
            format!("linux-headers-{flavour}"),
            format!("linux-headers-{common}-common"),
            kbuild,
            format!("linux-source-{}", self.series),
        ];
        if self.dir.exists() {
            fs::remove_dir_all(&self.dir)?;
        }
        let debs = self.dir.join("debs");
        let files = apt.download(&debs, &packages)?;
        let (source, binaries) = files.split_last().context("nothing downloaded")?;
        for deb in binaries {
            sh::run(Command::new("dpkg-deb").arg("-x").arg(deb).arg(self.root()))?;
        }
        self.unpack_events(source)?;
        self.point_headers_here(common)?;
        self.extract_vmlinux()?;
        fs::remove_dir_all(&debs)?;
        fs::write(self.dir.join("complete"), "")?;
        Ok(())
    }

    /// Unpacks the one folder of the kernel source (1.5 GB) that the guest modules are built from.
    fn unpack_events(&self, deb: &Path) -> Result<()> {
        let name = format!("linux-source-{}", self.series);
        let dir = self.dir.join("source");
        fs::create_dir_all(&dir)?;
        sh::pipeline(
            r#"dpkg-deb --fsys-tarfile "$1" | tar -xO "./usr/src/$2.tar.xz" | xz -dcT0 |
               tar -x -C "$3" --strip-components=1 "$2/arch/x86/events""#,
            &[deb.as_os_str(), name.as_ref(), dir.as_os_str()],
        )
    }

    /// Replaces the absolute path by which the headers' makefile includes its common part.
    fn point_headers_here(&self, common: &str) -> Result<()> {
        let makefile = self.headers().join("Makefile");
        let text = fs::read_to_string(&makefile)?;
        let absolute = format!("/usr/src/linux-headers-{common}-common");
        ensure!(text.contains(&absolute), "{} does not include {absolute}", makefile.display());
        fs::write(&makefile, text.replace(&absolute, &format!("{}{absolute}", self.root().display())))?;
        Ok(())
    }

    /// Extracts the uncompressed kernel, which QEMU starts through its PVH entry. This is half a
    /// second faster than a bzImage, which unpacks itself.
    fn extract_vmlinux(&self) -> Result<()> {
        let image = fs::read(self.root().join("boot").join(format!("vmlinuz-{}", self.release)))?;
        let payload = bzimage_payload(&image).context("not a bzImage")?;
        let packed = self.dir.join("payload");
        let tool = match payload {
            [0x02, 0x21, 0x4c, 0x18, ..] => "lz4",
            [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz",
            [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
            [0x1f, 0x8b, ..] => "gzip",
            _ => bail!("unknown compression of the kernel: {:x?}", payload.get(..4)),
        };
        fs::write(&packed, payload)?;
        // The build appends the unpacked size after the stream; the tools write everything and then
        // complain about it.
        let out = Command::new(tool).arg("-dc").arg(&packed).output()?;
        ensure!(out.stdout.starts_with(b"\x7fELF"), "{tool}: {}", String::from_utf8_lossy(&out.stderr));
        fs::write(self.vmlinux(), out.stdout)?;
        fs::remove_file(packed)?;
        Ok(())
    }

    /// Returns the folder where the binary packages are unpacked.
    pub fn root(&self) -> PathBuf {
        self.dir.join("root")
    }

    /// Returns the folder that `make -C` builds modules with.
    pub fn headers(&self) -> PathBuf {
        self.root().join("usr/src").join(format!("linux-headers-{}", self.release))
    }

    /// Returns the folder of the kernel's own arch/x86/events.
    pub fn events(&self) -> PathBuf {
        self.dir.join("source/arch/x86/events")
    }

    /// Returns the path of the kernel that QEMU starts.
    pub fn vmlinux(&self) -> PathBuf {
        self.dir.join("vmlinux")
    }

    /// Returns a module of the image, unpacked; `None` if it is built into the kernel.
    pub fn module(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let lib = self.root().join("lib/modules").join(&self.release);
        let lib = if lib.exists() { lib } else { self.root().join("usr/lib/modules").join(&self.release) };
        // modules.dep is created only at installation; the order file of the build has every path.
        let order = fs::read_to_string(lib.join("modules.order"))?;
        let Some(line) = order.lines().find(|line| {
            let stem = line.rsplit('/').next().unwrap_or(line);
            stem.split('.').next().is_some_and(|s| s.replace('-', "_") == name)
        }) else {
            return Ok(None);
        };
        for (suffix, tool) in [("", None), (".xz", Some("xz")), (".zst", Some("zstd"))] {
            let file = lib.join(format!("{line}{suffix}"));
            if file.exists() {
                return match tool {
                    None => Ok(Some(fs::read(file)?)),
                    Some(tool) => sh::stdout(Command::new(tool).arg("-dc").arg(file)).map(Some),
                };
            }
        }
        bail!("{line} of kernel {} is in no form that is known", self.release)
    }
}

/// Returns the compressed kernel inside a bzImage, located by the boot protocol's header
/// (Documentation/arch/x86/boot.rst).
fn bzimage_payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let setup_sectors = match *image.get(0x1f1)? {
        0 => 4,
        n => usize::from(n),
    };
    let start = (setup_sectors + 1) * 512 + word(0x248)?;
    image.get(start..start + word(0x24c)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_of_a_bzimage_is_found_by_its_header() {
        let mut image = vec![0_u8; 4096];
        image[0x1f1] = 2;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&4_u32.to_le_bytes());
        image[3 * 512 + 16..][..4].copy_from_slice(b"load");
        assert_eq!(bzimage_payload(&image), Some(&b"load"[..]));
        assert_eq!(bzimage_payload(&image[..1000]), None);
    }
}
