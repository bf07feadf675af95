//! The samples of precise itself: counted, and not kept unless asked for.

use std::{process::Command, time::Duration};

use anyhow::{Result, ensure};
use precise::capture::CaptureFile as _;
use precise::model::{Capture, Ledger};
use precise_common::ledger::Counter;
use precise_tests::{
    program::{self, faults},
    run::{Live, binary, precise, record_faults},
    say,
};

/// Every page fault of the machine, with names, so that precise has work for its helpers.
const FAULTS: &[&str] =
    &["record", "-a", "-e", "page-faults", "-c", "1", "--by", "ip,process", "--table-cells", "64K"];

fn ledger(capture: &Capture) -> &Ledger {
    &capture.meta.events[0].ledger
}

fn of(capture: &Capture, pid: u32) -> u64 {
    capture.rows.iter().filter(|row| row.pid == pid).map(|row| row.measures.count).sum()
}

#[test]
fn own_samples_are_a_row_of_the_ledger() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (path, include) in [("direct", false), ("probe", false), ("direct", true)] {
        let more: &[&str] = if include { &["--include-self"] } else { &[] };
        let run = Live::start(
            folder.path(),
            &[FAULTS, &["--duration", "300s", "--read-path", path], more].concat(),
        )?;
        let pid = run.pid();
        std::thread::sleep(Duration::from_secs(2));
        let recorded = run.interrupt()?;
        let (own, kept) = (recorded.ledger().counter(Counter::Own), of(&recorded.capture, pid));
        say(&format!("{path}, include {include}: {own} own samples, {kept} in rows"));
        assert_eq!(recorded.ledger().unaccounted(), 0, "{:?}", recorded.ledger());
        assert_eq!((own > 0, kept > 0), (!include, include), "{path}: {own} {kept}");
        assert_eq!(recorded.ended.stdout.contains("samples of precise itself"), !include);
    }
    Ok(())
}

/// The program sees the ids of precise in its own pid namespace.
#[test]
fn own_samples_are_left_out_in_a_pid_namespace() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("inside.parquet");
    let mut inside = Command::new("unshare");
    inside.args(["--pid", "--fork", "--mount-proc"]).arg(binary()?).args(FAULTS);
    let ended = inside.args(["--duration", "2s", "-q", "-o"]).arg(&file).output()?;
    ensure!(ended.status.success(), "{ended:?}");
    let capture = Capture::read(&file)?;
    let (own, seen) = (ledger(&capture).counter(Counter::Own), ledger(&capture).counter(Counter::Seen));
    say(&format!("{own} own of {seen} samples"));
    assert!(own > 0 && ledger(&capture).unaccounted() == 0, "{:?}", ledger(&capture));
    // Processes outside have no id there, and are not taken for it.
    assert_eq!(of(&capture, 1), 0);
    Ok(())
}

#[test]
fn a_streaming_run_leaves_out_its_own_samples() -> Result<()> {
    let script = ["script", "-a", "-e", "page-faults", "-c", "1", "--duration", "2s"];
    let without = precise(script)?.expect(0)?;
    assert!(without.stderr.contains("samples of precise itself"), "{}", without.stderr);
    let with = precise(script.into_iter().chain(["--include-self"]))?.expect(0)?;
    assert!(!with.stderr.contains("samples of precise itself"), "{}", with.stderr);
    Ok(())
}

/// A command is never left out, although precise started it.
#[test]
fn the_command_is_not_precise_itself() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = faults(folder.path(), "faulting")?.display().to_string();
    let recorded = record_faults(folder.path(), &[], &[&program, "101"])?;
    assert_eq!(recorded.ledger().counter(Counter::Own), 0);
    Ok(())
}

/// `burst PAGES` writes to one page after the other, [`PER_MS`] of them each millisecond, however
/// fast the machine is.
const BURST: &str = r#"#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

int main(int argc, char **argv)
{
    long i, pages = atol(argv[1]);
    volatile char *p = mmap(0, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct timespec next;
    if (p == MAP_FAILED)
        return 3;
    madvise((void *)p, pages * 4096, MADV_NOHUGEPAGE);
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (i = 0; i < pages; i++) {
        p[i * 4096] = 1;
        if (i % PER_MS == PER_MS - 1) {
            next.tv_nsec += 1000000;
            if (next.tv_nsec >= 1000000000) {
                next.tv_nsec -= 1000000000;
                next.tv_sec++;
            }
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
        }
    }
    return 0;
}
"#;

/// How many pages a burst touches in a millisecond: a half of the table is full after 43 ms.
const PER_MS: usize = 190;

/// 19,000 pages in 0.1 s, and a half of the table has 8,192 cells.
#[test]
fn a_burst_does_not_fill_a_table_unread() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let source = format!("#define PER_MS {PER_MS}\n{BURST}");
    let program = program::c(folder.path(), "burst", &source)?.display().to_string();
    let file = folder.path().join("burst.parquet");
    let path = file.display().to_string();
    let mut least = 1.0f64;
    // A machine that is busy with other work may read late, as every second run does on a virtual
    // machine of two CPUs. Without reading by fill, every run loses more than half.
    for _ in 0..12 {
        let options = ["record", "-e", "page-faults", "-c", "1", "--by", "ip,address,process", "-o"];
        let command = [path.as_str(), "--", program.as_str(), "19000"];
        precise(options.into_iter().chain(command))?.expect(0)?;
        let capture = Capture::read(&file)?;
        let (seen, lost) = (ledger(&capture).counter(Counter::Seen), ledger(&capture).lost_total());
        say(&format!("{lost} of {seen} samples lost"));
        assert!(seen > 19_000);
        let rows: u64 = capture.rows.iter().map(|row| row.measures.count).sum();
        assert_eq!(rows, ledger(&capture).counter(Counter::Aggregated));
        // Read several times, and still one epoch for each second.
        let epochs = &capture.meta.epochs;
        assert!(epochs.len() == 1 || epochs.iter().any(|epoch| epoch.end_ns > 900_000_000), "{epochs:?}");
        least = least.min(lost as f64 / seen as f64);
        if least < 0.02 {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(least < 0.02, "at least {least} of the samples were lost");
    Ok(())
}

/// On an idle machine a timer misses most of the idle time, which is not a loss; on a busy one it
/// misses nothing.
#[test]
fn idle_time_is_no_loss_and_no_row() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let run = Live::start(
        folder.path(),
        &["record", "-a", "-e", "cpu-clock", "-c", "1000003", "--duration", "300s"],
    )?;
    std::thread::sleep(Duration::from_secs(4));
    let recorded = run.interrupt()?;
    let ledger = recorded.ledger();
    let (idle, coverage) = (ledger.idle_ns, ledger.coverage().unwrap_or(0.0));
    let idle = idle.unwrap_or(0) as f64 / ledger.event_count as f64;
    say(&format!("idle {idle:.3}, coverage {coverage:.3}, {} samples", ledger.counter(Counter::Seen)));
    assert!(ledger.idle_ns.is_some() && (0.94..=1.02).contains(&coverage), "{ledger:?}");
    let text = &recorded.ended.stdout;
    if idle > 0.1 {
        assert!(text.contains("The CPUs were idle"), "{text}");
    }
    assert!(!text.contains("safe_halt") && !text.contains("under-represented"), "{text}");
    Ok(())
}
