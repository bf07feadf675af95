//! Whether a virtual machine of this host ran when a sample was taken
//! (docs/journal/0030-guests.md).

use aya_ebpf::helpers::generated::bpf_get_current_task_btf;
use precise_common::{
    config::{TASK_RUNS_GUEST, field, source},
    mode::IN_GUEST,
};

use super::{KernelRead, SampleContext, asks, config};

/// Returns whether guests may run where the samples are taken.
#[inline(always)]
pub fn guests_may_run<A: KernelRead>() -> bool {
    A::OF_EVENT && asks!(source, has source::GUESTS)
}

/// Whether the CPU ran a guest when a sample was taken. A sample of IBS has the guest's addresses
/// then, and one of a timer the host's instruction at which the guest's turn ended.
///
/// It is a mask, all ones if a guest ran, so that addresses depend on no branch: the verifier would
/// follow both sides to the end of the program, which would take it twice as long.
#[derive(Clone, Copy)]
pub struct GuestMask(u64);

impl GuestMask {
    /// No guest ran.
    pub const NONE: Self = Self(0);

    /// Returns an instruction of the host; [`IN_GUEST`] in place of a guest's.
    #[inline(always)]
    pub fn host_ip(self, ip: u64) -> u64 {
        ip ^ ((ip ^ IN_GUEST) & self.0)
    }

    /// Returns what the ledger is to count of a sample with this data address.
    #[inline(always)]
    pub fn mark(self, address: u64) -> LedgerMark {
        LedgerMark(if asks!(fields, has field::ADDRESS) { self.host_ip(address) } else { self.0 })
    }

    /// Returns a fact about an address of the host; 0 in place of one about a guest's.
    #[inline(always)]
    pub fn host_fact(self, fact: u64) -> u64 {
        fact & !self.0
    }
}

/// What the ledger counts of a sample: that a guest ran, or that there is no data address.
///
/// In a run with data addresses, it is [`IN_GUEST`] or the address; in one without, the guest's
/// mask.
#[derive(Clone, Copy)]
pub struct LedgerMark(pub(super) u64);

impl LedgerMark {
    /// Returns whether a guest ran.
    #[inline(always)]
    pub fn is_guest<A: KernelRead>(self) -> bool {
        if !guests_may_run::<A>() {
            false
        } else if asks!(fields, has field::ADDRESS) {
            self.0 == IN_GUEST
        } else {
            self.0 != 0
        }
    }

    /// Returns whether there is no data address, in a run with data addresses.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl<A: KernelRead> SampleContext<A> {
    /// Returns whether a guest ran when this sample [`Self::arrived`].
    #[inline(always)]
    pub fn guest(&self) -> Option<GuestMask> {
        self.guest_if(Self::arrives_with_task)
    }

    /// Returns whether a guest ran when this sample was taken, which is [`Self::kept`].
    #[inline(always)]
    pub fn kept_guest(&self) -> Option<GuestMask> {
        self.guest_if(Self::is_kept_with_task)
    }

    /// `has_task` says whether the task is known.
    #[inline(always)]
    fn guest_if(&self, has_task: impl FnOnce() -> bool) -> Option<GuestMask> {
        let task = if has_task() {
            self.task
        } else {
            // SAFETY: a helper without arguments.
            unsafe { bpf_get_current_task_btf() }.cast_const().cast()
        };
        const { assert!(TASK_RUNS_GUEST == 1) };
        let mut mask = A::u32(task, config!(offsets.task_flags))? as u64;
        // Sets all bits to the lowest. The compiler would make a branch of a mask that it
        // understands.
        // SAFETY: a register is written; nothing else is touched.
        unsafe {
            core::arch::asm!(
                "{mask} <<= 63",
                "{mask} s>>= 63",
                mask = inout(reg) mask,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        Some(GuestMask(mask))
    }
}
