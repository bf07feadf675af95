//! `--idle`: whether tables and findings include the samples of idle CPUs.

use clap::Args;
use precise::model::Capture;
use precise::views::idle;

use super::{narrow::SELECT, output::say};

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct IdleArguments {
    /// Include the samples of idle CPUs
    ///
    /// Without this flag, the time in which CPUs were idle is one sentence, and no part of tables,
    /// findings and pictures.
    #[arg(long, help_heading = SELECT, hide_short_help = true)]
    idle: bool,
}

impl IdleArguments {
    /// Returns whether the flag is given.
    pub fn includes(self) -> bool {
        self.idle
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
