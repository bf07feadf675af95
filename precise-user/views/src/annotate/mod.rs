//! Which line, which instruction: the code of the hottest functions, with what was sampled beside
//! each.

pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::AnnotateView;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::about::{Event, Run};
use super::code::{Code, EventCode, Measured, Sampled, Tally};
use super::needs::Needs;
use super::stats::{MIN_SAMPLES, Samples};
use super::{ViewError, code, trust};
use precise_code::{FunctionId, Instruction, SourceLine};
use precise_model::{Capture, Reason};

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotateOptions {
    /// Functions by name, or by a part of it; empty for the hottest.
    pub functions: Vec<String>,
    /// Functions to show of each event.
    pub limit: usize,
    /// Samples of a function below which nothing is told apart.
    pub min_samples: u64,
}

impl Default for AnnotateOptions {
    fn default() -> Self {
        Self { functions: Vec::new(), limit: 3, min_samples: MIN_SAMPLES }
    }
}

/// Annotated code.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Annotation {
    /// Where the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// One per event.
    pub events: Vec<AnnotatedEvent>,
}

/// The functions of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnnotatedEvent {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// Samples of it.
    pub samples: u64,
    /// The hottest functions, or those that were asked for.
    pub functions: Vec<Function>,
    /// Functions that were asked for, or would come next, and are not shown.
    pub left_out: usize,
    /// Samples in code of which no function is known: in no listing.
    pub nameless: u64,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its file, as the process saw it; `[kernel]`, or a kernel module.
    pub module: String,
    /// Build id of the file; empty when it has none.
    pub build_id: String,
    /// What was sampled in it; its share is that of the event's samples.
    #[serde(flatten)]
    pub measured: Measured,
    /// Samples that are needed to tell lines apart; present when there are fewer.
    pub too_few: Option<u64>,
    /// Why there is no disassembly; the instructions are then those that were sampled.
    #[serde(serialize_with = "code::reason")]
    #[schemars(with = "Option<Reason>")]
    pub no_code: Option<Reason>,
    /// Instructions in the order of their addresses.
    pub instructions: Vec<Listed>,
    /// Lines of source, the hottest first.
    pub lines: Vec<Line>,
}

/// An instruction of a listing.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Listed {
    /// Distance from the start of the function, bytes.
    pub offset: u64,
    /// Disassembly; empty where the code cannot be read.
    pub text: String,
    /// Innermost first; empty where there is no line information.
    pub frames: Vec<SourceLine>,
    /// Text of the innermost line, where the source is here.
    pub source: Option<String>,
    /// What was sampled at it.
    #[serde(flatten)]
    pub measured: Measured,
}

/// A line of source, with all its instructions in the function.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Line {
    /// Where; `None` for instructions without line information.
    pub place: Option<SourceLine>,
    /// Its text, where the source is here.
    pub source: Option<String>,
    /// What was sampled at it.
    #[serde(flatten)]
    pub measured: Measured,
}

/// The code of the hottest functions of a capture.
///
/// # Errors
///
/// When the capture has no instruction addresses: the sentence names the command that records them.
pub fn annotate(
    capture: &Capture,
    options: &AnnotateOptions,
    code: &mut dyn Code,
) -> Result<Annotation, ViewError> {
    Needs::of::<AnnotateView>().check(capture)?;
    let trust = trust::trust(capture);
    let events = capture.meta.events.iter().zip(trust.events).enumerate();
    let events = events.map(|(index, (info, trust))| {
        let event = Event::of(info, trust);
        annotate_event(capture, options, index, event, code)
    });
    Ok(Annotation { run: Run::of(capture), events: events.collect() })
}

fn annotate_event(
    capture: &Capture,
    options: &AnnotateOptions,
    index: usize,
    event: Event,
    files: &mut dyn Code,
) -> AnnotatedEvent {
    let EventCode { samples, functions: found, nameless } = code::sampled(capture, index, |_| true);
    let wanted = |id: &FunctionId| {
        options.functions.is_empty() || options.functions.iter().any(|name| id.name.contains(name.as_str()))
    };
    let mut found: Vec<_> = found.into_iter().filter(|(id, _)| wanted(id)).collect();
    found
        .sort_by(|(id_a, a), (id_b, b)| b.all.samples().order(&a.all.samples()).then_with(|| id_a.cmp(id_b)));
    let left_out = found.len().saturating_sub(options.limit);
    let timed = event.has_latency;
    let functions = found.into_iter().take(options.limit).map(|(id, sampled)| {
        let files = &mut *files;
        function(id, sampled, samples, timed, options.min_samples, files)
    });
    AnnotatedEvent {
        functions: functions.collect(),
        event,
        samples: samples.count,
        left_out,
        nameless: nameless.count,
    }
}

fn function(
    id: FunctionId,
    sampled: Sampled,
    event_samples: Samples,
    timed: bool,
    min_samples: u64,
    code: &mut dyn Code,
) -> Function {
    let Sampled { all, mut by_offset } = sampled;
    let whole = all.samples();
    let (listing, no_code) = match code.instructions(&id) {
        Ok(listing) => (listing, None),
        Err(reason) => (Vec::new(), Some(reason)),
    };
    let mut lines: BTreeMap<Option<SourceLine>, Tally> = BTreeMap::new();
    let mut instructions: Vec<Listed> = Vec::new();
    let mut list = |offset, text, frames: Vec<SourceLine>, tally: Option<Tally>, code: &mut dyn Code| {
        let place = frames.first();
        let source = place.and_then(|place| code.source(&place.file, place.line));
        let measured = tally.as_ref().map(|tally| tally.measured(whole, timed)).unwrap_or_default();
        if let Some(tally) = tally {
            lines.entry(place.cloned()).or_default().merge(tally);
        }
        instructions.push(Listed { offset, text, frames, source, measured });
    };
    for Instruction { offset, text, frames, .. } in listing {
        let sampled = by_offset.remove(&offset);
        let (tally, recorded) = sampled.unzip();
        let frames = if frames.is_empty() { recorded.unwrap_or_default() } else { frames };
        list(offset, text, frames, tally, code);
    }
    // Without code all of them; with it, what lies between two instructions: a sample that is not
    // precise never does.
    for (offset, (tally, frames)) in by_offset {
        list(offset, String::new(), frames, Some(tally), code);
    }
    instructions.sort_by_key(|listed| listed.offset);
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by(|(_, a), (_, b)| b.samples().order(&a.samples()));
    let lines = lines
        .into_iter()
        .map(|(place, tally)| {
            let source = place.as_ref().and_then(|place| code.source(&place.file, place.line));
            Line { source, measured: tally.measured(whole, timed), place }
        })
        .collect();
    let FunctionId { module, build_id, name, .. } = id;
    Function {
        name,
        module,
        build_id,
        measured: all.measured(event_samples, timed),
        too_few: (whole.count < min_samples).then_some(min_samples),
        no_code,
        instructions,
        lines,
    }
}
