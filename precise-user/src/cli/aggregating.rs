//! The flags of every run that aggregates samples in the kernel: epoch length, overhead limit, and
//! table size.

use std::time::Duration;

use clap::Args;
use precise::run::plan::PlanBuilder;

use super::{
    selection::{LIMITS, OUTPUT},
    values,
};

#[derive(Debug, Args)]
pub struct AggregatingArguments {
    /// Read the table at this interval: the resolution of the time axis [default: a sixtieth of
    /// --duration, from 100ms to 1s]
    ///
    /// If a command or a process ends the run, the default is 250ms; for `serve`, it is 1s.
    #[arg(
        long,
        value_name = "TIME",
        value_parser = values::epoch,
        help_heading = OUTPUT,
        hide_short_help = true
    )]
    epoch: Option<Duration>,
    /// Limit the overhead per CPU: percent of its time, or `off` [default: 1%]
    ///
    /// If sampling would cost more, samples are taken less often. A period of -c is never changed,
    /// unless --overhead is given as well.
    #[arg(long, value_name = "PERCENT", value_parser = values::overhead, help_heading = LIMITS)]
    overhead: Option<values::OverheadLimit>,
    /// Set the size of the table, in cells per CPU (128 bytes each) [default: 8192]
    ///
    /// On machines with very many CPUs the default is smaller, so that the tables of all CPUs and
    /// events take at most 256 MiB.
    #[arg(long, value_name = "N", value_parser = values::size, help_heading = LIMITS, hide_short_help = true)]
    table_cells: Option<u64>,
}

impl AggregatingArguments {
    /// Returns the plan with the values of these flags.
    pub fn complete(&self, builder: PlanBuilder) -> PlanBuilder {
        let mut builder = match self.epoch {
            Some(epoch) => builder.epoch(epoch),
            None => builder,
        };
        if let Some(cells) = self.table_cells {
            builder = builder.table_cells(cells);
        }
        match self.overhead {
            Some(values::OverheadLimit(asked)) => builder.budget(asked),
            None => builder,
        }
    }
}
