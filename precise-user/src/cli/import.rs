//! `precise import`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use precise::error::{Class, Failure};
use precise::import;
use precise::import::ImportOptions;
use precise::run::plan::with_chains;
use precise::views::imported::{imported, text as import_text};

use super::{
    Outcome, Output, dimensions,
    form::{by_help, json},
    output::say,
    plan_failure::plan_failure,
    values,
};

#[derive(Debug, Args)]
pub struct ImportArguments {
    /// What `perf record` wrote; `-` reads the standard input, where perf wrote to a pipe
    #[arg(value_name = "FILE", default_value = "perf.data")]
    file: PathBuf,
    /// The same, as perf's commands name it
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    input: Option<PathBuf>,
    /// Keep the capture in this file; `-` is the standard output
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet")]
    output: PathBuf,
    /// Import only these events, by the names that perf gave them; all otherwise
    #[arg(short, long, value_name = "EVENTS", value_delimiter = ',')]
    event: Vec<String>,
    #[arg(
        long,
        value_name = "KEYS",
        help = by_help(
            "Group by these",
            " [default: all that the file has but tid and cpu, and stack only where it has no address]"
        )
    )]
    by: Option<String>,
    /// Put data addresses together that lie in the same so many bytes, a power of two: 64 is a cache line
    #[arg(long, value_name = "BYTES", value_parser = values::size, default_value = "64")]
    granule: u64,
    /// Length of an epoch: the time axis
    #[arg(long, value_name = "TIME", value_parser = values::epoch, default_value = "1s")]
    epoch: Duration,
    /// Look up the recorded paths below this directory, which has the files of the recorded machine
    #[arg(long, value_name = "DIRECTORY")]
    symfs: Option<PathBuf>,
    /// Look here for files and debug information by build id (.build-id/ab/cdef…), before the usual places
    #[arg(long, value_name = "DIRECTORY")]
    debug_dir: Vec<PathBuf>,
    /// Name the kernel's addresses by this copy of the recorded machine's /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    kallsyms: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Say nothing but the result
    #[arg(short, long)]
    quiet: bool,
}

/// Imports, keeps, says what came in.
pub fn run(arguments: &ImportArguments, out: &mut Output) -> Outcome {
    let options = options(arguments)?;
    let result = import::import(&options)?;
    let view = imported(&result);
    // The capture itself may be on the standard output.
    if options.output != std::path::Path::new("-") {
        let printed =
            if arguments.json { json(&view, None)? } else { import_text::import_text(&view, &out.text) };
        out.print(&printed)?;
        if !arguments.quiet {
            say(&format!("kept the capture in {}", options.output.display()));
        }
    }
    if view.samples == 0 {
        return Err(Failure::new(Class::NoSamples, "there is not one sample in the file")
            .advise("`perf script -i FILE` shows whether perf finds one."));
    }
    Ok(ExitCode::SUCCESS)
}

fn options(arguments: &ImportArguments) -> Result<ImportOptions, Failure> {
    if !arguments.granule.is_power_of_two() {
        return Err(Failure::new(
            Class::Usage,
            format!("--granule {} is no power of two", arguments.granule),
        ));
    }
    for directory in arguments.symfs.iter().chain(&arguments.debug_dir) {
        if !directory.is_dir() {
            return Err(Failure::new(Class::Usage, format!("{} is no directory", directory.display())));
        }
    }
    if let Some(path) = arguments.kallsyms.as_ref().filter(|path| !path.is_file()) {
        return Err(Failure::new(Class::Usage, format!("{} is no file", path.display())));
    }
    let dimensions = match &arguments.by {
        Some(by) => Some(with_chains(dimensions::parse(by)?).map_err(plan_failure)?),
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
