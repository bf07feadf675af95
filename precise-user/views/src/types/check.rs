//! What data addresses say about types.
//!
//! A type says how far the accessed byte is from the start of the object, so the address says where
//! the object begins. Two things can be told: an object in a global variable must be one of its
//! elements; and two different fields that lead to the same start confirm each other, while two
//! objects of one type that overlap contradict each other. Alignment alone confirms nothing: a
//! field at an aligned offset has an aligned address whatever the type.

use std::collections::{BTreeMap, BTreeSet};

use precise_code::types::{Kind, Object, TypeLayout, TypeOrigin, TypedCode};

use super::{AddressChecks, variable};
use precise_model::{Capture, Row};

/// The starts of objects, as types and addresses give them.
pub(super) struct Bases<'a> {
    capture: &'a Capture,
    /// By the number of the type.
    by_type: Vec<OfType>,
}

#[derive(Default)]
struct OfType {
    size: u64,
    checked: AddressChecks,
    /// By process and epoch.
    objects: BTreeMap<(u32, u32), BTreeMap<u64, Seen>>,
}

/// The samples of one object.
#[derive(Default)]
struct Seen {
    samples: u64,
    offsets: BTreeSet<u64>,
}

impl<'a> Bases<'a> {
    pub fn of(capture: &'a Capture) -> Self {
        Self { capture, by_type: Vec::new() }
    }

    /// Adds the samples of a row, at an object of this layout, which has a number.
    pub fn add(
        &mut self,
        row: &Row,
        object: Object,
        (number, layout): (usize, &TypeLayout),
        code: &TypedCode,
    ) {
        let count = row.measures.count;
        if self.by_type.len() <= number {
            self.by_type.resize_with(number + 1, OfType::default);
        }
        let Some(of_type) = self.by_type.get_mut(number) else { return };
        of_type.size = layout.size;
        let AddressChecks { confirmed, contradicted, not_checkable } = &mut of_type.checked;
        let add = |to: &mut u64| *to = to.saturating_add(count);
        let data = row.data.and_then(|id| self.capture.data.get(id as usize));
        // An address without its low bits says where no object begins.
        let exact = self.capture.meta.address_granule <= 1 && !object.indexed;
        let Some(data) = data.filter(|_| exact) else {
            return add(not_checkable);
        };
        let Some(base) = data.runtime_address.checked_sub(object.offset) else { return add(contradicted) };
        // Code that copies bytes uses numbers and vectors at any address.
        if layout.kind != Kind::Scalar && !base.is_multiple_of(layout.alignment.max(1)) {
            return add(contradicted);
        }
        let global = object.global.and_then(|global| code.globals.get(global as usize));
        if let Some((global, (name, offset))) = global.zip(variable(self.capture, row)) {
            let start = offset.checked_sub(object.offset);
            let element = |start: u64| layout.size == 0 || start.is_multiple_of(layout.size);
            // A struct in a struct begins where no multiple of its size is.
            let whole = global.size.is_multiple_of(layout.size.max(1));
            // The table of symbols has names with a path or a number, and several for one place.
            return match (last_part(&name) == global.name, offset < global.size) {
                (true, true) if whole && start.is_some_and(element) => add(confirmed),
                (true, false) => add(contradicted),
                _ => add(not_checkable),
            };
        }
        // A stack has different objects at one address, one after the other.
        if object.origin == TypeOrigin::Stack || layout.kind == Kind::Scalar {
            return add(not_checkable);
        }
        let objects = of_type.objects.entry((row.pid, row.epoch)).or_default();
        let seen = objects.entry(base).or_default();
        seen.samples = seen.samples.saturating_add(count);
        seen.offsets.insert(object.offset);
    }

    /// Compares the objects, and returns the sum over all types.
    pub fn judge(&mut self) -> AddressChecks {
        let mut sum = AddressChecks::default();
        for of_type in &mut self.by_type {
            for objects in std::mem::take(&mut of_type.objects).into_values() {
                judge_objects(of_type.size, &objects, &mut of_type.checked);
            }
            let checked = of_type.checked;
            sum.confirmed = sum.confirmed.saturating_add(checked.confirmed);
            sum.contradicted = sum.contradicted.saturating_add(checked.contradicted);
            sum.not_checkable = sum.not_checkable.saturating_add(checked.not_checkable);
        }
        sum
    }

    /// Returns what the addresses say about a type.
    pub fn checked(&self, number: usize) -> AddressChecks {
        self.by_type.get(number).map(|of_type| of_type.checked).unwrap_or_default()
    }
}

/// Returns the name of a variable without its namespace, and without the number that compilers add
/// to the names of a function's own static variables.
fn last_part(name: &str) -> &str {
    let name = name.rsplit("::").next().unwrap_or(name);
    name.split('.').next().unwrap_or(name)
}

/// Adds the objects of one type in one process and epoch.
fn judge_objects(size: u64, objects: &BTreeMap<u64, Seen>, checked: &mut AddressChecks) {
    for (base, seen) in objects {
        let before = objects.range(base.saturating_sub(size.saturating_sub(1))..*base);
        let after = objects.range(base.saturating_add(1)..base.saturating_add(size));
        // Of two that overlap, the one that more fields, or more samples, speak for is right.
        let rank = |seen: &Seen| (seen.offsets.len(), seen.samples);
        let overlapped = before.chain(after).any(|(_, other)| rank(other) >= rank(seen));
        let to = match (overlapped, seen.offsets.len() > 1) {
            (true, _) => &mut checked.contradicted,
            (false, true) => &mut checked.confirmed,
            (false, false) => &mut checked.not_checkable,
        };
        *to = to.saturating_add(seen.samples);
    }
}
