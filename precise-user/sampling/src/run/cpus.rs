//! CPUs that go offline during a run, and come online: their events are opened again by the thread
//! that may ([`Opener`]), at the rates in force.

use std::{collections::BTreeMap, fs::File, os::unix::fs::FileExt as _, time::Duration};

use super::opening::SampledEvent;
use crate::error::SamplingError;
use crate::kernel::clock::{boottime_ns, monotonic_ns};
use crate::kernel::event::Rate;
use crate::kernel::opener::{OpenAnswer, Opener};
use crate::kernel::sideband::Sideband;
use crate::machine::Root;
use precise_model::{CompactSort as _, format_cpu_list, parse_cpu_list};

/// How long the run loop waits for the events of a CPU. Later answers are found at the next look.
const PATIENCE: Duration = Duration::from_millis(5);
/// Number of looks in a row at which a CPU may refuse its events, before that is final until it
/// goes offline again. A CPU that is about to go offline again refuses them too.
const TRIES: u32 = 20;
/// Least time in nanoseconds between two reads of all events, which interrupt every CPU.
const BETWEEN_READS: u64 = 500_000_000;
/// Maximum number of notes that are kept for the end of the run.
const NOTES: usize = 16;
/// Time in nanoseconds that the machine must have slept to be noticed.
const SLEPT: u64 = 10_000_000;

/// What the kernel shows of CPUs that come and go.
#[derive(Debug)]
struct Signs {
    online: Option<File>,
    uevents: Option<File>,
}

/// One look at the signs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Seen {
    /// The list of online CPUs, as the kernel writes it.
    online: Option<String>,
    /// The number of messages about devices since boot. A CPU that goes offline for less than the
    /// time between two looks changes it.
    uevents: Option<String>,
    /// The time that the machine slept since boot, in nanoseconds. Sleeping takes CPUs offline
    /// without a message.
    slept_ns: u64,
}

impl Signs {
    fn open(root: &Root) -> Self {
        let open = |path: &str| File::open(root.path(path)).ok();
        Self { online: open("/sys/devices/system/cpu/online"), uevents: open("/sys/kernel/uevent_seqnum") }
    }

    fn look(&self) -> Seen {
        let read = |file: &Option<File>| {
            let mut bytes = [0; 1024];
            // The kernel writes such a file anew for each read from its start.
            let length = file.as_ref()?.read_at(&mut bytes, 0).ok()?;
            bytes.get(..length).map(|text| String::from_utf8_lossy(text).trim().to_owned())
        };
        let slept_ns = boottime_ns().saturating_sub(monotonic_ns());
        Seen { online: read(&self.online), uevents: read(&self.uevents), slept_ns }
    }
}

/// The CPUs of a run.
#[derive(Debug)]
pub(crate) struct Cpus {
    signs: Signs,
    opener: Opener,
    seen: Seen,
    /// When the signs were read, and when all events were read, in nanoseconds.
    looked_ns: u64,
    read_ns: u64,
    /// Since when a CPU may have gone offline unseen; `None` if none can have.
    suspicious: Option<u64>,
    /// The CPUs with an open sideband, in order.
    live: Vec<u32>,
    /// The CPUs whose events are being opened, or were refused: the number of refusals in a row.
    opening: BTreeMap<u32, Attempt>,
    notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// The question was asked after this number of refusals.
    Asked(u32),
    Refused(u32),
}

impl Cpus {
    /// Starts to watch. The events of the run are open on all CPUs that are online now.
    pub fn watch(opener: Opener, sideband: &Sideband) -> Self {
        let signs = Signs::open(&Root::default());
        let mut live: Vec<u32> = sideband.cpus().collect();
        live.compact_sort();
        let seen = signs.look();
        let now = monotonic_ns();
        // A CPU may have gone and come since its events were opened.
        Self {
            signs,
            opener,
            seen,
            looked_ns: now,
            read_ns: 0,
            suspicious: Some(now),
            live,
            opening: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Looks for CPUs that have gone or come. Returns a sentence for each. Whatever fails costs the
    /// samples of one CPU, and is a note.
    pub fn look(&mut self, events: &mut [SampledEvent], sideband: &mut Sideband) -> Vec<String> {
        let mut news = Vec::new();
        let (seen, now) = (self.signs.look(), monotonic_ns());
        if seen.uevents != self.seen.uevents || seen.slept_ns.abs_diff(self.seen.slept_ns) > SLEPT {
            self.suspicious.get_or_insert(self.looked_ns);
        }
        let online = seen.online.as_deref().and_then(|list| parse_cpu_list(list).ok());
        // When a CPU has gone at the earliest.
        let mut earliest = self.looked_ns;
        let mut gone = Vec::new();
        if let Some(online) = &online {
            gone.extend(self.live.iter().copied().filter(|cpu| !online.contains(cpu)));
            self.opening.retain(|cpu, attempt| online.contains(cpu) || matches!(attempt, Attempt::Asked(_)));
        }
        if let Some(since) = self.suspicious
            && now.saturating_sub(self.read_ns) >= BETWEEN_READS
        {
            gone.extend(sideband.detached().into_iter().filter(|cpu| self.live.contains(cpu)));
            earliest = earliest.min(since);
            (self.suspicious, self.read_ns) = (None, now);
        }
        gone.compact_sort();
        gone.dedup();
        for cpu in &gone {
            for event in &mut *events {
                if let Err(error) = event.sampler.lose(*cpu, earliest..now) {
                    self.note(*cpu, &error, &mut news);
                }
            }
        }
        self.live.retain(|cpu| !gone.contains(cpu));
        if !gone.is_empty() {
            news.push(format!("CPU {} went offline", format_cpu_list(&gone)));
        }
        (self.seen, self.looked_ns) = (seen, now);
        self.ask(online.unwrap_or_default(), events);
        self.adopt(events, sideband, &mut news);
        news
    }

    fn note(&mut self, cpu: u32, error: &SamplingError, news: &mut Vec<String>) {
        let note = format!("CPU {cpu} is not sampled any more: {}", error.with_causes());
        if self.notes.len() < NOTES && !self.notes.contains(&note) {
            self.notes.push(note.clone());
        }
        news.push(note);
    }

    /// Asks for the events of each online CPU that has none.
    fn ask(&mut self, online: Vec<u32>, events: &[SampledEvent]) {
        for cpu in online.into_iter().filter(|cpu| self.live.binary_search(cpu).is_err()) {
            let refused = match self.opening.get(&cpu) {
                Some(Attempt::Asked(_)) => continue,
                Some(Attempt::Refused(refused)) if *refused >= TRIES => continue,
                Some(Attempt::Refused(refused)) => *refused,
                None => 0,
            };
            self.opener.ask(cpu, rates(cpu, events));
            self.opening.insert(cpu, Attempt::Asked(refused));
        }
    }

    /// Starts what was opened.
    fn adopt(&mut self, events: &mut [SampledEvent], sideband: &mut Sideband, news: &mut Vec<String>) {
        while self.opening.values().any(|attempt| matches!(attempt, Attempt::Asked(_))) {
            let Some(OpenAnswer { cpu, opened }) = self.opener.answer(PATIENCE) else { return };
            let refused = match self.opening.remove(&cpu) {
                Some(Attempt::Asked(refused) | Attempt::Refused(refused)) => refused,
                None => 0,
            };
            let adopted = opened.and_then(|opened| {
                sideband.adopt(opened.sideband)?;
                Ok(opened.events)
            });
            let opened = match adopted {
                Ok(opened) => opened,
                Err(error) => {
                    self.opening.insert(cpu, Attempt::Refused(refused + 1));
                    if refused + 1 == TRIES {
                        self.note(cpu, &error, news);
                    }
                    continue;
                }
            };
            for (event, opened) in events.iter_mut().zip(opened) {
                let Some(opened) = opened else { continue };
                if let Err(error) = event.sampler.adopt(opened, event.rate) {
                    self.note(cpu, &error, news);
                }
            }
            if let Err(at) = self.live.binary_search(&cpu) {
                self.live.insert(at, cpu);
            }
            news.push(format!("CPU {cpu} came online"));
        }
    }

    /// Returns the notes for the reader since the last call, one sentence each.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

/// Returns the rate in force of each event that does not count on a CPU, and should.
fn rates(cpu: u32, events: &[SampledEvent]) -> Vec<Option<Rate>> {
    events.iter().map(|event| event.sampler.lacks(cpu).then_some(event.rate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmu::fixture::Tree;

    #[test]
    fn signs_are_read_anew_each_time() {
        let tree = Tree::new("", "6.12.0")
            .file("/sys/devices/system/cpu/online", "0-3\n")
            .file("/sys/kernel/uevent_seqnum", "954\n");
        let signs = Signs::open(&tree.root());
        let first = signs.look();
        assert_eq!((first.online.as_deref(), first.uevents.as_deref()), (Some("0-3"), Some("954")));
        let _tree = tree.file("/sys/devices/system/cpu/online", "0,2-3\n");
        assert_eq!(signs.look().online.as_deref(), Some("0,2-3"));
        let none = Signs::open(&Tree::new("", "6.12.0").root().clone()).look();
        assert_eq!(none.uevents, None);
    }
}
