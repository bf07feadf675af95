//! Part of step 3: unwinds the user stack by tables, for code without frame pointers.
//!
//! The tables and the step from a frame to its caller are [`precise_common::unwind`]; this file
//! gives the step access to the arrays that user space fills, and to the memory of the task. User
//! space writes the arrays through shared memory while the program runs: new tables first, then
//! the entry of the process, whose generation tells whether it changed meanwhile.

use core::{ffi::c_void, ptr};

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    helpers::generated::{
        bpf_get_current_task_btf, bpf_get_smp_processor_id, bpf_loop, bpf_probe_read_user, bpf_task_pt_regs,
    },
    macros::map,
    maps::Array,
};
use precise_common::{
    config::source,
    stack::CONTEXT_USER,
    unwind::{self, End, Memory, Process, Region, Rule, UnwindFrame, program},
};

use crate::{
    chain,
    read::{asks, config},
};

/// The processes, in open addressing. The loader sets the sizes of all these maps; 1 if the run
/// does not unwind by tables.
#[map]
static PROCESSES: Array<Process> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The executable mappings of processes.
#[map]
static REGIONS: Array<Region> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The pages of tables: the index of the first row, and the number of rows.
#[map]
static PAGES: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The rows of tables, two in an element.
#[map]
static ROWS: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The rules that rows refer to.
#[map]
static RULES: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The arrays and the memory of the current task.
struct Maps;

impl Memory for Maps {
    #[inline(always)]
    fn region(&self, index: u32) -> Option<Region> {
        REGIONS.get(index).copied()
    }

    #[inline(always)]
    fn region_start(&self, index: u32) -> Option<u64> {
        REGIONS.get(index).map(|region| region.start)
    }

    #[inline(always)]
    fn page(&self, index: u32) -> Option<u64> {
        PAGES.get(index).copied()
    }

    #[inline(always)]
    fn rows(&self, index: u32) -> Option<u64> {
        ROWS.get(index).copied()
    }

    #[inline(always)]
    fn rule(&self, index: u32) -> Option<Rule> {
        RULES.get(index).map(|rule| Rule(*rule))
    }

    #[inline(always)]
    fn word(&self, address: u64) -> Option<u64> {
        let mut word = 0u64;
        // SAFETY: the helper checks the source, and does not wait for a page that is not there; the
        // target is a word of the stack.
        let result = unsafe { bpf_probe_read_user((&raw mut word).cast(), 8, address as *const c_void) };
        (result == 0).then_some(word)
    }

    #[inline(always)]
    fn words(&self, address: u64) -> Option<[u64; 2]> {
        let mut words = [0u64; 2];
        // SAFETY: as in `word`.
        let result = unsafe { bpf_probe_read_user((&raw mut words).cast(), 16, address as *const c_void) };
        (result == 0).then_some(words)
    }
}

/// What the steps of one chain share.
#[repr(C)]
struct Walk {
    frame: UnwindFrame,
    /// The regions of the process: see [`Process::regions`].
    regions: u64,
    /// Why the chain ended: an [`End`]; 0 as long as it has not.
    end: u64,
}

/// Adds the frame to the chain, and goes to its caller. Returns 1 if there is none. The verifier
/// checks this function once, however often it runs.
#[inline(never)]
extern "C" fn step(_index: u64, _context: *mut c_void) -> u64 {
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(walk) = chain::state::<Walk>(cpu) else { return 1 };
    // SAFETY: in the memory of a map, written by `walk`; only this CPU uses it.
    let walk = unsafe { &mut *walk };
    if !chain::put(cpu, walk.frame.ip, 1) {
        walk.end = End::TooDeep as u64;
        return 1;
    }
    match unwind::step(&Maps, walk.regions, &mut walk.frame) {
        Ok(()) => 0,
        Err(end) => {
            walk.end = end as u64;
            1
        }
    }
}

/// The places of registers in `struct pt_regs` (arch/x86/include/asm/ptrace.h), in words.
mod regs {
    pub const BP: usize = 4;
    pub const IP: usize = 16;
    pub const CS: usize = 17;
    pub const SP: usize = 19;
}

/// The code segment of 64-bit user code (`__USER_CS`).
const USER_CS: u64 = 0x33;

/// Adds the user stack of the current task to the chain in the buffer of `cpu`, and after it the
/// reason why the chain has no further frame.
///
/// The registers are those with which the task entered the kernel, and not the sample's: those of
/// PEBS and IBS mix the moments of the instruction and of the interrupt.
#[inline(never)]
pub fn add(cpu: u32, pid: u32) {
    // SAFETY: helpers that return the current task, and its registers at its entry into the kernel.
    let registers = unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) } as *const u64;
    // SAFETY: the verifier knows the type of the pointer, and that these words are in it.
    let register = |place: usize| unsafe { ptr::read_volatile(registers.add(place)) };
    let code_segment = register(regs::CS);
    let (mut end, mut by) = (End::KernelOnly as u32, program::NONE as u64);
    if code_segment & 3 == 3 && chain::put(cpu, CONTEXT_USER, 2) {
        let frame = UnwindFrame {
            ip: register(regs::IP),
            sp: register(regs::SP),
            bp: register(regs::BP),
            exact: 1,
            region: Region::default(),
        };
        end = match (code_segment & 0xffff == USER_CS, find(pid)) {
            (false, _) => leaf(cpu, frame.ip, End::Unsupported),
            (true, Some(process)) => of_process(cpu, frame, process, &mut by),
            (true, None) => of_stranger(cpu, frame),
        };
    }
    // A chain that has no room for its end was full of kernel frames.
    chain::put(cpu, End::marker_of(end as u64, by), 0);
}

/// Adds the sampled instruction only.
#[inline(always)]
fn leaf(cpu: u32, ip: u64, why: End) -> u32 {
    chain::put(cpu, ip, 1);
    why as u32
}

/// Adds the frames of a process that is not known yet, as far as frame pointers lead. Returns why
/// there is no further one.
#[inline(always)]
fn of_stranger(cpu: u32, frame: UnwindFrame) -> u32 {
    if !asks!(source, has source::FRAME_POINTERS) {
        return leaf(cpu, frame.ip, End::NotYet);
    }
    walk(cpu, UnwindFrame { region: Region::GUESSED, ..frame }, 0)
}

/// Adds the frames of a process by its tables, and sets `by` to the number of its program. Returns
/// why there is no further one.
#[inline(always)]
fn of_process(cpu: u32, mut frame: UnwindFrame, (index, process): (u32, Process), by: &mut u64) -> u32 {
    // Code that runs is mapped. If the mapping is not known, the process has just executed another
    // program, or mapped a library.
    let Some(region) = unwind::find_region(&Maps, process.regions, frame.ip) else {
        return of_stranger(cpu, frame);
    };
    frame.region = region;
    *by = process.identity >> program::SHIFT;
    let end = walk(cpu, frame, process.regions);
    if is_current(index, process) { end } else { End::Changed as u32 }
}

/// Adds the frames from this one outwards. Returns why there is no further one.
#[inline(always)]
fn walk(cpu: u32, frame: UnwindFrame, regions: u64) -> u32 {
    let Some(walk) = chain::state::<Walk>(cpu) else { return End::TooDeep as u32 };
    let depth = config!(stack_depth) as u32;
    // SAFETY: in the memory of a map; only this CPU uses it. The callback has the signature that
    // the helper calls.
    let end = unsafe {
        walk.write(Walk { frame, regions, end: 0 });
        bpf_loop(depth, step as *mut c_void, ptr::null_mut(), 0);
        (&raw const (*walk).end).read_volatile()
    };
    // 0: the last frame has a caller, and there were to be no more frames.
    if end == 0 { End::TooDeep as u32 } else { end as u32 }
}

/// Returns the entry of a process, and its index.
#[inline(always)]
fn find(pid: u32) -> Option<(u32, Process)> {
    let mask = config!(process_mask) as u32;
    // The bound is a constant to the verifier, but not to the compiler, which would unroll the
    // loop.
    for probe in 0..config!(probes) as u32 {
        let index = unwind::process_index(pid, probe, mask);
        let identity = identity(index)?;
        if identity as u32 == pid {
            // SAFETY: as in `identity`. Read after the identity, which is compared at the end.
            let regions = unsafe { ptr::read_volatile(&raw const (*PROCESSES.get_ptr(index)?).regions) };
            // While user space changes the entry, its two words may not belong together.
            return (identity >> 32 & 1 == 0).then_some((index, Process { identity, regions }));
        }
        if identity == 0 {
            return None;
        }
    }
    None
}

/// Returns whether an entry is still the same.
#[inline(always)]
fn is_current(index: u32, process: Process) -> bool {
    identity(index) == Some(process.identity)
}

/// Returns the identity of an entry, with its generation.
#[inline(always)]
fn identity(index: u32) -> Option<u64> {
    let entry = PROCESSES.get_ptr(index)?;
    // SAFETY: a valid pointer into the map; volatile because user space may write it at any time,
    // each word at once.
    Some(unsafe { ptr::read_volatile(&raw const (*entry).identity) })
}
