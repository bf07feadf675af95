//! `precise record`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use precise::error::{Class, Failure};
use precise::model::Capture;
use precise::run::plan::{self, Plan};
use precise::run::{child, kill_switch, live};
use precise::views::cost_text::cost_text;
use precise::views::heatmap::HeatmapView;
use precise::views::view::{AnyView as _, Format, Input, Values, Why};
use precise_common::ledger::Counter;

use super::{
    Outcome, Output, aggregating::AggregatingArguments, code::Files, dimensions, form::by_help, output::say,
    plan_failure::plan_failure, progress::Line, report::Shape, require, sample,
    selection::SelectionArguments, values, view::no_answer,
};

#[derive(Debug, Args)]
pub struct RecordArguments {
    #[command(flatten)]
    selection: SelectionArguments,
    #[arg(long, value_name = "KEYS", help = by_help("Group by these in the kernel", ""))]
    by: Option<String>,
    /// Put data addresses together that lie in the same so many bytes, a power of two: 64 is a cache line, and the default;
    /// 1 for c2c
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    granule: Option<u64>,
    /// Of c2c: room for so many cache lines. The first load that finds a line modified by another core gives it a place; what
    /// is in no such line is kept without its address
    #[arg(long, value_name = "NUMBER", value_parser = values::size, default_value_t = plan::LINES)]
    lines: u64,
    /// Take call chains, by frame pointers: who called the sampled function. It costs: the kernel unwinds each sample's stack
    #[arg(
        short = 'g',
        long = "call-graph",
        value_name = "HOW",
        num_args = 0..=1,
        default_missing_value = "fp",
        value_enum
    )]
    call_graph: Option<CallGraph>,
    /// Call chains for each CPU; 2,112 bytes of memory each [default: what 64 MiB hold, from 256 to 8K]
    #[arg(long, value_name = "NUMBER", value_parser = values::size)]
    stacks: Option<u64>,
    #[command(flatten)]
    aggregating: AggregatingArguments,
    /// Keep the capture in this file; `-` is the standard output
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet")]
    output: PathBuf,
    /// Draw a heatmap into this file as well: .png or .svg
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Say nothing but the result
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    shape: Shape,
}

/// How call chains are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CallGraph {
    /// By frame pointers, in the kernel
    Fp,
}

/// Records, keeps, prints.
pub fn run(arguments: &RecordArguments, out: &mut Output) -> Outcome {
    arguments.shape.check(None)?;
    if let Some(plot) = &arguments.plot {
        Format::of(plot).map_err(no_answer)?;
    }
    let plan = plan(arguments)?;
    let events: Vec<&str> = plan.events.iter().map(|event| event.request.name.as_str()).collect();
    let line = Line::new(
        &format!("{} of {}", events.join(", "), plan.target.words()),
        plan.duration,
        arguments.quiet,
    );
    let finished = sample(live::run(&plan, Some(&arguments.output), |progress| line.show(&progress)));
    line.end();
    let live::Finished { kept, command, stopped, .. } = finished?;
    let capture = kept.read()?;

    let to_file = arguments.output != Path::new("-");
    let gates =
        if to_file { arguments.shape.print(&capture, None, out)? } else { arguments.shape.gates(&capture) };
    if to_file && !arguments.quiet {
        if let Some(cost) = &capture.meta.overhead {
            say(&cost_text(cost));
        }
        say(&format!("kept the capture in {}", arguments.output.display()));
        if let Some(lines) = plan.promoted_lines {
            say(&format!(
                "addresses are kept of cache lines that HITM loads showed, at most {lines} (--lines): `precise c2c` shows them"
            ));
        }
    }
    if let Some(plot) = &arguments.plot {
        draw(&capture, plot, arguments.quiet)?;
    }
    require::check(gates.as_deref()).map_err(|failure| failure.advise("The capture was kept."))?;
    if let Some(why) = stopped {
        return Err(kill_switch::ended(&why).advise("The capture was kept: it has what was seen until then."));
    }
    let seen: u64 = capture.meta.events.iter().map(|event| event.ledger.counter(Counter::Seen)).sum();
    let code = command.map_or(0, child::shell_code);
    // A command that failed explains itself; one that worked without a sample does not.
    if seen == 0 && code == 0 {
        return Err(Failure::new(
            Class::NoSamples,
            "not one sample arrived: the event did not happen, or cannot sample here",
        )
        .advise("Try a shorter period (-c), a longer run, or another event (`precise list`)."));
    }
    Ok(ExitCode::from(code))
}

/// Draws the heatmap of a capture.
fn draw(capture: &Capture, plot: &Path, quiet: bool) -> Result<(), Failure> {
    let mut code = Files::of(Path::new("/"));
    let values = Values::defaults(HeatmapView.description().options);
    let width = values.number("width").map_err(no_answer)?;
    match HeatmapView.answer(&mut Input::of(capture, &mut code), &values) {
        // Nothing to draw is no failure of the run: the ledger says where the samples went.
        Err(error) if error.why == Why::NoSamples => say(&error.text),
        answer => {
            let format = Format::of(plot).map_err(no_answer)?;
            answer.and_then(|answer| answer.draw(format, width, plot)).map_err(no_answer)?;
            if !quiet {
                say(&format!("drew {}", plot.display()));
            }
        }
    }
    Ok(())
}

fn plan(arguments: &RecordArguments) -> Result<Plan, Failure> {
    let mut builder = arguments
        .aggregating
        .complete(arguments.selection.plan()?)
        .call_chains(arguments.call_graph.is_some())
        .lines(arguments.lines);
    if let Some(by) = &arguments.by {
        builder = builder.dimensions(dimensions::parse(by)?);
    }
    if let Some(bytes) = arguments.granule {
        builder = builder.granule(bytes);
    }
    if let Some(stacks) = arguments.stacks {
        builder = builder.stacks(stacks);
    }
    builder.build().map_err(plan_failure)
}
