//! Tests of what the views of the front end look like.

use crate::branches::text::branches_text;
use crate::branches::{BranchOptions, branches};
use crate::derived::derived;
use crate::derived::text::derived_text;
use crate::fetch::text::fetch_text;
use crate::fetch::{FetchOptions, fetch};
use crate::front_csv::branches_csv;
use crate::front_csv::derived_csv;
use crate::front_csv::fetch_csv;
use crate::front_tests::{Loop, mispredicted, retired, starved};
use crate::render::TextOptions;

/// The text has these lines, one after the other, and none is wider than 80 columns.
fn has(text: &str, lines: &str) {
    assert!(text.contains(lines), "\n{text}");
    assert!(text.lines().all(|line| precise_model::text::width(line) <= 80), "\n{text}");
}

#[test]
fn fetches_at_80_columns() {
    let text = fetch_text(&fetch(&starved(), &FetchOptions::default()).unwrap(), &TextOptions::default());
    has(
        &text,
        "
26.3% ±2.9      250  instruction cache miss
 5.3% ±1.6       50  L2 miss
",
    );
    has(
        &text,
        "
      Time  Fetches     Aborted     IC miss   Avg  Function
90.6% ±1.6      350  28.6% ±4.9  71.4% ±4.9  82.9  parse
 9.4% ±1.6      600   0.0% ±0.6   0.0% ±0.6     5  sum
",
    );
}

#[test]
fn retired_at_80_columns() {
    let text = fetch_text(&fetch(&retired(), &FetchOptions::default()).unwrap(), &TextOptions::default());
    has(
        &text,
        "
  200k      200  waited 16 cycles or more
     -  unknown  op cache miss
  120k      120  instruction cache miss
",
    );
    has(
        &text,
        "
     Share  Waited  IC miss  Function
75.0% ±6.4     150      120  parse
25.0% ±6.4      50        0  sum
",
    );
}

#[test]
fn branches_at_80_columns() {
    let view = branches(&mispredicted(), &BranchOptions::default(), &mut Loop(Ok(()))).unwrap();
    has(
        &branches_text(&view, &TextOptions::default()),
        "
33.3% ±4.1 of the branches were mispredicted: 180 of 540.

Misp.         Rate        Taken  Kind           Branch     Target
  150   37.5% ±4.8   50.0% ±4.9  conditional    parse+0x0  +0x8
   30  75.0% ±15.2  100.0% ±8.8  indirect jump  parse+0x4  0x7000 (+1)
    0    0.0% ±3.7    0.0% ±3.7  conditional    parse+0x8  0x9000
",
    );
}

#[test]
fn derived_at_80_columns() {
    let fetches = derived_text(&derived(&starved(), None).unwrap(), &TextOptions::default());
    has(
        &fetches,
        "
IBS IC miss           250   26.3% ±2.9  missed the instruction cache
IBS IC hit            600   63.2% ±3.1  completed without an IC miss
",
    );
    has(&fetches, "\nIBS fetch lat      32,000    33.7 each  cycles of attempted fetches\n");
    let branches = derived_text(&derived(&mispredicted(), None).unwrap(), &TextOptions::default());
    has(&branches, "33.3% ±4.1  mispredicted branches\n");
    has(&branches, "unknown            -  ops that load or store\n");
}

#[test]
fn csv_has_a_field_for_each_name() {
    let branches = branches(&mispredicted(), &BranchOptions::default(), &mut Loop(Ok(()))).unwrap();
    let tables = [
        fetch_csv(&fetch(&starved(), &FetchOptions::default()).unwrap(), "|"),
        fetch_csv(&fetch(&retired(), &FetchOptions::default()).unwrap(), "|"),
        branches_csv(&branches, "|"),
        derived_csv(&derived(&starved(), None).unwrap(), "|"),
    ];
    for csv in tables {
        let fields: Vec<_> = csv.lines().map(|line| line.split('|').count()).collect();
        assert!(fields.len() > 1 && fields.iter().all(|count| *count == fields[0]), "{csv}");
    }
}
