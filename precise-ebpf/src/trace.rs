//! The program with a log, for people who debug it: what the ledger counted for each sample. Only
//! `cargo xtask trace` loads it.
//!
//! Its steps are those of the shipped program. It compares the ledger's row before and after them:
//! a counter that has grown is a line of the log. So the log cannot differ from the ledger, and the
//! shipped program has nothing of it.
#![no_std]
#![no_main]

use core::ffi::c_void;

use aya_ebpf::{
    helpers::{
        bpf_get_current_pid_tgid,
        generated::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
    },
    macros::map,
    maps::PerCpuArray,
};
use aya_log_ebpf::info;
use precise_common::{
    config::MAX_CLAUSES,
    ledger::{Counter, Fate, LedgerUnit, WORDS, rejected},
    trace::CpuLog,
};
use precise_ebpf::{
    ledger,
    read::{
        Direct, KernelRead, ProbeReads, SampleContext,
        fault::{self, AtFault},
        guests_may_run,
    },
    run,
};

/// The number of lines that one CPU logs in a second, at most. The log's ring of 128 KiB holds some
/// 600 lines, and its reader looks 50 times in a second.
const LINES_PER_SECOND: u64 = 200;

const SECOND: u64 = 1_000_000_000;

/// The words of the ledger that say where a sample went: a bit for each.
const LOGGED: u64 = logged();

const fn logged() -> u64 {
    let mut words = 0;
    let mut at = 0;
    while at < Counter::ALL.len() {
        let counter = Counter::ALL[at];
        let info = counter.info();
        let says_where = !matches!(info.fate, Fate::Arrived | Fate::Measure);
        if says_where && matches!(info.unit, LedgerUnit::Samples) {
            words |= 1 << counter.id();
        }
        at += 1;
    }
    let mut clause = 0;
    while clause < MAX_CLAUSES {
        words |= 1 << rejected(clause);
        clause += 1;
    }
    words
}

/// The state of each CPU. Its reader finds it by its name, [`precise_common::trace::CPU_LOGS`].
#[map]
static CPU_LOGS: PerCpuArray<CpuLog> = PerCpuArray::with_max_entries(1, 0);

/// Returns the state of this CPU. An array's element always exists.
#[inline(always)]
fn state() -> Option<&'static mut CpuLog> {
    // SAFETY: a valid pointer into the map, written only by this CPU; programs do not nest on a
    // CPU (see `table`).
    CPU_LOGS.get_ptr_mut(0).map(|state| unsafe { &mut *state })
}

/// The entry point for kernels with the kfunc `bpf_cast_to_kern_ctx` (6.2 and later).
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub fn sample(ctx: *mut c_void) -> u32 {
    traced::<Direct>(ctx)
}

/// The entry point for kernels without that kfunc.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub fn sample_probe(ctx: *mut c_void) -> u32 {
    traced::<ProbeReads>(ctx)
}

/// The entry point at the tracepoints of page faults.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub fn fault(ctx: *mut c_void) -> u32 {
    if fault::counts(ctx) { traced::<AtFault>(ctx) } else { 0 }
}

/// Runs the steps of the shipped program, and logs what they counted.
#[inline(always)]
fn traced<A: KernelRead>(ctx: *mut c_void) -> u32 {
    if let (Some(state), Some(row)) = (state(), ledger::row()) {
        let sample = SampleContext::<A>::arrived(ctx);
        let ip = sample.ip().unwrap_or(0);
        let guest = if guests_may_run::<A>() { sample.guest() } else { None };
        state.ip = guest.map_or(ip, |guest| guest.host_ip(ip));
        state.before = *row.words();
    }
    let result = run::<A>(ctx);
    if let (Some(state), Some(row)) = (state(), ledger::row()) {
        for word in 0..WORDS {
            if LOGGED >> word & 1 != 0 && row.words()[word] != state.before[word] {
                counted(word as u64);
            }
        }
    }
    result
}

/// Logs that the sample was counted in a word of the ledger, or counts that this was not logged.
#[inline(never)]
fn counted(word: u64) {
    let Some(state) = state() else { return };
    // SAFETY: a helper without arguments.
    let second = unsafe { bpf_ktime_get_ns() } / SECOND;
    if state.second != second {
        state.second = second;
        state.in_second = 0;
    }
    if state.in_second >= LINES_PER_SECOND {
        state.left_out += 1;
        return;
    }
    state.in_second += 1;
    state.logged += 1;
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let task = bpf_get_current_pid_tgid();
    let (process, thread) = ((task >> 32) as u32, task as u32);
    let (ip, number, left_out) = (state.ip, state.logged, state.left_out);
    info!(&(), "{} {} {} {} {} {} {}", cpu, word, process, thread, ip, number, left_out);
}
