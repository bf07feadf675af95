//! Tests of `precise types` with synthetic code: an order with three fields.

use precise_code::types::{
    Field, GlobalVariable, Kind, Object, TypeLayout, TypeOrigin, TypedAccess, TypedCode, TypedInstruction,
    Untyped,
};
use precise_code::{FunctionId, Instruction};
use precise_model::testing::CaptureBuilder;
use precise_model::{Capture, Reason};

use super::csv::types_csv;
use super::text::types_text;
use super::{AddressChecks, TypesOptions, types};
use crate::code::Code;
use crate::render::TextOptions;
use crate::testing::csv_has_a_field_for_each_name;

/// Code whose instruction at 0 loads `next`, at 4 loads `id`, and at 8 stores to an unknown place.
pub(crate) struct Orders;

/// The same code, which copies numbers and no orders.
struct Numbers;

fn order() -> TypeLayout {
    let field = |name: &str, offset| Field { name: name.into(), type_name: "long".into(), offset, size: 8 };
    let fields = vec![field("next", 0), field("id", 8), field("seq", 64)];
    let members = fields.clone();
    TypeLayout {
        name: "Order".into(),
        kind: Kind::Struct,
        size: 128,
        alignment: 8,
        fields,
        members,
        cut: false,
    }
}

impl Code for Orders {
    fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        Err(Reason::FileMissing)
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }

    fn types(&mut self, _: &FunctionId, wanted: &[u64]) -> Result<TypedCode, Reason> {
        let object =
            |offset| Object { layout: 0, offset, indexed: false, origin: TypeOrigin::Variable, global: None };
        let of = |at: &u64| {
            let object = match at {
                0 => Ok(object(0)),
                4 => Ok(object(8)),
                8 => Err(Untyped::Conflict),
                _ => return TypedInstruction { offset: *at, accesses: Vec::new() },
            };
            let access = TypedAccess { width: 8, reads: object.is_ok(), writes: object.is_err(), object };
            TypedInstruction { offset: *at, accesses: vec![access] }
        };
        let globals: Vec<GlobalVariable> = Vec::new();
        Ok(TypedCode { instructions: wanted.iter().map(of).collect(), layouts: vec![order()], globals })
    }
}

/// Samples at the instructions of [`Orders`], with addresses of the object at 0x10000.
pub(crate) fn capture() -> Capture {
    let mut made = CaptureBuilder::new();
    for (at, samples, address) in [(0, 300, 0x10000), (4, 500, 0x10008), (8, 150, 0x20000), (12, 50, 0)] {
        let cell = made.cell().samples(samples).code(0x1000 + at, "/bin/app", "walk", "", 0);
        if address > 0 {
            cell.data(address, "[heap]", "");
        }
    }
    made.build()
}

#[test]
fn the_account_adds_up() {
    let view = types(&capture(), &TypesOptions::default(), &mut Orders).unwrap();
    let event = &view.events[0];
    assert_eq!((event.samples, event.accesses), (1000, 950));
    let untyped: u64 = event.untyped.iter().map(|missing| missing.samples).sum();
    let typed: u64 = event.types.iter().map(|ty| ty.samples).sum();
    assert_eq!((typed, untyped), (800, 200));
    let reasons: Vec<&str> = event.untyped.iter().map(|missing| missing.reason.as_str()).collect();
    assert_eq!(reasons, ["conflict", "no-access"]);
    let fields: Vec<(&str, u64)> =
        event.types[0].fields.iter().map(|field| (field.name.as_str(), field.samples)).collect();
    assert_eq!(fields, [("next", 300), ("id", 500), ("seq", 0)]);
}

#[test]
fn two_fields_of_one_object_confirm_each_other() {
    let view = types(&capture(), &TypesOptions::default(), &mut Orders).unwrap();
    let checked = AddressChecks { confirmed: 800, contradicted: 0, not_checkable: 0 };
    assert_eq!(view.events[0].checked, checked);
    assert!(!view.events[0].types[0].uncertain);
}

#[test]
fn objects_that_overlap_contradict_each_other() {
    let mut capture = capture();
    // The instruction that is said to load `id` reads 24 bytes behind `next`.
    for data in capture.data.iter_mut().filter(|data| data.runtime_address == 0x10008) {
        data.runtime_address = 0x10018;
    }
    let view = types(&capture, &TypesOptions::default(), &mut Orders).unwrap();
    assert_eq!(view.events[0].checked.contradicted, 300);
    assert!(view.events[0].types[0].uncertain);
    // A misaligned object is none.
    for data in capture.data.iter_mut().filter(|data| data.runtime_address == 0x10018) {
        data.runtime_address = 0x10009;
    }
    let view = types(&capture, &TypesOptions::default(), &mut Orders).unwrap();
    assert_eq!(view.events[0].checked.contradicted, 500);
}

impl Code for Numbers {
    fn instructions(&mut self, id: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        Orders.instructions(id)
    }

    fn source(&mut self, file: &str, line: u32) -> Option<String> {
        Orders.source(file, line)
    }

    fn types(&mut self, id: &FunctionId, wanted: &[u64]) -> Result<TypedCode, Reason> {
        let mut code = Orders.types(id, wanted)?;
        for layout in &mut code.layouts {
            (layout.kind, layout.fields, layout.members) = (Kind::Scalar, Vec::new(), Vec::new());
        }
        Ok(code)
    }
}

#[test]
fn numbers_may_be_anywhere() {
    let mut capture = capture();
    capture.data.iter_mut().for_each(|data| data.runtime_address += 1);
    let view = types(&capture, &TypesOptions::default(), &mut Numbers).unwrap();
    let checked = AddressChecks { confirmed: 0, contradicted: 0, not_checkable: 800 };
    assert_eq!(view.events[0].checked, checked);
}

#[test]
fn layouts_have_their_lines() {
    let options = TypesOptions { names: vec!["Order".into()], ..TypesOptions::default() };
    let view = types(&capture(), &options, &mut Orders).unwrap();
    let text = types_text(&view, true, &TextOptions::default());
    assert!(text.contains("Order: 128 bytes, 800 samples"), "{text}");
    assert!(text.contains("--- line 1 ---"), "{text}");
    csv_has_a_field_for_each_name(&types_csv(&view, true, ","), ',');
    csv_has_a_field_for_each_name(&types_csv(&view, false, ","), ',');
    let nothing = TypesOptions { names: vec!["Book".into()], ..TypesOptions::default() };
    assert!(types(&capture(), &nothing, &mut Orders).unwrap().events[0].types.is_empty());
}

#[test]
fn advice_is_about_the_samples_of_all_events() {
    let mut made = CaptureBuilder::new();
    let other = made.meta().events[0].clone();
    made.meta().events.push(other);
    for (event, at, address) in [(0, 0, 0x10000), (1, 4, 0x10008)] {
        let cell = made.cell().event(event).samples(100).code(0x1000 + at, "/bin/app", "walk", "", 0);
        cell.data(address, "[heap]", "");
    }
    let options = TypesOptions { names: vec!["Order".into()], advise: true, ..TypesOptions::default() };
    let view = types(&made.build(), &options, &mut Orders).unwrap();
    let advice: Vec<_> = view.events.iter().map(|event| event.types[0].advice.as_ref().unwrap()).collect();
    assert_eq!(advice[0], advice[1]);
    let samples: Vec<_> = advice[0].members.iter().map(|m| (m.name.as_str(), m.samples)).collect();
    assert_eq!(samples, [("next", 100), ("id", 100), ("seq", 0)]);
    // One definition to be pasted.
    let text = types_text(&view, true, &TextOptions::default());
    assert_eq!(text.matches("struct Order {").count(), 1, "{text}");
    assert!(text.contains("Order: the advice above counts these samples, too."), "{text}");
}
