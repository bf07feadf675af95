//! A small fleet is compacted: its sums are known, and so must be those of every table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use precise_model::testing::CaptureBuilder;

use super::tables::{
    BUCKET, COUNT, EVENT, FUNCTION, KIND, LATENCY_SUM, LEDGER, LEVEL, NODE, SERVICE, SYMBOLS, TIME, WEIGHT,
};
use super::testing::{FleetTruth, MINUTE_NS, MadeCapture, MadeFleet, MemoryBucket, written};
use super::*;

const HOURS: u32 = 5;

/// Returns a place with the captures of a small fleet, and what is in them.
fn fleet(made: &MadeFleet) -> (Arc<MemoryBucket>, FleetTruth) {
    let (bucket, mut truth) = (MemoryBucket::default(), FleetTruth::new());
    for node in 0..made.nodes {
        for hour in 0..HOURS {
            // A node is lost for an hour.
            if (node, hour) != (3, 2) {
                let MadeCapture { name, bytes, modified_ns } = made.capture(node, hour, &mut truth).unwrap();
                bucket.put(&name, bytes, modified_ns);
            }
        }
    }
    (Arc::new(bucket), truth)
}

fn options(made: &MadeFleet) -> CompactOptions {
    let last = FleetHour(made.first.0 + 48);
    CompactOptions { hour: None, since_ns: 0, now_ns: last.end_ns(), memory: 64 << 20 }
}

fn compacted(bucket: &Arc<MemoryBucket>, options: &CompactOptions) -> Result<Compacted, FleetError> {
    let bucket: Arc<dyn FleetBucket> = Arc::<MemoryBucket>::clone(bucket);
    compact(&bucket, options, |_| {})
}

/// Returns the sums of a table by hour, service and function, with the names of functions.
fn sums(bucket: &Arc<MemoryBucket>, made: &MadeFleet, table: FleetTable, tier: Option<u8>) -> FleetTruth {
    let bucket: Arc<dyn FleetBucket> = Arc::<MemoryBucket>::clone(bucket);
    let mut found = FleetTruth::new();
    let first = made.first.day().0;
    for day in (first..first + 3).map(FleetDay) {
        let (hours, of_day) = FleetManifest::of_day(&bucket, day).unwrap();
        let of_day = of_day.map(|manifest| (day.first(), manifest));
        let of_hours = matches!(table, FleetTable::Hour | FleetTable::Latency);
        let manifests: Vec<_> = if of_hours { hours } else { of_day.into_iter().collect() };
        for (hour, manifest) in manifests {
            let mut names: BTreeMap<u64, String> = BTreeMap::new();
            for part in manifest.of_table(FleetTable::Symbols) {
                read_part(&bucket, part, &FleetPick::default(), &SYMBOLS, |batch| {
                    for row in batch.rows() {
                        let id = batch.number(0, row).unwrap();
                        names.insert(id, batch.text(1, row).unwrap().to_owned());
                    }
                })
                .unwrap();
            }
            for part in manifest.of_table(table).filter(|part| part.tier == tier) {
                let timed =
                    if table == FleetTable::Hour || table == FleetTable::Day { LATENCY_SUM } else { COUNT };
                let columns = [SERVICE, FUNCTION, COUNT, WEIGHT, timed];
                read_part(&bucket, part, &FleetPick::default(), &columns, |batch| {
                    for row in batch.rows() {
                        let service = batch.text(0, row).unwrap().to_owned();
                        let name = names[&batch.number(1, row).unwrap()].clone();
                        let total = found.entry((hour, service, name)).or_default();
                        for (at, total) in total.iter_mut().enumerate() {
                            *total += batch.number(2 + at, row).unwrap();
                        }
                    }
                })
                .unwrap();
            }
        }
    }
    found
}

fn by_day(truth: &FleetTruth) -> FleetTruth {
    let mut days = FleetTruth::new();
    for ((hour, service, function), sums) in truth {
        let total = days.entry((hour.day().first(), service.clone(), function.clone())).or_default();
        total.iter_mut().zip(sums).for_each(|(total, more)| *total += more);
    }
    days
}

/// Fails with the first difference.
fn same(found: &FleetTruth, expected: &FleetTruth) {
    for (key, sums) in expected {
        assert_eq!(found.get(key), Some(sums), "{key:?}");
    }
    assert_eq!(found.keys().find(|key| !expected.contains_key(key)), None);
}

/// The bytes of everything that manifests list, and of the manifests.
fn tables(bucket: &MemoryBucket) -> BTreeMap<String, Bytes> {
    bucket.with_prefix("v1/")
}

#[test]
fn the_tables_have_the_sums_of_the_captures() {
    let made = MadeFleet::small();
    let (bucket, truth) = fleet(&made);
    let done = compacted(&bucket, &options(&made)).unwrap();
    // The captures of the last hour go on into the next.
    assert_eq!((done.hours.len(), done.days.len(), done.captures), (HOURS as usize + 1, 2, 59));
    assert_eq!((done.named.as_slice(), done.refused), (&[][..], 0));
    same(&sums(&bucket, &made, FleetTable::Hour, None), &truth);
    let days = by_day(&truth);
    same(&sums(&bucket, &made, FleetTable::Day, Some(0)), &days);
    // Histograms have samples and events, but no sums.
    let without = |truth: &FleetTruth| -> FleetTruth {
        truth.iter().map(|(key, [count, weight, _])| (key.clone(), [*count, *weight, *count])).collect()
    };
    same(&sums(&bucket, &made, FleetTable::Latency, None), &without(&truth));
    same(&sums(&bucket, &made, FleetTable::DayLatency, None), &without(&days));
    let total = |truth: &FleetTruth, at: usize| truth.values().map(|sums| sums[at]).sum::<u64>();
    let all: u64 = done.hours.iter().map(|hour| hour.samples).sum();
    assert_eq!((all, done.days.iter().map(|day| day.samples).sum()), (total(&truth, 0), total(&truth, 0)));

    // Each tier keeps a fifth of the samples of the one before, and stands for all events.
    let samples = total(&truth, 0) as f64;
    let mut expected = samples;
    for tier in 1..4 {
        let thinned = sums(&bucket, &made, FleetTable::Day, Some(tier));
        expected /= 5.0;
        let (count, weight) = (total(&thinned, 0) as f64, total(&thinned, 1) as f64);
        assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{tier}: {count} of {samples}");
        let spread = total(&truth, 1) as f64 * 6.0 / expected.sqrt();
        assert!((weight - total(&truth, 1) as f64).abs() < spread, "{tier}: {weight}");
    }
}

#[test]
fn each_node_has_a_ledger() {
    let made = MadeFleet::small();
    let (bucket, truth) = fleet(&made);
    compacted(&bucket, &options(&made)).unwrap();
    let bucket: Arc<dyn FleetBucket> = bucket;
    let at = |name: &str| LEDGER.iter().position(|column| column.name == name).unwrap();
    let (mut samples, mut nodes) =
        (BTreeMap::<FleetHour, u64>::new(), BTreeMap::<FleetHour, BTreeSet<String>>::new());
    for day in [made.first.day(), FleetDay(made.first.day().0 + 1)] {
        for (hour, manifest) in FleetManifest::of_day(&bucket, day).unwrap().0 {
            for part in manifest.of_table(FleetTable::Ledger) {
                read_part(&bucket, part, &FleetPick::default(), &LEDGER, |batch| {
                    for row in batch.rows() {
                        let number = |name: &str| batch.number(at(name), row).unwrap();
                        *samples.entry(hour).or_default() += number("samples");
                        nodes
                            .entry(hour)
                            .or_default()
                            .insert(batch.text(at("node"), row).unwrap().to_owned());
                        assert_eq!(number("arrived"), number("kept"));
                        assert_eq!(number("kept"), number("samples"));
                        assert_eq!(batch.text(at("cluster"), row), Some("prod"));
                        assert!(number("captures") <= 2 && number("sampled_ns") <= 60 * MINUTE_NS);
                        assert_eq!(batch.text(at("losses"), row), None);
                    }
                })
                .unwrap();
            }
        }
    }
    let mut expected = BTreeMap::<FleetHour, u64>::new();
    for ((hour, ..), sums) in &truth {
        *expected.entry(*hour).or_default() += sums[0];
    }
    assert_eq!(samples, expected);
    // Node 3 has no capture that begins in the third hour.
    let hours: Vec<usize> = nodes.values().map(BTreeSet::len).collect();
    assert_eq!(hours, [12; 6]);
}

#[test]
fn again_and_elsewhere_are_the_same_bytes() {
    let made = MadeFleet::small();
    let (bucket, _) = fleet(&made);
    let other = Arc::new(bucket.raw());
    compacted(&bucket, &options(&made)).unwrap();
    let first = tables(&bucket);
    let again = compacted(&bucket, &options(&made)).unwrap();
    assert!(
        again.hours.iter().chain(&again.days).all(|period| period.read == 0 && period.generation == Some(0))
    );
    assert_eq!(tables(&bucket), first);
    // One hour after the other, and from far away.
    let mut far = other.raw();
    far.far = true;
    let far = Arc::new(far);
    for hour in 0..=HOURS {
        let hour = Some(FleetHour(made.first.0 + hour));
        compacted(&far, &CompactOptions { hour, ..options(&made) }).unwrap();
    }
    compacted(&far, &options(&made)).unwrap();
    assert_eq!(tables(&far), first);
}

#[test]
fn racing_compactors_end_in_the_same_bytes() {
    let made = MadeFleet { nodes: 6, ..MadeFleet::small() };
    let (bucket, truth) = fleet(&made);
    let alone = Arc::new(bucket.raw());
    compacted(&alone, &options(&made)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| compacted(&bucket, &options(&made)).unwrap());
        }
    });
    assert_eq!(tables(&bucket), tables(&alone));
    same(&sums(&bucket, &made, FleetTable::Hour, None), &truth);
}

#[test]
fn a_compactor_that_is_killed_anywhere_changes_nothing() {
    let made = MadeFleet { nodes: 3, rows: 20, ..MadeFleet::small() };
    let (bucket, _) = fleet(&made);
    let whole = Arc::new(bucket.raw());
    compacted(&whole, &options(&made)).unwrap();
    let mut killed = 0;
    // Each of the first operations, then some of the others.
    for point in (0..30).chain((30..).step_by(7)) {
        let place = Arc::new(bucket.raw());
        place.allow(Some(point));
        if compacted(&place, &options(&made)).is_ok() {
            break;
        }
        killed += 1;
        place.allow(None);
        compacted(&place, &options(&made)).unwrap();
        assert_eq!(tables(&place), tables(&whole), "killed at operation {point}");
    }
    assert!(killed >= 50, "{killed} points");
}

#[test]
fn with_little_memory_there_are_more_parts_and_the_same_sums() {
    let made = MadeFleet::small();
    let (bucket, truth) = fleet(&made);
    let done = compacted(&bucket, &CompactOptions { memory: 40 << 10, ..options(&made) }).unwrap();
    assert!(done.held_bytes < 200 << 10, "{}", done.held_bytes);
    let parts = tables(&bucket).keys().filter(|name| name.starts_with("v1/hour/")).count();
    assert!(parts > 2 * HOURS as usize, "{parts}");
    same(&sums(&bucket, &made, FleetTable::Hour, None), &truth);
    same(&sums(&bucket, &made, FleetTable::Day, Some(0)), &by_day(&truth));
}

#[test]
fn late_captures_make_the_next_generation() {
    let made = MadeFleet::small();
    let (whole, truth) = fleet(&made);
    let bucket = Arc::new(MemoryBucket::default());
    let mut all: Vec<_> = whole.with_prefix("prod").into_iter().collect();
    let late = all.split_off(40);
    let end = options(&made).now_ns;
    let put = |files: Vec<(String, Bytes)>, modified| {
        files.into_iter().for_each(|(name, bytes)| bucket.put(&name, bytes, modified));
    };
    put(all, FleetHour(made.first.0 + HOURS).end_ns());
    compacted(&bucket, &options(&made)).unwrap();
    put(late, end - MINUTE_NS);
    // What was written before does not matter.
    let since_ns = FleetHour(made.first.0 + 10).start_ns();
    let done = compacted(&bucket, &CompactOptions { since_ns, ..options(&made) }).unwrap();
    assert!(done.hours.iter().all(|hour| hour.generation == Some(1)), "{:?}", done.hours);
    assert!(done.days.iter().all(|day| day.generation == Some(1)), "{:?}", done.days);
    assert!(done.named.iter().all(|named| named.reason == NamedReason::Late));
    assert_eq!((done.named.len(), done.named_total, done.refused), (19, 19, 0));
    same(&sums(&bucket, &made, FleetTable::Hour, None), &truth);
    same(&sums(&bucket, &made, FleetTable::Day, Some(0)), &by_day(&truth));
}

#[test]
fn what_is_wrong_with_a_capture_is_named_and_costs_nothing_else() {
    let made = MadeFleet { nodes: 2, ..MadeFleet::small() };
    let (bucket, truth) = fleet(&made);
    let mut other = FleetTruth::new();
    let MadeCapture { name, bytes, modified_ns } = made.capture(0, 1, &mut other).unwrap();
    let (label, base) = name.split_once('/').unwrap();
    let put = |start: &str, bytes: &[u8], modified| {
        bucket.put(&format!("{label}/{start}{}", base.replace("node", "nod")), bytes.to_vec(), modified);
    };
    put("", &bytes, modified_ns);
    put("", &bytes[..bytes.len() / 2], modified_ns);
    let model = |start_unix_ns| {
        let mut capture = CaptureBuilder::new();
        capture.meta().start_unix_ns = start_unix_ns;
        capture.cell().samples(5);
        written(&capture.build()).unwrap()
    };
    bucket.put("x/duplicate.parquet", bytes.clone(), modified_ns);
    bucket.put("x/future.parquet", model(modified_ns + 60 * MINUTE_NS), modified_ns);
    bucket.put("x/nothing.parquet", "nothing", modified_ns);
    bucket.put("x/timeless.parquet", model(0), modified_ns);
    bucket.put("x/notes.txt", "no capture", modified_ns);
    bucket.put("x/y/deeper.parquet", bytes, modified_ns);
    let done = compacted(&bucket, &options(&made)).unwrap();
    let mut named: Vec<_> =
        done.named.iter().map(|named| (named.reason, named.name.rsplit('/').next().unwrap())).collect();
    named.sort();
    named.dedup();
    let cut = base.replace("node", "nod");
    let expected = [
        (NamedReason::Cut, cut.as_str()),
        (NamedReason::Damaged, "nothing.parquet"),
        (NamedReason::Future, "future.parquet"),
        (NamedReason::NoTime, "timeless.parquet"),
        (NamedReason::Duplicate, "duplicate.parquet"),
    ];
    assert_eq!(named, expected);
    assert!(done.named.iter().all(|named| named.what.len() > 20), "{:?}", done.named);
    same(&sums(&bucket, &made, FleetTable::Hour, None), &truth);
    // They are known, and not read again.
    let again = compacted(&bucket, &options(&made)).unwrap();
    assert!(again.hours.iter().all(|hour| hour.read == 0) && again.named.is_empty(), "{again:?}");
}

#[test]
fn a_question_reads_only_what_it_needs() {
    let made = MadeFleet { nodes: 40, rows: 400, services: 40, ..MadeFleet::small() };
    let (bucket, truth) = fleet(&made);
    let hour = FleetHour(made.first.0 + 1);
    compacted(&bucket, &CompactOptions { hour: Some(hour), ..options(&made) }).unwrap();
    let place: Arc<dyn FleetBucket> = Arc::<MemoryBucket>::clone(&bucket);
    let manifest = FleetManifest::newest(&place, FleetPeriod::Hour(hour)).unwrap().unwrap();
    let part = manifest.of_table(FleetTable::Hour).next().unwrap();
    let pick = |service: &str, event: Option<&str>| FleetPick {
        service: Some(service.to_owned()),
        event: event.map(str::to_owned),
    };
    let count = |pick: &FleetPick| {
        let mut count = 0;
        let columns = [COUNT, SERVICE, EVENT, KIND, LEVEL, NODE, TIME];
        let each = |batch: &FleetBatch<'_>| {
            count += batch.rows().filter_map(|row| batch.number(0, row)).sum::<u64>()
        };
        read_part(&place, part, pick, &columns, each).unwrap();
        count
    };
    let all = truth.iter().filter(|((of, ..), _)| *of == hour);
    let expected =
        |name: &str| all.clone().filter(|((_, of, _), _)| of == name).map(|(_, sums)| sums[0]).sum::<u64>();
    for service in ["shop/web0", "shop/web21", "shop/web9"] {
        assert!(expected(service) > 0);
        assert_eq!(count(&pick(service, None)), expected(service));
        assert_eq!(count(&pick(service, Some("loads"))), expected(service));
        assert_eq!(count(&pick(service, Some("cycles"))), 0);
    }
    assert_eq!(count(&FleetPick::default()), all.clone().map(|(_, sums)| sums[0]).sum::<u64>());
    // A part without the service is not opened.
    bucket.allow(Some(0));
    assert_eq!((count(&pick("shop/zzz", None)), count(&pick("", None))), (0, 0));
    let failed = read_part(&place, part, &pick("shop/web9", None), &[COUNT, BUCKET], |_| {});
    assert!(matches!(failed, Err(FleetError::Bucket(_))), "{failed:?}");
}
