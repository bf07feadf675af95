//! The sideband: mappings, exec, fork, exit and names of all processes, and new cgroups, from a
//! dummy event per CPU. It tells which process ran which code when a sample was taken.

use std::{
    io,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    time::Duration,
};

use perf_event_open_sys::bindings as raw;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::time::Timespec;
use tokio::io::unix::AsyncFd;

use super::clock::monotonic_ns;
use super::event::open_raw;
use super::map_memory::page_size;
use super::readable::readable;
use super::ring::Ring;
use super::{LAYOUT, explain};
use crate::error::{SamplingError, SyscallError};
use precise_records::record::{IdentifiedRecord, Record, records};

/// Pages of one CPU's ring: 256 KiB hold about 2,000 mappings of a burst of process starts.
const RING_PAGES: usize = 64;
/// Maximum number of records that wait for [`Sideband::take`]. More stay in the rings, and the
/// kernel counts those that find no room there. They take about 20 MB.
const KEPT: usize = 100_000;

/// Which mappings the sideband reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mappings {
    /// None: no address will be symbolized.
    None,
    /// Mappings of code.
    Code,
    /// Mappings of code and data.
    All,
}

/// The sideband of one CPU.
#[derive(Debug)]
pub struct OfCpu {
    cpu: u32,
    // The ring comes before the descriptor, so that it is unmapped first.
    ring: Ring,
    fd: OwnedFd,
}

impl OfCpu {
    /// Opens and starts the sideband on a CPU.
    ///
    /// # Errors
    ///
    /// Returns the kernel's refusal, with an explanation.
    pub fn open(cpu: u32, mappings: Mappings) -> Result<Self, SamplingError> {
        let fd = open_dummy(cpu, mappings).map_err(|error| explain::sideband(&error))?;
        let ring = Ring::map(fd.as_fd(), RING_PAGES).map_err(|error| explain::ring(&error))?;
        Ok(Self { cpu, ring, fd })
    }

    /// Returns the time in nanoseconds for which the event was enabled.
    fn enabled_ns(&self) -> Option<u64> {
        let mut words = [0u64; 2];
        // SAFETY: the call writes at most the 16 bytes of `words`.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
        (got == size_of_val(&words) as isize).then_some(words[1])
    }

    /// Returns the time for which the event was enabled, if it does not grow: the kernel may have
    /// detached the event, because the CPU went offline.
    fn stands_still(&self) -> Option<u64> {
        let first = self.enabled_ns()?;
        (self.enabled_ns() == Some(first)).then_some(first)
    }
}

/// How long an event must stand still to be detached: longer than a tick, which is the unit of
/// clocks without a counter.
const STILL: Duration = Duration::from_millis(15);

/// The sideband of all CPUs.
#[derive(Debug)]
pub struct Sideband {
    cpus: Vec<OfCpu>,
    /// An epoll instance with the events of all rings, each of which reports whenever another half
    /// of its ring has been written.
    halves: AsyncFd<OwnedFd>,
    /// Records for the next call of [`Self::take`].
    kept: Vec<IdentifiedRecord>,
    lost: u64,
}

impl Sideband {
    /// Opens and starts the sideband on each of `cpus`.
    ///
    /// # Errors
    ///
    /// Returns the kernel's refusal, with an explanation.
    pub fn open(cpus: &[u32], mappings: Mappings) -> Result<Self, SamplingError> {
        let cpus = cpus.iter().map(|cpu| OfCpu::open(*cpu, mappings)).collect::<Result<Vec<_>, _>>()?;
        let halves = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(io::Error::from)
            .and_then(readable)
            .map_err(unwatched)?;
        cpus.iter().try_for_each(|of| watch(&halves, of))?;
        Ok(Self { cpus, halves, kept: Vec::new(), lost: 0 })
    }

    /// Replaces the sideband of a CPU, or adds that of a new one. Records of the old one are kept.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be watched. Nothing has changed then.
    pub fn adopt(&mut self, new: OfCpu) -> Result<(), SamplingError> {
        let Self { cpus, halves, kept, lost } = self;
        watch(halves, &new)?;
        match cpus.iter_mut().find(|of| of.cpu == new.cpu) {
            Some(old) => {
                read_ring(&mut old.ring, kept, lost);
                // The old descriptor leaves the epoll instance as it is closed.
                *old = new;
            }
            None => cpus.push(new),
        }
        Ok(())
    }

    /// Reads rings for the next call of [`Self::take`] whenever half of one has been written.
    /// Returns only if that fails, and may be dropped at any time.
    pub async fn read_before_full(&mut self) -> SamplingError {
        loop {
            match self.halves.readable().await {
                Ok(mut ready) => ready.clear_ready(),
                Err(error) => return unwatched(error),
            }
            let Self { cpus, halves, kept, lost } = self;
            // What is reported from here on makes it readable again. There is room for one report
            // of each ring.
            let mut reports = Vec::with_capacity(cpus.len());
            if let Err(error) =
                epoll::wait(&*halves, spare_capacity(&mut reports), Some(&Timespec::default()))
            {
                return unwatched(error.into());
            }
            for of in cpus.iter_mut() {
                if kept.len() < KEPT {
                    read_ring(&mut of.ring, kept, lost);
                }
            }
        }
    }

    /// Returns the CPUs that were offline at some time since their sideband was opened. Each call
    /// interrupts every CPU twice.
    pub fn detached(&self) -> Vec<u32> {
        let mut still: Vec<(&OfCpu, u64)> =
            self.cpus.iter().filter_map(|of| Some((of, of.stands_still()?))).collect();
        if !still.is_empty() {
            std::thread::sleep(STILL);
            still.retain(|(of, first)| of.enabled_ns() == Some(*first));
        }
        still.into_iter().map(|(of, _)| of.cpu).collect()
    }

    /// Returns the CPUs that have a sideband.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.cpus.iter().map(|of| of.cpu)
    }

    /// Returns the memory of the rings in bytes.
    pub fn memory(&self) -> usize {
        self.cpus.len() * (1 + RING_PAGES) * page_size()
    }

    /// Returns the records that arrived since the last call, sorted by time: none of a later call
    /// is older.
    pub fn take(&mut self) -> Vec<IdentifiedRecord> {
        // While one ring is read, the others go on.
        let now = monotonic_ns();
        let mut entries = std::mem::take(&mut self.kept);
        let Self { cpus, lost, .. } = self;
        cpus.iter_mut().for_each(|of| read_ring(&mut of.ring, &mut entries, lost));
        entries.sort_by_key(|entry| entry.id.time);
        self.kept = entries.split_off(entries.partition_point(|entry| entry.id.time <= now));
        entries
    }

    /// Returns the number of records that were lost or malformed. If it is not 0, names may be
    /// missing.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Lets an epoll instance tell when another half of a CPU's ring has been written. The kernel says
/// so once, also if nobody has read the half before it (`perf_poll`, kernel/events/core.c).
fn watch(halves: &AsyncFd<OwnedFd>, of: &OfCpu) -> Result<(), SamplingError> {
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(halves, &of.fd, epoll::EventData::new_u64(0), flags).map_err(|error| unwatched(error.into()))
}

fn unwatched(error: io::Error) -> SamplingError {
    SamplingError::failed("cannot watch how the rings of process starts fill", error)
}

/// Adds the records of a ring to `entries`, and the number of those that are missing to `lost`.
fn read_ring(ring: &mut Ring, entries: &mut Vec<IdentifiedRecord>, lost: &mut u64) {
    for entry in records(ring.take(), LAYOUT) {
        match entry {
            Ok(IdentifiedRecord { record: Record::Lost { lost: n, .. }, .. }) => *lost += n,
            Ok(entry) => entries.push(entry),
            Err(_) => *lost += 1,
        }
    }
}

fn open_dummy(cpu: u32, mappings: Mappings) -> Result<OwnedFd, SyscallError> {
    let mut attr = raw::perf_event_attr {
        size: size_of::<raw::perf_event_attr>() as u32,
        type_: raw::PERF_TYPE_SOFTWARE,
        config: raw::PERF_COUNT_SW_DUMMY.into(),
        sample_type: LAYOUT.sample_type,
        clockid: libc::CLOCK_MONOTONIC,
        read_format: raw::PERF_FORMAT_TOTAL_TIME_ENABLED.into(),
        ..Default::default()
    };
    attr.set_use_clockid(1);
    attr.set_sample_id_all(1);
    let any = u64::from(mappings != Mappings::None);
    attr.set_mmap(any);
    attr.set_mmap2(any);
    attr.set_mmap_data(u64::from(mappings == Mappings::All));
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_task(1);
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = (RING_PAGES * super::map_memory::page_size() / 2) as u32;
    // Records of new cgroups need 5.7, build ids in mmap records need 5.12. Older kernels refuse
    // the bits, and report device and inode instead of a build id.
    let mut refused = None;
    for (build_id, cgroup) in [(1, 1), (0, 1), (0, 0)] {
        attr.set_build_id(build_id & any);
        attr.set_cgroup(cgroup);
        match open_raw(&mut attr, -1, cpu, -1) {
            Err(error) if error.errno() == libc::EINVAL => refused = Some(error),
            other => return other,
        }
    }
    Err(refused.unwrap_or_else(|| SyscallError::last("perf_event_open")))
}
