//! The metadata of a recording: machine, command, PMUs, build ids.

use bytes::{Buf, Bytes, TryGetError};
use rustc_hash::FxHashMap;

use super::{attr::Attr, head::Described};
use crate::record::BuildId;

/// The largest size of a section that is read, in bytes. It is enough for thousands of build ids.
pub const MAX_SECTION: u64 = 16 << 20;
/// The largest number of entries that one section may list.
const MAX_LIST: u32 = 1 << 16;

/// The numbers of the sections: `HEADER_*`, tools/perf/util/header.h.
pub mod feature {
    pub const BUILD_ID: u32 = 2;
    pub const HOSTNAME: u32 = 3;
    pub const OSRELEASE: u32 = 4;
    pub const VERSION: u32 = 5;
    pub const ARCH: u32 = 6;
    pub const NRCPUS: u32 = 7;
    pub const CPUDESC: u32 = 8;
    pub const CPUID: u32 = 9;
    pub const CMDLINE: u32 = 11;
    pub const EVENT_DESC: u32 = 12;
    pub const NUMA_TOPOLOGY: u32 = 14;
    pub const PMU_MAPPINGS: u32 = 16;
    pub const SAMPLE_TIME: u32 = 21;
    pub const CLOCK_DATA: u32 = 29;
}

/// The wall clock at one moment of the recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Clock {
    /// The wall clock time, in nanoseconds since the Unix epoch.
    pub wall_ns: u64,
    /// The same moment on the clock of the records, in nanoseconds.
    pub record_ns: u64,
}

/// The metadata of a recording. Fields that the recording does not have are empty.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Features {
    /// Host name.
    pub host: String,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Version of perf.
    pub version: String,
    /// Architecture, as `uname -m` prints it.
    pub arch: String,
    /// Number of online CPUs.
    pub cpus: u32,
    /// CPU model.
    pub cpu: String,
    /// Vendor, family, model and stepping: `GenuineIntel,6,85,4`.
    pub cpuid: String,
    /// Command line of perf.
    pub command: Vec<String>,
    /// Names of PMUs by number.
    pub pmus: Vec<(u32, String)>,
    /// Build ids by the path of the mapping, including `[kernel.kallsyms]` and `[vdso]`.
    pub build_ids: FxHashMap<String, BuildId>,
    /// NUMA nodes: number, and CPUs as sysfs lists them (`0-3,8`).
    pub nodes: Vec<(u32, String)>,
    /// The wall clock; `None` if the recording does not have it.
    pub clock: Option<Clock>,
    /// The times of the first and the last sample, in nanoseconds of the recording's clock; `None`
    /// if the recording does not have them.
    pub sample_times: Option<(u64, u64)>,
    /// Number of sections that could not be read.
    pub unreadable: u32,
}

impl Features {
    /// Reads one section; `described` receives the names of the events. Sections that are not
    /// needed here are ignored.
    pub fn take(&mut self, number: u32, section: Bytes, described: &mut Vec<Described>) {
        if self.read(number, section, described).is_err() {
            self.unreadable += 1;
        }
    }

    fn read(
        &mut self,
        number: u32,
        mut section: Bytes,
        described: &mut Vec<Described>,
    ) -> Result<(), TryGetError> {
        let section = &mut section;
        match number {
            feature::BUILD_ID => {
                while section.has_remaining() {
                    let _kind = section.try_get_u32_le()?;
                    let misc = section.try_get_u16_le()?;
                    let size = usize::from(section.try_get_u16_le()?);
                    let body = split(section, size.saturating_sub(8))?;
                    self.build_id(misc, body)?;
                }
            }
            feature::HOSTNAME => self.host = text(section)?,
            feature::OSRELEASE => self.kernel = text(section)?,
            feature::VERSION => self.version = text(section)?,
            feature::ARCH => self.arch = text(section)?,
            feature::CPUDESC => self.cpu = text(section)?,
            feature::CPUID => self.cpuid = text(section)?,
            feature::NRCPUS => {
                let _available = section.try_get_u32_le()?;
                self.cpus = section.try_get_u32_le()?;
            }
            feature::CMDLINE => {
                let words = section.try_get_u32_le()?.min(MAX_LIST);
                self.command = (0..words).map(|_| text(section)).collect::<Result<_, _>>()?;
            }
            feature::PMU_MAPPINGS => {
                let pmus = section.try_get_u32_le()?.min(MAX_LIST);
                self.pmus = (0..pmus)
                    .map(|_| Ok((section.try_get_u32_le()?, text(section)?)))
                    .collect::<Result<_, TryGetError>>()?;
            }
            feature::NUMA_TOPOLOGY => {
                let nodes = section.try_get_u32_le()?.min(MAX_LIST);
                self.nodes = (0..nodes)
                    .map(|_| {
                        let node = section.try_get_u32_le()?;
                        let _total_kb = section.try_get_u64_le()?;
                        let _free_kb = section.try_get_u64_le()?;
                        Ok((node, text(section)?))
                    })
                    .collect::<Result<_, TryGetError>>()?;
            }
            feature::SAMPLE_TIME => {
                let times = (section.try_get_u64_le()?, section.try_get_u64_le()?);
                self.sample_times = Some(times).filter(|(first, last)| first <= last && *last != 0);
            }
            feature::EVENT_DESC => *described = event_desc(section)?,
            feature::CLOCK_DATA => {
                let _version = section.try_get_u32_le()?;
                let _clock = section.try_get_u32_le()?;
                self.clock =
                    Some(Clock { wall_ns: section.try_get_u64_le()?, record_ns: section.try_get_u64_le()? });
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads one entry of the build id table: process (-1: host kernel), 24 bytes of build id,
    /// path.
    pub fn build_id(&mut self, misc: u16, mut body: Bytes) -> Result<(), TryGetError> {
        /// `PERF_RECORD_MISC_BUILD_ID_SIZE`.
        const HAS_SIZE: u16 = 1 << 15;
        let _pid = body.try_get_u32_le()?;
        let id = split(&mut body, 24)?;
        let size = if misc & HAS_SIZE != 0 { usize::from(id[20]) } else { BuildId::MAX };
        let path = until_nul(&body);
        if let Some(id) = id.get(..size.min(BuildId::MAX)).and_then(BuildId::new)
            && self.build_ids.len() < MAX_LIST as usize
        {
            self.build_ids.insert(path, id);
        }
        Ok(())
    }

    /// Returns the name of a PMU; `None` if the recording does not list it.
    pub fn pmu(&self, type_: u32) -> Option<&str> {
        self.pmus.iter().find(|(number, _)| *number == type_).map(|(_, name)| name.as_str())
    }
}

/// Reads the events with their names and ids.
fn event_desc(section: &mut Bytes) -> Result<Vec<Described>, TryGetError> {
    let (events, attr_size) = (section.try_get_u32_le()?.min(MAX_LIST), section.try_get_u32_le()?);
    (0..events)
        .map(|_| {
            let attr = Attr::parse(&split(section, attr_size as usize)?)?;
            let ids = section.try_get_u32_le()?;
            let name = text(section)?;
            let mut raw = split(section, (ids as usize).saturating_mul(8))?;
            let ids = (0..ids).map(|_| raw.get_u64_le()).collect();
            Ok(Described { attr, name, ids })
        })
        .collect()
}

/// Reads a text that is preceded by its length and padded with NULs.
fn text(bytes: &mut Bytes) -> Result<String, TryGetError> {
    let length = bytes.try_get_u32_le()? as usize;
    Ok(until_nul(&split(bytes, length)?))
}

/// Returns the text before the first NUL.
pub fn until_nul(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// Splits the first `size` bytes off.
pub fn split(bytes: &mut Bytes, size: usize) -> Result<Bytes, TryGetError> {
    if size > bytes.len() {
        return Err(TryGetError { requested: size, available: bytes.len() });
    }
    Ok(bytes.split_to(size))
}
