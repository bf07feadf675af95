//! Registry entry of `precise c2c`.

use precise_model::{Dimension, Meta, Preset, Projection, RowPart};

use super::csv::c2c_csv;
use super::text::c2c_text;
use super::{C2c, C2cOptions, c2c};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Heading, Input, Need, NoAnswer, Opt, OptionKind, OptionValues, View};

/// The view `precise c2c`.
#[derive(Debug)]
pub struct C2cView;

document_type!(C2c: "c2c" 1);

impl View for C2cView {
    const NAME: &'static str = "c2c";
    const ABOUT: &'static str = "Show cache lines that move between cores: true and false sharing";
    const NEEDS: Need = Need { dimensions: &[Dimension::Address, Dimension::Source], preset: Preset::C2c };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise record -e c2c -- ./program && precise c2c",
            says: "Record a program, then show its five most contended cache lines.",
        },
        Example {
            command: "precise c2c -n 20 --min-samples 1",
            says: "Show more lines, also those that few loads found modified by another core.",
        },
    ];
    const CODE: bool = true;
    const OPTIONS: &'static [Opt] = &[
        Opt::limit("5", "Show N cache lines"),
        Opt::new("min-samples", OptionKind::Number(0, u64::MAX), "N", "Rank lines with N HITM loads or more")
            .default("100")
            .heading(Heading::Limits),
    ];
    type Options = C2cOptions;
    type Answer = C2c;

    fn options(values: &OptionValues) -> Result<C2cOptions, NoAnswer> {
        let (limit, min_samples) = (values.number("limit")?, values.number("min-samples")?);
        Ok(C2cOptions { limit: Some(limit), min_samples })
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::EVERYTHING.without(&[RowPart::Epoch, RowPart::Stack, RowPart::Outcome, RowPart::PageSize])
    }

    fn answer(input: &mut Input<'_>, options: &C2cOptions) -> Result<C2c, NoAnswer> {
        Ok(c2c(input.capture, options, input.code)?)
    }

    fn text(answer: &C2c, _: &C2cOptions, text: &TextOptions) -> String {
        c2c_text(answer, text)
    }

    fn csv(answer: &C2c, _: &C2cOptions, separator: &str) -> String {
        c2c_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(super::tests::shared_lines(), 4)])
    }
}
