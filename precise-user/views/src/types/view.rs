//! Registry entry of `precise types`.

use precise_model::{Dimension, Meta, Preset, Projection, RowPart};

use super::csv::types_csv;
use super::text::types_text;
use super::{TypeProfile, TypesOptions, types};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Input, Need, NoAnswer, Opt, OptionKind, OptionValues, View};

/// The view `precise types`.
#[derive(Debug)]
pub struct TypesView;

document_type!(TypeProfile: "types" 1);

impl View for TypesView {
    const NAME: &'static str = "types";
    const ABOUT: &'static str = "Show which structs and fields the samples access";
    const NEEDS: Need = Need { dimensions: &[Dimension::Ip], preset: Preset::Loads };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise record -e loads -- ./program && precise types",
            says: "Record a program, then show its structs by their share of the latency.",
        },
        Example {
            command: "precise types Order",
            says: "Show the layout of the types whose name contains `Order`, with the samples of each field.",
        },
        Example {
            command: "precise types --advise Order",
            says: "Print `Order` with the fields that are used together on one cache line.",
        },
    ];
    const CODE: bool = true;
    const OPTIONS: &'static [Opt] = &[
        Opt::new(
            "types",
            OptionKind::Text,
            "TYPE",
            "Show the layouts of types whose name is or contains TYPE",
        )
        .positional()
        .several(),
        Opt::new(
            "advise",
            OptionKind::Flag,
            "",
            "Print the struct with its members in a better order, and how many lines that saves",
        ),
        Opt::limit("20", "Show N types of each event"),
    ];
    type Options = TypesOptions;
    type Answer = TypeProfile;

    fn options(values: &OptionValues) -> Result<TypesOptions, NoAnswer> {
        let names = values.all("types").to_vec();
        let advise = values.flag("advise");
        if advise && names.is_empty() {
            return Err(NoAnswer::usage("--advise needs the name of a type".to_owned())
                .advise("`precise types` lists the types that the samples access."));
        }
        Ok(TypesOptions { limit: values.number("limit")?, names, advise, ..TypesOptions::default() })
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::EVERYTHING.without(&[RowPart::Stack, RowPart::Outcome, RowPart::PageSize])
    }

    fn answer(input: &mut Input<'_>, options: &TypesOptions) -> Result<TypeProfile, NoAnswer> {
        Ok(types(input.capture, options, input.code)?)
    }

    fn text(answer: &TypeProfile, options: &TypesOptions, text: &TextOptions) -> String {
        types_text(answer, !options.names.is_empty(), text)
    }

    fn csv(answer: &TypeProfile, options: &TypesOptions, separator: &str) -> String {
        types_csv(answer, !options.names.is_empty(), separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use super::tests::{Orders, capture};
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(capture(), 8).code(Orders)])
    }
}
