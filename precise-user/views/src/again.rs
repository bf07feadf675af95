//! The command that makes a capture with what another one lacks: a run of `precise record`, or, for
//! an imported capture, another import of the same file or a run of perf.

use std::fmt;

use precise_model::text::quoted;
use precise_model::{Capture, Dimension, PmuKind, Vendor};
use serde::{Serialize, Serializer};

/// A command that makes a capture with what this one lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// A run of `precise record`.
    Record(String),
    /// Another import of the recording, which has it.
    Import(String),
    /// A run of perf on the recorded machine, whose file can be imported.
    Perf(String),
}

impl Again {
    /// Returns the command that records `events` grouped by `dimensions`. Without dimensions, the
    /// default ones suffice.
    pub fn record(capture: &Capture, events: &str, dimensions: &[Dimension]) -> Self {
        if capture.meta.origin.is_some() {
            return Self::Perf(perf(capture, events, dimensions));
        }
        let by = if dimensions.is_empty() { String::new() } else { format!(" --by {}", list(dimensions)) };
        Self::Record(format!("precise record -e {events}{by}"))
    }

    /// Returns the import that groups by `needed` in addition to what the capture is grouped by.
    /// `None` if the capture was not imported, or if the recording does not have `needed`.
    pub fn import(capture: &Capture, needed: &[Dimension]) -> Option<Self> {
        let origin = capture.meta.origin.as_ref()?;
        let has = |d: &Dimension| origin.dimensions.contains(d);
        // An op of IBS has a data source or an outcome: a sample holds one of them.
        let outcome = needed.contains(&Dimension::Outcome);
        let either = outcome && capture.meta.events.iter().any(|event| event.pmu == PmuKind::IbsOp);
        let left_out = |d: &Dimension| either && *d == Dimension::Source;
        if !needed.iter().all(|d| has(d) && !left_out(d)) {
            return None;
        }
        let recorded = |d: &Dimension| capture.meta.dimensions.contains(d);
        let by = Dimension::ALL.into_iter().filter(|d| has(d) && !left_out(d));
        let by: Vec<_> = by.filter(|d| needed.contains(d) || recorded(d)).collect();
        let file = match origin.file.as_str() {
            "" => "FILE".to_owned(),
            file => quoted(file),
        };
        Some(Self::Import(format!("precise import {file} --by {}", list(&by))))
    }

    /// Adds call chains to a recording.
    #[must_use]
    pub fn with_chains(self) -> Self {
        match self {
            Self::Record(command) => Self::Record(command.replacen(" record ", " record -g ", 1)),
            Self::Perf(command) => Self::Perf(command + " -g"),
            import @ Self::Import(_) => import,
        }
    }

    /// Returns what the command does, to be written before it.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Record(_) | Self::Perf(_) => "Record",
            Self::Import(_) => "Import again",
        }
    }

    /// Returns the command.
    pub fn command(&self) -> &str {
        match self {
            Self::Record(command) | Self::Import(command) | Self::Perf(command) => command,
        }
    }
}

/// The advice as a sentence.
impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(command) => write!(f, "Record with `{command}`."),
            Self::Import(command) => write!(f, "Import the recording again: `{command}`."),
            Self::Perf(command) => write!(f, "Record with `{command}`, and import that."),
        }
    }
}

/// The command, as a string.
impl Serialize for Again {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.command())
    }
}

/// Returns perf's command for presets or events, with the flags that add dimensions.
fn perf(capture: &Capture, events: &str, dimensions: &[Dimension]) -> String {
    let intel = capture.meta.machine.cpu_id.as_ref().is_some_and(|id| id.vendor == Vendor::Intel);
    let mut command = match (events, intel) {
        ("mem", _) => "perf mem record".to_owned(),
        ("loads", _) => "perf mem -t load record".to_owned(),
        ("c2c", _) => "perf c2c record".to_owned(),
        ("skid", _) => "perf record -e cycles:P,cycles".to_owned(),
        ("branches", _) => "perf record -b".to_owned(),
        ("fetch", true) => "perf record -e frontend_retired.latency_ge_16:P".to_owned(),
        ("fetch", false) => "perf record -R -e ibs_fetch//".to_owned(),
        ("fetch,ops", _) => "perf record -R -e ibs_fetch//,ibs_op/cnt_ctl=1/".to_owned(),
        ("", _) => "perf record".to_owned(),
        (events, _) => format!("perf record -e {}", quoted(events)),
    };
    for dimension in dimensions {
        command += match dimension {
            Dimension::Cpu => " --sample-cpu",
            Dimension::Cgroup => " --all-cgroups",
            Dimension::Stack => " -g",
            Dimension::PageSize => " -d --data-page-size",
            Dimension::Ip
            | Dimension::Address
            | Dimension::Process
            | Dimension::Thread
            | Dimension::Source
            | Dimension::Latency
            | Dimension::Outcome => "",
        };
    }
    command
}

fn list(dimensions: &[Dimension]) -> String {
    dimensions.iter().map(|d| d.as_str()).collect::<Vec<_>>().join(",")
}
