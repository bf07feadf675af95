//! The captures of a place, and the hours that they may have something of.

use std::collections::BTreeSet;
use std::sync::Arc;

use precise_capture::CaptureScan;
use precise_model::CompactSort as _;

use crate::bucket::{FleetBucket, FleetError, FleetObject, with_ranges};
use crate::hour::{FleetDay, FleetHour, time_in};
use crate::raw::{LIMITS, span};
use crate::tables::ROOT;
use crate::together::together;

/// The longest time between the time in a capture's name and the end of its upload for which both
/// bound what the capture has. Of others the metadata is read. In nanoseconds.
const LONGEST_NS: u64 = 7_200_000_000_000;

/// A capture, not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawFile {
    pub object: FleetObject,
    /// The first and the last hour that the capture may have something of.
    pub hours: (FleetHour, FleetHour),
}

impl RawFile {
    pub fn is_of(&self, hour: FleetHour) -> bool {
        self.hours.0 <= hour && hour <= self.hours.1
    }
}

/// Which captures are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those of one hour.
    Hour(FleetHour),
    /// Those of every hour of which a capture was written since this time, in nanoseconds.
    Since(u64),
}

/// Returns the captures of a place, sorted by name, and the hours that are wanted.
pub(crate) fn raw_files(
    bucket: &Arc<dyn FleetBucket>,
    wanted: Wanted,
) -> Result<(Vec<RawFile>, BTreeSet<FleetHour>), FleetError> {
    let (first, since) = match wanted {
        Wanted::Hour(hour) => (hour.day(), hour.start_ns()),
        Wanted::Since(ns) => (FleetHour::of_ns(ns).day(), ns),
    };
    // The label of a day is that of the captures that begin in it; one may go on into the next.
    let first = FleetDay(first.0.saturating_sub(1));
    let last = match wanted {
        Wanted::Hour(hour) => hour.day(),
        Wanted::Since(_) => FleetDay(u32::MAX),
    };
    let mut labels = bucket.folders("")?;
    labels.retain(|label| {
        let hidden = label == ROOT || label.starts_with('.');
        let other = FleetDay::at_end(label).is_some_and(|day| day < first || day > last);
        !hidden && !other
    });
    labels.push(String::new());
    let mut objects = together(&**bucket, &labels, |label| bucket.objects(label))?.concat();
    objects.retain(|object| object.name.ends_with(".parquet"));
    objects.compact_sort();
    let mut files = Vec::new();
    let mut hours = BTreeSet::new();
    for object in objects {
        // A capture was written after its end.
        if object.modified_ns > 0 && object.modified_ns < first.first().start_ns() {
            continue;
        }
        let Some(of) = hours_of(bucket, &object)? else { continue };
        let file = RawFile { hours: of, object };
        match wanted {
            Wanted::Hour(hour) if !file.is_of(hour) => continue,
            Wanted::Hour(hour) => drop(hours.insert(hour)),
            Wanted::Since(_) if file.object.modified_ns >= since => {
                hours.extend((file.hours.0.0..=file.hours.1.0).map(FleetHour));
            }
            Wanted::Since(_) => {}
        }
        files.push(file);
    }
    Ok((files, hours))
}

/// Returns the hours that a capture may have something of; `None` if it was removed. A capture that
/// cannot be read, or that is refused, belongs to the hour in which it was written.
fn hours_of(
    bucket: &Arc<dyn FleetBucket>,
    object: &FleetObject,
) -> Result<Option<(FleetHour, FleetHour)>, FleetError> {
    let modified = object.modified_ns;
    if let Some(begin) = time_in(&object.name)
        && begin <= modified
        && modified - begin <= LONGEST_NS
    {
        return Ok(Some((FleetHour::of_ns(begin), FleetHour::of_ns(modified))));
    }
    let scan = with_ranges(bucket, (&object.name, object.bytes), |source| {
        CaptureScan::open(source, &object.name, &LIMITS)
    })?;
    let known = scan.ok().filter(|scan| !scan.is_cut()).and_then(|scan| span(scan.meta(), modified).ok());
    let (begin, end) = known.unwrap_or((modified, modified));
    // Epochs belong to the hour in which they begin.
    let (first, last) = (FleetHour::of_ns(begin), FleetHour::of_ns(end.saturating_sub(1).max(begin)));
    /// The longest capture, in hours; what claims more is a damaged one.
    const MOST: u32 = 24 * 366;
    Ok(Some((first, last.min(FleetHour(first.0.saturating_add(MOST))))))
}
