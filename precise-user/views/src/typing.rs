//! Types as group keys: looks up what the sampled instructions access, once for each capture that a
//! view with `--by type` or `--by field` is about.

use std::collections::BTreeMap;
use std::fmt;

use precise_code::FunctionId;
use precise_code::types::{TypedAccess, TypedCode};
use precise_model::accesses::{
    AccessTypes, MAX_FUNCTIONS, NO_CODE, NO_FUNCTION, NOT_LOOKED_AT, TypedField, TypedPlace,
};
use precise_model::keys::Key;
use precise_model::sampled::SampledAccess;
use precise_model::{Capture, CompactSort as _, LocationId, Names, Row};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

use crate::code::{Code, function_of};

/// The sampled instructions of one function, by their distance from its start.
#[derive(Default)]
struct InFunction {
    samples: u64,
    at: BTreeMap<u64, Vec<LocationId>>,
}

/// Looks up the types of all sampled accesses of a capture if one of the keys needs them. Code that
/// is not available is a reason in the result, not an error.
pub fn look_up(capture: &mut Capture, keys: &[Key], code: &mut dyn Code) {
    if capture.types.is_some() || !keys.iter().any(|key| key.needs_types()) {
        return;
    }
    let mut types = AccessTypes::new(&mut capture.names, NO_FUNCTION);
    for (number, (id, function)) in functions(capture, |_| true).into_iter().enumerate() {
        let wanted: Vec<u64> = function.at.keys().copied().collect();
        let found = if number < MAX_FUNCTIONS { code.types(&id, &wanted) } else { Ok(TypedCode::default()) };
        let lacking = if number < MAX_FUNCTIONS { NO_CODE } else { NOT_LOOKED_AT };
        let lacking = capture.names.intern(lacking);
        let found = found.ok().filter(|_| number < MAX_FUNCTIONS);
        let mut of_offset: FxHashMap<u64, Vec<TypedPlace>> = FxHashMap::default();
        for instruction in found.iter().flat_map(|code| &code.instructions) {
            let places = instruction.accesses.iter();
            let places = places.map(|access| place(access, found.as_ref(), &mut capture.names));
            of_offset.insert(instruction.offset, places.collect());
        }
        for (offset, locations) in function.at {
            let unknown = || vec![TypedPlace { reads: true, writes: true, found: Err(lacking) }];
            let places = of_offset.remove(&offset).unwrap_or_else(unknown);
            locations.into_iter().for_each(|location| types.insert(location, places.clone()));
        }
    }
    capture.types = Some(types);
}

/// A field of an object that an instruction accesses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct AccessedField {
    /// The name of the type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The name of the field; empty for a value without fields.
    pub field: String,
    /// The distance of the accessed byte from the start of the object. `None` if an array in the
    /// object was indexed, so that the exact byte is not known.
    pub distance: Option<u64>,
}

impl AccessedField {
    /// Returns the field of an access; `None` if its type is not known.
    pub(crate) fn of(access: &TypedAccess, code: &TypedCode) -> Option<Self> {
        let object = access.object.ok()?;
        let layout = code.layouts.get(object.layout as usize)?;
        let field = layout.field_at(object.offset).map(|field| field.name.clone()).unwrap_or_default();
        let distance = (!object.indexed).then_some(object.offset);
        Some(Self { type_name: layout.name.clone(), field, distance })
    }
}

impl fmt::Display for AccessedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.field, self.distance) {
            ("", None | Some(0)) => f.write_str(&self.type_name),
            ("", Some(distance)) => write!(f, "{}.+{distance}", self.type_name),
            (field, _) => write!(f, "{}.{field}", self.type_name),
        }
    }
}

/// The fields that some sampled instructions access.
pub(crate) struct AccessedFields {
    at: FxHashMap<LocationId, Vec<(TypedAccess, Option<AccessedField>)>>,
}

impl AccessedFields {
    /// Looks up the fields at some locations.
    pub fn at(capture: &Capture, locations: &FxHashSet<LocationId>, code: &mut dyn Code) -> Self {
        let mut at = FxHashMap::default();
        let functions = functions(capture, |id| locations.contains(id));
        for (id, function) in functions.into_iter().take(MAX_FUNCTIONS) {
            let wanted: Vec<u64> = function.at.keys().copied().collect();
            let Ok(found) = code.types(&id, &wanted) else { continue };
            for instruction in &found.instructions {
                let accesses = instruction.accesses.iter();
                let fields: Vec<_> = accesses.map(|a| (*a, AccessedField::of(a, &found))).collect();
                let here = function.at.get(&instruction.offset).into_iter().flatten();
                at.extend(here.map(|location| (*location, fields.clone())));
            }
        }
        Self { at }
    }

    /// Returns the field that a sample accesses; `None` if it is not known.
    pub fn of(&self, capture: &Capture, row: &Row) -> Option<&AccessedField> {
        let accesses = self.at.get(&row.code?)?;
        match SampledAccess::of(capture, row, accesses, |(access, _)| (access.reads, access.writes)) {
            SampledAccess::One(index) => accesses.get(index)?.1.as_ref(),
            SampledAccess::Nothing | SampledAccess::Several => None,
        }
    }
}

/// Returns the sampled functions, most samples first, with those of their locations for which
/// `keep` returns true.
fn functions(capture: &Capture, keep: impl Fn(&LocationId) -> bool) -> Vec<(FunctionId, InFunction)> {
    let mut samples: FxHashMap<LocationId, u64> = FxHashMap::default();
    for row in &capture.rows {
        if let Some(id) = row.code.filter(&keep) {
            let sum = samples.entry(id).or_default();
            *sum = sum.saturating_add(row.measures.count);
        }
    }
    let mut functions: FxHashMap<FunctionId, InFunction> = FxHashMap::default();
    for (id, samples) in samples {
        let location = capture.code.get(id as usize);
        if let Some((location, function)) = location.and_then(|l| Some((l, function_of(capture, l)?))) {
            let function = functions.entry(function).or_default();
            function.samples = function.samples.saturating_add(samples);
            function.at.entry(location.function_offset).or_default().push(id);
        }
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.compact_sort_by(|(id_a, a), (id_b, b)| b.samples.cmp(&a.samples).then_with(|| id_a.cmp(id_b)));
    functions
}

/// Returns the type of the object that an access reaches and the field in it: an empty one for a
/// value without fields, `+8` for a place without a field.
///
/// # Errors
///
/// Returns the reason in a few words if they are not known.
pub fn accessed(access: &TypedAccess, code: &TypedCode) -> Result<(String, String), &'static str> {
    let object = access.object.map_err(|why| why.words())?;
    let layout = code.layouts.get(object.layout as usize).ok_or(NO_CODE)?;
    let field = match layout.field_at(object.offset) {
        Some(field) => field.name.clone(),
        None if layout.fields.is_empty() => String::new(),
        None => format!("+{}", object.offset),
    };
    Ok((layout.name.clone(), field))
}

/// Returns an access with the names of its type and field.
fn place(access: &TypedAccess, code: Option<&TypedCode>, names: &mut Names) -> TypedPlace {
    let found = match code.map_or(Err(NO_CODE), |code| accessed(access, code)) {
        Err(why) => Err(names.intern(why)),
        Ok((ty, field)) => Ok(TypedField { ty: names.intern(&ty), field: names.intern(&field) }),
    };
    TypedPlace { reads: access.reads, writes: access.writes, found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heatmap::{Axis, HeatmapOptions, YAxis, heatmap};
    use crate::registry::VIEWS;
    use crate::report::{Report, ReportOptions, report};
    use crate::types::tests::{Orders, capture};
    use crate::view::{Input, OptionKind, OptionValues};
    use precise_model::values::Value;

    fn by(capture: &Capture, by: &[Key]) -> Report {
        report(capture, &ReportOptions { by: by.to_vec(), ..ReportOptions::default() }).unwrap()
    }

    fn groups(report: &Report) -> Vec<(Vec<String>, u64)> {
        let groups = report.events[0].groups.list.iter();
        groups.map(|g| (g.values.iter().map(Value::text).collect(), g.measures.count)).collect()
    }

    #[test]
    fn samples_are_grouped_by_type_and_field_or_by_the_reason() {
        let mut capture = capture();
        look_up(&mut capture, &[Key::Function, Key::Field], &mut Orders);
        let of = |keys: &[Key]| groups(&by(&capture, keys));
        let row = |values: &[&str], samples| (values.iter().map(|v| (*v).to_owned()).collect(), samples);
        let conflict = "[conflicting types]";
        let none = "[instruction without an access to memory]";
        assert_eq!(of(&[Key::Type]), [row(&["Order"], 800), row(&[conflict], 150), row(&[none], 50)]);
        assert_eq!(
            of(&[Key::Type, Key::Field]),
            [
                row(&["Order", "id"], 500),
                row(&["Order", "next"], 300),
                row(&[conflict; 2], 150),
                row(&[none; 2], 50)
            ]
        );
        assert_eq!(of(&[Key::Field])[0], row(&["Order.id"], 500));
        let options = HeatmapOptions { y: YAxis::Field, ..HeatmapOptions::default() };
        let map = heatmap(&capture, &options).unwrap();
        let Axis::Values { names, .. } = map.axis else { panic!("{:?}", map.axis) };
        assert_eq!(names, [none, conflict, "Order.next", "Order.id"]);
    }

    #[test]
    fn nothing_is_looked_up_for_other_keys() {
        let mut capture = capture();
        look_up(&mut capture, &[Key::Function, Key::Op], &mut Orders);
        assert_eq!(capture.types, None);
    }

    /// A view that groups by keys tells which ones, so that types are looked up for it, and refuses
    /// a capture without types.
    #[test]
    fn every_view_with_keys_asks_for_types() {
        for view in VIEWS {
            let about = view.description();
            let Some(option) = about.options.iter().find(|option| matches!(option.kind, OptionKind::Keys))
            else {
                continue;
            };
            let usual = about.options.iter().filter_map(|option| Some((option.name, option.default?)));
            let values =
                usual.fold(OptionValues::default(), |values, (name, value)| values.with(name, value));
            let values = values.with(option.name, "field,type");
            assert_eq!(view.keys(&values).unwrap(), [Key::Field, Key::Type], "{}", about.name);
            let capture = capture();
            let mut code = crate::code::NoCode;
            let answer = view.answer(&mut Input::pair(&capture, &capture, &mut code), &values);
            let why = answer.err().map(|error| error.text).unwrap_or_default();
            assert!(why.starts_with("field is read from the debug information"), "{}: {why}", about.name);
        }
    }

    #[test]
    fn conditions_of_check_ask_for_types() {
        use crate::check::{ConditionVerdict, check, parse};
        let condition = parse("share(type == Order) > +2pp").unwrap();
        assert_eq!(condition.keys(), [Key::Type]);
        let (mut base, mut new) = (capture(), capture());
        for row in &mut base.rows {
            row.measures.count *= 10;
        }
        for row in &mut new.rows {
            row.measures.count *= if row.measures.count < 200 { 4 } else { 12 };
        }
        look_up(&mut base, &[Key::Type], &mut Orders);
        look_up(&mut new, &[Key::Type], &mut Orders);
        let judged = check(&base, &new, &[condition]).unwrap();
        assert_eq!(judged.verdict, ConditionVerdict::Fail);
    }
}
