//! Folded stacks: each call chain once, from the outermost frame to the sampled one, with its
//! weight. What flame graphs are drawn of.

pub mod folded;
pub mod svg;
#[cfg(test)]
mod tests;
mod view;

pub use view::FlamegraphView;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::call_graph::has_chains;
use super::chains::{self, ChainFunction};
use super::{ViewError, about::Run, weighing::Weighing};
use precise_model::Preset;
use precise_model::values::Value;
use precise_model::{Capture, Name};

/// What a frame's width stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Samples.
    #[default]
    Samples,
    /// Events that the samples stand for: instead of samples, where the governor changed the
    /// period.
    Events,
    /// Sum of latencies, core cycles: where the time was waited.
    Latency,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FlameOptions {
    /// What the widths are.
    pub weight: Weight,
    /// The event; `None`: the first one with samples.
    pub event: Option<String>,
    /// Where the run took no call chains, take the sampled function, with what it is inlined into,
    /// for a whole chain.
    pub leaf_only: bool,
}

/// The call chains of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Flame {
    /// Where the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// The event.
    pub event: String,
    /// What the weights are.
    pub by: Weight,
    /// Whether the samples were precise.
    pub precise: bool,
    /// Whether the run took call chains; where it did not, a stack is the sampled function.
    pub has_chains: bool,
    /// Sum of all weights.
    pub total: u64,
    /// Samples.
    pub samples: u64,
    /// In the order of their frames.
    pub stacks: Vec<Folded>,
}

/// One call chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Folded {
    /// The process, then functions from the outermost to the sampled one. A function of the kernel
    /// ends in `_[k]`, one of a JIT in `_[j]`, one that is inlined in `_[i]`: the marks that flame
    /// graphs are coloured by.
    pub frames: Vec<String>,
    /// Its weight.
    pub weight: u64,
}

/// The folded stacks of a capture.
///
/// # Errors
///
/// When the capture has no call chains, no such event, or no latencies where those are asked for.
pub fn flame(capture: &Capture, options: &FlameOptions) -> Result<Flame, ViewError> {
    let chains = has_chains(capture);
    let has_chains = chains.is_ok();
    if !options.leaf_only {
        chains?;
    }
    let (index, info) = super::event_of(capture, options.event.as_deref())?;
    if options.weight == Weight::Latency && !info.fields.latency {
        return Err(ViewError::NoSuchSamples {
            view: "a flame graph by latency".to_owned(),
            what: "the latency".to_owned(),
            events: info.name.clone(),
            preset: Preset::Loads.name(),
            by: " -g".to_owned(),
        });
    }
    let by = match options.weight {
        Weight::Samples if info.governed() => Weight::Events,
        by => by,
    };
    let weighing = Weighing::of(capture, index);
    let mut folded: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    let (mut total, mut samples) = (0u64, 0u64);
    for row in capture.rows.iter().filter(|row| usize::from(row.event) == index) {
        let weight = match by {
            Weight::Samples => row.measures.count,
            Weight::Events => row.measures.period_sum,
            Weight::Latency => weighing.latency(row).sum.round() as u64,
        };
        samples = samples.saturating_add(row.measures.count);
        if weight == 0 {
            continue;
        }
        total = total.saturating_add(weight);
        let chain = chains::frames(capture, row);
        let mut frames = vec![process(capture, row.process)];
        if let Some(reason) = chain.missing.filter(|_| has_chains) {
            frames.push(format!("[no call chain: {}]", reason.words()));
        }
        if chain.cut {
            frames.push("[chain cut off]".to_owned());
        }
        frames.extend(chain.functions.iter().rev().map(|function| label(capture, *function)));
        let sum = folded.entry(frames).or_default();
        *sum = sum.saturating_add(weight);
    }
    let stacks = folded.into_iter().map(|(frames, weight)| Folded { frames, weight }).collect();
    let (event, precise) = (info.name.clone(), info.verdict.precise);
    Ok(Flame { run: Run::of(capture), event, by, precise, has_chains, total, samples, stacks })
}

fn process(capture: &Capture, name: Name) -> String {
    match name {
        Name::Known(id) => clean(capture.names.get(id)),
        Name::Unknown(reason) => format!("[{}]", reason.words()),
    }
}

fn label(capture: &Capture, function: ChainFunction) -> String {
    let module = function.module_value(capture).text();
    let name = match function.value(capture) {
        Value::Text(name) => clean(&name),
        // The file is the most that is known.
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

/// Frames are separated by semicolons, and stacks by lines.
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
