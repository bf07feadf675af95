use std::time::Duration;

use precise_common::ledger::Counter;
use precise_model::testing::CaptureBuilder;
use precise_model::{Capture, Chain, Epoch, EventInfo, Meta, Owner, RateChange};

use super::super::state::TopState;
use super::*;

const SECOND: u64 = 1_000_000_000;

/// A run whose window is tested: `samples` of a function each epoch.
struct Fake {
    window: Window,
    epochs: u64,
    aggregated: u64,
}

impl Fake {
    fn new(seconds: u64, most_rows: usize, most_bytes: usize) -> Self {
        let event = EventInfo { name: "cycles".into(), period: Some(1000), ..EventInfo::default() };
        let draft = Meta { events: vec![event], notes: vec!["a note".into()], ..Meta::default() };
        let window = Window::bounded(Duration::from_secs(seconds), draft, most_rows, most_bytes);
        Self { window, epochs: 0, aggregated: 0 }
    }

    /// Returns the state after the epoch. Its ledger was read when `late` more samples had come.
    fn state(&self, late: u64) -> TopState {
        let total = self.aggregated + late;
        let mut event = self.window.draft.events[0].clone();
        event.marks_exact = true;
        for counter in [Counter::Seen, Counter::Aggregated, Counter::Exact] {
            event.ledger.counters.set(counter, total);
        }
        event.ledger.counters.set(Counter::PeriodSeen, 1000 * total);
        event.ledger.event_count = 1000 * total;
        TopState { events: vec![event], dropped: vec![0], changes: vec![vec![]], ..TopState::default() }
    }

    /// Takes the rows of an epoch; `functions` get 10 samples each.
    fn rows(&mut self, functions: &[&str]) -> Capture {
        let mut made = CaptureBuilder::new();
        for (at, function) in functions.iter().enumerate() {
            made.cell()
                .samples(10)
                .code(0x1000 + at as u64, "/bin/app", function, "", 0)
                .callers(&["main"])
                .cgroup(1, &format!("/app-{function}"));
        }
        let mut capture = made.build();
        let (start_ns, end_ns) = (self.epochs * SECOND, (self.epochs + 1) * SECOND);
        capture.meta.epochs = vec![Epoch { start_ns, end_ns }];
        self.epochs += 1;
        self.aggregated += 10 * functions.len() as u64;
        capture
    }

    fn epoch(&mut self, functions: &[&str]) {
        let capture = self.rows(functions);
        self.window.take(&capture, &capture.rows);
        self.window.state(self.state(0));
    }

    fn capture(&self) -> Capture {
        self.window.snapshot().unwrap().capture
    }
}

/// Returns the names of the functions in order of rows.
fn functions(capture: &Capture) -> Vec<&str> {
    let name = |row: &precise_model::Row| match capture.code[row.code.unwrap() as usize].function {
        Name::Known(id) => capture.names.get(id),
        Name::Unknown(_) => "?",
    };
    capture.rows.iter().map(name).collect()
}

#[test]
fn an_epoch_counts_when_its_rows_and_its_state_are_there() {
    let mut fake = Fake::new(60, 1000, 1 << 20);
    assert!(fake.window.snapshot().is_none());
    let first = fake.rows(&["a"]);
    fake.window.state(fake.state(0));
    assert_eq!((fake.window.version(), fake.window.snapshot().is_none()), (0, true));
    fake.window.take(&first, &first.rows);
    assert_eq!(fake.window.version(), 1);
    // The other order.
    let second = fake.rows(&["b"]);
    fake.window.take(&second, &second.rows);
    assert_eq!(functions(&fake.capture()), ["a"]);
    fake.window.state(fake.state(0));
    assert_eq!(functions(&fake.capture()), ["a", "b"]);
    assert_eq!(fake.window.version(), 2);
}

#[test]
fn old_epochs_leave_with_their_names_and_the_times_count_from_the_first() {
    let mut fake = Fake::new(3, 1000, 16 << 10);
    for name in ["a", "b", "c", "d", "e"] {
        fake.epoch(&[name, "common"]);
    }
    let capture = fake.capture();
    assert_eq!(functions(&capture), ["c", "common", "d", "common", "e", "common"]);
    assert_eq!(capture.meta.epochs[0], Epoch { start_ns: 0, end_ns: SECOND });
    assert_eq!(capture.meta.epochs.len(), 3);
    assert_eq!(capture.rows.iter().map(|row| row.epoch).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
    assert_eq!(capture.meta.start_unix_ns % SECOND, 0);
    assert!(capture.rows.iter().all(|row| matches!(row.stack, Chain::Known(_))));
    let names: Vec<&str> =
        (0..capture.names.len()).map(|id| capture.names.get(precise_model::NameId(id as u32))).collect();
    assert!(names.contains(&"c") && !names.contains(&"a"), "{names:?}");
}

#[test]
fn the_ledger_is_that_of_the_window_whenever_it_was_read() {
    let mut fake = Fake::new(2, 1000, 1 << 20);
    for late in [0, 3, 7, 2, 5] {
        let capture = fake.rows(&["a", "b"]);
        fake.window.take(&capture, &capture.rows);
        fake.window.state(fake.state(late));
    }
    let capture = fake.capture();
    let ledger = &capture.meta.events[0].ledger;
    let in_rows: u64 = capture.rows.iter().map(|row| row.measures.count).sum();
    assert_eq!((in_rows, ledger.counter(Counter::Aggregated)), (40, 40));
    assert_eq!((ledger.counter(Counter::Seen), ledger.counter(Counter::Exact)), (40, 40));
    assert_eq!(ledger.unaccounted(), 0);
    // Both numbers were read at the same moment.
    assert_eq!(ledger.coverage(), Some(1.0));
}

#[test]
fn a_window_that_would_be_too_large_has_fewer_epochs() {
    let mut fake = Fake::new(60, 4, 1 << 20);
    for _ in 0..5 {
        fake.epoch(&["a", "b"]);
    }
    let snapshot = fake.window.snapshot().unwrap();
    assert_eq!(snapshot.capture.meta.epochs.len(), 2);
    assert_eq!(
        snapshot.shortened.unwrap(),
        "The window is shortened to 2 s, because more rows or names would not fit in its memory."
    );
    // An epoch that does not fit by itself: the ledger has its samples.
    fake.epoch(&["a", "b", "c", "d", "e"]);
    let ledger = &fake.capture().meta.events[0].ledger;
    assert_eq!(ledger.discarded.values().sum::<u64>(), 50);
    let in_rows: u64 = fake.capture().rows.iter().map(|row| row.measures.count).sum();
    assert_eq!(ledger.counter(Counter::Aggregated), in_rows + 50);
}

#[test]
fn memory_of_names_is_bounded() {
    let most = 64 << 10;
    let mut fake = Fake::new(1000, 1 << 20, most);
    for number in 0..200 {
        let name = format!("function_{number}_{}", "x".repeat(1000));
        fake.epoch(&[&name]);
        assert!(fake.window.bytes() <= most + (8 << 10), "{}", fake.window.bytes());
    }
    assert_eq!(fake.window.owners.bytes(), 0);
    let epochs = fake.capture().meta.epochs.len();
    assert!((2..60).contains(&epochs), "{epochs}");
    assert!(fake.window.snapshot().unwrap().shortened.is_some());
}

#[test]
fn names_of_the_past_go_with_the_owners_of_its_cgroups() {
    let mut fake = Fake::new(10, 1000, 64 << 20);
    let mut most = 0;
    for number in 0..3000 {
        let function = format!("{number}-{}", "x".repeat(900));
        let mut capture = fake.rows(&[&function]);
        let (path, name) = (format!("/app-{function}"), format!("web-{number}"));
        capture.meta.owners = vec![Owner { path, name, ..Owner::default() }];
        fake.window.take(&capture, &capture.rows);
        fake.window.state(fake.state(0));
        most = most.max(fake.window.bytes());
    }
    // Ten epochs need 40 KB, the names of all of them 4 MB and more.
    assert!(most < LEAST_GROWTH + (64 << 10), "{most}");
    assert!(fake.window.owners.len() < 100, "{}", fake.window.owners.len());
}

#[test]
fn rates_are_those_of_the_window() {
    let mut fake = Fake::new(2, 1000, 1 << 20);
    let change = |at_ns, period| RateChange { at_ns, period: Some(period), frequency: None };
    for changes in [vec![change(SECOND / 2, 2000)], vec![], vec![change(5 * SECOND / 2, 4000)]] {
        let capture = fake.rows(&["a"]);
        fake.window.take(&capture, &capture.rows);
        fake.window.state(TopState { changes: vec![changes], ..fake.state(0) });
    }
    let event = &fake.capture().meta.events[0];
    assert_eq!(event.rates, [change(0, 2000), change(3 * SECOND / 2, 4000)]);
    assert_eq!(event.period, None);
    fake.epoch(&["a"]);
    fake.epoch(&["a"]);
    let event = &fake.capture().meta.events[0];
    assert_eq!((event.period, event.rates.len()), (Some(4000), 0));
    // One period does not hold since the start of the run, so no number is expected from it.
    assert_eq!(fake.window.rates_so_far()[0].len(), 1);
}
