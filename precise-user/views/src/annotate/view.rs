//! Registry entry of `precise annotate`.

use precise_model::{Dimension, Meta, Preset, Projection, RowPart};

use super::csv::annotate_csv;
use super::text::{Detail, annotate_text};
use super::{AnnotateOptions, Annotation, annotate, page};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Heading, Input, Need, NoAnswer, Opt, OptionKind, OptionValues, Section, View};

/// The view `precise annotate`.
#[derive(Debug)]
pub struct AnnotateView;

document_type!(Annotation: "annotate" 1);

impl View for AnnotateView {
    const NAME: &'static str = "annotate";
    const ABOUT: &'static str = "Show source lines and instructions with their samples";
    const NEEDS: Need = Need { dimensions: &[Dimension::Ip], preset: Preset::Cycles };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise annotate",
            says: "Show the three hottest functions: the instructions near samples, with their source.",
        },
        Example {
            command: "precise annotate --lines parse",
            says: "Show the source lines of the functions whose name contains `parse`.",
        },
        Example {
            command: "precise annotate --all -n 1",
            says: "Show every instruction of the hottest function.",
        },
    ];
    const CODE: bool = true;
    const OPTIONS: &'static [Opt] = &[
        Opt::new(
            "functions",
            OptionKind::Text,
            "FUNCTION",
            "Show functions whose name is or contains FUNCTION [default: the hottest]",
        )
        .positional()
        .several(),
        Opt::flag("lines", "Show one row per source line, the hottest first, and no instructions")
            .short('l')
            .heading(Heading::Output),
        Opt::flag("all", "Show every instruction, not only those near samples")
            .conflicts(&["lines"])
            .heading(Heading::Output),
        Opt::limit("3", "Show N functions of each event"),
    ];
    type Options = (AnnotateOptions, Detail);
    type Answer = Annotation;

    fn options(values: &OptionValues) -> Result<Self::Options, NoAnswer> {
        let options = AnnotateOptions {
            functions: values.all("functions").to_vec(),
            limit: values.number("limit")?,
            ..AnnotateOptions::default()
        };
        let detail = match (values.flag("lines"), values.flag("all")) {
            (true, _) => Detail::Lines,
            (false, true) => Detail::All,
            (false, false) => Detail::Hot,
        };
        Ok((options, detail))
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::CODE.and(Projection::of(&[RowPart::Source, RowPart::Latency]))
    }

    fn answer(input: &mut Input<'_>, (options, _): &Self::Options) -> Result<Annotation, NoAnswer> {
        Ok(annotate(input.capture, options, input.code)?)
    }

    fn text(answer: &Annotation, (_, detail): &Self::Options, text: &TextOptions) -> String {
        annotate_text(answer, *detail, text)
    }

    fn csv(answer: &Annotation, (_, detail): &Self::Options, separator: &str) -> String {
        annotate_csv(answer, *detail == Detail::Lines, separator)
    }

    fn page(input: &mut Input<'_>) -> Result<Option<Section>, NoAnswer> {
        Ok(page::section(input.capture, input.code)?)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(crate::mem::tests::two_nodes(), 10)])
    }
}
