//! The configuration of the BPF program (the filter block), as constants.
//!
//! User space fills in one [`Config`] and writes its fields into the program's instructions before
//! it loads the program. The verifier then sees every field as a known number and removes each
//! branch that the run does not use, so a feature that is not used costs nothing.

/// The value of an [`Offsets`] field that the running kernel does not have.
pub const ABSENT: u32 = u32::MAX;
/// The shortest period of cpu-clock and task-clock, in nanoseconds. If the period is shorter, the
/// kernel sets the timer to this (`perf_swevent_hrtimer`, kernel/events/core.c).
pub const TIMER_LEAST_NS: u64 = 10_000;
/// The flag of a task whose CPU runs the guest of a virtual machine: `PF_VCPU` of
/// include/linux/sched.h. KVM sets it before it enters the guest, and clears it after it has
/// handled the interrupt that ended the guest's turn (`guest_timing_enter_irqoff()`,
/// `guest_timing_exit_irqoff()`, include/linux/kvm_host.h). So it is set while that interrupt takes
/// a sample.
pub const TASK_RUNS_GUEST: u32 = 1;
/// The number of filter slots; each is one compare.
pub const MAX_SLOTS: usize = 16;
/// The largest number of clauses in a filter; each has its own ledger counter.
pub const MAX_CLAUSES: usize = 16;

/// The byte offsets of the kernel's fields, from the running kernel's BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Offsets {
    /// `bpf_perf_event_data_kern.data`.
    pub ctx_data: u32,
    /// `bpf_perf_event_data_kern.event`, a pointer to a `perf_event`.
    pub ctx_event: u32,
    /// `perf_event.hw.sample_period`.
    pub event_period: u32,
    /// `pt_regs.ip`, for programs at tracepoints.
    pub regs_ip: u32,
    /// `perf_sample_data.sample_flags`; absent before Linux 6.1.
    pub sample_flags: u32,
    /// `perf_sample_data.raw`, a pointer to a `perf_raw_record`.
    pub raw: u32,
    /// `perf_raw_record.frag.data`, a pointer, followed by its size in four bytes.
    pub raw_data: u32,
    /// `perf_sample_data.tid_entry`: pid, then tid, both `u32`.
    pub tid_entry: u32,
    /// `perf_sample_data.phys_addr`.
    pub phys_addr: u32,
    /// `perf_sample_data.weight`.
    pub weight: u32,
    /// `perf_sample_data.data_src`.
    pub data_src: u32,
    /// `perf_sample_data.data_page_size`.
    pub data_page_size: u32,
    /// `perf_sample_data.callchain`, a pointer to a `perf_callchain_entry`: a count, followed by
    /// that many addresses.
    pub callchain: u32,
    /// `perf_sample_data.time`.
    pub time: u32,
    /// `task_struct.pagefault_disabled`.
    pub pagefault_disabled: u32,
    /// `task_struct.flags`: [`TASK_RUNS_GUEST`] and others.
    pub task_flags: u32,
    /// `task_struct.pid`: of a thread.
    pub task_pid: u32,
    /// `task_struct.tgid`: of its process.
    pub task_tgid: u32,
    /// `task_struct.cgroups`, a pointer to a `css_set`; absent without cgroups.
    pub task_cgroups: u32,
}

impl Offsets {
    /// Offsets without any known field.
    pub const NONE: Self = Self {
        ctx_data: ABSENT,
        ctx_event: ABSENT,
        event_period: ABSENT,
        regs_ip: ABSENT,
        sample_flags: ABSENT,
        raw: ABSENT,
        raw_data: ABSENT,
        tid_entry: ABSENT,
        phys_addr: ABSENT,
        weight: ABSENT,
        data_src: ABSENT,
        data_page_size: ABSENT,
        callchain: ABSENT,
        time: ABSENT,
        pagefault_disabled: ABSENT,
        task_flags: ABSENT,
        task_pid: ABSENT,
        task_tgid: ABSENT,
        task_cgroups: ABSENT,
    };
}

/// The source of each fact of a sample, and how far the BPF program may trust the sample: bits of
/// [`Config::source`].
pub mod source {
    /// Process and thread come from `tid_entry` (Linux 6.3 and later, where the event asks for
    /// them); otherwise from the running task.
    pub const TID_FROM_SAMPLE: u32 = 1 << 0;
    /// A field is garbage unless its bit of `sample_flags` is set (Linux 6.1 and 6.2).
    pub const CHECK_FLAGS: u32 = 1 << 1;
    /// The raw record is an IBS fetch ([`crate::ibs::fetch`]); otherwise, if there is one, it is an
    /// op.
    pub const IBS_FETCH: u32 = 1 << 2;
    /// Address and latency are those of a tagged branch: the branch target, and the core cycles
    /// from tag to retirement.
    pub const OF_BRANCH: u32 = 1 << 3;
    /// The CPU has the errata of Zen 3; see [`crate::ibs::OutcomeBits::of_op`].
    pub const ZEN3_ERRATA: u32 = 1 << 4;
    /// Every sample is a store, even if the data source reports a load; see
    /// [`crate::data_src::DataSource::as_store`].
    pub const STORES: u32 = 1 << 5;
    /// The kernel takes a call chain only for a program that calls `bpf_get_stack` (Linux 6.1 and
    /// 6.2).
    pub const CALLS_FOR_CHAIN: u32 = 1 << 6;
    /// The time of the sample data is prepared (Linux 6.3 and later), before all else that the
    /// kernel looks up for the sample. So the measured cost includes call chains and page tables.
    pub const TIME_FROM_SAMPLE: u32 = 1 << 7;
    /// A timer takes the samples. The kernel passes each sample with the period with which the
    /// event was opened, even after the period has changed (`perf_swevent_hrtimer` of
    /// kernel/events/core.c passes `last_period`, which nothing updates). So the current period is
    /// read from the event itself. It is at least [`super::TIMER_LEAST_NS`].
    pub const PERIOD_FROM_EVENT: u32 = 1 << 8;
    /// Samples of the profiler itself are counted and not kept: those of the process
    /// [`super::Config::own`] and of the processes in [`crate::ledger::OWN`].
    pub const REJECT_OWN: u32 = 1 << 9;
    /// User stacks are unwound by the tables of [`crate::unwind`]; the kernel's call chain gives
    /// the kernel's frames only.
    pub const UNWIND: u32 = 1 << 10;
    /// Stacks of processes that the tables do not know yet are unwound by frame pointers.
    pub const FRAME_POINTERS: u32 = 1 << 11;
    /// The machine may run guests: a sample that is taken while one runs has the instruction
    /// [`crate::mode::IN_GUEST`] and no data address.
    pub const GUESTS: u32 = 1 << 12;
    /// The program reads the sample's data, and not only its registers and its event: see
    /// [`super::Config::reads_data`].
    pub const DATA: u32 = 1 << 13;
}

/// The destination of a sample that passes the filter: values of [`Config::mode`].
pub mod mode {
    /// The sample is added to the table.
    pub const AGGREGATE: u32 = 0;
    /// The sample is written to the event's own ring buffer, and the table stays empty (`precise
    /// script`).
    pub const STREAM: u32 = 1;
}

/// The parts of the map key: bits of [`Config::key`].
pub mod key {
    /// Instruction address.
    pub const IP: u32 = 1 << 0;
    /// Data address, masked with [`super::Config::address_mask`].
    pub const ADDRESS: u32 = 1 << 1;
    /// Cgroup.
    pub const CGROUP: u32 = 1 << 2;
    /// Process.
    pub const PID: u32 = 1 << 3;
    /// Thread.
    pub const TID: u32 = 1 << 4;
    /// Data source, masked with [`super::Config::data_src_mask`].
    pub const DATA_SRC: u32 = 1 << 5;
    /// Latency bucket. Without it, the latency is still summed.
    pub const LATENCY: u32 = 1 << 6;
    /// Outcome of the op or fetch ([`crate::ibs::OutcomeBits`]), masked with
    /// [`super::Config::data_src_mask`]. Cannot be combined with `DATA_SRC`, because both use the
    /// same bits of the class.
    pub const OUTCOME: u32 = 1 << 7;
    /// Width of the access, from the registers of IBS.
    pub const WIDTH: u32 = 1 << 8;
    /// Call chain ([`crate::stack`]). Cannot be combined with `ADDRESS`, because both use the same
    /// word.
    pub const STACK: u32 = 1 << 9;
    /// Size of the data's page. Cannot be combined with `WIDTH`, because both use the same bits of
    /// the class.
    pub const PAGE_SIZE: u32 = 1 << 10;
}

/// Promotion of cache lines, for runs that keep only some lines in detail: bits of
/// [`Config::promote`].
pub mod promote {
    /// An access keeps its address only if a HITM load has promoted its line; other accesses of the
    /// event are kept without address.
    pub const ON: u32 = 1 << 0;
    /// Lines are identified by their physical address if the sample has one, so that memory that
    /// processes share is one line.
    pub const BY_PHYSICAL: u32 = 1 << 1;
}

/// The facts that each sample has beside its IP, which are read and checked: bits of
/// [`Config::fields`].
pub mod field {
    /// The event has data addresses.
    pub const ADDRESS: u32 = 1 << 0;
    /// The event has latencies.
    pub const LATENCY: u32 = 1 << 1;
    /// The event has data sources.
    pub const DATA_SRC: u32 = 1 << 2;
    /// The event marks exact IPs.
    pub const EXACT: u32 = 1 << 3;
}

/// The operand of a filter slot: values of [`FilterSlot::operand`].
pub mod operand {
    /// No operand: this slot and all slots after it are not used.
    pub const NONE: u32 = 0;
    /// Instruction address.
    pub const IP: u32 = 1;
    /// Data address.
    pub const ADDRESS: u32 = 2;
    /// Access latency, in core cycles.
    pub const LATENCY: u32 = 3;
    /// `perf_mem_data_src`.
    pub const DATA_SRC: u32 = 4;
    /// Process id.
    pub const PID: u32 = 5;
    /// Thread id.
    pub const TID: u32 = 6;
    /// CPU number.
    pub const CPU: u32 = 7;
    /// Cgroup of the v2 hierarchy: `low` is the id, `high` is its level below the root. Matches the
    /// whole subtree.
    pub const CGROUP_SUBTREE: u32 = 8;
    /// Process name: `low` and `high` are its 16 bytes.
    pub const COMM: u32 = 9;
    /// 1 if the IP is in the kernel, otherwise 0.
    pub const KERNEL: u32 = 10;
    /// Physical data address.
    pub const PHYS_ADDRESS: u32 = 11;
    /// Size of the page that contains the data address, in bytes.
    pub const PAGE_SIZE: u32 = 12;
    /// User id.
    pub const UID: u32 = 13;
    /// Group id.
    pub const GID: u32 = 14;
    /// Cgroup id, as in the map key: one cgroup, not its subtree.
    pub const CGROUP: u32 = 15;
    /// [`crate::ibs::OutcomeBits`]; 0 if the sample has none.
    pub const OUTCOME: u32 = 16;
    /// Cgroups of the v2 hierarchy that are [`super::watched`], with their subtrees: `high` has the
    /// [`super::watched::levels`] below the root on which they may be.
    pub const CGROUP_WATCHED: u32 = 17;
}

/// The set of watched cgroups, which user space changes while a run goes on: open addressing in an
/// array of ids, in which 0 is a free entry. A search ends at a free entry, and passes the others.
pub mod watched {
    /// An entry whose id was removed, while ids behind it are still in the set. No cgroup has this
    /// id.
    pub const REMOVED: u64 = u64::MAX;
    /// The number of entries, a power of two. The array takes 32 KiB.
    pub const ROOM: u32 = 4096;
    /// The number of levels that are checked, from the root, which is level 0. A container in a
    /// node in a container is on level 12.
    pub const LEVELS: u64 = 24;

    /// Packs the levels from `first` to `last`, both included, into one word.
    pub const fn levels(first: u32, last: u32) -> u64 {
        first as u64 | (last as u64) << 32
    }

    /// Returns the first level of a word from [`levels`].
    pub const fn first(levels: u64) -> u64 {
        levels & 0xffff_ffff
    }

    /// Returns the last level of a word from [`levels`].
    pub const fn last(levels: u64) -> u64 {
        levels >> 32
    }

    /// Returns the index at which the probe number `probe` looks for an id; less than [`ROOM`].
    pub const fn place(id: u64, probe: u32) -> u32 {
        ((id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32).wrapping_add(probe) & (ROOM - 1)
    }
}

/// The comparison of a filter slot: values of [`FilterSlot::compare`].
pub mod compare {
    /// `low <= x && x <= high`.
    pub const RANGE: u32 = 0;
    /// `x & low != 0`: one of several one-hot bits.
    pub const ANY_BIT: u32 = 1;
    /// `(x & low) == high`.
    pub const MASKED: u32 = 2;
    /// `high & (1 << ((x >> low) & 63)) != 0`: the six bits from bit `low` on have one of the
    /// values in the set `high`.
    pub const IN_SET: u32 = 3;
    /// Added to any of the above: the slot holds if the comparison does not.
    pub const NOT: u32 = 0x100;
}

/// A filter slot: one compare.
///
/// A filter is a conjunction of clauses, each a disjunction of slots: a sample passes if every
/// clause has a slot that holds. The first clause that fails selects the ledger counter, so the
/// ledger shows how many samples each clause rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FilterSlot {
    /// The compared value; see [`operand`].
    pub operand: u32,
    /// The comparison; see [`compare`].
    pub compare: u32,
    /// The first argument; its meaning depends on `compare`.
    pub low: u64,
    /// The second argument; its meaning depends on `compare`.
    pub high: u64,
    /// The clause of the slot. Slots of the same clause are adjacent. The program gets
    /// [`crate::ledger::rejected`] of it, the word in which it counts.
    pub clause: u32,
    /// 1 if this is the last slot of its clause.
    pub ends_clause: u32,
}

/// The configuration of the BPF program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// The offsets of the kernel's fields.
    pub offsets: Offsets,
    /// The [`source`] bits.
    pub source: u32,
    /// The [`key`] bits.
    pub key: u32,
    /// The [`field`] bits.
    pub fields: u32,
    /// The number of cells in one CPU's partition, a power of two, minus one.
    pub slot_mask: u32,
    /// The number of cells that are probed for a key before the sample is counted as
    /// [`crate::ledger::Counter::TableFull`].
    pub probes: u32,
    /// The [`mode`].
    pub mode: u32,
    /// The [`promote`] bits.
    pub promote: u32,
    /// The capacity for promoted lines, a power of two, minus one.
    pub line_mask: u32,
    /// The number of chains in one CPU's partition, a power of two, minus one.
    pub stack_mask: u32,
    /// The number of entries of a chain that are read: [`crate::stack::ENTRIES`].
    pub stack_entries: u32,
    /// The process id of the profiler, as the program sees it; see [`source::REJECT_OWN`].
    pub own: u32,
    /// The number of entries for processes in the unwind tables, a power of two, minus one.
    pub process_mask: u32,
    /// The id of `pt_regs` in the kernel's type information, for programs at tracepoints.
    pub regs_type: u32,
    /// The number of frames of user space that are unwound by tables.
    pub stack_depth: u32,
    /// The number of rows of the ledger, one for each possible CPU.
    pub rows: u32,
    /// The number of halves of partitions in the table: two for each CPU that the run may sample.
    pub halves: u32,
    /// The size of one of them in bytes, a power of two, as its exponent: before Linux 6.11, the
    /// verifier does not follow a product whose second factor it does not know.
    pub half_shift: u32,
    /// The mask for data addresses in the map key: `!0x3f` groups by cache line.
    pub address_mask: u64,
    /// The mask for data sources or outcomes in the map key.
    pub data_src_mask: u64,
    /// The filter.
    pub slots: [FilterSlot; MAX_SLOTS],
}

const _: () = assert!(size_of::<Offsets>() == 19 * 4);
const _: () = assert!(size_of::<FilterSlot>() == 32);
const _: () = assert!(size_of::<Config>() == size_of::<Offsets>() + 17 * 4 + 2 * 8 + 32 * MAX_SLOTS);

impl Config {
    /// A configuration without fields, key and filter: a program with it only counts the samples
    /// that it sees.
    pub const EMPTY: Self = Self {
        offsets: Offsets::NONE,
        source: 0,
        key: 0,
        fields: 0,
        slot_mask: 0,
        probes: PROBES,
        mode: mode::AGGREGATE,
        promote: 0,
        line_mask: 0,
        stack_mask: 0,
        stack_entries: crate::stack::ENTRIES as u32,
        own: 0,
        process_mask: 0,
        regs_type: 0,
        stack_depth: crate::stack::MAX_FRAMES as u32,
        rows: 0,
        halves: 0,
        half_shift: 0,
        address_mask: !0,
        data_src_mask: crate::cell::Class::DATA_SRC_MASK,
        slots: [FilterSlot { operand: operand::NONE, compare: 0, low: 0, high: 0, clause: 0, ends_clause: 0 };
            MAX_SLOTS],
    };

    /// Returns whether the program reads the sample's data (`perf_sample_data`) itself: for
    /// anything but what its context, the event, the task and the CPU tell.
    ///
    /// A pointer that a program loads from one that the verifier trusts takes the verifier 2 ms
    /// (Linux 6.18: `btf_nested_type_is_trusted()` searches all types of the kernel, four times),
    /// so a program that does not need it does not have it ([`source::DATA`]).
    pub fn reads_data(&self) -> bool {
        const SOURCES: u32 = source::TID_FROM_SAMPLE
            | source::TIME_FROM_SAMPLE
            | source::CHECK_FLAGS
            | source::OF_BRANCH
            | source::IBS_FETCH;
        const OTHER_KEYS: u32 = key::IP | key::ADDRESS | key::CGROUP | key::PID | key::TID;
        const OTHER_FIELDS: u32 = field::ADDRESS | field::EXACT;
        let reads = |slot: &FilterSlot| {
            !matches!(
                slot.operand,
                operand::NONE
                    | operand::IP
                    | operand::ADDRESS
                    | operand::PID
                    | operand::TID
                    | operand::CPU
                    | operand::CGROUP_SUBTREE
                    | operand::COMM
                    | operand::KERNEL
                    | operand::UID
                    | operand::GID
                    | operand::CGROUP
                    | operand::CGROUP_WATCHED
            )
        };
        self.source & SOURCES != 0
            || self.key & !OTHER_KEYS != 0
            || self.fields & !OTHER_FIELDS != 0
            || self.promote != 0
            || self.slots.iter().any(reads)
    }
}

/// The value of [`Config::probes`]. If a table is filled to 60 %, one key in 9,000 finds no place;
/// to 80 %, one in 170 (simulated with random keys). With 8 probes it was one in 75, and one in 20.
pub const PROBES: u32 = 32;

/// The helper number that the loader replaces with a call of the kfunc `bpf_cast_to_kern_ctx`, if
/// the kernel has it.
///
/// aya 0.14 cannot relocate a kfunc call. aya 0.15 can; the sentinel can be removed once this
/// project meets its minimum Rust version (1.98).
pub const CAST_SENTINEL: u32 = 0x7072_6563;

/// The helper number that the loader replaces with a call of the kfunc `bpf_rdonly_cast`, in the
/// program for tracepoints. See [`CAST_SENTINEL`].
pub const TYPED_SENTINEL: u32 = 0x7072_6564;

/// The upper half of the operand of each instruction that loads a constant of the filter block. The
/// lower half is the byte offset in [`Config`].
///
/// As read-only data, the constants would cost a load each, and several cache lines that are cold
/// when the sample arrives: measured, 40 ns of the 67 ns that a rejected sample took.
pub const CONSTANT_SENTINEL: u32 = 0x7072_6364;
/// Added to the offset of a constant of eight bytes; a constant without it has four bytes.
pub const CONSTANT_WIDE: u64 = 1 << 31;

/// A question about one word of the filter block, which is answered before the program is loaded.
///
/// In the program, one instruction puts the encoded question into a register, and the next one
/// jumps if it is not 0. The loader knows the answer, so it makes both a jump or nothing, and
/// removes the code of the other answer. A test of a constant would leave more code behind: loading
/// the word, masking it, and keeping it for the next test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The byte offset in [`Config`] of a word of four bytes.
    pub offset: usize,
    /// The test of the word.
    pub test: QuestionTest,
}

/// The test of a [`Question`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionTest {
    /// Whether the bit with this number is set.
    Bit(u32),
    /// Whether the lower eight bits are equal to this number.
    Is(u32),
}

impl Question {
    /// The mark of a question: the upper 14 bits of its operand. The first bit is 0, because
    /// operands are sign-extended.
    const MARK: u32 = 0x172d;

    /// Returns the operand that encodes the question.
    pub const fn encode(self) -> u32 {
        assert!(self.offset.is_multiple_of(4) && self.offset < size_of::<Config>());
        let test = match self.test {
            QuestionTest::Bit(bit) => bit % 32,
            QuestionTest::Is(value) => 1 << 8 | value & 0xff,
        };
        Self::MARK << 18 | (self.offset as u32 / 4) << 9 | test
    }

    /// Decodes an operand. Returns `None` if it is not a question about a word of the filter block.
    pub const fn decode(operand: u32) -> Option<Self> {
        let offset = (operand >> 9 & 0x1ff) as usize * 4;
        if operand >> 18 != Self::MARK || offset >= size_of::<Config>() {
            return None;
        }
        let value = operand & 0xff;
        let test = if operand & 1 << 8 == 0 { QuestionTest::Bit(value) } else { QuestionTest::Is(value) };
        Some(Self { offset, test })
    }

    /// Returns the answer for this word.
    pub const fn answer(self, word: u32) -> bool {
        match self.test {
            QuestionTest::Bit(bit) => word >> (bit % 32) & 1 != 0,
            QuestionTest::Is(value) => word & 0xff == value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_survive_their_encoding() {
        for offset in (0..size_of::<Config>()).step_by(4) {
            for test in (0..32).map(QuestionTest::Bit).chain((0..256).map(QuestionTest::Is)) {
                let question = Question { offset, test };
                assert_eq!(Question::decode(question.encode()), Some(question));
                assert!(question.encode() as i32 > 0, "operands are sign-extended");
            }
        }
        for operand in [0, 1, u32::MAX, CONSTANT_SENTINEL, CAST_SENTINEL] {
            assert_eq!(Question::decode(operand), None);
        }
    }

    #[test]
    fn answers_are_about_one_word() {
        let ask = |test| Question { offset: 0, test };
        assert!(ask(QuestionTest::Bit(31)).answer(1 << 31) && !ask(QuestionTest::Bit(30)).answer(1 << 31));
        assert!(ask(QuestionTest::Is(3)).answer(0x103) && !ask(QuestionTest::Is(3)).answer(0x104));
    }
}
