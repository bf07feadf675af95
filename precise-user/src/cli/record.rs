//! `precise record`.

use std::path::{Path, PathBuf};

use clap::Args;
use precise::error::{Failure, Remedy};
use precise::model::{Capture, Meta, Projection};
use precise::run::plan::{self, Plan};
use precise::run::{kill_switch, live};
use precise::views::cost_text::cost_text;
use precise::views::heatmap::HeatmapView;
use precise::views::idle;
use precise::views::view::{AnyView as _, Format, Input, OptionValues, Why};

use super::{
    CommandResult, Output,
    aggregating::AggregatingArguments,
    call_graph::AggregatedChainArguments,
    code::LocalFiles,
    dimensions, ended,
    form::by_help,
    idle::{IdleArguments, say_left_out},
    output::{check_folder, complain, refuse_terminal, say, say_written, write_file},
    plan_failure::plan_failure,
    progress::ProgressLine,
    report::ReportShape,
    require, sample,
    selection::{LIMITS, OUTPUT, SelectionArguments},
    values,
    view::no_answer,
};

const AFTER_HELP: &str = "\
Examples:
  precise record -a --duration 5s             sample the machine for 5 seconds
  precise record -- ./program                 sample one command until it ends
  precise record -a -- sleep 5                sample the machine until a command ends
  precise record -e loads --min-latency 200 -p 4711";

/// Help of `--by`.
const BY: &str = "Group samples in the kernel by these keys [default: by event]";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("sort", |arg| arg.help_heading(OUTPUT).hide_short_help(true)))]
#[command(mut_arg("limit", |arg| arg.help_heading(OUTPUT).hide_short_help(true)))]
#[command(mut_arg("json", |arg| arg.help_heading(OUTPUT).hide_short_help(true)))]
#[command(mut_arg("field_separator", |arg| arg.help_heading(OUTPUT).hide_short_help(true)))]
#[command(mut_arg("require", |arg| arg.help_heading(OUTPUT).hide_short_help(true)))]
pub struct RecordArguments {
    #[command(flatten)]
    selection: SelectionArguments,
    #[arg(
        long,
        value_name = "KEYS",
        help_heading = OUTPUT,
        help = BY,
        long_help = by_help(
            BY,
            "By default, samples are grouped by ip, cgroup, process, and the data source and latency if the \
             event has them."
        )
    )]
    by: Option<String>,
    /// Round data addresses down to multiples of BYTES [default: 64; 1 for c2c]
    ///
    /// A power of two. 64 is a cache line.
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = values::size,
        help_heading = OUTPUT,
        hide_short_help = true
    )]
    granule: Option<u64>,
    /// Keep addresses of at most N cache lines (preset c2c)
    ///
    /// The first load that finds a line modified by another core reserves a slot of 8 bytes for it.
    /// Samples of lines without a slot are kept without their address.
    #[arg(
        long,
        value_name = "N",
        value_parser = values::size,
        default_value_t = plan::LINES,
        help_heading = LIMITS,
        hide_short_help = true
    )]
    lines: u64,
    #[command(flatten)]
    chains: AggregatedChainArguments,
    #[command(flatten)]
    aggregating: AggregatingArguments,
    /// Write the capture to FILE, or `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet", help_heading = OUTPUT)]
    output: PathBuf,
    /// Draw a heatmap to this file: .png or .svg
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, hide_short_help = true)]
    plot: Option<PathBuf>,
    /// Print only the result
    #[arg(short, long, help_heading = OUTPUT, hide_short_help = true)]
    quiet: bool,
    #[command(flatten)]
    idle: IdleArguments,
    #[command(flatten)]
    shape: ReportShape,
}

impl RecordArguments {
    /// Returns whether the standard output is data: the capture, JSON or CSV.
    fn writes_data(&self) -> bool {
        self.output == Path::new("-") || self.shape.is_data()
    }

    /// Returns whether something was asked for that only the rows of the capture can answer.
    fn needs_rows(&self) -> bool {
        self.shape.is_data() || self.shape.has_gates() || self.plot.is_some()
    }

    /// Returns the parts of rows that the report and the picture are made of.
    fn reads(&self, meta: &Meta) -> Projection {
        let printed = self.shape.reads_printed(meta).and(idle::reads(meta));
        match &self.plot {
            Some(_) => {
                HeatmapView.reads(&plot_values(), meta).map_or(Projection::EVERYTHING, |all| all.and(printed))
            }
            None => printed,
        }
    }
}

/// Returns the options of the heatmap that `--plot` draws.
fn plot_values() -> OptionValues {
    OptionValues::defaults(HeatmapView.description().options)
}

/// Records, writes the capture, and prints the report.
pub fn run(arguments: &RecordArguments, out: &mut Output) -> CommandResult {
    arguments.shape.check(None)?;
    if let Some(plot) = &arguments.plot {
        Format::of(plot).map_err(no_answer)?;
        check_folder(plot)?;
    }
    refuse_terminal(&arguments.output, "a capture")?;
    check_folder(&arguments.output)?;
    let plan = plan(arguments)?;
    let events: Vec<&str> = plan.events.iter().map(|event| event.request.name.as_str()).collect();
    let line = ProgressLine::new(
        &format!("{} of {}", events.join(", "), plan.words()),
        plan.duration,
        arguments.quiet,
        !arguments.writes_data(),
    );
    let finished = sample(live::run(&plan, Some(&arguments.output), |progress| line.show(&progress)));
    line.end();
    let live::FinishedRun { meta, kept, command, stopped } = finished?;
    match kept.read_parts(&|meta| arguments.reads(meta)) {
        Ok(capture) => show(arguments, &plan, &arguments.idle.leave_out(capture), kept.old(), out)?,
        // The run is complete, and another command shows it.
        Err(error) if error.way_out() == Some(Remedy::ReadLater) && !arguments.needs_rows() => {
            complain(&error.into());
        }
        Err(error) => return Err(error.into()),
    }
    if let Some(why) = stopped {
        let failure = Failure::from(kill_switch::ended(&why));
        return Err(failure.advise("The capture was written; it has the samples until then."));
    }
    ended(&meta.events, command)
}

/// Prints the report of a run, draws its picture, and checks its gates.
fn show(
    arguments: &RecordArguments,
    plan: &Plan,
    capture: &Capture,
    old: Option<&Path>,
    out: &mut Output,
) -> Result<(), Failure> {
    let to_file = arguments.output != Path::new("-");
    let gates =
        if to_file { arguments.shape.print(capture, None, out)? } else { arguments.shape.gates(capture) };
    if to_file && !arguments.quiet {
        if let Some(cost) = &capture.meta.overhead {
            say(&cost_text(cost));
        }
        say_left_out(capture);
        say_written(&arguments.output, old);
        if let Some(lines) = plan.promoted_lines {
            say(&format!(
                "addresses were kept for at most {lines} cache lines that HITM loads found (--lines); `precise c2c` shows them"
            ));
        }
    }
    if let Some(plot) = &arguments.plot {
        draw(capture, plot, arguments.quiet)?;
    }
    require::check(gates.as_deref()).map_err(|failure| failure.advise("The capture was written."))
}

/// Draws the heatmap of a capture.
fn draw(capture: &Capture, plot: &Path, quiet: bool) -> Result<(), Failure> {
    let mut code = LocalFiles::here();
    let values = plot_values();
    let width = values.number("width").map_err(no_answer)?;
    match HeatmapView.answer(&mut Input::of(capture, &mut code), &values) {
        // A capture without samples to draw is not a failure of the run; the ledger shows where the
        // samples went.
        Err(error) if error.why == Why::NoSamples => say(&error.text),
        answer => {
            let format = Format::of(plot).map_err(no_answer)?;
            let picture = answer.and_then(|answer| answer.draw(format, width)).map_err(no_answer)?;
            write_file(plot, &picture)?;
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
        .output_apart(arguments.writes_data())
        .lines(arguments.lines);
    if let Some(by) = &arguments.by {
        builder = builder.dimensions(dimensions::parse(by)?);
    }
    if let Some(bytes) = arguments.granule {
        builder = builder.granule(bytes);
    }
    arguments.chains.complete(builder).build().map_err(plan_failure)
}
