//! Registry entry of `precise chase`.

use precise_model::{Dimension, Meta, Preset, Projection, RowPart};

use super::csv::chase_csv;
use super::text::chase_text;
use super::{Chase, ChaseOptions, chase};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Input, Need, NoAnswer, Opt, OptionValues, View};

/// The view `precise chase`.
#[derive(Debug)]
pub struct ChaseView;

document_type!(Chase: "chase" 1);

impl View for ChaseView {
    const NAME: &'static str = "chase";
    const ABOUT: &'static str = "Show loads that wait for other loads: pointer chases";
    const NEEDS: Need = Need { dimensions: &[Dimension::Ip], preset: Preset::Loads };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise record -e loads -- ./program && precise chase",
            says: "Record a program, then show whether its slow loads need the value of an earlier load.",
        },
        Example {
            command: "precise chase -n 3 --json",
            says: "Print the three loads with most latency for a program.",
        },
    ];
    const CODE: bool = true;
    const OPTIONS: &'static [Opt] = &[Opt::limit("10", "Show N loads of each event")];
    type Options = ChaseOptions;
    type Answer = Chase;

    fn options(values: &OptionValues) -> Result<ChaseOptions, NoAnswer> {
        Ok(ChaseOptions { limit: values.number("limit")?, ..ChaseOptions::default() })
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::CODE.and(Projection::of(&[RowPart::Source, RowPart::Latency]))
    }

    fn answer(input: &mut Input<'_>, options: &ChaseOptions) -> Result<Chase, NoAnswer> {
        Ok(chase(input.capture, options, input.code)?)
    }

    fn text(answer: &Chase, _: &ChaseOptions, text: &TextOptions) -> String {
        chase_text(answer, text)
    }

    fn csv(answer: &Chase, _: &ChaseOptions, separator: &str) -> String {
        chase_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use super::tests::{Assembled, capture};
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(capture([10, 300, 5]), 10).code(Assembled)])
    }
}
