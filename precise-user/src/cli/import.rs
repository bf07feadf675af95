//! `precise import`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use precise::error::{Class, Failure};
use precise::import;
use precise::import::ImportOptions;
use precise::model::Dimension;
use precise::views::imported::{imported, text as import_text};

use super::{
    CommandResult, Output, dimensions,
    form::{by_help, json},
    output::{check_folder, refuse_terminal, say_written},
    progress::ImportLine,
    selection::OUTPUT,
    values,
};

const AFTER_HELP: &str = "\
Examples:
  perf record -e cycles:pp -- ./program && precise import
  precise import perf.data -o capture.parquet
  precise import --by ip,process,stack perf.data
  perf record -o - -- ./program | precise import -";

/// Help of `--by`.
const BY: &str = "Group samples by these keys [default: by the contents of the file]";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ImportArguments {
    /// File that `perf record` wrote; `-` is the standard input
    #[arg(value_name = "FILE", default_value = "perf.data")]
    file: PathBuf,
    /// Alternative to FILE, as in perf's commands
    #[arg(short, long, value_name = "FILE", conflicts_with = "file", help_heading = "Input")]
    input: Option<PathBuf>,
    /// Import only these events, by their names in perf [default: all]
    #[arg(short, long, value_name = "EVENTS", value_delimiter = ',', help_heading = "Input")]
    event: Vec<String>,
    /// Look up the recorded paths below this directory
    ///
    /// The directory holds the files of the recorded machine.
    #[arg(long, value_name = "DIRECTORY", help_heading = NAMES)]
    symfs: Option<PathBuf>,
    /// Look up files and debug information here by build id (.build-id/ab/cdef…)
    ///
    /// This directory comes before the usual places. May be given several times.
    #[arg(long, value_name = "DIRECTORY", help_heading = NAMES)]
    debug_dir: Vec<PathBuf>,
    /// Name kernel addresses by this copy of /proc/kallsyms
    ///
    /// The copy must come from the recorded machine.
    #[arg(long, value_name = "FILE", help_heading = NAMES)]
    kallsyms: Option<PathBuf>,
    /// Write the capture to this file; `-` is the standard output
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet", help_heading = OUTPUT)]
    output: PathBuf,
    #[arg(
        long,
        value_name = "KEYS",
        help_heading = OUTPUT,
        help = BY,
        long_help = by_help(
            BY,
            "By default, samples are grouped by everything that the file has: ip, process, thread, cpu, \
             cgroup, address, page-size, source, latency, stack. Fewer keys make a smaller capture."
        )
    )]
    by: Option<String>,
    /// Round data addresses down to multiples of BYTES, a power of two
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = values::size,
        default_value = "1",
        help_heading = OUTPUT
    )]
    granule: u64,
    /// Set the length of an epoch: the resolution of the time axis
    ///
    /// Default: a sixtieth of the recording, from 1 ms to 1 s. If the file does not hold the length
    /// of the recording, precise reads the file twice; a pipe, or a file of more than 256 MiB, then
    /// has epochs of 1 s.
    #[arg(long, value_name = "TIME", value_parser = values::import_epoch, help_heading = OUTPUT)]
    epoch: Option<Duration>,
    /// Print JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Print only the result
    #[arg(short, long, help_heading = OUTPUT)]
    quiet: bool,
}

/// Heading of the flags that say where names come from.
const NAMES: &str = "Names";

/// Imports a file, writes the capture, and prints a summary.
pub fn run(arguments: &ImportArguments, out: &mut Output) -> CommandResult {
    let options = options(arguments)?;
    refuse_terminal(&options.output, "a capture")?;
    check_folder(&options.output)?;
    let progress = ImportLine::new(arguments.quiet);
    let result = import::import_watched(&options, &mut |now| progress.show(now));
    progress.end();
    let result = result?;
    let view = imported(&result);
    // No summary if the capture itself is written to standard output.
    if options.output != std::path::Path::new("-") {
        let printed =
            if arguments.json { json(&view, None)? } else { import_text::import_text(&view, &out.text) };
        out.print(&printed)?;
        if !arguments.quiet {
            say_written(&options.output, result.old.as_deref());
        }
    }
    if view.samples == 0 {
        return Err(Failure::new(Class::NoSamples, "the file has no samples")
            .advise("`perf script -i FILE` shows whether perf finds any."));
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds the dimensions that call chains need, if the dimensions include call chains. Unlike a live
/// run, an import can keep call chains beside data addresses.
fn with_code(mut dimensions: Vec<Dimension>) -> Vec<Dimension> {
    if dimensions.contains(&Dimension::Stack) {
        for needed in [Dimension::Ip, Dimension::Process] {
            if !dimensions.contains(&needed) {
                dimensions.push(needed);
            }
        }
    }
    dimensions
}

fn options(arguments: &ImportArguments) -> Result<ImportOptions, Failure> {
    if !arguments.granule.is_power_of_two() {
        return Err(Failure::new(
            Class::Usage,
            format!("--granule {} is not a power of two", arguments.granule),
        ));
    }
    for directory in arguments.symfs.iter().chain(&arguments.debug_dir) {
        if !directory.is_dir() {
            return Err(Failure::new(Class::Usage, format!("{} is not a directory", directory.display())));
        }
    }
    if let Some(path) = arguments.kallsyms.as_ref().filter(|path| !path.is_file()) {
        return Err(Failure::new(Class::Usage, format!("{} is not a file", path.display())));
    }
    let dimensions = match &arguments.by {
        Some(by) => Some(with_code(dimensions::parse(by)?)),
        None => None,
    };
    Ok(ImportOptions {
        input: arguments.input.clone().unwrap_or_else(|| arguments.file.clone()),
        output: arguments.output.clone(),
        events: arguments.event.clone(),
        dimensions,
        address_granule: arguments.granule,
        epoch: arguments.epoch,
        symfs: arguments.symfs.clone(),
        debug_dirs: arguments.debug_dir.clone(),
        kallsyms: arguments.kallsyms.clone(),
        command_line: std::env::args().collect(),
    })
}
