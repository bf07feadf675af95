//! The flags of every run that aggregates samples in the kernel: epoch length, overhead limit, and
//! table size.

use std::time::Duration;

use clap::Args;
use precise::run::plan::{self, PlanBuilder};

use super::{
    selection::{LIMITS, OUTPUT},
    values,
};

#[derive(Debug, Args)]
pub struct AggregatingArguments {
    /// Read the table at this interval: the resolution of the time axis
    #[arg(
        long,
        value_name = "TIME",
        value_parser = values::epoch,
        default_value = "1s",
        help_heading = OUTPUT,
        hide_short_help = true
    )]
    epoch: Duration,
    /// Limit the overhead per CPU: percent of its time, or `off` [default: 1%]
    ///
    /// If sampling would cost more, samples are taken less often. A period of -c is never changed,
    /// unless --overhead is given as well.
    #[arg(long, value_name = "PERCENT", value_parser = values::overhead, help_heading = LIMITS)]
    overhead: Option<values::Overhead>,
    /// Set the size of the table, in cells per CPU (128 bytes each)
    #[arg(
        long,
        value_name = "N",
        value_parser = values::size,
        default_value_t = plan::TABLE_CELLS,
        help_heading = LIMITS,
        hide_short_help = true
    )]
    table_cells: u64,
}

impl AggregatingArguments {
    /// Returns the plan with the values of these flags.
    pub fn complete(&self, builder: PlanBuilder) -> PlanBuilder {
        let builder = builder.epoch(self.epoch).table_cells(self.table_cells);
        match self.overhead {
            Some(values::Overhead(asked)) => builder.budget(asked),
            None => builder,
        }
    }
}
