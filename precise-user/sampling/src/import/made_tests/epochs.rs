//! Epochs that are written later than they end.

use std::time::Duration;

use super::*;

/// Adds samples of process 7, each of another instruction, at a rate of 20,000 per second from this
/// one on.
fn add_samples(made: &mut Made, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| made.sample(USER, &[0x1000 + number, task(7, 7), 1 + number * 50_000]));
}

/// Returns the epochs and the number of each sample, by its instruction; checks that each is there
/// once.
fn samples(capture: &Capture) -> Vec<(u32, u64)> {
    let mut found: Vec<_> = capture.rows.iter().map(|row| (row.epoch, row, row.measures.count)).collect();
    assert!(found.iter().all(|(.., count)| *count == 1));
    found.sort_by_key(|(_, row, _)| capture.code[row.code.unwrap() as usize].runtime_address);
    let number = |row: &precise_model::Row| capture.code[row.code.unwrap() as usize].runtime_address - 0x1000;
    found.into_iter().map(|(epoch, row, _)| (epoch, number(row))).collect()
}

#[test]
fn more_epochs_than_may_wait_are_written_in_order() {
    let mut made = Made::new(&[PLAIN]);
    add_samples(&mut made, 0..70_000);
    let capture = made.import();
    let expected: Vec<_> = (0..70_000).map(|number| ((number / 20_000) as u32, number)).collect();
    assert_eq!(samples(&capture), expected);
    let lengths: Vec<_> =
        capture.meta.epochs.iter().map(|epoch| (epoch.end_ns - epoch.start_ns) / 1_000_000).collect();
    assert_eq!(lengths, [1000, 1000, 1000, 499]);
}

#[test]
fn an_epoch_that_is_named_in_many_parts_stays_one() {
    let mut made = Made::new(&[PLAIN]);
    // Each name ends a part of the epoch; together they have more cells than may wait.
    let names = ["first", "second", "third", "fourth"];
    for (part, name) in (0..4_u64).zip(names) {
        let numbers = part * 15_000..(part + 1) * 15_000;
        made.task_named(7, name, 1 + numbers.start * 50_000);
        for number in numbers {
            made.sample(USER, &[0x1000 + number, task(7, 7), 2 + number * 50_000]);
        }
    }
    let capture =
        made.import_with(ImportOptions { epoch: Some(Duration::from_secs(60)), ..ImportOptions::default() });
    let expected: Vec<_> = (0..60_000).map(|number| (0, number)).collect();
    assert_eq!(samples(&capture), expected);
    for row in &capture.rows {
        let number = capture.code[row.code.unwrap() as usize].runtime_address - 0x1000;
        let precise_model::Name::Known(id) = row.process else { panic!("{row:?}") };
        assert_eq!(capture.names.get(id), names[(number / 15_000) as usize]);
    }
}
