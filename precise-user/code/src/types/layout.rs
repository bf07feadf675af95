//! The layouts of types, for people.

use super::described::{DescribedTypes, Member, MemberRole, TypeForm, bounded_name};
use super::{Field, Kind, TypeId, TypeLayout, TypeShape};

/// Maximum number of fields of a layout.
const MAX_FIELDS: usize = 2048;
/// Maximum depth of structs in structs, and of the names of types.
const MAX_DEPTH: usize = 12;
/// The largest alignment of a scalar on x86-64.
const MAX_ALIGNMENT: u64 = 16;

/// The name of the bytes that belong to one variant of an enum or another.
const VARIANTS: &str = "(variants)";
const DISCRIMINANT: &str = "(discriminant)";

/// The fields of a layout while it is read.
#[derive(Default)]
struct Fields {
    all: Vec<Field>,
    cut: bool,
    /// The largest alignment of a scalar in it.
    alignment: u64,
    /// Whether a field is not where its alignment would put it.
    packed: bool,
}

/// Reads layouts.
pub(super) struct LayoutReader<'a>(pub &'a mut dyn DescribedTypes);

impl LayoutReader<'_> {
    /// Returns the layout of a type.
    pub fn layout(&mut self, ty: TypeId) -> TypeLayout {
        if let Some(known) = self.0.layouts().and_then(|known| known.get(&ty)) {
            return known.clone();
        }
        let layout = self.read(ty);
        if let Some(known) = self.0.layouts() {
            known.insert(ty, layout.clone());
        }
        layout
    }

    fn read(&mut self, ty: TypeId) -> TypeLayout {
        let size = self.0.size_of(ty);
        let name = self.name(ty, 0);
        let asked = self.0.label(ty).and_then(|label| label.alignment).filter(|n| n.is_power_of_two());
        if self.0.shape(ty) != TypeShape::Composite {
            let alignment = if size.is_power_of_two() && size <= MAX_ALIGNMENT { size } else { 1 };
            let (fields, members) = (Vec::new(), Vec::new());
            return TypeLayout { name, kind: Kind::Scalar, size, alignment, fields, members, cut: false };
        }
        let mut fields = Fields { alignment: 1, ..Fields::default() };
        let kind = self.kind(ty);
        match kind {
            Kind::Enum => self.variants(ty, size, &mut fields),
            _ => self.flatten(ty, "", 0, 0, &mut fields),
        }
        fields.all.sort_by(|a, b| (a.offset, b.size, &a.name).cmp(&(b.offset, a.size, &b.name)));
        let sound = !fields.packed && size.is_multiple_of(fields.alignment);
        let alignment = asked.unwrap_or(if sound { fields.alignment } else { 1 });
        let members = if kind == Kind::Struct { self.declared(ty).unwrap_or_default() } else { Vec::new() };
        TypeLayout { name, kind, size, alignment, fields: fields.all, members, cut: fields.cut }
    }

    /// Returns the members of a struct as it declares them; `None` if their order is not free.
    fn declared(&mut self, ty: TypeId) -> Option<Vec<Field>> {
        let members = self.0.members(ty);
        let free = |member: &Member| {
            member.role == MemberRole::Field
                && member.bits.is_none()
                && !member.name.is_empty()
                && !member.name.starts_with("_vptr")
        };
        if members.len() > MAX_FIELDS || !members.iter().all(free) {
            return None;
        }
        let mut declared = Vec::new();
        for member in members.iter() {
            let (name, offset) = (bounded_name(member.name.clone()), member.offset);
            let (type_name, size) = (self.named(member.ty, 0, true), self.0.size_of(member.ty));
            declared.push(Field { name, type_name, offset, size });
        }
        declared.sort_by_key(|field| field.offset);
        Some(declared)
    }

    fn kind(&mut self, ty: TypeId) -> Kind {
        if self.0.members(ty).iter().any(|member| member.role == MemberRole::Variant) {
            return Kind::Enum;
        }
        match self.0.label(ty).map(|label| label.form) {
            Some(TypeForm::Union) => Kind::Union,
            _ => Kind::Struct,
        }
    }

    /// Adds the fields of an enum: what says which variant it is, if that has bytes of its own, and
    /// the bytes of the variants.
    fn variants(&mut self, ty: TypeId, size: u64, fields: &mut Fields) {
        let members = self.0.members(ty);
        let variants = members.iter().filter(|member| member.role == MemberRole::Variant);
        let discriminant = members.iter().find(|member| member.role == MemberRole::Discriminant);
        let mut start = 0;
        if let Some(member) = discriminant {
            let end = member.offset.saturating_add(self.0.size_of(member.ty));
            let mut overlaps = false;
            for variant in variants {
                let mut inner = Fields::default();
                self.flatten(variant.ty, "", variant.offset, 1, &mut inner);
                overlaps |= inner.all.iter().any(|field| {
                    field.offset < end && field.offset.saturating_add(field.size) > member.offset
                });
            }
            if member.offset == 0 && !overlaps {
                start = end;
                let type_name = self.name(member.ty, 0);
                fields.all.push(Field { name: DISCRIMINANT.into(), type_name, offset: 0, size: end });
            }
        }
        let rest = size.saturating_sub(start);
        if rest > 0 {
            fields.all.push(Field {
                name: VARIANTS.into(),
                type_name: "enum".into(),
                offset: start,
                size: rest,
            });
        }
    }

    /// Adds the fields of a type that begins at `base`. Their names follow `prefix`.
    fn flatten(&mut self, ty: TypeId, prefix: &str, base: u64, depth: usize, fields: &mut Fields) {
        for member in self.0.members(ty).iter() {
            if fields.all.len() >= MAX_FIELDS {
                fields.cut = true;
                return;
            }
            let offset = base.saturating_add(member.offset);
            let inner = self.0.shape(member.ty);
            let opens =
                inner == TypeShape::Composite && self.kind(member.ty) == Kind::Struct && depth < MAX_DEPTH;
            let in_union = depth == 0 && self.kind(ty) == Kind::Union;
            let name = format!("{prefix}{}", shown(member));
            if opens && !in_union && !self.0.members(member.ty).is_empty() {
                let prefix = match member.role {
                    MemberRole::Base => prefix.to_owned(),
                    _ if member.name.is_empty() => prefix.to_owned(),
                    _ => format!("{name}."),
                };
                self.flatten(member.ty, &prefix, offset, depth + 1, fields);
            } else if member.role != MemberRole::Base {
                self.leaf(member, bounded_name(name), offset, fields);
            }
        }
    }

    fn leaf(&mut self, member: &Member, name: String, offset: u64, fields: &mut Fields) {
        let size = self.0.size_of(member.ty);
        let natural = self.alignment(member.ty);
        fields.alignment = fields.alignment.max(natural);
        if let Some(bits) = member.bits {
            let size = size.max(1);
            let offset = offset - offset % size;
            let name = format!("{name}:{bits}");
            // Bit fields that share bytes are one field, with the name of the first and the last: a
            // word of flags has dozens.
            if let Some(last) =
                fields.all.last_mut().filter(|last| last.offset == offset && last.name.contains(':'))
            {
                let first = last.name.split_once([',', ' ']).map(|(first, _)| first);
                last.name = bounded_name(match first {
                    None => format!("{},{name}", last.name),
                    Some(first) => format!("{first} to {name}"),
                });
                return;
            }
            let type_name = self.name(member.ty, 0);
            fields.all.push(Field { name, type_name, offset, size });
            return;
        }
        fields.packed |= !offset.is_multiple_of(natural);
        let type_name = self.name(member.ty, 0);
        fields.all.push(Field { name, type_name, offset, size });
    }

    /// Returns the alignment of a type that is no struct; 1 if it is not known.
    fn alignment(&mut self, ty: TypeId) -> u64 {
        let mut ty = ty;
        for _ in 0..MAX_DEPTH {
            match self.0.shape(ty) {
                TypeShape::Array { element } => ty = element,
                TypeShape::Scalar => {
                    let size = self.0.size_of(ty);
                    return if size.is_power_of_two() { size.min(MAX_ALIGNMENT) } else { 1 };
                }
                TypeShape::Composite | TypeShape::Opaque => return 1,
            }
        }
        1
    }

    /// Returns the name of a type, as its language writes it.
    fn name(&mut self, ty: TypeId, depth: usize) -> String {
        self.named(ty, depth, false)
    }

    /// Returns the name of a type; with `tagged` after `struct` or `union`, as C declares it.
    fn named(&mut self, ty: TypeId, depth: usize, tagged: bool) -> String {
        let Some(label) = self.0.label(ty) else { return String::new() };
        let (name, form) = (label.name.to_owned(), label.form);
        if depth > MAX_DEPTH {
            return "…".to_owned();
        }
        if let TypeShape::Array { element } = self.0.shape(ty) {
            let of = self.named(element, depth + 1, tagged);
            let (whole, one) = (self.0.size_of(ty), self.0.size_of(element));
            let count = whole.checked_div(one).unwrap_or(0);
            return bounded_name(if count > 0 { format!("{of}[{count}]") } else { format!("{of}[]") });
        }
        if !name.is_empty() {
            return match form {
                TypeForm::Struct if tagged => format!("struct {name}"),
                TypeForm::Union if tagged => format!("union {name}"),
                TypeForm::Enumeration if tagged => format!("enum {name}"),
                _ => name,
            };
        }
        match form {
            TypeForm::Pointer => {
                let to = self.0.pointee(ty).map(|to| self.named(to, depth + 1, tagged));
                bounded_name(format!("{}*", to.unwrap_or_else(|| "void".to_owned())))
            }
            TypeForm::Reference => {
                let to = self.0.pointee(ty).map(|to| self.named(to, depth + 1, tagged));
                bounded_name(format!("{}&", to.unwrap_or_default()))
            }
            TypeForm::Function => "function".to_owned(),
            TypeForm::Union => "union".to_owned(),
            TypeForm::Enumeration => "enum".to_owned(),
            TypeForm::Struct | TypeForm::Other => "struct".to_owned(),
        }
    }
}

/// Returns the name of a field as it is shown.
fn shown(member: &Member) -> &str {
    match member.role {
        MemberRole::Field if member.name.starts_with("_vptr") => "vptr",
        MemberRole::Field if member.name.is_empty() => "(unnamed)",
        _ => &member.name,
    }
}
