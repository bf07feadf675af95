//! The types of a program, read from DWARF when they are needed.

use std::rc::Rc;

use gimli::constants as dw;
use gimli::{AttributeValue, UnitOffset};
use precise_code::types::{
    DescribedTypes, Global, MAX_NAME, Member, MemberRole, PerCpu, TypeForm, TypeId, TypeLabel, TypeShape,
    Types, Untyped, bounded_name,
};
use rustc_hash::FxHashMap;

use super::index::Index;
use super::sections::SectionContents;
use super::{Budget, Bytes, Entry, Place, Unit};
use crate::reader::demangle::bounded;
use crate::reader::protocol::CodeOwner;

/// Maximum number of types of one answer.
const MAX_TYPES: usize = 1 << 16;
/// Maximum number of fields of a type that are read.
const MAX_FIELDS: usize = 8192;
/// Maximum number of entries from a type, or from a variable, to what it stands for.
const MAX_LINKS: usize = 32;
/// Maximum number of arrays of arrays.
const MAX_ARRAYS: usize = 16;

/// The types and variables that one answer needs.
pub(super) struct TypeTable<'a, 'i> {
    pub dwarf: &'i gimli::Dwarf<Bytes<'a>>,
    pub index: &'i mut Index,
    pub budget: &'i Budget,
    /// What the file itself says about the unit whose debug information was split off.
    skeleton: Option<&'i Unit<'a>>,
    /// Whose code the answer is about.
    of: CodeOwner,
    /// The unit with this code.
    pub of_unit: Option<u32>,
    /// The file whose table of symbols names variables.
    named: Option<&'i SectionContents>,
    units: FxHashMap<u32, Option<Rc<Unit<'a>>>>,
    nodes: Vec<TypeNode>,
    by_place: FxHashMap<Place, Option<TypeId>>,
    by_name: FxHashMap<(String, u64), TypeId>,
}

/// A type.
#[derive(Debug)]
pub(super) struct TypeNode {
    /// Its entry, behind typedefs and qualifiers.
    pub place: Place,
    pub tag: gimli::DwTag,
    /// The name with its namespace; empty if it has none.
    pub name: String,
    pub size: Option<u64>,
    /// The alignment that the source asks for.
    pub alignment: Option<u64>,
    build: Build,
    fields: Option<Rc<Vec<Member>>>,
}

#[derive(Clone, Copy, Debug)]
enum Build {
    Scalar,
    /// What a pointer points to; `None` for `void`.
    Pointer(Option<Place>),
    /// The element and the number of elements, if known.
    Array(Place, Option<u64>),
    Composite,
    Opaque,
}

impl<'a, 'i> TypeTable<'a, 'i> {
    pub fn of(
        dwarf: &'i gimli::Dwarf<Bytes<'a>>,
        index: &'i mut Index,
        budget: &'i Budget,
    ) -> Result<Self, Untyped> {
        index.prepare(dwarf, budget)?;
        Ok(Self::new(dwarf, index, budget, None))
    }

    /// As [`Self::of`], for the unit that was split off `skeleton`.
    pub fn of_split(
        dwarf: &'i gimli::Dwarf<Bytes<'a>>,
        index: &'i mut Index,
        budget: &'i Budget,
        (id, skeleton): (gimli::DwoId, &'i Unit<'a>),
    ) -> Result<Self, Untyped> {
        index.prepare_split(dwarf, id, budget)?;
        Ok(Self::new(dwarf, index, budget, Some(skeleton)))
    }

    fn new(
        dwarf: &'i gimli::Dwarf<Bytes<'a>>,
        index: &'i mut Index,
        budget: &'i Budget,
        skeleton: Option<&'i Unit<'a>>,
    ) -> Self {
        Self {
            dwarf,
            index,
            budget,
            skeleton,
            of: CodeOwner::Program,
            of_unit: None,
            named: None,
            units: FxHashMap::default(),
            nodes: Vec::new(),
            by_place: FxHashMap::default(),
            by_name: FxHashMap::default(),
        }
    }

    /// Says whose code is asked about, and which file's table of symbols names variables.
    pub fn with(self, of: CodeOwner, named: &'i SectionContents) -> Self {
        Self { of, named: Some(named), ..self }
    }

    /// Returns the unit with the code at an address if its debug information was split off: the
    /// number that it has in both files, what is left of it here, and the name of the other file.
    pub fn skeleton(&mut self, address: u64) -> Option<(gimli::DwoId, Rc<Unit<'a>>, String)> {
        let number = self.index.unit_at(address)?;
        let unit = self.unit(number)?;
        let name = self.dwarf.attr_string(&unit, unit.dwo_name().ok()??).ok()?;
        Some((unit.dwo_id?, unit, bounded(&String::from_utf8_lossy(name.slice()))))
    }

    /// Returns the debug information that has the entry at a place.
    fn dwarf_at(&self, place: Place) -> Option<&'i gimli::Dwarf<Bytes<'a>>> {
        if self.index.is_in_supplement(place) { self.dwarf.sup() } else { Some(self.dwarf) }
    }

    /// Returns a unit.
    pub fn unit(&mut self, number: u32) -> Option<Rc<Unit<'a>>> {
        if let Some(known) = self.units.get(&number) {
            return known.clone();
        }
        let header = self.index.header(number, self.dwarf);
        let dwarf = self.index.start_of(number).and_then(|start| self.dwarf_at(Place(start)));
        let mut unit = header.zip(dwarf).and_then(|(header, dwarf)| dwarf.unit(header).ok());
        if let (Some(unit), Some(skeleton)) = (&mut unit, self.skeleton) {
            unit.copy_relocated_attributes(skeleton);
        }
        let unit = unit.map(Rc::new);
        self.units.insert(number, unit.clone());
        unit
    }

    /// Makes sure that the functions and variables of a unit are known.
    pub fn read_unit(&mut self, number: u32) -> Result<(), Untyped> {
        if self.index.has(number) {
            return Ok(());
        }
        let dwarf = self.index.start_of(number).and_then(|start| self.dwarf_at(Place(start)));
        let Some((unit, dwarf)) = self.unit(number).zip(dwarf) else { return Ok(()) };
        self.index.read(number, dwarf, &unit, self.budget)
    }

    /// Returns an entry with its unit.
    pub fn entry(&mut self, place: Place) -> Option<(Rc<Unit<'a>>, usize, Entry<'a>)> {
        self.budget.take().ok()?;
        let (number, start) = self.index.unit_of(place)?;
        let unit = self.unit(number)?;
        let entry = unit.entry(UnitOffset(place.0.checked_sub(start)?)).ok()?;
        Some((unit, start, entry))
    }

    /// Returns the place that an attribute refers to: in the unit that begins at `start`, in
    /// another one, or in one that is for a single type.
    pub fn reference(&self, start: usize, value: AttributeValue<Bytes<'_>>) -> Option<Place> {
        match value {
            AttributeValue::UnitRef(offset) => start.checked_add(offset.0).map(Place),
            AttributeValue::DebugInfoRef(offset) if self.index.is_in_supplement(Place(start)) => {
                self.index.in_supplement(offset)
            }
            AttributeValue::DebugInfoRef(offset) => Some(Place(offset.0)),
            AttributeValue::DebugInfoRefSup(offset) => self.index.in_supplement(offset),
            AttributeValue::DebugTypesRef(signature) => self.index.type_of(signature),
            _ => None,
        }
    }

    /// Returns the entry that another one is an instance or the definition of.
    pub fn origin(&self, start: usize, entry: &Entry<'_>) -> Option<Place> {
        let links = [dw::DW_AT_abstract_origin, dw::DW_AT_specification];
        links.into_iter().find_map(|link| self.reference(start, entry.attr_value(link)?))
    }

    /// Returns the place of the type of a variable, field or function, which may be that of the
    /// entry that it is an instance of.
    pub fn type_place(&mut self, start: usize, entry: &Entry<'a>) -> Option<Place> {
        if let Some(to) = entry.attr_value(dw::DW_AT_type) {
            return self.reference(start, to);
        }
        let mut next = self.origin(start, entry)?;
        for _ in 0..MAX_LINKS {
            let (_, start, entry) = self.entry(next)?;
            if let Some(to) = entry.attr_value(dw::DW_AT_type) {
                return self.reference(start, to);
            }
            next = self.origin(start, &entry)?;
        }
        None
    }

    /// Returns the type at a place.
    pub fn intern(&mut self, place: Place) -> Option<TypeId> {
        if let Some(known) = self.by_place.get(&place) {
            return *known;
        }
        let found = self.read_type(place);
        self.by_place.insert(place, found);
        found
    }

    fn read_type(&mut self, first: Place) -> Option<TypeId> {
        let (mut place, mut name, mut alignment) = (first, String::new(), None);
        for _ in 0..MAX_LINKS {
            let (unit, start, entry) = self.entry(place)?;
            if let Some(signature) = entry.attr_value(dw::DW_AT_signature) {
                // Only a declaration: the type has a unit of its own.
                place = self.reference(start, signature)?;
                continue;
            }
            alignment = alignment.or_else(|| number(&entry, dw::DW_AT_alignment));
            match entry.tag() {
                dw::DW_TAG_typedef => {
                    if name.is_empty() {
                        name = self.text(start, &unit, &entry);
                    }
                }
                dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_restrict_type
                | dw::DW_TAG_atomic_type => {}
                _ => {
                    if let Some(known) = self.by_place.get(&place) {
                        return *known;
                    }
                    let node = self.node(place, &unit, start, &entry, name, alignment);
                    let id = self.add(node);
                    self.by_place.insert(place, id);
                    return id;
                }
            }
            place = self.reference(start, entry.attr_value(dw::DW_AT_type)?)?;
        }
        None
    }

    /// Adds a type, unless another unit has described it already.
    fn add(&mut self, node: TypeNode) -> Option<TypeId> {
        let key = match (node.build, node.size) {
            (Build::Composite | Build::Scalar, Some(size)) if !node.name.is_empty() => {
                Some((node.name.clone(), size))
            }
            _ => None,
        };
        if let Some(known) = key.as_ref().and_then(|key| self.by_name.get(key)) {
            return Some(*known);
        }
        let id = TypeId(u32::try_from(self.nodes.len()).ok().filter(|_| self.nodes.len() < MAX_TYPES)?);
        self.nodes.push(node);
        if let Some(key) = key {
            self.by_name.insert(key, id);
        }
        Some(id)
    }

    fn node(
        &mut self,
        place: Place,
        unit: &Unit<'a>,
        start: usize,
        entry: &Entry<'a>,
        typedef: String,
        alignment: Option<u64>,
    ) -> TypeNode {
        let to = entry.attr_value(dw::DW_AT_type).and_then(|to| self.reference(start, to));
        let declared = entry.attr_value(dw::DW_AT_declaration).is_some();
        let tag = entry.tag();
        let mut size = number(entry, dw::DW_AT_byte_size);
        let build = match tag {
            dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type => {
                size = size.or(Some(8));
                Build::Pointer(to)
            }
            dw::DW_TAG_array_type => match to {
                Some(element) => Build::Array(element, self.elements(unit, entry)),
                None => Build::Opaque,
            },
            _ if declared => Build::Opaque,
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => Build::Composite,
            dw::DW_TAG_base_type | dw::DW_TAG_enumeration_type | dw::DW_TAG_ptr_to_member_type => {
                Build::Scalar
            }
            _ => Build::Opaque,
        };
        let own = self.text(start, unit, entry);
        let name = if own.is_empty() { typedef } else { self.qualified(place, own) };
        TypeNode { place, tag, name, size, alignment, build, fields: None }
    }

    /// Returns a name with its namespace, if the unit was read.
    fn qualified(&mut self, place: Place, name: String) -> String {
        let unit = self.index.unit_of(place).map(|(number, _)| number);
        // Units that other units refer to are read for their namespaces.
        if let Some(number) = unit {
            let _without_namespaces = self.read_unit(number);
        }
        let index = unit.and_then(|number| self.index.unit(number));
        match index.and_then(|index| index.namespaces.get(&place)) {
            Some(namespace) => bounded_name(format!("{namespace}::{name}")),
            None => name,
        }
    }

    /// Returns the number of elements of an array, in all its dimensions.
    fn elements(&mut self, unit: &Unit<'a>, entry: &Entry<'a>) -> Option<u64> {
        let mut tree = unit.entries_tree(Some(entry.offset())).ok()?;
        let mut children = tree.root().ok()?.children();
        let mut all = None;
        while let Ok(Some(child)) = children.next() {
            self.budget.take().ok()?;
            let child = child.entry();
            if child.tag() == dw::DW_TAG_subrange_type {
                let upper = number(child, dw::DW_AT_upper_bound).map(|upper| upper.wrapping_add(1));
                let count = number(child, dw::DW_AT_count).or(upper)?;
                all = Some(all.unwrap_or(1_u64).checked_mul(count)?);
            }
        }
        all
    }

    /// Returns the name of an entry of the unit at `start`, bounded; empty if it has none.
    pub fn text(&self, start: usize, unit: &Unit<'a>, entry: &Entry<'a>) -> String {
        let dwarf = self.dwarf_at(Place(start));
        let name = entry.attr_value(dw::DW_AT_name).and_then(|name| dwarf?.attr_string(unit, name).ok());
        name.map_or_else(String::new, |name| {
            let bytes = name.slice();
            bounded_name(
                String::from_utf8_lossy(bytes.get(..bytes.len().min(MAX_NAME)).unwrap_or_default())
                    .into_owned(),
            )
        })
    }

    /// Returns a type.
    pub fn get(&self, ty: TypeId) -> Option<&TypeNode> {
        self.nodes.get(ty.0 as usize)
    }

    fn read_members(&mut self, place: Place) -> Option<Vec<Member>> {
        let (unit, start, entry) = self.entry(place)?;
        let mut members = Vec::new();
        let mut entries = unit.entries_at_offset(entry.offset()).ok()?;
        let top = entries.next_dfs().ok()??.depth();
        let mut discriminant = None;
        while let Ok(Some(entry)) = entries.next_dfs() {
            let depth = entry.depth() - top;
            if depth <= 0 || members.len() >= MAX_FIELDS {
                break;
            }
            self.budget.take().ok()?;
            let role = match (entry.tag(), depth) {
                (dw::DW_TAG_inheritance, 1) => MemberRole::Base,
                (dw::DW_TAG_member, 1) => MemberRole::Field,
                (dw::DW_TAG_variant_part, 1) => {
                    discriminant = entry.attr_value(dw::DW_AT_discr).and_then(|to| self.reference(start, to));
                    continue;
                }
                (dw::DW_TAG_member, 2) if discriminant == Some(Place(start + entry.offset().0)) => {
                    MemberRole::Discriminant
                }
                (dw::DW_TAG_member, 3) => MemberRole::Variant,
                _ => continue,
            };
            // Static members have no place in the object, and virtual bases no fixed one.
            let place = match (entry.attr_value(dw::DW_AT_data_member_location), bit_offset(entry)) {
                (Some(at), _) => at.udata_value(),
                (None, Some(bit)) => Some(bit / 8),
                (None, None) if entry.attr_value(dw::DW_AT_external).is_some() => None,
                (None, None) => Some(0),
            };
            let Some(offset) = place else { continue };
            let (name, bits) = (self.text(start, &unit, entry), number(entry, dw::DW_AT_bit_size));
            let to = entry.attr_value(dw::DW_AT_type).and_then(|to| self.reference(start, to));
            let Some(ty) = to.and_then(|to| self.intern(to)) else { continue };
            members.push(Member { name, offset, ty, bits, role });
        }
        Some(members)
    }

    /// Returns the first type parameter of a generic type.
    fn parameter(&mut self, place: Place) -> Option<TypeId> {
        let (unit, start, entry) = self.entry(place)?;
        let mut tree = unit.entries_tree(Some(entry.offset())).ok()?;
        let mut children = tree.root().ok()?.children();
        while let Ok(Some(child)) = children.next() {
            self.budget.take().ok()?;
            let child = child.entry();
            if child.tag() == dw::DW_TAG_template_type_parameter {
                let to = child.attr_value(dw::DW_AT_type).and_then(|to| self.reference(start, to))?;
                return self.intern(to);
            }
        }
        None
    }

    fn global_in_units(&mut self, address: u64) -> Option<Global> {
        let (start, place, size) = self.index.global(address)?;
        let (_, unit_start, entry) = self.entry(place)?;
        let ty = self.type_place(unit_start, &entry).and_then(|place| self.intern(place))?;
        (address - start < self.size_of(ty).max(size)).then_some(Global { address: start, ty })
    }

    /// Returns the global variable at an address of the file.
    fn global_in_file(&mut self, address: u64) -> Option<Global> {
        if let Some(found) = self.global_in_units(address) {
            return Some(found);
        }
        // The unit that uses a variable declares it.
        let symbol = self.named.and_then(|file| file.variable_at(address));
        if let (Some(symbol), Some(unit)) = (symbol, self.of_unit)
            && self.index.declare(unit, symbol)
        {
            return self.global_in_units(address);
        }
        let units = self.index.units_to_search()?;
        for number in 0..units {
            self.read_unit(number).ok()?;
        }
        self.global_in_units(address)
    }

    /// Returns the name of the global variable at an address of the file; empty if it has none.
    fn name_in_file(&mut self, address: u64) -> String {
        let Some((_, mut place, _)) = self.index.global(address) else { return String::new() };
        for _ in 0..MAX_LINKS {
            let Some((unit, start, entry)) = self.entry(place) else { break };
            let name = self.text(start, &unit, &entry);
            if !name.is_empty() {
                return name;
            }
            let Some(next) = self.origin(start, &entry) else { break };
            place = next;
        }
        String::new()
    }

    /// Returns the address in the file of a variable of which each CPU has a copy. Until Linux 6.14
    /// these variables were linked at 0, and were not moved with the kernel.
    fn per_cpu_in_file(&self, address: u64) -> Option<u64> {
        let there = self.named.filter(|_| self.has_per_cpu())?.per_cpu();
        let moved = if there.start.cast_signed() < 0 { self.of.moved() } else { 0 };
        Some(address.wrapping_sub(moved)).filter(|address| there.contains(address))
    }
}

impl Types for TypeTable<'_, '_> {
    fn shape(&mut self, ty: TypeId) -> TypeShape {
        match self.get(ty).map(|node| node.build) {
            Some(Build::Scalar | Build::Pointer(_)) => TypeShape::Scalar,
            Some(Build::Composite) => TypeShape::Composite,
            Some(Build::Array(element, _)) => {
                self.intern(element).map_or(TypeShape::Opaque, |element| TypeShape::Array { element })
            }
            Some(Build::Opaque) | None => TypeShape::Opaque,
        }
    }

    fn size(&mut self, ty: TypeId) -> Option<u64> {
        let (mut ty, mut times) = (ty, 1_u64);
        for _ in 0..MAX_ARRAYS {
            let node = self.get(ty)?;
            match (node.build, node.size) {
                (_, Some(size)) => return times.checked_mul(size),
                (Build::Array(element, count), None) => {
                    times = times.checked_mul(count.unwrap_or(0))?;
                    ty = self.intern(element)?;
                }
                _ => return None,
            }
        }
        None
    }

    fn pointee(&mut self, ty: TypeId) -> Option<TypeId> {
        match self.get(ty)?.build {
            Build::Pointer(to) => self.intern(to?),
            _ => None,
        }
    }

    fn fields_at(&mut self, ty: TypeId, offset: u64) -> Vec<(TypeId, u64)> {
        self.members_at(ty, offset)
    }

    fn erased(&mut self, ty: TypeId) -> Option<TypeId> {
        // The vectors of Rust's standard library keep a pointer to bytes, whatever the elements.
        let node = self.get(ty)?;
        let base = node.name.split('<').next().unwrap_or_default();
        let place = node.place;
        (base == "RawVec" || base.ends_with("::RawVec")).then(|| self.parameter(place)).flatten()
    }

    fn global(&mut self, address: u64) -> Option<Global> {
        if self.per_cpu_in_file(address).is_some() {
            return None;
        }
        let moved = self.of.moved();
        let found = self.global_in_file(address.wrapping_sub(moved))?;
        Some(Global { address: found.address.wrapping_add(moved), ..found })
    }

    fn has_per_cpu(&self) -> bool {
        matches!(self.of, CodeOwner::Kernel(_))
    }

    fn leads_to_cpu(&mut self, global: Global) -> bool {
        self.has_per_cpu() && self.global_name(global.address) == "__per_cpu_offset"
    }

    fn per_cpu(&mut self, address: u64) -> Option<PerCpu> {
        let in_file = self.per_cpu_in_file(address)?;
        let found = self.global_in_file(in_file)?;
        let is_offset = self.name_in_file(found.address) == "this_cpu_off";
        let moved = address.wrapping_sub(in_file);
        let global = Global { address: found.address.wrapping_add(moved), ..found };
        Some(if is_offset { PerCpu::Offset(global) } else { PerCpu::Variable(global) })
    }
}

impl DescribedTypes for TypeTable<'_, '_> {
    fn label(&self, ty: TypeId) -> Option<TypeLabel<'_>> {
        let node = self.get(ty)?;
        let form = match node.tag {
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type => TypeForm::Struct,
            dw::DW_TAG_union_type => TypeForm::Union,
            dw::DW_TAG_enumeration_type => TypeForm::Enumeration,
            dw::DW_TAG_pointer_type => TypeForm::Pointer,
            dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type => TypeForm::Reference,
            dw::DW_TAG_subroutine_type => TypeForm::Function,
            _ => TypeForm::Other,
        };
        Some(TypeLabel { name: &node.name, form, alignment: node.alignment })
    }

    fn members(&mut self, ty: TypeId) -> Rc<Vec<Member>> {
        let Some(node) = self.get(ty) else { return Rc::default() };
        if let Some(known) = &node.fields {
            return known.clone();
        }
        let place = node.place;
        let members = Rc::new(self.read_members(place).unwrap_or_default());
        if let Some(node) = self.nodes.get_mut(ty.0 as usize) {
            node.fields = Some(members.clone());
        }
        members
    }

    fn global_name(&mut self, address: u64) -> String {
        self.name_in_file(address.wrapping_sub(self.of.moved()))
    }
}

/// Returns the value of an attribute that is a number.
pub(super) fn number(entry: &Entry<'_>, name: gimli::DwAt) -> Option<u64> {
    entry.attr_value(name)?.udata_value()
}

/// Returns the distance of a bit field from the start of the struct in bits.
fn bit_offset(entry: &Entry<'_>) -> Option<u64> {
    number(entry, dw::DW_AT_data_bit_offset)
}
