//! Registry entry of `precise numa`.

use precise_model::{Dimension, Meta, Preset, Projection, RowPart};

use super::csv::numa_csv;
use super::text::numa_text;
use super::{Numa, numa};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Input, Need, NoAnswer, OptionValues, View};

/// The view `precise numa`.
#[derive(Debug)]
pub struct NumaView;

document_type!(Numa: "numa" 1);

impl View for NumaView {
    const NAME: &'static str = "numa";
    const ABOUT: &'static str = "Show which NUMA nodes access which node's memory";
    const NEEDS: Need = Need { dimensions: &[Dimension::Cpu, Dimension::Source], preset: Preset::Mem };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise numa",
            says: "Show how many accesses of each node's CPUs were served by each node, and how long they took.",
        },
        Example {
            command: "precise record -e mem --by cpu,source,latency && precise numa",
            says: "Record what the view needs, then show it.",
        },
    ];
    type Options = ();
    type Answer = Numa;

    fn options(_: &OptionValues) -> Result<(), NoAnswer> {
        Ok(())
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::of(&[RowPart::Cpu, RowPart::Source])
    }

    fn answer(input: &mut Input<'_>, (): &()) -> Result<Numa, NoAnswer> {
        Ok(numa(input.capture, None)?)
    }

    fn text(answer: &Numa, (): &(), text: &TextOptions) -> String {
        numa_text(answer, text)
    }

    fn csv(answer: &Numa, (): &(), separator: &str) -> String {
        numa_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(crate::mem::tests::two_nodes(), 10)])
    }
}
