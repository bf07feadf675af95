//! Functions by number.

use std::collections::hash_map;
use std::hash::BuildHasher as _;

use hashbrown::HashTable;
use precise_model::Interner;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// The names of a function, where they are read; an empty text is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct SymbolNames<'a> {
    pub name: &'a str,
    pub module: &'a str,
    pub build_id: &'a str,
    pub reason: &'a str,
}

impl SymbolNames<'_> {
    /// Returns the id of the function.
    pub fn id(self) -> u64 {
        let of = if self.build_id.is_empty() { self.module } else { self.build_id };
        let (what, name) =
            if self.name.is_empty() { ("reason", self.reason) } else { ("function", self.name) };
        crate::hash::hash63(&[of, what, name])
    }
}

/// The names of a function, one after the other, so that they are compared without going to four
/// places of memory.
#[derive(Clone, Debug, Default)]
struct SymbolTexts {
    all: Box<str>,
    /// Where module, build id and reason begin.
    starts: [u32; 3],
}

impl SymbolTexts {
    fn of(names: SymbolNames<'_>) -> Self {
        let SymbolNames { name, module, build_id, reason } = names;
        let starts = [name.len(), name.len() + module.len(), name.len() + module.len() + build_id.len()];
        Self { all: [name, module, build_id, reason].concat().into(), starts: starts.map(|at| at as u32) }
    }

    fn names(&self) -> SymbolNames<'_> {
        let [module, build_id, reason] = self.starts.map(|at| at as usize);
        let text = |from: usize, to: usize| self.all.get(from..to).unwrap_or_default();
        SymbolNames {
            name: text(0, module),
            module: text(module, build_id),
            build_id: text(build_id, reason),
            reason: text(reason, self.all.len()),
        }
    }
}

/// Functions by number, in the order in which they are met.
#[derive(Debug, Default)]
pub(crate) struct NumberedFunctions {
    ids: Vec<u64>,
    /// The names of each; empty ones of a function that is known by its id alone.
    texts: Vec<SymbolTexts>,
    by_id: FxHashMap<u64, u32>,
    /// The numbers by the hash of the names.
    by_names: HashTable<u32>,
    /// About how many bytes all of this takes.
    pub bytes: usize,
}

impl NumberedFunctions {
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns the id of the function of a number.
    pub fn id(&self, number: u32) -> u64 {
        self.ids.get(number as usize).copied().unwrap_or(0)
    }

    /// Returns the number of a function that is known by its id.
    pub fn of_id(&mut self, id: u64) -> u32 {
        match self.by_id.entry(id) {
            hash_map::Entry::Occupied(entry) => *entry.get(),
            hash_map::Entry::Vacant(entry) => {
                let number = *entry.insert(self.ids.len() as u32);
                self.ids.push(id);
                self.texts.push(SymbolTexts::default());
                self.bytes += size_of::<(u64, SymbolTexts, u64, u32)>() + 8;
                number
            }
        }
    }

    /// Returns the number of the function of these names.
    pub fn of_names(&mut self, names: SymbolNames<'_>) -> u32 {
        // The id takes longer than all else about a row: it is a cryptographic hash, so that nobody
        // can choose the names of a function that has the id of another one.
        let hash = |names: SymbolNames<'_>| FxBuildHasher.hash_one(names);
        let known = |number: &u32| self.texts.get(*number as usize).map(SymbolTexts::names);
        let hashed = hash(names);
        if let Some(number) = self.by_names.find(hashed, |number| known(number) == Some(names)) {
            return *number;
        }
        let number = self.of_id(names.id());
        let Some(texts) = self.texts.get_mut(number as usize) else { return number };
        // A file may have several paths. The first one in order stays, in whatever order they are
        // met.
        if !texts.all.is_empty() && texts.names() <= names {
            return number;
        }
        *texts = SymbolTexts::of(names);
        self.bytes += texts.all.len() + 16 + Interner::BYTES;
        let again = |number: &u32| self.texts.get(*number as usize).map_or(0, |of| hash(of.names()));
        self.by_names.insert_unique(hashed, number, again);
        number
    }

    /// Numbers functions by the order of their ids. Returns the new number of each old one. None
    /// can be added afterwards.
    pub fn sort(&mut self) -> Vec<u32> {
        let mut order: Vec<(u64, u32)> = self.ids.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let mut places = vec![0; order.len()];
        let mut all = std::mem::take(&mut self.texts);
        for ((id, before), number) in order.into_iter().zip(0..) {
            if let Some(place) = places.get_mut(before as usize) {
                *place = number;
            }
            if let Some(of) = self.ids.get_mut(number as usize) {
                *of = id;
            }
            self.texts.push(all.get_mut(before as usize).map(std::mem::take).unwrap_or_default());
        }
        (self.by_id, self.by_names) = (FxHashMap::default(), HashTable::new());
        places
    }

    /// Returns ids and names by number.
    pub fn named(&self) -> impl Iterator<Item = (u64, SymbolNames<'_>)> {
        self.ids.iter().copied().zip(self.texts.iter().map(SymbolTexts::names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_one_number_and_the_first_of_its_paths() {
        let of = |name, module, build_id, reason| SymbolNames { name, module, build_id, reason };
        let all = [
            of("f", "/b", "1", ""),
            of("g", "/b", "1", ""),
            of("f", "/a", "1", ""),
            of("f", "/c", "1", ""),
            of("f", "/b", "", ""),
            of("", "/b", "", "stripped"),
        ];
        let (mut one, mut other) = (NumberedFunctions::default(), NumberedFunctions::default());
        let numbers = all.map(|names| one.of_names(names));
        assert_eq!(numbers, [0, 1, 0, 0, 2, 3]);
        assert_eq!(all.map(|names| one.of_names(names)), numbers);
        let mut reversed = all.to_vec();
        reversed.reverse();
        for names in reversed {
            other.of_names(names);
        }
        assert_eq!(one.of_id(all[1].id()), 1);
        let ids: Vec<u64> = (0..4).map(|number| one.id(number)).collect();
        let places = one.sort();
        other.sort();
        assert!(one.named().eq(other.named()));
        assert!(one.named().map(|(id, _)| id).is_sorted());
        for (id, place) in ids.iter().zip(places) {
            assert_eq!(*id, one.id(place));
        }
        let first = one.named().find(|(id, _)| *id == all[0].id());
        assert_eq!(first, Some((all[0].id(), all[2])));
    }
}
