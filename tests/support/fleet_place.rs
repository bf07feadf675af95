//! The tables of a fleet of two days, for documents: always the same ones.

use std::fs;
use std::path::Path;

use anyhow::{Result, anyhow};
use precise::archive::{ArchivePlace, fleet_bucket};
use precise::fleet::testing::MadeFleet;
use precise::fleet::{CompactOptions, FleetDay, FleetHour, compact};

use crate::made_fleet::write;

/// Writes the tables of 24 nodes for 2026-11-24 and the day after it. A node falls silent in the
/// evening of the second day, and the programs of that day have no function `f5` and later ones.
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
    for hour in 18..24 {
        let name = format!("20261125T{hour}2000Z-node-00011-precise.parquet");
        fs::remove_file(place.join("prod-node-00011-20261125").join(name))?;
    }
    let bucket = fleet_bucket(&ArchivePlace::parse(place)?)?;
    let now_ns = FleetHour(day.first().0 + 24 * 30).start_ns();
    let options = CompactOptions { hour: None, since_ns: 0, now_ns, memory: 64 << 20 };
    compact(&bucket, &options, |_| {})?;
    Ok(())
}
