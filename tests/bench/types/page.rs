//! The results as text, and as a part of a page.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use precise::model::digits::thousands;

use super::measured::Measured;

/// Where the tables begin and end on the page.
const PROGRAMS: &str = "<!-- programs: generated -->\n";
const OPINIONS: &str = "<!-- second opinion: generated -->\n";
const END: &str = "<!-- end -->";
/// How many kinds of differences are shown.
const DETAILS: usize = 40;

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
    let opinion = &one.opinion;
    let _ = write!(
        out,
        "\nsecond opinion: {} same, {} different, {} only precise, {} only perf, {} nobody, {} unmatched; \
         confirmed {}, contradicted {}",
        opinion.same,
        opinion.different,
        opinion.only_precise,
        opinion.only_perf,
        opinion.neither,
        opinion.unmatched,
        opinion.confirmed,
        opinion.contradicted,
    );
    let mut details: Vec<_> = opinion.details.iter().collect();
    details.sort_by_key(|(_, samples)| std::cmp::Reverse(**samples));
    for (what, samples) in details.into_iter().take(DETAILS) {
        let _ = write!(out, "\n{samples:8}  {what}");
    }
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

/// Returns the table of what perf says.
pub fn opinions(measured: &[Measured]) -> String {
    let mut out = "| program | samples | same | only precise | only perf | none | different | addresses say \
                   precise | perf | not known | time of precise | of perf |\n\
                   | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for one in measured {
        let opinion = &one.opinion;
        let (all, judged) = (opinion.all(), opinion.judged);
        let share = |samples: u64| format!("{:.1} %", 100.0 * samples as f64 / all.max(1) as f64);
        let [ours, theirs] = opinion.seconds;
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {ours:.1} s | {theirs:.1} s |",
            one.program.name(),
            thousands(all),
            share(opinion.same),
            share(opinion.only_precise),
            share(opinion.only_perf),
            share(opinion.neither),
            thousands(opinion.different),
            thousands(judged.precise),
            thousands(judged.perf),
            thousands(judged.both + judged.neither),
        );
    }
    out
}

/// Writes the tables to their places on a page.
pub fn write(page: &Path, measured: &[Measured]) -> Result<()> {
    let text = std::fs::read_to_string(page)?;
    let text = replaced(&text, PROGRAMS, &table(measured))?;
    std::fs::write(page, replaced(&text, OPINIONS, &opinions(measured))?)?;
    Ok(())
}

/// Returns the page with another table at a place.
fn replaced(page: &str, begin: &str, table: &str) -> Result<String> {
    let (before, rest) = page.split_once(begin).context("the page has no place for the table")?;
    let (_, after) = rest.split_once(END).context("the place for the table has no end")?;
    Ok(format!("{before}{begin}\n{table}\n{END}{after}"))
}
