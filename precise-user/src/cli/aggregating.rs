//! The flags of every run that adds samples up in the kernel: how often the table is read, what it may cost, how large it is.

use std::time::Duration;

use clap::Args;
use precise::error::{Class, Failure};
use precise::run::plan::Plan;

use super::{
    selection::{LIMITS, OUTPUT, SelectionArguments},
    values,
};

/// Cells per CPU and half unless asked for otherwise: 512 KiB of memory each.
const TABLE_CELLS: u64 = 8192;
/// What a run may cost on each CPU unless asked for otherwise, as a part of its time.
const OVERHEAD: f64 = 0.01;

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
    /// If sampling would cost more, samples are taken less often. A period of -c is never changed, unless --overhead is
    /// given as well.
    #[arg(long, value_name = "PERCENT", value_parser = values::overhead, help_heading = LIMITS)]
    overhead: Option<values::Overhead>,
    /// Set the size of the table, in cells per CPU (128 bytes each)
    #[arg(
        long,
        value_name = "N",
        value_parser = values::size,
        default_value_t = TABLE_CELLS,
        help_heading = LIMITS,
        hide_short_help = true
    )]
    table_cells: u64,
}

impl AggregatingArguments {
    /// The plan with what they say.
    pub fn complete(&self, plan: Plan, selection: &SelectionArguments) -> Result<Plan, Failure> {
        let cells = usize::try_from(self.table_cells).ok().filter(|cells| *cells <= 1 << 22);
        let table_cells = cells.ok_or_else(|| {
            Failure::new(Class::Usage, "--table-cells must be at most 4M (512 MiB per CPU)")
        })?;
        let budget = match self.overhead {
            Some(values::Overhead(asked)) => asked,
            // Whoever chose a period means it.
            None if selection.has_period() => None,
            None => Some(OVERHEAD),
        };
        Ok(Plan { epoch: self.epoch, table_cells, budget, ..plan })
    }
}
