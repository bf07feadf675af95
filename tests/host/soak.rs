//! Thousands of epochs, with processes and cgroups coming and going: nothing grows, and nothing is lost that the ledger does not
//! name.
//!
//! `PRECISE_SOAK_SECONDS` makes it longer: `cargo xtask bench soak`.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use precise::{
    capture::{Capture, Dimension, Limits, Precision, live},
    filter::parse,
    kernel::event::Rate,
    live::{
        event_filter,
        kill_switch::KillSwitch,
        plan::{Plan, Target},
    },
    machine::{MachineInfo, Root},
    pmu::{self, Pmus},
    symbols::SymbolOptions,
};
use precise_tests::{cgroup::Cgroup, say};

/// Length of the short form.
const SECONDS: u64 = 40;
/// As short as a grace period of the kernel lets epochs be.
const EPOCH: Duration = Duration::from_millis(5);

/// What this process has.
#[derive(Clone, Copy, Debug)]
struct Held {
    resident: u64,
    /// Of it, what the allocator has handed out: where this stays and the other grows, memory is in pieces, and not lost.
    allocated: u64,
    files: usize,
    maps: usize,
}

impl Held {
    fn now() -> Result<Self> {
        // Without the pages of files, which are debug information as far as it was read: the kernel takes them back when it wants
        // them.
        let status = std::fs::read_to_string("/proc/self/status")?;
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let resident = kib("RssAnon:").context("status has RssAnon")? * 1024;
        // SAFETY: reads the allocator's own counters under its locks.
        let heap = unsafe { libc::mallinfo2() };
        Ok(Self {
            resident,
            allocated: (heap.uordblks + heap.hblkhd) as u64,
            files: std::fs::read_dir("/proc/self/fd")?.count(),
            maps: std::fs::read_to_string("/proc/self/maps")?.lines().count(),
        })
    }
}

#[test]
fn nothing_grows_and_nothing_is_lost() -> Result<()> {
    let seconds = std::env::var("PRECISE_SOAK_SECONDS").map_or(Ok(SECONDS), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let machine = MachineInfo::read(&Root::default());
    let request = pmu::parse("page-faults", &Pmus::read(&Root::default()))?.pop().context("page-faults")?;
    // What else runs on this machine brings its own debug information, which is kept as long as its files are.
    let only = parse::parse("comm in {\"true\", \"sh\"}")?;
    let plan = Plan {
        events: vec![event_filter::plan(Some(&only), request, Rate::Period(13), &machine, &[])?],
        target: Target::All,
        cpus: machine.online.clone(),
        precision: Precision::Auto,
        dimensions: vec![Dimension::Ip, Dimension::Cgroup, Dimension::Process],
        address_granule: 64,
        promoted_lines: None,
        filter_text: String::new(),
        epoch: EPOCH,
        duration: Some(Duration::from_secs(seconds)),
        table_cells: 8192,
        stacks: 0,
        command_line: Vec::new(),
        read_path: None,
        stream: None,
        budget: None,
        kill_switch: KillSwitch::default(),
        watch: Vec::new(),
        gives_up_rights: false,
    };
    let before = Held::now()?;
    let (stop, processes, cgroups) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut looks: Vec<Held> = Vec::new();
    let finished = std::thread::scope(|scope| -> Result<live::Finished> {
        // Processes, half of them in a cgroup of their own, which goes with them.
        let churn = scope.spawn(|| -> Result<()> {
            for number in 0u64.. {
                if stop.load(Relaxed) {
                    break;
                }
                if number.is_multiple_of(2) {
                    let cgroup = Cgroup::new(&format!("soak-{}-{number}", std::process::id()))?;
                    cgroup.run("/bin/true".as_ref(), [""; 0])?;
                    cgroup.remove()?;
                    cgroups.fetch_add(1, Relaxed);
                } else {
                    ensure!(Command::new("/bin/true").status()?.success(), "true fails");
                }
                processes.fetch_add(1, Relaxed);
            }
            Ok(())
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut last = Duration::ZERO;
        let finished =
            runtime.block_on(live::run(&plan, Some(&folder.path().join("soak.parquet")), |progress| {
                if let live::Progress::Epoch { elapsed, .. } = progress
                    && elapsed - last >= Duration::from_millis(500)
                {
                    last = elapsed;
                    looks.extend(Held::now());
                    if let (Some(held), true) = (looks.last(), looks.len().is_multiple_of(120)) {
                        say(&format!("after {} s: {held:?}", elapsed.as_secs()));
                    }
                }
            }));
        stop.store(true, Relaxed);
        churn.join().map_err(|_| anyhow::anyhow!("the churn died"))??;
        Ok(finished?)
    })?;

    let (epochs, event) = (finished.meta.epochs.len(), &finished.meta.events[0]);
    let capture = Capture::read_limited(&folder.path().join("soak.parquet"), &Limits { rows: 32 << 20 })?;
    let kept: u64 = capture.rows.iter().map(|row| row.measures.count).sum();
    let (processes, cgroups) = (processes.load(Relaxed), cgroups.load(Relaxed));
    let quarter = looks.len() / 4;
    // The lowest: a row group that is written, and what waits while something else runs on this machine, take megabytes for a
    // while, and give them back. What is kept of each epoch, process or cgroup is in the lowest as well.
    let lowest = |looks: &[Held], of: fn(&Held) -> u64| looks.iter().map(of).min().unwrap_or(0);
    let part =
        |of: fn(&Held) -> u64| (lowest(&looks[quarter..2 * quarter], of), lowest(&looks[3 * quarter..], of));
    let (resident, allocated) = (part(|h| h.resident), part(|h| h.allocated));
    let (files, maps) = (part(|h| h.files as u64), part(|h| h.maps as u64));
    say(&format!(
        "{epochs} epochs in {seconds} s, {processes} processes, {cgroups} cgroups, {kept} samples in {} rows; of the second and \
         the last quarter at least: {} and {} KiB resident, {} and {} KiB of them allocated, {files:?} files, {maps:?} mappings",
        capture.rows.len(),
        resident.0 / 1024,
        resident.1 / 1024,
        allocated.0 / 1024,
        allocated.1 / 1024,
    ));
    ensure!(looks.len() >= 20 && epochs as u64 >= 10 * seconds, "{epochs} epochs, {} looks", looks.len());
    ensure!(processes >= 20 * seconds && cgroups >= 10 * seconds, "{processes} processes, {cgroups} cgroups");
    let room = 4 << 20;
    ensure!(resident.1 <= resident.0 + room, "resident memory grows: {resident:?} bytes");
    // Every executable that is new on the machine is opened while it is there.
    let bound = before.files as u64 + 4 * SymbolOptions::default().max_files as u64 + 64;
    ensure!(files.1 <= bound, "open files: {files:?}, and {before:?} before");
    ensure!(maps.1 <= maps.0 + 16, "mappings grow: {maps:?}");
    let after = Held::now()?;
    ensure!(after.files <= before.files + 2, "files are left open: {before:?} {after:?}");

    let ledger = &event.ledger;
    let discarded: u64 = ledger.discarded.values().sum();
    ensure!(ledger.unaccounted() == 0, "{ledger:?}");
    ensure!(
        kept + discarded == ledger.counter("aggregated"),
        "{kept} kept, {discarded} discarded: {ledger:?}"
    );
    let counted = ledger.coverage().context("nothing was counted")?;
    ensure!((0.98..=1.0).contains(&counted), "the samples stand for {counted} of what was counted");
    Ok(())
}
