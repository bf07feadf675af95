//! How sure a number is: intervals of shares and percentiles, when there is too little to say
//! anything, and whether two captures differ.
//!
//! Every interval is of 95 %: of a hundred such intervals, 95 hold the true value. All of it takes
//! the samples for independent of each other. Samples of one burst are not, so that a number may be
//! less sure than it says, never surer.

mod change;
mod compare;
mod estimate;
mod histogram;
mod samples;
mod share;
mod transport;

pub use change::{Change, Interval, Measured};
pub use compare::{Difference, LatencyShift, difference, holm, latencies, shares};
pub use estimate::{Estimate, astray};
pub use histogram::{Histogram, Percentile};
pub use samples::Samples;
pub use share::{Share, Weight};
pub use transport::{Band, Places, Transport, transport};

/// Samples below which a view does not rank.
///
/// With 100 samples, a share of one half has a 95 % interval of ±9.6 points: two entries that
/// differ by less than that are in no order at all, and below 100 that is nearly every table.
pub const MIN_SAMPLES: u64 = 100;

/// Samples that must lie on each side of a percentile before it is given: with fewer, it is one
/// sample's latency. It is also what lets the interval of a percentile exist: with 5 on one side,
/// less than 1 % of all samples of that size lie wholly on the other.
pub const MIN_TAIL: f64 = 5.0;

/// Part that an interval leaves out on each side.
pub const TAIL: f64 = 0.025;

/// Quantile of the normal distribution for 95 %, two-sided.
pub const Z: f64 = 1.959_963_984_540_054;

/// Whether a difference that chance alone makes with probability `p`, or less, is taken for one: 5
/// %.
pub const SIGNIFICANT: f64 = 0.05;
