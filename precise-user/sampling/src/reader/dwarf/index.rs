//! Where the functions and global variables of a file are in its debug information.
//!
//! Only the units with code that was asked for are read. All units are read once if a global
//! variable is in none of these, and the debug information is small.

use std::collections::BTreeMap;
use std::rc::Rc;

use gimli::constants as dw;
use gimli::{
    DebugInfoOffset, DebugTypeSignature, DebugTypes, LittleEndian, Section as _, UnitHeader, UnitType,
};
use precise_code::types::Untyped;
use rustc_hash::FxHashMap;

use super::location::{FrameBase, locate};
use super::variables::VariableSymbol;
use super::{Budget, Bytes, Entry, Place, Unit};

/// Maximum number of units of a file.
const MAX_UNITS: usize = 1 << 20;
/// Maximum number of ranges of units, and of functions of a unit.
const MAX_RANGES: usize = 1 << 20;
/// Maximum size in bytes of `.debug_info` of which all units are read for their global variables.
const MAX_SEARCHED: usize = 64 << 20;
/// Maximum number of bytes of the name of a namespace.
const MAX_NAMESPACE: usize = 512;

/// The units of a file.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The unit headers, by their offset in `.debug_info`. Those of `.debug_types`, which DWARF 4
    /// has, follow as if that section did; then those of a supplementary file.
    heads: Vec<Head>,
    /// The length of `.debug_info`, and with that of `.debug_types`.
    info: usize,
    supplement: usize,
    /// The types that have a unit of their own, by their signature.
    signatures: FxHashMap<u64, Place>,
    /// Ranges of addresses with the number of their unit, by their start.
    ranges: Vec<(u64, u64, u32)>,
    read: FxHashMap<u32, UnitIndex>,
    /// Global variables by address, with their size by the table of symbols, if that named them.
    globals: BTreeMap<u64, (Place, u64)>,
    has_heads: bool,
    searched: bool,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    start: usize,
    end: usize,
}

/// The functions of a unit.
#[derive(Debug, Default)]
pub(super) struct UnitIndex {
    /// Ranges of addresses with their function, by their start.
    functions: Vec<(u64, u64, Place)>,
    /// The namespaces of types and variables that are in one.
    pub namespaces: FxHashMap<Place, Rc<str>>,
    /// The variables of other units that this one declares, by the names of their symbols.
    declared: FxHashMap<Box<[u8]>, Place>,
}

impl Index {
    /// Reads the headers of all units, once.
    pub fn prepare(&mut self, dwarf: &gimli::Dwarf<Bytes<'_>>, budget: &Budget) -> Result<(), Untyped> {
        if self.has_heads {
            return Ok(());
        }
        self.info = dwarf.debug_info.reader().len();
        self.supplement = self.info.saturating_add(dwarf.debug_types.reader().len());
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(start) = header.debug_info_offset() else { continue };
            let Some(number) = self.add(start.0, &header, budget)? else { break };
            let Ok(unit) = dwarf.unit(header) else { continue };
            let Ok(mut ranges) = dwarf.unit_ranges(&unit) else { continue };
            while let Ok(Some(range)) = ranges.next() {
                budget.take()?;
                // A linker sets what it removed to 0.
                if range.begin > 0 && range.begin < range.end && self.ranges.len() < MAX_RANGES {
                    self.ranges.push((range.begin, range.end, number));
                }
            }
        }
        let mut headers = dwarf.type_units();
        while let Ok(Some(header)) = headers.next() {
            let Some(start) = header.debug_types_offset() else { continue };
            if self.add(self.info.saturating_add(start.0), &header, budget)?.is_none() {
                break;
            }
        }
        if let Some(other) = dwarf.sup() {
            let mut headers = other.units();
            while let Ok(Some(header)) = headers.next() {
                let Some(start) = header.debug_info_offset() else { continue };
                if self.add(self.supplement.saturating_add(start.0), &header, budget)?.is_none() {
                    break;
                }
            }
        }
        self.ranges.sort_unstable();
        self.has_heads = true;
        Ok(())
    }

    /// Adds a unit that begins at `start`. Returns its number; `None` if there are too many.
    fn add(
        &mut self,
        start: usize,
        header: &UnitHeader<Bytes<'_>>,
        budget: &Budget,
    ) -> Result<Option<u32>, Untyped> {
        budget.take()?;
        if self.heads.len() >= MAX_UNITS {
            return Ok(None);
        }
        if let UnitType::Type { type_signature, type_offset }
        | UnitType::SplitType { type_signature, type_offset } = header.type_()
        {
            self.signatures.insert(type_signature.0, Place(start.saturating_add(type_offset.0)));
        }
        let number = u32::try_from(self.heads.len()).unwrap_or(u32::MAX);
        self.heads.push(Head { start, end: start.saturating_add(header.length_including_self()) });
        Ok(Some(number))
    }

    /// Returns the header of a unit.
    pub fn header<'a>(&self, unit: u32, dwarf: &gimli::Dwarf<Bytes<'a>>) -> Option<UnitHeader<Bytes<'a>>> {
        let start = self.start_of(unit)?;
        if let Some(start) = start.checked_sub(self.supplement) {
            return dwarf.sup()?.unit_header(DebugInfoOffset(start)).ok();
        }
        let Some(start) = start.checked_sub(self.info) else {
            return dwarf.unit_header(DebugInfoOffset(start)).ok();
        };
        let bytes = dwarf.debug_types.reader().slice().get(start..)?;
        DebugTypes::new(bytes, LittleEndian).units().next().ok().flatten()
    }

    /// Returns whether the entry at a place is in the supplementary file.
    pub fn is_in_supplement(&self, place: Place) -> bool {
        place.0 >= self.supplement
    }

    /// Returns the place of an entry of the supplementary file.
    pub fn in_supplement(&self, offset: DebugInfoOffset) -> Option<Place> {
        self.supplement.checked_add(offset.0).map(Place)
    }

    /// Returns where the type with a signature is.
    pub fn type_of(&self, signature: DebugTypeSignature) -> Option<Place> {
        self.signatures.get(&signature.0).copied()
    }

    /// Reads the headers of the units of a `.dwo` file, once. All code that is asked for is in the
    /// unit `id`: which code that is, its skeleton says.
    pub fn prepare_split(
        &mut self,
        dwarf: &gimli::Dwarf<Bytes<'_>>,
        id: gimli::DwoId,
        budget: &Budget,
    ) -> Result<(), Untyped> {
        self.prepare(dwarf, budget)?;
        self.ranges.clear();
        for number in 0..self.heads.len() {
            budget.take()?;
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let unit = self.header(number, dwarf).and_then(|header| dwarf.unit(header).ok());
            if unit.is_some_and(|unit| unit.dwo_id == Some(id)) {
                self.ranges.push((0, u64::MAX, number));
                break;
            }
        }
        Ok(())
    }

    /// Returns the number of the unit with the code at an address.
    pub fn unit_at(&self, address: u64) -> Option<u32> {
        holder(&self.ranges, address)
    }

    /// Returns the number of the unit that contains an entry, and the offset of the unit.
    pub fn unit_of(&self, place: Place) -> Option<(u32, usize)> {
        let at = self.heads.partition_point(|head| head.start <= place.0).checked_sub(1)?;
        let head = self.heads.get(at).filter(|head| place.0 < head.end)?;
        Some((u32::try_from(at).ok()?, head.start))
    }

    /// Returns the offset of a unit.
    pub fn start_of(&self, unit: u32) -> Option<usize> {
        self.heads.get(unit as usize).map(|head| head.start)
    }

    /// Returns the functions of a unit that was read.
    pub fn unit(&self, number: u32) -> Option<&UnitIndex> {
        self.read.get(&number)
    }

    /// Returns whether a unit was read.
    pub fn has(&self, number: u32) -> bool {
        self.read.contains_key(&number)
    }

    /// Returns the number of units to read to know all global variables; `None` if they are too
    /// many, or were read already.
    pub fn units_to_search(&mut self) -> Option<u32> {
        let bytes = self.heads.last().map_or(0, |head| head.end);
        let first = !std::mem::replace(&mut self.searched, true);
        (first && bytes <= MAX_SEARCHED).then(|| u32::try_from(self.heads.len()).unwrap_or(u32::MAX))
    }

    /// Returns the global variable that begins last at or before an address: where, its entry, and
    /// its size if a symbol has it, else 0.
    pub fn global(&self, address: u64) -> Option<(u64, Place, u64)> {
        self.globals.range(..=address).next_back().map(|(&start, &(place, size))| (start, place, size))
    }

    /// Adds the global variable of a symbol, which a unit declares. Returns whether it does.
    pub fn declare(&mut self, unit: u32, (symbol, name): (VariableSymbol, &[u8])) -> bool {
        let place = self.read.get(&unit).and_then(|unit| unit.declared.get(name)).copied();
        if let Some(place) = place {
            self.globals.insert(symbol.address, (place, symbol.size));
        }
        place.is_some()
    }

    /// Reads the functions and global variables of a unit.
    pub fn read<'a>(
        &mut self,
        number: u32,
        dwarf: &gimli::Dwarf<Bytes<'a>>,
        unit: &Unit<'a>,
        budget: &Budget,
    ) -> Result<(), Untyped> {
        let Some(start) = self.start_of(number) else { return Ok(()) };
        let mut found = UnitIndex::default();
        let mut namespaces: Vec<(isize, Rc<str>)> = Vec::new();
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            budget.take()?;
            let depth = entry.depth();
            while namespaces.last().is_some_and(|(outer, _)| depth <= *outer) {
                namespaces.pop();
            }
            let place = Place(start.saturating_add(entry.offset().0));
            match entry.tag() {
                dw::DW_TAG_subprogram => found.add(dwarf, unit, entry, place),
                dw::DW_TAG_variable if is_declaration(entry) => {
                    let name = [dw::DW_AT_linkage_name, dw::DW_AT_name].into_iter();
                    let name = name.filter_map(|name| entry.attr_value(name)).next();
                    if let Some(name) = name.and_then(|name| dwarf.attr_string(unit, name).ok()) {
                        found.declared.insert(name.slice().into(), place);
                    }
                }
                dw::DW_TAG_variable => {
                    if let Some(gimli::AttributeValue::Exprloc(expression)) =
                        entry.attr_value(dw::DW_AT_location)
                        && let Some(address) = locate(dwarf, unit, expression, FrameBase::Unknown).address
                    {
                        self.globals.insert(address, (place, 0));
                    }
                }
                dw::DW_TAG_namespace
                | dw::DW_TAG_structure_type
                | dw::DW_TAG_class_type
                | dw::DW_TAG_union_type => {
                    let outer = namespaces.last().map(|(_, name)| name.clone());
                    if let Some(outer) = &outer
                        && entry.tag() != dw::DW_TAG_namespace
                    {
                        found.namespaces.insert(place, outer.clone());
                    }
                    if entry.has_children() {
                        namespaces.push((depth, nested(dwarf, unit, entry, outer.as_deref())));
                    }
                }
                _ => {}
            }
        }
        found.functions.sort_unstable();
        self.read.insert(number, found);
        Ok(())
    }
}

impl UnitIndex {
    fn add<'a>(&mut self, dwarf: &gimli::Dwarf<Bytes<'a>>, unit: &Unit<'a>, entry: &Entry<'a>, place: Place) {
        let Ok(mut ranges) = dwarf.die_ranges(unit, entry) else { return };
        while let Ok(Some(range)) = ranges.next() {
            if range.begin > 0 && range.begin < range.end && self.functions.len() < MAX_RANGES {
                self.functions.push((range.begin, range.end, place));
            }
        }
    }

    /// Returns the function with the code at an address.
    pub fn function_at(&self, address: u64) -> Option<Place> {
        holder(&self.functions, address)
    }
}

/// Returns whether an entry declares a variable that another unit defines.
fn is_declaration(entry: &Entry<'_>) -> bool {
    let has = |name| entry.attr_value(name).is_some();
    has(dw::DW_AT_declaration) && has(dw::DW_AT_external) && !has(dw::DW_AT_location)
}

/// Returns the value of the range that contains an address. Ranges rarely overlap.
fn holder<T: Copy>(ranges: &[(u64, u64, T)], address: u64) -> Option<T> {
    /// How many ranges before the address are looked at.
    const LOOK_BACK: usize = 64;
    let end = ranges.partition_point(|(start, ..)| *start <= address);
    let candidates = ranges.get(end.saturating_sub(LOOK_BACK)..end).unwrap_or_default();
    candidates.iter().rev().find(|(_, end, _)| address < *end).map(|(.., value)| *value)
}

/// Returns the name of a namespace with those around it.
fn nested<'a>(
    dwarf: &gimli::Dwarf<Bytes<'a>>,
    unit: &Unit<'a>,
    entry: &Entry<'a>,
    outer: Option<&str>,
) -> Rc<str> {
    let name = entry.attr_value(dw::DW_AT_name).and_then(|name| dwarf.attr_string(unit, name).ok());
    let name = name.map_or_else(|| "(anonymous)".into(), |name| String::from_utf8_lossy(name.slice()));
    let whole = outer.map_or_else(|| name.to_string(), |outer| format!("{outer}::{name}"));
    let mut end = whole.len().min(MAX_NAMESPACE);
    while !whole.is_char_boundary(end) {
        end -= 1;
    }
    whole.get(..end).unwrap_or_default().into()
}
