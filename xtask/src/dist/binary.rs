//! The static binary, and its debug information in a separate file.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::release::Release;
use super::wrapper;
use crate::{checkout, process, remap};

/// The largest binary that is shipped, in bytes.
const MOST: u64 = 15_000_000;
/// The profile of Cargo.toml that ships.
const PROFILE: &str = "dist";

/// What makes Rust smaller.
const SMALL_RUST: [&str; 2] = [
    // Only what a panic can pass has unwind tables. By default, all functions of x86-64 have.
    "-Cforce-unwind-tables=no",
    // The tables of a function with a frame pointer have one rule for its whole body, and not one
    // for each push and pop.
    "-Cforce-frame-pointers=yes",
];

/// What makes C smaller: no panic passes it, and zstd leaves out the ways to compress that neither
/// level 3 (captures) nor level 19 (what the binary carries) uses (lib/README.md of zstd).
const SMALL_C: [&str; 7] = [
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-DZSTD_EXCLUDE_GREEDY_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_LAZY_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_LAZY2_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_BTLAZY2_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_BTOPT_BLOCK_COMPRESSOR",
];

/// How the binary is built.
#[derive(Clone, Debug)]
pub enum Build {
    /// For a target, optimized for size and reproducibly.
    Shipped { target: String },
    /// From the libraries of the tests, which are there already: only the last crate is compiled
    /// and linked. Packages behave the same, but must not be shipped.
    Test,
}

/// A binary that needs nothing of the machine but its kernel.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Without symbols; names its debug information by build id.
    pub stripped: PathBuf,
    /// The debug information.
    pub debug: PathBuf,
    /// The triple that it was built for.
    pub target: String,
}

/// The names of one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// In packages of Debian, and in images.
    pub debian: &'static str,
    /// In packages of RPM.
    pub rpm: &'static str,
}

impl Binary {
    /// Returns the names of the architecture. precise runs on x86-64 only.
    pub fn architecture(&self) -> Result<Architecture> {
        ensure!(self.target.starts_with("x86_64-"), "precise does not run on {}", self.target);
        Ok(Architecture { debian: "amd64", rpm: "x86_64" })
    }

    /// Builds the binary and puts both files into `folder`.
    pub fn build(build: &Build, release: &Release, folder: &Path) -> Result<Self> {
        let target = match build {
            Build::Shipped { target } => target.clone(),
            Build::Test => host()?,
        };
        let linked = compile(build, release)?;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let binary = Self { stripped: folder.join("precise"), debug: folder.join("precise.debug"), target };
        binary.split(&linked)?;
        binary.is_static()?;
        if matches!(build, Build::Shipped { .. }) {
            binary.is_small()?;
        }
        Ok(binary)
    }

    fn split(&self, linked: &Path) -> Result<()> {
        let keep = ["--only-keep-debug", "--compress-debug-sections=zlib"];
        process::run(Command::new("objcopy").args(keep).arg(linked).arg(&self.debug))?;
        process::run(Command::new("strip").arg("-o").arg(&self.stripped).arg(linked))
    }

    /// Checks that no program interpreter and no shared library is needed.
    fn is_static(&self) -> Result<()> {
        let headers = process::output(Command::new("readelf").args(["-W", "-l", "-d"]).arg(&self.stripped))?;
        for needs in ["INTERP", "(NEEDED)"] {
            ensure!(
                !headers.contains(needs),
                "{} needs shared libraries (readelf shows {needs}); target {} cannot be linked statically",
                self.stripped.display(),
                self.target
            );
        }
        Ok(())
    }

    fn is_small(&self) -> Result<()> {
        let bytes = fs::metadata(&self.stripped)?.len();
        if bytes > MOST {
            bail!(
                "{} has {bytes} bytes, and at most {MOST} are shipped; `cargo bloat` says what takes them",
                self.stripped.display()
            );
        }
        Ok(())
    }
}

/// Compiles and links. Returns the path of the binary.
fn compile(build: &Build, release: &Release) -> Result<PathBuf> {
    let (mut cargo, folder) = match build {
        Build::Shipped { target } => {
            let mut cargo = process::cargo();
            cargo
                .args(["rustc", "--locked", "--package", "precise-user", "--bin", "precise"])
                .args(["--profile", PROFILE, "--target", target])
                .env("CARGO_ENCODED_RUSTFLAGS", rust_flags()?)
                .env("CFLAGS", c_flags())
                .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
                // What an incremental build makes depends on the builds before.
                .env("CARGO_INCREMENTAL", "0")
                .arg("--")
                .args(wrapper::STATIC)
                // Functions with the same code are one: Rust promises them no different addresses.
                .args(["-C", "link-arg=-Wl,--icf=all"])
                // What is corrected at the start is a list of bits, and not of 24 bytes for each
                // address (glibc 2.36, musl 1.2.4).
                .args(["-C", "link-arg=-Wl,-z,pack-relative-relocs"]);
            (cargo, checkout::target().join(target).join(PROFILE))
        }
        Build::Test => {
            let mut cargo = process::build_for_tests(&["precise"]);
            wrapper::WRAPPER.wrap(&mut cargo);
            (cargo, checkout::target().join("debug"))
        }
    };
    cargo.env("PRECISE_COMMIT", format!("{} ({})", release.commit, release.date));
    process::run(&mut cargo)?;
    Ok(folder.join("precise"))
}

/// Returns the compiler's flags in cargo's encoding.
fn rust_flags() -> Result<OsString> {
    let mut folders = remap::folders();
    let rust = process::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    folders.push((rust.trim().into(), "/rust"));
    let remapped = folders.iter().map(|(from, to)| prefix("--remap-path-prefix=", from, to));
    let flags: Vec<OsString> = remapped.chain(SMALL_RUST.map(OsString::from)).collect();
    Ok(flags.join(OsString::from("\x1f").as_os_str()))
}

/// Returns the flags of the C compiler, for the two dependencies in C.
fn c_flags() -> OsString {
    let folders = remap::folders();
    let remapped = folders.iter().map(|(from, to)| prefix("-ffile-prefix-map=", from, to));
    let flags: Vec<OsString> = remapped.chain(SMALL_C.map(OsString::from)).collect();
    flags.join(OsString::from(" ").as_os_str())
}

fn prefix(flag: &str, from: &Path, to: &str) -> OsString {
    let mut word = OsString::from(flag);
    word.push(from);
    word.push("=");
    word.push(to);
    word
}

/// Returns the triple of this machine.
pub fn host() -> Result<String> {
    let said = process::output(Command::new("rustc").arg("-vV"))?;
    let line = said.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("`rustc -vV` names no host")
}
