//! What a long run needs to be looked at: processes and cgroups that come and go, and what this
//! process holds meanwhile.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use anyhow::{Context as _, Result, ensure};
use precise::symbols::SymbolOptions;

use crate::{cgroup::Cgroup, say};

/// How many seconds a soak lasts: `PRECISE_SOAK_SECONDS`, or as many as a test has time for.
///
/// # Errors
///
/// When that is no number.
pub fn seconds(short: u64) -> Result<u64> {
    Ok(std::env::var("PRECISE_SOAK_SECONDS").map_or(Ok(short), |text| text.parse())?)
}

/// What this process has.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    resident: u64,
    /// Of it, what the allocator has handed out: where this stays and the other grows, memory is in
    /// pieces, and not lost.
    allocated: u64,
    files: usize,
    maps: usize,
}

impl Held {
    /// At this moment.
    ///
    /// # Errors
    ///
    /// When /proc does not say.
    pub fn now() -> Result<Self> {
        // Without the pages of files, which are debug information as far as it was read: the kernel
        // takes them back when it wants them.
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

/// Looks at a run, twice a second.
#[derive(Debug)]
pub struct Looks {
    before: Held,
    looks: Vec<Held>,
}

impl Looks {
    /// Before the run.
    ///
    /// # Errors
    ///
    /// As [`Held::now`].
    pub fn begin() -> Result<Self> {
        Ok(Self { before: Held::now()?, looks: Vec::new() })
    }

    /// Looks once more; each minute it is said.
    pub fn look(&mut self) {
        self.looks.extend(Held::now());
        if let (Some(held), true) = (self.looks.last(), self.looks.len().is_multiple_of(120)) {
            say(&format!("after {} s: {held:?}", self.looks.len() / 2));
        }
    }

    /// Insists that nothing grew from the second quarter to the last; to be called after the run.
    /// What was seen, in words.
    ///
    /// # Errors
    ///
    /// What grew.
    pub fn nothing_grew(&self) -> Result<String> {
        let Self { before, looks } = self;
        let quarter = looks.len() / 4;
        // The lowest: a row group that is written, and what waits while something else runs on this
        // machine, take megabytes for a while, and give them back. What is kept of each epoch,
        // process or cgroup is in the lowest as well.
        let lowest = |looks: &[Held], of: fn(&Held) -> u64| looks.iter().map(of).min().unwrap_or(0);
        let part = |of: fn(&Held) -> u64| {
            (lowest(&looks[quarter..2 * quarter], of), lowest(&looks[3 * quarter..], of))
        };
        let (resident, allocated) = (part(|h| h.resident), part(|h| h.allocated));
        let (files, maps) = (part(|h| h.files as u64), part(|h| h.maps as u64));
        let seen = format!(
            "of the second and the last quarter at least: {} and {} KiB resident, {} and {} KiB of them allocated, {files:?} \
             files, {maps:?} mappings",
            resident.0 / 1024,
            resident.1 / 1024,
            allocated.0 / 1024,
            allocated.1 / 1024,
        );
        ensure!(looks.len() >= 20, "{} looks", looks.len());
        let room = 4 << 20;
        ensure!(resident.1 <= resident.0 + room, "resident memory grows: {resident:?} bytes");
        // Every executable that is new on the machine is opened while it is there.
        let bound = before.files as u64 + 4 * SymbolOptions::default().max_files as u64 + 64;
        ensure!(files.1 <= bound, "open files: {files:?}, and {before:?} before");
        ensure!(maps.1 <= maps.0 + 16, "mappings grow: {maps:?}");
        let after = Held::now()?;
        ensure!(after.files <= before.files + 2, "files are left open: {before:?} {after:?}");
        Ok(seen)
    }
}

/// Processes, half of them in a cgroup of their own, which goes with them.
#[derive(Debug, Default)]
pub struct Churn {
    stop: AtomicBool,
    processes: AtomicU64,
    cgroups: AtomicU64,
}

impl Churn {
    /// Starts one after the other until it is stopped.
    ///
    /// # Errors
    ///
    /// When one cannot be started, or fails.
    pub fn go_on(&self) -> Result<()> {
        for number in 0u64.. {
            if self.stop.load(Relaxed) {
                break;
            }
            if number.is_multiple_of(2) {
                let cgroup = Cgroup::new(&format!("soak-{}-{number}", std::process::id()))?;
                cgroup.run("/bin/true".as_ref(), [""; 0])?;
                cgroup.remove()?;
                self.cgroups.fetch_add(1, Relaxed);
            } else {
                ensure!(Command::new("/bin/true").status()?.success(), "true fails");
            }
            self.processes.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    /// Lets it come to its end.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Insists that there were many. How many, in words.
    ///
    /// # Errors
    ///
    /// When there were few.
    pub fn were_many(&self, seconds: u64) -> Result<String> {
        let (processes, cgroups) = (self.processes.load(Relaxed), self.cgroups.load(Relaxed));
        ensure!(
            processes >= 20 * seconds && cgroups >= 10 * seconds,
            "{processes} processes, {cgroups} cgroups"
        );
        Ok(format!("{processes} processes, {cgroups} cgroups"))
    }
}
