//! `precise explain` as a view of the registry.

use precise_model::{Meta, Projection, RowPart};

use super::csv::explain_csv;
use super::text::explain_text;
use super::{ExplainOptions, Explanation, explain, page};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Input, NoAnswer, OptionValues, Section, View};

/// The view `precise explain`.
#[derive(Debug)]
pub struct ExplainView;

document_type!(Explanation: "explain" 1);

impl View for ExplainView {
    const NAME: &'static str = "explain";
    const ABOUT: &'static str = "List the findings of a capture, most important first";
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise explain",
            says: "List the findings of precise.parquet; each names the command that shows the details.",
        },
        Example {
            command: "precise explain --require coverage>=99% monday.parquet",
            says: "Fail if the capture does not cover enough of the events to support a finding.",
        },
    ];
    const CODE: bool = true;
    type Options = ();
    type Answer = Explanation;

    fn options(_: &OptionValues) -> Result<(), NoAnswer> {
        Ok(())
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::EVERYTHING.without(&[RowPart::Stack])
    }

    fn answer(input: &mut Input<'_>, (): &()) -> Result<Explanation, NoAnswer> {
        let options = ExplainOptions { file: input.file.clone(), ..ExplainOptions::default() };
        Ok(explain(input.capture, &options, input.code))
    }

    fn text(answer: &Explanation, (): &(), text: &TextOptions) -> String {
        explain_text(answer, text)
    }

    fn csv(answer: &Explanation, (): &(), separator: &str) -> String {
        explain_csv(answer, separator)
    }

    fn page(input: &mut Input<'_>) -> Result<Option<Section>, NoAnswer> {
        Ok(Some(page::section(&Self::answer(input, &())?)))
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(crate::mem::tests::two_nodes(), 2)])
    }
}
