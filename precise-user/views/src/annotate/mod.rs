//! `precise annotate`: the code of the hottest functions, with the samples of each instruction and
//! source line.
//!
//! The samples of a function are counted at their instructions and at their source lines:
//!
//! ```
//! # struct NoCode;
//! # impl precise_views::code::Code for NoCode {
//! #     fn instructions(
//! #         &mut self,
//! #         _: &precise_code::FunctionId,
//! #     ) -> Result<Vec<precise_code::Instruction>, precise_model::Reason> {
//! #         Err(precise_model::Reason::FileMissing)
//! #     }
//! #     fn source(&mut self, _: &str, _: u32) -> Option<String> {
//! #         None
//! #     }
//! # }
//! use precise_model::{Reason, testing::CaptureBuilder};
//! use precise_views::annotate::{AnnotateOptions, annotate};
//!
//! let mut made = CaptureBuilder::new();
//! made.cell().samples(60).latency(40).code(0x1004, "/bin/app", "sum", "/src/app.c", 11);
//! made.cell().samples(30).latency(400).code(0x1008, "/bin/app", "sum", "/src/app.c", 11);
//! made.cell().samples(10).latency(40).code(0x100c, "/bin/app", "sum", "/src/app.c", 12);
//!
//! // `NoCode` implements `Code` without files. The listing then has only the sampled instructions.
//! let result = annotate(&made.build(), &AnnotateOptions::default(), &mut NoCode)?;
//!
//! let sum = &result.events[0].functions[0];
//! assert_eq!((&*sum.name, sum.no_code), ("sum", Some(Reason::FileMissing)));
//! let samples: Vec<_> = sum.instructions.iter().map(|i| (i.offset, i.measured.samples)).collect();
//! assert_eq!(samples, [(4, 60), (8, 30), (12, 10)]);
//! // Two of the instructions belong to line 11: together they have 90 % of the function's samples,
//! // and take 160 cycles on average.
//! let line = &sum.lines[0];
//! assert_eq!(line.place.as_ref().map(|place| place.line), Some(11));
//! assert_eq!((line.measured.share.value, line.measured.average), (0.90, Some(160.0)));
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
mod page;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::AnnotateView;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{EventSummary, Run};
use super::code::{Code, EventCode, PlaceSamples, SampledFunction, Tally};
use super::needs::Needs;
use super::stats::{MIN_SAMPLES, Samples};
use super::typing::AccessedField;
use super::{ViewError, code, trust};
use precise_code::{FunctionId, Instruction, SourceLine};
use precise_model::{Capture, CompactSort as _, Reason};

/// Options for `precise annotate`.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotateOptions {
    /// Functions to show, by name or by a part of the name; empty for the hottest ones.
    pub functions: Vec<String>,
    /// Number of functions to show of each event.
    pub limit: usize,
    /// Minimum number of samples of a function. With fewer, its lines are not told apart.
    pub min_samples: u64,
}

impl Default for AnnotateOptions {
    fn default() -> Self {
        Self { functions: Vec::new(), limit: 3, min_samples: MIN_SAMPLES }
    }
}

/// The result of `precise annotate`: annotated code.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Annotation {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// One entry per event.
    pub events: Vec<AnnotatedEvent>,
}

/// The annotated functions of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnnotatedEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Number of samples of the event.
    pub samples: u64,
    /// The requested functions, or else the hottest ones.
    pub functions: Vec<AnnotatedFunction>,
    /// Number of further functions that match, or come next in order, and are not shown.
    pub left_out: usize,
    /// Number of samples whose code belongs to no known function. They are in no listing.
    pub nameless: u64,
}

/// An annotated function.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnnotatedFunction {
    /// Name of the function.
    pub name: String,
    /// File of the function, as the process saw it; `[kernel]`, or the name of a kernel module.
    pub module: String,
    /// Build id of the file; empty if it has none.
    pub build_id: String,
    /// The samples in the function. The share is relative to all samples of the event.
    #[serde(flatten)]
    pub measured: PlaceSamples,
    /// Number of samples that are needed to tell lines apart. Present if the function has fewer.
    pub too_few: Option<u64>,
    /// Why there is no disassembly. The list then contains only the instructions that were sampled.
    #[serde(serialize_with = "code::reason")]
    #[schemars(with = "Option<Reason>")]
    pub no_code: Option<Reason>,
    /// Instructions, in the order of their addresses.
    pub instructions: Vec<ListedInstruction>,
    /// Source lines, the hottest first.
    pub lines: Vec<AnnotatedLine>,
}

/// An instruction in a listing.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ListedInstruction {
    /// Distance from the start of the function, in bytes.
    pub offset: u64,
    /// Disassembly; empty if the code cannot be read.
    pub text: String,
    /// Source positions, innermost inlined frame first; empty without line information.
    pub frames: Vec<SourceLine>,
    /// Text of the innermost source line, if the source file is available.
    pub source: Option<String>,
    /// The field of the object that the instruction accesses; `None` if it accesses no memory, or
    /// if the type is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<AccessedField>,
    /// The samples at this instruction.
    #[serde(flatten)]
    pub measured: PlaceSamples,
}

/// A source line, with all instructions of the function that belong to it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnnotatedLine {
    /// File and line; `None` for instructions without line information.
    pub place: Option<SourceLine>,
    /// Text of the line, if the source file is available.
    pub source: Option<String>,
    /// The samples at this line.
    #[serde(flatten)]
    pub measured: PlaceSamples,
}

/// Annotates the code of the hottest functions of a capture.
///
/// # Errors
///
/// Returns an error if the capture has no instruction addresses. The message names the command that
/// records them.
pub fn annotate(
    capture: &Capture,
    options: &AnnotateOptions,
    code: &mut dyn Code,
) -> Result<Annotation, ViewError> {
    Needs::of::<AnnotateView>().check(capture)?;
    let trust = trust::trust(capture);
    let events = capture.meta.events.iter().zip(trust.events).enumerate();
    let events = events.map(|(index, (info, trust))| {
        let event = EventSummary::of(info, trust);
        annotate_event(capture, options, index, event, code)
    });
    Ok(Annotation { run: Run::of(capture), events: events.collect() })
}

fn annotate_event(
    capture: &Capture,
    options: &AnnotateOptions,
    index: usize,
    event: EventSummary,
    files: &mut dyn Code,
) -> AnnotatedEvent {
    let EventCode { samples, functions: found, nameless } = code::sampled(capture, index, |_| true);
    let wanted = |id: &FunctionId| {
        options.functions.is_empty() || options.functions.iter().any(|name| id.name.contains(name.as_str()))
    };
    let mut found: Vec<_> = found.into_iter().filter(|(id, _)| wanted(id)).collect();
    found.compact_sort_by(|(id_a, a), (id_b, b)| {
        b.all.samples().order(&a.all.samples()).then_with(|| id_a.cmp(id_b))
    });
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
    sampled: SampledFunction,
    event_samples: Samples,
    timed: bool,
    min_samples: u64,
    code: &mut dyn Code,
) -> AnnotatedFunction {
    let SampledFunction { all, mut by_offset } = sampled;
    let whole = all.samples();
    let (listing, no_code) = match code.instructions(&id) {
        Ok(listing) => (listing, None),
        Err(reason) => (Vec::new(), Some(reason)),
    };
    let mut fields = fields(&id, &listing, code);
    let mut lines: BTreeMap<Option<SourceLine>, Tally> = BTreeMap::new();
    let mut instructions: Vec<ListedInstruction> = Vec::new();
    let mut list = |offset, text, frames: Vec<SourceLine>, tally: Option<Tally>, code: &mut dyn Code| {
        let place = frames.first();
        let source = place.and_then(|place| code.source(&place.file, place.line));
        let measured = tally.as_ref().map(|tally| tally.measured(whole, timed)).unwrap_or_default();
        if let Some(tally) = tally {
            lines.entry(place.cloned()).or_default().merge(tally);
        }
        let field = fields.remove(&offset);
        instructions.push(ListedInstruction { offset, text, frames, source, field, measured });
    };
    for Instruction { offset, text, frames, .. } in listing {
        let sampled = by_offset.remove(&offset);
        let (tally, recorded) = sampled.unzip();
        let frames = if frames.is_empty() { recorded.unwrap_or_default() } else { frames };
        list(offset, text, frames, tally, code);
    }
    // Sampled offsets that the listing does not contain. Without code, these are all of them. With
    // code, they lie between two instructions, which never happens with imprecise samples.
    for (offset, (tally, frames)) in by_offset {
        list(offset, String::new(), frames, Some(tally), code);
    }
    instructions.compact_sort_by_key(|listed| listed.offset);
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.compact_sort_by(|(_, a), (_, b)| b.samples().order(&a.samples()));
    let lines = lines
        .into_iter()
        .map(|(place, tally)| {
            let source = place.as_ref().and_then(|place| code.source(&place.file, place.line));
            AnnotatedLine { source, measured: tally.measured(whole, timed), place }
        })
        .collect();
    let FunctionId { module, build_id, name, .. } = id;
    AnnotatedFunction {
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

/// Returns the fields that the instructions of a function access, by their distance from its start.
fn fields(id: &FunctionId, listing: &[Instruction], code: &mut dyn Code) -> FxHashMap<u64, AccessedField> {
    let wanted: Vec<u64> = listing.iter().map(|instruction| instruction.offset).collect();
    let Some(found) = code.types(id, &wanted).ok().filter(|_| !wanted.is_empty()) else {
        return FxHashMap::default();
    };
    // The name of a scalar says nothing about the instruction.
    let field = |access| AccessedField::of(access, &found).filter(|field| !field.field.is_empty());
    let instructions = found.instructions.iter();
    let fields = instructions.filter_map(|i| Some((i.offset, i.accesses.iter().find_map(field)?)));
    fields.collect()
}
