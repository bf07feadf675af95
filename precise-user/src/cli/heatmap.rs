//! `precise heatmap`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use precise::error::{Class, Failure};
use precise::model::Capture;
use precise::render::plot::PlotError;
use precise::views::heatmap;
use precise::views::heatmap::text::Shade;
use precise::views::heatmap::{
    HeatmapOptions, PanelBy, YAxis, json as heatmap_json, plot as heatmap_plot, text as heatmap_text,
};

use super::{
    Outcome, Output, form,
    output::say,
    require::{self, RequireArguments},
};

#[derive(Debug, Args)]
pub struct HeatmapArguments {
    /// The capture; `-` is the standard input
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet")]
    input: PathBuf,
    /// Draw into this file: .png or .svg; without it, on the terminal
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What the vertical axis shows; auto takes latency where there is one, else addresses, else functions
    #[arg(short, default_value = "auto", long = "axis", value_name = "WHAT")]
    y: Axis,
    /// What gets a panel of its own
    #[arg(long, default_value = "auto", value_name = "WHAT")]
    panels: Panels,
    /// Most panels; the smallest beyond them are put together
    #[arg(long, default_value_t = heatmap::DEFAULT_PANELS, value_name = "NUMBER")]
    max_panels: usize,
    /// Draw this event of the capture
    #[arg(short, long, value_name = "NAME")]
    event: Option<String>,
    /// Width of the picture, pixels
    #[arg(long, default_value_t = 1200, value_name = "PIXELS")]
    width: u32,
    /// Print JSON
    #[arg(long, conflicts_with = "output")]
    json: bool,
    #[command(flatten)]
    require: RequireArguments,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Axis {
    Auto,
    Latency,
    Address,
    Function,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Panels {
    Auto,
    Cgroup,
    Process,
    Event,
    None,
}

/// Draws a capture.
pub fn run(arguments: &HeatmapArguments, out: &mut Output) -> Outcome {
    let options = HeatmapOptions {
        y: match arguments.y {
            Axis::Auto => YAxis::Auto,
            Axis::Latency => YAxis::Latency,
            Axis::Address => YAxis::Address,
            Axis::Function => YAxis::Function,
        },
        panels: match arguments.panels {
            Panels::Auto => PanelBy::Auto,
            Panels::Cgroup => PanelBy::Cgroup,
            Panels::Process => PanelBy::Process,
            Panels::Event => PanelBy::Event,
            Panels::None => PanelBy::None,
        },
        max_panels: arguments.max_panels.max(1),
        event: arguments.event.clone(),
        ..HeatmapOptions::default()
    };
    let capture = form::read(&arguments.input)?;
    let gates = arguments.require.evaluate(&capture);
    if let Some(path) = &arguments.output {
        draw(&capture, &options, arguments.width, path)?;
        say(&format!("drew {}", path.display()));
    } else if arguments.json {
        let view = view(&capture, &options)?;
        out.print(&form::json(&heatmap_json::json(&view), gates.as_deref())?)?;
    } else {
        let width = out.text.width;
        let view = view(&capture, &heatmap_text::options_for(width, options))?;
        out.print(&heatmap_text::text(&view, width, shade(out.terminal)))?;
    }
    require::check(gates.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Draws a capture into a file whose extension says what kind of picture it is.
pub fn draw(capture: &Capture, options: &HeatmapOptions, width: u32, path: &Path) -> Result<(), Failure> {
    let write: fn(&heatmap::Heatmap, u32, &Path) -> Result<(), PlotError> = match extension(path)? {
        Picture::Png => heatmap_plot::write_png,
        Picture::Svg => heatmap_plot::write_svg,
    };
    write(&view(capture, options)?, width, path)
        .map_err(|error| Failure::new(Class::Failed, error.to_string()))
}

/// A kind of picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    Png,
    Svg,
}

/// The kind of picture that a file's name asks for.
pub fn extension(path: &Path) -> Result<Picture, Failure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("png") => Ok(Picture::Png),
        Some("svg") => Ok(Picture::Svg),
        _ => Err(Failure::new(Class::Usage, format!("{} says no kind of picture", path.display()))
            .advise("End its name in .png or .svg.")),
    }
}

fn view(capture: &Capture, options: &HeatmapOptions) -> Result<heatmap::Heatmap, Failure> {
    heatmap::heatmap(capture, options).map_err(|error| match error {
        heatmap::HeatmapError::Damaged { .. } => Failure::new(Class::BadFile, error.to_string()),
        heatmap::HeatmapError::Empty { .. } => Failure::new(Class::NoSamples, error.to_string()),
        _ => Failure::new(Class::Usage, error.to_string()),
    })
}

fn shade(terminal: bool) -> Shade {
    let set = |name: &str, wanted: &str| std::env::var(name).is_ok_and(|value| value.contains(wanted));
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if terminal && !plain {
        return if set("COLORTERM", "truecolor") || set("COLORTERM", "24bit") {
            Shade::TrueColour
        } else {
            Shade::Colour256
        };
    }
    if set("LC_ALL", "UTF-8") || set("LC_CTYPE", "UTF-8") || set("LANG", "UTF-8") {
        Shade::Blocks
    } else {
        Shade::Ascii
    }
}
