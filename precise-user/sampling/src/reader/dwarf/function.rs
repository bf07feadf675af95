//! The variables of a function.

use gimli::constants as dw;
use gimli::{AttributeValue, UnitOffset};
use precise_code::types::{FunctionFacts, Home, TypeId, TypeShape, Types as _, Untyped, Variable};

use super::location::{FrameBase, frame, locate};
use super::types::TypeTable;
use super::{Bytes, Entry, Place, Unit};

/// Maximum number of variables of a function, in all ranges.
const MAX_VARIABLES: usize = 1 << 16;
/// Maximum number of ranges of a scope.
const MAX_RANGES: usize = 1024;

/// A function, a block, or an inlined function.
struct Scope {
    depth: isize,
    ranges: Vec<(u64, u64)>,
    frame: FrameBase,
}

impl<'a> TypeTable<'a, '_> {
    /// Returns what debug information says about the code of the function at an address.
    pub fn facts(&mut self, start: u64) -> Result<FunctionFacts, Untyped> {
        let number = self.index.unit_at(start).ok_or(Untyped::NoDebugInfo)?;
        self.read_unit(number)?;
        self.of_unit = Some(number);
        let function = self.index.unit(number).and_then(|unit| unit.function_at(start));
        let place = function.ok_or(Untyped::NoDebugInfo)?;
        let begins = self.index.start_of(number).ok_or(Untyped::NoDebugInfo)?;
        let unit = self.unit(number).ok_or(Untyped::NoDebugInfo)?;
        self.walk(&unit, begins, place, start)
    }

    fn walk(
        &mut self,
        unit: &Unit<'a>,
        begins: usize,
        place: Place,
        start: u64,
    ) -> Result<FunctionFacts, Untyped> {
        let mut facts = FunctionFacts::default();
        let offset = UnitOffset(place.0.saturating_sub(begins));
        let Ok(mut entries) = unit.entries_at_offset(offset) else { return Err(Untyped::NoDebugInfo) };
        let mut scopes: Vec<Scope> = Vec::new();
        let mut top = None;
        while let Ok(Some(entry)) = entries.next_dfs() {
            self.budget.take()?;
            let depth = entry.depth();
            if top.is_some_and(|top| depth <= top) {
                break;
            }
            while scopes.last().is_some_and(|scope| depth <= scope.depth) {
                scopes.pop();
            }
            match entry.tag() {
                dw::DW_TAG_subprogram => {
                    let ranges = self.ranges(unit, entry);
                    if top.is_none() {
                        top = Some(depth);
                        facts.from_entry = ranges.first().is_some_and(|(low, _)| *low == start);
                    }
                    scopes.push(Scope { depth, ranges, frame: frame_of(unit, entry) });
                }
                dw::DW_TAG_lexical_block | dw::DW_TAG_inlined_subroutine => {
                    let ranges = self.ranges(unit, entry);
                    let Some(outer) = scopes.last() else { continue };
                    let ranges = if ranges.is_empty() { outer.ranges.clone() } else { ranges };
                    scopes.push(Scope { depth, ranges, frame: outer.frame });
                }
                dw::DW_TAG_variable | dw::DW_TAG_formal_parameter => {
                    facts.described = true;
                    let Some(scope) = scopes.last() else { continue };
                    self.variable(unit, begins, entry, scope, &mut facts);
                }
                dw::DW_TAG_call_site | dw::DW_TAG_GNU_call_site => self.call(unit, begins, entry, &mut facts),
                _ => {}
            }
        }
        Ok(facts)
    }

    fn ranges(&self, unit: &Unit<'a>, entry: &Entry<'a>) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let Ok(mut ranges) = self.dwarf.die_ranges(unit, entry) else { return found };
        while let Ok(Some(range)) = ranges.next() {
            if range.begin < range.end && found.len() < MAX_RANGES {
                found.push((range.begin, range.end));
            }
        }
        found
    }

    fn variable(
        &mut self,
        unit: &Unit<'a>,
        begins: usize,
        entry: &Entry<'a>,
        scope: &Scope,
        facts: &mut FunctionFacts,
    ) {
        let Some(location) = entry.attr_value(dw::DW_AT_location) else { return };
        let Some(ty) = self.type_place(begins, entry).and_then(|place| self.intern(place)) else { return };
        if let AttributeValue::Exprloc(expression) = location {
            for (start, end) in &scope.ranges {
                self.add_pieces(unit, expression, (*start, *end), scope.frame, ty, facts);
            }
            return;
        }
        let Ok(Some(mut list)) = self.dwarf.attr_locations(unit, location) else { return };
        while let Ok(Some(item)) = list.next() {
            if self.budget.take().is_err() {
                return;
            }
            self.add_pieces(unit, item.data, (item.range.begin, item.range.end), scope.frame, ty, facts);
        }
    }

    fn add_pieces(
        &mut self,
        unit: &Unit<'a>,
        expression: gimli::Expression<Bytes<'a>>,
        (start, end): (u64, u64),
        frame: FrameBase,
        ty: TypeId,
        facts: &mut FunctionFacts,
    ) {
        for piece in locate(self.dwarf, unit, expression, frame).pieces {
            // A number in a register says nothing about memory.
            let number = matches!(piece.home, Home::Value(..))
                && self.shape(ty) == TypeShape::Scalar
                && self.pointee(ty).is_none();
            if !number && start < end && facts.variables.len() < MAX_VARIABLES {
                facts.variables.push(Variable { start, end, home: piece.home, ty, piece: piece.at });
            }
        }
    }

    /// Adds the type of the value that a call returns.
    fn call(&mut self, unit: &Unit<'a>, begins: usize, entry: &Entry<'a>, facts: &mut FunctionFacts) {
        let after = [dw::DW_AT_call_return_pc, dw::DW_AT_low_pc]
            .into_iter()
            .find_map(|name| self.dwarf.attr_address(unit, entry.attr_value(name)?).ok().flatten());
        let callee = [dw::DW_AT_call_origin, dw::DW_AT_abstract_origin]
            .into_iter()
            .find_map(|name| self.reference(begins, entry.attr_value(name)?));
        let (Some(after), Some(callee)) = (after, callee) else { return };
        let Some((_, start, entry)) = self.entry(callee) else { return };
        let ty = self.type_place(start, &entry).and_then(|place| self.intern(place));
        if let Some(ty) = ty.filter(|_| facts.returns.len() < MAX_VARIABLES) {
            facts.returns.insert(after, ty);
        }
    }
}

fn frame_of(unit: &Unit<'_>, entry: &Entry<'_>) -> FrameBase {
    match entry.attr_value(dw::DW_AT_frame_base) {
        Some(AttributeValue::Exprloc(expression)) => frame(unit, expression),
        _ => FrameBase::Unknown,
    }
}
