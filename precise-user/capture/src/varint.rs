//! Numbers in as few bytes as they need: seven bits in each byte, the lowest first. All but the
//! last byte have the highest bit.

/// Appends a number.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number that [`put`] has appended from the front.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 || shift > 63 {
            return Some(number);
        }
    }
}
