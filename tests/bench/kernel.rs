//! Measures the cost of the BPF program per sample, from the kernel's own statistics (`bpf_stats`),
//! in one run.
//!
//! Programs take turns on the same event under the same load: an empty one, one that only counts,
//! ours rejecting every sample, ours aggregating, and the same work with a per-CPU hash map. Rounds
//! are interleaved, so that noise affects all of them; the median is printed. This is done twice:
//! with samples so far apart that everything the program touches is cold (`cycles`, or `cpu-clock`
//! if there is no `cpu` PMU), and with samples in quick succession (every page fault).

mod frames;

use std::{
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::Context as _;
use precise::kernel::{
    event::{Encoding, OpenRequest, Rate, Scope, WantedFields},
    program::{Prepared, ProgramOptions, ReadPath},
    sampler::Sampler,
};
use precise_common::config::{Config, FilterSlot, compare, field, key, operand, source};
use precise_tests::quantile::median;

/// The environment variable with the path of the object of baseline programs; `cargo xtask bench
/// kernel` builds it.
const OBJECT_VARIABLE: &str = "PRECISE_BENCH_OBJECT";

const ROUNDS: usize = 21;
const ROUND: Duration = Duration::from_millis(400);

/// The sampled event, and the load that causes it.
struct Load {
    name: &'static str,
    encoding: Encoding,
    rate: Rate,
    run: fn(&AtomicBool),
}

struct Candidate {
    name: &'static str,
    options: ProgramOptions,
    /// The goal of the design: the largest number of nanoseconds above the empty program.
    goal: Option<f64>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let _stats =
        aya::sys::enable_stats(aya::sys::Stats::RunTime).context("the kernel does not count program time")?;
    let cpus = precise::machine::MachineInfo::read(&precise::machine::Root::default()).online;
    let only_frames = std::env::args().nth(1).as_deref() == Some("frames");
    for load in [apart(), at_once()] {
        println!(
            "event {}, {} CPUs, {ROUNDS} rounds of {:.1} s each, median",
            load.name,
            cpus.len(),
            ROUND.as_secs_f64()
        );
        let request = OpenRequest {
            encoding: load.encoding,
            rate: load.rate,
            precise: 0,
            wanted: WantedFields { address: true, ..WantedFields::default() },
        };
        let scopes: Vec<Scope> = cpus.iter().map(|cpu| Scope::Cpu(*cpu)).collect();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in &cpus {
                scope.spawn(|| (load.run)(&stop));
            }
            let result = if only_frames { Ok(()) } else { measure(&request, &scopes) };
            stop.store(true, Ordering::Relaxed);
            result
        })?;
        frames::measure(&load, &request, &cpus, options(chains()))?;
    }
    Ok(())
}

fn measure(request: &OpenRequest, scopes: &[Scope]) -> anyhow::Result<()> {
    let path = std::env::var_os(OBJECT_VARIABLE)
        .with_context(|| format!("{OBJECT_VARIABLE} is not set; `cargo xtask bench kernel` sets it"))?;
    let object: &'static [u8] = Vec::leak(std::fs::read(&path).context("the programs to compare with")?);
    let candidates = candidates(object);
    let mut nanoseconds = vec![Vec::new(); candidates.len()];
    for _ in 0..ROUNDS {
        for (candidate, times) in candidates.iter().zip(&mut nanoseconds) {
            let callchain = has_chains(&candidate.options.config);
            let request = OpenRequest { wanted: WantedFields { callchain, ..request.wanted }, ..*request };
            let mut sampler = Sampler::open(&request, None, scopes, &candidate.options)?;
            sampler.enable()?;
            thread::sleep(ROUND);
            sampler.disable()?;
            let stats = sampler.program().stats()?;
            anyhow::ensure!(stats.runs > 0, "no sample of {} arrived", candidate.name);
            times.push(stats.run_ns as f64 / stats.runs as f64);
            sampler.drain(|_, _| {})?;
        }
    }
    let medians: Vec<f64> = nanoseconds.iter().filter_map(|values| median(values)).collect();
    let empty = medians[0];
    println!("{:<54} {:>9} {:>12} {:>6}", "program", "ns/sample", "above empty", "goal");
    for (candidate, median) in candidates.iter().zip(&medians) {
        let goal = candidate.goal.map_or(String::new(), |goal| format!("≤ {goal:.0}"));
        println!("{:<54} {median:>9.1} {:>12.1} {goal:>6}", candidate.name, median - empty);
    }
    Ok(())
}

fn has_chains(config: &Config) -> bool {
    config.key & key::STACK != 0
}

fn aggregate() -> Config {
    Config {
        key: key::IP | key::ADDRESS | key::CGROUP | key::PID,
        fields: field::ADDRESS,
        address_mask: !0x3f,
        ..Config::EMPTY
    }
}

fn chains() -> Config {
    Config { key: aggregate().key & !key::ADDRESS | key::STACK, ..aggregate() }
}

fn options(config: Config) -> ProgramOptions {
    ProgramOptions {
        config,
        slots: 8192,
        stacks: if has_chains(&config) { 1024 } else { 0 },
        prepared: Prepared::default(),
        read_path: Some(ReadPath::Direct),
        unwind: None,
        other: None,
    }
}

fn candidates(yardstick: &'static [u8]) -> [Candidate; 9] {
    let aggregate = aggregate();
    let mut reject = aggregate;
    // There is no instruction at address 1, so every sample fails.
    reject.slots[0] = FilterSlot {
        operand: operand::IP,
        compare: compare::RANGE,
        low: 1,
        high: 1,
        clause: 0,
        ends_clause: 1,
    };
    // Process 1 has no sample. The load runs in this process, so that every sample is its own.
    let apart = Config { source: source::REJECT_OWN, own: 1, ..aggregate };
    let left_out = Config { own: std::process::id(), ..apart };
    [
        Candidate {
            name: "empty",
            options: ProgramOptions { other: Some((yardstick, "empty")), ..options(aggregate) },
            goal: None,
        },
        Candidate {
            name: "counting it in the ledger, nothing else",
            options: ProgramOptions { other: Some((yardstick, "count")), ..options(aggregate) },
            goal: None,
        },
        Candidate {
            name: "precise, every sample rejected by a filter",
            options: options(reject),
            goal: Some(10.0),
        },
        Candidate { name: "precise, added to the table", options: options(aggregate), goal: Some(100.0) },
        Candidate { name: "the same, where own samples are left out", options: options(apart), goal: None },
        Candidate {
            name: "precise, every sample left out as its own",
            options: options(left_out),
            goal: None,
        },
        Candidate {
            name: "added to the table, by probe reads (kernels before 6.2)",
            options: ProgramOptions { read_path: Some(ReadPath::Probe), ..options(aggregate) },
            goal: None,
        },
        Candidate {
            name: "precise, with call chains (-g), unwinding not included",
            options: options(chains()),
            goal: None,
        },
        Candidate {
            name: "the same work in a per-CPU hash map",
            options: ProgramOptions { other: Some((yardstick, "hash")), ..options(aggregate) },
            goal: None,
        },
    ]
}

/// Returns a load with samples 100 µs apart.
fn apart() -> Load {
    if std::path::Path::new("/sys/bus/event_source/devices/cpu/type").exists() {
        let encoding = Encoding { pmu: 0, config: 0, ..Encoding::default() };
        return Load { name: "cycles at 9,973 Hz", encoding, rate: Rate::Frequency(9973), run: burn };
    }
    Load {
        name: "cpu-clock each 100,003 ns",
        encoding: Encoding { pmu: 1, config: 0, ..Encoding::default() },
        // A prime, so that it does not run in step with the timer tick.
        rate: Rate::Period(100_003),
        run: burn,
    }
}

/// Returns a load with samples less than a microsecond apart.
fn at_once() -> Load {
    let encoding = Encoding { pmu: 1, config: 2, ..Encoding::default() };
    Load { name: "each page fault", encoding, rate: Rate::Period(1), run: fault }
}

/// Executes several instructions, so that samples have several addresses.
fn burn(stop: &AtomicBool) {
    let mut x = 1u64;
    while !stop.load(Ordering::Relaxed) {
        for i in 0..10_000u64 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i) ^ (x >> 7);
        }
        std::hint::black_box(x);
    }
}

/// Reads pages that were given back: each read is a fault, which the kernel answers with its zero
/// page.
fn fault(stop: &AtomicBool) {
    const PAGE: usize = 4096;
    const SIZE: usize = 256 * PAGE;
    // SAFETY: new memory at an address that the kernel chooses.
    let memory = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), SIZE, libc::PROT_READ, flags, -1, 0)
    };
    if memory == libc::MAP_FAILED {
        return;
    }
    while !stop.load(Ordering::Relaxed) {
        for offset in (0..SIZE).step_by(PAGE) {
            // SAFETY: inside of the mapping, which is readable.
            unsafe { memory.cast::<u8>().add(offset).read_volatile() };
        }
        // SAFETY: the whole mapping, which nothing refers to.
        unsafe { libc::madvise(memory, SIZE, libc::MADV_DONTNEED) };
    }
    // SAFETY: as above; it is not used any more.
    unsafe { libc::munmap(memory, SIZE) };
}
