//! `cargo xtask dist`: builds everything that is released, reproducibly: the same commit and the
//! same compiler make the same bytes.
//!
//! The formats are made by their own tools (dpkg-deb, rpmbuild, tar), which get sorted files with
//! fixed modes and one time, that of the commit.

mod again;
mod binary;
pub mod check;
mod contents;
mod deb;
mod oci;
mod packages;
mod release;
mod rpm;
mod sbom;
mod sizes;
mod template;
mod tree;
pub mod wrapper;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::checkout;
use binary::{Binary, Build};
use release::Release;

/// Build what is released: a static binary, .deb, .rpm, an OCI image, a Helm chart, an SBOM
#[derive(clap::Args)]
pub struct DistArgs {
    /// The target of the binary; a musl target works where it is installed
    #[arg(long, default_value = "x86_64-unknown-linux-gnu")]
    target: String,
    /// Then install, run and remove these packages, as `cargo xtask test --step packages` does
    #[arg(long)]
    check: bool,
    /// Then build the same commit in a clone, and compare all checksums
    #[arg(long)]
    again: bool,
}

/// Builds the binary that is shipped, for this machine, and returns its path.
pub fn shipped() -> Result<PathBuf> {
    let build = Build::Shipped { target: binary::host()? };
    let binary = Binary::build(&build, &Release::of_checkout()?, &work().join("binary"))?;
    Ok(binary.stripped)
}

/// Returns the folder of what is built.
fn work() -> PathBuf {
    checkout::target().join("packages")
}

/// Runs the task.
pub fn run(args: &DistArgs) -> Result<()> {
    let release = Release::of_checkout()?;
    let work = work();
    let folder = work.join(&release.version);
    let build = Build::Shipped { target: args.target.clone() };
    let binary = Binary::build(&build, &release, &work.join("binary"))?;
    let names = packages::make(&release, &binary, &work.join("work"), &folder)?;
    println!("\nprecise {} of commit {}, in {}", release.version, release.commit, folder.display());
    let mut sizes = vec![("precise".to_owned(), fs::metadata(&binary.stripped)?.len())];
    for name in names {
        let bytes = fs::metadata(folder.join(&name)).with_context(|| format!("{name} is missing"))?.len();
        println!("{bytes:>12}  {name}");
        sizes.push((name, bytes));
    }
    sizes::check(&sizes, &release.version)?;
    if args.check {
        check::release(release.clone(), binary, folder.clone())?;
    }
    if args.again {
        again::compare(&release, &args.target, &folder)?;
    }
    Ok(())
}
