//! Parsers for argument values: durations, sizes, counts.

use std::time::Duration;

/// Parses a duration: `5s`, `500ms`, `2m`, `1h`, `7d`, or a number of seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a duration, such as 5s, 500ms or 2m");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "" | "s" => number,
        "ms" => number / 1e3,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86400.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

/// Parses the length of an epoch, which is at least 100 ms. With shorter epochs, reading the table
/// costs too much.
pub fn epoch(text: &str) -> Result<Duration, String> {
    let epoch = duration(text)?;
    if epoch < Duration::from_millis(100) {
        return Err("an epoch must be at least 100ms".into());
    }
    Ok(epoch)
}

/// Parses the length of an epoch of an import, which is at least 1 ms: there is no table to read.
pub fn import_epoch(text: &str) -> Result<Duration, String> {
    let epoch = duration(text)?;
    if epoch < Duration::from_millis(1) {
        return Err("an epoch of an import must be at least 1ms".into());
    }
    Ok(epoch)
}

/// Parses a number of bytes or cells: `64`, `4K`, `2M`, `1G`.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size, such as 64, 4K or 2M");
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .filter(|n| *n > 0)
        .ok_or_else(wrong)
}

/// Parses a number above 0; `_` or `,` may group its digits.
pub fn count(text: &str) -> Result<u64, String> {
    let digits: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    match digits.parse() {
        Ok(0) | Err(_) => Err(format!("'{text}' is not a positive number")),
        Ok(number) => Ok(number),
    }
}

/// Parses the id of a process or thread.
pub fn id(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("'{text}' is not an id, such as 4711; a list has commas: 4711,4712")),
        Ok(id) => Ok(id),
    }
}

/// The limit of `--overhead`: a fraction of a CPU's time, or `None` for no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead(pub Option<f64>);

/// Parses a limit: `1%`, `0.5%`, `2`, or `off`.
pub fn overhead(text: &str) -> Result<Overhead, String> {
    if text == "off" {
        return Ok(Overhead(None));
    }
    match text.strip_suffix('%').unwrap_or(text).parse::<f64>() {
        Ok(percent) if (0.01..=100.0).contains(&percent) => Ok(Overhead(Some(percent / 100.0))),
        _ => Err(format!("'{text}' is not a percentage of a CPU from 0.01% to 100%, or off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        for wrong in ["", "s", "5x", "-5s", "1e999s", "é"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(epoch("50ms").is_err());
        assert_eq!(import_epoch("5ms"), Ok(Duration::from_millis(5)));
        assert!(import_epoch("0.5ms").is_err());
    }

    #[test]
    fn ids() {
        assert_eq!(id("4711"), Ok(4711));
        for wrong in ["", "0", "-1", "abc", "4294967296", "1 2"] {
            let words = id(wrong).unwrap_err();
            assert!(words.starts_with(&format!("'{wrong}' is not an id")), "{words}");
        }
    }

    #[test]
    fn parts_of_a_cpu() {
        assert_eq!(overhead("1%"), Ok(Overhead(Some(0.01))));
        assert_eq!(overhead("0.5"), Ok(Overhead(Some(0.005))));
        assert_eq!(overhead("off"), Ok(Overhead(None)));
        for wrong in ["", "%", "0%", "-1%", "101%", "nan", "1x"] {
            assert!(overhead(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("4K"), Ok(4096));
        assert_eq!(size("64"), Ok(64));
        for wrong in ["", "K", "0", "4X", "99999999999G", "é"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
