//! How large the files of a release are. Each has a figure in `packaging/sizes.txt`, and may not
//! differ from it by more than a tenth without a commit that says so.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::checkout;

/// The file with the figures.
const FIGURES: &str = "packaging/sizes.txt";
/// The variable that makes the figures those of this build.
const UPDATE: &str = "PRECISE_UPDATE_DOCUMENTS";
/// How far a size may be from its figure, in percent.
const WITHIN: u64 = 10;
/// The size from which on a file has a figure, in bytes. A sentence more is a tenth of a small
/// file.
const SMALLEST: u64 = 100_000;
const HEAD: &str = "# Bytes of the files of a release, from 100 kB on. `cargo xtask dist` fails if one \
                    differs by more than 10 %;\n# PRECISE_UPDATE_DOCUMENTS=1 cargo xtask dist writes \
                    the figures.\n";

/// The size of each file by its name, without the version.
type Sizes = BTreeMap<String, u64>;

/// Compares the sizes of files with their figures, or writes the figures if the environment asks
/// for it. `files` has names and sizes in bytes.
pub fn check(files: &[(String, u64)], version: &str) -> Result<()> {
    let found = found(files, version);
    let path = checkout::root().join(FIGURES);
    if env::var_os(UPDATE).is_some() {
        return fs::write(&path, text(&found)).with_context(|| format!("cannot write {}", path.display()));
    }
    let figures = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let differ = differences(&found, &parse(&figures)?);
    if !differ.is_empty() {
        bail!(
            "sizes are not those of {FIGURES}:\n  {}\nIf that is meant: {UPDATE}=1 cargo xtask dist",
            differ.join("\n  ")
        );
    }
    Ok(())
}

fn found(files: &[(String, u64)], version: &str) -> Sizes {
    let large = files.iter().filter(|(_, bytes)| *bytes >= SMALLEST);
    large.map(|(name, bytes)| (name.replace(version, "VERSION"), *bytes)).collect()
}

fn text(sizes: &Sizes) -> String {
    let mut text = HEAD.to_owned();
    for (name, bytes) in sizes {
        let _ = writeln!(text, "{bytes:>12}  {name}");
    }
    text
}

fn parse(text: &str) -> Result<Sizes> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let figure = |line: &str| -> Result<(String, u64)> {
        let (bytes, name) = line.trim().split_once("  ").context("two columns are needed: bytes and name")?;
        Ok((name.to_owned(), bytes.parse()?))
    };
    lines.map(|line| figure(line).with_context(|| format!("{FIGURES}: {line:?}"))).collect()
}

/// Returns a sentence for each file whose size is not near its figure.
fn differences(found: &Sizes, figures: &Sizes) -> Vec<String> {
    let mut differ = Vec::new();
    for (name, bytes) in found {
        match figures.get(name) {
            None => differ.push(format!("{name} has {bytes} bytes, and no figure")),
            Some(figure) if bytes.abs_diff(*figure) * 100 > figure * WITHIN => {
                let percent = (*bytes as f64 / (*figure).max(1) as f64 - 1.0) * 100.0;
                differ.push(format!("{name} has {bytes} bytes, {percent:+.1} % of its figure {figure}"));
            }
            Some(_) => {}
        }
    }
    let missing = figures.keys().filter(|name| !found.contains_key(*name));
    differ.extend(missing.map(|name| format!("{name} has a figure, and is not made, or is small")));
    differ
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(of: &[(&str, u64)]) -> Sizes {
        of.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect()
    }

    #[test]
    fn a_tenth_is_not_noticed_and_more_is() {
        let figures = sizes(&[("precise", 1_000_000), ("precise_VERSION_amd64.deb", 500_000)]);
        let near = sizes(&[("precise", 1_100_000), ("precise_VERSION_amd64.deb", 450_000)]);
        assert_eq!(differences(&near, &figures), Vec::<String>::new());
        let far = sizes(&[("precise", 1_100_001), ("precise.rpm", 400_000)]);
        assert_eq!(
            differences(&far, &figures),
            [
                "precise has 1100001 bytes, +10.0 % of its figure 1000000",
                "precise.rpm has 400000 bytes, and no figure",
                "precise_VERSION_amd64.deb has a figure, and is not made, or is small",
            ]
        );
    }

    #[test]
    fn figures_are_read_as_they_are_written() {
        let files = [("precise_0.1.0_amd64.deb".to_owned(), 5_000_000), ("chart.tgz".to_owned(), 9_000)];
        let found = found(&files, "0.1.0");
        assert_eq!(found, sizes(&[("precise_VERSION_amd64.deb", 5_000_000)]));
        assert_eq!(parse(&text(&found)).unwrap(), found);
        assert!(parse("12 precise").is_err() && parse("many  precise").is_err());
    }

    /// The figures of the repository can be read.
    #[test]
    fn the_repository_has_figures() {
        let text = fs::read_to_string(checkout::root().join(FIGURES)).unwrap();
        let figures = parse(&text).unwrap();
        assert!(figures.contains_key("precise"), "{figures:?}");
        assert!(text.starts_with(HEAD) && text == super::text(&figures));
    }
}
