//! The page of all chapters.

use std::process::Command;

use precise::machine::{MachineInfo, Root};
use precise::model::digits::counted;

use super::part::Part;
use super::words::filled;

/// Returns the page as Markdown.
pub fn page(chapters: &[(&str, Vec<Part>)], rounds: usize) -> String {
    let machine = MachineInfo::read(&Root::default()).machine;
    let head = format!(
        "`cargo xtask bench all --page docs/performance.md` wrote this page: {} on {} ({} CPUs, \
         Linux {}), with {} and {}.",
        counted(rounds as u64, "round"),
        machine.cpu,
        machine.cpus,
        machine.kernel,
        version("perf"),
        version("bpftrace"),
    );
    let how = "In a round, each contender is measured once, in turn; one that cannot do what is asked, or is \
               not installed, is missing. The columns are the median, the quartiles, the median of what a \
               profiler added to the same round without one, and the median of the ratios of what precise \
               took or added to what the other did: below 1, precise costs less. A ratio is lost in the noise \
               where the other added nothing in some round. The order of a growth is its exponent between \
               the last two sizes: 1 is linear.";
    let mut out = format!("# What precise costs next to others\n\n{}\n\n{}\n\n", filled(&head), filled(how));
    for (title, parts) in chapters {
        out += &format!("## {title}\n\n");
        parts.iter().for_each(|part| out += &part.text());
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// Returns the version that a program prints.
fn version(program: &str) -> String {
    match Command::new(program).arg("--version").output() {
        Ok(ran) => String::from_utf8_lossy(&ran.stdout).trim().trim_end_matches('.').to_owned(),
        Err(_) => format!("no {program}"),
    }
}
