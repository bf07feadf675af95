//! `precise heatmap` as a view of the registry.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use std::borrow::Cow;

use precise_model::keys::Key;
use precise_model::{Meta, Projection, RowPart};

use super::json::{HeatmapJson, json};
use super::text::{options_for, text};
use super::{Heatmap, HeatmapError, HeatmapOptions, PanelBy, YAxis, heatmap, page, plot};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{
    Example, Format, Heading, Input, NoAnswer, Opt, OptionKind, OptionValues, Picture, Section, View, Why,
};

/// The view `precise heatmap`.
#[derive(Debug)]
pub struct HeatmapView;

/// A heatmap whose JSON is that of [`HeatmapJson`].
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing(pub Heatmap);

impl Serialize for Drawing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json(&self.0).serialize(serializer)
    }
}

impl JsonSchema for Drawing {
    fn inline_schema() -> bool {
        HeatmapJson::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        HeatmapJson::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        HeatmapJson::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        HeatmapJson::json_schema(generator)
    }
}

document_type!(Drawing: "heatmap" 1);

/// The words of `--axis`.
const AXES: [(&str, YAxis); 6] = [
    ("auto", YAxis::Auto),
    ("latency", YAxis::Latency),
    ("address", YAxis::Address),
    ("function", YAxis::Function),
    ("type", YAxis::Type),
    ("field", YAxis::Field),
];
/// The words of `--panels`.
const PANELS: [(&str, PanelBy); 5] = [
    ("auto", PanelBy::Auto),
    ("cgroup", PanelBy::Cgroup),
    ("process", PanelBy::Process),
    ("event", PanelBy::Event),
    ("none", PanelBy::None),
];

impl View for HeatmapView {
    const NAME: &'static str = "heatmap";
    const ABOUT: &'static str = "Draw the samples of a capture over time";
    const CSV: bool = false;
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise heatmap",
            says: "Draw latencies over time on the terminal; without latencies, addresses or functions.",
        },
        Example {
            command: "precise heatmap --panels cgroup -o heatmap.png",
            says: "Draw one panel per service: a stall that hits all of them is visible at once.",
        },
    ];
    const PICTURE: Option<Picture> =
        Some(Picture { help: "Draw to FILE (.png or .svg) [default: draw on the terminal]" });
    const OPTIONS: &'static [Opt] = &[
        Opt::new(
            "axis",
            OptionKind::Choice(&[
                ("auto", ""),
                ("latency", ""),
                ("address", ""),
                ("function", ""),
                ("type", ""),
                ("field", ""),
            ]),
            "WHAT",
            "Show WHAT on the vertical axis; auto prefers latency, then addresses, then functions",
        )
        .short('y')
        .default("auto"),
        Opt::new(
            "panels",
            OptionKind::Choice(&[("auto", ""), ("cgroup", ""), ("process", ""), ("event", ""), ("none", "")]),
            "WHAT",
            "Draw one panel per WHAT",
        )
        .default("auto"),
        Opt::new("event", OptionKind::Text, "NAME", "Draw this event of the capture").short('e'),
        Opt::new(
            "max-panels",
            OptionKind::Number(1, u64::MAX),
            "N",
            "Draw at most N panels; the smallest groups share the last one",
        )
        .default("8")
        .heading(Heading::Limits),
        Opt::width("1200"),
    ];
    type Options = HeatmapOptions;
    type Answer = Drawing;

    fn options(values: &OptionValues) -> Result<HeatmapOptions, NoAnswer> {
        let panels: usize = values.number("max-panels")?;
        Ok(HeatmapOptions {
            y: values.choice("axis", &AXES)?,
            panels: values.choice("panels", &PANELS)?,
            max_panels: panels.max(1),
            event: values.text("event").map(str::to_owned),
            ..HeatmapOptions::default()
        })
    }

    fn keys(options: &Self::Options) -> Vec<Key> {
        options.y.keys().to_vec()
    }

    fn reads(options: &Self::Options, _: &Meta) -> Projection {
        let panels = match options.panels {
            PanelBy::Auto | PanelBy::Cgroup => Projection::of(&[RowPart::Cgroup]),
            PanelBy::Process => Projection::of(&[RowPart::Process]),
            PanelBy::Event | PanelBy::None => Projection::NOTHING,
        };
        panels.and(Projection::of(&[RowPart::Epoch])).and(match options.y {
            // What the rows have decides.
            YAxis::Auto => Projection::of(&[RowPart::Latency, RowPart::Data, RowPart::Function]),
            YAxis::Latency => Projection::of(&[RowPart::Latency]),
            YAxis::Address => Projection::of(&[RowPart::Data]),
            YAxis::Function => Projection::of(&[RowPart::Function]),
            YAxis::Type | YAxis::Field => Projection::of_keys(options.y.keys()),
        })
    }

    fn answer(input: &mut Input<'_>, options: &HeatmapOptions) -> Result<Drawing, NoAnswer> {
        let options = options.clone();
        let options = match input.columns {
            Some(columns) => options_for(columns, options),
            None => options,
        };
        let mut drawing = heatmap(input.capture, &options)?;
        // A picture is looked at without the lines around it.
        if let (None, Some(selection)) = (input.columns, &input.capture.meta.selection) {
            drawing.header.notes.insert(0, selection.text.clone());
        }
        Ok(Drawing(drawing))
    }

    fn text(answer: &Drawing, _: &HeatmapOptions, options: &TextOptions) -> String {
        text(&answer.0, options.width, options.shade)
    }

    fn csv(_: &Drawing, _: &HeatmapOptions, _: &str) -> String {
        String::new()
    }

    fn draw(answer: &Drawing, format: Format, width: u32) -> Result<Vec<u8>, NoAnswer> {
        Ok(match format {
            Format::Png => plot::png(&answer.0, width)?,
            Format::Svg => plot::svg(&answer.0, width)?.into_bytes(),
        })
    }

    fn page(input: &mut Input<'_>) -> Result<Option<Section>, NoAnswer> {
        let section = page::section(input.capture).map_err(|error| NoAnswer {
            why: Why::Failed,
            text: format!("the page cannot be made: {error}"),
            advice: None,
        })?;
        Ok(Some(section))
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        crate::view::trial::Trials::Cannot(
            "a cell is a sum of samples: they are evened to the shortest period, not made shares",
        )
    }
}

impl From<HeatmapError> for NoAnswer {
    fn from(error: HeatmapError) -> Self {
        let why = match error {
            HeatmapError::Damaged { .. } => Why::Damaged,
            HeatmapError::Empty { .. } => Why::NoSamples,
            _ => Why::Usage,
        };
        Self { why, text: error.to_string(), advice: None }
    }
}

#[cfg(test)]
mod tests {
    use super::super::DEFAULT_PANELS;
    use super::*;

    #[test]
    fn the_default_number_of_panels_is_the_library_s() {
        let options = HeatmapView::options(&OptionValues::defaults(HeatmapView::OPTIONS)).unwrap();
        assert_eq!(options.max_panels, DEFAULT_PANELS);
    }
}
