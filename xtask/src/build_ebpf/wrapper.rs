//! This binary as cargo's `RUSTC_WRAPPER`: gives crates the same names wherever the checkout is.
//!
//! Cargo computes a crate's identity (`-C metadata`) from the absolute path of its folder, and
//! symbol names contain that identity, so two checkouts would build two different objects. The
//! wrapper replaces the identity with the crate's name and version.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

/// The environment variable that is set for the cargo that builds the object.
pub const MARK: &str = "PRECISE_XTASK_IS_RUSTC_WRAPPER";

/// Returns the arguments if this process should be the wrapper and not run a task.
pub fn invocation() -> Option<Vec<OsString>> {
    env::var_os(MARK)?;
    Some(env::args_os().skip(1).collect())
}

/// Replaces this process with the compiler; returns only if that fails.
pub fn run(invocation: Vec<OsString>) -> Result<()> {
    let (compiler, arguments) = invocation
        .split_first()
        .context("a wrapper of rustc gets rustc as its first argument, and got none")?;
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let error = Command::new(compiler).args(stable(arguments, super::TARGET, &version)).exec();
    Err(error).with_context(|| format!("`{}` cannot be started", compiler.display()))
}

/// Returns the arguments with an identity that does not depend on a path, if they compile for the
/// target. Crates for the build machine itself (build scripts, macros) keep cargo's identity,
/// because one crate may be built there in two variants.
fn stable(arguments: &[OsString], target: &str, version: &str) -> Vec<OsString> {
    let after = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1)?.to_str()
    };
    let (Some(name), true) = (after("--crate-name"), after("--target") == Some(target)) else {
        return arguments.to_vec();
    };
    arguments
        .iter()
        .map(|argument| match argument.to_str() {
            Some(text) if text.starts_with("metadata=") => format!("metadata={name}-{version}").into(),
            _ => argument.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn only_the_target_s_crates_get_a_stable_identity() {
        let cargo = "--crate-name core --target bpf -C metadata=0123 -C extra-filename=-0123";
        let ours = "--crate-name core --target bpf -C metadata=core-1.2 -C extra-filename=-0123";
        assert_eq!(stable(&words(cargo), "bpf", "1.2"), words(ours));
        assert_eq!(stable(&words(cargo), "other", "1.2"), words(cargo));
        assert_eq!(stable(&words("-vV"), "bpf", ""), words("-vV"));
    }
}
