//! What was measured of a program.

use super::programs::RealProgram;
use super::sampled::{SampledAccesses, SampledFaults};
use super::second_opinion::SecondOpinion;
use super::whole::AllAccesses;

/// What was measured of a program.
pub struct Measured {
    /// The program.
    pub program: RealProgram,
    /// All its accesses.
    pub all: AllAccesses,
    /// Those that a timer sampled.
    pub sampled: SampledAccesses,
    /// Its page faults.
    pub faults: SampledFaults,
    /// What perf says about the same samples.
    pub opinion: SecondOpinion,
}
