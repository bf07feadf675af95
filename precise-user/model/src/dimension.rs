//! Dimensions: what rows are grouped by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

crate::catalogue! {
    /// A dimension: something that rows are grouped by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Dimension: &'static str {
        /// Instruction address, which also gives function, line and module.
        Ip => "ip",
        /// Data address.
        Address => "address",
        /// Cgroup.
        Cgroup => "cgroup",
        /// Process.
        Process => "process",
        /// Thread.
        Thread => "thread",
        /// CPU.
        Cpu => "cpu",
        /// Level, snoop, TLB, lock: the data source.
        Source => "source",
        /// Latency bucket.
        Latency => "latency",
        /// Outcome of the branch or of the instruction fetch.
        Outcome => "outcome",
        /// Call chain.
        Stack => "stack",
        /// Size of the page that the data is on.
        #[serde(rename = "page-size")]
        PageSize => "page-size",
    }
}

impl Dimension {
    /// Returns the name of the dimension, as `--by` and captures write it.
    pub const fn as_str(self) -> &'static str {
        self.entry()
    }
}
