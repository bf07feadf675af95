//! How long a recording is, and how long the epochs of its capture are.

use std::path::Path;
use std::time::Duration;

use precise_records::perf_data::{Event, Reader};
use precise_records::record::SAMPLE;
use precise_records::record::sample::decode;

use super::ImportOptions;

/// The number of epochs of a recording, unless they would be too short or too long.
const COLUMNS: u64 = 60;
const SHORTEST: u64 = 1_000_000;
const LONGEST: u64 = 1_000_000_000;
/// The size of the largest file that is read once more for its length, in bytes. That takes about a
/// second, and a larger recording is seldom shorter than a minute.
const READ_TWICE: u64 = 256 << 20;

/// Returns the length of an epoch in nanoseconds.
pub(super) fn epoch_ns(options: &ImportOptions, reader: &Reader) -> u64 {
    let told = || reader.features().sample_times.or_else(|| sample_times(&options.input));
    match options.epoch {
        Some(epoch) => of_asked(epoch),
        // The last sample is within the last epoch, and not at the start of another one.
        None => told().map_or(LONGEST, |(first, last)| {
            (last.saturating_sub(first) / COLUMNS + 1).clamp(SHORTEST, LONGEST)
        }),
    }
}

fn of_asked(epoch: Duration) -> u64 {
    u64::try_from(epoch.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// Returns the times of the first and the last sample of a file that does not tell them: perf
/// writes them since Linux 4.16, and not to a pipe. `None` if it is no file, or a large one.
fn sample_times(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().filter(|file| file.is_file() && file.len() <= READ_TWICE)?;
    let mut reader = Reader::open(path).ok()?;
    let mut times: Option<(u64, u64)> = None;
    loop {
        let (event, body) = match reader.next_event() {
            Event::Record { kind: SAMPLE, body, event: Some(event), .. } => (event, body),
            Event::Record { .. } | Event::Round => continue,
            Event::End(_) => return times,
        };
        let layout = reader.events().get(event).map(|described| described.attr.sample);
        let time = layout.and_then(|layout| decode(body, &layout).ok()).map_or(0, |sample| sample.time);
        if time > 0 {
            let (first, last) = times.unwrap_or((time, time));
            times = Some((first.min(time), last.max(time)));
        }
    }
}
