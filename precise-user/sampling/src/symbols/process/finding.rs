//! Finds the mapping that a process had at an address.

use std::ops::Range;

use super::{Generation, LocatedAddress, Processes};
use crate::symbols::mapping::{AddressSpace, Mapped, Mapping};
use precise_model::Reason;

impl Processes {
    /// Returns the mapping that `pid` had at `address` in `window`.
    pub fn find_mapping(
        &self,
        pid: u32,
        address: u64,
        window: &Range<u64>,
    ) -> Result<LocatedAddress<Mapped>, Reason> {
        self.find_in(pid, window, |space| space.find(address, window))
    }

    /// Returns the mapping of code that `pid` had at `address` in `window`. It is ambiguous only if
    /// the process executed another program, which had the address too: whether a library took the
    /// place of another one, [`Self::code_was_replaced`] returns.
    pub fn find_code(
        &self,
        pid: u32,
        address: u64,
        window: &Range<u64>,
    ) -> Result<LocatedAddress<Mapped>, Reason> {
        self.find_in(pid, window, |space| Some((space.find_code(address, window)?, false)))
    }

    /// Returns whether a program of `pid` had code of several files at `address` in `window`, one
    /// after the other.
    pub fn code_was_replaced(&self, pid: u32, address: u64, window: &Range<u64>) -> bool {
        let mut alive = self.alive(pid, window);
        alive.any(|(_, generation)| generation.space.code_was_replaced(address, window))
    }

    /// Returns whether the mappings of the program with this number may be wrong at `address`: in
    /// `window`, `pid` also executed a later program, which has other code there.
    pub fn code_of_later_program(&self, pid: u32, number: u8, address: u64, window: &Range<u64>) -> bool {
        let mut later: Vec<&Generation> = Vec::new();
        for (_, generation) in self.alive(pid, window) {
            if generation.program != number {
                later.push(generation);
                continue;
            }
            if later.is_empty() {
                return false;
            }
            let code = generation.space.find_code(address, window);
            let mut others = later.iter().filter_map(|other| other.space.find_code(address, window));
            return others.any(|other| code.as_ref().is_none_or(|code| !code.same_content(&other)));
        }
        // The program is not known here, so all others may be later.
        !later.is_empty()
    }

    fn find_in(
        &self,
        pid: u32,
        window: &Range<u64>,
        find: impl Fn(&AddressSpace) -> Option<(Mapping, bool)>,
    ) -> Result<LocatedAddress<Mapped>, Reason> {
        let mut best: Option<LocatedAddress<Mapped>> = None;
        let mut missing = None;
        for ((_, serial), generation) in self.alive(pid, window) {
            let reason = match generation.is_hidden {
                _ if generation.space.is_incomplete() => Reason::Forgotten,
                true => Reason::MapsHidden,
                false => Reason::Unmapped,
            };
            if missing.is_none_or(|known| known == Reason::Unmapped || reason == Reason::Forgotten) {
                missing = Some(reason);
            }
            let Some((mapping, ambiguous)) = find(&generation.space) else { continue };
            match &mut best {
                None => {
                    let image_base = generation.space.image_base(&mapping);
                    let value = Mapped { pid, generation: *serial, mapping, image_base };
                    best = Some(LocatedAddress { value, ambiguous });
                }
                Some(best) => {
                    // The same file at the same address gives the same answer for both generations.
                    let new = &best.value.mapping;
                    let bias = |m: &Mapping| m.start.wrapping_sub(m.page_offset);
                    let same = new.image == mapping.image && new.kind == mapping.kind;
                    best.ambiguous |= !same || (new.image.is_some() && bias(new) != bias(&mapping));
                }
            }
        }
        best.ok_or_else(|| missing.unwrap_or_else(|| self.unknown(window)))
    }
}
