//! The guests' kernels: Debian's cloud images, and for those that get an emulated PMU their headers
//! and of their source only arch/x86/events. Everything is fetched by name, stored by version under
//! the lab's folder, and used from there without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::apt::Apt;
use super::newer_perf::newer_perf;
use super::pmu::GuestPmu;
use super::sh;

/// A kernel series that the lab can fetch.
#[derive(Debug)]
pub struct KernelSeries {
    /// The name on the command line and in tests.
    pub name: &'static str,
    suites: &'static [&'static str],
    /// Whether modules can be built for it.
    builds_modules: bool,
}

/// The oldest kernel that the project supports in a distribution, the newest that Debian 12's
/// compiler can build modules for, and the newest that Debian has.
///
/// The last one has no number, because its suite holds only one kernel and moves on every few
/// months.
pub const SERIES: [KernelSeries; 3] = [
    KernelSeries {
        name: "6.1",
        suites: &["bookworm", "bookworm-updates", "bookworm-security"],
        builds_modules: true,
    },
    KernelSeries { name: "6.12", suites: &["bookworm-backports"], builds_modules: true },
    KernelSeries { name: "newest", suites: &["trixie-backports"], builds_modules: false },
];

impl KernelSeries {
    /// Returns why a guest with this kernel cannot have this PMU; `None` if it can.
    pub fn why_not(&self, pmu: GuestPmu) -> Option<String> {
        (pmu.vendor().is_some() && !self.builds_modules).then(|| {
            format!(
                "kernel {} has no PMU {}: what builds the modules that emulate a PMU for it (linux-kbuild) needs \
                 the C library of Debian 13, and the lab builds on Debian 12; this kernel runs with --pmu none, \
                 which has software events, and --kernel 6.12 is the newest with a PMU",
                self.name,
                pmu.name()
            )
        })
    }
}

/// A prepared kernel.
pub struct Kernel {
    /// The series by which it was requested.
    pub series: &'static KernelSeries,
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
        let cannot =
            || format!("cannot fetch kernel {} from Debian ({})", series.name, series.suites.join(", "));
        let apt = Apt::new(lab.join("apt").join(series.name), series.suites).with_context(cannot)?;
        let image = apt.dependency("linux-image-cloud-amd64", "linux-image-").with_context(cannot)?;
        let release = image.strip_prefix("linux-image-").unwrap_or(&image);
        let kernel = Self::at(&kernels, series, release);
        if !kernel.is_complete() {
            kernel.fetch(&apt).with_context(|| format!("cannot prepare kernel {release}"))?;
        }
        fs::write(&chosen, format!("{release}\n"))?;
        Ok(kernel)
    }

    fn at(kernels: &Path, series: &'static KernelSeries, release: &str) -> Self {
        Self { series, release: release.to_owned(), dir: kernels.join(release) }
    }

    fn is_complete(&self) -> bool {
        self.dir.join("complete").exists()
    }

    fn fetch(&self, apt: &Apt) -> Result<()> {
        if self.dir.exists() {
            fs::remove_dir_all(&self.dir)?;
        }
        let image = format!("linux-image-{}", self.release);
        // Since 7.2 the image is split, and the package of this name holds nothing.
        let mut parts = apt.dependencies(&image)?;
        parts.retain(|name| name.starts_with("linux-") && name.ends_with(&self.release));
        parts.push(image);
        self.unpack(apt, &parts)?;
        if self.series.builds_modules {
            self.fetch_build_files(apt)?;
        }
        self.extract_vmlinux()?;
        fs::remove_dir_all(self.debs())?;
        fs::write(self.dir.join("complete"), "")?;
        Ok(())
    }

    /// Fetches and unpacks what modules are built with.
    fn fetch_build_files(&self, apt: &Apt) -> Result<()> {
        let flavour = self.release.as_str();
        let common = flavour.strip_suffix("-cloud-amd64").context("not a cloud kernel")?;
        // The kbuild package of 6.1 is named after the series, later ones after the release.
        let kbuild = apt
            .dependency(&format!("linux-headers-{flavour}"), "linux-kbuild-")
            .context("which linux-kbuild do the headers want?")?;
        let headers = [format!("linux-headers-{flavour}"), format!("linux-headers-{common}-common"), kbuild];
        self.unpack(apt, &headers)?;
        let source = apt.download(&self.debs(), &[format!("linux-source-{}", self.series.name)])?;
        self.unpack_events(source.first().context("nothing downloaded")?)?;
        self.point_headers_here(common)
    }

    /// Downloads packages and unpacks them.
    fn unpack(&self, apt: &Apt, packages: &[String]) -> Result<()> {
        for deb in apt.download(&self.debs(), packages)? {
            sh::run(Command::new("dpkg-deb").arg("-x").arg(deb).arg(self.root()))?;
        }
        Ok(())
    }

    /// Unpacks the one folder of the kernel source (1.5 GB) that the guest modules are built from.
    fn unpack_events(&self, deb: &Path) -> Result<()> {
        let name = format!("linux-source-{}", self.series.name);
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
        // Since 7.2 it is in the folder of the modules.
        let places =
            [format!("boot/vmlinuz-{}", self.release), format!("usr/lib/modules/{}/vmlinuz", self.release)];
        let file = places.map(|place| self.root().join(place)).into_iter().find(|file| file.exists());
        let image = fs::read(file.context("the packages have no vmlinuz where it is known to be")?)?;
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

    /// Returns the perf of the newest kernel's suite, and fetches it if it is not there; `None` for
    /// the other kernels. It is stored with the kernel, so that both are refreshed together.
    pub fn own_perf(&self) -> Result<Option<PathBuf>> {
        if self.series.builds_modules {
            return Ok(None);
        }
        let perf = newer_perf(&self.dir.join("perf"));
        perf.map(Some).with_context(|| format!("cannot fetch the perf of kernel {}", self.release))
    }

    /// Returns the folder that packages are downloaded to.
    fn debs(&self) -> PathBuf {
        self.dir.join("debs")
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

    /// Returns the folder of the image's modules.
    pub fn modules(&self) -> PathBuf {
        let lib = self.root().join("lib/modules").join(&self.release);
        if lib.exists() { lib } else { self.root().join("usr/lib/modules").join(&self.release) }
    }

    /// Returns a module of the image, unpacked; `None` if it is built into the kernel.
    pub fn module(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let lib = self.modules();
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
    fn only_a_kernel_without_modules_lacks_pmus() {
        let without: Vec<&str> = SERIES
            .iter()
            .filter(|series| series.why_not(GuestPmu::Skl).is_some())
            .map(|series| series.name)
            .collect();
        assert_eq!(without, ["newest"]);
        assert!(SERIES.iter().all(|series| series.why_not(GuestPmu::Software).is_none()));
    }

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
