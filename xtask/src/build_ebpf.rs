//! `cargo xtask build-ebpf`: builds the eBPF object that the user crate embeds, and proves that the
//! embedded object comes from the source.

mod stamp;
pub mod toolchain;
pub mod wrapper;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{checkout, process, remap, sha256};
use stamp::{MadeBy, Stamp};
use toolchain::Toolchain;

/// The target of the object.
const TARGET: &str = "bpfel-unknown-none";
/// The instruction set: 32-bit operations and atomics, which every supported kernel has.
const TARGET_CPU: &str = "v3";
/// The program with a log, and the feature that makes it log.
const TRACE: &str = "trace";
/// The environment variable with the path of an object that the tests load instead of the embedded
/// one. Only builds with debug assertions read it.
pub const OBJECT_VARIABLE: &str = "PRECISE_BPF_OBJECT";

/// Build the eBPF object from its source into precise-ebpf/prebuilt
#[derive(clap::Args)]
pub struct BuildEbpfArgs {
    /// Change nothing: prove that the existing object is what the source produces
    #[arg(long)]
    check: bool,
}

/// The result of a check.
pub enum ObjectCheck {
    /// The embedded object is identical to the one built from the source.
    Same,
    /// A different toolchain made the embedded object, so the check proves nothing. The path is the
    /// object that was built here.
    OtherToolchain(PathBuf),
}

/// Runs the task.
pub fn run(args: &BuildEbpfArgs) -> Result<()> {
    if args.check { check().map(drop) } else { build() }
}

/// Builds the baseline object of the benchmark and returns its path. The object is not kept in the
/// repository.
pub fn yardstick() -> Result<PathBuf> {
    compile(&Toolchain::find(None)?, "bench")
}

/// Builds the object with a log and returns its path. The object is not kept in the repository.
pub fn traced() -> Result<PathBuf> {
    compile(&Toolchain::find(None)?, TRACE)
}

/// The files that are kept in the repository.
struct Prebuilt {
    object: PathBuf,
    stamp: PathBuf,
}

impl Prebuilt {
    fn locate() -> Self {
        let folder = checkout::root().join("precise-ebpf/prebuilt");
        Self { object: folder.join("precise.bpf.o"), stamp: folder.join("precise.bpf.json") }
    }
}

fn build() -> Result<()> {
    let prebuilt = Prebuilt::locate();
    let sources = stamp::sources(&checkout::root())?;
    let toolchain = Toolchain::find(None)?;
    let object = compile(&toolchain, "precise")?;
    let object_sha256 = hash(&object)?;
    let stamp = Stamp {
        object_sha256,
        made_by: MadeBy::of(&toolchain),
        target_cpu: TARGET_CPU.to_owned(),
        sources_sha256: sources,
    };
    let bytes = fs::read(&object).with_context(|| format!("{} cannot be read", object.display()))?;
    replace(&prebuilt.object, &bytes)?;
    replace(&prebuilt.stamp, stamp.to_text()?.as_bytes())?;
    println!("made {} ({} bytes, sha256 {})", prebuilt.object.display(), bytes.len(), stamp.object_sha256);
    Ok(())
}

/// Checks as much as the toolchain on this machine can prove.
pub fn check() -> Result<ObjectCheck> {
    let prebuilt = Prebuilt::locate();
    let stamp = Stamp::read(&prebuilt.stamp)?;
    is_whole(&prebuilt, &stamp)?;
    is_current(&stamp, &stamp::sources(&checkout::root())?)?;

    let toolchain = Toolchain::find(Some(&stamp.made_by.rustc))?;
    let object = compile(&toolchain, "precise")?;
    let made = hash(&object)?;
    if made == stamp.object_sha256 {
        println!("the embedded object is what the source makes (sha256 {made})");
        return Ok(ObjectCheck::Same);
    }
    let differences = stamp.made_by.differences(&MadeBy::of(&toolchain));
    if differences.is_empty() {
        bail!(
            "the embedded object is not what the source makes: it has sha256 {}, and the toolchain that made it now \
             makes {made} ({}); if the source is right, `cargo xtask build-ebpf` replaces it",
            stamp.object_sha256,
            object.display()
        );
    }
    println!(
        "another toolchain made the embedded object, so its bytes prove nothing here: {}",
        differences.join("; ")
    );
    println!("tests load the one that was made here, with {OBJECT_VARIABLE}={}", object.display());
    Ok(ObjectCheck::OtherToolchain(object))
}

fn is_whole(prebuilt: &Prebuilt, stamp: &Stamp) -> Result<()> {
    let embedded = hash(&prebuilt.object)?;
    if embedded != stamp.object_sha256 {
        bail!(
            "{} has sha256 {embedded}, and its stamp says {}: one was changed without the other; \
             `cargo xtask build-ebpf` makes both",
            prebuilt.object.display(),
            stamp.object_sha256
        );
    }
    Ok(())
}

fn is_current(stamp: &Stamp, sources: &BTreeMap<String, String>) -> Result<()> {
    let mut changed = stamp.changed_sources(sources);
    if stamp.target_cpu != TARGET_CPU {
        changed.push(format!("the object is for {TARGET_CPU} now, and was for {}", stamp.target_cpu));
    }
    if !changed.is_empty() {
        bail!(
            "the embedded object is older than its source: {}; `cargo xtask build-ebpf` makes it anew",
            changed.join(", ")
        );
    }
    Ok(())
}

/// Compiles, links and strips under target/. Returns the path of the object.
fn compile(toolchain: &Toolchain, program: &str) -> Result<PathBuf> {
    let folder = checkout::target().join("ebpf");
    let mut cargo = Command::new(&toolchain.cargo);
    cargo
        .current_dir(checkout::root().join("precise-ebpf"))
        .args(["build", "--quiet", "--release", "--locked", "--bin", program])
        .args((program == TRACE).then_some("--features=trace"))
        .args(["--target", TARGET, "-Z", "build-std=core", "--target-dir"])
        .arg(&folder)
        .env("RUSTC", &toolchain.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", flags(toolchain))
        // The caller set these for the rest of the tree.
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    wrapper::WRAPPER.wrap(&mut cargo);
    println!("building {TARGET}, up to two minutes the first time");
    let status = cargo.stdin(std::process::Stdio::null()).status().context("cargo cannot be started")?;
    if !status.success() {
        bail!("the eBPF program was not built ({status}); what the compiler wrote is above");
    }
    let linked = folder.join(TARGET).join("release").join(program);
    let object = folder.join(format!("{program}.bpf.o"));
    // DWARF is most of the size and is never read; BTF and its line numbers stay.
    process::output(Command::new(&toolchain.strip).arg("--strip-debug").arg("-o").arg(&object).arg(&linked))?;
    Ok(object)
}

/// Returns the compiler's flags in cargo's encoding. No path of this machine may get into the
/// object.
fn flags(toolchain: &Toolchain) -> OsString {
    let mut flags: Vec<OsString> =
        ["-Cdebuginfo=2", "-Clink-arg=--btf", "-Cpanic=abort"].map(OsString::from).into();
    flags.push(format!("-Ctarget-cpu={TARGET_CPU}").into());
    flags.push(joined("-Clinker=", &toolchain.linker.path, ""));
    let mut remaps = remap::folders();
    remaps.extend(toolchain.library.iter().map(|library| (library.clone(), "/rust")));
    flags.extend(remaps.iter().map(|(from, to)| joined("--remap-path-prefix=", from, &format!("={to}"))));
    flags.join(OsString::from("\x1f").as_os_str())
}

fn joined(before: &str, path: &Path, after: &str) -> OsString {
    let mut word = OsString::from(before);
    word.push(path);
    word.push(after);
    word
}

fn hash(file: &Path) -> Result<String> {
    sha256::of_file(file)
        .with_context(|| format!("{} cannot be hashed; `cargo xtask build-ebpf` makes it", file.display()))
}

/// Writes a new file and renames it, so that a build at the same time reads either the old or the
/// new file.
fn replace(file: &Path, bytes: &[u8]) -> Result<()> {
    let new = file.with_extension("new");
    let write = || {
        fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
        fs::write(&new, bytes)?;
        fs::rename(&new, file)
    };
    write().with_context(|| format!("{} cannot be written", file.display()))
}
