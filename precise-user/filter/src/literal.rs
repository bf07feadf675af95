//! Single values: numbers with their units, and process names.

/// The largest length of a process name in bytes: the kernel keeps 16, the last of which is 0.
const COMM_BYTES: usize = 15;

/// Checks that the kernel can have a process of this name.
///
/// # Errors
///
/// Returns the reason why it cannot.
pub fn check_comm(name: &str) -> Result<(), String> {
    if name.len() > COMM_BYTES {
        let cut = name.floor_char_boundary(COMM_BYTES);
        return Err(format!(
            "the kernel keeps only the first {COMM_BYTES} bytes of a process name; write \"{}\"",
            &name[..cut]
        ));
    }
    if name.is_empty() || name.contains('\0') {
        return Err("a process name must not be empty or contain a zero byte".to_owned());
    }
    Ok(())
}

/// Parses a number in the format of the grammar. The error continues a sentence that begins with
/// the word.
pub(super) fn number(word: &str) -> Result<u64, &'static str> {
    let digits = word.replace('_', "");
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return match u64::from_str_radix(hex, 16) {
            Ok(number) => Ok(number),
            Err(_) if hex.len() > 16 => Err("does not fit in 64 bits"),
            Err(_) => Err("is not a hexadecimal number"),
        };
    }
    let (digits, shift) = match digits.char_indices().next_back() {
        Some((end, 'k' | 'K')) => (&digits[..end], 10),
        Some((end, 'm' | 'M')) => (&digits[..end], 20),
        Some((end, 'g' | 'G')) => (&digits[..end], 30),
        Some((end, 't' | 'T')) => (&digits[..end], 40),
        _ => (&digits[..], 0),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err("is not a number");
    }
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or("does not fit in 64 bits")
}
