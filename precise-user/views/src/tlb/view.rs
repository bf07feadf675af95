//! Registry entry of `precise tlb`.

use precise_model::keys::Key;
use precise_model::{Dimension, Meta, Preset, Projection, RowPart};

use super::csv::tlb_csv;
use super::text::tlb_text;
use super::{TlbOptions, TlbView as Tlb, tlb};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Input, Need, NoAnswer, Opt, OptionValues, View};

/// The view `precise tlb`.
#[derive(Debug)]
pub struct PageWalks;

document_type!(Tlb: "tlb" 1);

impl View for PageWalks {
    const NAME: &'static str = "tlb";
    const ABOUT: &'static str = "Show which accesses need page walks, and their cost";
    const NEEDS: Need = Need { dimensions: &[Dimension::Source], preset: Preset::Mem };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise tlb",
            says: "Show the functions whose accesses need page walks, with the latency with a walk and without.",
        },
        Example {
            command: "precise tlb --by page-size",
            says: "Compare pages of 4 KiB, 2 MiB and 1 GiB, before you decide for huge pages.",
        },
    ];
    const OPTIONS: &'static [Opt] = &[
        Opt::by("Group by these keys: function, line, variable, page, … [default: function, if known]"),
        Opt::limit("20", "Show N groups"),
    ];
    type Options = TlbOptions;
    type Answer = Tlb;

    fn options(values: &OptionValues) -> Result<TlbOptions, NoAnswer> {
        let limit = Some(values.number("limit")?);
        Ok(TlbOptions { by: values.keys("by")?, limit, ..TlbOptions::default() })
    }

    fn keys(options: &Self::Options) -> Vec<Key> {
        options.by.clone().unwrap_or_default()
    }

    fn reads(options: &Self::Options, _: &Meta) -> Projection {
        let usual = match options.by {
            None => Projection::of(&[RowPart::Function, RowPart::Process]),
            Some(_) => Projection::NOTHING,
        };
        Projection::of(&[RowPart::Source, RowPart::Latency, RowPart::PageSize]).and(usual)
    }

    fn answer(input: &mut Input<'_>, options: &TlbOptions) -> Result<Tlb, NoAnswer> {
        Ok(tlb(input.capture, options)?)
    }

    fn text(answer: &Tlb, _: &TlbOptions, text: &TextOptions) -> String {
        tlb_text(answer, text)
    }

    fn csv(answer: &Tlb, _: &TlbOptions, separator: &str) -> String {
        tlb_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(crate::mem::tests::page_sizes(), 10)])
    }
}
