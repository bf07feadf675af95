//! Registry entry of `precise flamegraph`.

use precise_model::{Meta, Projection, RowPart};

use super::folded::folded;
use super::{Flame, FlameOptions, FrameWidth, flame};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Command, Example, Input, NoAnswer, Opt, OptionKind, OptionValues, View, Why};

/// The view `precise flamegraph`.
#[derive(Debug)]
pub struct FlamegraphView;

document_type!(Flame: "flamegraph" 1);

/// The values of `--by`.
const WEIGHTS: [(&str, FrameWidth); 2] = [("samples", FrameWidth::Samples), ("latency", FrameWidth::Latency)];

impl View for FlamegraphView {
    const NAME: &'static str = "flamegraph";
    const ABOUT: &'static str = "Draw a flame graph of the call chains (record -g)";
    // The command writes a picture instead of text, and its --folded is a form that no other view
    // has.
    const COMMAND: Command = Command::Of("flamegraph --json");
    const CSV: bool = false;
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise record -g -- ./program && precise flamegraph",
            says: "Record call chains, then draw them into flamegraph.svg, which a browser can search and zoom.",
        },
        Example {
            command: "precise flamegraph --by latency -o wait.svg",
            says: "Make each frame as wide as the sum of the latencies below it.",
        },
        Example {
            command: "precise flamegraph --folded",
            says: "Print one line for each call chain, for other tools.",
        },
    ];
    const OPTIONS: &'static [Opt] = &[
        Opt::new(
            "by",
            OptionKind::Choice(&[
                ("samples", "Number of samples"),
                ("latency", "Sum of the latencies of samples: where time is spent waiting"),
            ]),
            "WHAT",
            "Choose the measure that the widths of frames show",
        )
        .default("samples"),
        Opt::new("event", OptionKind::Text, "NAME", "Draw this event of the capture").short('e'),
    ];
    type Options = FlameOptions;
    type Answer = Flame;

    fn options(values: &OptionValues) -> Result<FlameOptions, NoAnswer> {
        let weight = values.choice("by", &WEIGHTS)?;
        Ok(FlameOptions { weight, event: values.text("event").map(str::to_owned), leaf_only: false })
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::of(&[RowPart::Function, RowPart::Inlined, RowPart::Stack, RowPart::Process])
    }

    fn answer(input: &mut Input<'_>, options: &FlameOptions) -> Result<Flame, NoAnswer> {
        let flame = flame(input.capture, options)?;
        if flame.total == 0 {
            let text = format!("there is nothing to draw: no sample of {} has a weight", flame.event);
            return Err(NoAnswer { why: Why::NoSamples, text, advice: None });
        }
        Ok(flame)
    }

    fn text(answer: &Flame, _: &FlameOptions, _: &TextOptions) -> String {
        folded(answer)
    }

    fn csv(_: &Flame, _: &FlameOptions, _: &str) -> String {
        String::new()
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        crate::view::trial::Trials::Cannot(
            "a frame is as wide as the events that its samples stand for: a sum, which is not a share",
        )
    }
}
