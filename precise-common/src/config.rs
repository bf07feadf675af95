//! The filter block: everything that the program is told, as constants.
//!
//! User space fills in one [`Config`] and writes its fields into the program's instructions before it is loaded. The
//! verifier then sees every field as a known number, and removes each branch that the run does not use: a term that is
//! not used costs nothing.

/// An [`Offsets`] field that the running kernel does not have.
pub const ABSENT: u32 = u32::MAX;
/// Filter slots in all; one compare each.
pub const MAX_SLOTS: usize = 16;
/// Clauses of a filter; each has its own ledger counter.
pub const MAX_CLAUSES: usize = 16;

/// Byte offsets of the kernel's fields, from the running kernel's BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Offsets {
    /// `bpf_perf_event_data_kern.regs`.
    pub ctx_regs: u32,
    /// `bpf_perf_event_data_kern.data`.
    pub ctx_data: u32,
    /// `pt_regs.ip`.
    pub regs_ip: u32,
    /// `pt_regs.flags`.
    pub regs_flags: u32,
    /// `perf_sample_data.sample_flags`; absent before 6.1.
    pub sample_flags: u32,
    /// `perf_sample_data.period`.
    pub period: u32,
    /// `perf_sample_data.ip`.
    pub ip: u32,
    /// `perf_sample_data.tid_entry`: pid, then tid, both `u32`.
    pub tid_entry: u32,
    /// `perf_sample_data.cgroup`.
    pub cgroup: u32,
    /// `perf_sample_data.addr`.
    pub addr: u32,
    /// `perf_sample_data.phys_addr`.
    pub phys_addr: u32,
    /// `perf_sample_data.weight`.
    pub weight: u32,
    /// `perf_sample_data.data_src`.
    pub data_src: u32,
    /// `perf_sample_data.data_page_size`.
    pub data_page_size: u32,
}

impl Offsets {
    /// No field known.
    pub const NONE: Self = Self {
        ctx_regs: ABSENT,
        ctx_data: ABSENT,
        regs_ip: ABSENT,
        regs_flags: ABSENT,
        sample_flags: ABSENT,
        period: ABSENT,
        ip: ABSENT,
        tid_entry: ABSENT,
        cgroup: ABSENT,
        addr: ABSENT,
        phys_addr: ABSENT,
        weight: ABSENT,
        data_src: ABSENT,
        data_page_size: ABSENT,
    };
}

/// Where the program takes a fact from, and how far it may trust the sample: bits of [`Config::source`].
pub mod source {
    /// The sample's own IP is prepared (6.3 and later); otherwise the one in the registers is the precise one.
    pub const IP_FROM_SAMPLE: u32 = 1 << 0;
    /// Process and thread come from `tid_entry` (6.3 and later); otherwise from a helper.
    pub const TID_FROM_SAMPLE: u32 = 1 << 1;
    /// The cgroup id comes from `PERF_SAMPLE_CGROUP`; otherwise from a helper.
    pub const CGROUP_FROM_SAMPLE: u32 = 1 << 2;
    /// A field is garbage unless its bit of `sample_flags` is set (6.1 and 6.2).
    pub const CHECK_FLAGS: u32 = 1 << 3;
    /// `weight` is `PERF_SAMPLE_WEIGHT_STRUCT`: its lower half is the access latency.
    pub const WEIGHT_STRUCT: u32 = 1 << 4;
}

/// What the key is made of: bits of [`Config::key`].
pub mod key {
    /// Instruction address.
    pub const IP: u32 = 1 << 0;
    /// Data address, masked by [`super::Config::address_mask`].
    pub const ADDRESS: u32 = 1 << 1;
    /// Cgroup.
    pub const CGROUP: u32 = 1 << 2;
    /// Process.
    pub const PID: u32 = 1 << 3;
    /// Thread.
    pub const TID: u32 = 1 << 4;
    /// Data source, masked by [`super::Config::data_src_mask`].
    pub const DATA_SRC: u32 = 1 << 5;
    /// Latency bucket. Without it, the latency is still summed.
    pub const LATENCY: u32 = 1 << 6;
}

/// What is known of each sample beside its IP, and so read and checked: bits of [`Config::fields`].
pub mod field {
    /// The event has data addresses.
    pub const ADDRESS: u32 = 1 << 0;
    /// The event has a latency.
    pub const LATENCY: u32 = 1 << 1;
    /// The event has a data source.
    pub const DATA_SRC: u32 = 1 << 2;
    /// The event marks exact IPs.
    pub const EXACT: u32 = 1 << 3;
}

/// What a filter slot looks at: values of [`Slot::operand`].
pub mod operand {
    /// The slot is not used.
    pub const NONE: u32 = 0;
    /// Instruction address.
    pub const IP: u32 = 1;
    /// Data address.
    pub const ADDRESS: u32 = 2;
    /// Access latency in core cycles.
    pub const LATENCY: u32 = 3;
    /// `perf_mem_data_src`.
    pub const DATA_SRC: u32 = 4;
    /// Process id.
    pub const PID: u32 = 5;
    /// Thread id.
    pub const TID: u32 = 6;
    /// CPU number.
    pub const CPU: u32 = 7;
    /// Cgroup of the v2 hierarchy: `low` is the id, `high` its level below the root. Matches the whole subtree.
    pub const CGROUP_SUBTREE: u32 = 8;
    /// Process name: `low` and `high` are its 16 bytes.
    pub const COMM: u32 = 9;
    /// 1 when the IP lies in the kernel, else 0.
    pub const KERNEL: u32 = 10;
    /// Physical data address.
    pub const PHYS_ADDRESS: u32 = 11;
    /// Size of the page that holds the data address, in bytes.
    pub const PAGE_SIZE: u32 = 12;
    /// User id.
    pub const UID: u32 = 13;
    /// Group id.
    pub const GID: u32 = 14;
    /// Cgroup id as the key has it: one cgroup, not its subtree.
    pub const CGROUP: u32 = 15;
}

/// How a filter slot compares: values of [`Slot::compare`].
pub mod compare {
    /// `low <= x && x <= high`.
    pub const RANGE: u32 = 0;
    /// `x & low != 0`: one of several one-hot bits.
    pub const ANY_BIT: u32 = 1;
    /// `(x & low) == high`.
    pub const MASKED: u32 = 2;
    /// `high & (1 << ((x >> low) & 63)) != 0`: a small field at bit `low` has one of the values in the set `high`.
    pub const IN_SET: u32 = 3;
    /// Added to any of the above: the slot holds when the comparison does not.
    pub const NOT: u32 = 0x100;
}

/// One compare of the filter.
///
/// A filter is a conjunction of clauses, each a disjunction of slots: a sample passes when every clause has a slot that
/// holds. The first clause that fails names the ledger counter, so that the ledger says which term rejected how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Slot {
    /// What is compared: [`operand`].
    pub operand: u32,
    /// How: [`compare`].
    pub compare: u32,
    /// Meaning depends on `compare`.
    pub low: u64,
    /// Meaning depends on `compare`.
    pub high: u64,
    /// The clause that this slot belongs to. Slots of one clause stand together.
    pub clause: u32,
    /// 1 when this is the last slot of its clause.
    pub ends_clause: u32,
}

/// Everything that the program is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// Where the kernel keeps its fields.
    pub offsets: Offsets,
    /// [`source`] bits.
    pub source: u32,
    /// [`key`] bits.
    pub key: u32,
    /// [`field`] bits.
    pub fields: u32,
    /// Cells of one CPU's partition, a power of two, minus one.
    pub slot_mask: u32,
    /// Partitions per half: the number of possible CPUs.
    pub cpus: u32,
    /// Slots in use.
    pub slots_used: u32,
    /// ANDed with the data address before it becomes part of the key: `!0x3f` groups by cache line.
    pub address_mask: u64,
    /// ANDed with the data source before it becomes part of the key.
    pub data_src_mask: u64,
    /// The filter.
    pub slots: [Slot; MAX_SLOTS],
}

const _: () = assert!(size_of::<Offsets>() == 14 * 4);
const _: () = assert!(size_of::<Slot>() == 32);
const _: () = assert!(size_of::<Config>() == 96 + 32 * MAX_SLOTS);

impl Config {
    /// No field, no key, no filter: a program with this only counts what it sees.
    pub const EMPTY: Self = Self {
        offsets: Offsets::NONE,
        source: 0,
        key: 0,
        fields: 0,
        slot_mask: 0,
        cpus: 0,
        slots_used: 0,
        address_mask: !0,
        data_src_mask: crate::cell::Class::DATA_SRC_MASK,
        slots: [Slot { operand: operand::NONE, compare: 0, low: 0, high: 0, clause: 0, ends_clause: 0 };
            MAX_SLOTS],
    };
}

/// Cells that are looked at for one key before the sample is counted as [`crate::ledger::TABLE_FULL`].
pub const PROBES: u32 = 8;
/// The helper number that the loader replaces: by a call of the kfunc `bpf_cast_to_kern_ctx` where the kernel has it.
///
/// aya 0.14 cannot relocate a kfunc call. aya 0.15 can, once its minimum Rust (1.98) is met here; the sentinel can go then.
pub const CAST_SENTINEL: u32 = 0x7072_6563;

/// Upper half of the operand of each instruction that loads a constant of the filter block; the lower half is the byte
/// offset in [`Config`].
///
/// As read-only data the constants would cost a load each, and several cache lines that are cold when the sample comes:
/// measured, 40 ns of the 67 that a rejected sample took.
pub const CONSTANT_SENTINEL: u32 = 0x7072_6364;
/// Added to the offset of a constant of eight bytes; without it, it has four.
pub const CONSTANT_WIDE: u64 = 1 << 31;
