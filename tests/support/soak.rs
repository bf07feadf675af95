//! Helpers for long runs: processes and cgroups that come and go, and the resources that this
//! process uses meanwhile.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use anyhow::{Context as _, Result, ensure};
use precise::symbols::SymbolOptions;

use crate::{cgroup::Cgroup, say};

/// Returns the duration of a soak test in seconds: `PRECISE_SOAK_SECONDS`, or `short` if it is not
/// set.
///
/// # Errors
///
/// Returns an error if the variable is not a number.
pub fn seconds(short: u64) -> Result<u64> {
    Ok(std::env::var("PRECISE_SOAK_SECONDS").map_or(Ok(short), |text| text.parse())?)
}

/// The resources that this process uses.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    resident: u64,
    /// The part of `resident` that the allocator has handed out. If this stays constant and
    /// `resident` grows, memory is fragmented, not leaked.
    allocated: u64,
    files: usize,
    maps: usize,
}

impl Held {
    /// Measures the current resources.
    ///
    /// # Errors
    ///
    /// Returns an error if /proc does not have them.
    pub fn now() -> Result<Self> {
        // Without pages of files, which are debug information that was read: the kernel reclaims
        // them on demand.
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

/// Measurements of a run, twice a second.
#[derive(Debug)]
pub struct Looks {
    before: Held,
    looks: Vec<Held>,
}

impl Looks {
    /// Takes the measurement before the run.
    ///
    /// # Errors
    ///
    /// Returns an error like [`Held::now`].
    pub fn begin() -> Result<Self> {
        Ok(Self { before: Held::now()?, looks: Vec::new() })
    }

    /// Takes a measurement, and prints it once a minute.
    pub fn look(&mut self) {
        self.looks.extend(Held::now());
        if let (Some(held), true) = (self.looks.last(), self.looks.len().is_multiple_of(120)) {
            say(&format!("after {} s: {held:?}", self.looks.len() / 2));
        }
    }

    /// Checks after the run that nothing grew from the second quarter to the last. Returns the
    /// measurements in words.
    ///
    /// # Errors
    ///
    /// Returns an error that names what grew.
    pub fn nothing_grew(&self) -> Result<String> {
        let Self { before, looks } = self;
        let quarter = looks.len() / 4;
        // The lowest value, because writing a row group, and data that waits while other programs
        // run, take megabytes for a while and then free them. Anything that is kept per epoch,
        // process or cgroup is also in the lowest value.
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
        // Every new executable on the machine is opened while it exists.
        let bound = before.files as u64 + 4 * SymbolOptions::default().max_files as u64 + 64;
        ensure!(files.1 <= bound, "open files: {files:?}, and {before:?} before");
        ensure!(maps.1 <= maps.0 + 16, "mappings grow: {maps:?}");
        let after = Held::now()?;
        ensure!(after.files <= before.files + 2, "files are left open: {before:?} {after:?}");
        Ok(seen)
    }
}

/// Starts processes, half of them in a cgroup of their own, which is removed with them.
#[derive(Debug, Default)]
pub struct Churn {
    stop: AtomicBool,
    processes: AtomicU64,
    cgroups: AtomicU64,
}

impl Churn {
    /// Starts one process after the other until it is stopped.
    ///
    /// # Errors
    ///
    /// Returns an error if a process cannot be started, or fails.
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

    /// Stops it after the current process.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Checks that there were many processes. Returns the numbers in words.
    ///
    /// # Errors
    ///
    /// Returns an error if there were few.
    pub fn were_many(&self, seconds: u64) -> Result<String> {
        let (processes, cgroups) = (self.processes.load(Relaxed), self.cgroups.load(Relaxed));
        ensure!(
            processes >= 20 * seconds && cgroups >= 10 * seconds,
            "{processes} processes, {cgroups} cgroups"
        );
        Ok(format!("{processes} processes, {cgroups} cgroups"))
    }
}
