//! The flags that narrow a capture after it was read. Every command that reads captures has them.

use std::path::Path;

use clap::{ArgMatches, Args, FromArgMatches as _};
use precise::archive;
use precise::capture::WantedParts;
use precise::error::{ExitClass, Failure};
use precise::filter::{FilterFlags, check_comm};
use precise::model::keys::Key;
use precise::model::{Capture, Meta, Projection, first_touch};
use precise::views::idle;
use precise::views::narrow::{TimeRange, WantedPart, narrow};

use super::{idle::IdleArguments, output::say, view};

/// Heading of the flags.
pub const SELECT: &str = "Which samples";

#[derive(Debug, Default, Args)]
pub struct NarrowArguments {
    /// Use only samples that match, as in 'latency >= 128 && comm == nginx'
    ///
    /// The grammar is that of `precise record --filter`. The capture must have recorded what the
    /// filter tests. Shares are then of the samples that match.
    #[arg(long, value_name = "EXPRESSION", help_heading = SELECT)]
    filter: Option<String>,
    /// Use only samples of processes with these names
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = SELECT)]
    comm: Vec<String>,
    /// Use only samples of these processes
    #[arg(short, long, value_name = "PIDS", value_delimiter = ',', help_heading = SELECT)]
    pid: Vec<u32>,
    /// Use only samples of these cgroups and their descendants
    ///
    /// A path, a pattern ('/system.slice/web-*'), 'pod:NAMESPACE/POD', 'container:NAME' or
    /// 'unit:NAME'. May be given several times.
    #[arg(short = 'G', long, value_name = "CGROUP", help_heading = SELECT)]
    cgroup: Vec<String>,
    /// Use only this time: 20s..45s after the start, or 14:03:10..14:05 (UTC)
    ///
    /// Each end may be left out. Epochs are kept whole.
    #[arg(long, value_name = "RANGE", value_parser = TimeRange::parse, help_heading = SELECT)]
    time: Option<TimeRange>,
    #[command(flatten)]
    idle: IdleArguments,
}

impl NarrowArguments {
    /// Returns the flags of a command that is made from the description of a view.
    pub fn of(matches: &ArgMatches) -> Result<Self, Failure> {
        Self::from_arg_matches(matches).map_err(|error| view::usage(&error))
    }

    /// Returns the part of a capture that the flags ask for.
    pub fn wanted(&self) -> Result<WantedPart, Failure> {
        for comm in &self.comm {
            check_comm(comm)
                .map_err(|error| Failure::new(ExitClass::Usage, format!("--comm {comm}: {error}")))?;
        }
        let mut flags = FilterFlags {
            pids: self.pid.clone(),
            comms: self.comm.clone(),
            cgroups: self.cgroup.clone(),
            ..FilterFlags::default()
        };
        if let Some(text) = &self.filter {
            flags =
                flags.with_filter(text).map_err(|error| Failure::new(ExitClass::Usage, error.to_string()))?;
        }
        Ok(WantedPart { flags, time: self.time })
    }

    /// Reads a capture, narrows it, and leaves out the samples of idle CPUs.
    pub fn read(&self, reference: &Path) -> Result<Capture, Failure> {
        self.read_parts(reference, &|_| Projection::EVERYTHING)
    }

    /// Reads a capture like [`Self::read`], but of its rows only the parts that `wanted` returns
    /// and those that the flags need.
    pub fn read_parts(&self, reference: &Path, wanted: &WantedParts<'_>) -> Result<Capture, Failure> {
        self.read_keys(reference, wanted, &[])
    }

    /// Reads a capture like [`Self::read_parts`], for a view that groups by these keys.
    pub fn read_keys(
        &self,
        reference: &Path,
        wanted: &WantedParts<'_>,
        keys: &[Key],
    ) -> Result<Capture, Failure> {
        // A wrong flag is an error before a file is read.
        let part = self.wanted()?.reads();
        let parts = |meta: &Meta| wanted(meta).and(part).and(idle::reads(meta));
        let mut capture = archive::read_parts(reference, &parts)?;
        // The flags may leave out page faults.
        first_touch::look_up(&mut capture, keys);
        self.apply(capture)
    }

    /// Narrows a capture, and leaves out the samples of idle CPUs.
    pub fn apply(&self, capture: Capture) -> Result<Capture, Failure> {
        let narrowed = narrow(capture, &self.wanted()?).map_err(view::no_answer)?;
        Ok(self.idle.leave_out(narrowed))
    }
}

/// Says on the standard error which part of a run an output is about that cannot say it itself.
pub fn say_selection(capture: &Capture) {
    if let Some(selection) = &capture.meta.selection {
        say(&selection.text);
    }
}
