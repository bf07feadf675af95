//! `precise types --advise`: the members of a struct in another order.
//!
//! Members that are used together, in one object, come first and beside each other. If one thread
//! writes a member and another thread uses another one, the two get different lines. Members that
//! one thread writes and another uses come last, each on a line of its own. What the order would
//! change is counted in the visits that were sampled: the distinct lines of an object that a thread
//! touches in an epoch, before and after. How much faster that makes a program is not known.

mod declaration;
mod packing;
mod sharing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::cache_line::LINE;
use precise_code::types::{Field, TypeLayout};
use precise_model::CompactSort as _;
use schemars::JsonSchema;
use serde::Serialize;

pub(super) use declaration::Language;
use sharing::Sharing;

/// Maximum number of visits that are kept of all types.
const MAX_VISITS: usize = 1 << 18;
/// Number of visits to two members or more below which the order is that of the samples alone.
const MIN_PAIRS: u64 = 20;

/// The advice about the layout of one type.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LayoutAdvice {
    /// Why there is no other order; `None` if there is one.
    pub refused: Option<String>,
    /// The definition, to be pasted, in the language of the code that uses the type.
    pub definition: String,
    /// The members in the advised order.
    pub members: Vec<AdvisedMember>,
    /// The size of the struct in bytes, as advised.
    pub size: u64,
    /// The number of visits: objects that a thread used in an epoch.
    pub visits: u64,
    /// The number of distinct objects.
    pub objects: u64,
    /// The average number of distinct lines of each visit, as the struct is now.
    pub lines_now: MeanLines,
    /// The same number, as advised.
    pub lines_advised: MeanLines,
    /// The number of lines of a visit that the order saves.
    pub saved: MeanLines,
    /// Whether there were enough visits to two members or more for an order by what is used
    /// together. Otherwise, it is that of the samples alone.
    pub by_affinity: bool,
    /// Whether lines are left unfilled to keep apart what one thread writes from what others use.
    pub apart: bool,
}

/// A member in the advised order.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AdvisedMember {
    /// The name.
    pub name: String,
    /// The type, as the language declares it; what it is, if it has no name.
    pub type_name: String,
    /// Whether the definition has bytes in its place, because its type has no name in the debug
    /// information: a pointer to a function, or a struct without a name.
    pub declared_before: bool,
    /// The distance from the start of the object now, in bytes.
    pub offset_now: u64,
    /// The distance from the start of the object as advised, in bytes.
    pub offset: u64,
    /// The size in bytes.
    pub size: u64,
    /// Number of samples.
    pub samples: u64,
    /// Whether one thread writes it and another one uses it, in one object.
    pub write_shared: bool,
}

/// An average number of lines, with its 95 % interval from a bootstrap over the objects.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct MeanLines {
    /// The average.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Who used an object, and when: the process, the object's address, the epoch and the thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VisitKey {
    pub pid: u32,
    pub base: u64,
    pub epoch: u32,
    pub tid: u32,
}

/// The uses of a byte of an object.
#[derive(Clone, Copy, Default)]
struct ByteUses {
    samples: u64,
    /// The samples of writes among them.
    written: u64,
}

/// The bytes of an object that a thread used in an epoch, by their distance from its start.
type Visit = BTreeMap<u64, ByteUses>;

/// The visits to the objects of all types that are asked about.
#[derive(Default)]
pub(super) struct Visits {
    by_type: BTreeMap<TypeLayout, OfType>,
    kept: usize,
}

/// The samples of one type.
#[derive(Default)]
struct OfType {
    visits: BTreeMap<VisitKey, Visit>,
    /// All samples, also those of no known object, by the distance from the start.
    samples: BTreeMap<u64, u64>,
    languages: BTreeMap<Language, u64>,
}

impl Visits {
    /// Adds samples of a byte of a type. `visit` is `None` if the object is not known.
    pub fn add(
        &mut self,
        layout: &TypeLayout,
        offset: u64,
        (samples, writes): (u64, bool),
        visit: Option<VisitKey>,
        language: Language,
    ) {
        if !self.by_type.contains_key(layout) {
            self.by_type.insert(layout.clone(), OfType::default());
        }
        let Some(of_type) = self.by_type.get_mut(layout) else { return };
        let sum = of_type.samples.entry(offset).or_default();
        *sum = sum.saturating_add(samples);
        let sum = of_type.languages.entry(language).or_default();
        *sum = sum.saturating_add(samples);
        let Some(key) = visit else { return };
        if !of_type.visits.contains_key(&key) {
            if self.kept >= MAX_VISITS {
                return;
            }
            self.kept += 1;
        }
        let uses = of_type.visits.entry(key).or_default().entry(offset).or_default();
        uses.samples = uses.samples.saturating_add(samples);
        uses.written = uses.written.saturating_add(if writes { samples } else { 0 });
    }

    /// Returns the advice about a type; `None` if it was not asked about.
    pub fn advice(&self, layout: &TypeLayout) -> Option<LayoutAdvice> {
        let of_type = self.by_type.get(layout)?;
        let language = of_type.languages.iter().max_by_key(|(_, samples)| **samples);
        let language = language.map_or(Language::C, |(language, _)| *language);
        Some(advise(layout, of_type, language))
    }
}

/// What is known about a member.
#[derive(Clone, Debug)]
struct MemberUse<'a> {
    field: &'a Field,
    alignment: u64,
    samples: u64,
    write_shared: bool,
}

fn advise(layout: &TypeLayout, of_type: &OfType, language: Language) -> LayoutAdvice {
    let refused = refusal(layout, of_type);
    let sharing = Sharing::of(layout, of_type);
    let uses = uses(layout, of_type, &sharing);
    let together = packing::together(layout, of_type.visits.values());
    let by_affinity = together.pairs >= MIN_PAIRS;
    let packed = match refused {
        Some(_) => packing::unchanged(&uses, layout.size),
        None => packing::pack(&uses, by_affinity.then_some(&together), &sharing, layout.alignment),
    };
    let lines = lines(layout, of_type, &packed);
    let [lines_now, lines_advised, saved] = bootstrap(&lines);
    let members = packed.places.iter().filter_map(|(index, offset)| {
        let one = uses.get(*index)?;
        let type_name = language.type_name(&one.field.type_name, &layout.name);
        Some(AdvisedMember {
            name: one.field.name.clone(),
            declared_before: type_name.is_none(),
            type_name: type_name.unwrap_or_else(|| one.field.type_name.clone()),
            offset_now: one.field.offset,
            offset: *offset,
            size: one.field.size,
            samples: one.samples,
            write_shared: one.write_shared,
        })
    });
    let members: Vec<AdvisedMember> = members.collect();
    let definition = match refused {
        Some(_) => String::new(),
        None => declaration::definition(&layout.name, &members, &packed, language),
    };
    let (visits, objects) = (of_type.visits.len() as u64, lines.len() as u64);
    let (size, apart) = (packed.size, !packed.apart.is_empty());
    LayoutAdvice {
        refused,
        definition,
        members,
        size,
        visits,
        objects,
        lines_now,
        lines_advised,
        saved,
        by_affinity,
        apart,
    }
}

/// Returns why the members cannot be put into another order.
fn refusal(layout: &TypeLayout, of_type: &OfType) -> Option<String> {
    let overlap = layout.members.windows(2).any(|pair| match pair {
        [a, b] => a.offset.saturating_add(a.size) > b.offset,
        _ => false,
    });
    if layout.members.is_empty() || overlap || layout.cut {
        let what = "it has base classes, virtual functions, bit fields, unnamed members, or no members";
        return Some(format!("The order of the members of {} is not free: {what}.", layout.name));
    }
    if layout.members.last().is_some_and(|member| member.size == 0) {
        return Some(format!(
            "The last member of {} has no fixed size, so it must stay the last.",
            layout.name
        ));
    }
    of_type.visits.is_empty().then(|| {
        "No sample says which object it accessed. Record exact data addresses: --granule 1.".to_owned()
    })
}

/// Returns how each member is used.
fn uses<'a>(layout: &'a TypeLayout, of_type: &OfType, sharing: &Sharing) -> Vec<MemberUse<'a>> {
    let members = layout.members.iter().enumerate().map(|(index, field)| {
        let end = field.offset.saturating_add(field.size);
        let samples = of_type.samples.range(field.offset..end.max(field.offset));
        MemberUse {
            field,
            alignment: alignment(field, layout.alignment),
            samples: samples.fold(0, |sum, (_, samples)| sum.saturating_add(*samples)),
            write_shared: sharing.between(index, index),
        }
    });
    members.collect()
}

/// Returns an alignment that is enough for a member, because it has it now.
fn alignment(field: &Field, most: u64) -> u64 {
    let now = if field.offset == 0 { most } else { 1 << field.offset.trailing_zeros().min(12) };
    // A scalar needs no more than its size.
    let own = if field.size.is_power_of_two() && field.size <= 16 { field.size } else { most };
    now.min(own).min(most).max(1)
}

/// Returns the index of the member that contains a byte.
fn member_at(layout: &TypeLayout, offset: u64) -> Option<usize> {
    layout
        .members
        .iter()
        .position(|member| offset.checked_sub(member.offset).is_some_and(|distance| distance < member.size))
}

/// The visits to one object, and the lines that they touch, now and as advised.
#[derive(Clone, Copy, Default)]
struct ObjectLines {
    visits: u64,
    now: u64,
    advised: u64,
}

/// Returns the lines that the visits touch, by object.
fn lines(layout: &TypeLayout, of_type: &OfType, packed: &packing::Packed) -> Vec<ObjectLines> {
    let places: BTreeMap<usize, u64> = packed.places.iter().copied().collect();
    let advised = |offset: u64| {
        let index = member_at(layout, offset)?;
        let member = layout.members.get(index)?;
        places.get(&index).map(|place| place + (offset - member.offset))
    };
    let mut objects: BTreeMap<(u32, u64), ObjectLines> = BTreeMap::new();
    for (key, visit) in &of_type.visits {
        let now: BTreeSet<u64> = visit.keys().map(|offset| key.base.wrapping_add(*offset) / LINE).collect();
        let later: BTreeSet<u64> =
            visit.keys().map(|offset| advised(*offset).unwrap_or(*offset) / LINE).collect();
        let object = objects.entry((key.pid, key.base)).or_default();
        object.visits += 1;
        object.now += now.len() as u64;
        object.advised += later.len() as u64;
    }
    objects.into_values().collect()
}

/// Returns the lines of each visit now and as advised, and the difference, each with an interval
/// from a bootstrap over the objects.
fn bootstrap(objects: &[ObjectLines]) -> [MeanLines; 3] {
    /// The number of objects that are drawn in all samples.
    const DRAWS: usize = 10_000_000;
    if objects.is_empty() {
        return [MeanLines::default(); 3];
    }
    let means = |sum: ObjectLines| {
        let visits = sum.visits.max(1) as f64;
        let (now, advised) = (sum.now as f64 / visits, sum.advised as f64 / visits);
        [now, advised, now - advised]
    };
    let add = |sum: ObjectLines, one: &ObjectLines| ObjectLines {
        visits: sum.visits + one.visits,
        now: sum.now + one.now,
        advised: sum.advised + one.advised,
    };
    let whole = means(objects.iter().fold(ObjectLines::default(), add));
    let mut state = 1_u64;
    let mut drawn: [Vec<f64>; 3] = Default::default();
    for _ in 0..(DRAWS / objects.len()).clamp(100, 1000) {
        let mut sum = ObjectLines::default();
        for _ in 0..objects.len() {
            let index = draw(&mut state, objects.len());
            sum = objects.get(index).map_or(sum, |one| add(sum, one));
        }
        drawn.iter_mut().zip(means(sum)).for_each(|(all, mean)| all.push(mean));
    }
    let mut result = [MeanLines::default(); 3];
    for ((result, value), mut drawn) in result.iter_mut().zip(whole).zip(drawn) {
        drawn.compact_sort_by(f64::total_cmp);
        let at = |part: f64| drawn.get((part * (drawn.len() - 1) as f64) as usize).copied().unwrap_or(value);
        *result = MeanLines { value, low: at(0.025), high: at(0.975) };
    }
    result
}

/// Returns a pseudo-random index (Marsaglia: xorshift). The same capture has the same interval.
fn draw(state: &mut u64, below: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below.max(1)
}
