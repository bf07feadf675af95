//! What `precise --version` prints. `cargo xtask dist` passes the commit in the environment of the
//! compiler; every other build says that it does not know it.

use std::sync::LazyLock;

/// The commit that a dist build was made from, with its date.
const COMMIT: Option<&str> = option_env!("PRECISE_COMMIT");

/// The features of this build that may be left out.
const FEATURES: &[(&str, bool)] = &[("s3", cfg!(feature = "s3"))];

/// What `--version` prints: the number, the commit, the features, and whose C library the binary
/// uses. `-V` prints the number only.
pub static LONG: LazyLock<String> = LazyLock::new(|| {
    let features: Vec<&str> = FEATURES.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    format!(
        "{}\ncommit: {}\nfeatures: {features}\nC library: {}",
        env!("CARGO_PKG_VERSION"),
        COMMIT.unwrap_or("unknown (not built by `cargo xtask dist`)"),
        if cfg!(target_feature = "crt-static") { "linked in" } else { "the machine's" },
    )
});

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_says_what_was_built() {
        let text = super::LONG.as_str();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[0], env!("CARGO_PKG_VERSION"));
        assert_eq!(lines[1], "commit: unknown (not built by `cargo xtask dist`)");
        assert_eq!(lines[2] == "features: s3", cfg!(feature = "s3"), "{text}");
    }
}
