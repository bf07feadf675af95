//! `precise flamegraph`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use precise::error::{ExitClass, Failure};
use precise::model::{Meta, Projection};
use precise::views::flame::{FlamegraphView, FrameWidth, folded, svg};
use precise::views::view::{self, Input, OptionValues, View as _};

use super::{
    CommandResult, Output,
    code::LocalFiles,
    form::json_about,
    narrow::{NarrowArguments, say_selection},
    output::{say, write_file},
    require::{self, RequireArguments},
    view::{CaptureArguments, no_answer},
};

#[derive(Debug, Args)]
pub struct FlamegraphArguments {
    #[command(flatten)]
    capture: CaptureArguments,
    #[command(flatten)]
    narrow: NarrowArguments,
    /// Draw to FILE, an SVG with search and zoom; `-` is the standard output
    #[arg(short, long, value_name = "FILE", default_value = "flamegraph.svg", help_heading = "Output")]
    output: PathBuf,
    /// Print folded stacks: one line per call chain, for other tools
    #[arg(long, conflicts_with = "output", help_heading = "Output")]
    folded: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["output", "folded"], help_heading = "Output")]
    json: bool,
    /// Choose the measure that the widths of frames show
    #[arg(long, default_value = "samples", value_name = "WHAT", help_heading = "Selection")]
    by: WidthFlag,
    /// Draw this event of the capture
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    event: Option<String>,
    /// Width of the picture, pixels
    #[arg(
        long,
        default_value_t = 1200,
        value_name = "PIXELS",
        value_parser = clap::value_parser!(u32).range(200..=20_000),
        help_heading = "Output"
    )]
    width: u32,
    #[command(flatten)]
    require: RequireArguments,
}

/// The measure that the widths of frames show.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum WidthFlag {
    /// Number of samples
    Samples,
    /// Sum of the latencies of samples: where time is spent waiting
    Latency,
}

impl WidthFlag {
    /// Returns the word for the command line.
    const fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Latency => "latency",
        }
    }

    /// Returns the measure as views know it.
    pub fn weight(self) -> FrameWidth {
        match self {
            Self::Samples => FrameWidth::Samples,
            Self::Latency => FrameWidth::Latency,
        }
    }
}

/// Draws the flame graph of a capture.
pub fn run(arguments: &FlamegraphArguments, out: &mut Output) -> CommandResult {
    let mut values = OptionValues::default().with("by", arguments.by.name());
    if let Some(event) = &arguments.event {
        values = values.with("event", event);
    }
    let options = FlamegraphView::options(&values).map_err(no_answer)?;
    let gates = arguments.require.reads();
    let wanted = |meta: &Meta| {
        view::AnyView::reads(&FlamegraphView, &values, meta)
            .map_or(Projection::EVERYTHING, |all| all.and(gates))
    };
    let capture = arguments.narrow.read_parts(&arguments.capture.path(), &wanted)?;
    let gates = arguments.require.evaluate(&capture);
    let mut code = LocalFiles::here();
    let flame = FlamegraphView::answer(&mut Input::of(&capture, &mut code), &options).map_err(no_answer)?;
    if arguments.json {
        out.print(&json_about(&flame, gates.as_deref(), &capture)?)?;
    } else if arguments.folded {
        say_selection(&capture);
        out.print(&folded::folded(&flame))?;
    } else {
        let svg = svg::flame_svg(&flame, arguments.width).map_err(|error| {
            Failure::new(ExitClass::Failed, format!("the flame graph cannot be drawn: {error}"))
        })?;
        say_selection(&capture);
        write_file(&arguments.output, &svg)?;
        if arguments.output != Path::new("-") {
            say(&format!("drew {}", arguments.output.display()));
        }
    }
    require::check(gates.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
