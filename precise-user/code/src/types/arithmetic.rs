//! Arithmetic on pointers.

use super::residue::Residue;
use super::value::{KnownValue, Pointer, PointerSource, UNKNOWN, parts_at};
use super::{TypeId, TypeShape, Types};

/// Maximum depth of arrays in structs.
const MAX_DEPTH: usize = 16;

/// Returns the size of a type if an object of it can have neighbours in an array.
fn stride(ty: TypeId, types: &mut dyn Types) -> Option<i64> {
    types.size(ty).and_then(|size| i64::try_from(size).ok()).filter(|size| *size > 0)
}

/// Returns a value plus a constant, as an instruction computes it.
pub(super) fn plus(value: KnownValue, constant: i64, types: &mut dyn Types) -> KnownValue {
    match value {
        KnownValue::Pointer(pointer) => KnownValue::Pointer(moved(pointer, constant, types)),
        KnownValue::Stack(at) => KnownValue::Stack(at.wrapping_add(constant)),
        KnownValue::Number(number) => KnownValue::Number(number.plus(Residue::exactly(constant))),
        KnownValue::Conflict | KnownValue::Astray => value,
    }
}

/// Returns a pointer plus a constant. A step by a whole number of objects leads to another element
/// of an array.
fn moved(pointer: Pointer, constant: i64, types: &mut dyn Types) -> Pointer {
    let offset = pointer.offset.wrapping_add(constant);
    let steps = |size: i64| constant != 0 && constant % size == 0 && !(0..size).contains(&offset);
    match stride(pointer.ty, types) {
        Some(size) if steps(size) => Pointer { stepped: true, ..pointer },
        _ => Pointer { offset, ..pointer },
    }
}

/// Returns the sum of two values.
pub(super) fn sum(a: KnownValue, b: KnownValue, types: &mut dyn Types) -> KnownValue {
    match (a, b) {
        (KnownValue::Number(a), KnownValue::Number(b)) => KnownValue::Number(a.plus(b)),
        (KnownValue::Pointer(pointer), KnownValue::Number(number))
        | (KnownValue::Number(number), KnownValue::Pointer(pointer)) => indexed(pointer, number, types),
        (KnownValue::Stack(at), KnownValue::Number(Residue { modulus: 0, rest }))
        | (KnownValue::Number(Residue { modulus: 0, rest }), KnownValue::Stack(at)) => {
            KnownValue::Stack(at.wrapping_add(rest))
        }
        (KnownValue::Conflict, _) | (_, KnownValue::Conflict) => KnownValue::Conflict,
        (KnownValue::Astray | KnownValue::Stack(_), _) | (_, KnownValue::Astray | KnownValue::Stack(_)) => {
            KnownValue::Astray
        }
        (KnownValue::Pointer(_), KnownValue::Pointer(_)) => UNKNOWN,
    }
}

/// Returns a value minus another one.
pub(super) fn difference(a: KnownValue, b: KnownValue, types: &mut dyn Types) -> KnownValue {
    match (a, b) {
        (
            KnownValue::Pointer(_) | KnownValue::Stack(_) | KnownValue::Number(_),
            KnownValue::Number(number),
        ) => sum(a, KnownValue::Number(Residue::exactly(0).minus(number)), types),
        _ => UNKNOWN,
    }
}

/// Returns a pointer plus a number.
fn indexed(pointer: Pointer, number: Residue, types: &mut dyn Types) -> KnownValue {
    let Residue { modulus: multiple, rest } = number;
    if multiple == 0 {
        return KnownValue::Pointer(moved(pointer, rest, types));
    }
    let pointer = Pointer { offset: pointer.offset.wrapping_add(rest), ..pointer };
    let by = |size: i64| u64::try_from(size).is_ok_and(|size| multiple.is_multiple_of(size));
    if let Some(size) = stride(pointer.ty, types)
        && by(size)
    {
        let offset = pointer.offset.rem_euclid(size);
        return KnownValue::Pointer(Pointer { offset, stepped: true, ..pointer });
    }
    // Bytes of a scalar are not addressed one by one: an unknown number is an index times the size.
    if types.shape(pointer.ty) == TypeShape::Scalar && multiple == 1 && pointer.offset == 0 {
        return KnownValue::Pointer(Pointer { stepped: true, ..pointer });
    }
    let element = u64::try_from(pointer.offset).ok();
    match element.and_then(|offset| array_at(pointer.ty, offset, multiple, types)) {
        Some((ty, rest)) => {
            let offset = i64::try_from(rest).unwrap_or(0);
            let source = if let PointerSource::Global(_) = pointer.source {
                pointer.source
            } else {
                PointerSource::Flow
            };
            KnownValue::Pointer(Pointer { ty, offset, source, stepped: true })
        }
        None => KnownValue::Astray,
    }
}

/// Returns the elements of the array at an offset of an object over which an index moves by a
/// multiple of a number, with the distance from the start of the element.
pub(super) fn array_at(
    ty: TypeId,
    offset: u64,
    multiple: u64,
    types: &mut dyn Types,
) -> Option<(TypeId, u64)> {
    let mut at = (ty, offset);
    for _ in 0..MAX_DEPTH {
        if let TypeShape::Array { element } = types.shape(at.0) {
            let size = types.size(element).filter(|size| *size > 0)?;
            let scalar = types.shape(element) == TypeShape::Scalar && multiple == 1;
            if multiple.is_multiple_of(size) || scalar {
                return Some((element, at.1 % size));
            }
        }
        // Members of a union overlap: which one is indexed is not known.
        let [part] = parts_at(at.0, at.1, types)[..] else { return None };
        at = part;
    }
    None
}

/// Returns the product of a value and a constant.
pub(super) fn times(value: KnownValue, factor: u32) -> KnownValue {
    match value {
        KnownValue::Number(number) => KnownValue::Number(number.times(factor)),
        _ if factor == 1 => value,
        _ => UNKNOWN,
    }
}
