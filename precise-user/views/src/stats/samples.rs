//! Samples with weights.

use super::{Share, Weight, Z};

/// A number of samples and their total weight.
///
/// Each sample weighs 1, or, if the period changed during the run, the number of events that it
/// stands for. Without weights, quiet phases, which were sampled more often, would look larger than
/// they were.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Samples {
    /// The number of samples.
    pub count: u64,
    /// The weight of the samples.
    pub weight: Weight,
}

impl Samples {
    /// Returns `count` samples that weigh `weight` each.
    pub fn each(count: u64, weight: f64) -> Self {
        let sum = count as f64 * weight;
        Self { count, weight: Weight { sum, squares: sum * weight } }
    }

    /// Adds other samples.
    pub fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.weight.add(other.weight);
    }

    /// Returns these samples and others together.
    pub fn and(mut self, other: Self) -> Self {
        self.add(other);
        self
    }

    /// Returns the share of `whole`. If all samples weigh 1, it is [`Share::wilson`].
    pub fn share_of(self, whole: Self) -> Share {
        self.share_at(whole, Z)
    }

    /// Returns the share of `whole`, with an interval of `z` standard errors to each side.
    pub fn share_at(self, whole: Self, z: f64) -> Share {
        if whole.are_even() {
            Share::at(self.count as f64 / whole.count as f64, whole.count as f64, z)
        } else {
            Share::weighted_at(self.weight, whole.weight, z)
        }
    }

    /// Returns the effective sample size for a mean (Kish, Survey Sampling, §8.2).
    pub fn equal(self) -> f64 {
        if self.are_even() {
            self.count as f64
        } else if self.weight.squares > 0.0 {
            self.weight.sum.powi(2) / self.weight.squares
        } else {
            0.0
        }
    }

    /// Returns the factor that scales the weights so that their sum is [`Samples::equal`].
    pub fn scale(self) -> f64 {
        self.equal() / self.weight.sum
    }

    /// Compares by weight; at the same weight, by the number of samples.
    pub fn order(&self, other: &Self) -> std::cmp::Ordering {
        self.weight.sum.total_cmp(&other.weight.sum).then(self.count.cmp(&other.count))
    }

    /// Returns whether each sample weighs 1.
    pub fn are_even(self) -> bool {
        let count = self.count as f64;
        self.weight.sum == count && self.weight.squares == count
    }
}

impl From<u64> for Samples {
    fn from(count: u64) -> Self {
        Self::each(count, 1.0)
    }
}

impl std::iter::Sum for Samples {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Self::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_moments_are_not_larger_than_they_were() {
        // 100 samples of a quiet second, one per 10 events, and 100 samples of a busy second, one
        // per 1000 events.
        let (quiet, busy) = (Samples::each(100, 10.0), Samples::each(100, 1000.0));
        let all = quiet.and(busy);
        let share = quiet.share_of(all);
        assert!((share.value - 1.0 / 101.0).abs() < 1e-12 && share.high < 0.02, "{share:?}");
        assert!((all.equal() - 101.99).abs() < 0.01 && !all.are_even(), "{}", all.equal());
        assert_eq!(quiet.order(&busy), std::cmp::Ordering::Less);
    }

    #[test]
    fn of_one_weight_they_are_counted() {
        let all = Samples::from(1000);
        assert_eq!(Samples::from(300).share_of(all), Share::wilson(300, 1000));
        assert_eq!((all.equal(), Samples::default().equal()), (1000.0, 0.0));
        assert_eq!(Samples::default().share_of(Samples::default()), Share::wilson(0, 0));
    }
}
