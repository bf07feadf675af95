//! `cargo xtask bench types`: how much of real programs has types.
//!
//! ```text
//! bench-types PRECISE SOURCES SERVER PERF [PAGE]
//! ```
//!
//! `SOURCES` is a folder with the unpacked sources of zstd, SQLite and PostgreSQL, which are built
//! in it, once. Four questions are asked of each program: which of all its accesses through
//! pointers have a type, which of those that a timer samples while it works, what the addresses of
//! its page faults say about the types, and what perf says about the same samples.

mod cold;
mod measured;
mod page;
mod programs;
mod sampled;
mod second_opinion;
mod whole;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use precise_tests::say;

use measured::Measured;
use programs::RealProgram;

const USAGE: &str = "usage: bench-types PRECISE SOURCES SERVER PERF [PAGE]";
/// How much less than its pinned share a program may have, in percentage points: another version of
/// the compiler makes other code.
const TOLERANCE: f64 = 2.0;
/// At most one of this number of samples with two opinions may have different ones.
const MOST_DIFFERENT: u64 = 25;

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (precise, sources, server, perf, page) = match arguments.as_slice() {
        [precise, sources, server, perf] => (precise, sources, server, perf, None),
        [precise, sources, server, perf, page] => (precise, sources, server, perf, Some(page)),
        _ => bail!(USAGE),
    };
    let mut measured = Vec::new();
    for program in RealProgram::ALL {
        let binary = program.build(sources, server).with_context(|| format!("cannot build {program:?}"))?;
        let all = whole::measure(&binary)?;
        let folder = tempfile::tempdir()?;
        let sampled = sampled::accesses(precise, program, &binary, folder.path())?;
        let faults = sampled::faults(precise, program, &binary, folder.path())?;
        let opinion = second_opinion::compare((precise, perf), program, &binary, folder.path())?;
        let one = Measured { program, all, sampled, faults, opinion };
        say(&page::details(&one));
        measured.push(one);
    }
    say(&page::table(&measured));
    say(&page::opinions(&measured));
    if let Some(page) = page {
        page::write(page, &measured)?;
        say(&format!("wrote {}", page.display()));
    }
    for one in &measured {
        let opinion = &one.opinion;
        let (pinned, is, name) = (one.program.pinned(), one.all.share(), one.program.name());
        ensure!(
            opinion.different * MOST_DIFFERENT <= opinion.same + opinion.different,
            "{name}: perf says something else about {} samples, and the same about {}",
            opinion.different,
            opinion.same
        );
        ensure!(
            is >= pinned - TOLERANCE,
            "{name}: {is:.1} % of its accesses have a type; it was {pinned:.1} %"
        );
        let (contradicted, checked) = (one.faults.contradicted, one.faults.checked());
        ensure!(contradicted * 50 <= checked, "{name}: the addresses contradict {contradicted} of {checked}");
    }
    Ok(())
}
