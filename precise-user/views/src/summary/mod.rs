//! The summary at the end of a run: where the samples are, and whether they can be trusted.
//!
//! The summary joins two tables with the ledger, which says where each sample went:
//!
//! ```
//! use precise_model::testing::Builder;
//! use precise_views::report::ReportOptions;
//! use precise_views::summary::summary;
//!
//! let mut made = Builder::new();
//! made.cell().samples(250).code(0x1000, "/bin/app", "parse", "/src/app.c", 10);
//! made.cell().samples(150).code(0x1040, "/bin/app", "parse", "/src/app.c", 14);
//!
//! let result = summary(&made.build(), &ReportOptions::default())?;
//!
//! // The samples are in one function, but on two of its lines.
//! let [functions, lines] = &result.reports[..] else { panic!("two tables") };
//! assert_eq!(functions.events[0].groups.list[0].measures.count, 400);
//! assert_eq!(lines.events[0].groups.list[0].measures.count, 250);
//! // No sample was lost, and every one is precise.
//! assert!(result.trust.is_clean());
//! # Ok::<(), precise_views::ViewError>(())
//! ```

mod page;
pub mod text;
mod view;

use schemars::JsonSchema;
use serde::Serialize;
pub use view::SummaryView;

use super::ViewError;
use super::report::{Report, ReportOptions, report};
use super::trust::{Trust, trust};
use precise_model::keys::Key;
use precise_model::{Capture, Dimension};

/// The summary of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// The tables: functions and lines, or other dimensions that the run recorded.
    pub reports: Vec<Report>,
    /// The ledger and the verdict of every event.
    pub trust: Trust,
}

/// Returns the functions and lines with the most samples; for a capture without instruction
/// addresses, its other dimensions.
///
/// `options.by` is ignored.
pub fn summary(capture: &Capture, options: &ReportOptions) -> Result<Summary, ViewError> {
    let has = |d| capture.meta.dimensions.contains(&d);
    let tables = if has(Dimension::Ip) {
        vec![vec![Key::Function, Key::Module], vec![Key::Line]]
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
        vec![Dimension::ALL.into_iter().filter(|d| has(*d)).filter_map(of).collect()]
    };
    let reports = tables.into_iter().map(|by| report(capture, &ReportOptions { by, ..options.clone() }));
    Ok(Summary { reports: reports.collect::<Result<_, _>>()?, trust: trust(capture) })
}
