//! `precise doctor`.

use std::process::ExitCode;

use clap::{ArgMatches, Args};
use precise::doctor::{MachineState, ReaderConfinement, examine};
use precise::machine::Root;
use precise::self_test;
use precise::self_test::worker;
use precise::text::doctor_text::{diagnosis_text, fixes_text, self_test_text};
use precise::text::schema::Doctor;

use super::{CommandResult, Output, code, form::json, output::say, sample};

const AFTER_HELP: &str = "\
Examples:
  precise doctor                             check this machine
  precise doctor --self-test                 sample known work and check the samples
  precise doctor --fix > fix.sh              the commands that would change what was found";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DoctorArguments {
    /// Sample work with known results and check every field; takes about a minute
    #[arg(long)]
    self_test: bool,
    /// Print commands that fix what was found, with reasons, without running them
    #[arg(long, conflicts_with = "self_test")]
    fix: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print only the result
    #[arg(short, long)]
    quiet: bool,
    /// Does the work of the self-test, which starts this itself
    #[arg(long, value_name = "TASK", hide = true)]
    worker: Option<String>,
}

/// Returns whether the command takes samples with these arguments.
pub fn samples(matches: &ArgMatches) -> bool {
    matches.get_flag("self_test") && !matches.contains_id("worker")
}

/// Examines the machine, or runs the self-test.
pub fn run(arguments: &DoctorArguments, out: &mut Output) -> CommandResult {
    if let Some(task) = &arguments.worker {
        match worker::work(task)? {}
    }
    if arguments.self_test {
        return prove(arguments, out);
    }
    let mut state = MachineState::read(&Root::default());
    state.naming = Some(ReaderConfinement::try_here());
    // The diagnosis is about the rights that a run would have, not about those that this command
    // has kept.
    state.rights = out.started_with.unwrap_or(state.rights);
    let diagnosis = examine(&state);
    if arguments.json {
        out.print(&json(&Doctor { diagnosis: &diagnosis, state: &state }, None)?)?;
    } else if arguments.fix {
        out.print(&fixes_text(&diagnosis, &out.text))?;
    } else {
        out.print(&diagnosis_text(&diagnosis, &out.text))?;
    }
    Ok(diagnosis.class.map_or(ExitCode::SUCCESS, |class| code(class.into())))
}

fn prove(arguments: &DoctorArguments, out: &mut Output) -> CommandResult {
    let report = sample(self_test::run(|probe| {
        if !arguments.quiet {
            say(&format!("{}: {}", probe.preset, probe.work));
        }
    }))?;
    if arguments.json {
        out.print(&json(&report, None)?)?;
    } else {
        out.print(&self_test_text(&report, &out.text))?;
    }
    Ok(report.class().map_or(ExitCode::SUCCESS, code))
}
