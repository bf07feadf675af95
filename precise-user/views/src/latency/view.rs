//! Registry entry of `precise latency`.

use precise_model::keys::{Key, Sort};
use precise_model::{Dimension, Meta, Preset, Projection, RowPart};

use super::csv::latency_csv;
use super::text::latency_text;
use super::{Latency, LatencyOptions, latency, plot};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Format, Input, Need, NoAnswer, Opt, OptionValues, Picture, View};

/// The view `precise latency`.
#[derive(Debug)]
pub struct LatencyView;

document_type!(Latency: "latency" 1);

impl View for LatencyView {
    const NAME: &'static str = "latency";
    const ABOUT: &'static str = "Show the latency of accesses: histogram and percentiles";
    const NEEDS: Need = Need { dimensions: &[Dimension::Latency], preset: Preset::Loads };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise latency --by cgroup",
            says: "Compare the percentiles of services that share a machine.",
        },
        Example {
            command: "precise latency --by function -s max -n 5",
            says: "Show the five functions with the slowest single access.",
        },
        Example {
            command: "precise latency -o latency.png",
            says: "Draw the histogram, with a colour for each level that served.",
        },
    ];
    const PICTURE: Option<Picture> = Some(Picture { help: "Draw the histograms to FILE: .png or .svg" });
    const OPTIONS: &'static [Opt] = &[
        Opt::by("Group by these keys: level, function, line, cgroup, … [default: level, if known]"),
        Opt::sort("Sort by samples, latency, avg, max, or a key").default("samples"),
        Opt::limit("20", "Show N groups"),
        Opt::width("1000"),
    ];
    type Options = LatencyOptions;
    type Answer = Latency;

    fn options(values: &OptionValues) -> Result<LatencyOptions, NoAnswer> {
        Ok(LatencyOptions {
            by: values.keys("by")?,
            sort: values.sort("sort")?.unwrap_or(Sort::Samples),
            limit: Some(values.number("limit")?),
            ..LatencyOptions::default()
        })
    }

    fn keys(options: &Self::Options) -> Vec<Key> {
        options.by.clone().unwrap_or_default()
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::of(&[RowPart::Source, RowPart::Latency])
    }

    fn answer(input: &mut Input<'_>, options: &LatencyOptions) -> Result<Latency, NoAnswer> {
        Ok(latency(input.capture, options)?)
    }

    fn text(answer: &Latency, _: &LatencyOptions, text: &TextOptions) -> String {
        latency_text(answer, text)
    }

    fn csv(answer: &Latency, _: &LatencyOptions, separator: &str) -> String {
        latency_csv(answer, separator)
    }

    /// Draws the event that has latencies. One picture never mixes samples of different events.
    fn draw(answer: &Latency, format: Format, width: u32) -> Result<Vec<u8>, NoAnswer> {
        let drawable: Vec<_> = answer.events.iter().filter(|event| event.all.is_some()).collect();
        let [event] = drawable[..] else {
            let what = match drawable.len() {
                0 => "no event of this capture has enough samples with a latency for a picture".to_owned(),
                many => format!("{many} events of this capture have latencies, and a picture shows one"),
            };
            return Err(NoAnswer::usage(what).advise("`precise latency` without -o shows them as text."));
        };
        Ok(match format {
            Format::Png => plot::png(answer, event, width)?,
            Format::Svg => plot::svg(answer, event, width)?.into_bytes(),
        })
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        let load = crate::mem::tests::two_nodes();
        Trials::Weighs(vec![Trial::of(load, 10).with("by", "function")])
    }
}
