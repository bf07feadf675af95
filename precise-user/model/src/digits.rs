//! Numbers as every sentence writes them.

/// With thousands separators: `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size with its unit: `64 B`, `4 KiB`, `1.5 MiB`.
pub fn bytes(count: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if count >> shift > 0 {
            return format!("{} {unit}", trimmed(count as f64 / (1u64 << shift) as f64));
        }
    }
    format!("{count} B")
}

/// With up to two decimals: `1.5`, `2`.
pub fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_suits() {
        assert_eq!([64, 4096, 3 << 19, 1 << 30].map(bytes).join(" "), "64 B 4 KiB 1.5 MiB 1 GiB");
    }
}
