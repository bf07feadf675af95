//! Folded stacks, the format that flamegraph.pl, inferno, speedscope and others read.

use std::fmt::Write as _;

use crate::flame::Flame;

/// Formats one line per call chain: the frames from the outermost one on, separated by semicolons,
/// and the weight.
pub fn folded(flame: &Flame) -> String {
    let mut out = String::new();
    for stack in &flame.stacks {
        // Writing to a string cannot fail.
        let _infallible = writeln!(out, "{} {}", stack.frames.join(";"), stack.weight);
    }
    out
}
