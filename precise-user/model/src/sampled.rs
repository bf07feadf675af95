//! Which access of its instruction a sample is about, and the type of what it accessed.

use crate::accesses::{AccessTypes, TypedField};
use crate::{Capture, NameId, Row, words};

/// Which access of its instruction a sample is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledAccess {
    /// None: the instruction accesses no memory, or the sample is about its own bytes.
    Nothing,
    /// The access with this index.
    One(usize),
    /// One of several, and the sample does not say which.
    Several,
}

impl AccessTypes {
    /// Returns the type and the field that a sample accesses, or the reason why they are not known,
    /// in a few words.
    ///
    /// # Errors
    ///
    /// Returns the reason.
    pub fn of(&self, capture: &Capture, row: &Row) -> Result<TypedField, NameId> {
        let places = row.code.and_then(|id| self.at.get(&id)).ok_or(self.not_known)?;
        match SampledAccess::of(capture, row, places, |place| (place.reads, place.writes)) {
            SampledAccess::Nothing => Err(self.no_access),
            SampledAccess::Several => Err(self.several),
            SampledAccess::One(index) => places.get(index).map_or(Err(self.no_access), |place| place.found),
        }
    }
}

impl SampledAccess {
    /// Returns which of the accesses of an instruction a sample is about. `kind` says of an access
    /// whether it reads and whether it writes.
    pub fn of<T>(capture: &Capture, row: &Row, accesses: &[T], kind: impl Fn(&T) -> (bool, bool)) -> Self {
        let code = row.code.and_then(|id| capture.code.get(id as usize));
        let data = row.data.and_then(|id| capture.data.get(id as usize));
        if code.zip(data).is_some_and(|(code, data)| is_fetch(code.runtime_address, data.runtime_address)) {
            return Self::Nothing;
        }
        Self::among(accesses, words::op(row.data_source()), kind)
    }

    /// Returns which of the accesses of an instruction a sample is about that is not about the
    /// instruction's own bytes. `op` is what the access did, `LOAD` or `STORE`, if that is known.
    pub fn among<T>(accesses: &[T], op: Option<&str>, kind: impl Fn(&T) -> (bool, bool)) -> Self {
        match accesses {
            [] => return Self::Nothing,
            [_] => return Self::One(0),
            _ => {}
        }
        let fits = |access: &T| match (op, kind(access)) {
            (Some("LOAD"), (reads, _)) => reads,
            (Some("STORE"), (_, writes)) => writes,
            _ => true,
        };
        let mut fitting = accesses.iter().enumerate().filter(|(_, access)| fits(access));
        match (fitting.next(), fitting.next()) {
            (Some((index, _)), None) => Self::One(index),
            _ => Self::Several,
        }
    }
}

/// Returns whether a sample of an instruction at `ip` is about the bytes of that instruction, as a
/// page fault may be: whether its data address lies in them.
pub fn is_fetch(ip: u64, address: u64) -> bool {
    /// The maximum length of an instruction in bytes (Intel SDM 2A, §2.3.11).
    const LONGEST: u64 = 15;
    address.checked_sub(ip).is_some_and(|distance| distance < LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accesses::TypedPlace;
    use crate::keys::Key;
    use crate::testing::CaptureBuilder;
    use crate::values::RawValue;

    /// An instruction at 0x1000 that writes `Order.seq`, and one at 0x1010 that was not looked up.
    fn capture() -> Capture {
        let mut made = CaptureBuilder::new();
        made.cell().code(0x1000, "/bin/app", "f", "", 0).data(0x9000, "[heap]", "");
        made.cell().code(0x1010, "/bin/app", "f", "", 0);
        made.cell().code(0x1000, "/bin/app", "f", "", 0).data(0x1003, "/bin/app", "");
        let mut capture = made.build();
        let mut types = AccessTypes::new(&mut capture.names, "function with fewer samples");
        let found = TypedField { ty: capture.names.intern("Order"), field: capture.names.intern("seq") };
        let id = capture.rows[0].code.unwrap();
        types.insert(id, vec![TypedPlace { reads: false, writes: true, found: Ok(found) }]);
        capture.types = Some(types);
        capture
    }

    #[test]
    fn a_row_has_a_type_and_a_field_or_a_reason() {
        let capture = capture();
        let text =
            |row: usize, key| RawValue::of(&capture, &capture.rows[row], key).value(&capture, key).text();
        assert_eq!((text(0, Key::Type), text(0, Key::Field)), ("Order".into(), "Order.seq".into()));
        let missing = "[function with fewer samples]".to_owned();
        assert_eq!((text(1, Key::Type), text(1, Key::Field)), (missing.clone(), missing));
        // A page fault on the instruction itself accesses no object.
        assert_eq!(text(2, Key::Field), "[instruction without an access to memory]");
    }

    #[test]
    fn the_operation_of_a_sample_chooses_between_two_accesses() {
        let mut capture = capture();
        let row = capture.rows[0];
        let of = |capture: &Capture, row: &Row, accesses: &[(bool, bool)]| {
            SampledAccess::of(capture, row, accesses, |access| *access)
        };
        let copy = [(true, false), (false, true)];
        assert_eq!(of(&capture, &row, &[]), SampledAccess::Nothing);
        assert_eq!(of(&capture, &row, &copy[1..]), SampledAccess::One(0));
        assert_eq!(of(&capture, &row, &copy), SampledAccess::Several);
        // PERF_MEM_OP_STORE of include/uapi/linux/perf_event.h.
        capture.rows[0].data_src = 0x4;
        assert_eq!(of(&capture, &capture.rows[0], &copy), SampledAccess::One(1));
    }
}
