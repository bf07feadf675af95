//! What the program costs per sample, from the kernel's own statistics (`bpf_stats`), in one run.
//!
//! Four programs take turns on the same event under the same load: an empty one, ours rejecting every sample, ours
//! aggregating, and the same work with a per-CPU hash map. Rounds are interleaved, so that noise hits all of them; the
//! median is printed. On machines without a `cpu` PMU the event is `cpu-clock`.

use std::{
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::Context as _;
use precise::kernel::{
    event::{Encoding, Rate, Request, Scope, Wanted},
    program::{ProgramOptions, ReadPath},
    sampler::Sampler,
};
use precise_common::config::{Config, Slot, compare, field, key, operand};

/// Names the object with the programs to compare with; `cargo xtask bench kernel` builds it.
const OBJECT_VARIABLE: &str = "PRECISE_BENCH_OBJECT";

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(1200);

struct Candidate {
    name: &'static str,
    options: ProgramOptions,
    /// Nanoseconds above the empty program that the design asks for, at most.
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
    let (encoding, rate, event) = event()?;
    let request = Request {
        encoding,
        rate,
        precise: 0,
        wanted: Wanted { address: true, cgroup: true, ..Wanted::default() },
    };
    let scopes: Vec<Scope> = cpus.iter().map(|cpu| Scope::Cpu(*cpu)).collect();
    println!(
        "event {event}, {} CPUs, {ROUNDS} rounds of {:.1} s each, median",
        cpus.len(),
        ROUND.as_secs_f64()
    );

    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in &cpus {
            scope.spawn(|| burn(&stop));
        }
        let result = measure(&request, &scopes);
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn measure(request: &Request, scopes: &[Scope]) -> anyhow::Result<()> {
    let path = std::env::var_os(OBJECT_VARIABLE)
        .with_context(|| format!("{OBJECT_VARIABLE} is not set; `cargo xtask bench kernel` sets it"))?;
    let object: &'static [u8] = Vec::leak(std::fs::read(&path).context("the programs to compare with")?);
    let candidates = candidates(object);
    let mut nanoseconds = vec![Vec::new(); candidates.len()];
    for _ in 0..ROUNDS {
        for (candidate, times) in candidates.iter().zip(&mut nanoseconds) {
            let mut sampler = Sampler::open(request, None, scopes, &candidate.options)?;
            sampler.enable()?;
            thread::sleep(ROUND);
            sampler.disable()?;
            let stats = sampler.program().stats()?;
            anyhow::ensure!(stats.runs > 0, "no sample of {} arrived", candidate.name);
            times.push(stats.run_ns as f64 / stats.runs as f64);
            sampler.drain(|_, _| {})?;
        }
    }
    let medians: Vec<f64> = nanoseconds.into_iter().map(median).collect();
    let empty = medians[0];
    println!("{:<46} {:>9} {:>12} {:>6}", "program", "ns/sample", "above empty", "goal");
    for (candidate, median) in candidates.iter().zip(&medians) {
        let goal = candidate.goal.map_or(String::new(), |goal| format!("≤ {goal:.0}"));
        println!("{:<46} {median:>9.1} {:>12.1} {goal:>6}", candidate.name, median - empty);
    }
    Ok(())
}

fn candidates(yardstick: &'static [u8]) -> [Candidate; 5] {
    let aggregate = Config {
        key: key::IP | key::ADDRESS | key::CGROUP | key::PID,
        fields: field::ADDRESS,
        address_mask: !0x3f,
        ..Config::EMPTY
    };
    let mut reject = Config { slots_used: 1, ..aggregate };
    // No instruction lies at address 1: every sample fails.
    reject.slots[0] =
        Slot { operand: operand::IP, compare: compare::RANGE, low: 1, high: 1, clause: 0, ends_clause: 1 };
    let options = |config, cgroup_from_sample| ProgramOptions {
        config,
        slots: 8192,
        cgroup_from_sample,
        read_path: Some(ReadPath::Direct),
        other: None,
    };
    [
        Candidate {
            name: "empty",
            options: ProgramOptions { other: Some((yardstick, "empty")), ..options(aggregate, true) },
            goal: None,
        },
        Candidate {
            name: "precise, every sample rejected by a filter",
            options: options(reject, true),
            goal: Some(10.0),
        },
        Candidate {
            name: "precise, added to the table",
            options: options(aggregate, true),
            goal: Some(100.0),
        },
        Candidate {
            name: "the same, by probe reads (kernels before 6.2)",
            options: ProgramOptions { read_path: Some(ReadPath::Probe), ..options(aggregate, true) },
            goal: None,
        },
        Candidate {
            name: "the same work in a per-CPU hash map",
            options: ProgramOptions { other: Some((yardstick, "hash")), ..options(aggregate, true) },
            goal: None,
        },
    ]
}

fn event() -> anyhow::Result<(Encoding, Rate, &'static str)> {
    if std::path::Path::new("/sys/bus/event_source/devices/cpu/type").exists() {
        return Ok((
            Encoding { pmu: 0, config: 0, ..Encoding::default() },
            Rate::Frequency(9973),
            "cycles at 9,973 Hz",
        ));
    }
    // 100 µs and a bit: a prime, so that it keeps no step with the timer tick.
    Ok((
        Encoding { pmu: 1, config: 0, ..Encoding::default() },
        Rate::Period(100_003),
        "cpu-clock each 100,003 ns",
    ))
}

/// A little of everything, so that samples have several addresses.
fn burn(stop: &AtomicBool) {
    let mut x = 1u64;
    while !stop.load(Ordering::Relaxed) {
        for i in 0..10_000u64 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i) ^ (x >> 7);
        }
        std::hint::black_box(x);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
