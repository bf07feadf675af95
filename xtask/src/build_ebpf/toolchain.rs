//! The choice of the compiler and linker that build the eBPF object.
//!
//! The object needs `core` for a target that no toolchain ships, so the compiler must come with the
//! source of its library. The linker reads the compiler's bitcode, so both must use the same LLVM
//! version.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{checkout, process};

/// The version of bpf-linker that the object is built with.
pub const LINKER_VERSION: &str = "0.13.0";
/// The LLVM version of the linker, and so of the accepted compilers.
pub const LINKER_LLVM: u32 = 22;

/// A bpf-linker.
pub struct Linker {
    pub path: PathBuf,
    /// The version as it prints it: `bpf-linker 0.13.0`.
    pub version: String,
    /// The major version of LLVM. `None` if LLVM is linked in statically and cargo did not install
    /// the linker.
    pub llvm_major: Option<u32>,
}

/// A toolchain that can build the object.
pub struct Toolchain {
    pub cargo: OsString,
    pub rustc: PathBuf,
    /// The version of rustc: `rustc 1.96.0 (ac68faa20 2026-05-25)`.
    pub rustc_version: String,
    /// The LLVM version of the compiler: `22.1.8`.
    pub rustc_llvm: String,
    /// The source of the library: its path in debug information, and its real path.
    pub library: Vec<PathBuf>,
    pub linker: Linker,
    pub strip: PathBuf,
    /// The LLVM version of the linker, as the tool next to it prints it: `22.1.8`.
    pub llvm: String,
}

/// A candidate compiler.
struct Compiler {
    name: &'static str,
    cargo: OsString,
    rustc: PathBuf,
    version: String,
    llvm: String,
    library: PathBuf,
}

impl Linker {
    /// Finds the first bpf-linker in PATH, or the one that cargo installed.
    pub fn find() -> Result<Self> {
        let path = process::find("bpf-linker").context(
            "there is no bpf-linker, and the eBPF object is linked with it; `cargo xtask setup` installs it",
        )?;
        let version = process::output(Command::new(&path).arg("--version"))?.trim().to_owned();
        let libraries = process::output(Command::new("ldd").arg(&path)).unwrap_or_default();
        let llvm_major = llvm_of_libraries(&libraries).or_else(|| {
            let installs = fs::read_to_string(checkout::cargo_home()?.join(".crates2.json")).ok()?;
            llvm_of_installs(&installs, &version)
        });
        Ok(Self { path, version, llvm_major })
    }
}

impl Toolchain {
    /// Finds the first toolchain that can build the object. If two can, prefers the one that built
    /// the embedded object. Prints which one it takes, and why it does not take the others.
    pub fn find(made_by: Option<&str>) -> Result<Self> {
        let linker = Linker::find()?;
        let candidates = [("rustup's nightly", nightly()), ("Debian's rustc-web", debian())];
        let mut accepted = Vec::new();
        let mut refused = Vec::new();
        for (name, candidate) in candidates {
            match candidate.and_then(|(cargo, rustc)| examine(name, cargo, rustc, &linker)) {
                Ok(compiler) => accepted.push(compiler),
                Err(why) => refused.push(format!("{name} cannot be used: {why:#}")),
            }
        }
        if accepted.is_empty() {
            bail!(
                "no compiler here can make the eBPF object. {}. `cargo xtask setup` installs what is needed",
                refused.join(". ")
            );
        }
        let same = accepted.iter().position(|compiler| Some(compiler.version.as_str()) == made_by);
        let compiler = accepted.swap_remove(same.unwrap_or(0));
        for other in &accepted {
            refused.push(format!("{} could be used as well", other.name));
        }
        println!("compiler: {}, {}, LLVM {}", compiler.name, compiler.version, compiler.llvm);
        for line in &refused {
            println!("          ({line})");
        }
        Self::complete(compiler, linker)
    }

    fn complete(compiler: Compiler, linker: Linker) -> Result<Self> {
        let major = linker.llvm_major.or_else(|| major(&compiler.llvm)).unwrap_or(LINKER_LLVM);
        let strip = [format!("/usr/lib/llvm-{major}/bin/llvm-strip"), format!("llvm-strip-{major}")]
            .iter()
            .find_map(|name| process::find(name))
            .with_context(|| {
                format!(
                    "there is no llvm-strip of LLVM {major}, which takes the DWARF out of the object; \
                     `apt-get install llvm-{major}` brings it"
                )
            })?;
        let said = process::output(Command::new(&strip).arg("--version"))?;
        let llvm = llvm_version(&said)
            .with_context(|| format!("`{} --version` does not say its LLVM version", strip.display()))?;
        println!("linker:   {}, LLVM {llvm}", linker.version);
        let real = fs::canonicalize(&compiler.library).unwrap_or_else(|_| compiler.library.clone());
        Ok(Self {
            cargo: compiler.cargo,
            rustc: compiler.rustc,
            rustc_version: compiler.version,
            rustc_llvm: compiler.llvm,
            library: vec![real, compiler.library],
            linker,
            strip,
            llvm,
        })
    }
}

/// Returns cargo and rustc of rustup's nightly.
fn nightly() -> Result<(OsString, PathBuf)> {
    let rustup = process::find("rustup").context("rustup is not installed")?;
    let which = |tool| {
        // Looking for a toolchain must not download one.
        process::output(Command::new(&rustup).env("RUSTUP_AUTO_INSTALL", "0").args([
            "which",
            "--toolchain",
            "nightly",
            tool,
        ]))
        .map(|path| PathBuf::from(path.trim()))
        .context("rustup has no nightly toolchain")
    };
    Ok((which("cargo")?.into(), which("rustc")?))
}

/// Returns Debian's rustc, with the cargo that runs this task.
fn debian() -> Result<(OsString, PathBuf)> {
    let rustc = PathBuf::from("/usr/bin/rustc");
    if !rustc.exists() {
        bail!("{} does not exist (apt-get install rustc-web rust-web-src)", rustc.display());
    }
    Ok((env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), rustc))
}

fn examine(name: &'static str, cargo: OsString, rustc: PathBuf, linker: &Linker) -> Result<Compiler> {
    let said = process::output(Command::new(&rustc).arg("-vV"))?;
    let version = said.lines().next().unwrap_or_default().to_owned();
    let llvm = said
        .lines()
        .find_map(|line| line.strip_prefix("LLVM version: "))
        .with_context(|| format!("{version} does not say which LLVM it has"))?
        .to_owned();
    let sysroot = process::output(Command::new(&rustc).args(["--print", "sysroot"]))?;
    let library = Path::new(sysroot.trim()).join("lib/rustlib/src/rust");
    if !library.join("library/core/Cargo.toml").exists() {
        bail!(
            "it has no source of the core library (with rustup: `rustup component add rust-src --toolchain nightly`; \
             with Debian: `apt-get install rust-web-src`)"
        );
    }
    if let (Some(compiler), Some(linker)) = (major(&llvm), linker.llvm_major)
        && compiler != linker
    {
        bail!(
            "{version} has LLVM {compiler} and bpf-linker has LLVM {linker}, which cannot read its bitcode"
        );
    }
    Ok(Compiler { name, cargo, rustc, version, llvm, library })
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

/// Parses the LLVM version from the output of ldd: `libLLVM.so.22.1 => ...`, or `libLLVM-22.so.1`.
fn llvm_of_libraries(libraries: &str) -> Option<u32> {
    let name = libraries.lines().find_map(|line| line.trim().strip_prefix("libLLVM"))?;
    let digits: String =
        name.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Reads the LLVM version from cargo's record of installed programs, by the feature that selected
/// it.
fn llvm_of_installs(installs: &str, linker: &str) -> Option<u32> {
    let installs: serde_json::Value = serde_json::from_str(installs).ok()?;
    let (_, install) =
        installs.get("installs")?.as_object()?.iter().find(|(id, _)| id.starts_with(linker))?;
    let features = install.get("features")?.as_array()?;
    features.iter().find_map(|feature| feature.as_str()?.strip_prefix("llvm-")?.parse().ok())
}

/// Parses the version from the `--version` output of an LLVM tool.
fn llvm_version(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("LLVM version ")?;
    Some(rest.split_whitespace().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linker_s_llvm_is_found_in_every_form() {
        assert_eq!(
            llvm_of_libraries("\tlinux-vdso.so.1\n\tlibLLVM.so.22.1 => /x/libLLVM.so.22.1 (0x0)\n"),
            Some(22)
        );
        assert_eq!(llvm_of_libraries("\tlibLLVM-19.so.1 => /x (0x0)\n"), Some(19));
        assert_eq!(llvm_of_libraries("\tlibc.so.6 => /x (0x0)\n"), None);
        let installs = r#"{"installs":{"bpf-linker 0.13.0 (registry+x)":{"features":["other","llvm-22"]}}}"#;
        assert_eq!(llvm_of_installs(installs, "bpf-linker 0.13.0"), Some(22));
        assert_eq!(llvm_of_installs(installs, "bpf-linker 0.14.0"), None);
        assert_eq!(llvm_of_installs("", "bpf-linker 0.13.0"), None);
    }

    #[test]
    fn versions_are_read_from_what_tools_say() {
        let said = "llvm-strip, compatible with GNU strip\nDebian LLVM version 22.1.8\n  Optimized build.\n";
        assert_eq!(llvm_version(said).as_deref(), Some("22.1.8"));
        assert_eq!(llvm_version("strip"), None);
        assert_eq!(major("22.1.8"), Some(22));
        assert_eq!(major("trunk"), None);
    }
}
