//! Registry entry of `precise branches`.

use precise_model::{Dimension, Meta, Preset, Projection, RowPart};

use super::csv::branches_csv;
use super::text::branches_text;
use super::{BranchOptions, Branches, branches};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Input, Need, NoAnswer, Opt, OptionValues, View};

/// The view `precise branches`.
#[derive(Debug)]
pub struct BranchesView;

document_type!(Branches: "branches" 1);

impl View for BranchesView {
    const NAME: &'static str = "branches";
    const ABOUT: &'static str = "Show which branches mispredict";
    // Events that count only mispredictions need no recorded outcome.
    const NEEDS: Need = Need { dimensions: &[Dimension::Ip], preset: Preset::Branches };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise record -e branches -- ./program && precise branches",
            says: "Record a program, then show its branches, those with most mispredictions first.",
        },
        Example {
            command: "precise branches --symfs /mnt/image -n 5",
            says: "Take the kinds of the branches from the binaries of another root.",
        },
    ];
    const CODE: bool = true;
    const OPTIONS: &'static [Opt] = &[Opt::limit("20", "Show N branches")];
    type Options = BranchOptions;
    type Answer = Branches;

    fn options(values: &OptionValues) -> Result<BranchOptions, NoAnswer> {
        Ok(BranchOptions { limit: values.number("limit")?, ..BranchOptions::default() })
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::CODE.and(Projection::of(&[RowPart::Data, RowPart::Outcome, RowPart::Latency]))
    }

    fn answer(input: &mut Input<'_>, options: &BranchOptions) -> Result<Branches, NoAnswer> {
        Ok(branches(input.capture, options, input.code)?)
    }

    fn text(answer: &Branches, _: &BranchOptions, text: &TextOptions) -> String {
        branches_text(answer, text)
    }

    fn csv(answer: &Branches, _: &BranchOptions, separator: &str) -> String {
        branches_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use super::tests::{Loop, mispredicted};
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(mispredicted(), 10).code(Loop(Ok(())))])
    }
}
