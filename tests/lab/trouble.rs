//! lab-trouble: makes samples disappear on purpose. See `lab-trouble --help`.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::{io, ptr};

use anyhow::{Context, Result, bail, ensure};
use precise::kernel::{
    event::{self, Encoding, OpenRequest, Rate, WantedFields},
    program::{Prepared, Program, ProgramOptions},
};
use precise_common::{
    config::{Config, field, key},
    ledger::Counter,
};

const HELP: &str = "\
lab-trouble batch WAKEUP COMMAND…
    Samples Intel loads of CPU 0 by the program of precise and with its attributes, but for wakeup_events, which is WAKEUP,
    while COMMAND runs; prints \"seen N\", the samples that reached the program. 0 lets the driver hand over PEBS records in
    batches.
lab-trouble hold CALLS
    Calls bpf(2) on CPU 0 this many times; meanwhile the kernel runs no eBPF program of a sample there.
";

const CPU: u32 = 0;
const IOC_SET_BPF: libc::c_ulong = 0x4004_2408;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let mut next = || arguments.next().and_then(|word| word.into_string().ok());
    match next().as_deref() {
        Some("batch") => {
            let wakeup = next().context(HELP)?.parse()?;
            batch(wakeup, &arguments.collect::<Vec<_>>())
        }
        Some("hold") => hold(next().context(HELP)?.parse()?),
        _ => {
            print!("{HELP}");
            Ok(())
        }
    }
}

fn batch(wakeup: u32, words: &[OsString]) -> Result<()> {
    let (command, arguments) = words.split_first().context(HELP)?;
    // PERF_TYPE_RAW: the PMU `cpu`. MEM_TRANS_RETIRED.LOAD_LATENCY above 30 cycles.
    let loads = Encoding { pmu: 4, config: 0x1cd, config1: 30, ..Encoding::default() };
    let wanted = WantedFields { address: true, data_source: true, latency: true, ..WantedFields::default() };
    let request = OpenRequest { encoding: loads, rate: Rate::Period(1000), precise: 2, wanted };

    let mut attr = event::attributes(&request);
    attr.__bindgen_anon_2.wakeup_events = wakeup;
    // SAFETY: an attribute that lives to the end of the call; the kernel checks the rest.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw mut attr, -1, CPU as i32, -1, 0) };
    ensure!(fd >= 0, "perf_event_open: {}", io::Error::last_os_error());
    // SAFETY: a new descriptor that no other code owns.
    let event = unsafe { OwnedFd::from_raw_fd(fd as i32) };

    let all = field::ADDRESS | field::LATENCY | field::DATA_SRC;
    let program = Program::load(&ProgramOptions {
        config: Config { key: key::ADDRESS, fields: all, ..Config::EMPTY },
        slots: 8192,
        stacks: 0,
        prepared: Prepared::default(),
        read_path: None,
        unwind: None,
        other: None,
    })
    .map_err(|failure| anyhow::anyhow!("{}", failure.with_causes()))?;
    let program_fd = program.fd();
    // SAFETY: two open descriptors.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), IOC_SET_BPF, program_fd.as_raw_fd()) };
    ensure!(done == 0, "PERF_EVENT_IOC_SET_BPF: {}", io::Error::last_os_error());

    const IOC_ENABLE: libc::c_ulong = 0x2400;
    const IOC_DISABLE: libc::c_ulong = 0x2401;
    for request in [IOC_ENABLE, IOC_DISABLE] {
        // SAFETY: an open event; the argument is a flag word.
        let done = unsafe { libc::ioctl(event.as_raw_fd(), request, 0) };
        ensure!(done == 0, "the event cannot be switched: {}", io::Error::last_os_error());
        if request == IOC_ENABLE {
            let status = Command::new(command).args(arguments).status()?;
            ensure!(status.success(), "the command ended with {status}");
        }
    }
    println!("seen {}", program.table.counter(Counter::Seen));
    Ok(())
}

/// `union bpf_attr` of `BPF_MAP_CREATE`, and of `BPF_MAP_UPDATE_ELEM`.
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

fn hold(calls: u64) -> Result<()> {
    const MAP_CREATE: i32 = 0;
    const MAP_UPDATE: i32 = 2;
    const PERCPU_ARRAY: u32 = 6;
    const VALUE: usize = 16 << 10;
    // A large value, copied for each CPU, so that the time in the kernel is mostly that of the
    // copies, during which no program may run.
    let value = vec![1u8; VALUE * 64];
    // SAFETY: the set is plain data, created and read only here.
    let pinned = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(CPU as usize, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    ensure!(pinned == 0, "CPU {CPU}: {}", io::Error::last_os_error());
    let create = MapCreate { map_type: PERCPU_ARRAY, key_size: 4, value_size: VALUE as u32, max_entries: 1 };
    // SAFETY: an initialised attribute of the size that is passed.
    let map = unsafe { libc::syscall(libc::SYS_bpf, MAP_CREATE, &raw const create, size_of_val(&create)) };
    ensure!(map >= 0, "bpf(BPF_MAP_CREATE): {}", io::Error::last_os_error());
    let key = 0u32;
    let update = MapUpdate {
        map_fd: map as u32,
        padding: 0,
        key: ptr::from_ref(&key) as u64,
        value: value.as_ptr() as u64,
        flags: 0,
    };
    for _ in 0..calls {
        // SAFETY: an initialised attribute; the key is as large as the map states, the value has
        // room for 64 CPUs, and both live to the end of the call.
        let done =
            unsafe { libc::syscall(libc::SYS_bpf, MAP_UPDATE, &raw const update, size_of_val(&update)) };
        if done != 0 {
            bail!("bpf(BPF_MAP_UPDATE_ELEM): {}", io::Error::last_os_error());
        }
    }
    Ok(())
}
