//! `precise branches`: which branches are mispredicted. For each branch site: its kind, its target,
//! how often it is taken, and how often it is mispredicted.
//!
//! The rate of a branch site says how unpredictable it is, and its share says how much it matters:
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
//! use precise_common::ibs::OutcomeBits as Bits;
//! use precise_model::testing::{CaptureBuilder, ibs_op};
//! use precise_model::{Outcome, TaggedOf};
//! use precise_views::branches::{BranchOptions, branches};
//!
//! let mut made = CaptureBuilder::new();
//! ibs_op(&mut made.meta().events[0]);
//! made.meta().events[0].tagged = Some(TaggedOf::Branch);
//! for (ip, samples, bits) in [
//!     (0x1000, 60, Bits::BRANCH | Bits::TAKEN | Bits::MISPREDICTED),
//!     (0x1000, 90, Bits::BRANCH | Bits::TAKEN),
//!     (0x1008, 20, Bits::BRANCH | Bits::MISPREDICTED),
//! ] {
//!     let mut cell = made.cell().samples(samples).code(ip, "/bin/app", "parse", "", 0);
//!     cell.row().outcome = Some(Outcome::Op(bits));
//! }
//!
//! // `NoCode` implements `Code` without files, so the kinds of the branches stay unknown.
//! let result = branches(&made.build(), &BranchOptions::default(), &mut NoCode)?;
//!
//! let worst = &result.events[0].sites[0];
//! // 60 of the 150 executions were mispredicted; they are 60 of all 80 mispredictions.
//! assert_eq!((&*worst.place, worst.rate.expect("is known").value), ("parse+0x0", 0.40));
//! assert_eq!(worst.share.value, 0.75);
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::BranchesView;

use std::collections::BTreeMap;

use precise_common::ibs::OutcomeBits as Bits;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{EventSummary, Run};
use super::again::Again;
use super::code::{self, Code, function_of};
use super::needs::{self, Needs};
use super::stats::{MIN_SAMPLES, Samples, Share, Weight};
use super::weighing::Weighing;
use super::{ViewError, trust};
use precise_code::{BranchKind, FunctionId, Instruction};
use precise_model::TaggedOf;
use precise_model::digits::counted;
use precise_model::{
    Capture, CodeLocation, CompactSort as _, DataLocation, Dimension, EventInfo, Name, NameId, Outcome,
    Reason, Row,
};
use precise_model::{PmuKind, Preset};

/// Options for `precise branches`.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchOptions {
    /// Number of branch sites to show of each event.
    pub limit: usize,
    /// Minimum number of samples for a ranking.
    pub min_samples: u64,
}

impl Default for BranchOptions {
    fn default() -> Self {
        Self { limit: 20, min_samples: MIN_SAMPLES }
    }
}

/// The result of `precise branches`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Branches {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// One entry per event whose samples are branches.
    pub events: Vec<BranchEvent>,
}

/// What the samples of an event represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BranchBasis {
    /// All branches, predicted correctly or not. Rates are known.
    Branches,
    /// Mispredicted branches only. How often the same branches were predicted correctly is unknown.
    Mispredictions,
}

/// The branches of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BranchEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// What the samples of the event represent.
    pub basis: BranchBasis,
    /// Number of samples that are branches.
    pub branches: u64,
    /// Number of samples that are mispredicted branches.
    pub mispredicted: u64,
    /// Fraction of the branches that was mispredicted; `None` if it is unknown.
    pub rate: Option<Share>,
    /// Branch sites, those with most mispredictions first. Empty if there are too few samples.
    pub sites: Vec<BranchSite>,
    /// Number of sites that the limit left out, and the number of their mispredictions.
    pub left_out: (usize, u64),
    /// Number of samples that a ranking needs. Present if there are fewer.
    pub too_few: Option<u64>,
    /// Number of samples that are not branches, or whose instruction is unknown. They are in no
    /// table.
    pub without: u64,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// A branch site: one branch instruction in the code.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BranchSite {
    /// Function with the distance from its start; without a known function, the file and
    /// the offset in it.
    pub place: String,
    /// File of the code, `[kernel]`, or the name of a kernel module.
    pub module: String,
    /// Source file and line, if known.
    pub line: Option<String>,
    /// Kind of branch, from the decoded instruction. `None` if the code cannot be read, or the
    /// instruction is not a branch.
    pub kind: Option<BranchKind>,
    /// Why the code cannot be read; `None` if it can.
    #[serde(serialize_with = "code::reason")]
    #[schemars(with = "Option<Reason>")]
    pub no_code: Option<Reason>,
    /// The target of the branch when it is taken; `None` if it is unknown.
    pub target: Option<BranchTarget>,
    /// Number of samples of this branch.
    pub branches: u64,
    /// Fraction of these samples in which the branch was taken; `None` if it is unknown.
    pub taken: Option<Share>,
    /// Number of samples in which the branch was mispredicted.
    pub mispredicted: u64,
    /// Fraction of the samples of this branch that was mispredicted; `None` if it is unknown.
    pub rate: Option<Share>,
    /// Fraction of all sampled mispredictions that this branch accounts for.
    pub share: Share,
    /// Average time since the branch before it, in core cycles; `None` unless branch records with
    /// cycles were imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<f64>,
}

/// The target of a branch.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BranchTarget {
    /// Target: `+0x1c` is an offset in the same function; otherwise a name or an address.
    pub to: String,
    /// Whether the target comes from the samples; otherwise it was decoded from the instruction.
    pub sampled: bool,
    /// Number of other targets that were sampled.
    pub others: usize,
}

/// Identifies a branch site by the position of its instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct SiteKey {
    kernel: bool,
    module: Name,
    build_id: NameId,
    at: u64,
}

/// The samples of one branch site.
#[derive(Default)]
struct Tally {
    branches: Samples,
    taken: Samples,
    mispredicted: Samples,
    fused: bool,
    location: usize,
    targets: BTreeMap<String, Samples>,
    /// The samples with cycles, and their cycles.
    timed: Samples,
    cycles: Weight,
}

/// Returns what the samples of an event represent; `None` if they are not branches, or do not
/// report it.
fn basis(info: &EventInfo) -> Option<BranchBasis> {
    if info.fields.outcome && info.pmu != PmuKind::IbsFetch {
        return Some(BranchBasis::Branches);
    }
    let name = info.name.to_ascii_lowercase();
    let named = ["br_misp_retired", "branch-misses"].iter().any(|event| name.contains(event));
    // Event code 0xc5 is BR_MISP_RETIRED on every Intel core; on AMD it counts retired taken
    // branches that were mispredicted.
    let by_code = info.pmu.select().is_some_and(|select| select.event == 0xc5);
    (named || by_code).then_some(BranchBasis::Mispredictions)
}

/// Returns the branches of a capture. `code` decodes their instructions.
///
/// # Errors
///
/// Returns an error if the capture lacks branch outcomes. The message names the command that
/// records them.
pub fn branches(
    capture: &Capture,
    options: &BranchOptions,
    code: &mut dyn Code,
) -> Result<Branches, ViewError> {
    let mut needs = Needs::of::<BranchesView>();
    // Events that count only mispredictions need no recorded outcome.
    if !capture.meta.events.iter().any(|info| basis(info) == Some(BranchBasis::Mispredictions)) {
        needs = needs.with(&[Dimension::Outcome]);
    }
    needs.check(capture)?;
    let trust = trust::trust(capture);
    let mut events = Vec::new();
    for (index, (info, trust)) in capture.meta.events.iter().zip(trust.events).enumerate() {
        if let Some(basis) = basis(info) {
            events.push(of_event(capture, options, index, basis, EventSummary::of(info, trust), code));
        }
    }
    Ok(Branches { run: Run::of(capture), events })
}

fn of_event(
    capture: &Capture,
    options: &BranchOptions,
    index: usize,
    basis: BranchBasis,
    event: EventSummary,
    code: &mut dyn Code,
) -> BranchEvent {
    let info = &capture.meta.events[index];
    let of_targets = info.tagged == Some(TaggedOf::Branch) && needs::has(capture, Dimension::Address);
    let weighing = Weighing::of(capture, index);
    let (mut sites, mut without) = (FxHashMap::<SiteKey, Tally>::default(), 0u64);
    for row in capture.rows.iter().filter(|row| usize::from(row.event) == index) {
        let samples = weighing.samples(row);
        let bits = match (basis, row.outcome) {
            (BranchBasis::Mispredictions, _) => Some(Bits(Bits::BRANCH | Bits::MISPREDICTED)),
            (BranchBasis::Branches, Some(Outcome::Op(bits))) => {
                Some(Bits(bits)).filter(|bits| bits.has(Bits::BRANCH))
            }
            (BranchBasis::Branches, _) => None,
        };
        let location = row.code.and_then(|id| Some((id as usize, capture.code.get(id as usize)?)));
        let (Some(bits), Some((id, location))) = (bits, location) else {
            without = without.saturating_add(samples.count);
            continue;
        };
        let tally = sites.entry(key(location)).or_default();
        let add = |bit, sum: &mut Samples| {
            if bits.has(bit) {
                sum.add(samples);
            }
        };
        add(Bits::BRANCH, &mut tally.branches);
        add(Bits::TAKEN, &mut tally.taken);
        add(Bits::MISPREDICTED, &mut tally.mispredicted);
        if row.latency_bucket.is_some() {
            tally.timed.add(samples);
            tally.cycles.add(weighing.latency(row));
        }
        tally.fused |= bits.has(Bits::FUSED);
        tally.location = id;
        if let Some(target) = target_of(capture, row).filter(|_| of_targets && bits.has(Bits::TAKEN)) {
            tally.targets.entry(target).or_default().add(samples);
        }
    }
    let sum = |of: fn(&Tally) -> Samples| sites.values().map(of).sum::<Samples>();
    let (all, mispredicted) = (sum(|tally| tally.branches), sum(|tally| tally.mispredicted));
    let too_few = (all.count < options.min_samples).then_some(options.min_samples);
    let mut sites: Vec<_> = if too_few.is_some() { Vec::new() } else { sites.into_iter().collect() };
    sites.compact_sort_by(|(key_a, a), (key_b, b)| {
        let first = b.mispredicted.order(&a.mispredicted).then(b.branches.order(&a.branches));
        first.then_with(|| key_a.cmp(key_b))
    });
    let kept = options.limit.min(sites.len());
    let rest =
        sites[kept..].iter().fold(0u64, |sum, (_, tally)| sum.saturating_add(tally.mispredicted.count));
    let left_out = (sites.len() - kept, rest);
    let mut decoder = Decoder { code, listings: FxHashMap::default() };
    let sites: Vec<_> = sites
        .into_iter()
        .take(kept)
        .map(|(_, tally)| site(capture, basis, tally, mispredicted, &mut decoder))
        .collect();
    let notes = notes(capture, info, basis, of_targets, without);
    BranchEvent {
        event,
        basis,
        branches: all.count,
        mispredicted: mispredicted.count,
        rate: (basis == BranchBasis::Branches).then(|| mispredicted.share_of(all)),
        sites,
        left_out,
        too_few,
        without,
        notes,
    }
}

fn key(location: &CodeLocation) -> SiteKey {
    let named = matches!(location.module, Name::Known(_));
    let at = if location.kernel || !named { location.runtime_address } else { location.file_offset };
    SiteKey { kernel: location.kernel, module: location.module, build_id: location.build_id, at }
}

/// Reads the instructions of functions, each function once.
struct Decoder<'a> {
    code: &'a mut dyn Code,
    listings: FxHashMap<FunctionId, Result<Vec<Instruction>, Reason>>,
}

fn site(
    capture: &Capture,
    basis: BranchBasis,
    tally: Tally,
    all: Samples,
    decoder: &mut Decoder<'_>,
) -> BranchSite {
    let location = &capture.code[tally.location];
    let text = |id: NameId| capture.names.get(id).to_owned();
    let function = function_of(capture, location);
    let listing = match &function {
        None => Err(Reason::NoSymbol),
        Some(id) => match decoder.listings.get(id) {
            Some(listing) => listing.as_ref().map(Vec::as_slice).map_err(|why| *why),
            None => {
                let listing = decoder.code.instructions(id);
                let kept = decoder.listings.entry(id.clone()).or_insert(listing);
                kept.as_ref().map(Vec::as_slice).map_err(|why| *why)
            }
        },
    };
    let instruction =
        listing.as_ref().ok().and_then(|listing| at(listing, location.function_offset, tally.fused));
    let branch = instruction.and_then(|instruction| instruction.branch);
    let base = instruction.map(|instruction| instruction.address.wrapping_sub(instruction.offset));
    let end = listing.as_ref().ok().and_then(|listing| listing.last()).map(|last| last.address);
    let by_code = branch.and_then(|branch| branch.target).map(|target| {
        let inside = base.zip(end).filter(|(start, end)| (*start..=*end).contains(&target));
        BranchTarget {
            to: inside.map_or(format!("{target:#x}"), |(start, _)| format!("+{:#x}", target - start)),
            sampled: false,
            others: 0,
        }
    });
    let most = tally.targets.iter().max_by(|(to, a), (other, b)| a.order(b).then_with(|| other.cmp(to)));
    let by_samples =
        most.map(|(to, _)| BranchTarget { to: to.clone(), sampled: true, others: tally.targets.len() - 1 });
    let known = basis == BranchBasis::Branches;
    BranchSite {
        place: match &function {
            Some(id) => format!("{}+{:#x}", id.name, location.function_offset),
            None => {
                let file = match location.module {
                    Name::Known(id) => text(id).rsplit('/').next().unwrap_or_default().to_owned() + "+",
                    Name::Unknown(_) => String::new(),
                };
                format!("{file}{:#x}", key(location).at)
            }
        },
        module: match location.module {
            Name::Known(id) => text(id),
            Name::Unknown(reason) => format!("[{}]", reason.words()),
        },
        line: match location.source {
            Name::Known(id) if location.line > 0 => Some(format!("{}:{}", text(id), location.line)),
            _ => None,
        },
        kind: branch.map(|branch| branch.kind),
        no_code: listing.err(),
        // A target that the instruction names is exact. A sampled target may be rounded down to a
        // cache line.
        target: by_code.or(by_samples),
        branches: tally.branches.count,
        taken: known.then(|| tally.taken.share_of(tally.branches)),
        mispredicted: tally.mispredicted.count,
        rate: known.then(|| tally.mispredicted.share_of(tally.branches)),
        share: tally.mispredicted.share_of(all),
        cycles: (tally.timed.count > 0).then(|| tally.cycles.sum / tally.timed.weight.sum),
    }
}

/// Returns the instruction at an offset. The hardware may report a branch that is fused with the
/// preceding compare at the address of the compare: then the branch is returned.
fn at(listing: &[Instruction], offset: u64, fused: bool) -> Option<&Instruction> {
    let index = listing.binary_search_by_key(&offset, |instruction| instruction.offset).ok()?;
    let next = listing
        .get(index + 1)
        .filter(|next| fused && next.branch.is_some_and(|branch| branch.kind == BranchKind::Conditional));
    let own = &listing[index];
    if own.branch.is_some() { Some(own) } else { next.or(Some(own)) }
}

/// Returns the name of a sampled target.
fn target_of(capture: &Capture, row: &Row) -> Option<String> {
    let data: &DataLocation = capture.data.get(row.data? as usize)?;
    let text = |id: NameId| capture.names.get(id);
    Some(match (data.variable, data.region) {
        (Name::Known(name), _) if data.variable_offset == 0 => text(name).to_owned(),
        (Name::Known(name), _) => format!("{}+{:#x}", text(name), data.variable_offset),
        (_, Name::Known(region)) if text(region).starts_with('/') => {
            let file = text(region).rsplit('/').next().unwrap_or_default();
            format!("{file}+{:#x}", data.file_offset)
        }
        _ => format!("{:#x}", data.runtime_address),
    })
}

/// Returns how to make a capture with the targets of branches.
fn targets(capture: &Capture, info: &EventInfo) -> Again {
    let needed = [Dimension::Ip, Dimension::Address, Dimension::Outcome];
    let import = Again::import(capture, &needed).filter(|_| info.tagged == Some(TaggedOf::Branch));
    import.unwrap_or_else(|| match Again::record(capture, Preset::Branches.name(), &needed) {
        Again::Record(command) => Again::Record(command + " --granule 1"),
        again => again,
    })
}

fn notes(
    capture: &Capture,
    info: &EventInfo,
    basis: BranchBasis,
    of_targets: bool,
    without: u64,
) -> Vec<String> {
    let mut notes = Vec::new();
    match basis {
        BranchBasis::Mispredictions => notes.push(
            "Each sample is a mispredicted branch. The capture does not tell how often a branch was \
             predicted or taken, nor where an indirect branch went."
                .to_owned(),
        ),
        BranchBasis::Branches if !of_targets => notes.push(format!(
            "The targets of indirect branches and returns are unknown. {}",
            targets(capture, info)
        )),
        BranchBasis::Branches if capture.meta.address_granule > 1 => notes.push(format!(
            "Sampled targets are rounded down to multiples of {} bytes; --granule 1 keeps them exact.",
            capture.meta.address_granule
        )),
        BranchBasis::Branches => {}
    }
    if without > 0 {
        notes.push(format!(
            "Not in the tables: {} of {} at other instructions than branches.",
            counted(without, "sample"),
            info.name
        ));
    }
    notes
}
