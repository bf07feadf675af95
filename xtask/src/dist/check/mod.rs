//! The step `packages` of `cargo xtask test`: what is released installs, runs and goes again.
//!
//! The packages are those of a release, but for the binary: it is linked statically from the
//! libraries of the tests, because an optimized build takes longer than everything else here.

mod archive;
mod bare;
mod damaged;
mod debian;
mod kubernetes;
mod prometheus;
mod redhat;
mod root;
mod unit;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};

use super::binary::{Binary, Build};
use super::packages;
use super::release::Release;
use crate::checkout;

/// The packages under test.
struct Packages {
    release: Release,
    binary: Binary,
    /// The folder that everything is made in; it is removed afterwards.
    folder: PathBuf,
    /// Where the files of the release are.
    made: PathBuf,
}

impl Packages {
    /// Returns the path of the file whose name ends like this.
    fn file(&self, suffix: &str) -> Result<PathBuf> {
        let files =
            fs::read_dir(&self.made).with_context(|| format!("cannot list {}", self.made.display()))?;
        let mut paths = files.flatten().map(|entry| entry.path());
        let found = paths.find(|path| path.to_string_lossy().ends_with(suffix));
        found.with_context(|| format!("no file of the release ends with {suffix}"))
    }
}

/// A part of the step, and what it proves.
type Part = (&'static str, fn(&Packages) -> Result<()>);

const PARTS: &[Part] = &[
    ("the same files make the same packages", reproducible),
    ("the unit is confined", |p| unit::check(&p.folder)),
    ("Prometheus takes the rules, and Grafana's queries name served metrics", |p| {
        prometheus::check(&p.folder)
    }),
    ("Helm renders the chart, and Kubernetes' schema takes it", |p| kubernetes::check(&p.folder)),
    ("damaged captures are refused in words", damaged::check),
    ("the image runs without any library", bare::check),
    ("the archive installs, answers in a minute, upgrades and goes, in a root of busybox", archive::check),
    ("the .rpm installs, answers in a minute, keeps settings, and goes", redhat::check),
    (
        "the .deb installs, answers in a minute, starts, samples, upgrades and goes, in Debian 11",
        debian::check,
    ),
];

/// Runs the step. It needs root, for other roots.
pub fn run() -> Result<()> {
    let folder = emptied()?;
    let start = Instant::now();
    let release = Release { level: 1, ..Release::of_checkout()? };
    let binary = Binary::build(&Build::Test, &release, &folder.join("binary"))?;
    said("a static binary", start);
    let start = Instant::now();
    let made = folder.join("release");
    packages::make(&release, &binary, &folder.join("work"), &made)?;
    said("packages of it", start);
    check(&Packages { release, binary, folder, made })
}

/// Runs the same checks with the packages of a release, which are in the folder `made`.
pub fn release(release: Release, binary: Binary, made: PathBuf) -> Result<()> {
    check(&Packages { release, binary, folder: emptied()?, made })
}

/// Returns the folder of the checks, without what a run that failed left there.
fn emptied() -> Result<PathBuf> {
    let folder = checkout::target().join("packages-test");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn check(packages: &Packages) -> Result<()> {
    for (about, part) in PARTS {
        let start = Instant::now();
        part(packages).with_context(|| format!("not true: {about}"))?;
        said(about, start);
    }
    // Disks are short, and all of it is made again in the next run.
    fs::remove_dir_all(&packages.folder).context("cannot remove the packages under test")
}

fn said(what: &str, start: Instant) {
    println!("{:>5.1} s  {what}", start.elapsed().as_secs_f64());
}

/// Makes all packages twice, of a small stand-in for the binary: compression takes long, and knows
/// nothing of what it compresses.
fn reproducible(packages: &Packages) -> Result<()> {
    let small = Binary {
        stripped: checkout::root().join("LICENSE-APACHE"),
        debug: checkout::root().join("LICENSE-MIT"),
        target: packages.binary.target.clone(),
    };
    let make = |name: &str| -> Result<PathBuf> {
        let made = packages.folder.join(name);
        packages::make(&packages.release, &small, &packages.folder.join("work"), &made)?;
        Ok(made)
    };
    let (one, two) = (make("one")?, make("two")?);
    packages::same(&one, &two)
}
