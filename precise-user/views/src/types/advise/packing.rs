//! Puts the members of a struct into an order.

use std::collections::{BTreeMap, BTreeSet};

use precise_code::types::TypeLayout;

use super::sharing::Sharing;
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
    /// Where members begin a line that the definition has to ask for.
    pub apart: BTreeSet<u64>,
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
    let places = uses.iter().map(|one| one.field.offset).enumerate().collect();
    Packed { places, size, apart: BTreeSet::new() }
}

/// Returns the members packed: the most used one first, then always the one that is most used
/// together with those on the current line; unused ones after them, and those that are write-shared
/// last, each on a line of its own. No line has a member that one thread writes beside a member
/// that another thread uses.
pub(super) fn pack(
    uses: &[MemberUse<'_>],
    together: Option<&Together>,
    sharing: &Sharing,
    alignment: u64,
) -> Packed {
    let mut open: Vec<usize> = (0..uses.len()).collect();
    let alone: Vec<usize> = open.extract_if(.., |index| is(uses, *index, |one| one.write_shared)).collect();
    let mut places: Vec<(usize, u64)> = Vec::new();
    let (mut end, mut apart) = (0, BTreeSet::new());
    // The members of the line that is being filled.
    let mut line: Vec<usize> = Vec::new();
    let with = |a: usize, b: usize| together.map_or(0, |together| together.of(a, b));
    while !open.is_empty() {
        let affinity = |index: usize| line.iter().map(|other| with(index, *other)).sum::<u64>();
        // Members of which another thread would wait for this line, or make it wait.
        let on_line = |(index, at): &&(usize, u64)| {
            let size = uses.get(*index).map_or(0, |one| one.field.size);
            at.saturating_add(size.max(1)) > end - end % LINE
        };
        let here: Vec<usize> = places.iter().rev().take_while(on_line).map(|(index, _)| *index).collect();
        let shared = |index: &usize| here.iter().any(|other| sharing.between(*index, *other));
        let shared: BTreeSet<usize> = open.iter().copied().filter(shared).collect();
        // What is used together with these rather than with this line goes where they go.
        let follows =
            |index: usize| shared.iter().map(|other| with(index, *other)).sum::<u64>() > affinity(index);
        let elsewhere = |index: usize, start: u64| {
            start / LINE == end / LINE && (shared.contains(&index) || follows(index))
        };
        let rank = |index: usize| {
            let one = uses.get(index);
            let samples = one.map_or(0, |one| one.samples);
            let start = one.map_or(end, |one| next(end, one.alignment));
            let size = one.map_or(0, |one| one.field.size);
            // What does not fit on the line any more waits for the next one.
            let fits = line.is_empty() || size >= LINE || (start % LINE) + size <= LINE;
            let fits = fits && !elsewhere(index, start);
            // Of unused members, those with a large alignment go first, which needs least padding.
            let order = if samples > 0 { 0 } else { one.map_or(0, |one| one.alignment) };
            (samples > 0, fits, affinity(index), samples, order, usize::MAX - index)
        };
        let Some(best) = (0..open.len()).max_by_key(|at| open.get(*at).map(|index| rank(*index))) else {
            break;
        };
        let index = open.remove(best);
        let Some(one) = uses.get(index) else { continue };
        let mut start = next(end, one.alignment);
        if elsewhere(index, start) {
            start = next(start, LINE);
            apart.insert(start);
        }
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
        apart.insert(start);
        places.push((*index, start));
        end = start.saturating_add(one.field.size);
    }
    // Lines are apart only if the first one begins where the object does.
    if sharing.any() {
        apart.insert(0);
    }
    let alignment = if apart.is_empty() { alignment.max(1) } else { LINE.max(alignment) };
    Packed { places, size: next(end, alignment), apart }
}

fn is(uses: &[MemberUse<'_>], index: usize, what: impl Fn(&MemberUse<'_>) -> bool) -> bool {
    uses.get(index).is_some_and(what)
}

fn next(end: u64, alignment: u64) -> u64 {
    end.checked_next_multiple_of(alignment.max(1)).unwrap_or(end)
}
