//! Registry entry of `precise skid`.

use precise_model::{Dimension, Meta, Preset, Projection, RowPart};

use super::csv::skid_csv;
use super::text::skid_text;
use super::{Skid, SkidOptions, skid};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Input, Need, NoAnswer, Opt, OptionValues, View};

/// The view `precise skid`.
#[derive(Debug)]
pub struct SkidView;

document_type!(Skid: "skid" 1);

impl View for SkidView {
    const NAME: &'static str = "skid";
    const ABOUT: &'static str = "Show how far imprecise samples land from the right instruction";
    const NEEDS: Need = Need { dimensions: &[Dimension::Ip], preset: Preset::Skid };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise record -e skid -- ./program && precise skid",
            says: "Sample a program with and without precision, then show how far the two are apart.",
        },
        Example {
            command: "precise skid -n 10",
            says: "Show ten functions, and a hundred lines that are blamed for their neighbours.",
        },
    ];
    const CODE: bool = true;
    const OPTIONS: &'static [Opt] = &[Opt::limit("3", "Show N functions, and ten times as many lines")];
    type Options = SkidOptions;
    type Answer = Skid;

    fn options(values: &OptionValues) -> Result<SkidOptions, NoAnswer> {
        Ok(SkidOptions { limit: values.number("limit")?, ..SkidOptions::default() })
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::CODE.and(Projection::of(&[RowPart::Source, RowPart::Latency]))
    }

    fn answer(input: &mut Input<'_>, options: &SkidOptions) -> Result<Skid, NoAnswer> {
        Ok(skid(input.capture, options, input.code)?)
    }

    fn text(answer: &Skid, _: &SkidOptions, text: &TextOptions) -> String {
        skid_text(answer, text)
    }

    fn csv(answer: &Skid, _: &SkidOptions, separator: &str) -> String {
        skid_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(super::tests::three_late(), 4)])
    }
}
