//! What a large machine would need, from constants of the code and measured ones.

use std::fmt::Write as _;
use std::rc::Rc;

use anyhow::Result;
use precise::run::budget::NamesBudget;
use precise::run::plan::{self, default_cells, default_stacks};
use precise_common::cell::Cell;
use precise_common::ledger::WORDS;

use super::part::Part;
use super::setting::Setting;
use super::words::filled;
use precise::model::digits::thousands;

const CPUS: [usize; 4] = [2, 32, 128, 512];
/// Nanoseconds of a sample that is added, with what is around the program: docs/overhead.md.
const SAMPLE: f64 = 1_100.0;
/// Samples of the whole machine in a second.
const RATE: f64 = 100_000.0;

/// Returns the part of this chapter.
///
/// # Errors
///
/// Returns no error.
#[expect(clippy::unnecessary_wraps, reason = "chapters have one type")]
pub fn parts(_setting: &Rc<Setting>) -> Result<Vec<Part>> {
    let mut out = filled(
        "Computed from the defaults of the code, for one event of all CPUs, 1,000 containers and 100,000 \
         samples a second in all, of which each takes 1.1 µs (0.1 µs of it measured, the interrupt assumed; \
         docs/overhead.md).",
    ) + "\n\n";
    out += "| CPUs | cells of a CPU | table, both halves | with call chains, more | ledger | samples of a CPU per epoch, 1 s | sampling, part of each CPU |\n";
    out += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for cpus in CPUS {
        let cells = default_cells(cpus, 1);
        let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
        let table = 2.0 * cpus as f64 * cells as f64 * size_of::<Cell>() as f64;
        let chains = (plan::BYTES_PER_STACK * default_stacks(cpus) * cpus) as f64;
        let ledger = (cpus * WORDS * 8) as f64;
        let _ = writeln!(
            out,
            "| {cpus} | {} | {} | {} | {} | {} | {:.2} % |",
            thousands(cells),
            megabytes(table),
            megabytes(chains),
            megabytes(ledger),
            thousands((RATE / cpus as f64) as u64),
            RATE * SAMPLE * 1e-9 / cpus as f64 * 100.0,
        );
    }
    let names = NamesBudget::of(2 << 40).sum() as f64 / 1e6;
    let _ = write!(
        out,
        "\n{}\n\n",
        filled(&format!(
            "All tables of a run share {:.0} MB, so that 512 CPUs take no more than twice what 128 do. An epoch has \
             fewer samples of a CPU there than a CPU has cells, so the smaller tables do not fill; where they \
             do, they are read earlier. Names and histories of processes take at most {names:.0} MB on \
             a machine of 2 TB, and 1,000 containers a few hundred bytes each.",
            plan::TABLE_BYTES as f64 / 1e6,
        ))
    );
    Ok(vec![Part::Text(out)])
}
