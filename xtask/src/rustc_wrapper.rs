//! This binary as cargo's `RUSTC_WRAPPER`: cargo starts it in place of rustc, it changes the
//! arguments, and becomes rustc.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// What a wrapper does.
pub struct RustcWrapper {
    /// The environment variable that is set for the cargo that uses the wrapper.
    pub mark: &'static str,
    /// Returns rustc's arguments from those of cargo.
    pub arguments: fn(&[OsString]) -> Vec<OsString>,
}

impl RustcWrapper {
    /// Makes cargo use the wrapper.
    pub fn wrap(&self, cargo: &mut Command) {
        cargo.env("RUSTC_WRAPPER", process::own_binary()).env(self.mark, "1");
    }

    /// Replaces this process with the compiler if cargo started it as this wrapper, and returns why
    /// that failed. Returns `None` if it was not.
    pub fn stand_in(&self) -> Option<Result<()>> {
        env::var_os(self.mark)?;
        let invocation: Vec<OsString> = env::args_os().skip(1).collect();
        Some(self.run(&invocation))
    }

    fn run(&self, invocation: &[OsString]) -> Result<()> {
        let (compiler, arguments) = invocation
            .split_first()
            .context("a wrapper of rustc gets rustc as its first argument, and got none")?;
        let error = Command::new(compiler).args((self.arguments)(arguments)).exec();
        Err(error).with_context(|| format!("`{}` cannot be started", compiler.display()))
    }
}
