//! The tables of a fleet of two days, for documents: always the same ones.

use std::fs;
use std::path::Path;

use anyhow::{Result, anyhow};
use precise::archive::{ArchivePlace, fleet_bucket};
use precise::fleet::testing::MadeFleet;
use precise::fleet::{CompactOptions, FleetDay, FleetHour, compact};

use crate::made_fleet::write;

/// Writes the tables of 24 nodes for 2026-11-24 and the day after it. A node is silent on
/// the second day, and the programs of that day have no function `f5` and later ones.
///
/// # Errors
///
/// Returns an error if a file cannot be written.
pub fn write_tables(place: &Path) -> Result<()> {
    let day = FleetDay::parse("2026-11-24").ok_or_else(|| anyhow!("no day"))?;
    let next = FleetDay(day.0 + 1);
    let made = MadeFleet { nodes: 24, first: day.first(), ..MadeFleet::small() };
    write(&made, 24, place)?;
    write(&MadeFleet { functions: 5, first: next.first(), ..made }, 24, place)?;
    fs::remove_file(place.join("prod-node-00011-20261124/20261124T232000Z-node-00011-precise.parquet"))?;
    fs::remove_dir_all(place.join("prod-node-00011-20261125"))?;
    let bucket = fleet_bucket(&ArchivePlace::parse(place)?)?;
    let now_ns = FleetHour(day.first().0 + 24 * 30).start_ns();
    let options = CompactOptions { hour: None, since_ns: 0, now_ns, memory: 64 << 20 };
    compact(&bucket, &options, |_| {})?;
    Ok(())
}
