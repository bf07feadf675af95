//! `PERF_SAMPLE_*`: the bits of `perf_event_attr.sample_type` and of
//! `perf_sample_data.sample_flags`.
//!
//! An event's `sample_type` tells which fields its records have; the kernel's `sample_flags` tells
//! which fields of one sample are filled in.

/// Instruction address.
pub const IP: u64 = 1 << 0;
/// pid and tid.
pub const TID: u64 = 1 << 1;
/// Time.
pub const TIME: u64 = 1 << 2;
/// Data address.
pub const ADDR: u64 = 1 << 3;
/// Counter value of the event, or of its group.
pub const READ: u64 = 1 << 4;
/// Call chain.
pub const CALLCHAIN: u64 = 1 << 5;
/// Id of the event.
pub const ID: u64 = 1 << 6;
/// CPU.
pub const CPU: u64 = 1 << 7;
/// Number of events that a sample stands for.
pub const PERIOD: u64 = 1 << 8;
/// Stream id.
pub const STREAM_ID: u64 = 1 << 9;
/// Raw data that the driver adds.
pub const RAW: u64 = 1 << 10;
/// Branch records.
pub const BRANCH_STACK: u64 = 1 << 11;
/// Registers of user space.
pub const REGS_USER: u64 = 1 << 12;
/// A copy of the user's stack.
pub const STACK_USER: u64 = 1 << 13;
/// Latency, as one number.
pub const WEIGHT: u64 = 1 << 14;
/// `perf_mem_data_src`.
pub const DATA_SRC: u64 = 1 << 15;
/// Id of the event, at a fixed position.
pub const IDENTIFIER: u64 = 1 << 16;
/// Reason why a transaction aborted.
pub const TRANSACTION: u64 = 1 << 17;
/// Registers at the interrupt.
pub const REGS_INTR: u64 = 1 << 18;
/// Physical data address.
pub const PHYS_ADDR: u64 = 1 << 19;
/// Data of a hardware trace at this time.
pub const AUX: u64 = 1 << 20;
/// Cgroup id.
pub const CGROUP: u64 = 1 << 21;
/// Size of the page of the data address.
pub const DATA_PAGE_SIZE: u64 = 1 << 22;
/// Size of the page of the instruction.
pub const CODE_PAGE_SIZE: u64 = 1 << 23;
/// Latency, in three parts.
pub const WEIGHT_STRUCT: u64 = 1 << 24;
