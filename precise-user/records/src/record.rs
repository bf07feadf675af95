//! Decoder for the records of a perf ring buffer: what the kernel reports besides samples.
//!
//! A pure parser from bytes to [`IdentifiedRecord`]. It never panics, whatever the bytes are. A
//! record without the fields that its type requires is a [`RecordError`], and an unknown type is
//! [`Record::Other`]. Fields are in the byte order of this machine, as in the ring buffer.
//!
//! Every record except a sample ends in a *sample id* if `attr.sample_id_all` is set: task, time
//! and event. Its layout follows `attr.sample_type`; see [`RecordLayout`].

use bytes::{Buf, Bytes, TryGetError};
pub use precise_common::sample_bits;

pub mod sample;
#[cfg(test)]
mod tests;

/// `PERF_RECORD_MISC_EXACT_IP`: the hardware marked the IP of the sample as exact.
pub const MISC_EXACT_IP: u16 = 1 << 14;
/// `PERF_RECORD_MISC_CPUMODE_MASK`: whose code it was.
pub const MISC_CPUMODE: u16 = 7;

/// Returns whether `header.misc` says that a guest ran (`PERF_RECORD_MISC_GUEST_KERNEL`,
/// `PERF_RECORD_MISC_GUEST_USER`).
pub const fn is_of_guest(misc: u16) -> bool {
    matches!(misc & MISC_CPUMODE, 4 | 5)
}

/// `PERF_RECORD_MISC_MMAP_DATA` and `PERF_RECORD_MISC_COMM_EXEC`: the same bit, with a meaning that
/// depends on the type.
const MISC_MMAP_DATA_OR_COMM_EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`.
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
/// The size of `struct perf_event_header` in bytes: type, misc, size.
pub const HEADER: usize = 8;

/// The attributes that decide where the fields of a record are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RecordLayout {
    /// `attr.sample_type` of the event that owns the ring buffer.
    pub sample_type: u64,
    /// `attr.sample_id_all`.
    pub sample_id_all: bool,
}

impl RecordLayout {
    /// Returns the size of the trailing sample id in bytes.
    const fn trailer(self) -> usize {
        use sample_bits::{CPU, ID, IDENTIFIER, STREAM_ID, TID, TIME};
        if !self.sample_id_all {
            return 0;
        }
        8 * (self.sample_type & (TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER)).count_ones() as usize
    }
}

/// A record with its sample id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifiedRecord {
    /// The decoded record.
    pub record: Record,
    /// `header.misc`.
    pub misc: u16,
    /// The sample id. Zeros for fields that the layout does not have, and for samples, which have
    /// these fields in their body.
    pub id: SampleId,
}

impl IdentifiedRecord {
    /// Returns the memory of the record in bytes, with its text.
    pub fn bytes(&self) -> usize {
        let text = match &self.record {
            Record::Mmap(map) | Record::Mmap2(map) => map.path.capacity(),
            Record::Cgroup { path, .. } => path.capacity(),
            Record::Comm { comm, .. } => comm.capacity(),
            Record::Sample(body) | Record::DeferredChain { entries: body, .. } => body.len(),
            _ => 0,
        };
        size_of::<Self>() + text
    }
}

/// The trailing sample id. Fields that the layout does not have are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SampleId {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Time in nanoseconds, on the clock of the event.
    pub time: u64,
    /// Id of the event.
    pub id: u64,
    /// CPU.
    pub cpu: u32,
}

/// A GNU build id, as in records and ELF notes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct BuildId {
    length: u8,
    bytes: [u8; Self::MAX],
}

impl BuildId {
    /// The largest length of a build id from the kernel, in bytes.
    pub const MAX: usize = 20;

    /// Returns the id in `bytes`; `None` if it is empty, all zeros, or longer than [`Self::MAX`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.iter().all(|&byte| byte == 0) {
            return None;
        }
        let mut id = Self { length: u8::try_from(bytes.len()).ok()?, ..Self::default() };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }

    /// Returns the bytes of the id.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Returns the id in lower-case hex, as `file` and `readelf` print it.
    pub fn hex(&self) -> String {
        let bytes = self.as_bytes();
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        let mut hex = String::with_capacity(2 * bytes.len());
        hex.extend(digits.map(|digit| char::from(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit })));
        hex
    }
}

impl std::fmt::Debug for BuildId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.hex())
    }
}

/// The identity of a mapped file in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum MappedFileId {
    /// None: an old record, or a mapping without a file.
    #[default]
    None,
    /// The build id.
    BuildId(BuildId),
    /// The device and inode.
    Inode {
        /// Major number of the device.
        major: u32,
        /// Minor number of the device.
        minor: u32,
        /// Inode number.
        inode: u64,
        /// Generation of the inode, which tells a reused inode number from its first use.
        generation: u64,
    },
}

/// A mapping, from `PERF_RECORD_MMAP` or `PERF_RECORD_MMAP2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MmapRecord {
    /// Process id.
    pub pid: u32,
    /// Id of the thread that mapped it.
    pub tid: u32,
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset of the first address in the file, in bytes.
    pub page_offset: u64,
    /// Whether it is mapped executable.
    pub executable: bool,
    /// Whether it is mapped writable. False for `PERF_RECORD_MMAP`, which does not report it.
    pub writable: bool,
    /// `MAP_*` flags; 0 if they are not known.
    pub flags: u32,
    /// Identity of the file.
    pub file: MappedFileId,
    /// Path or pseudo path: `/usr/bin/cat`, `//anon`, `[vdso]`.
    pub path: String,
}

/// A task that started or exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Process id.
    pub pid: u32,
    /// Parent process id; equal to `pid` if this is a thread of it.
    pub ppid: u32,
    /// Thread id.
    pub tid: u32,
    /// Parent thread id.
    pub ptid: u32,
    /// Time in nanoseconds, on the clock of the event.
    pub time: u64,
}

/// A decoded record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// `PERF_RECORD_MMAP`: without protection and file identity.
    Mmap(MmapRecord),
    /// `PERF_RECORD_MMAP2`.
    Mmap2(MmapRecord),
    /// `PERF_RECORD_COMM`: a thread got a new name.
    Comm {
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
        /// The new name.
        comm: String,
        /// Whether the reason is an exec, which also creates a new address space.
        exec: bool,
    },
    /// `PERF_RECORD_FORK`.
    Fork(TaskRecord),
    /// `PERF_RECORD_EXIT`.
    Exit(TaskRecord),
    /// `PERF_RECORD_THROTTLE`: the kernel throttled the event because its rate was too high.
    Throttle {
        /// Id of the event.
        id: u64,
    },
    /// `PERF_RECORD_UNTHROTTLE`: the event runs again.
    Unthrottle {
        /// Id of the event.
        id: u64,
    },
    /// `PERF_RECORD_LOST`: records that did not fit into the ring buffer.
    Lost {
        /// Id of the event.
        id: u64,
        /// Number of lost records.
        lost: u64,
    },
    /// `PERF_RECORD_LOST_SAMPLES`: samples that the hardware or the driver dropped.
    LostSamples {
        /// Number of lost samples.
        lost: u64,
    },
    /// `PERF_RECORD_CGROUP`: a cgroup was created.
    Cgroup {
        /// Cgroup id, in the hierarchy of the perf_event controller.
        id: u64,
        /// Path from the root of that hierarchy.
        path: String,
    },
    /// `PERF_RECORD_CALLCHAIN_DEFERRED`: the part of call chains in user space, which the kernel
    /// took when the task returned there (Linux 6.19).
    DeferredChain {
        /// Tells the samples that this belongs to: their chains end with a marker and this number.
        cookie: u64,
        /// The entries as the kernel wrote them, eight bytes each, with a marker before the first.
        entries: Bytes,
    },
    /// `PERF_RECORD_SAMPLE`: the body after the header, which [`sample::decode`] decodes.
    Sample(Bytes),
    /// A type that is not decoded here.
    Other {
        /// `header.type`.
        kind: u32,
    },
}

/// The reason why bytes are not a valid record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// There are fewer bytes than a header has, or than the header states.
    #[error("truncated record: {have} of {want} bytes")]
    Short {
        /// Number of available bytes.
        have: usize,
        /// Number of required bytes.
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

/// Returns the records in `buffer`, in order. After an error, the iteration ends if the next record
/// cannot be found.
pub fn records(
    buffer: Bytes,
    layout: RecordLayout,
) -> impl Iterator<Item = Result<IdentifiedRecord, RecordError>> {
    let mut rest = buffer;
    std::iter::from_fn(move || (!rest.is_empty()).then(|| next(&mut rest, layout)))
}

/// Decodes the record in `body`, given the type and flags from its header. For callers that find
/// records in another way than [`records`].
///
/// # Errors
///
/// Returns an error if the body is smaller than the fields of its type.
pub fn record(
    kind: u32,
    misc: u16,
    body: Bytes,
    layout: RecordLayout,
) -> Result<IdentifiedRecord, RecordError> {
    decode(kind, misc, body, layout).map_err(|_: TryGetError| RecordError::Fields { kind })
}

/// Splits one record off the front of `rest`. A malformed body is split off as well. `rest` is
/// emptied if the header does not tell where the next record begins.
fn next(rest: &mut Bytes, layout: RecordLayout) -> Result<IdentifiedRecord, RecordError> {
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

/// Decodes the body of a record.
fn decode(
    kind: u32,
    misc: u16,
    mut body: Bytes,
    layout: RecordLayout,
) -> Result<IdentifiedRecord, TryGetError> {
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
            file: MappedFileId::None,
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
        CALLCHAIN_DEFERRED => {
            let (cookie, count) = (body.try_get_u64_ne()?, body.try_get_u64_ne()?);
            let size = usize::try_from(count).ok().and_then(|count| count.checked_mul(8));
            let requested = size.unwrap_or(usize::MAX);
            if requested > body.len() {
                return Err(TryGetError { requested, available: body.len() });
            }
            Record::DeferredChain { cookie, entries: body.split_to(requested) }
        }
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
const CALLCHAIN_DEFERRED: u32 = 22;

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

/// Decodes the identity of a mapped file: the same 24 bytes are a build id, or device and inode.
///
/// The flag alone does not decide. Since it exists (Linux 5.12, commit 88a16a130933),
/// perf_event_mmap_output() sets it in the record that it passes from event to event, and never
/// clears it. So an event without `build_id` has the flag as well if another event on the machine
/// requests build ids, as those of precise do.
fn file_id(body: &mut Bytes, misc: u16) -> Result<MappedFileId, TryGetError> {
    let mut identity = [0; 4 + BuildId::MAX];
    body.try_copy_to_slice(&mut identity)?;
    let (head, bytes) = identity.split_at(4);
    // Size, three reserved bytes; the kernel pads the id with zeros (lib/buildid.c).
    let size = usize::from(head[0]).min(BuildId::MAX + 1);
    let padded = head[1..] == [0; 3] && bytes.iter().skip(size).all(|byte| *byte == 0);
    if misc & MISC_MMAP_BUILD_ID != 0
        && padded
        && let Some(id) = bytes.get(..size).and_then(BuildId::new)
    {
        return Ok(MappedFileId::BuildId(id));
    }
    let mut rest = &identity[..];
    let (major, minor) = (rest.try_get_u32_ne()?, rest.try_get_u32_ne()?);
    let (inode, generation) = (rest.try_get_u64_ne()?, rest.try_get_u64_ne()?);
    Ok(if inode == 0 { MappedFileId::None } else { MappedFileId::Inode { major, minor, inode, generation } })
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

/// Returns the string at the front of `body`, up to its NUL.
fn text(body: &Bytes) -> String {
    let end = body.iter().position(|&byte| byte == 0).unwrap_or(body.len());
    String::from_utf8_lossy(body.get(..end).unwrap_or_default()).into_owned()
}

/// Splits the sample id off the end of `body`.
fn split_sample_id(body: &mut Bytes, layout: RecordLayout) -> Result<SampleId, TryGetError> {
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
