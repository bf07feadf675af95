//! Step 1: reads the kernel's data of the sample.
//!
//! The context of a `perf_event` program is a `struct bpf_perf_event_data_kern { regs, data, event
//! }`. On every kernel, a program may read the registers, the period and the data address from it
//! directly. The offsets of other fields come from the running kernel's BTF, as constants.

mod access;
mod constants;
pub mod fault;
mod guest;
mod ibs;

use core::{ffi::c_void, marker::PhantomData, ptr};

use aya_ebpf::helpers::{
    bpf_get_current_pid_tgid,
    generated::{bpf_get_current_cgroup_id, bpf_get_current_task_btf},
};
use precise_common::{
    config::{TIMER_LEAST_NS, field, key, promote, source},
    data_src::DataSource,
    ibs::OutcomeBits,
    sample_bits,
};

pub(crate) use self::constants::{asks, config, constant, element};
use self::ibs::TaggedFacts;
pub use self::{
    access::{Direct, KernelRead, ProbeReads},
    guest::{GuestMask, LedgerMark, guests_may_run},
};

/// Returns whether an offset is [`ABSENT`]: no field is at or above 2 GiB.
macro_rules! absent {
    ($field:ident) => {
        crate::read::asks!(offsets.$field, has 1u32 << 31)
    };
}

/// Set in `pt_regs.flags` by the PEBS and IBS drivers when the IP is exact.
const PERF_EFLAGS_EXACT: u64 = 1 << 3;

/// Reads a field that is only valid if one of `bits` is set in `sample_flags`; 0 otherwise.
macro_rules! gated {
    ($sample:ident, $field:ident, $bits:expr) => {
        if !A::OF_EVENT || absent!($field) || (asks!(source, has source::CHECK_FLAGS) && $sample.lacks($bits)?) {
            Some(0)
        } else {
            A::u64($sample.data, config!(offsets.$field))
        }
    };
}

/// A sample, whose facts are read on demand.
pub struct SampleContext<A> {
    ctx: *mut c_void,
    pub(crate) kernel_ctx: *const u8,
    pub(crate) data: *const u8,
    /// The running task if [`Self::arrived`] or [`Self::kept`] asked for it; otherwise null.
    pub(crate) task: *const u8,
    access: PhantomData<A>,
}

/// The ids of a sample's task, each in a register of its own: most runs need only one.
#[derive(Clone, Copy)]
pub struct TaskIds {
    /// The process id (thread group).
    pub process: u64,
    /// The thread id.
    pub thread: u64,
}

impl TaskIds {
    /// Those of a run that needs none.
    const NONE: Self = Self { process: 0, thread: 0 };

    /// Returns the ids that the helper returned.
    #[inline(always)]
    fn of_helper(word: u64) -> Self {
        Self { process: word >> 32, thread: word & 0xffff_ffff }
    }
}

/// The facts of a sample that passed the filter.
pub struct Facts {
    /// Whether a guest ran.
    pub guest: GuestMask,
    /// What [`SampleContext::ids`] returned.
    pub ids: TaskIds,
    /// Precise instruction address, or [`precise_common::mode::IN_GUEST`].
    pub ip: u64,
    /// Number of events that the sample stands for.
    pub period: u64,
    /// Data address; 0 if there is none.
    pub address: u64,
    /// What the ledger is to count when the sample is in the table. One number, because all that is
    /// kept until then takes room in the frame; and none that the key has, because the verifier
    /// would then follow each key to the end.
    pub mark: LedgerMark,
    /// Access latency in core cycles; 0 if there is none.
    pub latency: u32,
    /// `perf_mem_data_src`; 0 if there is none.
    pub data_src: u64,
    /// Whether the hardware marked the IP as exact.
    pub exact: bool,
    /// Outcome of the op or fetch; `None` if the raw record is missing.
    pub outcome: Option<OutcomeBits>,
    /// Width of the access in bytes, as its power of two plus 1; 0 if not known.
    pub width: u32,
}

impl<A: KernelRead> SampleContext<A> {
    /// Opens the sample of this context.
    #[inline(always)]
    pub fn open(ctx: *mut c_void) -> Self {
        let kernel_ctx = A::context(ctx);
        // A run that never reads the sample's data does not load the pointer to it.
        let data = if asks!(source, has source::DATA) { A::data(kernel_ctx) } else { ptr::null() };
        Self::of(ctx, kernel_ctx, data, ptr::null())
    }

    /// Opens the sample of this context, which must be counted. Whether the CPU was idle is asked
    /// of each sample of a timer.
    #[inline(always)]
    pub fn arrived(ctx: *mut c_void) -> Self {
        let sample = Self::open(ctx);
        if Self::arrives_with_task() { sample.with_task() } else { sample }
    }

    /// Returns whether a sample that has [`Self::arrived`] knows its task.
    #[inline(always)]
    fn arrives_with_task() -> bool {
        A::TYPED && asks!(source, has source::PERIOD_FROM_EVENT)
    }

    /// Returns this sample, which passed the filter, with what its key needs.
    #[inline(always)]
    pub fn kept(&self) -> Self {
        let sample = Self::of(self.ctx, self.kernel_ctx, self.data, self.task);
        if !Self::arrives_with_task() && Self::groups_by_cgroup() { sample.with_task() } else { sample }
    }

    /// Returns whether a sample that is [`Self::kept`] knows its task.
    #[inline(always)]
    fn is_kept_with_task() -> bool {
        Self::arrives_with_task() || Self::groups_by_cgroup()
    }

    /// Returns whether the key needs the task, for its cgroup.
    #[inline(always)]
    fn groups_by_cgroup() -> bool {
        A::TYPED && asks!(key, has key::CGROUP)
    }

    #[inline(always)]
    fn with_task(self) -> Self {
        // SAFETY: a helper without arguments.
        let task = unsafe { bpf_get_current_task_btf() }.cast_const().cast();
        Self { task, ..self }
    }

    /// Returns the sample of this context, which is open already.
    #[inline(always)]
    pub fn of(ctx: *mut c_void, kernel_ctx: *const u8, data: *const u8, task: *const u8) -> Self {
        Self { ctx, kernel_ctx, data, task, access: PhantomData }
    }

    /// Reads all facts that the run uses; `ids` are those of [`Self::ids`], and `period` is that of
    /// [`Self::period`].
    #[inline(always)]
    pub fn facts(&self, ids: TaskIds, period: u64) -> Option<Facts> {
        // Several facts may come from the registers of IBS, so the registers are read once. Not an
        // `Option`: the compiler keeps its content on the stack where there is none, and the
        // verifier refuses to store a register that was never set.
        let (is_tagged, record) = if A::OF_EVENT
            && (asks!(key, has key::OUTCOME)
                || asks!(key, has key::WIDTH)
                || asks!(source, has source::OF_BRANCH)
                || asks!(source, has source::IBS_FETCH))
        {
            let mut record = TaggedFacts::NONE;
            let is_tagged = ibs::read::<A>(self.ctx, &mut record);
            (is_tagged, record)
        } else {
            // Not the same words of the stack as above: clearing them is a call, of a function that
            // writes byte after byte.
            (false, TaggedFacts::NONE)
        };
        // First, while few values must outlive a call for the task.
        let (guest, ip) = if guests_may_run::<A>() {
            let guest = self.kept_guest()?;
            (guest, guest.host_ip(self.ip()?))
        } else {
            (GuestMask::NONE, self.ip()?)
        };
        let address = if asks!(fields, has field::ADDRESS) {
            self.address_from(|| if is_tagged { record.target } else { 0 })?
        } else {
            0
        };
        Some(Facts {
            guest,
            ids,
            ip,
            period,
            address: if guests_may_run::<A>() { guest.host_fact(address) } else { address },
            mark: if guests_may_run::<A>() { guest.mark(address) } else { LedgerMark(address) },
            latency: if asks!(fields, has field::LATENCY) {
                self.latency_from(|| if is_tagged { record.latency } else { 0 })?
            } else {
                0
            },
            data_src: if asks!(fields, has field::DATA_SRC) { self.data_src()? } else { 0 },
            exact: asks!(fields, has field::EXACT) && self.exact(),
            outcome: if asks!(key, has key::OUTCOME) && is_tagged { Some(record.outcome) } else { None },
            width: if asks!(key, has key::WIDTH) && is_tagged { record.outcome.width_code() } else { 0 },
        })
    }

    /// Returns the number of events that this sample stands for. Call this once per sample: for a
    /// timer it loads a pointer, which is slow to verify
    /// ([`precise_common::config::Config::reads_data`]).
    #[inline(always)]
    pub fn period(&self) -> u64 {
        if A::OF_EVENT && asks!(source, has source::PERIOD_FROM_EVENT) {
            return self.period_of_timer();
        }
        A::period(self.ctx)
    }

    /// Returns the nanoseconds that a timer's sample stands for. Returns 0 if the event cannot be
    /// read: then the sample counts for nothing, and the coverage shows it.
    #[inline(always)]
    fn period_of_timer(&self) -> u64 {
        // The kernel sets the timer from this word, and sets it again when the word changes, both
        // with interrupts disabled. When the timer fires, the word is the value that the timer was
        // set to.
        let event = A::u64(self.kernel_ctx, config!(offsets.ctx_event)).unwrap_or(0) as *const u8;
        let period = A::u64(event, config!(offsets.event_period)).unwrap_or(0);
        if period > 0 && period < TIMER_LEAST_NS { TIMER_LEAST_NS } else { period }
    }

    /// Returns the time at which the kernel began to prepare the sample, in nanoseconds of
    /// `CLOCK_MONOTONIC`; only with [`source::TIME_FROM_SAMPLE`].
    #[inline(always)]
    pub fn time(&self) -> Option<u64> {
        A::u64(self.data, config!(offsets.time))
    }

    /// Returns the precise instruction address; where a guest ran, it says nothing about the host's
    /// code.
    #[inline(always)]
    pub fn ip(&self) -> Option<u64> {
        // The PEBS and IBS drivers put the precise IP into the registers that they pass on.
        A::ip(self.ctx, self.kernel_ctx)
    }

    /// Returns whether the hardware marked the IP as exact.
    #[inline(always)]
    pub fn exact(&self) -> bool {
        A::flags(self.ctx) & PERF_EFLAGS_EXACT != 0
    }

    /// Returns whether `sample_flags` has none of these bits.
    #[inline(always)]
    pub(crate) fn lacks(&self, bits: u64) -> Option<bool> {
        Some(A::u64(self.data, config!(offsets.sample_flags))? & bits == 0)
    }

    /// Returns the facts from the raw record of an IBS event; `None` if there is no record.
    #[inline(always)]
    pub fn tagged(&self) -> Option<TaggedFacts> {
        let mut tagged = TaggedFacts::NONE;
        if A::OF_EVENT && ibs::read::<A>(self.ctx, &mut tagged) { Some(tagged) } else { None }
    }

    /// Returns the data address, or a branch's target; 0 if there is none. Where a guest ran, it is
    /// the guest's.
    #[inline(always)]
    pub fn address(&self) -> Option<u64> {
        self.address_from(|| self.tagged().map_or(0, |tagged| tagged.target))
    }

    #[inline(always)]
    fn address_from(&self, target: impl FnOnce() -> u64) -> Option<u64> {
        if A::OF_EVENT && asks!(source, has source::OF_BRANCH) {
            return Some(target());
        }
        if A::OF_EVENT && asks!(source, has source::CHECK_FLAGS) && self.lacks(sample_bits::ADDR)? {
            return Some(0);
        }
        Some(A::address(self.ctx))
    }

    /// Returns the access latency, or the latency of the tagged op or fetch, in core cycles; 0 if
    /// there is none.
    #[inline(always)]
    pub fn latency(&self) -> Option<u32> {
        self.latency_from(|| self.tagged().map_or(0, |tagged| tagged.latency))
    }

    #[inline(always)]
    fn latency_from(&self, tagged: impl FnOnce() -> u32) -> Option<u32> {
        if asks!(source, has source::OF_BRANCH) || asks!(source, has source::IBS_FETCH) {
            return Some(tagged());
        }
        // The lower half of `PERF_SAMPLE_WEIGHT_STRUCT`, which is the requested field.
        Some(gated!(self, weight, sample_bits::WEIGHT_STRUCT)? as u32)
    }

    /// Returns `perf_mem_data_src`; 0 if there is none.
    #[inline(always)]
    pub fn data_src(&self) -> Option<u64> {
        let word = gated!(self, data_src, sample_bits::DATA_SRC)?;
        Some(if asks!(source, has source::STORES) { DataSource::as_store(word) } else { word })
    }

    /// Returns the physical data address; 0 if there is none. Where a guest ran, it is the guest's.
    #[inline(always)]
    pub fn phys_address(&self) -> Option<u64> {
        gated!(self, phys_addr, sample_bits::PHYS_ADDR)
    }

    /// Returns the size of the page that contains the data address, in bytes; 0 if not known. Where
    /// a guest ran, it is that of another page.
    #[inline(always)]
    pub fn page_size(&self) -> Option<u64> {
        gated!(self, data_page_size, sample_bits::DATA_PAGE_SIZE)
    }

    /// Returns the address of the kernel's call chain; 0 if there is none.
    #[inline(always)]
    pub fn callchain(&self) -> Option<u64> {
        gated!(self, callchain, sample_bits::CALLCHAIN)
    }

    /// Returns the ids of the task: from the sample, those in the pid namespace of the process that
    /// opened the event; from the helper, those in the initial one.
    #[inline(always)]
    pub fn pid_tid(&self) -> Option<TaskIds> {
        self.pid_tid_from(Self::arrives_with_task)
    }

    /// `has_task` says whether the task is known.
    #[inline(always)]
    fn pid_tid_from(&self, has_task: impl FnOnce() -> bool) -> Option<TaskIds> {
        if A::OF_EVENT && asks!(likely source, has source::TID_FROM_SAMPLE) {
            // Two loads, because the verifier does not allow one that spans two members.
            let (data, offset) = (self.data, config!(offsets.tid_entry));
            Some(TaskIds { process: A::u32(data, offset)? as u64, thread: A::u32(data, offset + 4)? as u64 })
        } else if has_task() {
            let (process, thread) = (config!(offsets.task_tgid), config!(offsets.task_pid));
            Some(TaskIds {
                process: A::u32(self.task, process)? as u64,
                thread: A::u32(self.task, thread)? as u64,
            })
        } else {
            Some(TaskIds::of_helper(bpf_get_current_pid_tgid()))
        }
    }

    /// Returns whether the CPU was idle; only of a sample of a timer. The id in the initial
    /// namespace decides: in another one, the tasks outside of it have the id 0 too.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        if A::TYPED {
            A::u32(self.task, config!(offsets.task_pid)) == Some(0)
        } else {
            bpf_get_current_pid_tgid() == 0
        }
    }

    /// Returns the ids of [`Self::pid_tid`] if anything needs them that is done for a sample that
    /// passed the filter; otherwise zeros. They are read once, because a helper may have to be
    /// called.
    #[inline(always)]
    pub fn ids(&self) -> Option<TaskIds> {
        if asks!(likely key, has key::PID)
            || asks!(source, has source::REJECT_OWN)
            || asks!(key, has key::TID)
            || asks!(promote, has promote::ON)
        {
            self.pid_tid_from(Self::is_kept_with_task)
        } else {
            Some(TaskIds::NONE)
        }
    }

    /// Returns the cgroup id, in the unified hierarchy.
    #[inline(always)]
    pub fn cgroup(&self) -> u64 {
        // SAFETY: a helper without arguments.
        unsafe { bpf_get_current_cgroup_id() }
    }

    /// Returns the address of the task's `css_set` for a sample that is [`Self::kept`], by a run
    /// that groups by cgroup; `None` if it is not known.
    #[inline(always)]
    pub fn cgroup_set(&self) -> Option<u64> {
        if A::TYPED && !absent!(task_cgroups) {
            A::u64(self.task, config!(offsets.task_cgroups))
        } else {
            None
        }
    }
}
