//! This binary as cargo's `RUSTC_WRAPPER`: links the binary of precise statically, and leaves every
//! library as it is. `cargo rustc` could pass the flags too, but to one package only; cargo would
//! select other features of shared crates, and build half of them again.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context, Result};

/// The environment variable that is set for the cargo that links the binary.
pub const MARK: &str = "PRECISE_XTASK_LINKS_STATICALLY";
/// Makes the linker take the C library too.
pub const STATIC: [&str; 2] = ["-C", "target-feature=+crt-static"];

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
    let mut rustc = Command::new(compiler);
    rustc.args(arguments);
    if is_binary(arguments) {
        rustc.args(STATIC);
    }
    Err(rustc.exec()).with_context(|| format!("`{}` cannot be started", compiler.display()))
}

/// Returns whether these arguments compile the binary: the library has the same name.
fn is_binary(arguments: &[OsString]) -> bool {
    let has = |flag: &str, value: &str| arguments.windows(2).any(|pair| pair[0] == flag && pair[1] == value);
    has("--crate-name", "precise") && has("--crate-type", "bin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_binary_is_linked_otherwise() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(is_binary(&words("--crate-name precise --edition=2024 src/main.rs --crate-type bin")));
        assert!(!is_binary(&words("--crate-name precise src/lib.rs --crate-type lib")));
        assert!(!is_binary(&words("--crate-name host_drain drain.rs --crate-type bin")));
        assert!(!is_binary(&words("-vV")));
    }
}
