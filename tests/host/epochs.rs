//! Tests the flip of the two halves under load: no sample is lost between two epochs, and none is
//! counted twice.

use anyhow::{Result, ensure};
use precise::{
    kernel::{
        event::{Encoding, OpenRequest, Rate, Scope, WantedFields},
        program::{Prepared, ProgramOptions},
        sampler::Sampler,
    },
    machine::{MachineInfo, Root},
};
use precise_common::{
    config::{Config, field, key},
    ledger::Counter,
};
use precise_tests::{
    load::{Load, fault},
    say,
};

const RUNS: usize = 100;
/// Of them, how many at least must have seen each event. The others were disturbed, and do not
/// prove that no event is missed between two epochs.
const EXACT: usize = 20;
const FLIPS: usize = 8;
/// The number of runs of one loaded program, because loading takes longer than a run.
const RUNS_OF_ONE: usize = 20;
/// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_PAGE_FAULTS`.
const PAGE_FAULTS: Encoding = Encoding {
    pmu: 1,
    config: 2,
    config1: 0,
    config2: 0,
    config3: 0,
    exclude_user: false,
    exclude_kernel: false,
    exclude_guest: false,
};

#[test]
fn the_sum_over_epochs_is_what_the_program_counted() -> Result<()> {
    let cpus = MachineInfo::read(&Root::default()).online;
    let scopes: Vec<Scope> = cpus.iter().map(|cpu| Scope::Cpu(*cpu)).collect();
    let request = OpenRequest {
        encoding: PAGE_FAULTS,
        rate: Rate::Period(1),
        precise: 0,
        wanted: WantedFields { address: true, monotonic: true, ..WantedFields::default() },
    };
    let options = ProgramOptions {
        // A few cells that every sample updates, and the bounded table behind them.
        config: Config {
            key: key::IP | key::ADDRESS | key::PID,
            fields: field::ADDRESS,
            address_mask: !0xffff,
            ..Config::EMPTY
        },
        slots: 1024,
        stacks: 0,
        prepared: Prepared::default(),
        read_path: None,
        unwind: None,
        other: None,
    };
    let _load = Load::on(&cpus, || fault(256).expect("there is memory for one MiB"));

    let (mut runs, mut samples, mut missing, mut exact) = (0, 0, 0, 0);
    while runs < RUNS || (exact < EXACT && runs < 5 * RUNS) {
        runs += RUNS_OF_ONE;
        let mut sampler = Sampler::open(&request, None, &scopes, &options)?;
        let mut before = Counts::default();
        for _ in 0..RUNS_OF_ONE {
            let mut epochs = Vec::with_capacity(FLIPS + 1);
            sampler.enable()?;
            for _ in 0..FLIPS {
                epochs.push(drained(&mut sampler)?);
            }
            sampler.disable()?;
            // The last epoch. Its grace period also waits for a program that was running when its
            // event was disabled.
            epochs.push(drained(&mut sampler)?);
            let now = Counts::of(&mut sampler)?;
            let (seen, aggregated) = (now.seen - before.seen, now.aggregated - before.aggregated);
            let (full, events) = (now.full - before.full, now.events - before.events);
            let total: u64 = epochs.iter().sum();
            ensure!(total == aggregated, "{total} in {epochs:?}, {aggregated} aggregated");
            ensure!(seen == aggregated + full, "{seen} seen, {aggregated} aggregated, {full} without room");
            // While any process is inside a bpf(2) call that accesses a map, the kernel counts the
            // events of its CPU but runs no program for them (bpf_overflow_handler,
            // bpf_prog_active). This test makes no such call while it samples: see syscalls.rs. If
            // the two numbers differ, this is the likely reason, but it is not proven.
            ensure!(seen <= events, "{seen} seen, {events} counted by the event");
            missing += events - seen;
            exact += usize::from(events == seen);
            samples += total;
            before = now;
        }
        ensure!(drained(&mut sampler)? == 0 && drained(&mut sampler)? == 0, "something stayed in a half");
    }
    say(&format!("{runs} runs of {FLIPS} flips under load: {samples} samples, each in one epoch"));
    say(&format!(
        "{exact} of them saw each event; {missing} events in all were counted and not handed to the program (bpf(2) calls of others)"
    ));
    ensure!(exact >= EXACT, "{exact} of {runs} runs saw each event; {missing} events without a sample");
    ensure!(samples > 10_000 * RUNS as u64 / 100, "too little load: {samples}");
    Ok(())
}

/// The counters since a sampler was opened.
#[derive(Default)]
struct Counts {
    seen: u64,
    aggregated: u64,
    full: u64,
    events: u64,
}

impl Counts {
    fn of(sampler: &mut Sampler) -> Result<Self> {
        let events = sampler.ledger(&[], Some(1))?.event_count;
        let table = &sampler.program().table;
        Ok(Self {
            seen: table.counter(Counter::Seen),
            aggregated: table.counter(Counter::Aggregated),
            full: table.counter(Counter::TableFull),
            events,
        })
    }
}

fn drained(sampler: &mut Sampler) -> Result<u64> {
    let mut count = 0;
    sampler.drain(|_, cell| count += u64::from(cell.count))?;
    Ok(count)
}
