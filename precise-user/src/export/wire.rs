//! Protobuf's wire format: what OTLP needs of it, written and read. Field numbers are the callers'.
//!
//! Encoding: <https://protobuf.dev/programming-guides/encoding/>.

/// The wire type of numbers of variable length.
const VARINT: u64 = 0;
/// The wire type of numbers of eight bytes.
const FIXED64: u64 = 1;
/// The wire type of texts, bytes, messages and packed lists.
const LENGTH: u64 = 2;
/// The wire type of numbers of four bytes.
const FIXED32: u64 = 5;

/// A message under construction. As in proto3, a number 0 and an empty text are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WireMessage(Vec<u8>);

impl WireMessage {
    /// Returns the encoded message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Returns what is encoded so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, kind: u64) {
        self.varint(u64::from(field) << 3 | kind);
    }

    /// Adds an integer of any signed or unsigned type but `sint`.
    pub fn number(&mut self, field: u32, value: u64) {
        if value > 0 {
            self.always(field, value);
        }
    }

    /// Adds a number even if it is 0: a member of a `oneof`.
    pub fn always(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// Adds a `fixed64`.
    pub fn fixed64(&mut self, field: u32, value: u64) {
        if value > 0 {
            self.tag(field, FIXED64);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Adds a text.
    pub fn text(&mut self, field: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    /// Adds bytes, a text or a message, even if it is empty: an element of a list.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Adds a message, even if it is empty.
    pub fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// Adds a list of integers.
    pub fn packed(&mut self, field: u32, values: &[u64]) {
        if !values.is_empty() {
            let mut list = Self::default();
            values.iter().for_each(|value| list.varint(*value));
            self.message(field, &list);
        }
    }

    /// Adds fields that are encoded already.
    pub fn append(&mut self, fields: &Self) {
        self.0.extend_from_slice(&fields.0);
    }
}

/// The value of a field that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireValue<'a> {
    /// An integer.
    Number(u64),
    /// A text, bytes, a message or a packed list.
    Bytes(&'a [u8]),
}

/// Reads the fields of a message, with their numbers. What others sent is not trusted: it ends at
/// the first byte that is not a field.
#[derive(Clone, Debug)]
pub struct WireFields<'a>(&'a [u8]);

impl<'a> WireFields<'a> {
    /// Reads a message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for WireFields<'a> {
    type Item = (u64, WireValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            VARINT => WireValue::Number(self.varint()?),
            FIXED64 => WireValue::Bytes(self.take(8)?),
            LENGTH => {
                let length = self.varint()?;
                WireValue::Bytes(self.take(length)?)
            }
            FIXED32 => WireValue::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
        let mut inner = WireMessage::default();
        inner.number(1, 300);
        inner.always(3, 0);
        let mut message = WireMessage::default();
        message.number(1, 0);
        message.text(1, "");
        message.number(4, u64::MAX);
        message.fixed64(3, 0x0102);
        message.message(15, &inner);
        message.text(16, "ß");
        message.packed(2, &[1, 128]);
        message.packed(2, &[]);
        let bytes = message.into_bytes();
        let fields: Vec<_> = WireFields::new(&bytes).collect();
        assert_eq!(
            fields,
            [
                (4, WireValue::Number(u64::MAX)),
                (3, WireValue::Bytes(&[2, 1, 0, 0, 0, 0, 0, 0])),
                (15, WireValue::Bytes(&[0x08, 0xac, 0x02, 0x18, 0x00])),
                (16, WireValue::Bytes("ß".as_bytes())),
                (2, WireValue::Bytes(&[0x01, 0x80, 0x01])),
            ]
        );
        // Cut anywhere, the fields before are read, and nothing panics.
        for end in 0..bytes.len() {
            let cut: Vec<_> = WireFields::new(&bytes[..end]).collect();
            assert_eq!(cut, fields[..cut.len()]);
        }
    }

    #[test]
    fn garbage_is_the_end() {
        for garbage in
            [&[0xff; 20][..], &[0x0b], &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]]
        {
            assert_eq!(WireFields::new(garbage).count(), 0, "{garbage:?}");
        }
    }
}
