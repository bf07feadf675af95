//! Gives crates the same names wherever the checkout is.
//!
//! Cargo computes a crate's identity (`-C metadata`) from the absolute path of its folder, and
//! symbol names contain that identity, so two checkouts would build two different objects. The
//! wrapper replaces the identity with the crate's name and version.

use std::env;
use std::ffi::OsString;

use crate::rustc_wrapper::RustcWrapper;

/// The wrapper of the cargo that builds the object.
pub const WRAPPER: RustcWrapper = RustcWrapper {
    mark: "PRECISE_XTASK_IS_RUSTC_WRAPPER",
    arguments: |arguments| {
        let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
        stable(arguments, super::TARGET, &version)
    },
};

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
