//! The results as text, and as a part of a page.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::measured::Measured;

/// Where the table begins and ends on the page.
const BEGIN: &str = "<!-- programs: generated -->\n";
const END: &str = "<!-- end -->";

/// Returns what was measured of a program.
pub fn details(one: &Measured) -> String {
    let all = &one.all;
    let mut out = format!(
        "{}: {} functions in {:.1} s; {} accesses through pointers in code that has variables, {:.1} % typed\n",
        one.program.name(),
        all.functions,
        all.took.as_secs_f64(),
        all.all(),
        all.share(),
    );
    let mut reasons: Vec<_> = all.untyped.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (why, count) in reasons {
        let _ = writeln!(out, "{:5.1} %  {why}", 100.0 * *count as f64 / all.all().max(1) as f64);
    }
    let _ = writeln!(out, "{} accesses in code without variables, {} apart", all.undescribed, all.apart);
    let (sampled, faults) = (one.sampled, one.faults);
    let _ = write!(
        out,
        "sampled: {} typed, {} not, {} in code without variables; faults: {} confirmed, {} contradicted, \
         {} not checkable",
        sampled.typed,
        sampled.untyped,
        sampled.undescribed,
        faults.confirmed,
        faults.contradicted,
        faults.not_checkable,
    );
    out
}

/// Returns the table.
pub fn table(measured: &[Measured]) -> String {
    let mut out = "| program | built | accesses | typed | most of the rest | sampled | typed | faults \
                   checked | contradicted |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for one in measured {
        let all = &one.all;
        let rest = all.untyped.iter().max_by_key(|(_, count)| **count);
        let rest = rest.map_or_else(String::new, |(why, count)| {
            format!("{why} {:.1} %", 100.0 * *count as f64 / all.all().max(1) as f64)
        });
        let _ = writeln!(
            out,
            "| {} | {} | {} | {:.1} % | {rest} | {} | {:.1} ±{:.1} % | {} | {} |",
            one.program.name(),
            one.program.how(),
            all.all(),
            all.share(),
            one.sampled.typed + one.sampled.untyped,
            one.sampled.share(),
            one.sampled.spread(),
            one.faults.checked(),
            one.faults.contradicted,
        );
    }
    out
}

/// Writes the table to its place on a page.
pub fn write(page: &Path, measured: &[Measured]) -> Result<()> {
    let text = std::fs::read_to_string(page)?;
    let (before, rest) = text.split_once(BEGIN).context("the page has no place for the table")?;
    let (_, after) = rest.split_once(END).context("the place for the table has no end")?;
    let (before, after) = (before.to_owned(), after.to_owned());
    std::fs::write(page, format!("{before}{BEGIN}\n{}\n{END}{after}", table(measured)))?;
    Ok(())
}
