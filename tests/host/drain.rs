//! Drains a table many times while it fills, between two writes that a tracer of system calls can
//! see.

use anyhow::{Result, ensure};
use precise::{
    kernel::{
        event::{Encoding, OpenRequest, Rate, Scope, WantedFields},
        program::{Prepared, ProgramOptions},
        sampler::Sampler,
    },
    machine::{MachineInfo, Root},
};
use precise_common::config::{Config, field, key};

const DRAINS: usize = 50;

fn main() -> Result<()> {
    let cpus = MachineInfo::read(&Root::default()).online;
    let scopes: Vec<Scope> = cpus.iter().map(|cpu| Scope::Cpu(*cpu)).collect();
    let request = OpenRequest {
        // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS
        encoding: Encoding { pmu: 1, config: 2, ..Encoding::default() },
        rate: Rate::Period(1),
        precise: 0,
        wanted: WantedFields { address: true, ..WantedFields::default() },
    };
    let options = ProgramOptions {
        config: Config { key: key::IP | key::ADDRESS | key::PID, fields: field::ADDRESS, ..Config::EMPTY },
        slots: 8192,
        stacks: 0,
        prepared: Prepared::default(),
        read_path: None,
        unwind: None,
        other: None,
    };
    let mut sampler = Sampler::open(&request, None, &scopes, &options)?;
    sampler.enable()?;
    let mut samples = 0u64;
    mark("drain begins");
    for _ in 0..DRAINS {
        precise_tests::load::fault(1000)?;
        sampler.drain(|_, cell| samples += u64::from(cell.count))?;
    }
    mark("drain ends");
    ensure!(samples >= 1000 * DRAINS as u64, "{samples} samples");
    println!("{samples}");
    Ok(())
}

/// Makes a system call without effect: there is no such file.
fn mark(text: &str) {
    // SAFETY: the call reads `text`, and fails.
    unsafe { libc::write(-1, text.as_ptr().cast(), text.len()) };
}
