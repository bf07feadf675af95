//! Random faults while `precise record` and `precise serve` run, from a seed: which they are
//! ([`Fault`]), the world that they happen in ([`World`]), and what a run must still satisfy
//! ([`Recording`], [`Endpoint`]).

mod fault;
mod live;
mod world;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};

pub use fault::Fault;
pub use live::{Endpoint, Recording};
pub use world::World;

use crate::say;

/// The faults between two ends of the runs, on average.
const BETWEEN_ENDS: u64 = 25;

/// Numbers from a seed (splitmix64): the same seed injects the same faults.
#[derive(Clone, Copy, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Starts with a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `end`, which is not 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// Returns a duration from `least` to below `most`, in milliseconds.
    pub const fn pause(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least))
    }
}

/// What became of the runs after a fault of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    injected: u64,
    /// How often the fault could not be injected, for example because no reader existed.
    absent: u64,
    /// How often a run ended because of it.
    ended: u64,
}

/// What the judged runs had, in total.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Captures that were complete, with a ledger that closes.
    pub captures: u64,
    /// Samples in their rows.
    pub samples: u64,
    /// Samples that came while the run could not renew its lease.
    pub late: u64,
    /// Samples that user space could not keep.
    pub discarded: u64,
    /// Samples whose function has no name because a file could not be read.
    pub failed: u64,
    /// Notes of all captures.
    pub notes: u64,
    /// Pages that were served.
    pub pages: u64,
    /// Runs of `serve` that ended in order.
    pub served: u64,
}

/// What a campaign of faults found, for a table.
#[derive(Debug, Default)]
pub struct Account {
    tallies: BTreeMap<Fault, Tally>,
    /// What the judged runs had.
    pub totals: Totals,
}

impl Account {
    /// Returns the number of faults that were injected.
    pub fn injected(&self) -> u64 {
        self.tallies.values().map(|tally| tally.injected).sum()
    }

    /// Returns the table in Markdown: kind, times, and what became of the run.
    pub fn table(&self) -> String {
        let mut text = "| fault | times | what became of the runs |\n| --- | --- | --- |\n".to_owned();
        for (fault, tally) in &self.tallies {
            let (what, expected) = fault.words();
            // Writing to a string does not fail.
            let _written = write!(text, "| {what} | {} | {expected}", tally.injected);
            if fault.may_end_a_run() {
                let _written = write!(text, "; {} ended a run", tally.ended);
            }
            text.push_str(" |\n");
        }
        text
    }
}

/// Injects this number of faults from a seed while a record and a serve run, and judges every run.
///
/// # Errors
///
/// Returns an error that names the fault after which a run was not as it must be.
pub fn campaign(faults: u64, seed: u64) -> Result<Account> {
    let mut dice = Dice::new(seed);
    let mut account = Account::default();
    let mut world = World::new()?;
    let kinds = Fault::possible();
    let mut drawn = 0_u64;
    while account.injected() < faults {
        drawn += 1;
        let number = account.injected() + 1;
        let ends = dice.below(BETWEEN_ENDS) == 0 || number == faults;
        let fault = if ends { Fault::end(&mut dice) } else { kinds[dice.below(kinds.len() as u64) as usize] };
        let context = || format!("fault {number} of seed {seed}: {fault:?}");
        let injected = fault.inject(&mut world, &mut dice).with_context(context)?;
        let tally = account.tallies.entry(fault).or_default();
        if !injected {
            tally.absent += 1;
            continue;
        }
        tally.injected += 1;
        tally.ended += world.settle(&mut account.totals).with_context(context)?;
        if number.is_multiple_of(50) {
            say(&format!("{number} faults, {drawn} drawn, {:?}", account.totals));
        }
    }
    world.end(&mut account.totals).context("at the end")?;
    Ok(account)
}
