//! Registry entry of `precise threads`.

use precise_model::{Dimension, Meta, Preset, Projection, RowPart};

use super::csv::threads_csv;
use super::text::threads_text;
use super::{Threads, ThreadsOptions, threads};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Input, Need, NoAnswer, Opt, OptionValues, View};

/// The view `precise threads`.
#[derive(Debug)]
pub struct ThreadsView;

document_type!(Threads: "threads" 1);

impl View for ThreadsView {
    const NAME: &'static str = "threads";
    const ABOUT: &'static str = "Show on which CPUs and NUMA nodes each thread ran";
    const NEEDS: Need = Need { dimensions: &[Dimension::Thread, Dimension::Cpu], preset: Preset::Cycles };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise record --by thread,cpu -p 4711 && precise threads",
            says: "Record a process, then show which of its threads move between CPUs.",
        },
        Example {
            command: "precise threads -x ';' | sort -t ';' -k 16 -nr",
            says: "List the threads that leave their NUMA node most often first.",
        },
    ];
    const OPTIONS: &'static [Opt] = &[Opt::limit("20", "Show N threads of each event")];
    type Options = ThreadsOptions;
    type Answer = Threads;

    fn options(values: &OptionValues) -> Result<ThreadsOptions, NoAnswer> {
        Ok(ThreadsOptions { limit: values.number("limit")?, ..ThreadsOptions::default() })
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::of(&[RowPart::Cpu, RowPart::Process, RowPart::Thread, RowPart::Epoch])
    }

    fn answer(input: &mut Input<'_>, options: &ThreadsOptions) -> Result<Threads, NoAnswer> {
        Ok(threads(input.capture, options)?)
    }

    fn text(answer: &Threads, _: &ThreadsOptions, text: &TextOptions) -> String {
        threads_text(answer, text)
    }

    fn csv(answer: &Threads, _: &ThreadsOptions, separator: &str) -> String {
        threads_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(super::tests::moving(), 2)])
    }
}
