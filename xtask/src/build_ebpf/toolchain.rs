//! Which compiler and which linker make the eBPF object.
//!
//! The object needs `core` for a target that no toolchain ships, so the compiler must come with its
//! library's source; and the linker reads the compiler's bitcode, so both must be of one LLVM.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{checkout, process};

/// The bpf-linker that the object is made with.
pub const LINKER_VERSION: &str = "0.13.0";
/// Its LLVM: that of the compilers that are accepted today.
pub const LINKER_LLVM: u32 = 22;

/// A bpf-linker.
pub struct Linker {
    pub path: PathBuf,
    /// As it says it: `bpf-linker 0.13.0`.
    pub version: String,
    /// Unknown when LLVM is linked in statically and cargo did not install it.
    pub llvm_major: Option<u32>,
}

/// Everything that makes an object from the source.
pub struct Toolchain {
    pub cargo: OsString,
    pub rustc: PathBuf,
    /// `rustc 1.96.0 (ac68faa20 2026-05-25)`.
    pub rustc_version: String,
    /// The compiler's LLVM: `22.1.8`.
    pub rustc_llvm: String,
    /// The library's source, as a debugger would be told it, and as it really lies.
    pub library: Vec<PathBuf>,
    pub linker: Linker,
    pub strip: PathBuf,
    /// The linker's LLVM, as the tool beside it says it: `22.1.8`.
    pub llvm: String,
}

/// A compiler that was looked at.
struct Compiler {
    name: &'static str,
    cargo: OsString,
    rustc: PathBuf,
    version: String,
    llvm: String,
    library: PathBuf,
}

impl Linker {
    /// The first one in PATH, or cargo's.
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
    /// The first toolchain that can make the object; of two that can, the one that made the
    /// embedded object. Says which one it takes, and why another is not taken.
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

/// Cargo and rustc of rustup's nightly.
fn nightly() -> Result<(OsString, PathBuf)> {
    let rustup = process::find("rustup").context("rustup is not installed")?;
    let which = |tool| {
        // Looking must not download a toolchain.
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

/// Debian's rustc, with the cargo that runs this task.
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

/// From what ldd says: `libLLVM.so.22.1 => ...`, or `libLLVM-22.so.1`.
fn llvm_of_libraries(libraries: &str) -> Option<u32> {
    let name = libraries.lines().find_map(|line| line.trim().strip_prefix("libLLVM"))?;
    let digits: String =
        name.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// From cargo's record of what it installed, by the feature that chose the LLVM.
fn llvm_of_installs(installs: &str, linker: &str) -> Option<u32> {
    let installs: serde_json::Value = serde_json::from_str(installs).ok()?;
    let (_, install) =
        installs.get("installs")?.as_object()?.iter().find(|(id, _)| id.starts_with(linker))?;
    let features = install.get("features")?.as_array()?;
    features.iter().find_map(|feature| feature.as_str()?.strip_prefix("llvm-")?.parse().ok())
}

/// From `--version` of one of LLVM's tools.
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
