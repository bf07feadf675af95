//! Names the two sides of a falsely shared line: the field that some threads write, and the other
//! field that other threads read or write.

use std::collections::{BTreeMap, BTreeSet};

use super::result::{SharedAccess, SharedLine};
use super::verdict::SharingVerdict;
use crate::cache_line::LINE;
use crate::typing::AccessedField;
use precise_model::CompactSort as _;

/// Maximum number of sentences about one line.
const MOST: usize = 3;

/// A field of one object on the line. Objects are told apart by where they begin.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Side<'a> {
    field: &'a AccessedField,
    /// The address at which the object begins; `None` if it is not known.
    base: Option<u64>,
}

/// The accesses to a field.
#[derive(Default)]
struct Uses<'a> {
    reads: u64,
    writes: u64,
    /// Samples by function.
    readers: BTreeMap<&'a str, u64>,
    writers: BTreeMap<&'a str, u64>,
    threads: BTreeSet<u32>,
    hitm: u64,
}

/// Returns a sentence for each of the pairs of fields that share the line with most HITM loads;
/// none if the types of the accesses are not known.
pub(super) fn advice(line: &SharedLine) -> Vec<String> {
    if !matches!(line.verdict, SharingVerdict::FalseSharing | SharingVerdict::Both) {
        return Vec::new();
    }
    let mut sides: BTreeMap<Side, Uses> = BTreeMap::new();
    for access in &line.accesses {
        if let Some(field) = &access.field {
            sides.entry(Side { field, base: base(line.address, access, field) }).or_default().add(access);
        }
    }
    let mut pairs: Vec<(u64, String)> = Vec::new();
    for (i, (side, uses)) in sides.iter().enumerate() {
        for (other, others) in sides.iter().skip(i + 1) {
            let apart = uses.threads != others.threads || uses.threads.is_empty();
            let (writer, reader) = if uses.writes >= others.writes {
                ((side, uses), (other, others))
            } else {
                ((other, others), (side, uses))
            };
            if apart && writer.1.writes > 0 {
                pairs.push((uses.hitm.saturating_add(others.hitm), sentence(line.address, writer, reader)));
            }
        }
    }
    pairs.compact_sort_by(|(a, text_a), (b, text_b)| b.cmp(a).then_with(|| text_a.cmp(text_b)));
    pairs.into_iter().take(MOST).map(|(_, text)| text).collect()
}

/// Returns the address at which an object begins.
fn base(line: u64, access: &SharedAccess, field: &AccessedField) -> Option<u64> {
    line.checked_add(access.offset.into())?.checked_sub(field.distance?)
}

impl<'a> Uses<'a> {
    fn add(&mut self, access: &'a SharedAccess) {
        let (sum, functions) = match access.writes {
            true => (&mut self.writes, &mut self.writers),
            false => (&mut self.reads, &mut self.readers),
        };
        *sum = sum.saturating_add(access.samples);
        let of_function = functions.entry(&access.function).or_default();
        *of_function = of_function.saturating_add(access.samples);
        self.threads.extend(&access.threads);
        self.hitm = self.hitm.saturating_add(access.hitm);
    }

    /// Returns how the field is used, with the function that does so most: "written by `f`".
    fn words(&self) -> String {
        let (verb, functions) =
            if self.writes > 0 { ("written", &self.writers) } else { ("read", &self.readers) };
        let most = functions.iter().max_by_key(|(_, samples)| **samples);
        most.map_or_else(|| verb.to_owned(), |(function, _)| format!("{verb} by `{function}`"))
    }
}

fn sentence(
    line: u64,
    (side, uses): (&Side<'_>, &Uses<'_>),
    (other, others): (&Side<'_>, &Uses<'_>),
) -> String {
    let (a, b) = (side.field, other.field);
    let both = format!("`{a}` ({}) and `{b}` ({})", uses.words(), others.words());
    let one = a.type_name == b.type_name && side.base == other.base;
    match (one, side.base) {
        (true, Some(base)) if !a.field.is_empty() => {
            let number = line.saturating_sub(base) / LINE;
            let which = match base.is_multiple_of(LINE) {
                true => format!("line {number} of {}", a.type_name),
                false => format!("a line of {}, which does not begin at a multiple of 64 bytes", a.type_name),
            };
            format!("{both} share {which}: put `{}` on a line of its own.", a.field)
        }
        (true, _) => format!("{both} share the line: put the first on a line of its own."),
        _ if a.type_name == b.type_name => {
            format!("{both} of two objects share the line: align {} to 64 bytes.", a.type_name)
        }
        _ => format!("{both} share the line: align {} or {} to 64 bytes.", a.type_name, b.type_name),
    }
}
