//! A sum in numpy along the rows of a matrix, and another along the columns of another matrix: one
//! function with two loops. A profile that skids, or has no addresses, cannot tell which
//! instruction reads which matrix.
//!
//! Page faults have an exact instruction and address on any machine; loads with a latency work the
//! same way.

use std::{collections::BTreeMap, fs, ops::Range};

use anyhow::{Context as _, Result, ensure};
use precise_tests::{
    program::{PAGE, python},
    rows::Row,
    run::{precise, record_faults, undisturbed},
};

/// A row of a matrix is one page. Each matrix is fresh memory without huge pages: exactly one fault
/// per page.
const PROGRAM: &str = include_str!("../../docs/examples/sums.py");
const PAGES: u64 = 512;

#[test]
fn the_strided_sum_and_its_twin_are_told_apart_by_instruction() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("sums.py");
        fs::write(&program, PROGRAM)?;
        let (python, program) = (python()?.display().to_string(), program.display().to_string());
        // Room for all, however slowly the table is emptied.
        let recorded = record_faults(folder.path(), &["--table-cells", "64K"], &[&python, &program])?;
        let line = recorded.ended.stdout.lines().find_map(|line| line.strip_prefix("matrices "));
        let line = line.with_context(|| recorded.ended.stdout.clone())?;
        let (along, across) = line.split_once(' ').context("two addresses")?;
        let pages = |start: &str| -> Result<Range<u64>> {
            let start: u64 = start.parse()?;
            Ok(start..start + PAGES * PAGE)
        };

        let rows = recorded.rows();
        // Instructions that touched a matrix first, with their pages.
        let touched = |matrix: Range<u64>| -> Result<BTreeMap<u64, u64>> {
            let inside = |row: &Row| row.address.is_some_and(|address| matrix.contains(&address));
            let rows = rows.only(inside);
            ensure!(rows.count() == PAGES, "{} faults in a matrix of {PAGES} pages", rows.count());
            let functions = rows.all(|row| row.function.clone());
            ensure!(functions.len() == 1, "one loop, in {functions:?}");
            ensure!(functions.iter().all(|name| name.contains("pairwise_sum")), "{functions:?}");
            let mut touched = BTreeMap::new();
            rows.0.iter().for_each(|row| *touched.entry(row.ip).or_default() += row.count);
            Ok(touched)
        };
        let (along, across) = (touched(pages(along)?)?, touched(pages(across)?)?);
        // Along a row, the first load of a block of the sum is always the first access to the page.
        // Across, each page is one element, and the unrolled loop has one load for each of the
        // elements of an iteration.
        ensure!(along.len() <= 2 && across.len() >= 8, "along {along:x?}, across {across:x?}");
        ensure!(along.keys().all(|ip| !across.contains_key(ip)), "along {along:x?}, across {across:x?}");

        // The listing has each sample at an instruction that reads memory.
        let capture = folder.path().join("faults.parquet").display().to_string();
        let ended = precise(["annotate", "-i", &capture, "--json", "DOUBLE_pairwise_sum"])?.expect(0)?;
        let listing: serde_json::Value = serde_json::from_str(&ended.stdout)?;
        let listing = listing["events"][0]["functions"][0]["instructions"].as_array().context("a listing")?;
        let mut samples = 0;
        for listed in listing.iter().filter(|listed| listed["samples"] != 0) {
            let text = listed["text"].as_str().context("a text")?;
            ensure!(text.contains('('), "{text} reads no memory");
            samples += listed["samples"].as_u64().context("a count")?;
        }
        ensure!(samples == 2 * PAGES, "{samples} samples in the listing");
        Ok(())
    })
}
