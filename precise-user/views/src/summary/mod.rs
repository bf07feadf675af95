//! The summary at the end of a run: where the samples are, and whether they can be trusted.
//!
//! The summary joins its tables with the ledger, which says where each sample went:
//!
//! ```
//! use precise_model::testing::CaptureBuilder;
//! use precise_views::report::ReportOptions;
//! use precise_views::summary::summary;
//!
//! let mut made = CaptureBuilder::new();
//! made.cell().samples(250).code(0x1000, "/bin/app", "parse", "/src/app.c", 10);
//! made.cell().samples(150).code(0x1040, "/bin/app", "parse", "/src/app.c", 14);
//!
//! let result = summary(&made.build(), &ReportOptions::default())?;
//!
//! // The samples are in one function, but on two of its lines. No process is known.
//! let [functions, lines] = &result.reports[..] else { panic!("two tables") };
//! assert_eq!(functions.events[0].groups.list[0].measures.count, 400);
//! assert_eq!(lines.events[0].groups.list[0].measures.count, 250);
//! // No sample was lost, and every one is precise.
//! assert!(result.trust.is_clean());
//! # Ok::<(), precise_views::ViewError>(())
//! ```

mod following;
mod lines;
mod page;
pub mod text;
mod view;

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
pub use view::SummaryView;

use super::ViewError;
use super::report::{Report, ReportOptions, report};
use super::trust::{Trust, trust};
use precise_model::keys::Key;
use precise_model::{Capture, Dimension, Name, Row};

/// The summary of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// The tables: who, functions and lines, or other dimensions that the run recorded.
    pub reports: Vec<Report>,
    /// Why a table is not there, and what to do about it; one sentence each.
    pub notes: Vec<String>,
    /// The ledger and the verdict of every event.
    pub trust: Trust,
}

/// Returns who has the most samples (cgroups, or processes if there is one cgroup), then their
/// functions, then lines; for a capture without instruction addresses, its other dimensions.
///
/// `options.by` is ignored.
pub fn summary(capture: &Capture, options: &ReportOptions) -> Result<Summary, ViewError> {
    let has = |d| capture.meta.dimensions.contains(&d);
    let mut tables: Vec<Vec<Key>> = who(capture).into_iter().map(|key| vec![key]).collect();
    let mut notes = Vec::new();
    if has(Dimension::Ip) {
        let mut functions = vec![Key::Function, Key::Module];
        if has(Dimension::Process) && differ(capture, |row| row.process) {
            functions.push(Key::Process);
        }
        tables.push(functions);
        match lines::too_few(capture) {
            None => tables.push(vec![Key::Line]),
            Some(why) => notes.push(why),
        }
    } else {
        let of = |d| match d {
            Dimension::Cgroup => Some(Key::Cgroup),
            Dimension::Process => Some(Key::Process),
            Dimension::Cpu => Some(Key::Cpu),
            Dimension::Source => Some(Key::Level),
            Dimension::Outcome => Some(Key::Outcome),
            Dimension::Address => Some(Key::Region),
            Dimension::PageSize => Some(Key::PageSize),
            Dimension::Ip | Dimension::Thread | Dimension::Latency | Dimension::Stack => None,
        };
        let all: Vec<Key> = Dimension::ALL.into_iter().filter(|d| has(*d)).filter_map(of).collect();
        // One key alone is the table of who.
        if !tables.contains(&all) {
            tables.push(all);
        }
    }
    let limit = |by: &[Key]| match by {
        [Key::Cgroup | Key::Process] => Some(options.limit.unwrap_or(WHO).min(WHO)),
        _ => options.limit,
    };
    let reports = tables
        .into_iter()
        .map(|by| report(capture, &ReportOptions { limit: limit(&by), by, ..options.clone() }));
    Ok(Summary { reports: reports.collect::<Result<_, _>>()?, notes, trust: trust(capture) })
}

/// The share of samples from which a cgroup says too little, so that its processes are shown too.
const MOST_OF_ALL: f64 = 0.9;
/// The number of rows of a table of cgroups or processes.
const WHO: usize = 10;

/// Returns the keys that tell who has the samples: the cgroup, the process if one cgroup has most
/// of them, or neither if neither is known.
fn who(capture: &Capture) -> Vec<Key> {
    let known = |name: fn(&Row) -> Name| capture.rows.iter().any(|row| matches!(name(row), Name::Known(_)));
    let has = |d| capture.meta.dimensions.contains(&d);
    let mut keys = Vec::new();
    if has(Dimension::Cgroup) && known(|row| row.cgroup) && differ(capture, |row| row.cgroup) {
        keys.push(Key::Cgroup);
    }
    if has(Dimension::Process) && known(|row| row.process) && (keys.is_empty() || one_cgroup(capture)) {
        keys.push(Key::Process);
    }
    keys
}

/// Returns whether one cgroup has most of the samples.
fn one_cgroup(capture: &Capture) -> bool {
    let mut sums: FxHashMap<Name, u64> = FxHashMap::default();
    for row in &capture.rows {
        let sum = sums.entry(row.cgroup).or_default();
        *sum = sum.saturating_add(row.measures.count);
    }
    let all = sums.values().fold(0, |all: u64, sum| all.saturating_add(*sum));
    sums.values().any(|sum| *sum as f64 >= MOST_OF_ALL * all as f64)
}

/// Returns whether rows differ in a name.
fn differ(capture: &Capture, name: fn(&Row) -> Name) -> bool {
    let mut names = capture.rows.iter().map(name);
    names.next().is_some_and(|first| names.any(|other| other != first))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may end at once")]
mod tests {
    use super::*;
    use precise_model::testing::CaptureBuilder;

    fn keys(builder: CaptureBuilder) -> (Vec<Vec<Key>>, Vec<String>) {
        let summary = summary(&builder.build(), &ReportOptions::default()).unwrap();
        (summary.reports.into_iter().map(|report| report.by).collect(), summary.notes)
    }

    #[test]
    fn who_comes_first() {
        let mut builder = CaptureBuilder::new();
        for (id, path) in [(1, "/a.service"), (2, "/b.service")] {
            builder.cell().samples(200).cgroup(id, path).process(7, "app").code(1, "/app", "f", "f.c", 3);
        }
        let functions = vec![Key::Function, Key::Module];
        assert_eq!(keys(builder).0, [vec![Key::Cgroup], functions, vec![Key::Line]]);

        let mut builder = CaptureBuilder::new();
        for comm in ["one", "two"] {
            builder.cell().samples(200).cgroup(1, "/a").process(7, comm).code(1, "/app", "f", "f.c", 3);
        }
        let functions = vec![Key::Function, Key::Module, Key::Process];
        assert_eq!(keys(builder).0, [vec![Key::Process], functions, vec![Key::Line]]);
    }

    #[test]
    fn without_line_information_a_sentence_says_what_to_install() {
        let mut builder = CaptureBuilder::new();
        builder.cell().samples(900).code(0x10, "/usr/lib/libc.so.6", "memcpy", "", 0);
        builder.cell().samples(100).code(0x20, "/usr/bin/app", "main", "main.c", 3);
        let (tables, notes) = keys(builder);
        assert_eq!(tables, [vec![Key::Function, Key::Module]]);
        assert_eq!(
            notes,
            [
                "lines are not shown, because debug information tells them for 10.0% of the samples only; install \
              that of libc.so.6, or compile with -g"
            ]
        );
    }
}
