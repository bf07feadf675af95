//! The positions and the labels of the ticks of axes.

use precise_model::digits::trimmed;

/// A tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The position, in the unit of the axis.
    pub at: f64,
    /// The label.
    pub label: String,
}

/// The units of a time axis: name, nanoseconds, and readable steps between ticks.
const TIME_UNITS: [(&str, f64, &[f64]); 6] = [
    ("ns", 1.0, &[]),
    ("µs", 1e3, &[]),
    ("ms", 1e6, &[]),
    ("s", 1e9, &[]),
    ("min", 60e9, &[0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0]),
    ("h", 3600e9, &[0.25, 0.5, 1.0, 2.0, 3.0, 6.0, 12.0, 24.0]),
];

/// Returns about `most` ticks at most for `start_ns..=end_ns`, and the unit of their labels.
pub fn time_ticks(start_ns: u64, end_ns: u64, most: usize) -> (Vec<Tick>, &'static str) {
    let (start, end) = (start_ns as f64, end_ns.max(start_ns.saturating_add(1)) as f64);
    let unit = match end - start {
        d if d < 2e3 => 0,
        d if d < 2e6 => 1,
        d if d < 1e9 => 2,
        d if d < 600e9 => 3,
        d if d < 4.0 * 3600e9 => 4,
        _ => 5,
    };
    let (name, nanoseconds, steps) = TIME_UNITS[unit];
    let (from, to) = (start / nanoseconds, end / nanoseconds);
    let wanted = (to - from) / most.max(1) as f64;
    let step = steps.iter().copied().find(|&s| s >= wanted).unwrap_or_else(|| nice_step(wanted));
    // Labels cannot show fractions of a nanosecond.
    let step = if unit == 0 { step.max(1.0) } else { step };
    (linear(from, to, step, nanoseconds), name)
}

/// Returns about `most` linear ticks at most over `from..=to`, at readable steps.
pub fn linear_ticks(from: f64, to: f64, most: usize) -> Vec<Tick> {
    linear(from, to, nice_step((to - from) / most.max(1) as f64), 1.0)
}

fn linear(from: f64, to: f64, step: f64, scale: f64) -> Vec<Tick> {
    let decimals = (0..9).find(|&d| is_whole(step * 10f64.powi(d))).unwrap_or(9) as usize;
    let (first, last) = ((from / step - 1e-6).ceil() as i64, (to / step + 1e-6).floor() as i64);
    (first..=last)
        .take(1000)
        .map(|i| Tick { at: i as f64 * step * scale, label: format!("{:.decimals$}", i as f64 * step) })
        .collect()
}

fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-6
}

/// Returns the smallest of 1, 2 or 5 times a power of ten that is not below `wanted`.
fn nice_step(wanted: f64) -> f64 {
    if !wanted.is_finite() || wanted <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(wanted.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= wanted * (1.0 - 1e-9)).unwrap_or(10.0);
    factor * power
}

/// Returns about `most` ticks at most for a logarithmic axis over `from..=to` (both above 0). The
/// ticks are powers of ten if there are enough of them, else 1, 2, 5 or 1, 3 times each power, else
/// all digits, else linear steps.
pub fn log_ticks(from: f64, to: f64, most: usize) -> Vec<Tick> {
    let most = most.max(2);
    let decades = from.log10().floor() as i32..=to.log10().ceil() as i32;
    let of = |digits: &[f64], every: usize| -> Vec<Tick> {
        decades
            .clone()
            .filter(|d| d.rem_euclid(every as i32) == 0)
            .flat_map(|d| digits.iter().map(move |f| f * 10f64.powi(d)))
            .filter(|at| (from * (1.0 - 1e-9)..=to * (1.0 + 1e-9)).contains(at))
            .map(|at| Tick { at, label: short(at) })
            .collect()
    };
    // Two digits per decade are the last resort: 1, 3, 10, 30 are evenly spaced on the axis, but
    // less familiar.
    let mut best = of(&[1.0], 1);
    if best.len() > most {
        best.clear();
    } else if best.len() < 4 {
        let finer =
            [&[1.0, 2.0, 5.0][..], &[1.0, 3.0]].into_iter().map(|d| of(d, 1)).find(|t| t.len() <= most);
        best = finer.unwrap_or(best);
        let all = of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 1);
        if best.len() < 4 && all.len() <= most {
            best = all;
        }
    }
    if best.is_empty() && of(&[1.0], 1).len() > most {
        let every = (2..40).find(|&e| of(&[1.0], e).len() <= most).unwrap_or(40);
        return of(&[1.0], every);
    }
    if best.len() < 3 && to < from * 8.0 {
        let steps = linear_ticks(from, to, most.min(5));
        if steps.len() > best.len() {
            best = steps.into_iter().map(|t| Tick { label: short(t.at), ..t }).collect();
        }
    }
    best
}

/// Formats a number for a tick, with up to two decimals: `850`, `1.5k`, `20k`, `3M`.
pub fn short(value: f64) -> String {
    for (size, suffix) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= size {
            return format!("{}{suffix}", trimmed(value / size));
        }
    }
    trimmed(value)
}

/// Formats a duration with its unit: `250 ms`, `10.2 s`, `5 min 30 s`, `2 h 5 min`.
pub fn duration(ns: u64) -> String {
    let value = ns as f64;
    match ns / 1_000_000_000 {
        0 if ns < 1_000 => format!("{ns} ns"),
        0 if ns < 1_000_000 => format!("{} µs", trimmed(value / 1e3)),
        0 => format!("{} ms", trimmed(value / 1e6)),
        s if s < 120 => format!("{} s", trimmed(value / 1e9)),
        s if s < 7200 && s % 60 == 0 => format!("{} min", s / 60),
        s if s < 7200 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> String {
        ticks.iter().map(|t| t.label.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn time_ticks_are_round_in_a_unit_that_suits() {
        let second = 1_000_000_000;
        for (end, expected) in [
            (10 * second, "0 1 2 3 4 5 6 7 8 9 10 s"),
            (second, "0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0 s"),
            (second / 4, "0 50 100 150 200 250 ms"),
            (90 * second, "0 10 20 30 40 50 60 70 80 90 s"),
            (1800 * second, "0 5 10 15 20 25 30 min"),
            (86_400 * second, "0 3 6 9 12 15 18 21 24 h"),
            (1, "0 1 ns"),
        ] {
            let (ticks, unit) = time_ticks(0, end, 10);
            assert_eq!(format!("{} {unit}", labels(&ticks)), expected);
        }
        assert_eq!(labels(&time_ticks(2 * second, 7 * second, 5).0), "2 3 4 5 6 7");
        assert_eq!(time_ticks(u64::MAX, u64::MAX, 5).1, "ns");
    }

    #[test]
    fn log_ticks_are_decades_or_what_there_is_room_for() {
        assert_eq!(labels(&log_ticks(1.0, 20_000.0, 10)), "1 10 100 1k 10k");
        assert_eq!(labels(&log_ticks(8.0, 512.0, 10)), "10 20 50 100 200 500");
        assert_eq!(labels(&log_ticks(3.0, 8.0, 10)), "3 4 5 6 7 8");
        assert_eq!(labels(&log_ticks(320.0, 352.0, 10)), "320 330 340 350");
        assert_eq!(labels(&log_ticks(10.0, 900.0, 4)), "10 30 100 300");
        assert_eq!(labels(&log_ticks(1.0, 1e9, 4)), "1 1k 1M 1G");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([0.5, 850.0, 1000.0, 1500.0, 2e6].map(short).join(" "), "0.5 850 1k 1.5k 2M");
        assert_eq!(
            [12, 1500, 250_000_000, 10_200_000_000, 330_000_000_000, 7_500_000_000_000]
                .map(duration)
                .join("; "),
            "12 ns; 1.5 µs; 250 ms; 10.2 s; 5 min 30 s; 2 h 5 min"
        );
    }
}
