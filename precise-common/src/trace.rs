//! What the program with a log keeps on each CPU, and its reader reads at the end of a run.

use crate::ledger::WORDS;

/// The map of the [`CpuLog`]s: an array per CPU with one element.
pub const CPU_LOGS: &str = "CPU_LOGS";

/// The state of the log on one CPU.
#[repr(C)]
pub struct CpuLog {
    /// The number of lines of the run. A line says its number, so a reader knows which it has not
    /// got: the ring was full, or another CPU held its lock while this one was in an NMI.
    pub logged: u64,
    /// The number of lines that the limit of a second left out.
    pub left_out: u64,
    /// The second in which the last line was logged.
    pub second: u64,
    /// The number of lines of this second.
    pub in_second: u64,
    /// The instruction address of the sample.
    pub ip: u64,
    /// The ledger's row before the sample.
    pub before: [u64; WORDS],
}

/// The number of words of a [`CpuLog`], of which `logged` and `left_out` are the first.
pub const CPU_LOG_WORDS: usize = size_of::<CpuLog>() / size_of::<u64>();

const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(CpuLog, logged) == 0 && offset_of!(CpuLog, left_out) == 8);
};
