//! `precise flamegraph`.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};
use precise::error::{Class, Failure};
use precise::views::flame::{FlameOptions, Weight, folded};
use precise::views::{ViewError, flame};

use super::{
    Outcome, Output,
    form::{no_answer, read},
    output::{say, write_file},
    require::{self, RequireArguments},
};

#[derive(Debug, Args)]
pub struct FlamegraphArguments {
    /// The capture; `-` is the standard input
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet")]
    input: PathBuf,
    /// Draw into this file, an SVG that can be searched and zoomed; `-` is the standard output
    #[arg(short, long, value_name = "FILE", default_value = "flamegraph.svg")]
    output: PathBuf,
    /// Print folded stacks instead: a line per call chain, for other tools
    #[arg(long, conflicts_with = "output")]
    folded: bool,
    /// What the widths are
    #[arg(long, default_value = "samples", value_name = "WHAT")]
    by: By,
    /// Draw this event of the capture
    #[arg(short, long, value_name = "NAME")]
    event: Option<String>,
    /// Width of the picture, pixels
    #[arg(long, default_value_t = 1200, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(200..=20_000))]
    width: u32,
    #[command(flatten)]
    require: RequireArguments,
}

/// What is added up.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum By {
    /// Where the samples are
    Samples,
    /// Where the time was waited: the sum of their latencies
    Latency,
}

impl By {
    /// As views know it.
    pub fn weight(self) -> Weight {
        match self {
            Self::Samples => Weight::Samples,
            Self::Latency => Weight::Latency,
        }
    }
}

/// Draws the call chains of a capture.
pub fn run(arguments: &FlamegraphArguments, out: &mut Output) -> Outcome {
    let weight = arguments.by.weight();
    let options = FlameOptions { weight, event: arguments.event.clone(), leaf_only: false };
    let capture = read(&arguments.input)?;
    let gates = arguments.require.evaluate(&capture);
    let flame = flame::flame(&capture, &options).map_err(|error: ViewError| no_answer(error))?;
    if flame.total == 0 {
        return Err(Failure::new(
            Class::NoSamples,
            format!("there is nothing to draw: no sample of {} has a weight", flame.event),
        ));
    }
    if arguments.folded {
        out.print(&folded::folded(&flame))?;
    } else {
        let svg = precise::views::flame::svg::flame_svg(&flame, arguments.width).map_err(|error| {
            Failure::new(Class::Failed, format!("the flame graph cannot be drawn: {error}"))
        })?;
        write_file(&arguments.output, &svg)?;
        if arguments.output != std::path::Path::new("-") {
            say(&format!("drew {}", arguments.output.display()));
        }
    }
    require::check(gates.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
