use std::sync::mpsc;
use std::time::Duration;

use precise_common::ledger::Counter;
use precise_model::EventInfo;
use precise_model::testing::CaptureBuilder;

use super::super::{PushAnswer, PushBackend, PushMessage, PushPlace};
use super::*;

const SECOND: u64 = 1_000_000_000;

/// Hands over what it gets.
struct Collecting(mpsc::Sender<Capture>);

impl PushBackend for Collecting {
    fn encode(&mut self, capture: &Capture) -> Vec<PushMessage> {
        self.0.send(capture.clone()).unwrap();
        let samples = samples(capture);
        vec![PushMessage { query: String::new(), body: bytes::Bytes::new(), profiles: 1, samples }]
    }

    fn send(&mut self, _message: &PushMessage) -> PushAnswer {
        PushAnswer::Taken { refused: 0, said: String::new() }
    }
}

fn samples(capture: &Capture) -> u64 {
    capture.rows.iter().map(|row| row.measures.count).sum()
}

/// A run of one event whose intervals are collected.
struct Fake {
    pusher: Pusher,
    pushed: mpsc::Receiver<Capture>,
    event: EventInfo,
    epochs: u64,
    aggregated: u64,
}

impl Fake {
    fn new(seconds: u64, bytes: usize) -> Self {
        let event = EventInfo {
            name: "cycles".into(),
            period: Some(1000),
            marks_exact: true,
            ..EventInfo::default()
        };
        let meta = Meta { events: vec![event.clone()], ..Meta::default() };
        let (tell, pushed) = mpsc::channel();
        let place = PushPlace { name: "test".into(), backend: Box::new(Collecting(tell)) };
        let every = Duration::from_secs(seconds);
        let pusher = Pusher::start(PushOptions { every, bytes, places: vec![place] }, meta).unwrap();
        Self { pusher, pushed, event, epochs: 0, aggregated: 0 }
    }

    /// Adds an epoch with ten samples of each function. Its ledger was read when `late` more
    /// samples had come.
    fn epoch(&mut self, functions: &[&str], late: u64) {
        let mut made = CaptureBuilder::new();
        for (at, function) in functions.iter().enumerate() {
            let cell = made.cell().samples(10).process(self.epochs as u32 + 1, "app").cgroup(7, "/a");
            cell.code(0x1000 + at as u64, "/bin/app", function, "", 0).latency(self.epochs as u32);
        }
        made.meta().owners = vec![Owner { path: "/a".into(), name: "a".into(), ..Owner::default() }];
        let mut named = made.build();
        let rows = std::mem::take(&mut named.rows);
        let (start_ns, end_ns) = (self.epochs * SECOND, (self.epochs + 1) * SECOND);
        named.meta.start_unix_ns = 1_700_000_000 * SECOND;
        named.meta.epochs = vec![Epoch { start_ns, end_ns }];
        self.pusher.take(&named, &rows);
        self.epochs += 1;
        self.aggregated += 10 * functions.len() as u64;
        let mut event = self.event.clone();
        for counter in [Counter::Seen, Counter::Aggregated, Counter::Exact] {
            event.ledger.counters.set(counter, self.aggregated + late);
        }
        let (events, changes) = (vec![event], vec![Vec::new()]);
        self.pusher.state(TopState { events, changes, dropped: vec![0], ..TopState::default() });
    }

    /// Ends the run. Returns the intervals in the order of their time.
    fn end(self) -> Vec<Capture> {
        assert_eq!(self.pusher.end(), [""; 0]);
        let table = self.pusher.counts()[0].table();
        assert_eq!((table.samples[0], table.waiting), (("sent", self.aggregated), 0));
        drop(self.pusher);
        let mut all: Vec<Capture> = self.pushed.try_iter().collect();
        all.sort_by_key(|capture| capture.meta.start_unix_ns);
        all
    }
}

#[test]
fn the_run_is_in_intervals_whose_ledgers_close() {
    let mut fake = Fake::new(3, 1 << 20);
    for late in [0, 7, 3, 9, 0, 5, 1] {
        fake.epoch(&["f", "g"], late);
    }
    let found = fake.end();
    assert_eq!(found.len(), 3);
    for (at, capture) in found.iter().enumerate() {
        let epochs = if at == 2 { 1 } else { 3 };
        assert_eq!(capture.meta.start_unix_ns, (1_700_000_000 + 3 * at as u64) * SECOND);
        assert_eq!(capture.meta.epochs, [Epoch { start_ns: 0, end_ns: epochs * SECOND }]);
        let ledger = &capture.meta.events[0].ledger;
        assert_eq!(samples(capture), 20 * epochs);
        assert_eq!((ledger.counter(Counter::Aggregated), ledger.unaccounted()), (20 * epochs, 0));
        // Rows of different epochs, processes and latencies are one.
        let functions: Vec<_> = capture.rows.iter().map(|row| (row.measures.count, row.pid)).collect();
        assert_eq!(functions, [(10 * epochs, 0); 2]);
        assert_eq!(capture.meta.owner("/a").map(|owner| owner.name.as_str()), Some("a"));
        let first = capture.rows[0].measures;
        let start = 3 * at as u64;
        let latency: u64 = (start..start + epochs).map(|epoch| 10 * epoch).sum();
        assert_eq!((first.latency_sum, u64::from(first.latency_max)), (latency, start + epochs - 1));
    }
}

#[test]
fn an_interval_that_takes_too_much_memory_ends_early() {
    let mut fake = Fake::new(3600, 1 << 20);
    let names: Vec<String> = (0..100).map(|at| format!("{at:0>3000}")).collect();
    for part in names.chunks(10) {
        let part: Vec<&str> = part.iter().map(String::as_str).collect();
        fake.epoch(&part, 0);
    }
    let found = fake.end();
    // Each function takes at least its name and its row.
    assert!((2..10).contains(&found.len()), "{}", found.len());
    assert_eq!(found.iter().map(samples).sum::<u64>(), 1000);
}

#[test]
fn an_interval_without_samples_is_not_sent() {
    let mut fake = Fake::new(1, 1 << 20);
    for _ in 0..4 {
        fake.epoch(&[], 3);
    }
    fake.epoch(&["f"], 0);
    let found = fake.end();
    let samples: Vec<_> = found.iter().map(samples).collect();
    assert_eq!(samples, [10]);
    assert_eq!(found[0].meta.start_unix_ns, (1_700_000_000 + 4) * SECOND);
}
