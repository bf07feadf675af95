use std::path::{Path, PathBuf};

use precise_capture::CaptureFile as _;
use precise_common::ledger::Counter;
use precise_model::testing::CaptureBuilder;
use precise_model::{EventInfo, RateChange};

use super::super::{Retention, Upload};
use super::*;

const SECOND: u64 = 1_000_000_000;

/// A run of one event: ten samples of each function in each epoch of a second.
struct Fake {
    rolling: Rolling,
    folder: tempfile::TempDir,
    event: EventInfo,
    epochs: u64,
    aggregated: u64,
}

impl Fake {
    fn new(seconds: u64, upload: Option<Upload>) -> Self {
        Self::within(tempfile::tempdir().unwrap(), seconds, upload)
    }

    fn within(folder: tempfile::TempDir, seconds: u64, upload: Option<Upload>) -> Self {
        let event = EventInfo {
            name: "cycles".into(),
            period: Some(1000),
            marks_exact: true,
            ..EventInfo::default()
        };
        let meta = Meta { events: vec![event.clone()], notes: vec!["a note".into()], ..Meta::default() };
        let options = CapturesOptions {
            folder: folder.path().join("captures"),
            length: Duration::from_secs(seconds),
            retention: Retention { bytes: 1 << 30, age: Duration::from_secs(3600) },
            upload,
        };
        let rolling = Rolling::start(options, meta).unwrap();
        Self { rolling, folder, event, epochs: 0, aggregated: 0 }
    }

    /// Adds an epoch. Its ledger was read when `late` more samples had come.
    fn epoch(&mut self, functions: &[&str], late: u64, changes: &[RateChange]) {
        let mut made = CaptureBuilder::new();
        for (at, function) in functions.iter().enumerate() {
            made.cell().samples(10).code(0x1000 + at as u64, "/bin/app", function, "", 0);
        }
        let mut named = made.build();
        let rows = std::mem::take(&mut named.rows);
        let (start_ns, end_ns) = (self.epochs * SECOND, (self.epochs + 1) * SECOND);
        named.meta.start_unix_ns = 1_700_000_000 * SECOND;
        named.meta.epochs = vec![Epoch { start_ns, end_ns }];
        self.rolling.take(&mut named, &rows);
        assert_eq!((named.meta.epochs.len(), named.meta.start_unix_ns), (1, 1_700_000_000 * SECOND));
        self.epochs += 1;
        self.aggregated += 10 * functions.len() as u64;
        let total = self.aggregated + late;
        let mut event = self.event.clone();
        for counter in [Counter::Seen, Counter::Aggregated, Counter::Exact] {
            event.ledger.counters.set(counter, total);
        }
        event.ledger.counters.set(Counter::PeriodSeen, 1000 * total);
        event.ledger.event_count = 1000 * total;
        let (events, changes) = (vec![event], vec![changes.to_vec()]);
        self.rolling.state(TopState { events, changes, dropped: vec![0], ..TopState::default() });
    }

    fn captures(&self) -> PathBuf {
        self.folder.path().join("captures")
    }

    fn table(&self) -> super::super::CapturesTable {
        self.rolling.counts().table()
    }
}

/// Returns the names of the captures in a folder, and what is in them.
fn read(folder: &Path) -> Vec<(String, Capture)> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.into_iter().map(|path| (name(&path), Capture::read(&path).unwrap())).collect()
}

fn samples(capture: &Capture) -> u64 {
    capture.rows.iter().map(|row| row.measures.count).sum()
}

#[test]
fn the_run_is_in_captures_whose_ledgers_close() {
    let mut fake = Fake::new(3, None);
    for late in [0, 7, 3, 9, 0, 5, 1] {
        fake.epoch(&["a", "b"], late, &[]);
    }
    fake.rolling.end();
    let found = read(&fake.captures());
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "precise-20231114T221320Z.parquet",
            "precise-20231114T221323Z.parquet",
            "precise-20231114T221326Z.parquet"
        ]
    );
    for (at, (name, capture)) in found.iter().enumerate() {
        let epochs = if at == 2 { 1 } else { 3 };
        assert_eq!(capture.meta.epochs.len() as u64, epochs, "{name}");
        assert_eq!(capture.meta.epochs[0].start_ns, 0);
        assert_eq!(capture.meta.start_unix_ns, (1_700_000_000 + 3 * at as u64) * SECOND);
        assert_eq!(capture.meta.notes, ["a note"]);
        let ledger = &capture.meta.events[0].ledger;
        assert_eq!(samples(capture), 20 * epochs);
        assert_eq!((ledger.counter(Counter::Aggregated), ledger.unaccounted()), (20 * epochs, 0), "{name}");
        assert!(capture.rows.iter().all(|row| u64::from(row.epoch) < epochs));
    }
    assert_eq!((fake.table().written, fake.table().kept), (3, 3));
    assert!(fake.table().last_ns > 0);
}

#[test]
fn a_capture_has_the_rates_of_its_own_time() {
    let mut fake = Fake::new(2, None);
    let change = |at_ns, period| RateChange { at_ns, period: Some(period), frequency: None };
    for changes in [vec![change(SECOND / 2, 2000)], vec![], vec![], vec![change(7 * SECOND / 2, 4000)]] {
        fake.epoch(&["a"], 0, &changes);
    }
    fake.rolling.end();
    let found = read(&fake.captures());
    let event = |at: usize| &found[at].1.meta.events[0];
    assert_eq!(event(0).rates, [change(0, 1000), change(SECOND / 2, 2000)]);
    assert_eq!(event(1).rates, [change(0, 2000), change(3 * SECOND / 2, 4000)]);
}

#[test]
fn what_cannot_be_written_is_counted_and_the_run_goes_on() {
    let mut fake = Fake::new(2, None);
    fake.epoch(&["a"], 0, &[]);
    std::fs::remove_dir_all(fake.captures()).unwrap();
    // The capture that was begun ends here, and can have no name; the next one cannot be begun.
    for _ in 0..3 {
        fake.epoch(&["a"], 0, &[]);
    }
    let table = fake.table();
    assert_eq!((table.written, &table.failed[1]), (0, &("write_error", 1)));
    assert_eq!(table.dropped[1], ("write_error", 40));
    // After the pause it tries again.
    std::fs::create_dir(fake.captures()).unwrap();
    lock(&fake.rolling.state).paused = None;
    fake.epoch(&["a", "b"], 0, &[]);
    fake.rolling.end();
    let found = read(&fake.captures());
    assert_eq!((found.len(), samples(&found[0].1)), (1, 20));
    assert_eq!(found[0].1.meta.events[0].ledger.counter(Counter::Aggregated), 20);
    assert_eq!(fake.table().dropped[1], ("write_error", 40));
}

#[test]
fn every_complete_capture_is_uploaded_also_the_last() {
    let uploaded = Arc::new(Mutex::new(Vec::new()));
    let into = uploaded.clone();
    let upload = Upload::new(move |path, _| {
        lock(&into).push(Capture::read(path).map_err(|error| error.to_string())?.rows.len());
        Ok(())
    });
    let mut fake = Fake::new(2, Some(upload));
    for _ in 0..3 {
        fake.epoch(&["a"], 0, &[]);
    }
    fake.rolling.end();
    let mut found = lock(&uploaded).clone();
    found.sort_unstable();
    assert_eq!(found, [1, 2]);
    assert_eq!(fake.table().uploads[0], ("done", 2));
}

#[test]
fn what_was_not_uploaded_is_uploaded_by_the_next_run() {
    let down = Upload::new(|_, _| Err("the store is down".into()));
    let mut fake = Fake::new(2, Some(down));
    for _ in 0..3 {
        fake.epoch(&["a"], 0, &[]);
    }
    fake.rolling.end();
    assert_eq!(fake.table().uploads[0], ("done", 0));

    let uploaded = Arc::new(Mutex::new(Vec::new()));
    let into = uploaded.clone();
    let works = Upload::new(move |path, again| {
        lock(&into).push((path.to_owned(), again));
        Ok(())
    });
    let fake = Fake::within(fake.folder, 2, Some(works));
    while fake.table().uploads[0] != ("done", 2) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The first may have a part in the archive, and so each says that it comes again.
    let mut found = lock(&uploaded).clone();
    found.sort();
    let path = |name: &str| (fake.captures().join(name), true);
    assert_eq!(found, ["precise-20231114T221320Z.parquet", "precise-20231114T221322Z.parquet"].map(path));
    fake.rolling.end();

    // The marks are gone: a third run has nothing to upload, and the folder has captures only.
    let fake = Fake::within(fake.folder, 2, Some(Upload::new(|_, _| Err("not again".into()))));
    assert_eq!((fake.table().waiting, read(&fake.captures()).len()), (0, 2));
}
