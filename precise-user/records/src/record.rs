//! Records of a perf ring: what the kernel tells beside the samples.
//!
//! A pure parser: bytes in, [`IdentifiedRecord`] out. It never panics, whatever the bytes; a record that does
//! not hold what its type promises is a [`RecordError`], and a type that is not known here is
//! [`Record::Other`]. Fields are in the byte order of this machine, as the ring has them.
//!
//! Every record but a sample ends in a *sample id* when `attr.sample_id_all` is set: who, when and
//! which event. Its layout follows `attr.sample_type`, hence [`Layout`].

use bytes::{Buf, Bytes, TryGetError};
pub use precise_common::sample_bits;

pub mod sample;
#[cfg(test)]
mod tests;

/// `PERF_RECORD_MISC_EXACT_IP`: of a sample, the hardware marked its IP as exact.
pub const MISC_EXACT_IP: u16 = 1 << 14;

/// `PERF_RECORD_MISC_MMAP_DATA` and `PERF_RECORD_MISC_COMM_EXEC`: one bit, two meanings by type.
const MISC_MMAP_DATA_OR_COMM_EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`.
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
/// `struct perf_event_header`: type, misc, size.
pub const HEADER: usize = 8;

/// What decides where the fields of a record are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Layout {
    /// `attr.sample_type` of the event that owns the ring.
    pub sample_type: u64,
    /// `attr.sample_id_all`.
    pub sample_id_all: bool,
}

impl Layout {
    /// Bytes of the trailing sample id.
    const fn trailer(self) -> usize {
        use sample_bits::{CPU, ID, IDENTIFIER, STREAM_ID, TID, TIME};
        if !self.sample_id_all {
            return 0;
        }
        8 * (self.sample_type & (TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER)).count_ones() as usize
    }
}

/// One record with its sample id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifiedRecord {
    /// What it says.
    pub record: Record,
    /// `header.misc`.
    pub misc: u16,
    /// Who and when; zeros where the layout has no such field, and for samples, which carry theirs
    /// inside.
    pub id: SampleId,
}

/// The trailing sample id. What the layout does not have is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SampleId {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time, on the clock of the event.
    pub time: u64,
    /// Id of the event.
    pub id: u64,
    /// CPU.
    pub cpu: u32,
}

/// A GNU build id as records and ELF notes have it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct BuildId {
    length: u8,
    bytes: [u8; Self::MAX],
}

impl BuildId {
    /// The longest that the kernel hands out.
    pub const MAX: usize = 20;

    /// The id in `bytes`; `None` when it is empty, all zeros, or longer than [`Self::MAX`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.iter().all(|&byte| byte == 0) {
            return None;
        }
        let mut id = Self { length: u8::try_from(bytes.len()).ok()?, ..Self::default() };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Lower-case hex, as `file` and `readelf` print it.
    pub fn hex(&self) -> String {
        self.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl std::fmt::Debug for BuildId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.hex())
    }
}

/// How a record says which file was mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum FileId {
    /// Not at all: an old record, or no file.
    #[default]
    None,
    /// By its build id.
    BuildId(BuildId),
    /// By device and inode.
    Inode {
        /// Major number of the device.
        major: u32,
        /// Minor number of the device.
        minor: u32,
        /// Inode number.
        inode: u64,
        /// Generation of the inode: tells a reused number from the first use.
        generation: u64,
    },
}

/// A mapping as `PERF_RECORD_MMAP` and `PERF_RECORD_MMAP2` describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MmapRecord {
    /// Process.
    pub pid: u32,
    /// Thread that mapped it.
    pub tid: u32,
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Offset in the file of the first address, in bytes.
    pub page_offset: u64,
    /// Whether it is mapped executable.
    pub executable: bool,
    /// Whether it is mapped writable; a `PERF_RECORD_MMAP` does not say, and then this is false.
    pub writable: bool,
    /// `MAP_*` flags; 0 when not known.
    pub flags: u32,
    /// Which file.
    pub file: FileId,
    /// Path or pseudo path: `/usr/bin/cat`, `//anon`, `[vdso]`.
    pub path: String,
}

/// A task that began or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Process.
    pub pid: u32,
    /// Parent process; the same as `pid` when this is a thread of it.
    pub ppid: u32,
    /// Thread.
    pub tid: u32,
    /// Parent thread.
    pub ptid: u32,
    /// When.
    pub time: u64,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// `PERF_RECORD_MMAP`: without protection and file identity.
    Mmap(MmapRecord),
    /// `PERF_RECORD_MMAP2`.
    Mmap2(MmapRecord),
    /// `PERF_RECORD_COMM`: a thread has a new name.
    Comm {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// The name.
        comm: String,
        /// Whether the reason is an exec: the address space is new, too.
        exec: bool,
    },
    /// `PERF_RECORD_FORK`.
    Fork(TaskRecord),
    /// `PERF_RECORD_EXIT`.
    Exit(TaskRecord),
    /// `PERF_RECORD_THROTTLE`: the kernel stopped the event because it came too often.
    Throttle {
        /// Id of the event.
        id: u64,
    },
    /// `PERF_RECORD_UNTHROTTLE`: it runs again.
    Unthrottle {
        /// Id of the event.
        id: u64,
    },
    /// `PERF_RECORD_LOST`: records that did not fit the ring.
    Lost {
        /// Id of the event.
        id: u64,
        /// How many.
        lost: u64,
    },
    /// `PERF_RECORD_LOST_SAMPLES`: samples that the hardware or the driver dropped.
    LostSamples {
        /// How many.
        lost: u64,
    },
    /// `PERF_RECORD_CGROUP`: a cgroup was made.
    Cgroup {
        /// Its id, in the hierarchy of the perf_event controller.
        id: u64,
        /// Its path from the root of that hierarchy.
        path: String,
    },
    /// `PERF_RECORD_SAMPLE`: the body after the header; [`sample::decode`] takes it apart.
    Sample(Bytes),
    /// A type that is not decoded here.
    Other {
        /// `header.type`.
        kind: u32,
    },
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// There are fewer bytes than a header has, or than the header says.
    #[error("truncated record: {have} of {want} bytes")]
    Short {
        /// Bytes that there are.
        have: usize,
        /// Bytes that there should be.
        want: usize,
    },
    /// The size in the header is smaller than the header.
    #[error("a record claims {0} bytes, less than its header needs")]
    Size(u16),
    /// The body is smaller than the fields of its type.
    #[error("a record of type {kind} lacks fields")]
    Fields {
        /// `header.type`.
        kind: u32,
    },
}

/// The records in `buffer`, in order. An error ends the iteration where the next record cannot be
/// found.
pub fn records(buffer: Bytes, layout: Layout) -> impl Iterator<Item = Result<IdentifiedRecord, RecordError>> {
    let mut rest = buffer;
    std::iter::from_fn(move || (!rest.is_empty()).then(|| next(&mut rest, layout)))
}

/// The record in `body`, whose header had this type and these flags: for those who find records
/// otherwise than [`records`].
///
/// # Errors
///
/// When the body is smaller than the fields of its type.
pub fn record(kind: u32, misc: u16, body: Bytes, layout: Layout) -> Result<IdentifiedRecord, RecordError> {
    decode(kind, misc, body, layout).map_err(|_: TryGetError| RecordError::Fields { kind })
}

/// Takes one record off the front of `rest`. A malformed body is taken off all the same; `rest` is
/// emptied when the header does not say where the next record begins.
fn next(rest: &mut Bytes, layout: Layout) -> Result<IdentifiedRecord, RecordError> {
    let whole = std::mem::take(rest);
    let short = |want| RecordError::Short { have: whole.len(), want };
    let mut body = whole.clone();
    let (Ok(kind), Ok(misc), Ok(size)) =
        (body.try_get_u32_ne(), body.try_get_u16_ne(), body.try_get_u16_ne())
    else {
        return Err(short(HEADER));
    };
    let bytes = usize::from(size);
    if bytes < HEADER {
        return Err(RecordError::Size(size));
    }
    if bytes > whole.len() {
        return Err(short(bytes));
    }
    *rest = whole.slice(bytes..);
    body.truncate(bytes - HEADER);
    record(kind, misc, body, layout)
}

/// Decodes one body.
fn decode(kind: u32, misc: u16, mut body: Bytes, layout: Layout) -> Result<IdentifiedRecord, TryGetError> {
    let id = if kind == SAMPLE { SampleId::default() } else { split_sample_id(&mut body, layout)? };
    let flag13 = misc & MISC_MMAP_DATA_OR_COMM_EXEC != 0;
    let record = match kind {
        MMAP => Record::Mmap(MmapRecord {
            pid: body.try_get_u32_ne()?,
            tid: body.try_get_u32_ne()?,
            start: body.try_get_u64_ne()?,
            len: body.try_get_u64_ne()?,
            page_offset: body.try_get_u64_ne()?,
            executable: !flag13,
            writable: false,
            flags: 0,
            file: FileId::None,
            path: text(&body),
        }),
        MMAP2 => Record::Mmap2(mmap2(&mut body, misc)?),
        LOST => Record::Lost { id: body.try_get_u64_ne()?, lost: body.try_get_u64_ne()? },
        COMM => Record::Comm {
            pid: body.try_get_u32_ne()?,
            tid: body.try_get_u32_ne()?,
            comm: text(&body),
            exec: flag13,
        },
        EXIT => Record::Exit(task(&mut body)?),
        FORK => Record::Fork(task(&mut body)?),
        THROTTLE | UNTHROTTLE => {
            let _time = body.try_get_u64_ne()?;
            let id = body.try_get_u64_ne()?;
            if kind == THROTTLE { Record::Throttle { id } } else { Record::Unthrottle { id } }
        }
        LOST_SAMPLES => Record::LostSamples { lost: body.try_get_u64_ne()? },
        CGROUP => Record::Cgroup { id: body.try_get_u64_ne()?, path: text(&body) },
        SAMPLE => Record::Sample(body),
        kind => Record::Other { kind },
    };
    Ok(IdentifiedRecord { record, misc, id })
}

const MMAP: u32 = 1;
const CGROUP: u32 = 19;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const UNTHROTTLE: u32 = 6;
const FORK: u32 = 7;
/// `PERF_RECORD_SAMPLE`.
pub const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;

fn mmap2(body: &mut Bytes, misc: u16) -> Result<MmapRecord, TryGetError> {
    const PROT_WRITE: u32 = 2;
    const PROT_EXEC: u32 = 4;
    let (pid, tid) = (body.try_get_u32_ne()?, body.try_get_u32_ne()?);
    let (start, len, page_offset) = (body.try_get_u64_ne()?, body.try_get_u64_ne()?, body.try_get_u64_ne()?);
    let file = file_id(body, misc)?;
    let (prot, flags) = (body.try_get_u32_ne()?, body.try_get_u32_ne()?);
    Ok(MmapRecord {
        pid,
        tid,
        start,
        len,
        page_offset,
        executable: prot & PROT_EXEC != 0,
        writable: prot & PROT_WRITE != 0,
        flags,
        file,
        path: text(body),
    })
}

/// Which file was mapped: the same 24 bytes are a build id, or device and inode.
///
/// The flag alone does not say which. Since it exists (Linux 5.12, commit 88a16a130933)
/// perf_event_mmap_output() sets it in the record that it hands from event to event, and never
/// clears it: an event without `build_id` has it as well while another one on the machine asks for
/// build ids, as ours do.
fn file_id(body: &mut Bytes, misc: u16) -> Result<FileId, TryGetError> {
    let mut identity = [0; 4 + BuildId::MAX];
    body.try_copy_to_slice(&mut identity)?;
    let (head, bytes) = identity.split_at(4);
    // Size, three reserved bytes; the kernel fills up with zeros (lib/buildid.c).
    let size = usize::from(head[0]).min(BuildId::MAX + 1);
    let padded = head[1..] == [0; 3] && bytes.iter().skip(size).all(|byte| *byte == 0);
    if misc & MISC_MMAP_BUILD_ID != 0
        && padded
        && let Some(id) = bytes.get(..size).and_then(BuildId::new)
    {
        return Ok(FileId::BuildId(id));
    }
    let mut rest = &identity[..];
    let (major, minor) = (rest.try_get_u32_ne()?, rest.try_get_u32_ne()?);
    let (inode, generation) = (rest.try_get_u64_ne()?, rest.try_get_u64_ne()?);
    Ok(if inode == 0 { FileId::None } else { FileId::Inode { major, minor, inode, generation } })
}

fn task(body: &mut Bytes) -> Result<TaskRecord, TryGetError> {
    Ok(TaskRecord {
        pid: body.try_get_u32_ne()?,
        ppid: body.try_get_u32_ne()?,
        tid: body.try_get_u32_ne()?,
        ptid: body.try_get_u32_ne()?,
        time: body.try_get_u64_ne()?,
    })
}

/// The string at the front of `body`, up to its NUL.
fn text(body: &Bytes) -> String {
    let end = body.iter().position(|&byte| byte == 0).unwrap_or(body.len());
    String::from_utf8_lossy(body.get(..end).unwrap_or_default()).into_owned()
}

/// Takes the sample id off the end of `body`.
fn split_sample_id(body: &mut Bytes, layout: Layout) -> Result<SampleId, TryGetError> {
    use sample_bits::{CPU, ID, IDENTIFIER, STREAM_ID, TID, TIME};
    let requested = layout.trailer();
    let Some(begin) = body.len().checked_sub(requested) else {
        return Err(TryGetError { requested, available: body.len() });
    };
    let mut trailer = body.split_off(begin);
    let has = |bit| layout.sample_id_all && layout.sample_type & bit != 0;
    let mut id = SampleId::default();
    if has(TID) {
        id.pid = trailer.try_get_u32_ne()?;
        id.tid = trailer.try_get_u32_ne()?;
    }
    if has(TIME) {
        id.time = trailer.try_get_u64_ne()?;
    }
    if has(ID) {
        id.id = trailer.try_get_u64_ne()?;
    }
    if has(STREAM_ID) {
        trailer.try_get_u64_ne()?;
    }
    if has(CPU) {
        id.cpu = trailer.try_get_u32_ne()?;
        trailer.try_get_u32_ne()?;
    }
    if has(IDENTIFIER) {
        id.id = trailer.try_get_u64_ne()?;
    }
    Ok(id)
}
