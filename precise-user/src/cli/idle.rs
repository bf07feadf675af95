//! `--idle`: whether tables and findings include the samples of idle CPUs.

use std::path::Path;

use clap::{ArgMatches, Args, FromArgMatches as _};
use precise::error::Failure;
use precise::model::Capture;
use precise::views::idle;

use super::{form::read, output::say};

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct IdleArguments {
    /// Include the samples of idle CPUs
    ///
    /// Without this flag, the time in which CPUs were idle is one sentence, and no part of tables,
    /// findings and pictures.
    #[arg(long, help_heading = "Selection")]
    idle: bool,
}

impl IdleArguments {
    /// Returns the value of the flag in the arguments of a command.
    pub fn of(matches: &ArgMatches) -> Self {
        Self::from_arg_matches(matches).unwrap_or_default()
    }

    /// Reads a capture for a view, without the samples of idle CPUs unless the flag is given.
    pub fn read(self, reference: &Path) -> Result<Capture, Failure> {
        read(reference).map(|capture| self.leave_out(capture))
    }

    /// Removes the samples of idle CPUs from a capture, unless the flag is given.
    pub fn leave_out(self, mut capture: Capture) -> Capture {
        idle::leave_out(&mut capture, self.idle);
        capture
    }
}

/// Says how to see what a view left out.
pub fn say_left_out(capture: &Capture) {
    let left_out = |event: &precise::model::EventInfo| event.idle.is_some_and(|idle| !idle.included);
    if capture.meta.events.iter().any(left_out) {
        say("idle CPUs are left out; --idle includes them");
    }
}
