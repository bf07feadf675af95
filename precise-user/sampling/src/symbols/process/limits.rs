//! How much memory the history of processes may take, and what was forgotten to stay within it.

use precise_model::Reason;
use precise_model::digits::thousands;

/// Limits on the memory of [`Processes`](super::Processes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Maximum number of bytes of all processes, their names, mappings and the paths of the mapped
    /// files.
    pub bytes: usize,
}

impl HistoryLimits {
    /// The default of [`HistoryLimits::bytes`]. A process that was started by fork and exec takes 2
    /// to 3 KB, so an epoch can have 100,000 of them, and a machine 10,000 processes with 400
    /// mappings.
    pub const BYTES: usize = 256 << 20;
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { bytes: Self::BYTES }
    }
}

/// Counts of data that was forgotten here to limit memory, or lost by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ForgottenCounts {
    /// Number of processes whose mappings were forgotten.
    pub spaces: u64,
    /// Number of ended processes that were forgotten before they had been named.
    pub ended: u64,
    /// Number of living processes that were forgotten.
    pub living: u64,
    /// Number of names of threads that were forgotten.
    pub threads: u64,
    /// Number of new files that [`take_new_files`](super::Processes::take_new_files) did not
    /// return, because too many waited.
    pub files: u64,
    /// Number of sideband records that the kernel lost; processes and mappings may be missing.
    pub records_lost: u64,
}

impl ForgottenCounts {
    /// Returns one sentence about what was forgotten, and one about files that were not opened.
    pub fn notes(&self) -> Vec<String> {
        let counted = |count, one: &str, many: &str| {
            format!("{} {}", thousands(count), if count == 1 { one } else { many })
        };
        let processes = |count| counted(count, "process", "processes");
        let mut forgotten = Vec::new();
        if self.spaces > 0 {
            forgotten.push(format!("the mappings of {}", processes(self.spaces)));
        }
        if self.ended > 0 {
            forgotten.push(format!("{} that had ended", processes(self.ended)));
        }
        if self.living > 0 {
            forgotten.push(format!("{} that had not ended", processes(self.living)));
        }
        if self.threads > 0 {
            forgotten.push(counted(self.threads, "name of a thread", "names of threads"));
        }
        let mut notes = Vec::new();
        if !forgotten.is_empty() {
            notes.push(format!(
                "to limit memory, this was forgotten before the samples had their names: {}. What is \
                 missing therefore shows as [{}]",
                forgotten.join(", "),
                Reason::Forgotten.words(),
            ));
        }
        if self.files > 0 {
            notes.push(format!(
                "{} could not be opened when mapped, because too many came at once: those that only \
                 short-lived processes mapped have no names",
                counted(self.files, "new file", "new files"),
            ));
        }
        notes
    }
}
