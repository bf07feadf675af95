//! The build and check tasks of precise.

mod lab;

use clap::Parser;

/// The only way that anything of precise is built or checked.
#[derive(Parser)]
enum Task {
    Lab(lab::LabArgs),
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Lab(args) => lab::run(args),
    }
}
