//! Whether precise sampling works on this machine: work whose samples are known, sampled by the
//! same path as any run (preset, events, program, table, capture), and judged by what must come
//! out.
//!
//! * [`task`]: what to do, and where its samples must lie.
//! * [`worker`]: does it, in a process of its own; `code` is its machine code.
//! * `run`: samples it.
//! * [`evidence`]: what a capture says of it, as numbers.
//! * [`judge`]: numbers to checks. Pure, as `evidence` is.
//!
//! A check that passes was seen to hold. What could not be seen is
//! [`NotDecided`](precise_sampling::doctor::Status::NotDecided), with the reason, and never a pass.

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

use crate::error::Class;
use precise_sampling::doctor::{Check, Diagnosis, State, Status};

pub use probe::{PROBES, Probe};
pub use run::run;

/// Everything that a self-test found: what a person sends back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// One sentence.
    pub verdict: String,
    /// Version of `precise`.
    pub producer: String,
    /// The machine, before anything was sampled.
    pub diagnosis: Diagnosis,
    /// What the diagnosis was made of.
    pub state: State,
    /// What was sampled.
    pub results: Vec<ProbeResult>,
}

/// What came of one question.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProbeResult {
    /// The preset.
    pub preset: &'static str,
    /// What ran, in a few words.
    pub work: &'static str,
    /// Whether it takes precise samples of the hardware; else it is a software event.
    pub hardware: bool,
    /// Encodings of the events, as perf would write them.
    pub events: Vec<String>,
    /// What was checked.
    pub checks: Vec<Check>,
    /// What the runs said of themselves.
    pub findings: Vec<String>,
}

impl ProbeResult {
    /// Whether this machine claims to have the preset.
    pub fn offered(&self) -> bool {
        self.checks.iter().any(|check| check.status != Status::NotOffered)
    }
}

impl Report {
    fn new(diagnosis: Diagnosis, state: State, results: Vec<ProbeResult>) -> Self {
        let producer = format!("precise {}", env!("CARGO_PKG_VERSION"));
        let mut report = Self { verdict: String::new(), producer, diagnosis, state, results };
        report.verdict = report.sentence();
        report
    }

    /// Checks with this status.
    pub fn count(&self, status: Status) -> usize {
        self.results.iter().flat_map(|result| &result.checks).filter(|check| check.status == status).count()
    }

    /// What kind of failure this is; `None` when all that this machine offers was seen to work, or
    /// could not be decided.
    pub fn class(&self) -> Option<Class> {
        if self.count(Status::Failed) > 0 {
            Some(Class::Unmet)
        } else if !self.results.iter().any(|result| result.hardware && result.offered()) {
            Some(Class::Unsupported)
        } else {
            None
        }
    }

    fn sentence(&self) -> String {
        let failed: Vec<&str> = self
            .results
            .iter()
            .filter(|result| result.checks.iter().any(|check| check.status == Status::Failed))
            .map(|result| result.preset)
            .collect();
        let (passed, undecided) = (self.count(Status::Passed), self.count(Status::NotDecided));
        let open = match undecided {
            0 => String::new(),
            n => format!(" {n} checks are undecided."),
        };
        match self.class() {
            Some(Class::Unsupported) => format!(
                "This machine has no precise hardware samples, so none were tested. {passed} checks of \
                 software events passed.{open}"
            ),
            Some(_) => format!(
                "Precise sampling fails here: {} of {} checks failed ({}).{open}",
                self.count(Status::Failed),
                self.count(Status::Failed) + passed + undecided,
                failed.join(", ")
            ),
            None => format!("Precise sampling works here: {passed} checks passed.{open}"),
        }
    }
}
