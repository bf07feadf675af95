//! Step 1: the kernel's view of the sample.
//!
//! The context of a `perf_event` program is a `struct bpf_perf_event_data_kern { regs, data, event }`. Its fields' offsets
//! come from the running kernel's BTF, as constants.

use core::{ffi::c_void, marker::PhantomData, mem::transmute, ptr};

use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_probe_read_kernel};
use precise_common::config::{ABSENT, CAST_SENTINEL, field, source};

/// The constant at a byte offset of the filter block: four bytes there, or eight where `CONSTANT_WIDE` is added to it.
///
/// It is the operand of an instruction, not memory: the loader finds each such instruction by its sentinel and writes the
/// constant into it before the kernel sees the program. So a constant costs no load and no cache line, and the verifier
/// removes every branch that it decides. (A macro, because only `asm!` takes an offset computed from a generic parameter.)
macro_rules! constant {
    ($offset:expr) => {{
        let value: u64;
        // SAFETY: a 64-bit immediate load; it touches nothing but its output.
        unsafe {
            core::arch::asm!(
                "{value} = {sentinel} ll",
                value = out(reg) value,
                sentinel = const ((precise_common::config::CONSTANT_SENTINEL as u64) << 32 | $offset) as i64,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        value
    }};
}
pub(crate) use constant;

/// A constant of the filter block by its path: `config!(offsets.ip)`, `config!(wide address_mask)`. It is a `u64` also
/// where the field has four bytes: narrowing costs instructions.
macro_rules! config {
    (wide $($path:tt)+) => {
        crate::read::constant!(
            core::mem::offset_of!(precise_common::config::Config, $($path)+) as u64
                | precise_common::config::CONSTANT_WIDE
        )
    };
    ($($path:tt)+) => {
        crate::read::constant!(core::mem::offset_of!(precise_common::config::Config, $($path)+) as u64)
    };
}
pub(crate) use config;

/// How kernel memory is read.
pub trait Access {
    /// The `bpf_perf_event_data_kern` behind the program's context.
    fn context(ctx: *mut c_void) -> *const u8;
    /// Eight bytes at `base + offset`; `None` when they cannot be read.
    fn u64(base: *const u8, offset: u64) -> Option<u64>;
    /// Four bytes at `base + offset`; `None` when they cannot be read.
    fn u32(base: *const u8, offset: u64) -> Option<u32>;
}

/// Direct loads from a BTF pointer: the verifier knows its type, and a fault reads as zero.
pub struct Direct;

impl Access for Direct {
    #[inline(always)]
    fn context(ctx: *mut c_void) -> *const u8 {
        // SAFETY: not a call through this number: the loader replaces the instruction by a call of the kfunc
        // `void *bpf_cast_to_kern_ctx(void *)` before the kernel sees it.
        unsafe {
            let cast: unsafe extern "C" fn(*mut c_void) -> *const u8 = transmute(CAST_SENTINEL as usize);
            cast(ctx)
        }
    }

    #[inline(always)]
    fn u64(base: *const u8, offset: u64) -> Option<u64> {
        // SAFETY: the verifier has proved that `base` is a BTF pointer and that a field of this size is there.
        Some(unsafe { ptr::read_volatile(base.add(offset as usize).cast()) })
    }

    #[inline(always)]
    fn u32(base: *const u8, offset: u64) -> Option<u32> {
        // SAFETY: as above.
        Some(unsafe { ptr::read_volatile(base.add(offset as usize).cast()) })
    }
}

/// `bpf_probe_read_kernel`: for kernels before 6.2, which have no such kfunc.
pub struct Probe;

impl Access for Probe {
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

/// `PERF_SAMPLE_*` bits, as `sample_flags` has them.
mod flag {
    pub const ADDR: u64 = 1 << 3;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// Set in `pt_regs.flags` by the PEBS and IBS drivers when the IP is exact.
const PERF_EFLAGS_EXACT: u64 = 1 << 3;

/// One sample. What every run needs is read at once; the rest when it is asked for.
pub struct Sample<A> {
    data: *const u8,
    flags: u64,
    /// Precise instruction address.
    pub ip: u64,
    /// Events that this sample stands for.
    pub period: u64,
    /// Data address; 0 when there is none.
    pub address: u64,
    /// Access latency, core cycles; 0 when there is none.
    pub latency: u32,
    /// `perf_mem_data_src`; 0 when there is none.
    pub data_src: u64,
    /// The hardware marked the IP as exact.
    pub exact: bool,
    access: PhantomData<A>,
}

impl<A: Access> Sample<A> {
    /// `None` when the kernel's structures cannot be read.
    #[inline(always)]
    pub fn open(ctx: *mut c_void) -> Option<Self> {
        let kernel_ctx = A::context(ctx);
        let data = A::u64(kernel_ctx, config!(offsets.ctx_data))? as *const u8;
        let mut sample = Self {
            data,
            flags: !0,
            ip: 0,
            period: 0,
            address: 0,
            latency: 0,
            data_src: 0,
            exact: false,
            access: PhantomData,
        };
        if config!(source) & source::CHECK_FLAGS as u64 != 0 {
            sample.flags = A::u64(data, config!(offsets.sample_flags))?;
        }
        sample.period = A::u64(data, config!(offsets.period))?;
        let from_sample = config!(source) & source::IP_FROM_SAMPLE as u64 != 0;
        let wants_exact = config!(fields) & field::EXACT as u64 != 0;
        if from_sample {
            sample.ip = A::u64(data, config!(offsets.ip))?;
        }
        if !from_sample || wants_exact {
            let regs = A::u64(kernel_ctx, config!(offsets.ctx_regs))? as *const u8;
            if !from_sample {
                // The PEBS and IBS drivers put the precise IP into the registers that they hand over.
                sample.ip = A::u64(regs, config!(offsets.regs_ip))?;
            }
            if wants_exact {
                sample.exact = A::u64(regs, config!(offsets.regs_flags))? & PERF_EFLAGS_EXACT != 0;
            }
        }
        if config!(fields) & field::ADDRESS as u64 != 0 {
            sample.address = sample.gated(config!(offsets.addr), flag::ADDR)?;
        }
        if config!(fields) & field::LATENCY as u64 != 0 {
            let weight = sample.gated(config!(offsets.weight), flag::WEIGHT | flag::WEIGHT_STRUCT)?;
            // As `PERF_SAMPLE_WEIGHT` it is one 64-bit number; a latency past 2³² cycles is a second and more: saturate.
            sample.latency = if config!(source) & source::WEIGHT_STRUCT as u64 == 0 && weight >> 32 != 0 {
                u32::MAX
            } else {
                weight as u32
            };
        }
        if config!(fields) & field::DATA_SRC as u64 != 0 {
            sample.data_src = sample.gated(config!(offsets.data_src), flag::DATA_SRC)?;
        }
        Some(sample)
    }

    /// A field that is only valid when one of `bits` is set in `sample_flags`, 0 otherwise.
    #[inline(always)]
    fn gated(&self, offset: u64, bits: u64) -> Option<u64> {
        if offset == ABSENT as u64 || self.flags & bits == 0 { Some(0) } else { A::u64(self.data, offset) }
    }

    /// Process id in the upper half, thread id in the lower, in the initial pid namespace.
    #[inline(always)]
    pub fn pid_tid(&self) -> u64 {
        if config!(source) & source::TID_FROM_SAMPLE as u64 != 0 {
            // Two loads: the verifier allows none that spans two members.
            let offset = config!(offsets.tid_entry);
            let pid = A::u32(self.data, offset).unwrap_or(0);
            let tid = A::u32(self.data, offset + 4).unwrap_or(0);
            (pid as u64) << 32 | tid as u64
        } else {
            bpf_get_current_pid_tgid()
        }
    }

    /// Cgroup id, of the hierarchy that the run uses.
    #[inline(always)]
    pub fn cgroup(&self) -> u64 {
        if config!(source) & source::CGROUP_FROM_SAMPLE as u64 != 0 {
            A::u64(self.data, config!(offsets.cgroup)).unwrap_or(0)
        } else {
            // SAFETY: a helper without arguments.
            unsafe { aya_ebpf::helpers::generated::bpf_get_current_cgroup_id() }
        }
    }

    /// Physical data address; 0 when there is none.
    #[inline(always)]
    pub fn phys_address(&self) -> u64 {
        self.gated(config!(offsets.phys_addr), flag::PHYS_ADDR).unwrap_or(0)
    }

    /// Size of the page that holds the data address, in bytes; 0 when not known.
    #[inline(always)]
    pub fn page_size(&self) -> u64 {
        self.gated(config!(offsets.data_page_size), flag::DATA_PAGE_SIZE).unwrap_or(0)
    }

    /// Whether the IP lies in the kernel's half of the address space.
    #[inline(always)]
    pub fn in_kernel(&self) -> bool {
        (self.ip as i64) < 0
    }
}
