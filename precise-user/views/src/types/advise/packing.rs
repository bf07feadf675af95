//! Puts the members of a struct into an order.

use std::collections::BTreeMap;

use precise_code::types::TypeLayout;

use super::{MemberUse, Visit, member_at};
use crate::cache_line::LINE;

/// How often two members were used in one visit, by their indices, the smaller one first.
pub(super) struct Together {
    by_pair: BTreeMap<(usize, usize), u64>,
    /// The number of visits to two members or more.
    pub pairs: u64,
}

/// The members in their new order.
pub(super) struct Packed {
    /// The index of each member, and where it begins.
    pub places: Vec<(usize, u64)>,
    /// The size of the struct.
    pub size: u64,
}

/// Returns how often members are used together.
pub(super) fn together<'a>(layout: &TypeLayout, visits: impl Iterator<Item = &'a Visit>) -> Together {
    let mut all = Together { by_pair: BTreeMap::new(), pairs: 0 };
    for visit in visits {
        let mut used: Vec<usize> = visit.keys().filter_map(|offset| member_at(layout, *offset)).collect();
        used.dedup();
        all.pairs += u64::from(used.len() > 1);
        for (i, a) in used.iter().enumerate() {
            for b in used.iter().skip(i + 1) {
                *all.by_pair.entry((*a.min(b), *a.max(b))).or_default() += 1;
            }
        }
    }
    all
}

impl Together {
    fn of(&self, a: usize, b: usize) -> u64 {
        self.by_pair.get(&(a.min(b), a.max(b))).copied().unwrap_or(0)
    }
}

/// Returns the members where they are.
pub(super) fn unchanged(uses: &[MemberUse<'_>], size: u64) -> Packed {
    Packed { places: uses.iter().map(|one| one.field.offset).enumerate().collect(), size }
}

/// Returns the members packed: the most used one first, then always the one that is most used
/// together with those on the current line; unused ones after them, and those that are write-shared
/// last, each on a line of its own.
pub(super) fn pack(uses: &[MemberUse<'_>], together: Option<&Together>, alignment: u64) -> Packed {
    let mut open: Vec<usize> = (0..uses.len()).collect();
    let alone: Vec<usize> = open.extract_if(.., |index| is(uses, *index, |one| one.write_shared)).collect();
    let mut places: Vec<(usize, u64)> = Vec::new();
    let mut end = 0;
    // The members of the line that is being filled.
    let mut line: Vec<usize> = Vec::new();
    while !open.is_empty() {
        let rank = |index: usize| {
            let one = uses.get(index);
            let samples = one.map_or(0, |one| one.samples);
            let with = |other: &usize| together.map_or(0, |together| together.of(index, *other));
            let affinity: u64 = line.iter().map(with).sum();
            let start = one.map_or(end, |one| next(end, one.alignment));
            let size = one.map_or(0, |one| one.field.size);
            // What does not fit on the line any more waits for the next one.
            let fits = line.is_empty() || size >= LINE || (start % LINE) + size <= LINE;
            // Of unused members, those with a large alignment go first, which needs least padding.
            let order = if samples > 0 { 0 } else { one.map_or(0, |one| one.alignment) };
            (samples > 0, fits, affinity, samples, order, usize::MAX - index)
        };
        let Some(best) = (0..open.len()).max_by_key(|at| open.get(*at).map(|index| rank(*index))) else {
            break;
        };
        let index = open.remove(best);
        let Some(one) = uses.get(index) else { continue };
        let start = next(end, one.alignment);
        if start / LINE != end / LINE || start == 0 {
            line.clear();
        }
        places.push((index, start));
        end = start.saturating_add(one.field.size);
        line.push(index);
        if end.is_multiple_of(LINE) {
            line.clear();
        }
    }
    for index in &alone {
        let Some(one) = uses.get(*index) else { continue };
        let start = next(end, LINE);
        places.push((*index, start));
        end = start.saturating_add(one.field.size);
    }
    let alignment = if alone.is_empty() { alignment.max(1) } else { LINE.max(alignment) };
    Packed { places, size: next(end, alignment) }
}

fn is(uses: &[MemberUse<'_>], index: usize, what: impl Fn(&MemberUse<'_>) -> bool) -> bool {
    uses.get(index).is_some_and(what)
}

fn next(end: u64, alignment: u64) -> u64 {
    end.checked_next_multiple_of(alignment.max(1)).unwrap_or(end)
}
