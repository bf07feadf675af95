//! The lab: Debian guests whose precise PMU is emulated under the kernel's own driver. See tests/lab/README.md.

mod apt;
mod kernel;
mod sh;

use anyhow::Result;

/// Runs tests in guests with an emulated precise PMU.
#[derive(clap::Args)]
pub struct LabArgs {}

/// Runs the task.
pub fn run(_args: LabArgs) -> Result<()> {
    let lab = std::env::current_dir()?.join("target/lab");
    for s in &kernel::SERIES {
        let t = std::time::Instant::now();
        let k = kernel::Kernel::prepare(&lab, s, false)?;
        eprintln!("{} {:?} {:?}", k.release, t.elapsed(), k.module("overlay")?.map(|m| m.len()));
    }
    Ok(())
}
