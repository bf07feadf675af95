//! Registry entry of `precise diff`.

use precise_model::keys::Key;
use precise_model::{Meta, Projection, RowPart};

use super::csv::diff_csv;
use super::text::diff_text;
use super::{Diff, DiffOptions, diff};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Captures, Example, Input, NoAnswer, Opt, OptionValues, View};

/// The view `precise diff`.
#[derive(Debug)]
pub struct DiffView;

document_type!(Diff: "diff" 1);

impl View for DiffView {
    const NAME: &'static str = "diff";
    const ABOUT: &'static str = "Compare two captures and test what changed significantly";
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise diff before.parquet after.parquet",
            says: "Show which functions have more of the samples than before, and whether accesses are slower.",
        },
        Example {
            command: "precise diff --by cgroup,level before.parquet after.parquet",
            says: "Show which services get their data from another level.",
        },
    ];
    const CAPTURES: Captures = Captures::Pair;
    const OPTIONS: &'static [Opt] = &[
        Opt::by("Compare by these keys: function, line, level, cgroup, variable, …").default("function"),
        Opt::limit("20", "Show N entries of each event, those that changed most first"),
    ];
    type Options = DiffOptions;
    type Answer = Diff;

    fn options(values: &OptionValues) -> Result<DiffOptions, NoAnswer> {
        let by = values.keys("by")?.unwrap_or_else(|| vec![Key::Function]);
        Ok(DiffOptions { by, limit: Some(values.number("limit")?), ..DiffOptions::default() })
    }

    fn keys(options: &Self::Options) -> Vec<Key> {
        options.by.clone()
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::of(&[RowPart::Latency])
    }

    fn answer(input: &mut Input<'_>, options: &DiffOptions) -> Result<Diff, NoAnswer> {
        diff(input.base()?, input.capture, options).map_err(|error| NoAnswer::usage(error.to_string()))
    }

    fn text(answer: &Diff, _: &DiffOptions, text: &TextOptions) -> String {
        diff_text(answer, text)
    }

    fn csv(answer: &Diff, _: &DiffOptions, separator: &str) -> String {
        diff_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use super::tests::capture;
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::pair(capture(700, 300, 200), capture(500, 500, 400), 4)])
    }
}
