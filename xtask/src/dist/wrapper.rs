//! Links the binary of precise statically, and leaves every library as it is. `cargo rustc` could
//! pass the flags too, but to one package only; cargo would select other features of shared crates,
//! and build half of them again.

use std::ffi::OsString;

use crate::rustc_wrapper::RustcWrapper;

/// Makes the linker take the C library too.
pub const STATIC: [&str; 2] = ["-C", "target-feature=+crt-static"];

/// The wrapper of the cargo that links the binary.
pub const WRAPPER: RustcWrapper = RustcWrapper {
    mark: "PRECISE_XTASK_LINKS_STATICALLY",
    arguments: |arguments| {
        let linked = if is_binary(arguments) { &STATIC[..] } else { &[] };
        arguments.iter().cloned().chain(linked.iter().map(OsString::from)).collect()
    },
};

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
