//! How wrong is an ordinary profile? Samples of one event with precision and without, side by side.
//!
//! Nobody can say which sample of the one belongs to which of the other: they are different
//! overflows of different counters. What is compared are two distributions over the same code, and
//! every number is true of any way to pair them, or says that it is a bound. docs/skid.md has the
//! whole reasoning.

pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::SkidView;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::about::{Event, Run};
use super::code::{self, Code, EventCode, Sampled};
use super::needs::Needs;
use super::stats::{
    self, Difference, MIN_SAMPLES, Places, SIGNIFICANT, Samples, Share, Transport, transport,
};
use super::{ViewError, trust};
use precise_code::{FunctionId, Instruction, SourceLine};
use precise_model::{Capture, EventInfo, PmuKind, Reason};

/// Functions whose code is read for their lines, those with the most samples.
const MAX_FUNCTIONS: usize = 200;

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct SkidOptions {
    /// Functions to show; of lines and of functions that are blamed wrongly, ten times as many.
    pub limit: usize,
    /// Samples of each side below which nothing is compared.
    pub min_samples: u64,
}

impl Default for SkidOptions {
    fn default() -> Self {
        Self { limit: 3, min_samples: MIN_SAMPLES }
    }
}

/// How wrong ordinary samples are.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Skid {
    /// Where the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// One per event that was sampled with precision and without: several on CPUs with several
    /// kinds of core.
    pub pairs: Vec<Pair>,
}

/// One event, with precision and without.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Pair {
    /// With.
    pub precise: Event,
    /// Without.
    pub plain: Event,
    /// Samples: precise, plain.
    pub samples: [u64; 2],
    /// Samples that each side needs; present when one has fewer.
    pub too_few: Option<u64>,
    /// Part of the plain samples that blame the wrong line, at least.
    pub wrong_line: Option<Difference>,
    /// Part of the plain samples that blame a wrong function, at least.
    pub wrong_function: Option<Difference>,
    /// By how much the kernel's share is larger in the plain samples.
    pub into_kernel: Option<Difference>,
    /// The hottest functions, and how far samples are off in them.
    pub functions: Vec<FunctionSkid>,
    /// Functions whose share differs for sure, the largest difference first.
    pub wrong_functions: Vec<Blamed>,
    /// Lines whose share differs for sure.
    pub wrong_lines: Vec<Blamed>,
    /// Such functions and lines that the limit left out.
    pub left_out: [usize; 2],
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// How far samples are off within one function.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FunctionSkid {
    /// Its name.
    pub function: String,
    /// Its file.
    pub module: String,
    /// Part of the precise samples.
    pub precise: Share,
    /// Part of the plain samples.
    pub plain: Share,
    /// In instructions, in the order of their addresses; `None` without the code, or with too few
    /// samples.
    pub instructions: Option<Transport>,
    /// In lines of its own source; those of what was inlined count as the line of the call.
    pub lines: Option<Transport>,
    /// Why there is no code.
    #[serde(serialize_with = "code::reason")]
    #[schemars(with = "Option<Reason>")]
    pub no_code: Option<Reason>,
    /// Samples that each side needs; present when one has fewer.
    pub too_few: Option<u64>,
}

/// What is blamed too much, or too little.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Blamed {
    /// The function.
    pub function: String,
    /// Its file.
    pub module: String,
    /// The line; `None` for a whole function, or where there is no line information.
    pub place: Option<SourceLine>,
    /// The text of the line, where the source is here.
    pub source: Option<String>,
    /// Part of the precise samples.
    pub precise: Share,
    /// Part of the plain samples.
    pub plain: Share,
    /// Plain less precise: above zero, it is blamed for what others did.
    pub excess: Difference,
    /// The probability that chance alone makes it, corrected for how many were compared.
    pub p: f64,
}

/// How wrong ordinary samples are.
///
/// # Errors
///
/// When the capture has no instructions, or no event both with precision and without.
pub fn skid(capture: &Capture, options: &SkidOptions, files: &mut dyn Code) -> Result<Skid, ViewError> {
    Needs::of::<SkidView>().check(capture)?;
    let events: Vec<Event> = capture
        .meta
        .events
        .iter()
        .zip(trust::trust(capture).events)
        .map(|(info, trust)| Event::of(info, trust))
        .collect();
    let pairs = pairs_of(&capture.meta.events)?;
    let pairs = pairs.into_iter().filter_map(|(precise, plain)| {
        let events = [events.get(precise)?.clone(), events.get(plain)?.clone()];
        Some(compare(capture, options, [precise, plain], events, files))
    });
    Ok(Skid { run: Run::of(capture), pairs: pairs.collect() })
}

/// The events that belong together: of one unit, on one kind of core.
fn pairs_of(events: &[EventInfo]) -> Result<Vec<(usize, usize)>, ViewError> {
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
        });
    }
    Ok(pairs)
}

/// Samples of both sides: precise, plain.
type Sides = [Samples; 2];

/// One function of both sides.
struct SkidFunction {
    id: FunctionId,
    sides: Sides,
    listing: Result<Vec<Instruction>, Reason>,
    sampled: [Option<Sampled>; 2],
}

fn compare(
    capture: &Capture,
    options: &SkidOptions,
    indices: [usize; 2],
    [precise, plain]: [Event; 2],
    files: &mut dyn Code,
) -> Pair {
    let [first, second] = indices.map(|event| code::sampled(capture, event, |_| true));
    let samples = [first.samples, second.samples];
    let counts = samples.map(|side| side.count);
    let nameless = [first.nameless.count, second.nameless.count];
    let too_few = (counts[0].min(counts[1]) < options.min_samples).then_some(options.min_samples);
    let mut pair = Pair {
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

/// The functions of both sides, those with the most samples first.
fn functions(first: EventCode, second: EventCode, files: &mut dyn Code) -> Vec<SkidFunction> {
    let mut both: BTreeMap<FunctionId, [Option<Sampled>; 2]> = BTreeMap::new();
    for (side, code) in [first, second].into_iter().enumerate() {
        for (id, sampled) in code.functions {
            both.entry(id).or_default()[side] = Some(sampled);
        }
    }
    let count =
        |sampled: &Option<Sampled>| sampled.as_ref().map_or_else(Samples::default, |s| s.all.samples());
    let mut functions: Vec<SkidFunction> = both
        .into_iter()
        .map(|(id, sampled)| {
            let sides = [count(&sampled[0]), count(&sampled[1])];
            SkidFunction { id, sides, listing: Err(Reason::NotRecorded), sampled }
        })
        .collect();
    functions.sort_by_key(|f| std::cmp::Reverse(f.sides[0].count.saturating_add(f.sides[1].count)));
    for function in functions.iter_mut().take(MAX_FUNCTIONS) {
        function.listing = files.instructions(&function.id);
    }
    functions
}

impl SkidFunction {
    /// Samples by the place that `place` makes of an instruction, for one side. What `place` does
    /// not know is left out.
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

    /// The instruction that an offset lies in, and its number.
    fn at(&self, offset: u64) -> Option<(usize, &Instruction)> {
        let listing = self.listing.as_ref().ok()?;
        let number = listing.partition_point(|instruction| instruction.offset <= offset).checked_sub(1)?;
        Some((number, listing.get(number)?))
    }
}

/// The samples of a function by line, those of both sides.
fn lines(function: &SkidFunction) -> BTreeMap<Option<SourceLine>, Sides> {
    let mut lines: BTreeMap<Option<SourceLine>, Sides> = BTreeMap::new();
    for side in 0..2 {
        for (line, count) in function.places(side, |_, frames| Some(frames.first().cloned())) {
            lines.entry(line).or_default()[side] = count;
        }
    }
    lines
}

/// How far samples are off within a function.
fn within(function: SkidFunction, samples: Sides, min_samples: u64) -> FunctionSkid {
    let [precise, plain] = function.sides;
    let too_few = (precise.count.min(plain.count) < min_samples).then_some(min_samples);
    let both = |places: [BTreeMap<i64, Samples>; 2]| {
        let all = |side: &BTreeMap<_, Samples>| side.values().copied().sum::<Samples>();
        let enough = places.iter().all(|side| all(side).count >= min_samples);
        // Where they do not weigh the same, as many equal ones as would be as sure.
        let equal = |side: &BTreeMap<i64, Samples>| -> Places {
            let scale = all(side).scale();
            side.iter().map(|(at, samples)| (*at, (samples.weight.sum * scale).round() as u64)).collect()
        };
        enough.then(|| transport(&equal(&places[0]), &equal(&places[1]))).flatten()
    };
    let number =
        |offset, _: &[SourceLine]| function.at(offset).and_then(|(number, _)| i64::try_from(number).ok());
    let instructions = both([0, 1].map(|side| function.places(side, number)));
    // Its own lines: what was inlined stands at the line of its call.
    let own =
        |_, frames: &[SourceLine]| frames.last().map(|place| (place.file.clone(), i64::from(place.line)));
    let files = [0, 1].map(|side| function.places(side, own));
    let names: BTreeSet<&String> = files.iter().flatten().map(|((file, _), _)| file).collect();
    // Lines of two files are in no order.
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

/// What has another share for sure; and the part of the plain samples that are wrong in any case:
/// whatever the pairing, what a place has too much must have come from another.
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
    blamed.sort_by(|a, b| {
        b.excess.value.abs().total_cmp(&a.excess.value.abs()).then_with(|| a.function.cmp(&b.function))
    });
    let left_out = blamed.len().saturating_sub(limit);
    blamed.truncate(limit);
    for one in &mut blamed {
        one.source = one.place.as_ref().and_then(|place| files.source(&place.file, place.line));
    }
    (Some(excess(too_much, samples)), blamed, left_out)
}

/// By how much the plain side has more of something.
fn excess(part: Sides, samples: Sides) -> Difference {
    stats::difference(part[0].share_of(samples[0]), part[1].share_of(samples[1]))
}

fn add(a: Sides, b: Sides) -> Sides {
    [a[0].and(b[0]), a[1].and(b[1])]
}

fn notes(pair: &mut Pair, nameless: [u64; 2], by_ibs: bool) {
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
