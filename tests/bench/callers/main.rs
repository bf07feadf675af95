//! `cargo xtask bench callers`: the call chains of precise beside those of other profilers.
//!
//! The first question is whether they are right. A program is stopped, precise and perf both attach
//! to it, and it runs on: both sample the same page faults. perf copies 64 kB of stack for each
//! sample and unwinds them afterwards (`--call-graph dwarf,65528`), which is as much as perf can
//! do. The chains are compared by the addresses of their frames, each of which must be the same.
//!
//! The second is what they cost: whole chains, lost samples, bytes, and the time from Ctrl-C to
//! what a flame graph is made from.

mod attached;
mod cost;
mod page;
mod programs;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use precise_tests::{chain_judge, say};

const USAGE: &str = "usage: bench-callers PRECISE same|cost|all [PAGE]";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (precise, which, page) = match arguments.as_slice() {
        [precise, which] => (Path::new(precise), which.as_str(), None),
        [precise, which, page] => (Path::new(precise), which.as_str(), Some(PathBuf::from(page))),
        _ => bail!(USAGE),
    };
    let folder = tempfile::tempdir()?;
    let mut compared = Vec::new();
    let mut costs = Vec::new();
    if matches!(which, "same" | "all") {
        for program in programs::PROGRAMS {
            match programs::start(program, folder.path())? {
                Some(running) => {
                    let sampled = attached::sample(precise, running, program, folder.path())?;
                    let verdict = chain_judge::compare(&sampled.precise, &sampled.perf);
                    say(&page::details(program.name, &verdict));
                    compared.push((program.name, verdict));
                }
                None => say(&format!("{} is not installed, so nothing is said of it", program.name)),
            }
        }
        say(&page::compared(&compared));
    }
    if matches!(which, "cost" | "all") {
        costs = cost::measure(precise, folder.path())?;
        say(&page::costs(&costs));
    }
    if let Some(path) = page {
        std::fs::write(&path, page::page(&compared, &costs))?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(())
}
