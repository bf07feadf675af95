//! The flags of every run that adds samples up in the kernel: how often the table is read, what it may cost, how large it is.

use std::time::Duration;

use clap::Args;
use precise::error::{Class, Failure};
use precise::run::plan::Plan;

use super::{selection::SelectionArguments, values};

/// Cells per CPU and half unless asked for otherwise: 512 KiB of memory each.
const TABLE_CELLS: u64 = 8192;
/// What a run may cost on each CPU unless asked for otherwise, as a part of its time.
const OVERHEAD: f64 = 0.01;

#[derive(Debug, Args)]
pub struct AggregatingArguments {
    /// Read the table this often: the time axis
    #[arg(long, value_name = "TIME", value_parser = values::epoch, default_value = "1s")]
    epoch: Duration,
    /// What the run may cost on each CPU, as a part of its time: samples are taken less often where they would cost more. A
    /// period of -c stays as it is, unless this is given as well; `off` lets everything cost what it does [default: 1%]
    #[arg(long, value_name = "PERCENT", value_parser = values::overhead)]
    overhead: Option<values::Overhead>,
    /// Cells for each CPU; 128 bytes of memory each
    #[arg(long, value_name = "NUMBER", value_parser = values::size, default_value_t = TABLE_CELLS)]
    table_cells: u64,
}

impl AggregatingArguments {
    /// The plan with what they say.
    pub fn complete(&self, plan: Plan, selection: &SelectionArguments) -> Result<Plan, Failure> {
        let cells = usize::try_from(self.table_cells).ok().filter(|cells| *cells <= 1 << 22);
        let table_cells = cells.ok_or_else(|| {
            Failure::new(Class::Usage, "--table-cells is more than 4M: half a gigabyte for each CPU")
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
