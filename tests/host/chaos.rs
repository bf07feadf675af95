//! Random faults while a record and a serve run: no crash, no hang, documented exit codes, ledgers
//! that close, and a name for every loss.
//!
//! `PRECISE_CHAOS_FAULTS` and `PRECISE_CHAOS_SEED` make it longer and other: `cargo xtask bench
//! chaos`.

use anyhow::{Context as _, Result, ensure};
use precise_tests::{chaos, say};

/// The number in an environment variable, or the other.
fn number(variable: &str, or: u64) -> Result<u64> {
    match std::env::var(variable) {
        Ok(text) => text.parse().with_context(|| format!("{variable} is {text}")),
        Err(_) => Ok(or),
    }
}

#[test]
fn no_fault_ends_a_run_without_a_word() -> Result<()> {
    let faults = number("PRECISE_CHAOS_FAULTS", 60)?;
    let seed = number("PRECISE_CHAOS_SEED", 12)?;
    say(&format!("{faults} faults of seed {seed}"));
    let account = chaos::campaign(faults, seed)?;
    say(&format!("{}\n{:?}", account.table(), account.totals));
    ensure!(account.injected() == faults, "{} faults", account.injected());
    ensure!(account.totals.captures > 0 && account.totals.samples > 0, "{:?}", account.totals);
    ensure!(account.totals.pages > faults / 4, "{:?}", account.totals);
    Ok(())
}
