//! Helpers for tests that run `precise` on a real kernel: they start it, read its captures, and
//! give it something to sample.

pub mod agent_client;
pub mod alone;
pub mod cgroup;
pub mod chain_judge;
pub mod chains;
pub mod chaos;
pub mod clients;
pub mod clock;
pub mod debug_server;
pub mod field_judge;
pub mod fleet_place;
pub mod jail;
pub mod kill_on_drop;
pub mod large_recording;
pub mod load;
pub mod made_fleet;
pub mod otlp;
pub mod program;
pub mod quantile;
mod reader;
pub mod receiver;
pub mod resident;
pub mod rows;
pub mod run;
pub mod s3_server;
pub mod schema;
pub mod serving;
pub mod small_disk;
pub mod soak;
pub mod untrusted;
pub mod usage;

use std::io::Write as _;

/// Prints why a test, or a part of it, does not run here. Bypasses the test harness, which hides
/// the output of passing tests.
pub fn skip(why: &str) {
    say(&format!("skipped: {why}"));
}

/// Prints a line that is shown even if the test passes.
pub fn say(line: &str) {
    let mut err = std::io::stderr();
    // If standard error is closed, nobody reads the line anyway.
    let _closed = err.write_all(format!("{line}\n").as_bytes());
}
