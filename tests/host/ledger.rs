//! Tests that the ledger adds up, and that it shows when samples are missing.

use precise::capture::CaptureFile as _;
use std::path::Path;

use anyhow::Result;
use precise::machine::{MachineInfo, Root};
use precise_common::ledger::Counter;
use precise_tests::{
    load::{Load, spin},
    program::faults,
    run::{Recorded, precise, record_faults},
    say, skip,
};

fn record(folder: &Path, options: &[&str]) -> Result<Recorded> {
    let file = folder.join("ledger.parquet");
    let file = file.display().to_string();
    let ended = precise([&["record", "-a", "-o", &file], options].concat())?.expect(0)?;
    Ok(Recorded { capture: precise::model::Capture::read(Path::new(&file))?, ended })
}

/// Checks that every sample that the program saw is in a counter, and that the rows have all
/// aggregated ones.
fn assert_adds_up(recorded: &Recorded) {
    let ledger = recorded.ledger();
    assert_eq!(ledger.unaccounted(), 0, "{ledger:?}");
    assert_eq!(recorded.rows().count(), ledger.counter(Counter::Aggregated), "{ledger:?}");
    assert_eq!(
        ledger.counter(Counter::Seen),
        ledger.counter(Counter::Aggregated) + ledger.counter(Counter::TableFull) + ledger.rejected_total(),
        "{ledger:?}"
    );
}

/// Returns the samples seen, and the samples expected from the event's own count.
fn seen_and_expected(recorded: &Recorded) -> (u64, u64) {
    let ledger = recorded.ledger();
    (ledger.counter(Counter::Seen), ledger.expected.unwrap_or_default())
}

/// A timer on a virtual CPU: ticks that occur while the host runs something else are merged into
/// one, so there are fewer samples than the time stands for, but never more. The next test compares
/// exactly on hardware, and the lab in guests with an emulated PMU.
#[test]
fn the_clock_under_load() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let cpus = MachineInfo::read(&Root::default()).online;
    let _load = Load::on(&cpus, spin);
    let recorded = record(folder.path(), &["-e", "cpu-clock", "-c", "1000003", "--duration", "3s"])?;
    assert_adds_up(&recorded);
    let (seen, expected) = seen_and_expected(&recorded);
    say(&format!(
        "cpu-clock at 1 kHz under load: {seen} samples, the event's count stands for {expected} ({:.2} %)",
        100.0 * seen as f64 / expected as f64
    ));
    assert!(seen <= expected + cpus.len() as u64, "more samples than time: {seen} of {expected}");
    // A wide bound, for hosts that give this machine little CPU time.
    assert!(seen >= expected / 2, "{seen} of {expected}");
    // Three seconds on each CPU.
    assert!(expected >= 2_900 * cpus.len() as u64, "{expected}");
    Ok(())
}

#[test]
fn cycles_match_the_events_own_count() -> Result<()> {
    let pmu = ["cpu", "cpu_core"]
        .iter()
        .any(|name| Path::new("/sys/bus/event_source/devices").join(name).join("type").exists());
    if !pmu {
        skip(
            "this machine has no CPU PMU, so `cycles` cannot be compared with its own count here; the lab proves it \
             on emulated ones (`cargo xtask lab`)",
        );
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let cpus = MachineInfo::read(&Root::default()).online;
    let _load = Load::on(&cpus, spin);
    // About 1 kHz at 3 GHz; a prime.
    let recorded =
        record(folder.path(), &["-e", "cycles", "--precise", "off", "-c", "3000017", "--duration", "5s"])?;
    assert_adds_up(&recorded);
    let (seen, expected) = seen_and_expected(&recorded);
    say(&format!("cycles under load: {seen} samples, the event's count stands for {expected}"));
    assert!(seen.abs_diff(expected) as f64 <= expected as f64 / 1000.0, "{seen} of {expected}");
    Ok(())
}

#[test]
fn a_table_that_is_too_small() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = faults(folder.path(), "faulting")?.display().to_string();
    for more in [vec![], vec!["--filter", "addr in 0x500000000000..0x500000100000"]] {
        let options = [&["--table-cells", "16"], more.as_slice()].concat();
        let recorded = record_faults(folder.path(), &options, &[&program, "1009"])?;
        assert_adds_up(&recorded);
        let ledger = recorded.ledger();
        // 16 cells per CPU hold only a few of the pages, because every page is a cell of its own.
        assert!(
            ledger.counter(Counter::TableFull) > 0 && ledger.counter(Counter::Aggregated) >= 16,
            "{ledger:?}"
        );
        assert_eq!(ledger.counter(Counter::Seen), ledger.event_count, "{ledger:?}");
        let text = recorded.ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("The table was full for"), "{text}");
        assert!(text.contains("table full"), "{text}");
    }
    Ok(())
}

/// Each sample is added to one cell only: with enough cells, the same run has the same samples.
#[test]
fn a_table_that_is_just_large_enough_loses_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = faults(folder.path(), "faulting")?.display().to_string();
    // Grouped by instruction alone there are few cells, however many samples.
    let file = folder.path().join("few.parquet").display().to_string();
    let arguments =
        ["record", "-e", "page-faults", "-c", "1", "--by", "ip", "--table-cells", "512", "-o", &file, "--"];
    precise([&arguments[..], &[&program, "20011"]].concat())?.expect(0)?;
    let capture = precise::model::Capture::read(Path::new(&file))?;
    let ledger = &capture.meta.events[0].ledger;
    assert_eq!((ledger.counter(Counter::TableFull), ledger.unaccounted()), (0, 0), "{ledger:?}");
    assert_eq!(precise_tests::rows::rows(&capture).of("touch_pages").count(), 20011);
    Ok(())
}
