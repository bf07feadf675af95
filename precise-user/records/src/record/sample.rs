//! Decoder for the body of `PERF_RECORD_SAMPLE`. `attr.sample_type` decides which fields it has,
//! and in which order.
//!
//! A pure parser, like the rest of [`super`]. A body that does not contain exactly the fields of
//! its type is an error, never a panic and never a sample with partly read fields.

use bytes::{Buf, Bytes, TryGetError};
use precise_common::mode::IN_GUEST;

use super::{is_of_guest, sample_bits as bit};

/// A sample as the kernel wrote it. Fields that its event did not request are zero, or `None` if
/// zero has a meaning.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sample {
    /// Id of the event.
    pub id: u64,
    /// Instruction address.
    pub ip: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Time in nanoseconds, on the clock of the event.
    pub time: u64,
    /// Data address; 0 if the hardware gave none.
    pub address: u64,
    /// CPU.
    pub cpu: u32,
    /// Number of events that the sample stands for.
    pub period: u64,
    /// Weights; zeros if the hardware gave none.
    pub weight: WeightRecord,
    /// `perf_mem_data_src`; `None` if it was not requested.
    pub data_src: Option<u64>,
    /// Physical data address; 0 if there is none.
    pub phys_address: u64,
    /// Cgroup id in the hierarchy of the perf_event controller; `None` if it was not requested.
    pub cgroup: Option<u64>,
    /// Size of the page that contains the data address, in bytes; 0 if it is not known.
    pub data_page_size: u64,
    /// Call chain as the kernel wrote it: eight bytes per entry, from the innermost outwards, with
    /// context markers in between.
    pub call_chain: Bytes,
    /// Branch records, the most recent first, as the kernel wrote them (`struct
    /// perf_branch_entry`, 24 bytes each); empty if there are none.
    pub branches: Bytes,
    /// Counter values as the kernel wrote them: see [`group_values`]; empty if there are none.
    pub counts: Bytes,
    /// Registers of the task in user space; none if it has none there.
    pub user_registers: UserRegisters,
    /// Copy of the task's stack in user space, from its stack pointer on.
    pub user_stack: UserStack,
    /// Raw data that the driver adds (IBS: its registers), including the kernel's padding; empty if
    /// there is none.
    pub raw: Bytes,
}

impl Sample {
    /// Returns this sample, of a record with this `header.misc`, as the host sees it: while a guest
    /// ran, without the guest's addresses, which mean nothing there, and with [`IN_GUEST`] as its
    /// instruction, as in a live run.
    #[must_use]
    pub fn on_host(self, misc: u16) -> Self {
        if !is_of_guest(misc) {
            return self;
        }
        Self { ip: IN_GUEST, address: 0, phys_address: 0, data_page_size: 0, branches: Bytes::new(), ..self }
    }
}

/// `PERF_SAMPLE_REGS_USER`: the registers with which a task will return to user space.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct UserRegisters {
    /// Their ABI: 0 if there are none, 1 of 32-bit code, 2 of 64-bit code.
    pub abi: u64,
    /// `attr.sample_regs_user`: bit N is set if register N was taken.
    pub mask: u64,
    /// Their values as the kernel wrote them, in the order of their numbers.
    pub values: Bytes,
}

impl UserRegisters {
    /// Returns the value of a register; `None` if it was not taken.
    pub fn get(&self, number: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(number).filter(|bit| self.mask & bit != 0)?;
        let place = 8 * (self.mask & (bit - 1)).count_ones() as usize;
        self.values.get(place..)?.try_get_u64_ne().ok()
    }
}

/// `PERF_SAMPLE_STACK_USER`: the first bytes of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct UserStack {
    /// The bytes that the kernel could read.
    pub bytes: Bytes,
    /// The number of bytes that it was asked for. Fewer were read if the stack, or the part of it
    /// that is in memory, ends there.
    pub wanted: usize,
}

/// `PERF_SAMPLE_WEIGHT_STRUCT`, or `PERF_SAMPLE_WEIGHT` in its first member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WeightRecord {
    /// Access latency, in core cycles.
    pub latency: u64,
    /// Latency from dispatch to retirement of the instruction, in core cycles, if the CPU reports
    /// it separately from `latency`.
    pub instruction: u16,
    /// Latency in the retirement stage, in core cycles, if the CPU reports it.
    pub retire: u16,
}

/// The reason why a body is not a valid sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// The samples have fields that this decoder does not know, so it cannot find the fields after
    /// them.
    #[error("samples with the fields {0:#x} cannot be decoded")]
    Layout(u64),
    /// The body ends before its last field.
    #[error("truncated sample")]
    Short,
    /// There are bytes after the last field.
    #[error("sample with {0} unexpected bytes at its end")]
    Long(usize),
}

impl From<TryGetError> for SampleError {
    fn from(_: TryGetError) -> Self {
        Self::Short
    }
}

/// The attributes of an event that decide where the fields of its samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SampleLayout {
    /// `attr.sample_type`.
    pub sample_type: u64,
    /// `attr.read_format`.
    pub read_format: u64,
    /// `attr.branch_sample_type`.
    pub branch_sample_type: u64,
    /// `attr.sample_regs_user`.
    pub regs_user: u64,
    /// `attr.sample_regs_intr`.
    pub regs_intr: u64,
}

impl From<u64> for SampleLayout {
    /// Returns the layout of an event that sets only the sample type.
    fn from(sample_type: u64) -> Self {
        Self { sample_type, ..Self::default() }
    }
}

/// The bits below `PERF_SAMPLE_MAX` of Linux 7.2: all fields that [`decode`] can read or skip.
const KNOWN: u64 = (1 << 25) - 1;
/// `PERF_FORMAT_*`.
mod format {
    pub const ENABLED: u64 = 1;
    pub const RUNNING: u64 = 2;
    pub const ID: u64 = 4;
    pub const GROUP: u64 = 8;
    pub const LOST: u64 = 16;
    pub const KNOWN: u64 = 31;
}
/// `PERF_SAMPLE_BRANCH_HW_INDEX` and `PERF_SAMPLE_BRANCH_COUNTERS`.
const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;
/// The size of `struct perf_branch_entry` in bytes.
const BRANCH_BYTES: usize = 24;

/// Decodes the sample in `body`, from an event with this layout. Fields that [`Sample`] does not
/// have are skipped.
///
/// # Errors
///
/// Returns an error if the body does not match the layout exactly.
pub fn decode(mut body: Bytes, layout: &SampleLayout) -> Result<Sample, SampleError> {
    let sample_type = layout.sample_type;
    if sample_type & !KNOWN != 0 {
        return Err(SampleError::Layout(sample_type & !KNOWN));
    }
    let body = &mut body;
    let has = |bit: u64| sample_type & bit != 0;
    let mut sample = Sample::default();
    // The order of perf_output_sample() (kernel/events/core.c), which is not the order of the bits.
    if has(bit::IDENTIFIER) {
        sample.id = body.try_get_u64_ne()?;
    }
    if has(bit::IP) {
        sample.ip = body.try_get_u64_ne()?;
    }
    if has(bit::TID) {
        sample.pid = body.try_get_u32_ne()?;
        sample.tid = body.try_get_u32_ne()?;
    }
    if has(bit::TIME) {
        sample.time = body.try_get_u64_ne()?;
    }
    if has(bit::ADDR) {
        sample.address = body.try_get_u64_ne()?;
    }
    if has(bit::ID) {
        sample.id = body.try_get_u64_ne()?;
    }
    if has(bit::STREAM_ID) {
        body.try_get_u64_ne()?;
    }
    if has(bit::CPU) {
        sample.cpu = body.try_get_u32_ne()?;
        body.try_get_u32_ne()?;
    }
    if has(bit::PERIOD) {
        sample.period = body.try_get_u64_ne()?;
    }
    if has(bit::READ) {
        let start = body.clone();
        skip_read(body, layout.read_format)?;
        sample.counts = start.slice(..start.len() - body.len());
    }
    if has(bit::CALLCHAIN) {
        let entries = body.try_get_u64_ne()?;
        let start = body.clone();
        skip(body, entries, 8)?;
        sample.call_chain = start.slice(..start.len() - body.len());
    }
    if has(bit::RAW) {
        sample.raw = raw(body)?;
    }
    if has(bit::BRANCH_STACK) {
        let branches = body.try_get_u64_ne()?;
        skip(body, u64::from(layout.branch_sample_type & BRANCH_HW_INDEX != 0), 8)?;
        let start = body.clone();
        skip(body, branches, BRANCH_BYTES)?;
        sample.branches = start.slice(..start.len() - body.len());
        if layout.branch_sample_type & BRANCH_COUNTERS != 0 {
            skip(body, branches, 8)?;
        }
    }
    if has(bit::REGS_USER) {
        sample.user_registers = registers(body, layout.regs_user)?;
    }
    if has(bit::STACK_USER) {
        sample.user_stack = user_stack(body)?;
    }
    if has(bit::WEIGHT_STRUCT) {
        // One 64-bit word, with its parts from low to high.
        let word = body.try_get_u64_ne()?;
        sample.weight = WeightRecord {
            latency: word & 0xffff_ffff,
            instruction: (word >> 32) as u16,
            retire: (word >> 48) as u16,
        };
    } else if has(bit::WEIGHT) {
        sample.weight.latency = body.try_get_u64_ne()?;
    }
    if has(bit::DATA_SRC) {
        sample.data_src = Some(body.try_get_u64_ne()?);
    }
    if has(bit::TRANSACTION) {
        body.try_get_u64_ne()?;
    }
    if has(bit::REGS_INTR) {
        registers(body, layout.regs_intr)?;
    }
    if has(bit::PHYS_ADDR) {
        sample.phys_address = body.try_get_u64_ne()?;
    }
    if has(bit::CGROUP) {
        sample.cgroup = Some(body.try_get_u64_ne()?);
    }
    if has(bit::DATA_PAGE_SIZE) {
        sample.data_page_size = body.try_get_u64_ne()?;
    }
    if has(bit::CODE_PAGE_SIZE) {
        body.try_get_u64_ne()?;
    }
    if has(bit::AUX) {
        let size = body.try_get_u64_ne()?;
        skip(body, size, 1)?;
    }
    if body.is_empty() { Ok(sample) } else { Err(SampleError::Long(body.len())) }
}

/// Skips `count` items of `bytes` each.
fn skip(body: &mut Bytes, count: u64, bytes: usize) -> Result<(), SampleError> {
    let size = usize::try_from(count).ok().and_then(|count| count.checked_mul(bytes));
    match size.filter(|size| *size <= body.len()) {
        Some(size) => {
            body.advance(size);
            Ok(())
        }
        None => Err(SampleError::Short),
    }
}

/// Skips `PERF_SAMPLE_READ`: the values of one event, or of a group (perf_output_read(),
/// kernel/events/core.c).
fn skip_read(body: &mut Bytes, read_format: u64) -> Result<(), SampleError> {
    if read_format & !format::KNOWN != 0 {
        return Err(SampleError::Layout(bit::READ));
    }
    let words = |bits: u64| u64::from((read_format & bits).count_ones());
    let (times, each) = (words(format::ENABLED | format::RUNNING), words(format::ID | format::LOST) + 1);
    let values = if read_format & format::GROUP != 0 { body.try_get_u64_ne()? } else { 1 };
    skip(body, times, 8)?;
    skip(body, values.checked_mul(each).ok_or(SampleError::Short)?, 8)
}

/// Returns the counters of the sample's group: `(id of the event, value)`, the leader first. Empty
/// unless the event reads its group and each value has an id.
pub fn group_values(sample: &Sample, layout: &SampleLayout) -> Vec<(u64, u64)> {
    let format = layout.read_format;
    if layout.sample_type & bit::READ == 0 || format & format::GROUP == 0 || format & format::ID == 0 {
        return Vec::new();
    }
    let (words, _) = sample.counts.as_chunks();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    // The number of values, up to two times, then each value with its id and maybe its losses.
    let before = 1 + (format & (format::ENABLED | format::RUNNING)).count_ones() as usize;
    let each = 2 + usize::from(format & format::LOST != 0);
    let values = words.get(before..).unwrap_or_default().chunks_exact(each);
    values.filter_map(|value| Some((*value.get(1)?, *value.first()?))).collect()
}

/// Reads registers: their ABI, and then, unless there are none, the registers of the mask.
fn registers(body: &mut Bytes, mask: u64) -> Result<UserRegisters, SampleError> {
    let abi = body.try_get_u64_ne()?;
    let start = body.clone();
    skip(body, if abi == 0 { 0 } else { mask.count_ones().into() }, 8)?;
    Ok(UserRegisters { abi, mask, values: start.slice(..start.len() - body.len()) })
}

/// Reads a copy of the stack: the size that was asked for, that many bytes, and unless there are
/// none, the number of those that could be read (perf_output_sample_ustack(),
/// kernel/events/core.c).
fn user_stack(body: &mut Bytes) -> Result<UserStack, SampleError> {
    let size = body.try_get_u64_ne()?;
    let start = body.clone();
    skip(body, size, 1)?;
    let wanted = start.len() - body.len();
    let read = if wanted == 0 { 0 } else { body.try_get_u64_ne()? };
    let read = usize::try_from(read).unwrap_or(wanted).min(wanted);
    Ok(UserStack { bytes: start.slice(..read), wanted })
}

/// Reads the raw part: its size, then that many bytes, including the padding to a multiple of
/// eight.
fn raw(body: &mut Bytes) -> Result<Bytes, SampleError> {
    let size = body.try_get_u32_ne()? as usize;
    if size > body.len() {
        return Err(SampleError::Short);
    }
    let raw = body.split_to(size);
    // If the driver gives nothing, the kernel writes a size of four and zeros, to keep the fields
    // after it aligned.
    Ok(if size == size_of::<u32>() && raw.iter().all(|byte| *byte == 0) { Bytes::new() } else { raw })
}

#[cfg(test)]
mod tests {
    use bytes::{BufMut as _, BytesMut};
    use proptest::prelude::*;

    use super::*;

    /// The fields that `precise script` requests, with a raw part of 12 bytes.
    const TYPE: u64 = bit::IP
        | bit::TID
        | bit::TIME
        | bit::ADDR
        | bit::ID
        | bit::CPU
        | bit::PERIOD
        | bit::RAW
        | bit::WEIGHT_STRUCT
        | bit::DATA_SRC
        | bit::PHYS_ADDR
        | bit::CGROUP
        | bit::DATA_PAGE_SIZE;

    fn body() -> Bytes {
        let mut out = BytesMut::new();
        out.put_u64_ne(0x55_1234);
        out.put_u32_ne(4711);
        out.put_u32_ne(4712);
        out.put_u64_ne(1_000_000_007);
        out.put_u64_ne(0x7f00_0000_1000);
        out.put_u64_ne(99);
        out.put_u32_ne(3);
        out.put_u32_ne(0);
        out.put_u64_ne(1009);
        out.put_u32_ne(12);
        out.put_slice(b"rawrawrawraw");
        out.put_u64_ne(300 | 17 << 32 | 5 << 48);
        out.put_u64_ne(0x1234);
        out.put_u64_ne(0xabc000);
        out.put_u64_ne(77);
        out.put_u64_ne(4096);
        out.freeze()
    }

    #[test]
    fn every_field_is_at_its_place() {
        let expected = Sample {
            id: 99,
            ip: 0x55_1234,
            pid: 4711,
            tid: 4712,
            time: 1_000_000_007,
            address: 0x7f00_0000_1000,
            cpu: 3,
            period: 1009,
            weight: WeightRecord { latency: 300, instruction: 17, retire: 5 },
            data_src: Some(0x1234),
            phys_address: 0xabc000,
            cgroup: Some(77),
            data_page_size: 4096,
            raw: Bytes::from_static(b"rawrawrawraw"),
            ..Sample::default()
        };
        assert_eq!(decode(body(), &TYPE.into()), Ok(expected));
    }

    #[test]
    fn no_raw_part_is_empty() {
        let mut out = BytesMut::new();
        out.put_u32_ne(4);
        out.put_u32_ne(0);
        assert_eq!(decode(out.freeze(), &bit::RAW.into()), Ok(Sample::default()));
    }

    #[test]
    fn the_old_weight_is_one_number() {
        let word = Bytes::copy_from_slice(&(1u64 << 40).to_ne_bytes());
        assert_eq!(decode(word, &bit::WEIGHT.into()).map(|sample| sample.weight.latency), Ok(1 << 40));
    }

    #[test]
    fn a_body_that_is_cut_anywhere_is_refused() {
        let whole = body();
        for len in 0..whole.len() {
            assert_eq!(decode(whole.slice(..len), &TYPE.into()), Err(SampleError::Short), "{len}");
        }
        let mut longer = BytesMut::from(&whole[..]);
        longer.put_u64_ne(0);
        assert_eq!(decode(longer.freeze(), &TYPE.into()), Err(SampleError::Long(8)));
    }

    #[test]
    fn a_raw_part_larger_than_its_record_is_refused() {
        for size in [13, u32::MAX] {
            let mut out = BytesMut::new();
            out.put_u32_ne(size);
            out.put_slice(&[7; 12]);
            assert_eq!(decode(out.freeze(), &bit::RAW.into()), Err(SampleError::Short));
        }
    }

    #[test]
    fn what_is_stepped_over_is_as_long_as_its_event_says() {
        let layout = SampleLayout {
            sample_type: KNOWN & !bit::WEIGHT,
            read_format: format::KNOWN,
            branch_sample_type: BRANCH_HW_INDEX | BRANCH_COUNTERS,
            regs_user: 0xff0fff,
            regs_intr: 0b101,
        };
        let mut out = BytesMut::new();
        let words = |out: &mut BytesMut, count: usize| (0..count).for_each(|_| out.put_u64_ne(0xbad));
        // Identifier, ip, tid, time, address, id, stream, cpu, period.
        words(&mut out, 9);
        // A group of two, each with id and lost count.
        out.put_u64_ne(2);
        words(&mut out, 2 + 2 * 3);
        // Call chain.
        out.put_u64_ne(3);
        words(&mut out, 3);
        out.put_u32_ne(4);
        out.put_u32_ne(0);
        // Branches: the index, two entries, their counters.
        out.put_u64_ne(2);
        words(&mut out, 1 + 2 * 3 + 2);
        // Registers of user space; a stack of which 12 bytes could be read.
        out.put_u64_ne(2);
        (0..20).for_each(|register| out.put_u64_ne(register));
        out.put_u64_ne(16);
        words(&mut out, 2);
        out.put_u64_ne(12);
        out.put_u64_ne(300);
        out.put_u64_ne(0x1234);
        words(&mut out, 1);
        // No registers at the interrupt.
        out.put_u64_ne(0);
        out.put_u64_ne(0xabc);
        out.put_u64_ne(77);
        words(&mut out, 2);
        out.put_u64_ne(8);
        words(&mut out, 1);
        let body = out.freeze();
        let sample = decode(body.clone(), &layout).expect("a sample");
        assert_eq!((sample.weight.latency, sample.data_src), (300, Some(0x1234)));
        assert_eq!((sample.phys_address, sample.cgroup), (0xabc, Some(77)));
        assert_eq!(sample.call_chain, Bytes::from([0xbad_u64.to_ne_bytes(); 3].concat()));
        assert_eq!(group_values(&sample, &layout), [(0xbad, 0xbad); 2]);
        assert_eq!(sample.branches.len(), 2 * BRANCH_BYTES);
        let register = |number| sample.user_registers.get(number);
        assert_eq!((sample.user_registers.abi, register(0), register(8)), (2, Some(0), Some(8)));
        // Four registers of the mask are missing before this one.
        assert_eq!((register(12), register(16), register(23)), (None, Some(12), Some(19)));
        assert_eq!([register(24), register(63), register(64)], [None; 3]);
        assert_eq!((sample.user_stack.bytes.len(), sample.user_stack.wanted), (12, 16));
        for len in 0..body.len() {
            assert_eq!(decode(body.slice(..len), &layout), Err(SampleError::Short), "{len}");
        }
    }

    #[test]
    fn fields_that_are_not_known_are_refused() {
        assert_eq!(decode(body(), &(TYPE | 1 << 25).into()), Err(SampleError::Layout(1 << 25)));
        let read = SampleLayout { sample_type: bit::READ, read_format: 1 << 5, ..SampleLayout::default() };
        assert_eq!(decode(body(), &read), Err(SampleError::Layout(bit::READ)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            sample_type: u64, read_format: u64, branch_sample_type: u64, regs_user: u64,
        ) {
            let body = Bytes::from(bytes);
            for sample_type in [sample_type, sample_type & KNOWN, TYPE] {
                let read_format = read_format & format::KNOWN;
                let layout =
                    SampleLayout { sample_type, read_format, branch_sample_type, regs_user, regs_intr: !regs_user };
                if let Ok(sample) = decode(body.clone(), &layout) {
                    prop_assert!(sample.raw.len() < body.len().max(1));
                }
            }
        }
    }
}
