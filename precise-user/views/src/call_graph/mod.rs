//! `precise report -g`: functions with the samples in them and in the functions that they called,
//! with their callers and callees.
//!
//! A function that calls others has two costs: of its own code, and including its callees:
//!
//! ```
//! use precise_model::testing::CaptureBuilder;
//! use precise_views::call_graph::{CallGraphOptions, call_graph};
//!
//! let mut made = CaptureBuilder::new();
//! let app = "/usr/bin/app";
//! made.cell().samples(70).code(0x1000, app, "copy", "", 0).callers(&["parse", "main"]);
//! made.cell().samples(30).code(0x2000, app, "parse", "", 0).callers(&["main"]);
//!
//! let graph = call_graph(&made.build(), &CallGraphOptions::default())?;
//!
//! let functions = graph.events[0].functions.iter();
//! let parse = functions.clone().find(|f| f.function.text() == "parse").expect("was sampled");
//! // 30 samples hit the code of `parse`; 70 more hit `copy` while `parse` waited for it.
//! assert_eq!((parse.exclusive.samples, parse.inclusive.samples), (30, 100));
//! // Every chain starts in `main`, but no sample hit its own code.
//! let main = functions.clone().find(|f| f.function.text() == "main").expect("is a caller");
//! assert_eq!((main.exclusive.samples, main.inclusive.samples), (0, 100));
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::CallGraphView;

use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{EventSummary, Run};
use super::again::Again;
use super::chains::{self, ChainFunction};
use super::grouping::{Grouping, Sum};
use super::stats::{MIN_SAMPLES, Samples, Share};
use super::{ViewError, needs, trust};
use precise_model::digits::counted;
use precise_model::keys::Sort;
use precise_model::values::Value;
use precise_model::{Capture, ChainEnd, CompactSort as _, Dimension, EventInfo, Name};

/// Options for `precise report -g`.
#[derive(Clone, Debug, PartialEq)]
pub struct CallGraphOptions {
    /// Name of the function whose callers and callees are shown. If no function has exactly this
    /// name, all functions whose names contain it. `None`: the functions with most samples of their
    /// own.
    pub function: Option<String>,
    /// Number of functions to keep in the table; `None` for all.
    pub limit: Option<usize>,
    /// Minimum number of samples of an event for a ranking.
    pub min_samples: u64,
}

impl Default for CallGraphOptions {
    fn default() -> Self {
        Self { function: None, limit: None, min_samples: MIN_SAMPLES }
    }
}

/// Number of functions whose callers and callees are shown if the user names none.
const HOTTEST: usize = 3;
/// Maximum number of callers, and of callees, kept per function.
const NEIGHBOURS: usize = 10;

/// The result of `precise report -g`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CallGraphReport {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// One entry per event.
    pub events: Vec<Calls>,
}

/// The functions of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Calls {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Number of samples of the event.
    pub samples: u64,
    /// Number of samples that a ranking needs. Present if there are fewer.
    pub too_few: Option<u64>,
    /// Functions, those with most inclusive samples first.
    pub functions: Vec<FunctionCost>,
    /// Number of functions that the limit left out.
    pub left_out: usize,
    /// Functions with their callers and callees.
    pub around: Vec<FunctionCalls>,
    /// How chains end, those with most samples first; empty if that is not known. The samples of
    /// all of them are those that have a chain.
    pub ends: Vec<Ends>,
    /// Numbers of samples without a call chain, by reason.
    pub without: Vec<(Value, u64)>,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// The samples of a function.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FunctionCost {
    /// Name of the function.
    pub function: Value,
    /// File of the function.
    pub module: Value,
    /// Samples in the function or in functions that it called. Each sample counts once, however
    /// often the function is in its chain.
    pub inclusive: SamplePart,
    /// Samples in the function itself.
    pub exclusive: SamplePart,
}

/// A part of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SamplePart {
    /// Number of samples.
    pub samples: u64,
    /// Fraction of the event's samples.
    pub share: Share,
    /// Fraction of the sum of all latencies; `None` if the samples have no latencies.
    pub latency_share: Option<Share>,
}

/// A function with its callers and callees.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FunctionCalls {
    /// The function.
    pub function: FunctionCost,
    /// Callers, those with most samples first. A caller without a name (`None`) means that the
    /// function was the outermost frame of the chain.
    pub callers: Vec<Neighbour>,
    /// Callees, those with most samples first. A callee without a name (`None`) stands for samples
    /// of the function itself.
    pub callees: Vec<Neighbour>,
}

/// A caller or a callee.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Neighbour {
    /// Name of the function. `None` as a caller: the outermost frame. `None` as a callee: samples
    /// of the function itself.
    pub function: Option<Value>,
    /// Number of samples whose chain contains this call. Each sample counts once, even if its chain
    /// contains the call several times.
    pub samples: u64,
    /// Fraction of the function's inclusive samples.
    pub share: Share,
}

/// The chains that end for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Ends {
    /// Why the outermost function has no caller.
    pub end: ChainEnd,
    /// Whether such a chain is whole: no caller is missing.
    pub whole: bool,
    /// File of the outermost function, if a caller is missing.
    pub module: Option<Value>,
    /// Number of samples.
    pub samples: u64,
    /// Fraction of the samples whose chains have a known end.
    pub share: Share,
}

/// Returns the call graph of a capture.
///
/// # Errors
///
/// Returns an error if the capture has no call chains. The message names the command that records
/// them.
pub fn call_graph(capture: &Capture, options: &CallGraphOptions) -> Result<CallGraphReport, ViewError> {
    has_chains(capture)?;
    let trust = trust::trust(capture);
    let events = capture.meta.events.iter().zip(trust.events).enumerate();
    let events = events
        .map(|(index, (info, trust))| calls(capture, options, index, info, EventSummary::of(info, trust)));
    Ok(CallGraphReport { run: Run::of(capture), events: events.collect() })
}

/// Returns whether the capture has call chains.
///
/// # Errors
///
/// Returns an error if it has none. The message names the command that records them.
pub fn has_chains(capture: &Capture) -> Result<(), ViewError> {
    if needs::has(capture, Dimension::Stack) {
        return Ok(());
    }
    let again = Again::import(capture, &[Dimension::Stack]).unwrap_or_else(|| {
        let events: Vec<_> = capture.meta.events.iter().map(|event| event.name.as_str()).collect();
        Again::record(capture, &events.join(","), &[]).with_chains()
    });
    Err(ViewError::NoChains { again })
}

/// Sums over the call chains of one event.
#[derive(Default)]
struct Sums {
    whole: Sum,
    inclusive: FxHashMap<ChainFunction, Sum>,
    exclusive: FxHashMap<ChainFunction, Sum>,
    /// Samples by caller and callee. The outermost function has no caller, the sampled one no
    /// callee.
    calls: FxHashMap<(Option<ChainFunction>, Option<ChainFunction>), Samples>,
    without: FxHashMap<precise_model::Reason, u64>,
    ends: FxHashMap<(ChainEnd, Option<Name>), Samples>,
    elsewhere: u64,
    cut: u64,
}

impl Sums {
    fn of(capture: &Capture, grouping: &Grouping) -> Self {
        let mut sums = Self::default();
        let weighing = grouping.weighing();
        let (mut functions, mut calls) = (FxHashSet::default(), FxHashSet::default());
        for row in grouping.rows() {
            let count = row.measures.count;
            let chain = chains::frames(capture, row.code, row.stack);
            sums.whole.add(row, weighing);
            if let Some(reason) = chain.missing {
                *sums.without.entry(reason).or_default() += count;
            }
            if let Some(end) = chain.end {
                let module = chain.functions.last().filter(|_| !end.is_whole()).map(|last| last.module);
                sums.ends.entry((end, module)).or_default().add(weighing.samples(row));
            }
            sums.elsewhere += if chain.elsewhere { count } else { 0 };
            // An end says why.
            sums.cut += if chain.cut && chain.end.is_none() { count } else { 0 };
            functions.clear();
            calls.clear();
            let mut callee = None;
            for function in chain.functions.iter().map(|function| function.itself()) {
                functions.insert(function);
                calls.insert((Some(function), callee));
                callee = Some(function);
            }
            if let (Some(outermost), None) = (callee, chain.missing) {
                calls.insert((None, Some(outermost)));
            }
            if let Some(leaf) = chain.functions.first() {
                sums.exclusive.entry(leaf.itself()).or_default().add(row, weighing);
            }
            for function in functions.drain() {
                sums.inclusive.entry(function).or_default().add(row, weighing);
            }
            for call in calls.drain() {
                sums.calls.entry(call).or_default().add(weighing.samples(row));
            }
        }
        sums
    }

    /// Returns how chains end.
    fn ends(&self, capture: &Capture) -> Vec<Ends> {
        let mut all = Samples::default();
        self.ends.values().for_each(|samples| all.add(*samples));
        let of = |(&(end, module), samples): (&(ChainEnd, Option<Name>), &Samples)| Ends {
            end,
            whole: end.is_whole(),
            module: module.map(|module| chains::value(capture, module)),
            samples: samples.count,
            share: samples.share_of(all),
        };
        let mut ends: Vec<_> = self.ends.iter().map(of).collect();
        ends.sort_by_cached_key(|ends| (ends.end, ends.module.as_ref().map(Value::text)));
        ends.compact_sort_by_key(|ends| std::cmp::Reverse(ends.samples));
        ends
    }
}

fn calls(
    capture: &Capture,
    options: &CallGraphOptions,
    index: usize,
    info: &EventInfo,
    event: EventSummary,
) -> Calls {
    let min_samples = options.min_samples;
    let grouping = Grouping { capture, event: index, by: &[], sort: Sort::Samples, limit: None, min_samples };
    let sums = Sums::of(capture, &grouping);
    let samples = sums.whole.samples.count;
    let too_few = (samples < min_samples).then_some(min_samples);
    let none = Sum::default();
    let cost = |sum: &Sum| {
        let group = sum.group(Vec::new(), &sums.whole, info.fields.latency);
        SamplePart { samples: group.measures.count, share: group.share, latency_share: group.latency_share }
    };
    let of = |function: ChainFunction| FunctionCost {
        function: function.value(capture),
        module: function.module_value(capture),
        inclusive: cost(sums.inclusive.get(&function).unwrap_or(&none)),
        exclusive: cost(sums.exclusive.get(&function).unwrap_or(&none)),
    };
    let mut all: Vec<(ChainFunction, FunctionCost)> = sums.inclusive.keys().map(|f| (*f, of(*f))).collect();
    let of = |sums: &FxHashMap<ChainFunction, Sum>, function: &ChainFunction| -> Samples {
        sums.get(function).map_or_else(Samples::default, |sum| sum.samples)
    };
    let own = |function: &ChainFunction| of(&sums.exclusive, function);
    let below = |function: &ChainFunction| of(&sums.inclusive, function);
    all.sort_by_cached_key(|(_, f)| (f.function.text(), f.module.text()));
    all.compact_sort_by(|(a, _), (b, _)| below(b).order(&below(a)).then(own(b).order(&own(a))));
    let wanted = focus(&all, options.function.as_deref(), own);
    let neighbours = |function: ChainFunction, callers: bool| {
        let mut found: Vec<_> = sums
            .calls
            .iter()
            .filter(|((caller, callee), _)| Some(function) == if callers { *callee } else { *caller })
            .map(|((caller, callee), samples)| {
                (if callers { *caller } else { *callee }.map(|f| f.value(capture)), *samples)
            })
            .collect();
        found.sort_by_cached_key(|(function, _)| function.as_ref().map(Value::text));
        found.compact_sort_by(|(_, a), (_, b)| b.order(a));
        found.truncate(NEIGHBOURS);
        let share = |samples: Samples| samples.share_of(below(&function));
        let neighbour = |(function, samples): (_, Samples)| Neighbour {
            function,
            samples: samples.count,
            share: share(samples),
        };
        found.into_iter().map(neighbour).collect::<Vec<_>>()
    };
    let around = wanted.iter().map(|(function, cost)| FunctionCalls {
        function: cost.clone(),
        callers: neighbours(*function, true),
        callees: neighbours(*function, false),
    });
    let around = if too_few.is_some() { Vec::new() } else { around.collect() };
    let kept = if too_few.is_some() { 0 } else { options.limit.unwrap_or(all.len()).min(all.len()) };
    let left_out = if too_few.is_some() { 0 } else { all.len() - kept };
    let mut without: Vec<_> = sums.without.iter().map(|(reason, n)| (Value::Unknown(*reason), *n)).collect();
    without.compact_sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    let notes = notes(&sums, &without, options, wanted.is_empty());
    let ends = sums.ends(capture);
    let functions = all.iter().take(kept).map(|(_, cost)| cost.clone()).collect();
    Calls { event, samples, too_few, functions, left_out, around, ends, without, notes }
}

/// Returns the functions whose callers and callees are shown.
fn focus<'a>(
    all: &'a [(ChainFunction, FunctionCost)],
    asked: Option<&str>,
    own: impl Fn(&ChainFunction) -> Samples,
) -> Vec<&'a (ChainFunction, FunctionCost)> {
    let Some(asked) = asked else {
        let mut hottest: Vec<_> = all.iter().filter(|(_, cost)| cost.exclusive.samples > 0).collect();
        hottest.compact_sort_by(|(a, _), (b, _)| own(b).order(&own(a)));
        hottest.truncate(HOTTEST);
        return hottest;
    };
    let named = |test: &dyn Fn(&str) -> bool| {
        all.iter().filter(|(_, cost)| test(&cost.function.text())).collect::<Vec<_>>()
    };
    let exact = named(&|name| name == asked);
    if exact.is_empty() { named(&|name| name.contains(asked)) } else { exact }
}

fn notes(sums: &Sums, without: &[(Value, u64)], options: &CallGraphOptions, nobody: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Some(asked), true) = (&options.function, nobody) {
        notes.push(format!("No function of this event matches `{asked}`."));
    }
    for (reason, samples) in without {
        let reason = reason.text();
        let reason = reason.trim_matches(['[', ']']);
        notes.push(format!(
            "Without a call chain ({reason}): {}, counted only for the sampled function.",
            counted(*samples, "sample")
        ));
    }
    if sums.elsewhere > 0 {
        notes.push(format!(
            "In {} the interrupt arrived in another function than the sampled instruction's. \
             precise assumes that this function had just been returned to, which may be wrong.",
            counted(sums.elsewhere, "sample")
        ));
    }
    if sums.cut > 0 {
        notes.push(format!(
            "The chain of {} is longer than the limit of {} frames: the outermost callers are missing.",
            counted(sums.cut, "sample"),
            precise_common::stack::MAX_FRAMES
        ));
    }
    notes
}
