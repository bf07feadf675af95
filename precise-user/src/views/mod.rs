//! One question each: pure functions from a capture to a result.

pub mod heatmap;
