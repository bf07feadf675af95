//! `precise types`: the structs, and the fields in them, that sampled instructions access.
//!
//! The types come from the debug information of the binaries, through [`Code::types`]. Where a
//! capture has data addresses, they check the types: the address minus the distance of the field is
//! where the object begins, and two fields of one object must agree about that.
//!
//! A sample without a type has a reason, and the account adds up:
//!
//! ```
//! use precise_code::types::TypedCode;
//! use precise_code::{FunctionId, Instruction};
//! use precise_model::{Reason, testing::CaptureBuilder};
//! use precise_views::code::Code;
//! use precise_views::types::{TypesOptions, types};
//!
//! /// A machine on which the program is not installed any more.
//! struct Elsewhere;
//!
//! impl Code for Elsewhere {
//!     fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
//!         Err(Reason::FileMissing)
//!     }
//!     fn source(&mut self, _: &str, _: u32) -> Option<String> {
//!         None
//!     }
//!     fn types(&mut self, _: &FunctionId, _: &[u64]) -> Result<TypedCode, Reason> {
//!         Err(Reason::FileMissing)
//!     }
//! }
//!
//! let mut made = CaptureBuilder::new();
//! made.cell().samples(300).code(0x1000, "/usr/bin/app", "match_order", "", 0);
//!
//! let profile = types(&made.build(), &TypesOptions::default(), &mut Elsewhere)?;
//!
//! let event = &profile.events[0];
//! let untyped: u64 = event.untyped.iter().map(|missing| missing.samples).sum();
//! assert_eq!((event.samples, untyped), (300, 300));
//! assert_eq!(event.untyped[0].words, "code not available");
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod advise;
mod check;
pub mod csv;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod view;

pub use view::TypesView;

use std::collections::{BTreeMap, BTreeSet};

use precise_code::FunctionId;
use precise_code::types::{Kind, Object, TypeLayout, TypedAccess, TypedCode, Untyped};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::about::{EventSummary, Run};
use super::code::{Code, Tally, function_of};
use super::needs::Needs;
use super::stats::{MIN_SAMPLES, Samples, Share};
use super::weighing::Weighing;
use super::{ViewError, trust};
use advise::{Language, LayoutAdvice, VisitKey, Visits};
use check::Bases;
use precise_model::accesses::{MAX_FUNCTIONS, NO_ACCESS, NO_CODE, NO_FUNCTION, NOT_LOOKED_AT};
use precise_model::sampled::SampledAccess;
use precise_model::{Capture, CompactSort as _, Name, Row};

/// Options for `precise types`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypesOptions {
    /// Number of types to show of each event.
    pub limit: usize,
    /// Minimum number of accesses for shares.
    pub min_samples: u64,
    /// Show only types whose name is or contains one of these; empty for all.
    pub names: Vec<String>,
    /// Whether to advise another order of the members.
    pub advise: bool,
}

impl Default for TypesOptions {
    fn default() -> Self {
        Self { limit: 20, min_samples: MIN_SAMPLES, names: Vec::new(), advise: false }
    }
}

/// The result of `precise types`: the types that the samples of a capture access.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TypeProfile {
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// One entry per event.
    pub events: Vec<TypesEvent>,
}

/// The types of one event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TypesEvent {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// Number of samples of the event.
    pub samples: u64,
    /// Number of samples without those at instructions that access no memory. All shares are
    /// relative to these.
    pub accesses: u64,
    /// Number of accesses that the shares need. Present if there are fewer.
    pub too_few: Option<u64>,
    /// Fraction of the accesses whose type is known.
    pub typed: Share,
    /// What the data addresses say about the types.
    pub checked: AddressChecks,
    /// The types with the largest shares, largest first.
    pub types: Vec<SampledType>,
    /// Number of types that the limit left out, and the number of their samples.
    pub left_out: (usize, u64),
    /// Samples without a type, by the reason, most first. With those of all types they add up to
    /// the samples of the event.
    pub untyped: Vec<Missing>,
    /// Caveats about these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// Numbers of typed samples by what their data address says about the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct AddressChecks {
    /// The object is a global variable that contains the address, or another field of the same type
    /// leads to the same object.
    pub confirmed: u64,
    /// The object would be misaligned, outside of its variable, or overlap with another one.
    pub contradicted: u64,
    /// The address says nothing about the type, or was not recorded.
    pub not_checkable: u64,
}

/// Samples without a type, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Missing {
    /// The reason as one word.
    pub reason: String,
    /// The reason in a few words.
    pub words: String,
    /// Number of samples.
    pub samples: u64,
}

/// A type that samples access.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SampledType {
    /// The name, with its namespace.
    pub name: String,
    /// How it is built.
    pub kind: Kind,
    /// The size in bytes.
    pub size: u64,
    /// The alignment in bytes; 1 if it is not known.
    pub alignment: u64,
    /// Number of samples.
    pub samples: u64,
    /// Fraction of the accesses.
    pub share: Share,
    /// Fraction of the latency of all accesses; `None` without latencies.
    pub latency_share: Option<Share>,
    /// Average latency in core cycles; `None` without latencies.
    pub average: Option<f64>,
    /// Number of samples at instructions that only read.
    pub loads: u64,
    /// Number of samples at instructions that write.
    pub stores: u64,
    /// What the data addresses say about the type.
    pub checked: AddressChecks,
    /// Whether the data addresses contradict the type too often: in more than 2 % of the samples
    /// that they can check, at the upper end of the interval.
    pub uncertain: bool,
    /// All fields, by their offset, with padding left out.
    pub fields: Vec<SampledField>,
    /// Number of samples in padding, or in a part of the object that has no field.
    pub elsewhere: u64,
    /// The members in another order, if that was asked for. It counts the samples of all events, so
    /// that each event has the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<LayoutAdvice>,
}

/// A field of a type, with its samples.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SampledField {
    /// The name, after the names of the fields that contain it.
    pub name: String,
    /// The name of its type.
    pub type_name: String,
    /// The distance from the start of the object in bytes.
    pub offset: u64,
    /// The size in bytes.
    pub size: u64,
    /// Number of samples.
    pub samples: u64,
    /// Fraction of the samples of the type.
    pub share: Share,
    /// Number of samples at instructions that only read.
    pub loads: u64,
    /// Number of samples at instructions that write.
    pub stores: u64,
    /// Average latency in core cycles; `None` without latencies.
    pub average: Option<f64>,
    /// Number of threads that access it; `None` if the run does not record threads.
    pub threads: Option<usize>,
}

/// Returns the types that the samples of a capture access.
///
/// # Errors
///
/// Returns an error if the capture has no instructions. The message names the command that records
/// them.
pub fn types(
    capture: &Capture,
    options: &TypesOptions,
    files: &mut dyn Code,
) -> Result<TypeProfile, ViewError> {
    Needs::of::<TypesView>().check(capture)?;
    let infos = &capture.meta.events;
    // The visits of all events are one, because an event may sample only loads, or only stores.
    let mut visits = Visits::default();
    let mut all = Vec::with_capacity(infos.len());
    for index in 0..infos.len() {
        let mut sorted = sort(capture, options, index, std::mem::take(&mut visits), files);
        visits = std::mem::take(&mut sorted.visits);
        all.push(sorted);
    }
    let events = infos.iter().zip(trust::trust(capture).events).zip(all).enumerate();
    let events = events.map(|(index, ((info, trust), sorted))| {
        let event = EventSummary::of(info, trust);
        sorted.done(options, event, super::samples(capture, index), &visits)
    });
    Ok(TypeProfile { run: Run::of(capture), events: events.collect() })
}

/// The samples at one instruction.
type At<'a> = BTreeMap<u64, Vec<&'a Row>>;

/// The samples of one event while they are sorted.
struct Sorted<'a> {
    capture: &'a Capture,
    weighing: Weighing,
    /// By the number of the type.
    types: Vec<(TypeLayout, Heat)>,
    numbers: BTreeMap<TypeLayout, usize>,
    bases: Bases<'a>,
    /// Of the types for which another order is asked, in this event and those before it.
    visits: Visits,
    options: &'a TypesOptions,
    typed: Tally,
    all: Samples,
    /// Samples by the reason: one word, and a few words.
    untyped: BTreeMap<(&'static str, &'static str), Samples>,
}

/// The samples of a type.
#[derive(Default)]
struct Heat {
    all: Tally,
    loads: u64,
    stores: u64,
    /// By the offset of the field.
    fields: BTreeMap<u64, FieldHeat>,
    elsewhere: u64,
}

#[derive(Default)]
struct FieldHeat {
    all: Tally,
    loads: u64,
    stores: u64,
    threads: BTreeSet<(u32, u32)>,
}

/// Samples at instructions that access no memory: they are no accesses.
const WITHOUT_ACCESS: (&str, &str) = ("no-access", NO_ACCESS);

/// Sorts the samples of an event by type, and adds their visits to those of the events before it.
fn sort<'a>(
    capture: &'a Capture,
    options: &'a TypesOptions,
    index: usize,
    visits: Visits,
    files: &mut dyn Code,
) -> Sorted<'a> {
    let mut sorted = Sorted {
        capture,
        weighing: Weighing::of(capture, index),
        types: Vec::new(),
        numbers: BTreeMap::new(),
        bases: Bases::of(capture),
        visits,
        options,
        typed: Tally::default(),
        all: Samples::default(),
        untyped: BTreeMap::new(),
    };
    for (number, (id, at)) in sorted.functions(index).into_iter().enumerate() {
        if number >= MAX_FUNCTIONS {
            at.values().flatten().for_each(|row| sorted.miss(row, ("not-looked-at", NOT_LOOKED_AT)));
            continue;
        }
        let wanted: Vec<u64> = at.keys().copied().collect();
        match files.types(&id, &wanted) {
            Ok(code) => sorted.function(&code, &at),
            Err(_) => at.values().flatten().for_each(|row| sorted.miss(row, ("no-code", NO_CODE))),
        }
    }
    sorted
}

impl<'a> Sorted<'a> {
    /// Returns the samples of an event by function and instruction, most samples first.
    fn functions(&mut self, event: usize) -> Vec<(FunctionId, At<'a>)> {
        let capture = self.capture;
        let mut functions: FxHashMap<FunctionId, (Samples, At<'a>)> = FxHashMap::default();
        for row in capture.rows.iter().filter(|row| usize::from(row.event) == event) {
            let location = row.code.and_then(|id| capture.code.get(id as usize));
            match location.and_then(|location| Some((location, function_of(capture, location)?))) {
                Some((location, id)) => {
                    let (samples, at) = functions.entry(id).or_default();
                    samples.add(self.weighing.samples(row));
                    at.entry(location.function_offset).or_default().push(row);
                }
                None => self.miss(row, ("no-function", NO_FUNCTION)),
            }
        }
        let mut functions: Vec<_> = functions.into_iter().collect();
        functions.compact_sort_by(|(id_a, (a, _)), (id_b, (b, _))| b.order(a).then_with(|| id_a.cmp(id_b)));
        functions.into_iter().map(|(id, (_, at))| (id, at)).collect()
    }

    fn miss(&mut self, row: &Row, why: (&'static str, &'static str)) {
        let samples = self.weighing.samples(row);
        self.all.add(samples);
        self.untyped.entry(why).or_default().add(samples);
    }

    fn function(&mut self, code: &TypedCode, at: &At<'a>) {
        let found: FxHashMap<u64, &[TypedAccess]> =
            code.instructions.iter().map(|i| (i.offset, i.accesses.as_slice())).collect();
        // Layouts are compared once for a function and not for each row.
        let mut numbers: Vec<Option<usize>> = vec![None; code.layouts.len()];
        for (offset, rows) in at {
            let accesses = found.get(offset).copied().unwrap_or_default();
            for row in rows {
                let access = chosen(self.capture, accesses, row);
                match access.map(|access| (access, access.object)) {
                    None => self.miss(row, WITHOUT_ACCESS),
                    Some((_, Err(why))) => self.miss(row, (tag(why), why.words())),
                    Some((access, Ok(object))) => {
                        let index = object.layout as usize;
                        match code.layouts.get(index).zip(numbers.get_mut(index)) {
                            Some((layout, number)) => {
                                let number = *number.get_or_insert_with(|| self.number(layout));
                                self.typed(row, (access, object), (number, layout), code);
                            }
                            None => self.miss(row, (tag(Untyped::NoType), Untyped::NoType.words())),
                        }
                    }
                }
            }
        }
    }

    fn number(&mut self, layout: &TypeLayout) -> usize {
        if let Some(number) = self.numbers.get(layout) {
            return *number;
        }
        self.numbers.insert(layout.clone(), self.types.len());
        self.types.push((layout.clone(), Heat::default()));
        self.types.len() - 1
    }

    fn typed(
        &mut self,
        row: &Row,
        (access, object): (TypedAccess, Object),
        (number, layout): (usize, &TypeLayout),
        code: &TypedCode,
    ) {
        let count = row.measures.count;
        self.all.add(self.weighing.samples(row));
        self.typed.add(row, self.weighing);
        self.bases.add(row, object, (number, layout), code);
        if self.options.advise && named(layout, &self.options.names) {
            self.visit(row, access, object, layout);
        }
        let Some((_, heat)) = self.types.get_mut(number) else { return };
        let (loads, stores) = if access.writes { (0, count) } else { (count, 0) };
        heat.all.add(row, self.weighing);
        heat.loads = heat.loads.saturating_add(loads);
        heat.stores = heat.stores.saturating_add(stores);
        let Some(field) = layout.field_at(object.offset) else {
            heat.elsewhere = heat.elsewhere.saturating_add(count);
            return;
        };
        let field = heat.fields.entry(field.offset).or_default();
        field.all.add(row, self.weighing);
        field.loads = field.loads.saturating_add(loads);
        field.stores = field.stores.saturating_add(stores);
        if row.tid != 0 {
            field.threads.insert((row.pid, row.tid));
        }
    }

    /// Adds the samples of a row to the visits of its object.
    fn visit(&mut self, row: &Row, access: TypedAccess, object: Object, layout: &TypeLayout) {
        let exact = self.capture.meta.address_granule <= 1 && !object.indexed;
        let data = row.data.and_then(|id| self.capture.data.get(id as usize)).filter(|_| exact);
        let base = data.and_then(|data| data.runtime_address.checked_sub(object.offset));
        let visit = base.map(|base| VisitKey { pid: row.pid, base, epoch: row.epoch, tid: row.tid });
        let source = row.code.and_then(|id| self.capture.code.get(id as usize)).map(|code| code.source);
        let language = match source {
            Some(Name::Known(file)) => Language::of(self.capture.names.get(file)),
            _ => Language::C,
        };
        self.visits.add(layout, object.offset, (row.measures.count, access.writes), visit, language);
    }

    fn done(
        mut self,
        options: &TypesOptions,
        event: EventSummary,
        samples: u64,
        visits: &Visits,
    ) -> TypesEvent {
        let no_access = self.untyped.get(&WITHOUT_ACCESS).copied().unwrap_or_default();
        let mut whole = self.typed.samples();
        self.untyped
            .iter()
            .filter(|(why, _)| **why != WITHOUT_ACCESS)
            .for_each(|(_, samples)| whole.add(*samples));
        let accesses = self.all.count.saturating_sub(no_access.count);
        let checked = self.bases.judge();
        let timed = event.has_latency && self.typed.sum.measures.latency_sum > 0;
        let has_threads = self.capture.rows.iter().any(|row| row.tid != 0);
        let with = (whole, timed, has_threads);
        let mut types: Vec<SampledType> = std::mem::take(&mut self.types)
            .into_iter()
            .enumerate()
            .filter(|(_, (layout, _))| named(layout, &options.names))
            .map(|(number, (layout, heat))| {
                let advice = visits.advice(&layout);
                SampledType { advice, ..self.sampled_type(layout, &heat, number, with) }
            })
            .collect();
        types.compact_sort_by(|a, b| {
            let weight = |t: &SampledType| t.latency_share.map_or(t.share.value, |share| share.value);
            weight(b).total_cmp(&weight(a)).then_with(|| a.name.cmp(&b.name))
        });
        let too_few = (accesses < options.min_samples).then_some(options.min_samples);
        let left_out = types.split_off(options.limit.min(types.len()));
        let rest = left_out.iter().fold(0_u64, |sum, one| sum.saturating_add(one.samples));
        let mut untyped: Vec<Missing> = self
            .untyped
            .iter()
            .map(|((reason, words), samples)| Missing {
                reason: (*reason).to_owned(),
                words: (*words).to_owned(),
                samples: samples.count,
            })
            .collect();
        untyped.compact_sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.reason.cmp(&b.reason)));
        let typed = self.typed.samples().share_of(whole);
        let left_out = (left_out.len(), rest);
        let notes = Vec::new();
        TypesEvent { event, samples, accesses, too_few, typed, checked, types, left_out, untyped, notes }
    }

    fn sampled_type(
        &self,
        layout: TypeLayout,
        heat: &Heat,
        number: usize,
        (whole, timed, has_threads): (Samples, bool, bool),
    ) -> SampledType {
        let all = heat.all.samples();
        let checked = self.bases.checked(number);
        let average = |tally: &Tally| tally.sum.average().filter(|_| timed);
        let nothing = FieldHeat::default();
        let fields = layout.fields.iter().map(|field| {
            let found = heat.fields.get(&field.offset);
            // Of fields that overlap, the first one has the samples.
            let first = layout.field_at(field.offset).is_some_and(|first| std::ptr::eq(first, field));
            let heat = found.filter(|_| first).unwrap_or(&nothing);
            SampledField {
                name: field.name.clone(),
                type_name: field.type_name.clone(),
                offset: field.offset,
                size: field.size,
                samples: heat.all.samples().count,
                share: heat.all.samples().share_of(all),
                loads: heat.loads,
                stores: heat.stores,
                average: average(&heat.all),
                threads: has_threads.then_some(heat.threads.len()),
            }
        });
        SampledType {
            fields: fields.collect(),
            kind: layout.kind,
            size: layout.size,
            alignment: layout.alignment,
            samples: all.count,
            share: all.share_of(whole),
            latency_share: timed.then(|| heat.all.sum.latency_share(&self.typed.sum)),
            average: average(&heat.all),
            loads: heat.loads,
            stores: heat.stores,
            checked,
            uncertain: checked.is_uncertain(),
            elsewhere: heat.elsewhere,
            advice: None,
            name: layout.name,
        }
    }
}

impl AddressChecks {
    /// The largest fraction of contradictions of a type that is shown without a warning.
    const MAX_CONTRADICTED: f64 = 0.02;

    fn is_uncertain(self) -> bool {
        let checkable = self.confirmed.saturating_add(self.contradicted);
        self.contradicted > 0 && Share::wilson(self.contradicted, checkable).high > Self::MAX_CONTRADICTED
    }

    /// Returns the number of samples.
    pub fn all(self) -> u64 {
        self.confirmed.saturating_add(self.contradicted).saturating_add(self.not_checkable)
    }
}

/// Returns the access that a sample is about; `None` if the instruction accesses no memory.
fn chosen(capture: &Capture, accesses: &[TypedAccess], row: &Row) -> Option<TypedAccess> {
    match SampledAccess::of(capture, row, accesses, |access| (access.reads, access.writes)) {
        SampledAccess::Nothing => None,
        SampledAccess::One(index) => accesses.get(index).copied(),
        SampledAccess::Several => {
            accesses.first().map(|first| TypedAccess { object: Err(Untyped::Several), ..*first })
        }
    }
}

/// Returns whether a type is one of those that the user named.
fn named(layout: &TypeLayout, names: &[String]) -> bool {
    names.is_empty() || names.iter().any(|name| layout.name.contains(name.as_str()))
}

/// Returns a reason as one word, as JSON has it.
fn tag(why: Untyped) -> &'static str {
    match why {
        Untyped::NoDebugInfo => "no-debug-info",
        Untyped::NoVariables => "no-variables",
        Untyped::NoRegister => "no-register",
        Untyped::Conflict => "conflict",
        Untyped::NoType => "no-type",
        Untyped::Outside => "outside",
        Untyped::Index => "index",
        Untyped::Vector => "vector",
        Untyped::Stack => "stack",
        Untyped::NoGlobal => "no-global",
        Untyped::Segment => "segment",
        Untyped::Several => "several",
        Untyped::NotDecoded => "not-decoded",
        Untyped::TooLarge => "too-large",
    }
}

/// Returns the name of the variable that contains the data of a sample, and the distance from its
/// start.
fn variable(capture: &Capture, row: &Row) -> Option<(String, u64)> {
    let data = capture.data.get(row.data? as usize)?;
    let Name::Known(name) = data.variable else { return None };
    Some((capture.names.get(name).to_owned(), data.variable_offset))
}
