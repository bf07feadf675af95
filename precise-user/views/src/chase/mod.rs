//! `precise chase`: finds pointer chases. The code around the sampled loads shows what each load
//! waits for.
//!
//! Each step of a pointer chase needs the address that the previous load returns, so the loads
//! cannot overlap:
//!
//! ```
//! use precise_code::{FunctionId, Instruction, testing::assemble};
//! use precise_model::testing::{CaptureBuilder, RAM};
//! use precise_model::Reason;
//! use precise_views::chase::{LoadBound, ChaseOptions, WaitKind, chase};
//! use precise_views::code::Code;
//!
//! /// Code that follows a linked list: each load reads the pointer to the next element.
//! struct List;
//!
//! impl Code for List {
//!     fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
//!         Ok(assemble("1: mov (%rdi),%rdi\n test %rdi,%rdi\n jne 1b\n ret"))
//!     }
//! #     fn source(&mut self, _: &str, _: u32) -> Option<String> {
//! #         None
//! #     }
//! }
//!
//! let mut made = CaptureBuilder::new();
//! made.cell().samples(200).latency(400).data_src(RAM).code(0x1000, "/bin/app", "walk", "", 0);
//!
//! let result = chase(&made.build(), &ChaseOptions::default(), &mut List)?;
//!
//! let event = &result.events[0];
//! // Every sampled load waits for the load before it, so latency limits this code, not bandwidth.
//! assert_eq!(event.verdict, Some(LoadBound::Latency));
//! assert_eq!((event.kinds[0].kind, event.kinds[0].measured.samples), (WaitKind::Chase, 200));
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::ChaseView;

use std::collections::BTreeMap;

use precise_common::data_src::MemoryLevel;
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{EventSummary, Run};
use super::again::Again;
use super::code::{self, Code, EventCode, PlaceSamples, Tally};
use super::needs::Needs;
use super::stats::{MIN_SAMPLES, Samples, Share};
use super::weighing::Weighing;
use super::{ViewError, about, trust};
use precise_code::{Dependence, Dependences, FunctionId, Instruction, Load, SourceLine, UnknownDependence};
use precise_model::Preset;
use precise_model::digits::thousands;
use precise_model::words;
use precise_model::{Capture, CompactSort as _, Row};

/// Maximum number of functions whose code is analysed: those with the most samples.
const MAX_FUNCTIONS: usize = 200;

/// Maximum number of loads of one loop that are classified. The main loop of an interpreter, for
/// example, has too many to be of interest.
const MAX_BESIDE: usize = 200;

/// Options for `precise chase`.
#[derive(Clone, Debug, PartialEq)]
pub struct ChaseOptions {
    /// Number of loads to show of each event.
    pub limit: usize,
    /// Minimum number of samples for a result.
    pub min_samples: u64,
}

impl Default for ChaseOptions {
    fn default() -> Self {
        Self { limit: 10, min_samples: MIN_SAMPLES }
    }
}

/// The result of `precise chase`: what the loads of a capture wait for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Chase {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// One entry per event whose samples are memory accesses.
    pub events: Vec<ChaseEvent>,
}

/// The loads of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChaseEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Number of samples of the event.
    pub samples: u64,
    /// Number of samples at loads in known code. All shares are relative to these.
    pub loads: u64,
    /// Number of samples that a result needs. Present if there are fewer.
    pub too_few: Option<u64>,
    /// The conclusion; `None` if there are too few samples.
    pub verdict: Option<LoadBound>,
    /// Whether the verdict uses shares of latency; otherwise it uses shares of samples.
    pub by_latency: bool,
    /// The samples by what the loads wait for.
    pub kinds: Vec<KindOf>,
    /// The loads with the largest shares, largest first.
    pub sites: Vec<LoadSite>,
    /// Number of loads that the limit left out, and the number of their samples.
    pub left_out: (usize, u64),
    /// Fraction of the loads with a known level whose line was already being fetched, because an
    /// earlier access had requested it. A high value is a sign that accesses overlap.
    pub under_way: Option<Share>,
    /// Samples that are in no share.
    pub without: Without,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// Numbers of samples that could not be analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Without {
    /// Number of samples at stores, or at instructions that load nothing.
    pub no_load: u64,
    /// Number of samples in functions whose code is not available.
    pub no_code: u64,
    /// Number of samples in code that belongs to no known function.
    pub nameless: u64,
    /// Number of samples in functions that were not analysed because others have more samples.
    pub not_looked_at: u64,
}

/// What limits the loads of a capture, as far as it can be determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBound {
    /// Latency: most of the share is in loads of pointer chases.
    Latency,
    /// Bandwidth, or the number of misses that a core can have in flight: most of the share is in
    /// loads that need not wait for one another.
    Bandwidth,
    /// Neither can be shown.
    Undecided,
}

precise_model::catalogue! {
    /// What a load waits for: [`Dependence`] without its details.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum WaitKind: (&'static str, &'static str, &'static str) {
        /// The load waits for its own earlier result.
        Chase => ("chase", "chase", "chase: its own earlier result"),
        /// The load waits for a load of a pointer chase.
        BehindChase => ("behind-chase", "behind a chase", "behind a chase: a load of a chase"),
        /// The load waits for another load; iterations overlap.
        Gather => ("gather", "gather", "gather: another load; rounds overlap"),
        /// The load waits for no load; iterations overlap.
        Independent => ("independent", "independent", "independent: no load; rounds overlap"),
        /// What the load waits for is unknown.
        Unknown => ("unknown", "unknown", "unknown"),
    }
}

impl WaitKind {
    /// Returns the kind as one word, for JSON.
    const fn tag(self) -> &'static str {
        self.entry().0
    }

    /// Returns the kind as tables show it.
    const fn short(self) -> &'static str {
        self.entry().1
    }

    /// Returns the kind with its meaning.
    const fn long(self) -> &'static str {
        self.entry().2
    }

    const fn of(dependence: &Dependence) -> Self {
        match dependence {
            Dependence::Chase { .. } => Self::Chase,
            Dependence::BehindChase => Self::BehindChase,
            Dependence::Gather => Self::Gather,
            Dependence::Independent => Self::Independent,
            Dependence::Unknown { .. } => Self::Unknown,
        }
    }

    /// Returns whether each iteration waits for the result of a load of the iteration before.
    const fn is_serial(self) -> bool {
        matches!(self, Self::Chase | Self::BehindChase)
    }
}

/// All loads of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KindOf {
    /// The kind.
    pub kind: WaitKind,
    /// The samples of these loads. The share is relative to the samples of all loads.
    #[serde(flatten)]
    pub measured: PlaceSamples,
    /// Fraction of the latency of all loads; `None` if the samples have no latencies.
    pub latency_share: Option<Share>,
}

/// A sampled load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadSite {
    /// Function of the load.
    pub function: String,
    /// File of the function.
    pub module: String,
    /// The instruction of the load.
    #[serde(flatten)]
    pub at: Reference,
    /// The samples of this load. The share is relative to the samples of all loads.
    #[serde(flatten)]
    pub measured: PlaceSamples,
    /// Fraction of the latency of all loads; `None` if the samples have no latencies.
    pub latency_share: Option<Share>,
    /// What the load waits for.
    pub waits_for: Dependence,
    /// The loads whose results its address is computed from.
    pub address_from: Vec<Reference>,
    /// Numbers of other loads in the innermost loop around it, by kind. Empty if there are more
    /// than 200.
    pub beside: BTreeMap<WaitKind, u64>,
}

/// An instruction that a result refers to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reference {
    /// Distance from the start of the function, in bytes.
    pub offset: u64,
    /// Disassembly of the instruction.
    pub instruction: String,
    /// Source file and line; `None` without line information.
    pub place: Option<SourceLine>,
    /// Text of that line, if the source file is available.
    pub source: Option<String>,
}

/// Returns what the loads of a capture wait for.
///
/// # Errors
///
/// Returns an error if the capture lacks the instructions of memory accesses. The message names the
/// command that records them.
pub fn chase(capture: &Capture, options: &ChaseOptions, files: &mut dyn Code) -> Result<Chase, ViewError> {
    Needs::of::<ChaseView>().check(capture)?;
    let infos = &capture.meta.events;
    if !infos.iter().any(|info| info.fields.address) {
        return Err(ViewError::NoSuchSamples {
            view: "`precise chase`".to_owned(),
            what: "the kind of access (load or store)".to_owned(),
            events: infos.iter().map(|info| info.name.as_str()).collect::<Vec<_>>().join(","),
            again: Again::record(capture, Preset::Loads.name(), &[]),
        });
    }
    let events = infos.iter().zip(trust::trust(capture).events).enumerate();
    let events = events.filter(|(_, (info, _))| info.fields.address).map(|(index, (info, trust))| {
        let mut result = of_event(capture, options, index, EventSummary::of(info, trust), files);
        result.notes.extend(about::latency_limits(info));
        result
    });
    Ok(Chase { run: Run::of(capture), events: events.collect() })
}

fn is_store(row: &Row) -> bool {
    words::op(row.data_source()) == Some("STORE")
}

fn of_event(
    capture: &Capture,
    options: &ChaseOptions,
    index: usize,
    event: EventSummary,
    files: &mut dyn Code,
) -> ChaseEvent {
    let samples = super::samples(capture, index);
    let EventCode { samples: kept, functions, nameless } =
        code::sampled(capture, index, |row| !is_store(row));
    let no_load = samples.saturating_sub(kept.count);
    let mut without = Without { no_load, nameless: nameless.count, ..Without::default() };
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.compact_sort_by(|(id_a, a), (id_b, b)| {
        b.all.samples().order(&a.all.samples()).then_with(|| id_a.cmp(id_b))
    });
    let mut found: Vec<SampledLoad> = Vec::new();
    for (number, (id, sampled)) in functions.into_iter().enumerate() {
        let count = sampled.all.samples().count;
        if number >= MAX_FUNCTIONS {
            without.not_looked_at = without.not_looked_at.saturating_add(count);
            continue;
        }
        let Ok(listing) = files.instructions(&id) else {
            without.no_code = without.no_code.saturating_add(count);
            continue;
        };
        let by_offset = sampled.by_offset.into_iter().map(|(offset, (tally, _))| (offset, tally));
        loads_of(&id, &listing, by_offset, &mut found, &mut without);
    }
    let mut all = Tally::default();
    found.iter().for_each(|load| all.merge(load.tally.clone()));
    let timed = event.has_latency && all.sum.measures.latency_sum > 0;
    let whole = Whole { loads: all.samples(), timed, all: &all };
    let too_few = (whole.loads.count < options.min_samples).then_some(options.min_samples);
    let (kinds, verdict) = if too_few.is_none() { kinds(&found, &whole) } else { (Vec::new(), None) };
    found.compact_sort_by(|a, b| {
        whole.weight(&b.tally).total_cmp(&whole.weight(&a.tally)).then_with(|| a.key().cmp(&b.key()))
    });
    let kept = if too_few.is_some() { 0 } else { options.limit.min(found.len()) };
    let left_out = found.split_off(kept);
    let rest = left_out.iter().fold(0u64, |sum, load| sum.saturating_add(load.tally.samples().count));
    let mut result = ChaseEvent {
        samples,
        loads: whole.loads.count,
        too_few,
        verdict,
        by_latency: timed,
        kinds,
        sites: found.into_iter().map(|load| site(load, &whole, files)).collect(),
        left_out: (left_out.len(), rest),
        under_way: under_way(capture, index),
        without,
        notes: Vec::new(),
        event,
    };
    notes(&mut result);
    result
}

/// A sampled load.
struct SampledLoad {
    id: FunctionId,
    at: Instruction,
    tally: Tally,
    load: Load,
    from: Vec<Instruction>,
    beside: BTreeMap<WaitKind, u64>,
}

impl SampledLoad {
    fn key(&self) -> (&FunctionId, u64) {
        (&self.id, self.at.offset)
    }
}

/// The totals that shares are relative to.
struct Whole<'a> {
    loads: Samples,
    timed: bool,
    all: &'a Tally,
}

impl Whole<'_> {
    fn weight(&self, tally: &Tally) -> f64 {
        if self.timed { tally.sum.latency() } else { tally.samples().weight.sum }
    }

    fn latency_share(&self, tally: &Tally) -> Option<Share> {
        self.timed.then(|| tally.sum.latency_share(&self.all.sum))
    }

    /// Returns the share that the verdict uses: of the latency if the samples have it, else of the
    /// samples.
    fn share(&self, tally: &Tally) -> Share {
        self.latency_share(tally).unwrap_or_else(|| tally.samples().share_of(self.loads))
    }
}

fn loads_of(
    id: &FunctionId,
    listing: &[Instruction],
    by_offset: impl Iterator<Item = (u64, Tally)>,
    found: &mut Vec<SampledLoad>,
    without: &mut Without,
) {
    let mut dependences = Dependences::of(listing);
    for (offset, tally) in by_offset {
        let at = listing.binary_search_by_key(&offset, |instruction| instruction.offset).ok();
        let Some((at, load)) = at.and_then(|at| Some((at, dependences.load(at)?))) else {
            without.no_load = without.no_load.saturating_add(tally.samples().count);
            continue;
        };
        let mut beside: BTreeMap<WaitKind, u64> = BTreeMap::new();
        let few = load.in_loop.len() <= MAX_BESIDE;
        let others = load.in_loop.iter().filter(|other| few && **other != at);
        for other in others.filter_map(|other| dependences.load(*other)) {
            *beside.entry(WaitKind::of(&other.dependence)).or_default() += 1;
        }
        let from = load.from.iter().filter_map(|from| listing.get(*from)).cloned().collect();
        let Some(instruction) = listing.get(at) else { continue };
        found.push(SampledLoad { id: id.clone(), at: instruction.clone(), tally, load, from, beside });
    }
}

fn kinds(found: &[SampledLoad], whole: &Whole<'_>) -> (Vec<KindOf>, Option<LoadBound>) {
    let (mut serial, mut free) = (Tally::default(), Tally::default());
    let mut kinds = Vec::new();
    for kind in WaitKind::ALL {
        let mut tally = Tally::default();
        for load in found.iter().filter(|load| WaitKind::of(&load.load.dependence) == kind) {
            tally.merge(load.tally.clone());
        }
        if kind.is_serial() {
            serial.merge(tally.clone());
        } else if kind != WaitKind::Unknown {
            free.merge(tally.clone());
        }
        if tally.samples().count > 0 {
            let latency_share = whole.latency_share(&tally);
            kinds.push(KindOf { kind, measured: tally.measured(whole.loads, whole.timed), latency_share });
        }
    }
    let bound = if whole.share(&serial).low > 0.5 {
        LoadBound::Latency
    } else if whole.share(&free).low > 0.5 {
        LoadBound::Bandwidth
    } else {
        LoadBound::Undecided
    };
    (kinds, Some(bound))
}

fn site(found: SampledLoad, whole: &Whole<'_>, files: &mut dyn Code) -> LoadSite {
    let mut reference = |instruction: Instruction| {
        let place = instruction.frames.into_iter().next();
        let source = place.as_ref().and_then(|place| files.source(&place.file, place.line));
        Reference { offset: instruction.offset, instruction: instruction.text, place, source }
    };
    let from: Vec<Instruction> =
        found.from.into_iter().filter(|from| from.offset != found.at.offset).collect();
    LoadSite {
        at: reference(found.at),
        address_from: from.into_iter().map(&mut reference).collect(),
        measured: found.tally.measured(whole.loads, whole.timed),
        latency_share: whole.latency_share(&found.tally),
        waits_for: found.load.dependence,
        beside: found.beside,
        function: found.id.name,
        module: found.id.module,
    }
}

/// Returns the fraction of loads with a known level that found their line already being fetched.
fn under_way(capture: &Capture, event: usize) -> Option<Share> {
    let weighing = Weighing::of(capture, event);
    let (mut known, mut there) = (Samples::default(), Samples::default());
    for row in capture.rows.iter().filter(|row| usize::from(row.event) == event && !is_store(row)) {
        let level = row.data_source().level;
        if level != MemoryLevel::Na {
            known.add(weighing.samples(row));
            if level == MemoryLevel::Lfb {
                there.add(weighing.samples(row));
            }
        }
    }
    (known.count > 0).then(|| there.share_of(known))
}

fn notes(event: &mut ChaseEvent) {
    let ChaseEvent { without, notes, .. } = event;
    let lost = [
        (without.no_load, "at stores or instructions that load nothing"),
        (without.no_code, "in code that is missing here or has changed"),
        (without.nameless, "in code outside of any known function"),
        (without.not_looked_at, "in functions with too few samples to analyse"),
    ];
    let lost: Vec<_> = lost
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", thousands(count)))
        .collect();
    if !lost.is_empty() {
        notes.push(format!("These samples are in no share: {}.", lost.join("; ")));
    }
    if !event.event.trust.precise {
        notes.push(
            "The instruction addresses of these samples are not exact: the load shown may be a \
             neighbour of the sampled one."
                .to_owned(),
        );
    }
    if !event.by_latency {
        notes.push("The samples have no latency, so shares count samples.".to_owned());
    }
}

impl LoadSite {
    /// Returns why it is unknown what this load waits for; `None` if it is known.
    pub fn why(&self) -> Option<UnknownDependence> {
        match self.waits_for {
            Dependence::Unknown { why } => Some(why),
            _ => None,
        }
    }

    /// Returns the kind of the load.
    pub const fn kind(&self) -> WaitKind {
        WaitKind::of(&self.waits_for)
    }
}
