//! How the program reads kernel memory: by loads that the verifier checks, or by a helper.

use core::{ffi::c_void, mem::transmute, ptr};

use aya_ebpf::{bindings::bpf_perf_event_data, helpers::bpf_probe_read_kernel};
use precise_common::config::CAST_SENTINEL;

use super::config;

/// Reads a field of the context as programs see it on every kernel. The verifier turns that into
/// loads of the registers and of the sample's data that need no check.
macro_rules! of_context {
    ($ctx:ident, $($field:tt)+) => {
        // SAFETY: the kernel gives the program of a perf event this context.
        unsafe { ptr::read_volatile(&raw const (*$ctx.cast::<bpf_perf_event_data>()).$($field)+) }
    };
}

/// Where a program is attached, and how it reads kernel memory there.
///
/// What is provided here holds for samples of perf events.
pub trait KernelRead {
    /// Whether each sample is one of a perf event, which has prepared data for it.
    const OF_EVENT: bool = true;
    /// Whether loads from a typed pointer are cheap, so that the task is asked for once and then
    /// read, instead of one helper for each of its facts.
    const TYPED: bool = true;

    /// Returns what the program knows the sample by: for a perf event, the
    /// `bpf_perf_event_data_kern` of its context.
    fn context(ctx: *mut c_void) -> *const u8;

    /// Reads eight bytes at `base + offset`; `None` if they cannot be read.
    fn u64(base: *const u8, offset: u64) -> Option<u64>;

    /// Reads four bytes at `base + offset`; `None` if they cannot be read.
    fn u32(base: *const u8, offset: u64) -> Option<u32>;

    /// Returns the `perf_sample_data` of a sample, by what [`Self::context`] returned. If the
    /// pointer cannot be read, it is null, which cannot be read either: then every fact is missing.
    #[inline(always)]
    fn data(context: *const u8) -> *const u8 {
        Self::u64(context, config!(offsets.ctx_data)).unwrap_or(0) as *const u8
    }

    /// Returns the instruction pointer of a sample, by the program's context and what
    /// [`Self::context`] returned.
    #[inline(always)]
    fn ip(ctx: *mut c_void, _context: *const u8) -> Option<u64> {
        Some(of_context!(ctx, regs.rip))
    }

    /// Returns the flags register of a sample.
    #[inline(always)]
    fn flags(ctx: *mut c_void) -> u64 {
        of_context!(ctx, regs.eflags)
    }

    /// Returns the number of events that a sample stands for.
    #[inline(always)]
    fn period(ctx: *mut c_void) -> u64 {
        of_context!(ctx, sample_period)
    }

    /// Returns the data address of a sample, which must be valid; 0 if there is none.
    #[inline(always)]
    fn address(ctx: *mut c_void) -> u64 {
        of_context!(ctx, addr)
    }
}

/// Direct loads from a BTF pointer: the verifier knows its type, and a fault reads as zero.
pub struct Direct;

impl KernelRead for Direct {
    #[inline(always)]
    fn context(ctx: *mut c_void) -> *const u8 {
        // SAFETY: this number is never called: the loader replaces the instruction with a call of
        // the kfunc `void *bpf_cast_to_kern_ctx(void *)` before the kernel sees it.
        unsafe {
            let cast: unsafe extern "C" fn(*mut c_void) -> *const u8 = transmute(CAST_SENTINEL as usize);
            cast(ctx)
        }
    }

    #[inline(always)]
    fn u64(base: *const u8, offset: u64) -> Option<u64> {
        // SAFETY: the verifier has proved that `base` is a BTF pointer and that a field of this
        // size is there.
        Some(unsafe { ptr::read_volatile(base.add(offset as usize).cast()) })
    }

    #[inline(always)]
    fn u32(base: *const u8, offset: u64) -> Option<u32> {
        // SAFETY: as above.
        Some(unsafe { ptr::read_volatile(base.add(offset as usize).cast()) })
    }
}

/// Reads with `bpf_probe_read_kernel`, for kernels before 6.2, which do not have the kfunc.
pub struct ProbeReads;

impl KernelRead for ProbeReads {
    const TYPED: bool = false;

    #[inline(always)]
    fn context(ctx: *mut c_void) -> *const u8 {
        ctx.cast_const().cast()
    }

    #[inline(always)]
    fn u64(base: *const u8, offset: u64) -> Option<u64> {
        // SAFETY: the helper checks the address.
        unsafe { bpf_probe_read_kernel(base.add(offset as usize).cast()).ok() }
    }

    #[inline(always)]
    fn u32(base: *const u8, offset: u64) -> Option<u32> {
        // SAFETY: the helper checks the address.
        unsafe { bpf_probe_read_kernel(base.add(offset as usize).cast()).ok() }
    }
}
