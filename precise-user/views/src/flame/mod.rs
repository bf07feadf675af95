//! `precise flamegraph`: folded stacks. Each call chain appears once, from the outermost frame to
//! the sampled one, with its weight. Flame graphs are drawn from them.
//!
//! Each chain of calls becomes one line: the process, then the functions from the outermost one to
//! the sampled one. A flame graph draws each line as a stack, as wide as its weight:
//!
//! ```
//! use precise_model::testing::CaptureBuilder;
//! use precise_views::flame::{FlameOptions, FrameWidth, flame, folded::folded};
//!
//! let mut made = CaptureBuilder::new();
//! let cell = made.cell().samples(90).latency(5).process(7, "app");
//! cell.code(0x1000, "/bin/app", "sum", "", 0).callers(&["main"]);
//! let cell = made.cell().samples(10).latency(300).process(7, "app");
//! cell.code(0x2000, "/bin/app", "walk", "", 0).callers(&["main"]);
//! let capture = made.build();
//!
//! let by_samples = flame(&capture, &FlameOptions::default())?;
//! assert_eq!(folded(&by_samples), "app;main;sum 90\napp;main;walk 10\n");
//!
//! // By latency, `walk` is wider: 10 samples of 300 cycles, against 90 samples of 5 cycles.
//! let options = FlameOptions { weight: FrameWidth::Latency, ..FlameOptions::default() };
//! assert_eq!(folded(&flame(&capture, &options)?), "app;main;sum 450\napp;main;walk 3000\n");
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod folded;
pub mod svg;
#[cfg(test)]
mod tests;
mod view;

pub use view::FlamegraphView;

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::again::Again;
use super::call_graph::has_chains;
use super::chains::{self, ChainFunction};
use super::{ViewError, about::Run, weighing::Weighing};
use precise_model::Preset;
use precise_model::values::Value;
use precise_model::{Capture, Chain, Interner, LocationId, Name, Reason};

/// The measure that the width of a frame shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FrameWidth {
    /// Number of samples.
    #[default]
    Samples,
    /// Number of events that the samples stand for. Used instead of samples if the governor changed
    /// the period.
    Events,
    /// Sum of latencies in core cycles: shows where time is spent waiting.
    Latency,
}

/// Options for `precise flamegraph`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FlameOptions {
    /// The measure that widths show.
    pub weight: FrameWidth,
    /// Name of the event; `None` for the first event with samples.
    pub event: Option<String>,
    /// If the run did not record call chains: use the sampled function, with the functions that it
    /// is inlined into, as the chain.
    pub leaf_only: bool,
}

/// The call chains of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Flame {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// Name of the event.
    pub event: String,
    /// The measure of the weights.
    pub by: FrameWidth,
    /// Whether the samples were precise.
    pub precise: bool,
    /// Whether the run recorded call chains. If not, each stack is only the sampled function.
    pub has_chains: bool,
    /// Sum of all weights.
    pub total: u64,
    /// Weights of the chains that end too early: for a reason other than the outermost function; at
    /// an address in no file, where the kernel lost its way because code has no frame pointers; or
    /// before they began.
    pub broken: u64,
    /// Number of samples.
    pub samples: u64,
    /// The stacks, in the order of their frames.
    pub stacks: Vec<Folded>,
}

/// One call chain with its weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Folded {
    /// The process, then the functions from the outermost to the sampled one. The suffix `_[k]`
    /// marks kernel functions, `_[j]` JIT-compiled functions, and `_[i]` inlined functions; flame
    /// graphs choose colours by these marks.
    pub frames: Vec<String>,
    /// Weight of the chain, in the unit of `by`.
    pub weight: u64,
}

/// The process, the sampled instruction and its callers: what the stack of a row is made of.
type RowChain = (Name, Option<LocationId>, Chain);

/// Returns the folded stacks of a capture.
///
/// # Errors
///
/// Returns an error if the capture has no call chains, no event of the requested name, or no
/// latencies and these are requested.
pub fn flame(capture: &Capture, options: &FlameOptions) -> Result<Flame, ViewError> {
    let chains = has_chains(capture);
    let has_chains = chains.is_ok();
    if !options.leaf_only {
        chains?;
    }
    let (index, info) = super::event_of(capture, options.event.as_deref())?;
    if options.weight == FrameWidth::Latency && !info.fields.latency {
        return Err(ViewError::NoSuchSamples {
            view: "a flame graph by latency".to_owned(),
            what: "the latency".to_owned(),
            events: info.name.clone(),
            again: Again::record(capture, Preset::Loads.name(), &[]).with_chains(),
        });
    }
    let by = match options.weight {
        FrameWidth::Samples if info.governed() => FrameWidth::Events,
        by => by,
    };
    let weighing = Weighing::of(capture, index);
    // Rows differ in more than their chains: in their epochs, if in nothing else.
    let mut weights: FxHashMap<RowChain, u64> = FxHashMap::default();
    let (mut total, mut samples, mut broken) = (0u64, 0u64, 0u64);
    for row in capture.rows.iter().filter(|row| usize::from(row.event) == index) {
        let weight = match by {
            FrameWidth::Samples => row.measures.count,
            FrameWidth::Events => row.measures.period_sum,
            FrameWidth::Latency => weighing.latency(row).sum.round() as u64,
        };
        samples = samples.saturating_add(row.measures.count);
        if weight != 0 {
            total = total.saturating_add(weight);
            let sum = weights.entry((row.process, row.code, row.stack)).or_default();
            *sum = sum.saturating_add(weight);
        }
    }
    let mut labels = Labels::default();
    // Many chains become the same stack. Numbers of labels are compared faster than labels.
    let mut numbered: FxHashMap<Vec<u32>, u64> = FxHashMap::default();
    let mut frames = Vec::new();
    for ((process, code, stack), weight) in weights {
        let chain = chains::frames(capture, code, stack);
        let lost = |last: &ChainFunction| !last.kernel && last.module == Name::Unknown(Reason::Unmapped);
        let ends_early = chain.end.filter(|end| !end.is_whole());
        let is_broken = chain.missing.is_some()
            || chain.cut
            || ends_early.is_some()
            || chain.functions.last().is_some_and(lost);
        if has_chains && is_broken {
            broken = broken.saturating_add(weight);
        }
        frames.clear();
        frames.push(labels.number(called(capture, process)));
        if let Some(reason) = chain.missing.filter(|_| has_chains) {
            frames.push(labels.number(format!("[no call chain: {}]", reason.words())));
        }
        match ends_early {
            Some(end) => frames.push(labels.number(format!("[chain ends: {}]", end.words()))),
            None if chain.cut => frames.push(labels.number("[chain cut off]".to_owned())),
            None => {}
        }
        frames.extend(chain.functions.iter().rev().map(|function| labels.of(capture, *function)));
        match numbered.get_mut(&frames) {
            Some(sum) => *sum = sum.saturating_add(weight),
            None => {
                numbered.insert(frames.clone(), weight);
            }
        }
    }
    let spelled = |number: &u32| labels.texts.get(*number as usize).cloned().unwrap_or_default();
    let stack =
        |(frames, weight): (Vec<u32>, u64)| Folded { frames: frames.iter().map(spelled).collect(), weight };
    let mut stacks: Vec<Folded> = numbered.into_iter().map(stack).collect();
    stacks.sort_unstable_by(|a, b| a.frames.cmp(&b.frames));
    let (event, precise) = (info.name.clone(), info.verdict.precise);
    Ok(Flame { run: Run::of(capture), event, by, precise, has_chains, total, broken, samples, stacks })
}

/// The labels of frames, each once.
#[derive(Default)]
struct Labels {
    texts: Vec<String>,
    numbers: Interner,
    functions: FxHashMap<ChainFunction, u32>,
}

impl Labels {
    /// Returns the number of a label.
    fn number(&mut self, text: String) -> u32 {
        self.numbers.intern(&mut self.texts, text)
    }

    /// Returns the number of a function's label.
    fn of(&mut self, capture: &Capture, function: ChainFunction) -> u32 {
        if let Some(number) = self.functions.get(&function) {
            return *number;
        }
        let number = self.number(label(capture, function));
        self.functions.insert(function, number);
        number
    }
}

fn called(capture: &Capture, name: Name) -> String {
    match name {
        Name::Known(id) => clean(capture.names.get(id)),
        Name::Unknown(reason) => format!("[{}]", reason.words()),
    }
}

fn label(capture: &Capture, function: ChainFunction) -> String {
    let module = function.module_value(capture).text();
    let name = match function.value(capture) {
        Value::Text(name) => clean(&name),
        // Without a symbol, the file is the most that is known.
        other if matches!(function.module, Name::Unknown(_)) => other.text(),
        other => format!("{} {}", clean(module.rsplit('/').next().unwrap_or_default()), other.text()),
    };
    let mark = match function {
        ChainFunction { inlined: true, .. } => "_[i]",
        ChainFunction { kernel: true, .. } => "_[k]",
        _ if module == "[jit]" => "_[j]",
        _ => "",
    };
    name + mark
}

/// Replaces the separators of the format: frames are separated by semicolons, stacks by newlines.
fn clean(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c == ';' {
                ':'
            } else if c.is_control() {
                ' '
            } else {
                c
            }
        })
        .collect()
}
