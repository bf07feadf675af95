//! Leader sampling (`{cycles,instructions}:S`): only the group's leader samples, and each sample
//! has the counts of all members. A member gets a sample from each sample of the leader, whose
//! period is what the member counted since the sample before, as in perf.

use rustc_hash::FxHashMap;

use precise_records::perf_data::{Attr, RecordingReader};
use precise_records::record::sample::{Sample, group_values};

/// The maximum number of counters that are remembered: with `--inherit`, one per member and thread.
const MAX_COUNTERS: usize = 1 << 20;

/// The last known count of each member.
#[derive(Debug, Default)]
pub(super) struct MemberCounts {
    /// By the id of the counter, and by thread if the counter is inherited.
    counts: FxHashMap<(u64, u32), u64>,
    /// The number of samples of members that were left out to limit memory.
    pub left_out: u64,
}

impl MemberCounts {
    /// Returns the members that counted since the last sample of their group: the index of the
    /// event, and how much it counted.
    pub fn members(
        &mut self,
        reader: &RecordingReader,
        leader: usize,
        attr: &Attr,
        sample: &Sample,
    ) -> Vec<(usize, u64)> {
        let mut members = Vec::new();
        for (id, count) in group_values(sample, &attr.sample) {
            let Some(event) = reader.event_by_id(id).filter(|event| *event != leader) else { continue };
            // A member with a period of its own has samples of its own.
            let samples_itself =
                reader.events().get(event).is_none_or(|event| event.attr.period_or_frequency != 0);
            if samples_itself {
                continue;
            }
            let counter = (id, if attr.inherits() { sample.tid } else { 0 });
            if self.counts.len() >= MAX_COUNTERS && !self.counts.contains_key(&counter) {
                self.left_out += 1;
                continue;
            }
            let before = self.counts.insert(counter, count).unwrap_or(0);
            match count.saturating_sub(before) {
                0 => {}
                period => members.push((event, period)),
            }
        }
        members
    }
}
