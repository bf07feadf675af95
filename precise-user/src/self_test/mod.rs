//! Tests whether precise sampling works on this machine. Work with known samples is sampled in the
//! same way as any run (preset, events, BPF program, table, capture), and the result is compared
//! with the expectation.
//!
//! * [`task`]: the work to do, and where its samples must be.
//! * [`worker`]: does the work in a separate process; `code` is its machine code.
//! * `run`: samples the worker.
//! * [`evidence`]: the numbers that a capture contains about a task.
//! * [`judge`]: derives checks from the numbers. This module and `evidence` are pure.
//!
//! A check passes only if the expectation was observed. What could not be observed is
//! [`NotDecided`](precise_sampling::doctor::CheckStatus::NotDecided), with the reason, and never a
//! pass.

mod code;
pub mod evidence;
pub mod judge;
mod places;
mod probe;
mod run;
pub mod task;
#[cfg(test)]
mod tests;
mod topology;
pub mod worker;

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ExitClass;
use precise_sampling::doctor::{Check, CheckStatus, Diagnosis, MachineState};

pub use probe::{PROBES, Probe};
pub use run::run;

/// The complete result of a self-test, as a user sends it back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SelfTestReport {
    /// Verdict in one sentence.
    pub verdict: String,
    /// Version of `precise` that ran the self-test.
    pub producer: String,
    /// Diagnosis of the machine, before anything was sampled.
    pub diagnosis: Diagnosis,
    /// The state of the machine that the diagnosis is based on.
    pub state: MachineState,
    /// Results, one per preset.
    pub results: Vec<ProbeResult>,
}

/// The result of one probe.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProbeResult {
    /// Name of the preset.
    pub preset: &'static str,
    /// The work that was sampled, in a few words.
    pub work: &'static str,
    /// Whether the preset takes precise samples of the hardware; otherwise it uses a software
    /// event.
    pub hardware: bool,
    /// Encodings of the events, as perf would write them.
    pub events: Vec<String>,
    /// The checks and their results.
    pub checks: Vec<Check>,
    /// Findings of the runs about themselves, one sentence each.
    pub findings: Vec<String>,
}

impl ProbeResult {
    /// Returns whether this machine claims to support the preset.
    pub fn offered(&self) -> bool {
        self.checks.iter().any(|check| check.status != CheckStatus::NotOffered)
    }
}

impl SelfTestReport {
    fn new(diagnosis: Diagnosis, state: MachineState, results: Vec<ProbeResult>) -> Self {
        let producer = format!("precise {}", env!("CARGO_PKG_VERSION"));
        let mut report = Self { verdict: String::new(), producer, diagnosis, state, results };
        report.verdict = report.sentence();
        report
    }

    /// Returns the number of checks with this status.
    pub fn count(&self, status: CheckStatus) -> usize {
        self.results.iter().flat_map(|result| &result.checks).filter(|check| check.status == status).count()
    }

    /// Returns the class of the failure. `None` if everything that this machine offers was observed
    /// to work, or could not be decided.
    pub fn class(&self) -> Option<ExitClass> {
        if self.count(CheckStatus::Failed) > 0 {
            Some(ExitClass::Unmet)
        } else if !self.results.iter().any(|result| result.hardware && result.offered()) {
            Some(ExitClass::Unsupported)
        } else {
            None
        }
    }

    fn sentence(&self) -> String {
        let failed: Vec<&str> = self
            .results
            .iter()
            .filter(|result| result.checks.iter().any(|check| check.status == CheckStatus::Failed))
            .map(|result| result.preset)
            .collect();
        let (passed, undecided) = (self.count(CheckStatus::Passed), self.count(CheckStatus::NotDecided));
        let open = match undecided {
            0 => String::new(),
            n => format!(" {n} checks are undecided."),
        };
        match self.class() {
            Some(ExitClass::Unsupported) => format!(
                "This machine has no precise hardware samples, so none were tested. {passed} checks of \
                 software events passed.{open}"
            ),
            Some(_) => format!(
                "Precise sampling fails here: {} of {} checks failed ({}).{open}",
                self.count(CheckStatus::Failed),
                self.count(CheckStatus::Failed) + passed + undecided,
                failed.join(", ")
            ),
            None => format!("Precise sampling works here: {passed} checks passed.{open}"),
        }
    }
}
