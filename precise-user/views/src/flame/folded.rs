//! Folded stacks: what flamegraph.pl, inferno, speedscope and others read.

use std::fmt::Write as _;

use crate::flame::Flame;

/// A line per call chain: frames from the outermost on, separated by semicolons, and the weight.
pub fn folded(flame: &Flame) -> String {
    let mut out = String::new();
    for stack in &flame.stacks {
        // Writing to a string does not fail.
        let _infallible = writeln!(out, "{} {}", stack.frames.join(";"), stack.weight);
    }
    out
}
