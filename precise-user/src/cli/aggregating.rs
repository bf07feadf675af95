//! The flags of every run that adds samples up in the kernel: how often the table is read, what it may cost, how large it is.

use std::time::Duration;

use clap::Args;
use precise::run::plan::{self, PlanBuilder};

use super::values;

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
    #[arg(long, value_name = "NUMBER", value_parser = values::size, default_value_t = plan::TABLE_CELLS)]
    table_cells: u64,
}

impl AggregatingArguments {
    /// The plan with what they say.
    pub fn complete(&self, builder: PlanBuilder) -> PlanBuilder {
        let builder = builder.epoch(self.epoch).table_cells(self.table_cells);
        match self.overhead {
            Some(values::Overhead(asked)) => builder.budget(asked),
            None => builder,
        }
    }
}
