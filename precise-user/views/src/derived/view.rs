//! Registry entry of `precise derived`.

use precise_model::{Meta, Projection, RowPart};

use super::csv::derived_csv;
use super::text::derived_text;
use super::{DerivedView as Derived, derived};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Input, NoAnswer, OptionValues, View};

/// The view `precise derived`.
#[derive(Debug)]
pub struct DerivedEvents;

document_type!(Derived: "derived" 1);

impl View for DerivedEvents {
    const NAME: &'static str = "derived";
    const ABOUT: &'static str = "Count the derived events of AMD IBS";
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise record -e fetch,branches -a && precise derived",
            says: "Record fetches and branches by IBS, then count the events that follow from their samples.",
        },
        Example {
            command: "precise derived -x,",
            says: "Print the counts for a spreadsheet, with the reason why a count is unknown.",
        },
    ];
    type Options = ();
    type Answer = Derived;

    fn options(_: &OptionValues) -> Result<(), NoAnswer> {
        Ok(())
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::of(&[RowPart::Outcome])
    }

    fn answer(input: &mut Input<'_>, (): &()) -> Result<Derived, NoAnswer> {
        Ok(derived(input.capture, None)?)
    }

    fn text(answer: &Derived, (): &(), text: &TextOptions) -> String {
        derived_text(answer, text)
    }

    fn csv(answer: &Derived, (): &(), separator: &str) -> String {
        derived_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(crate::fetch::tests::starved(), 10)])
    }
}
