//! The page of all chapters.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use precise::machine::{MachineInfo, Root};
use precise::model::digits::counted;

use super::part::Part;
use super::tool;
use super::words::filled;

/// The picture of the page, from the folder of the page.
pub const PICTURE: &str = "pictures/performance.svg";

const HOW: &str = "`cargo xtask bench all --page docs/performance.md` writes this page, and with `--only` \
                   some of its chapters. Each chapter says where it was measured: compare figures within a \
                   chapter only. One that names precise's commit measured the binary of the packages \
                   (`cargo xtask dist`), the others that of `cargo build --release`. In a round, each \
                   contender is measured once, in turn, and in every second round in the opposite order \
                   (always in the same order in chapters that were measured before December 2026, and \
                   in that about the eBPF program of 2dae2fa1); one that cannot do what is asked, or is \
                   not installed, is missing. The columns are the median, the quartiles, the median of what \
                   a profiler added to the same round without one (a program: to an empty one), and the \
                   median of the ratios of what precise took or added to what the other did: below 1, \
                   precise costs less. A ratio is lost in the noise, and not in the picture, where the \
                   other added nothing in some round, or precise nothing in most. The order of a growth is \
                   its exponent between the last two sizes: 1 is linear.";
const QUICK: &str = "`cargo xtask bench quick` asks the questions about page faults and about `true` again, and \
                     fails if precise adds more to a fault than perf, or takes more time than perf for `true`. \
                     It is a step of the tests.";

/// Returns the page as Markdown: the chapters that were asked, with their titles, and of all
/// `titles` the others as they are on the page so far.
pub fn page(
    so_far: &str,
    titles: &[&str],
    chapters: &[(&str, Vec<Part>)],
    (precise, rounds): (&Path, usize),
) -> String {
    let before: BTreeMap<&str, &str> =
        so_far.split("\n## ").skip(1).filter_map(|chapter| chapter.split_once('\n')).collect();
    let picture = format!("![What precise costs, as a part of what the others cost]({PICTURE})");
    let mut out = format!(
        "# What precise costs next to others\n\n{picture}\n\n{}\n\n{}\n\n",
        filled(HOW),
        filled(QUICK)
    );
    for title in titles {
        let asked = chapters.iter().find(|(asked, _)| asked == title);
        let text = match (asked, before.get(title)) {
            (Some((_, parts)), _) => {
                let parts: String = parts.iter().map(Part::text).collect();
                format!("{}\n\n{}", filled(&measured(precise, rounds)), parts)
            }
            (None, Some(before)) => (*before).to_owned(),
            (None, None) => continue,
        };
        out += &format!("## {title}\n\n{}\n\n", text.trim());
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// Returns a sentence that says what was measured, how and where.
fn measured(precise: &Path, rounds: usize) -> String {
    let machine = MachineInfo::read(&Root::default()).machine;
    let newer = tool::newer_perf().map(|path| version(&path.display().to_string()));
    format!(
        "Measured in {} on {} ({} CPUs, Linux {}), with {}{}, {}{}.",
        counted(rounds as u64, "round"),
        machine.cpu,
        machine.cpus,
        machine.kernel,
        commit(precise).map_or(String::new(), |commit| format!("precise of commit {commit}, ")),
        version("perf"),
        newer.map_or(String::new(), |newer| format!("{newer} as the newer one, ")),
        version("bpftrace"),
    )
}

/// Returns the commit and its day that precise was built from; `None` if it was not packaged.
fn commit(precise: &Path) -> Option<String> {
    let said = version(&precise.display().to_string());
    let commit = said.lines().find_map(|line| line.strip_prefix("commit: "))?;
    (!commit.starts_with("unknown")).then(|| commit.to_owned())
}

/// Returns the version that a program prints.
fn version(program: &str) -> String {
    match Command::new(program).arg("--version").output() {
        Ok(ran) => String::from_utf8_lossy(&ran.stdout).trim().trim_end_matches('.').to_owned(),
        Err(_) => format!("no {program}"),
    }
}
