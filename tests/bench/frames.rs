//! What unwinding costs: nanoseconds per sample at several depths of the stack, with and without
//! the user's part of the chain, and the nanoseconds per frame that follow from it.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::Context as _;
use precise::kernel::{
    event::{OpenRequest, Scope, WantedFields},
    program::ProgramOptions,
    sampler::Sampler,
    unwind::UnwindSizes,
};
use precise::reader::Reader;
use precise::symbols::{SymbolOptions, Symbolizer};
use precise::unwind::{Fallback, UnwindTarget, Unwinder};
use precise_common::stack::CONTEXT_USER;
use precise_tests::quantile::median;

use super::{Load, ROUND, ROUNDS};

/// Calls that the load is below.
const DEPTHS: [usize; 3] = [5, 20, 60];
/// The goals of the design: nanoseconds per frame, and for twenty frames, hot.
const GOALS: (f64, f64) = (150.0, 3500.0);
/// The memory of the tables in bytes, the default of `--unwind-memory`.
const TABLES: usize = 32 << 20;
/// The part of the rounds that suffices here: the differences are large.
const FEWER: usize = 3;

/// Runs a load below this number of calls.
#[inline(never)]
fn below(calls: usize, load: &Load, stop: &AtomicBool) {
    if calls == 0 {
        (load.run)(stop);
    } else {
        below(black_box(calls) - 1, load, stop);
    }
    // Otherwise the call would be a jump.
    black_box(());
}

/// Measures a load, and prints the table. Only the threads of the load are sampled: others on this
/// machine have stacks of other depths.
pub fn measure(
    load: &Load,
    request: &OpenRequest,
    cpus: &[u32],
    chains: ProgramOptions,
) -> anyhow::Result<()> {
    let turns: Vec<(usize, usize)> =
        (0..ROUNDS / FEWER).flat_map(|_| DEPTHS.into_iter().enumerate()).collect();
    let stops: Vec<AtomicBool> = turns.iter().map(|_| AtomicBool::new(false)).collect();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        for _ in cpus {
            let tell = tell.clone();
            let (turns, stops) = (&turns, &stops);
            scope.spawn(move || {
                // SAFETY: a call without arguments.
                let _nobody_waits = tell.send(unsafe { libc::gettid() });
                turns.iter().zip(stops).for_each(|((_, depth), stop)| below(*depth, load, stop));
            });
        }
        let threads: Vec<i32> = told.iter().take(cpus.len()).collect();
        let of = |tid: &i32| {
            cpus.iter().map(|cpu| Scope::Task { tid: *tid, cpu: *cpu, on_exec: false }).collect::<Vec<_>>()
        };
        let scopes: Vec<Scope> = threads.iter().flat_map(of).collect();
        let result = turn_by_turn(load, request, &scopes, &chains, &turns, &stops);
        stops.iter().for_each(|stop| stop.store(true, Ordering::Relaxed));
        result
    })
}

fn turn_by_turn(
    load: &Load,
    request: &OpenRequest,
    scopes: &[Scope],
    chains: &ProgramOptions,
    turns: &[(usize, usize)],
    stops: &[AtomicBool],
) -> anyhow::Result<()> {
    let wanted = WantedFields { callchain: true, kernel_chain_only: true, ..request.wanted };
    let request = OpenRequest { wanted, ..*request };
    let open = |unwind| Sampler::open(&request, None, scopes, &ProgramOptions { unwind, ..chains.clone() });
    let (mut without, mut with) = (open(None)?, open(Some(UnwindSizes::within(TABLES)))?);
    let memory = with.program().unwind.clone().context("the program has no unwind tables")?;
    let symbolizer = Symbolizer::spawn(SymbolOptions::default(), Reader::start()?)?;
    let files = symbolizer.code_files();
    let own = UnwindTarget::These(vec![std::process::id()]);
    let _tables = Unwinder::start(memory, files, Fallback { frame_pointers: true }, own, || true)?;
    let mut times = vec![[Vec::new(), Vec::new()]; DEPTHS.len()];
    let mut frames = [0; DEPTHS.len()];
    for ((at, _), stop) in turns.iter().zip(stops) {
        times[*at][0].push(sample(&mut without)?.0);
        let (ns, most) = sample(&mut with)?;
        times[*at][1].push(ns);
        frames[*at] = most;
        stop.store(true, Ordering::Relaxed);
        // Until the threads are in the next turn.
        thread::sleep(Duration::from_millis(20));
    }
    print(load, &times, &frames);
    Ok(())
}

/// Samples for a round. Returns the nanoseconds per sample, and the number of user frames of the
/// most frequent length.
fn sample(sampler: &mut Sampler) -> anyhow::Result<(f64, usize)> {
    let before = sampler.program().stats()?;
    sampler.enable()?;
    thread::sleep(Duration::from_millis(ROUND.as_millis() as u64 / 2));
    sampler.disable()?;
    let after = sampler.program().stats()?;
    let runs = after.runs - before.runs;
    anyhow::ensure!(runs > 0, "no sample arrived");
    let mut samples = std::collections::HashMap::<u64, u64>::new();
    let chains =
        sampler.drain(|_, cell| *samples.entry(cell.key.address).or_default() += u64::from(cell.count))?;
    let mut lengths = std::collections::BTreeMap::<usize, u64>::new();
    for (id, count) in samples {
        let user = chains.get(&id).and_then(|chain| {
            let begin = chain.iter().position(|entry| *entry == CONTEXT_USER)?;
            // Less the marker, and the end.
            Some(chain.len() - begin - 2)
        });
        *lengths.entry(user.unwrap_or(0)).or_default() += count;
    }
    let most = lengths.into_iter().max_by_key(|(_, count)| *count).map_or(0, |(length, _)| length);
    Ok(((after.run_ns - before.run_ns) as f64 / runs as f64, most))
}

fn print(load: &Load, times: &[[Vec<f64>; 2]], frames: &[usize]) {
    println!("unwinding, event {}", load.name);
    println!("{:<54} {:>9} {:>12} {:>9}", "frames of user space", "ns/sample", "not unwound", "ns/frame");
    let costs: Vec<(usize, f64)> = frames
        .iter()
        .zip(times)
        .filter_map(|(&frames, [without, with])| {
            let (without, with) = (median(without)?, median(with)?);
            let each = (with - without) / frames.max(1) as f64;
            println!("{frames:<54} {with:>9.0} {without:>12.0} {each:>9.0}");
            Some((frames, with - without))
        })
        .collect();
    if let ([(few, cheap), .., (many, dear)], (goal, twenty)) = (costs.as_slice(), GOALS) {
        let slope = (dear - cheap) / many.saturating_sub(*few).max(1) as f64;
        let of_twenty = cheap + slope * (20.0 - *few as f64);
        println!(
            "each further frame {slope:.0} ns (goal, hot: ≤ {goal:.0}); twenty {of_twenty:.0} ns (≤ {twenty:.0})"
        );
    }
}
