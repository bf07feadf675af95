//! `precise export`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use precise::error::{ExitClass, Failure};
use precise::export::otlp::OtlpOptions;
use precise::export::pprof::PprofOptions;
use precise::export::{otlp, pprof, table};
use precise::model::Capture;
use precise::views::call_graph::has_chains;
use precise::views::flame;
use precise::views::flame::{FlameOptions, FrameWidth, folded};

use super::{
    CommandResult, Output,
    flamegraph::WidthFlag,
    narrow::{NarrowArguments, say_selection},
    output::{refuse_terminal, say, write_file},
    require::{self, RequireArguments},
    view::{CaptureArguments, no_answer},
};

const AFTER_HELP: &str = "\
Examples:
  precise export --format pprof && go tool pprof -http=: precise.pb.gz
  precise export --format folded | flamegraph.pl > flame.svg
  precise export --format otlp                a request for an OpenTelemetry collector
  precise export --format csv -o rows.csv";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ExportArguments {
    #[command(flatten)]
    capture: CaptureArguments,
    #[command(flatten)]
    narrow: NarrowArguments,
    /// Write this format
    #[arg(short, long, value_name = "FORMAT")]
    format: ExportFormat,
    /// Write to this file; `-` is the standard output [default: precise.pb.gz for pprof,
    /// precise.otlp for otlp, else -]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Weigh folded stacks by this; pprof shows it first
    #[arg(long, default_value = "samples", value_name = "WHAT")]
    by: WidthFlag,
    /// Write only this event (pprof, otlp, folded)
    #[arg(short, long, value_name = "NAME")]
    event: Option<String>,
    #[command(flatten)]
    require: RequireArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// A profile of one event for `go tool pprof`, with samples, period, latency and labels
    Pprof,
    /// The profiles of all events for OpenTelemetry, as one uncompressed request (v1development)
    Otlp,
    /// One line per call chain of one event, for flame graphs
    Folded,
    /// All rows and columns, as comma-separated values
    Csv,
    /// All rows and columns, one JSON object per line
    Json,
}

/// Writes a capture in another format.
pub fn run(arguments: &ExportArguments, out: &mut Output) -> CommandResult {
    let binary = match arguments.format {
        ExportFormat::Pprof => Some(("a profile for pprof", "precise.pb.gz")),
        ExportFormat::Otlp => Some(("profiles for OpenTelemetry", "precise.otlp")),
        ExportFormat::Folded | ExportFormat::Csv | ExportFormat::Json => None,
    };
    if let (Some((what, _)), Some(path)) = (binary, &arguments.output) {
        refuse_terminal(path, what)?;
    }
    let capture = arguments.narrow.read(&arguments.capture.path())?;
    say_selection(&capture);
    let gates = arguments.require.evaluate(&capture);
    let bytes = match arguments.format {
        ExportFormat::Pprof => pprof(&capture, arguments)?,
        ExportFormat::Otlp => profiles(&capture, arguments)?,
        ExportFormat::Folded => stacks(&capture, arguments)?,
        ExportFormat::Csv => table::csv(&capture, ",").map_err(damaged)?.into_bytes(),
        ExportFormat::Json => table::json(&capture).map_err(damaged)?.into_bytes(),
    };
    let usual = binary.map(|(_, name)| PathBuf::from(name));
    match arguments.output.clone().or(usual) {
        Some(path) => {
            write_file(&path, &bytes)?;
            if path != Path::new("-") {
                say(&format!("wrote {}", path.display()));
            }
        }
        None => out.write(&bytes)?,
    }
    require::check(gates.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

fn pprof(capture: &Capture, arguments: &ExportArguments) -> Result<Vec<u8>, Failure> {
    let options = PprofOptions { weight: arguments.by.weight(), event: arguments.event.clone() };
    pprof::pprof(capture, &options).map_err(|error| no_answer(error.into()))
}

fn profiles(capture: &Capture, arguments: &ExportArguments) -> Result<Vec<u8>, Failure> {
    let options = OtlpOptions { event: arguments.event.clone(), service: None };
    let request = otlp::otlp(capture, &options).map_err(|error| no_answer(error.into()))?;
    if request.profiles == 0 {
        let what = "the capture has no samples, so there are no profiles to write";
        return Err(Failure::new(ExitClass::NoSamples, what));
    }
    Ok(request.bytes)
}

fn stacks(capture: &Capture, arguments: &ExportArguments) -> Result<Vec<u8>, Failure> {
    let weight = arguments.by.weight();
    let options = FlameOptions { weight, event: arguments.event.clone(), leaf_only: true };
    let flame = flame::flame(capture, &options).map_err(|error| no_answer(error.into()))?;
    if flame.total == 0 {
        let what = if weight == FrameWidth::Latency { "a latency" } else { "a weight" };
        let why = format!("no sample of {} has {what}, so there is nothing to write", flame.event);
        return Err(Failure::new(ExitClass::NoSamples, why));
    }
    if let Err(none) = has_chains(capture) {
        say(&format!("each stack is only the sampled function: {none}"));
    }
    Ok(folded::folded(&flame).into_bytes())
}

fn damaged(error: String) -> Failure {
    Failure::new(ExitClass::BadFile, format!("the capture is damaged: {error}"))
}
