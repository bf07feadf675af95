//! The captures of a fleet that never was, in a folder.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use precise::fleet::FleetHour;
use precise::fleet::testing::{FleetTruth, MadeCapture, MadeFleet};

/// Returns the hour before which the hours of a fleet are over: this one and the one before are not
/// used.
pub fn over() -> FleetHour {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    FleetHour(FleetHour::of_ns(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)).0 - 1)
}

/// Writes the captures of each node for a number of hours. Returns what is in them.
///
/// # Errors
///
/// Returns an error if a file cannot be written.
pub fn write(made: &MadeFleet, hours: u32, place: &Path) -> Result<FleetTruth> {
    let mut truth = FleetTruth::new();
    for node in 0..made.nodes {
        for hour in 0..hours {
            for capture in made.all(node, hour, &mut truth)? {
                put(&capture, place)?;
            }
        }
    }
    Ok(truth)
}

/// Writes a capture.
///
/// # Errors
///
/// Returns an error if the file cannot be written.
pub fn put(made: &MadeCapture, place: &Path) -> Result<()> {
    let path = place.join(&made.name);
    fs::create_dir_all(path.parent().context("a label")?)?;
    fs::write(&path, &made.bytes)?;
    let written = UNIX_EPOCH + Duration::from_nanos(made.modified_ns);
    Ok(File::options().write(true).open(&path)?.set_modified(written)?)
}
