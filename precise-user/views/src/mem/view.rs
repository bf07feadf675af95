//! Registry entry of `precise mem`.

use precise_model::keys::Key;
use precise_model::{Dimension, Meta, Preset, Projection, RowPart};

use super::csv::mem_csv;
use super::text::mem_text;
use super::{Mem, MemOptions, mem};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Input, Need, NoAnswer, Opt, OptionValues, View};

/// The view `precise mem`.
#[derive(Debug)]
pub struct MemView;

document_type!(Mem: "mem" 1);

impl View for MemView {
    const NAME: &'static str = "mem";
    const ABOUT: &'static str = "Show which level served loads and stores, from L1 to remote memory";
    const NEEDS: Need = Need { dimensions: &[Dimension::Source], preset: Preset::Mem };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise mem",
            says: "Show the loads and the stores of precise.parquet by the level that served them, as perf mem does.",
        },
        Example {
            command: "precise mem --by function,level -n 5",
            says: "Show the five functions and levels that loads waited for the longest.",
        },
    ];
    const OPTIONS: &'static [Opt] = &[
        Opt::by("Group by these keys: function, line, … [default: level, snoop, tlb, locked]"),
        Opt::sort("Sort by samples, period, latency, avg, max, or a key [default: latency, if any]"),
        Opt::limit("20", "Show N groups of each kind of access"),
    ];
    type Options = MemOptions;
    type Answer = Mem;

    fn options(values: &OptionValues) -> Result<MemOptions, NoAnswer> {
        let (by, sort) = (values.keys("by")?, values.sort("sort")?);
        Ok(MemOptions { by, sort, limit: Some(values.number("limit")?), ..MemOptions::default() })
    }

    fn keys(options: &Self::Options) -> Vec<Key> {
        options.by.clone().unwrap_or_default()
    }

    fn reads(options: &Self::Options, meta: &Meta) -> Projection {
        let usual = match (&options.by, meta.machine.nodes.len()) {
            (None, 2..) => Projection::of(&[RowPart::Cpu]),
            _ => Projection::NOTHING,
        };
        Projection::of(&[RowPart::Source, RowPart::Latency]).and(usual)
    }

    fn answer(input: &mut Input<'_>, options: &MemOptions) -> Result<Mem, NoAnswer> {
        Ok(mem(input.capture, options)?)
    }

    fn text(answer: &Mem, _: &MemOptions, text: &TextOptions) -> String {
        mem_text(answer, text)
    }

    fn csv(answer: &Mem, _: &MemOptions, separator: &str) -> String {
        mem_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(super::tests::two_nodes(), 10)])
    }
}
