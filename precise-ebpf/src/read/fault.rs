//! A page fault at the kernel's tracepoints `page_fault_user` and `page_fault_kernel`.
//!
//! The kernel takes 140 ns for each sample of a perf event with an empty program, and 55 ns for a
//! program at a tracepoint. So where every page fault is a sample, the program runs at these
//! tracepoints (docs/journal/0020-each-fault.md). They see more than the event counts, which
//! [`counts`] leaves out.
//!
//! Their arguments are the address, the registers and the error code (`exc_page_fault()` in
//! arch/x86/mm/fault.c). They are in the program's context, as words.

use core::{ffi::c_void, mem::transmute};

use aya_ebpf::helpers::generated::bpf_get_current_task_btf;
use precise_common::{config::TYPED_SENTINEL, mode::in_kernel};

use super::{Direct, KernelRead, config};

/// The arguments of the tracepoints.
#[repr(C)]
struct Arguments {
    address: u64,
    regs: u64,
    error_code: u64,
}

/// Set in the error code if the CPU was in user mode (`X86_PF_USER`).
const USER: u64 = 1 << 2;

/// Returns whether `PERF_COUNT_SW_PAGE_FAULTS` counts this fault (`do_user_addr_fault()`): the
/// address is one of user space, and the kernel does not access it with page faults disabled, in
/// which case it only wants to know whether the page is there.
#[inline(always)]
pub fn counts(ctx: *mut c_void) -> bool {
    let arguments = ctx.cast_const().cast::<Arguments>();
    // SAFETY: the kernel gives the program at these tracepoints three words.
    let (address, error_code) = unsafe { ((*arguments).address, (*arguments).error_code) };
    if in_kernel(address) {
        return false;
    }
    if error_code & USER != 0 {
        return true;
    }
    // SAFETY: a helper without arguments.
    let task = unsafe { bpf_get_current_task_btf() }.cast_const().cast();
    Direct::u32(task, config!(offsets.pagefault_disabled)) == Some(0)
}

/// A page fault, at a tracepoint.
pub struct AtFault;

impl KernelRead for AtFault {
    const OF_EVENT: bool = false;

    /// Returns the registers.
    #[inline(always)]
    fn context(ctx: *mut c_void) -> *const u8 {
        // SAFETY: as in `counts`.
        let (regs, of_regs) = (unsafe { (*ctx.cast_const().cast::<Arguments>()).regs }, config!(regs_type));
        // SAFETY: this number is never called: the loader replaces the instruction with a call of
        // the kfunc `void *bpf_rdonly_cast(const void *, u32)`, which gives the address its type.
        unsafe {
            let typed: unsafe extern "C" fn(u64, u64) -> *const u8 = transmute(TYPED_SENTINEL as usize);
            typed(regs, of_regs)
        }
    }

    #[inline(always)]
    fn u64(base: *const u8, offset: u64) -> Option<u64> {
        Direct::u64(base, offset)
    }

    #[inline(always)]
    fn u32(base: *const u8, offset: u64) -> Option<u32> {
        Direct::u32(base, offset)
    }

    /// There is none.
    #[inline(always)]
    fn data(_registers: *const u8) -> *const u8 {
        core::ptr::null()
    }

    #[inline(always)]
    fn ip(_ctx: *mut c_void, registers: *const u8) -> Option<u64> {
        Self::u64(registers, config!(offsets.regs_ip))
    }

    /// No fault is marked.
    #[inline(always)]
    fn flags(_ctx: *mut c_void) -> u64 {
        0
    }

    #[inline(always)]
    fn period(_ctx: *mut c_void) -> u64 {
        1
    }

    #[inline(always)]
    fn address(ctx: *mut c_void) -> u64 {
        // SAFETY: as in `counts`.
        unsafe { (*ctx.cast_const().cast::<Arguments>()).address }
    }
}
