//! Statistics: intervals of shares and percentiles, minimum sample sizes, and tests for differences
//! between two captures.
//!
//! Every interval is a 95 % interval: of a hundred such intervals, 95 contain the true value. All
//! methods assume that samples are independent. Samples of one burst are not, so a number may be
//! less certain than its interval says, never more.

mod change;
mod compare;
mod estimate;
mod histogram;
mod samples;
mod share;
mod transport;

pub use change::{Change, Interval, MeasuredNumber};
pub use compare::{Difference, LatencyShift, difference, holm, latencies, shares};
pub use estimate::{Estimate, astray};
pub use histogram::{Histogram, Percentile};
pub use samples::Samples;
pub use share::{Share, Weight};
pub use transport::{Band, PlaceCounts, Transport, transport};

/// The number of samples below which a view does not rank.
///
/// With 100 samples, a share of one half has a 95 % interval of ±9.6 percentage points. The order
/// of two entries that differ by less means nothing, and below 100 samples that holds for nearly
/// every table.
pub const MIN_SAMPLES: u64 = 100;

/// The number of samples that must lie on each side of a percentile before it is reported: with
/// fewer, it is the latency of a single sample. This minimum also makes the interval of a
/// percentile possible: with 5 samples expected on one side, the chance that all samples lie on the
/// other side is less than 1 %.
pub const MIN_TAIL: f64 = 5.0;

/// The probability that an interval leaves out on each side.
pub const TAIL: f64 = 0.025;

/// The quantile of the normal distribution for 95 %, two-sided.
pub const Z: f64 = 1.959_963_984_540_054;

/// The significance level: a difference counts as real if chance alone makes one as large with at
/// most this probability, 5 %.
pub const SIGNIFICANT: f64 = 0.05;
