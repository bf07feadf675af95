//! A run of the compactor over a place: which hours, which days, and what became of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::bucket::{FleetBucket, FleetError};
use crate::day::compact_day;
use crate::hour::FleetHour;
use crate::listing::{RawFile, Wanted, raw_files};
use crate::making::{HoursInMemory, Made, compact_hour};
use crate::manifest::{MOST_NAMED, ManifestPart, NamedInput};
use crate::tables::FleetTable;

/// How long after its end an hour is compacted, in nanoseconds: uploads take time.
const GRACE_NS: u64 = 600_000_000_000;

/// What a compactor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactOptions {
    /// Only this hour, even if it is not over; no day.
    pub hour: Option<FleetHour>,
    /// Otherwise: every hour that is over and of which a capture was written since this time, in
    /// nanoseconds since the Unix epoch.
    pub since_ns: u64,
    /// The time now, in nanoseconds since the Unix epoch.
    pub now_ns: u64,
    /// About how many bytes of rows are held in memory.
    pub memory: u64,
}

/// What a compactor did.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Compacted {
    /// The hours that were looked at, in order.
    pub hours: Vec<CompactedPeriod>,
    /// The days that were looked at, in order.
    pub days: Vec<CompactedPeriod>,
    /// Number of captures that were listed.
    pub captures: u64,
    /// Number of captures about which something is said, of those that were read now.
    pub named_total: u64,
    /// Number of these that are not in the tables.
    pub refused: u64,
    /// The first hundred of them, each once, even if it is one of several hours.
    pub named: Vec<NamedInput>,
    /// Most bytes of rows that were held in memory at a time.
    pub held_bytes: u64,
}

/// What became of an hour or a day.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct CompactedPeriod {
    /// The hour, `2026-11-24T19`, or the day, `2026-11-24`.
    pub period: String,
    /// Generation of the newest manifest; `None` if there is none.
    pub generation: Option<u32>,
    /// Captures, or hours, that were read now.
    pub read: u64,
    /// Bytes of the captures that were read now.
    pub read_bytes: u64,
    /// Rows that were read now.
    pub rows_read: u64,
    /// Samples in the tables, also those of earlier generations.
    pub samples: u64,
    /// Rows of the hour or of the whole day that were written now.
    pub rows: u64,
    /// Bytes of these rows.
    pub row_bytes: u64,
    /// Bytes of all parts that were written now.
    pub bytes: u64,
    /// Number of inputs about which something is said, of those that were read now.
    pub named: u64,
}

impl CompactedPeriod {
    fn of(period: String, made: &Made) -> Self {
        let rows = |part: &&ManifestPart| {
            part.table == FleetTable::Hour || part.table == FleetTable::Day && part.tier == Some(0)
        };
        let sum = |of: fn(&ManifestPart) -> u64| made.parts.iter().filter(rows).map(of).sum();
        Self {
            period,
            generation: made.manifest.as_ref().map(|manifest| manifest.generation),
            read: made.read,
            read_bytes: made.read_bytes,
            rows_read: made.rows_read,
            samples: made.manifest.as_ref().map_or(0, |manifest| manifest.samples),
            rows: sum(|part| part.rows),
            row_bytes: sum(|part| part.bytes),
            bytes: made.parts.iter().map(|part| part.bytes).sum(),
            named: made.named.len() as u64,
        }
    }
}

/// Brings the tables of a place up to date, and calls `each` after each hour and day. Any number of
/// compactors may do so at the same time.
///
/// # Errors
///
/// Returns an error if the place cannot be listed, read or written. Hours and days that are done
/// stay done.
pub fn compact(
    bucket: &Arc<dyn FleetBucket>,
    options: &CompactOptions,
    mut each: impl FnMut(&CompactedPeriod),
) -> Result<Compacted, FleetError> {
    let wanted = options.hour.map_or(Wanted::Since(options.since_ns), Wanted::Hour);
    let (files, mut hours) = raw_files(bucket, wanted)?;
    let over = |end_ns: u64| end_ns.saturating_add(GRACE_NS) <= options.now_ns;
    if options.hour.is_none() {
        hours.retain(|hour| over(hour.end_ns()));
    }
    let mut done = Compacted { captures: files.len() as u64, ..Compacted::default() };
    let mut told = BTreeSet::new();
    let mut add = |done: &mut Compacted, period: String, made: &Made| {
        let of = CompactedPeriod::of(period, made);
        each(&of);
        done.held_bytes = done.held_bytes.max(made.held);
        for named in &made.named {
            if told.insert((named.name.clone(), named.reason)) {
                done.named_total += 1;
                done.refused += u64::from(!named.reason.is_kept());
                if done.named.len() < MOST_NAMED {
                    done.named.push(named.clone());
                }
            }
        }
        of
    };
    let mut kept = HoursInMemory::default();
    for hour in &hours {
        let next = Some(FleetHour(hour.0 + 1)).filter(|next| hours.contains(next));
        let of: Vec<&RawFile> = files.iter().filter(|file| file.is_of(*hour)).collect();
        let made = compact_hour(bucket, (*hour, next), &of, options.memory, &mut kept)?;
        if made.manifest.is_some() {
            let of = add(&mut done, hour.to_string(), &made);
            done.hours.push(of);
        }
    }
    let days: BTreeSet<_> = hours.iter().map(|hour| hour.day()).collect();
    for day in days.into_iter().filter(|_| options.hour.is_none()) {
        if day.hours().last().is_some_and(|last| over(last.end_ns())) {
            let made = compact_day(bucket, day, options.memory, &mut kept.fold)?;
            if made.manifest.is_some() {
                let of = add(&mut done, day.to_string(), &made);
                done.days.push(of);
            }
        }
    }
    Ok(done)
}
