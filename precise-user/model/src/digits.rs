//! Numbers as text, in the format that all output uses.

/// Formats a number with thousands separators: `1,234,567`.
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

/// Formats a count with its noun: `1 sample`, `1,234 samples`. The plural of the noun ends in s.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// Formats a size with its unit: `64 B`, `4 KiB`, `1.5 MiB`.
pub fn bytes(count: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if count >> shift > 0 {
            return format!("{} {unit}", trimmed(count as f64 / (1u64 << shift) as f64));
        }
    }
    format!("{count} B")
}

/// Formats a number with up to two decimals: `1.5`, `2`.
pub fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a share (1.0 is all) in percent, with one decimal: `12.3%`. Rounds like [`percent_to`].
pub fn percent(share: f64) -> String {
    percent_to(share, 1)
}

/// Formats a share (1.0 is all) in percent, rounded to `decimals` decimals.
///
/// A share above 0 never reads `0%`, and a share below 1 never reads `100%`: they read `<0.1%` and
/// `>99.9%`.
pub fn percent_to(share: f64, decimals: usize) -> String {
    let rounded = format!("{:.decimals$}", share * 100.0);
    let step = 10f64.powi(-(decimals as i32));
    if share > 0.0 && rounded == format!("{:.decimals$}", 0.0) {
        format!("<{step:.decimals$}%")
    } else if share < 1.0 && rounded == format!("{:.decimals$}", 100.0) {
        format!(">{:.decimals$}%", 100.0 - step)
    } else {
        rounded + "%"
    }
}

/// Formats a relative change in percent, with its sign: 0.125 reads `+12.5%`. Rounded to `decimals`
/// decimals.
pub fn percent_change(change: f64, decimals: usize) -> String {
    format!("{:+.decimals$}%", change * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2057].map(|n| counted(n, "sample")), ["0 samples", "1 sample", "2,057 samples"]);
    }

    #[test]
    fn sizes_have_the_unit_that_suits() {
        assert_eq!([64, 4096, 3 << 19, 1 << 30].map(bytes).join(" "), "64 B 4 KiB 1.5 MiB 1 GiB");
    }

    #[test]
    fn shares_are_rounded_but_never_to_nothing_or_all() {
        assert_eq!(
            [0.0, 0.0001, 0.0006, 0.5, 0.999, 0.9999, 1.0, 1.0101].map(percent),
            ["0.0%", "<0.1%", "0.1%", "50.0%", "99.9%", ">99.9%", "100.0%", "101.0%"]
        );
        let whole = |share| percent_to(share, 0);
        assert_eq!([0.0, 0.004, 0.126, 0.996, 1.0].map(whole), ["0%", "<1%", "13%", ">99%", "100%"]);
        assert_eq!([0.00001, 0.99999].map(|share| percent_to(share, 2)), ["<0.01%", ">99.99%"]);
        assert_eq!([0.125, -0.3].map(|change| percent_change(change, 0)), ["+12%", "-30%"]);
    }
}
