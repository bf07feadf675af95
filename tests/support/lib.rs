//! Helpers of the tests that run `precise` on a real kernel: start it, read what it captured, give
//! it something to sample.

pub mod alone;
pub mod cgroup;
pub mod load;
pub mod program;
pub mod rows;
pub mod run;
pub mod schema;
pub mod serving;
pub mod soak;
pub mod untrusted;

use std::io::Write as _;

/// Says why a test, or a part of it, does not run here. Past the test harness, which hides what a
/// passing test prints.
pub fn skip(why: &str) {
    say(&format!("skipped: {why}"));
}

/// Prints a line that is seen also when the test passes.
pub fn say(line: &str) {
    let mut err = std::io::stderr();
    // Where nobody listens, nothing is missed.
    let _closed = err.write_all(format!("{line}\n").as_bytes());
}
