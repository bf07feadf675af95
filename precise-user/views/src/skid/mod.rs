//! `precise skid`: how wrong an ordinary profile is. Compares samples of one event with precision
//! and without.
//!
//! No sample of one side corresponds to a particular sample of the other: they come from different
//! overflows of different counters. The view compares two distributions over the same code. Every
//! number either holds for any way to pair the samples, or is marked as a bound. docs/skid.md
//! contains the whole reasoning.
//!
//! An ordinary profile blames the place where the interrupt arrives, not the instruction that
//! caused it:
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
//! use precise_model::testing::CaptureBuilder;
//! use precise_views::skid::{SkidOptions, skid};
//!
//! let mut made = CaptureBuilder::new();
//! // The same event a second time, without precision.
//! let mut plain = made.meta().events[0].clone();
//! plain.name = "cycles (imprecise)".to_owned();
//! plain.verdict.precise = false;
//! made.meta().events.push(plain);
//! made.cell().event(0).samples(1000).code(0x1000, "/bin/app", "work", "", 0);
//! made.cell().event(1).samples(800).code(0x1000, "/bin/app", "work", "", 0);
//! made.cell().event(1).samples(200).code(0xf000, "[kernel]", "interrupted", "", 0);
//!
//! // `NoCode` implements `Code` without files, so distances in instructions stay unknown.
//! let result = skid(&made.build(), &SkidOptions::default(), &mut NoCode)?;
//!
//! let pair = &result.pairs[0];
//! // At least 20 % of the plain samples blame a function that did not cause the event ...
//! assert!((pair.wrong_function.expect("enough samples").value - 0.20).abs() < 1e-9);
//! // ... and they blame the kernel, which the precise samples acquit.
//! assert!((pair.into_kernel.expect("enough samples").value - 0.20).abs() < 1e-9);
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::SkidView;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::about::{EventSummary, Run};
use super::again::Again;
use super::code::{self, Code, EventCode, SampledFunction};
use super::needs::Needs;
use super::stats::{
    self, Difference, MIN_SAMPLES, PlaceCounts, SIGNIFICANT, Samples, Share, Transport, transport,
};
use super::{ViewError, trust};
use precise_code::{FunctionId, Instruction, SourceLine};
use precise_model::{Capture, CompactSort as _, EventInfo, PmuKind, Preset, Reason};

/// Maximum number of functions whose code is read for their lines: those with the most samples.
const MAX_FUNCTIONS: usize = 200;

/// Options for `precise skid`.
#[derive(Clone, Debug, PartialEq)]
pub struct SkidOptions {
    /// Number of functions to show. Of the lines and functions that are blamed wrongly, ten times
    /// as many are shown.
    pub limit: usize,
    /// Minimum number of samples on each side for a comparison.
    pub min_samples: u64,
}

impl Default for SkidOptions {
    fn default() -> Self {
        Self { limit: 3, min_samples: MIN_SAMPLES }
    }
}

/// The result of `precise skid`: how wrong imprecise samples are.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Skid {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// One entry per event that was sampled both with precision and without. There are several on
    /// CPUs with several kinds of core.
    pub pairs: Vec<SkidPair>,
}

/// One event, sampled with precision and without.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SkidPair {
    /// The event with precision.
    pub precise: EventSummary,
    /// The event without precision.
    pub plain: EventSummary,
    /// Number of samples: precise, plain.
    pub samples: [u64; 2],
    /// Number of samples that each side needs. Present if one side has fewer.
    pub too_few: Option<u64>,
    /// Lower bound of the fraction of plain samples that blame a wrong line.
    pub wrong_line: Option<Difference>,
    /// Lower bound of the fraction of plain samples that blame a wrong function.
    pub wrong_function: Option<Difference>,
    /// Share of the kernel in the plain samples, minus its share in the precise samples.
    pub into_kernel: Option<Difference>,
    /// The hottest functions, and how far samples are displaced within them.
    pub functions: Vec<FunctionSkid>,
    /// Functions whose shares differ significantly, largest difference first.
    pub wrong_functions: Vec<Blamed>,
    /// Lines whose shares differ significantly, largest difference first.
    pub wrong_lines: Vec<Blamed>,
    /// Numbers of such functions and lines that the limit left out.
    pub left_out: [usize; 2],
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// How far samples are displaced within one function.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FunctionSkid {
    /// Name of the function.
    pub function: String,
    /// File of the function.
    pub module: String,
    /// Fraction of the precise samples that is in the function.
    pub precise: Share,
    /// Fraction of the plain samples that is in the function.
    pub plain: Share,
    /// Distances in instructions, in the order of their addresses. `None` without the code, or with
    /// too few samples.
    pub instructions: Option<Transport>,
    /// Distances in source lines of the function. Inlined code counts as the line of the call.
    pub lines: Option<Transport>,
    /// Why the code is not available; `None` if it is.
    #[serde(serialize_with = "code::reason")]
    #[schemars(with = "Option<Reason>")]
    pub no_code: Option<Reason>,
    /// Number of samples that each side needs. Present if one side has fewer.
    pub too_few: Option<u64>,
}

/// A function or line that the plain samples blame too much or too little.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Blamed {
    /// Name of the function.
    pub function: String,
    /// File of the function.
    pub module: String,
    /// The line; `None` for a whole function, or without line information.
    pub place: Option<SourceLine>,
    /// Text of the line, if the source file is available.
    pub source: Option<String>,
    /// Fraction of the precise samples.
    pub precise: Share,
    /// Fraction of the plain samples.
    pub plain: Share,
    /// Plain fraction minus precise fraction. If it is above zero, the place is blamed for the work
    /// of others.
    pub excess: Difference,
    /// Probability that noise alone causes the difference, corrected for the number of comparisons.
    pub p: f64,
}

/// Returns how wrong the imprecise samples of a capture are.
///
/// # Errors
///
/// Returns an error if the capture has no instruction addresses, or no event that was sampled both
/// with precision and without.
pub fn skid(capture: &Capture, options: &SkidOptions, files: &mut dyn Code) -> Result<Skid, ViewError> {
    Needs::of::<SkidView>().check(capture)?;
    let events: Vec<EventSummary> = capture
        .meta
        .events
        .iter()
        .zip(trust::trust(capture).events)
        .map(|(info, trust)| EventSummary::of(info, trust))
        .collect();
    let pairs = pairs_of(capture)?;
    let pairs = pairs.into_iter().filter_map(|(precise, plain)| {
        let events = [events.get(precise)?.clone(), events.get(plain)?.clone()];
        Some(compare(capture, options, [precise, plain], events, files))
    });
    Ok(Skid { run: Run::of(capture), pairs: pairs.collect() })
}

/// Returns the pairs of events that belong together: the same event on the same kind of core.
fn pairs_of(capture: &Capture) -> Result<Vec<(usize, usize)>, ViewError> {
    let events = &capture.meta.events;
    let mut pairs = Vec::new();
    for (i, precise) in events.iter().enumerate().filter(|(_, event)| event.verdict.precise) {
        let same = |other: &EventInfo| other.unit == precise.unit && other.pmu.core() == precise.pmu.core();
        let plain = events.iter().enumerate().find(|(_, other)| !other.verdict.precise && same(other));
        pairs.extend(plain.map(|(j, _)| (i, j)));
    }
    if pairs.is_empty() {
        let any = events.iter().any(|event| event.verdict.precise);
        let all = !events.is_empty() && events.iter().all(|event| event.verdict.precise);
        return Err(ViewError::NotPaired {
            events: events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>().join(" and "),
            why: match (any, all) {
                (false, _) => "none of which is precise",
                (true, true) => "all of which are precise",
                (true, false) => "which count different things",
            },
            again: Again::record(capture, Preset::Skid.name(), &[]),
        });
    }
    Ok(pairs)
}

/// Samples of the two sides: precise, plain.
type Sides = [Samples; 2];

/// One function, with the samples of both sides.
struct SkidFunction {
    id: FunctionId,
    sides: Sides,
    listing: Result<Vec<Instruction>, Reason>,
    sampled: [Option<SampledFunction>; 2],
}

fn compare(
    capture: &Capture,
    options: &SkidOptions,
    indices: [usize; 2],
    [precise, plain]: [EventSummary; 2],
    files: &mut dyn Code,
) -> SkidPair {
    let [first, second] = indices.map(|event| code::sampled(capture, event, |_| true));
    let samples = [first.samples, second.samples];
    let counts = samples.map(|side| side.count);
    let nameless = [first.nameless.count, second.nameless.count];
    let too_few = (counts[0].min(counts[1]) < options.min_samples).then_some(options.min_samples);
    let mut pair = SkidPair {
        precise,
        plain,
        samples: counts,
        too_few,
        wrong_line: None,
        wrong_function: None,
        into_kernel: None,
        functions: Vec::new(),
        wrong_functions: Vec::new(),
        wrong_lines: Vec::new(),
        left_out: [0; 2],
        notes: Vec::new(),
    };
    if too_few.is_some() {
        return pair;
    }
    let functions = functions(first, second, files);
    let kernel = functions.iter().filter(|function| function.id.kernel);
    let kernel = kernel.fold(Sides::default(), |sum, function| add(sum, function.sides));
    pair.into_kernel = Some(excess(kernel, samples));

    let of_functions: Vec<_> = functions.iter().map(|f| ((f.id.clone(), None), f.sides)).collect();
    let of_lines = functions
        .iter()
        .flat_map(|f| lines(f).into_iter().map(|(line, sides)| ((f.id.clone(), line), sides)));
    let limit = options.limit.saturating_mul(10);
    let found = wrong(of_functions, samples, limit, files);
    (pair.wrong_function, pair.wrong_functions, pair.left_out[0]) = found;
    let found = wrong(of_lines.collect(), samples, limit, files);
    (pair.wrong_line, pair.wrong_lines, pair.left_out[1]) = found;

    let shown = functions.into_iter().take(options.limit);
    pair.functions = shown.map(|function| within(function, samples, options.min_samples)).collect();
    let by_ibs = capture.meta.events.get(indices[0]).is_some_and(|info| info.pmu == PmuKind::IbsOp);
    notes(&mut pair, nameless, by_ibs);
    pair
}

/// Returns the functions of both sides, those with the most samples first.
fn functions(first: EventCode, second: EventCode, files: &mut dyn Code) -> Vec<SkidFunction> {
    let mut both: BTreeMap<FunctionId, [Option<SampledFunction>; 2]> = BTreeMap::new();
    for (side, code) in [first, second].into_iter().enumerate() {
        for (id, sampled) in code.functions {
            both.entry(id).or_default()[side] = Some(sampled);
        }
    }
    let count = |sampled: &Option<SampledFunction>| {
        sampled.as_ref().map_or_else(Samples::default, |s| s.all.samples())
    };
    let mut functions: Vec<SkidFunction> = both
        .into_iter()
        .map(|(id, sampled)| {
            let sides = [count(&sampled[0]), count(&sampled[1])];
            SkidFunction { id, sides, listing: Err(Reason::NotRecorded), sampled }
        })
        .collect();
    functions.compact_sort_by_key(|f| std::cmp::Reverse(f.sides[0].count.saturating_add(f.sides[1].count)));
    for function in functions.iter_mut().take(MAX_FUNCTIONS) {
        function.listing = files.instructions(&function.id);
    }
    functions
}

impl SkidFunction {
    /// Returns the samples of one side by the place that `place` returns for an instruction.
    /// Instructions without a place are left out.
    fn places<P: Ord>(
        &self,
        side: usize,
        place: impl Fn(u64, &[SourceLine]) -> Option<P>,
    ) -> BTreeMap<P, Samples> {
        let mut places = BTreeMap::new();
        let sampled = self.sampled.get(side).and_then(Option::as_ref);
        for (offset, (tally, recorded)) in sampled.iter().flat_map(|sampled| &sampled.by_offset) {
            let listed = self.at(*offset).map(|(_, instruction)| instruction.frames.as_slice());
            let frames = listed.filter(|frames| !frames.is_empty()).unwrap_or(recorded);
            if let Some(place) = place(*offset, frames) {
                places.entry(place).or_insert_with(Samples::default).add(tally.samples());
            }
        }
        places
    }

    /// Returns the instruction that contains an offset, and its index.
    fn at(&self, offset: u64) -> Option<(usize, &Instruction)> {
        let listing = self.listing.as_ref().ok()?;
        let number = listing.partition_point(|instruction| instruction.offset <= offset).checked_sub(1)?;
        Some((number, listing.get(number)?))
    }
}

/// Returns the samples of a function by line, for both sides.
fn lines(function: &SkidFunction) -> BTreeMap<Option<SourceLine>, Sides> {
    let mut lines: BTreeMap<Option<SourceLine>, Sides> = BTreeMap::new();
    for side in 0..2 {
        for (line, count) in function.places(side, |_, frames| Some(frames.first().cloned())) {
            lines.entry(line).or_default()[side] = count;
        }
    }
    lines
}

/// Returns how far samples are displaced within a function.
fn within(function: SkidFunction, samples: Sides, min_samples: u64) -> FunctionSkid {
    let [precise, plain] = function.sides;
    let too_few = (precise.count.min(plain.count) < min_samples).then_some(min_samples);
    let both = |places: [BTreeMap<i64, Samples>; 2]| {
        let all = |side: &BTreeMap<_, Samples>| side.values().copied().sum::<Samples>();
        let enough = places.iter().all(|side| all(side).count >= min_samples);
        // With unequal weights: the effective sample size (Kish).
        let equal = |side: &BTreeMap<i64, Samples>| -> PlaceCounts {
            let scale = all(side).scale();
            side.iter().map(|(at, samples)| (*at, (samples.weight.sum * scale).round() as u64)).collect()
        };
        enough.then(|| transport(&equal(&places[0]), &equal(&places[1]))).flatten()
    };
    let number =
        |offset, _: &[SourceLine]| function.at(offset).and_then(|(number, _)| i64::try_from(number).ok());
    let instructions = both([0, 1].map(|side| function.places(side, number)));
    // Lines of the function itself: inlined code counts as the line of its call.
    let own =
        |_, frames: &[SourceLine]| frames.last().map(|place| (place.file.clone(), i64::from(place.line)));
    let files = [0, 1].map(|side| function.places(side, own));
    let names: BTreeSet<&String> = files.iter().flatten().map(|((file, _), _)| file).collect();
    // Lines of two different files have no order.
    let lines = (names.len() == 1).then(|| {
        both(files.clone().map(|side| side.into_iter().map(|((_, line), count)| (line, count)).collect()))
    });
    FunctionSkid {
        precise: precise.share_of(samples[0]),
        plain: plain.share_of(samples[1]),
        instructions,
        lines: lines.flatten(),
        no_code: function.listing.err(),
        too_few,
        function: function.id.name,
        module: function.id.module,
    }
}

/// Returns the places whose shares differ significantly, and the fraction of plain samples that is
/// wrong for any way to pair them: samples that a place has in excess must belong to other places.
fn wrong(
    places: Vec<((FunctionId, Option<SourceLine>), Sides)>,
    samples: Sides,
    limit: usize,
    files: &mut dyn Code,
) -> (Option<Difference>, Vec<Blamed>, usize) {
    let tested: Vec<_> = places
        .into_iter()
        .filter_map(|(place, [precise, plain])| {
            Some((stats::shares((precise, samples[0]), (plain, samples[1]))?, place, [precise, plain]))
        })
        .collect();
    let p: Vec<f64> = tested.iter().map(|(p, ..)| *p).collect();
    let mut too_much = Sides::default();
    let mut blamed = Vec::new();
    for (p, (_, (id, place), sides)) in stats::holm(&p).into_iter().zip(tested) {
        if p > SIGNIFICANT {
            continue;
        }
        let excess = excess(sides, samples);
        if excess.value > 0.0 {
            too_much = add(too_much, sides);
        }
        blamed.push(Blamed {
            function: id.name,
            module: id.module,
            source: None,
            precise: sides[0].share_of(samples[0]),
            plain: sides[1].share_of(samples[1]),
            place,
            excess,
            p,
        });
    }
    blamed.compact_sort_by(|a, b| {
        b.excess.value.abs().total_cmp(&a.excess.value.abs()).then_with(|| a.function.cmp(&b.function))
    });
    let left_out = blamed.len().saturating_sub(limit);
    blamed.truncate(limit);
    for one in &mut blamed {
        one.source = one.place.as_ref().and_then(|place| files.source(&place.file, place.line));
    }
    (Some(excess(too_much, samples)), blamed, left_out)
}

/// Returns the plain share minus the precise share.
fn excess(part: Sides, samples: Sides) -> Difference {
    stats::difference(part[0].share_of(samples[0]), part[1].share_of(samples[1]))
}

fn add(a: Sides, b: Sides) -> Sides {
    [a[0].and(b[0]), a[1].and(b[1])]
}

fn notes(pair: &mut SkidPair, nameless: [u64; 2], by_ibs: bool) {
    if nameless != [0; 2] {
        pair.notes.push(format!(
            "{} precise and {} plain samples lie in code outside of any known function: they count in \
             the total, but in no function or line.",
            precise_model::digits::thousands(nameless[0]),
            precise_model::digits::thousands(nameless[1]),
        ));
    }
    if by_ibs {
        pair.notes.push(
            "IBS tags the op that is dispatched when its counter expires, plain cycles are charged to \
             what retires afterwards: part of the difference is due to that, not to skid."
                .to_owned(),
        );
    }
    if pair.precise.period.is_some() && pair.precise.period == pair.plain.period {
        pair.notes.push(
            "Both events used the same period, so they may stay in phase. Omit -c, so that each has a \
             prime period of its own."
                .to_owned(),
        );
    }
}
