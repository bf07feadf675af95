//! The report of `precise report --by` as a view of the registry.

use precise_model::keys::{Key, Sort};
use precise_model::{Meta, Projection, RowPart};

use super::csv::report_csv;
use super::text::report_text;
use super::{Report, ReportOptions, report};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Command, Example, Input, NoAnswer, Opt, OptionValues, View};

/// The view `precise report --by`.
#[derive(Debug)]
pub struct ReportView;

document_type!(Report: "report" 1);

impl View for ReportView {
    const NAME: &'static str = "report";
    const ABOUT: &'static str = "Show where the samples of a capture are";
    const COMMAND: Command = Command::Of("report --by --json, record --json");
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise report",
            says: "Show the hottest functions and lines of precise.parquet, and whether the samples can be trusted.",
        },
        Example {
            command: "precise report --by cgroup,function -s latency",
            says: "Show which functions of which services wait for most of the latency.",
        },
        Example { command: "precise report -g parse", says: "Show who calls `parse`, and what it calls." },
        Example {
            command: "precise report --html report.html",
            says: "Write one page with all of it, for somebody who has no terminal.",
        },
    ];
    const OPTIONS: &'static [Opt] = &[
        Opt::by("Group by these keys: function, line, module, cgroup, cpu, level, latency, …")
            .default("function,module"),
        Opt::sort("Sort by samples, period, latency, avg, max, or a key").default("samples"),
        Opt::limit("20", "Show N groups of each event"),
    ];
    type Options = ReportOptions;
    type Answer = Report;

    fn options(values: &OptionValues) -> Result<ReportOptions, NoAnswer> {
        let usual = ReportOptions::default();
        Ok(ReportOptions {
            by: values.keys("by")?.unwrap_or(usual.by),
            sort: values.sort("sort")?.unwrap_or(Sort::Samples),
            limit: Some(values.number("limit")?),
            ..ReportOptions::default()
        })
    }

    fn keys(options: &Self::Options) -> Vec<Key> {
        options.by.clone()
    }

    fn reads(options: &Self::Options, _: &Meta) -> Projection {
        let filters: Vec<Key> = options.filters.iter().map(|filter| filter.key).collect();
        Projection::of(&[RowPart::Latency]).and(Projection::of_keys(&filters))
    }

    fn answer(input: &mut Input<'_>, options: &ReportOptions) -> Result<Report, NoAnswer> {
        Ok(report(input.capture, options)?)
    }

    fn text(answer: &Report, _: &ReportOptions, text: &TextOptions) -> String {
        report_text(answer, text)
    }

    fn csv(answer: &Report, _: &ReportOptions, separator: &str) -> String {
        report_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(crate::mem::tests::two_nodes(), 10).with("by", "function")])
    }
}
