//! Colours for counts: perceptually uniform, distinguishable for colour-blind readers and in
//! greyscale.

use plotters::style::RGBColor;

/// Viridis (matplotlib, CC0) at sixteen even steps, dark to light.
const VIRIDIS: [(u8, u8, u8); 16] = [
    (68, 1, 84),
    (72, 26, 108),
    (71, 47, 125),
    (65, 68, 135),
    (57, 86, 140),
    (49, 104, 142),
    (42, 120, 142),
    (35, 136, 142),
    (31, 152, 139),
    (34, 168, 132),
    (53, 183, 121),
    (84, 197, 104),
    (122, 209, 81),
    (165, 219, 54),
    (210, 226, 27),
    (253, 231, 37),
];

/// The number of colours of a scale: few enough that neighbouring cells can share one, too many to
/// see a step.
pub const LEVELS: usize = 64;

/// Returns the Viridis colour at `t`, from 0 (dark) to 1 (light); values outside use the nearest
/// end.
pub fn viridis(t: f64) -> RGBColor {
    let at = t.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let below = (at as usize).min(VIRIDIS.len() - 2);
    let part = at - below as f64;
    let (a, b) = (VIRIDIS[below], VIRIDIS[below + 1]);
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// The smallest upper end of a scale. A cell with one or two samples is pale even if no other cell
/// has more.
const LEAST_END: u64 = 10;

/// A scale from a number of samples to a colour level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountScale {
    max: u64,
    log: bool,
}

impl CountScale {
    /// Makes a scale for 1 to `max` samples, but at least to 10. It is logarithmic if the numbers
    /// span two powers of ten, so that small counts are visible beside large ones.
    pub fn new(max: u64) -> Self {
        Self { max: max.max(LEAST_END), log: max >= 100 }
    }

    /// Returns whether the scale is logarithmic.
    pub const fn is_log(&self) -> bool {
        self.log
    }

    /// Returns the number of samples at the upper end.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Returns the position of `samples` on the scale, from 0 (one sample) to 1 (the maximum);
    /// `None` for no samples, which are off the scale.
    pub fn position(&self, samples: f64) -> Option<f64> {
        if samples <= 0.0 {
            return None;
        }
        let max = self.max as f64;
        let position =
            if self.log { samples.max(1.0).ln() / max.ln() } else { (samples - 1.0) / (max - 1.0) };
        Some(position.clamp(0.0, 1.0))
    }

    /// Returns the level of `samples`, `0..LEVELS`; `None` for no samples.
    pub fn level(&self, samples: u64) -> Option<usize> {
        self.position(samples as f64).map(|t| (t * (LEVELS - 1) as f64).round() as usize)
    }
}

/// Returns the colour of a level on a light page: more samples are darker, which gives them more
/// contrast. The lower end is mixed with white, because Viridis ends in a yellow that the eye would
/// see first.
pub fn on_light(level: usize) -> RGBColor {
    let few = 1.0 - level as f64 / (LEVELS - 1) as f64;
    let RGBColor(r, g, b) = viridis(0.9 * few);
    let white = 0.7 * few.powi(3);
    let mix = |c: u8| (f64::from(c) + (255.0 - f64::from(c)) * white).round() as u8;
    RGBColor(mix(r), mix(g), mix(b))
}

/// Returns the colour of a level on a dark terminal: more samples are lighter.
pub fn on_dark(level: usize) -> RGBColor {
    viridis(0.12 + 0.88 * level as f64 / (LEVELS - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, as WCAG defines it.
    fn luminance(RGBColor(r, g, b): RGBColor) -> f64 {
        let linear = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    #[test]
    fn more_samples_are_always_darker_on_light_and_lighter_on_dark() {
        for level in 1..LEVELS {
            assert!(luminance(on_light(level)) < luminance(on_light(level - 1)), "light {level}");
            assert!(luminance(on_dark(level)) > luminance(on_dark(level - 1)), "dark {level}");
        }
    }

    #[test]
    fn none_is_off_the_scale_and_one_is_on_it() {
        for max in [0, 1, 2, 99, 100, u64::MAX] {
            let scale = CountScale::new(max);
            assert_eq!(scale.level(0), None);
            assert!(scale.level(1).is_some_and(|l| l < LEVELS));
            assert_eq!(scale.level(scale.max()), Some(LEVELS - 1), "max {max}");
        }
        assert_eq!(CountScale::new(1000).level(1), Some(0));
        // One sample is pale, whatever the others have.
        assert_eq!(CountScale::new(1).level(1), Some(0));
        let RGBColor(r, g, b) = on_light(0);
        assert!([r, g, b].iter().all(|c| *c > 170), "{r} {g} {b}");
    }
}
