//! The abstract values of the data flow, and what is known where two paths meet.

use std::collections::BTreeMap;

use super::residue::Residue;
use super::{Global, RegisterNumber, TypeId, TypeShape, Types};

/// The number of general-purpose registers.
pub(super) const REGISTERS: usize = 16;
/// Maximum number of stack slots whose value is known.
const MAX_SLOTS: usize = 512;
/// Maximum depth of fields in fields.
const MAX_DEPTH: usize = 16;

/// What is known about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownValue {
    /// A number. If nothing is known about it, it may also be a pointer.
    Number(Residue),
    /// A pointer into an object.
    Pointer(Pointer),
    /// An address on the stack: the distance from the stack pointer at the entry of the function.
    Stack(i64),
    /// Two paths disagree.
    Conflict,
    /// An index that cannot be followed was added to a pointer.
    Astray,
}

/// Nothing is known.
pub(super) const UNKNOWN: KnownValue = KnownValue::Number(Residue::ANY);
/// The number 0.
pub(super) const ZERO: KnownValue = KnownValue::Number(Residue::exactly(0));

/// A pointer into an object, or into one of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    pub ty: TypeId,
    /// The distance from the start of the object.
    pub offset: i64,
    pub source: PointerSource,
    /// Whether it moved over the elements of an array, so that the object has neighbours.
    pub stepped: bool,
}

/// Where a pointer is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointerSource {
    /// A variable that is in the register now.
    Variable,
    /// The data flow.
    Flow,
    /// The address of a global variable.
    Global(Global),
    /// The address of a variable of one CPU, or of its template.
    PerCpu,
}

impl Pointer {
    pub fn to(ty: TypeId, source: PointerSource) -> Self {
        Self { ty, offset: 0, source, stepped: false }
    }

    /// Returns the pointer as another register or a later instruction has it.
    fn passed_on(self) -> Self {
        match self.source {
            PointerSource::Variable => Self { source: PointerSource::Flow, ..self },
            PointerSource::Flow | PointerSource::Global(_) | PointerSource::PerCpu => self,
        }
    }
}

impl KnownValue {
    /// Returns the value as another register or a later instruction has it.
    pub fn passed_on(self) -> Self {
        if let Self::Pointer(pointer) = self { Self::Pointer(pointer.passed_on()) } else { self }
    }
}

/// The values of registers and stack slots at one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValueState {
    registers: [KnownValue; REGISTERS],
    /// Slots of 8 bytes, by their distance from the stack pointer at the entry.
    slots: BTreeMap<i64, KnownValue>,
}

impl ValueState {
    pub const fn unknown() -> Self {
        Self { registers: [UNKNOWN; REGISTERS], slots: BTreeMap::new() }
    }

    pub fn get(&self, register: RegisterNumber) -> KnownValue {
        self.registers.get(usize::from(register)).copied().unwrap_or(UNKNOWN)
    }

    pub fn set(&mut self, register: RegisterNumber, value: KnownValue) {
        if let Some(place) = self.registers.get_mut(usize::from(register)) {
            *place = value;
        }
    }

    pub fn slot(&self, at: i64) -> Option<KnownValue> {
        self.slots.get(&at).copied()
    }

    /// Stores a value of 8 bytes.
    pub fn store(&mut self, at: i64, value: KnownValue) {
        self.overwrite(at, 8);
        if value != UNKNOWN && self.slots.len() < MAX_SLOTS {
            self.slots.insert(at, value.passed_on());
        }
    }

    /// Forgets the slots that a store of unknown bytes overlaps.
    pub fn overwrite(&mut self, at: i64, width: u32) {
        let end = at.saturating_add(i64::from(width.max(1)));
        let overlapping: Vec<i64> =
            self.slots.range(at.saturating_sub(7)..end).map(|(&slot, _)| slot).collect();
        for slot in overlapping {
            self.slots.remove(&slot);
        }
    }

    /// Makes values about which paths disagree unknown ones.
    pub fn forget_conflicts(&mut self) {
        let values = self.registers.iter_mut().chain(self.slots.values_mut());
        for value in values.filter(|value| matches!(value, KnownValue::Conflict | KnownValue::Astray)) {
            *value = UNKNOWN;
        }
    }

    /// Joins the state of another path into this one. Returns whether this one changed.
    pub fn join(&mut self, other: &Self, types: &mut dyn Types) -> bool {
        let before = self.clone();
        for (mine, theirs) in self.registers.iter_mut().zip(other.registers) {
            *mine = join(mine.passed_on(), theirs.passed_on(), types);
        }
        // A slot that only one path has written is unknown on the other.
        self.slots.retain(|slot, _| other.slots.contains_key(slot));
        for (slot, mine) in &mut self.slots {
            let theirs = other.slots.get(slot).copied().unwrap_or(UNKNOWN);
            *mine = join(*mine, theirs, types);
        }
        *self != before
    }
}

/// Returns what is known about a value that comes from two paths.
///
/// An unknown value and a pointer are a pointer: it may be null, or come from a load that could not
/// be followed, but the same instructions use it.
pub(super) fn join(a: KnownValue, b: KnownValue, types: &mut dyn Types) -> KnownValue {
    match (a, b) {
        _ if a == b => a,
        (KnownValue::Number(a), KnownValue::Number(b)) => KnownValue::Number(a.or(b)),
        (KnownValue::Number(_), KnownValue::Pointer(pointer))
        | (KnownValue::Pointer(pointer), KnownValue::Number(_)) => KnownValue::Pointer(pointer),
        (KnownValue::Pointer(a), KnownValue::Pointer(b)) => {
            joined(a, b, types).map_or(KnownValue::Conflict, KnownValue::Pointer)
        }
        (KnownValue::Astray, _) | (_, KnownValue::Astray) => KnownValue::Astray,
        _ => KnownValue::Conflict,
    }
}

fn joined(a: Pointer, b: Pointer, types: &mut dyn Types) -> Option<Pointer> {
    let stepped = a.stepped || b.stepped;
    let source = if a.source == b.source { a.source } else { PointerSource::Flow };
    if a.ty == b.ty {
        let size = types.size(a.ty).and_then(|size| i64::try_from(size).ok()).filter(|size| *size > 0);
        let same = a.offset == b.offset
            || (stepped && size.is_some_and(|size| (a.offset.wrapping_sub(b.offset)) % size == 0));
        // The offset that was not moved is the one inside of the object.
        let offset = if a.stepped { b.offset } else { a.offset };
        return same.then_some(Pointer { ty: a.ty, offset, source, stepped });
    }
    // The inner object is what both lead to: the head of a list and the links in its elements are
    // links, and only one of them is a member of an element.
    let inner = if encloses(a, b, types) { b } else { encloses(b, a, types).then_some(a)? };
    Some(Pointer { source, stepped, ..inner })
}

/// Returns which of two pointers says more, if the object of one has that of the other as a part.
/// That is the outer object, unless its members overlap there: then it is a struct in a union, or
/// the fields of a variant.
pub(super) fn telling(outer: Pointer, inner: Pointer, types: &mut dyn Types) -> Pointer {
    let overlap = types.shape(inner.ty) == TypeShape::Composite
        && types.shape(outer.ty) == TypeShape::Composite
        && part_begins(outer, inner, types).is_some_and(|at| types.fields_at(outer.ty, at).len() > 1);
    if overlap { inner } else { outer }
}

/// Returns whether the object of `outer`, or a neighbour if it has some, has the object of `inner`
/// as a part, at the place to which both point.
pub(super) fn encloses(outer: Pointer, inner: Pointer, types: &mut dyn Types) -> bool {
    let Some(start) = part_begins(outer, inner, types) else { return false };
    let mut open = vec![(outer.ty, start, 0)];
    while let Some((ty, offset, depth)) = open.pop() {
        if depth > 0 && ty == inner.ty && offset == 0 {
            return true;
        }
        if depth < MAX_DEPTH {
            open.extend(parts_at(ty, offset, types).into_iter().map(|(ty, rest)| (ty, rest, depth + 1)));
        }
    }
    false
}

/// Returns where in the object of `outer`, or in a neighbour if it has some, that of `inner` would
/// begin.
fn part_begins(outer: Pointer, inner: Pointer, types: &mut dyn Types) -> Option<u64> {
    let distance = outer.offset.wrapping_sub(inner.offset);
    let size = types.size(outer.ty).and_then(|size| i64::try_from(size).ok()).filter(|size| *size > 0);
    let inside = match size {
        Some(size) if outer.stepped => distance.rem_euclid(size),
        _ => distance,
    };
    u64::try_from(inside).ok()
}

/// Returns the fields or the element of a type that contain a byte, with the distance from their
/// start.
pub(super) fn parts_at(ty: TypeId, offset: u64, types: &mut dyn Types) -> Vec<(TypeId, u64)> {
    match types.shape(ty) {
        TypeShape::Composite => types.fields_at(ty, offset),
        TypeShape::Array { element } => match types.size(element) {
            Some(size) if size > 0 => vec![(element, offset % size)],
            _ => Vec::new(),
        },
        TypeShape::Scalar | TypeShape::Opaque => Vec::new(),
    }
}

/// Returns the type that the pointer at an offset of an object points to; `None` if there is no
/// pointer, or if the members of a union point to different types.
pub(super) fn pointer_at(ty: TypeId, offset: u64, types: &mut dyn Types) -> Option<TypeId> {
    let mut open = vec![(ty, offset, 0, None)];
    let mut found = None;
    while let Some((ty, offset, depth, erased)) = open.pop() {
        if offset == 0
            && let Some(to) = types.pointee(ty)
        {
            let to = erased.filter(|_| types.shape(to) == TypeShape::Scalar).unwrap_or(to);
            if found.is_some_and(|found| found != to) {
                return None;
            }
            found = Some(to);
        } else if depth < MAX_DEPTH {
            let erased = erased.or_else(|| types.erased(ty));
            let parts = parts_at(ty, offset, types).into_iter();
            open.extend(parts.map(|(ty, rest)| (ty, rest, depth + 1, erased)));
        }
    }
    found
}
