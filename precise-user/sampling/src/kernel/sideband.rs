//! The sideband: mappings, exec, fork, exit and names of all processes, and new cgroups, from a
//! dummy event per CPU. It tells which process ran which code when a sample was taken.

use std::os::fd::{AsFd, OwnedFd};

use perf_event_open_sys::bindings as raw;

use super::event::open_raw;
use super::map_memory::page_size;
use super::ring::Ring;
use super::{LAYOUT, explain};
use crate::error::{SamplingError, SyscallError};
use precise_records::record::{IdentifiedRecord, Record, records};

/// Pages of one CPU's ring: 256 KiB hold about 2,000 mappings of a burst of process starts.
const RING_PAGES: usize = 64;

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

/// The sideband of all CPUs.
#[derive(Debug)]
pub struct Sideband {
    // The rings come before the descriptors, so that they are unmapped first.
    rings: Vec<Ring>,
    fds: Vec<OwnedFd>,
    lost: u64,
}

impl Sideband {
    /// Opens and starts the sideband on each of `cpus`.
    ///
    /// # Errors
    ///
    /// Returns the kernel's refusal, with an explanation.
    pub fn open(cpus: &[u32], mappings: Mappings) -> Result<Self, SamplingError> {
        let mut sideband = Self { rings: Vec::new(), fds: Vec::new(), lost: 0 };
        for cpu in cpus {
            let fd = open_dummy(*cpu, mappings).map_err(|error| explain::sideband(&error))?;
            sideband.rings.push(Ring::map(fd.as_fd(), RING_PAGES).map_err(|error| explain::ring(&error))?);
            sideband.fds.push(fd);
        }
        Ok(sideband)
    }

    /// Returns the memory of the rings in bytes; constant during a run.
    pub fn memory(&self) -> usize {
        self.rings.len() * (1 + RING_PAGES) * page_size()
    }

    /// Returns the records that arrived since the last call, sorted by time.
    pub fn take(&mut self) -> Vec<IdentifiedRecord> {
        let mut entries = Vec::new();
        let Self { rings, lost, .. } = self;
        for ring in rings {
            for entry in records(ring.take(), LAYOUT) {
                match entry {
                    Ok(IdentifiedRecord { record: Record::Lost { lost: n, .. }, .. }) => *lost += n,
                    Ok(entry) => entries.push(entry),
                    Err(_) => *lost += 1,
                }
            }
        }
        entries.sort_by_key(|entry| entry.id.time);
        entries
    }

    /// Returns the number of records that were lost or malformed. If it is not 0, names may be
    /// missing.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

fn open_dummy(cpu: u32, mappings: Mappings) -> Result<OwnedFd, SyscallError> {
    let mut attr = raw::perf_event_attr {
        size: size_of::<raw::perf_event_attr>() as u32,
        type_: raw::PERF_TYPE_SOFTWARE,
        config: raw::PERF_COUNT_SW_DUMMY.into(),
        sample_type: LAYOUT.sample_type,
        clockid: libc::CLOCK_MONOTONIC,
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
