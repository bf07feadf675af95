//! The summary of `precise report` as a view of the registry.

use precise_model::keys::Sort;
use precise_model::{Dimension, Meta, Projection, RowPart};

use super::text::summary_text;
use super::{Summary, page, summary};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::report::ReportOptions;
use crate::report::csv::report_csv;
use crate::view::{Command, Example, Input, NoAnswer, Opt, OptionValues, Section, View};

/// The view `precise report` without keys.
#[derive(Debug)]
pub struct SummaryView;

document_type!(Summary: "summary" 1);

impl View for SummaryView {
    const NAME: &'static str = "summary";
    const ABOUT: &'static str =
        "Show the hottest functions and lines, and whether the samples can be trusted";
    const COMMAND: Command = Command::Of("report --json, record --json");
    const EXAMPLES: &'static [Example] = &[Example {
        command: "precise report",
        says: "Show the hottest functions and lines of precise.parquet, and whether the samples can be trusted.",
    }];
    const OPTIONS: &'static [Opt] = &[
        Opt::sort("Sort by samples, period, latency, avg, max, or a key").default("samples"),
        Opt::limit("20", "Show N groups of each event"),
    ];
    type Options = ReportOptions;
    type Answer = Summary;

    fn options(values: &OptionValues) -> Result<ReportOptions, NoAnswer> {
        let (sort, limit) = (values.sort("sort")?.unwrap_or(Sort::Samples), values.number("limit")?);
        Ok(ReportOptions { sort, limit: Some(limit), ..ReportOptions::default() })
    }

    fn reads(_: &Self::Options, meta: &Meta) -> Projection {
        match meta.dimensions.contains(&Dimension::Ip) {
            true => Projection::of(&[
                RowPart::Cgroup,
                RowPart::Process,
                RowPart::Function,
                RowPart::Line,
                RowPart::Latency,
            ]),
            // The table is of all that was recorded instead.
            false => Projection::EVERYTHING,
        }
    }

    fn answer(input: &mut Input<'_>, options: &ReportOptions) -> Result<Summary, NoAnswer> {
        Ok(summary(input.capture, options)?)
    }

    fn text(answer: &Summary, _: &ReportOptions, text: &TextOptions) -> String {
        summary_text(answer, text)
    }

    /// Returns each table with its own header.
    fn csv(answer: &Summary, _: &ReportOptions, separator: &str) -> String {
        answer.reports.iter().map(|report| report_csv(report, separator)).collect()
    }

    fn page(input: &mut Input<'_>) -> Result<Option<Section>, NoAnswer> {
        Ok(Some(page::section(input.capture)?))
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(crate::mem::tests::two_nodes(), 10)])
    }
}
