//! The capture: what a run saw, in memory and as a file.

mod model;

pub use model::*;
