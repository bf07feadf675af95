//! The code that the samples of a capture belong to: what the capture itself contains, and the
//! interface through which a view reads the rest.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::grouping::Sum;
use super::stats::{Percentile, Samples, Share};
use super::weighing::Weighing;
use precise_code::types::TypedCode;
use precise_code::{FunctionId, Instruction, SourceLine};
use precise_model::words::Served;
use precise_model::{Capture, CodeLocation, Name, NameId, Reason, Row};

/// Provides code that is not in the capture: from this machine, or from a test.
pub trait Code {
    /// Returns the instructions of a function, in the order of their addresses.
    ///
    /// # Errors
    ///
    /// Returns the reason if the instructions are not available.
    fn instructions(&mut self, function: &FunctionId) -> Result<Vec<Instruction>, Reason>;

    /// Returns a line of a source file; `line` starts at 1. `None` if it is not available.
    fn source(&mut self, file: &str, line: u32) -> Option<String>;

    /// Returns the types of the accesses of some instructions to memory. `wanted` are the distances
    /// of the instructions from the start of the function, in ascending order.
    ///
    /// # Errors
    ///
    /// Returns the reason if the code is not available, as it is for code without files.
    fn types(&mut self, _function: &FunctionId, _wanted: &[u64]) -> Result<TypedCode, Reason> {
        Err(Reason::FileMissing)
    }
}

/// No code at all, for views that do not ask for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCode;

impl Code for NoCode {
    fn instructions(&mut self, _function: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        Err(Reason::FileMissing)
    }

    fn source(&mut self, _file: &str, _line: u32) -> Option<String> {
        None
    }
}

/// The samples at one place in the code.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct Measured {
    /// Number of samples.
    pub samples: u64,
    /// Fraction of the whole that the containing field names, for example of the function's
    /// samples.
    pub share: Share,
    /// Average latency, in core cycles; `None` without latencies.
    pub average: Option<f64>,
    /// 99th percentile of the latency; `None` unless the capture has latency buckets and there are
    /// enough samples.
    pub p99: Option<Percentile>,
    /// The level that served most of the accesses; `None` if no level is known.
    pub level: Option<MostServed>,
}

/// The memory level that served most of the accesses.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MostServed {
    /// Name of the level, in perf's words.
    pub level: String,
    /// Fraction of the samples with a known level.
    pub share: Share,
}

/// Sums over the samples of some rows, with the levels that served them.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    pub sum: Sum,
    served: BTreeMap<Served, Samples>,
}

impl Tally {
    pub fn add(&mut self, row: &Row, weighing: Weighing) {
        self.sum.add(row, weighing);
        if let Some(served) = Served::of(row.data_source()) {
            self.served.entry(served).or_default().add(weighing.samples(row));
        }
    }

    pub fn samples(&self) -> Samples {
        self.sum.samples
    }

    pub fn measured(&self, whole: Samples, timed: bool) -> Measured {
        let known: Samples = self.served.values().copied().sum();
        let most = self.served.iter().max_by(|(_, a), (_, b)| a.order(b));
        Measured {
            samples: self.samples().count,
            share: self.samples().share_of(whole),
            average: self.sum.average().filter(|_| timed),
            p99: self.sum.percentile(0.99),
            level: most.map(|(served, samples)| MostServed {
                level: served.to_string(),
                share: samples.share_of(known),
            }),
        }
    }

    pub fn merge(&mut self, other: Self) {
        self.sum.merge(&other.sum);
        for (served, samples) in other.served {
            self.served.entry(served).or_default().add(samples);
        }
    }
}

/// The samples of one function.
#[derive(Default)]
pub(crate) struct Sampled {
    pub all: Tally,
    /// Samples by distance from the start of the function in bytes, with the frames that the
    /// capture knows.
    pub by_offset: BTreeMap<u64, (Tally, Vec<SourceLine>)>,
}

/// The code that the samples of one event belong to.
pub(crate) struct EventCode {
    /// All samples of the event.
    pub samples: Samples,
    pub functions: FxHashMap<FunctionId, Sampled>,
    /// Samples whose code belongs to no known function.
    pub nameless: Samples,
}

/// Returns the code that the samples of an event belong to. Only rows for which `keep` returns true
/// are included.
pub(crate) fn sampled(capture: &Capture, event: usize, keep: impl Fn(&Row) -> bool) -> EventCode {
    let weighing = Weighing::of(capture, event);
    let none = Samples::default();
    let mut all = EventCode { samples: none, functions: FxHashMap::default(), nameless: none };
    for row in capture.rows.iter().filter(|row| usize::from(row.event) == event && keep(row)) {
        let samples = weighing.samples(row);
        all.samples.add(samples);
        let location = row.code.and_then(|id| capture.code.get(id as usize));
        let Some((location, id)) = location.and_then(|l| Some((l, function_of(capture, l)?))) else {
            all.nameless.add(samples);
            continue;
        };
        let function = all.functions.entry(id).or_default();
        function.all.add(row, weighing);
        let (tally, frames) = function.by_offset.entry(location.function_offset).or_default();
        tally.add(row, weighing);
        if frames.is_empty() {
            *frames = frames_of(capture, location);
        }
    }
    all
}

/// Returns the function, not inlined, that contains a location; `None` if it has no name.
pub(crate) fn function_of(capture: &Capture, location: &CodeLocation) -> Option<FunctionId> {
    let text = |id: NameId| capture.names.get(id).to_owned();
    let name = match (location.inlined_into.last(), location.function) {
        (Some(frame), _) => text(frame.function),
        (None, Name::Known(id)) => text(id),
        (None, Name::Unknown(_)) => return None,
    };
    let at = if location.kernel { location.runtime_address } else { location.file_offset };
    Some(FunctionId {
        module: match location.module {
            Name::Known(id) => text(id),
            Name::Unknown(reason) => format!("[{}]", reason.words()),
        },
        build_id: text(location.build_id),
        name,
        start: at.wrapping_sub(location.function_offset),
        kernel: location.kernel,
    })
}

/// Returns the frames that the capture itself knows, innermost first.
fn frames_of(capture: &Capture, location: &CodeLocation) -> Vec<SourceLine> {
    let text = |id: NameId| capture.names.get(id).to_owned();
    let (Name::Known(source), Name::Known(function)) = (location.source, location.function) else {
        return Vec::new();
    };
    let place = |function, file, line| SourceLine { function: text(function), file: text(file), line };
    let innermost = place(function, source, location.line);
    let outer = location.inlined_into.iter().map(|f| place(f.function, f.source, f.line));
    std::iter::once(innermost).chain(outer).filter(|place| place.line > 0).collect()
}

/// Serializes a reason with the name that captures and JSON use for it.
pub(crate) fn reason<S: Serializer>(reason: &Option<Reason>, serializer: S) -> Result<S::Ok, S::Error> {
    reason.map(Reason::as_str).serialize(serializer)
}
