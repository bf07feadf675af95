//! lab-fire: makes the emulated PMU of a lab guest take scripted samples, in exact numbers.
//!
//! The interface is tests/lab/modules/common/lab_pmu.h; `lab-fire --help` describes the script.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

const HELP: &str = "\
lab-fire [OPTION]... [SCRIPT | -e LINE]...
Fires what the lines of SCRIPT (- or nothing: standard input) or the LINEs say, from this process.

  --cpu N        on this CPU [default: 0]
  --cgroup DIR   from inside this cgroup (a folder of /sys/fs/cgroup; made where it is missing)
  --comm NAME    under this name
  --wait SECS    wait so long for an event to be counting on the CPU, instead of failing at once
  --events N     fire only when N PEBS events (AMD: IBS units) sample on the CPU: a recorder starts them one by one

A line is a kind and words of the form key=number. # begins a comment. Samples come count=1 times.
  load ip= addr= stride= latency= source=       Intel: a load, its raw data source encoding (hexadecimal: source=0x8)
  store ip= addr= stride= source=               Intel: a store
  precise ip=                                   Intel: a sample of any other PEBS event
  event event= ip= count=                       Intel: count times the event (select | umask << 8), or by name:
  cycles count=      instructions count=
  op ip= addr= stride= phys= latency= source= width= target= data= data2= data3= data4=
     and the words load store dc-miss l2-miss tlb-miss tlb2-miss misaligned locked remote dirty
                                                AMD: an op; source= means a load that missed L1 and L2
  fetch ip= phys= latency= ctl= ctl-ext= and the words complete ic-miss tlb-miss tlb2-miss
                                                AMD: a fetch
  sleep ms=                                     nothing for a while
  switch count=                                 give up the CPU
  touch addr= stride= count=                    writes bytes of data, in the function lab_fire_touch
  grow addr= stride= count=                     the same, in lab_fire_grow
  thread cpu=                                   what follows is fired by another thread, on this CPU
Sample i has addr + i * stride. A number may also be a place in lab-fire itself, with an offset: target (a function,
lab_fire_target), branches (je, jmp *, call *, ret, jmp at +0, 2, 4, 6, 7), data (a variable, LAB_FIRE_DATA, 64 KiB), heap
(1 MiB), stack: addr=heap+64; or a place in a program that is mapped for it: ip=/path/to/program+0x1234, by its offset in
that file.

At the end: fired N taken N. Taken are the samples that the PMU kept (latency thresholds and other filters of the event
refuse some), and for event the overflows.
";

/// `struct lab_fire`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Fire {
    size: u32,
    kind: u32,
    count: u64,
    ip: u64,
    addr: u64,
    stride: u64,
    latency: u64,
    source: u64,
    event: u64,
    /// `op` or `fetch`
    registers: [u64; 6],
    done: u64,
    taken: u64,
}

/// `_IOWR('L', 1, struct lab_fire)`
const LAB_FIRE: libc::c_ulong =
    3 << 30 | (size_of::<Fire>() as libc::c_ulong) << 16 | (b'L' as libc::c_ulong) << 8 | 1;

/// `enum lab_kind`
const KINDS: [(&str, u32); 8] = [
    ("load", 1),
    ("store", 2),
    ("precise", 3),
    ("event", 4),
    ("cycles", 4),
    ("instructions", 4),
    ("op", 5),
    ("fetch", 6),
];

/// The bits that the words of an op line set, in IbsOpData2 and IbsOpData3.
const OP_WORDS: [(&str, u64, u64); 10] = [
    ("load", 0, 1),
    ("store", 0, 1 << 1),
    ("tlb-miss", 0, 1 << 2),
    ("tlb2-miss", 0, 1 << 3),
    ("dc-miss", 0, 1 << 7),
    ("misaligned", 0, 1 << 8),
    ("locked", 0, 1 << 15),
    ("l2-miss", 0, 1 << 20),
    ("remote", 1 << 4, 0),
    ("dirty", 1 << 5, 0),
];

/// The bits that the words of a fetch line set, in IbsFetchCtl.
const FETCH_WORDS: [(&str, u64); 4] =
    [("complete", 1 << 50), ("ic-miss", 1 << 51), ("tlb-miss", 1 << 55), ("tlb2-miss", 1 << 56)];

/// A function whose addresses scripted samples can have.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn lab_fire_target() {
    // Differs from every other function, so that it is not merged with one.
    std::hint::black_box(0x1ab_u64);
}

/// Writes bytes; the kernel gives this process their pages.
///
/// # Safety
///
/// All of the bytes may be written.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn lab_fire_touch(touch: &Touch) {
    for i in 0..touch.count {
        // SAFETY: what the caller guarantees.
        unsafe { ((touch.addr + i * touch.stride) as *mut u8).write_volatile(1) };
    }
}

/// Does what [`lab_fire_touch`] does, under another name.
///
/// # Safety
///
/// As for [`lab_fire_touch`].
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn lab_fire_grow(touch: &Touch) {
    for i in 0..touch.count {
        // SAFETY: what the caller guarantees. Another number, so that the two are not merged.
        unsafe { ((touch.addr + i * touch.stride) as *mut u8).write_volatile(2) };
    }
}

/// Bytes that are written.
#[derive(Clone, Copy)]
pub struct Touch {
    addr: u64,
    stride: u64,
    count: u64,
    grow: bool,
}

// Branches of each kind, at known distances.
std::arch::global_asm!(
    ".text",
    ".globl lab_fire_branches",
    ".type lab_fire_branches, @function",
    "lab_fire_branches:",
    "je 2f",                 // +0x0
    "jmp *%rax",             // +0x2
    "2: call *%rax",         // +0x4
    "ret",                   // +0x6
    "jmp lab_fire_branches", // +0x7
    ".size lab_fire_branches, . - lab_fire_branches",
    options(att_syntax)
);

unsafe extern "C" {
    /// Never called; scripted samples have the addresses of its instructions.
    fn lab_fire_branches();
}

/// Data whose addresses scripted samples can have.
#[unsafe(no_mangle)]
pub static LAB_FIRE_DATA: Data = Data([const { std::sync::atomic::AtomicU8::new(0) }; 65536]);

/// Page-aligned, so that an offset in it is also an offset in its cache line.
#[repr(align(4096))]
pub struct Data([std::sync::atomic::AtomicU8; 65536]);

enum Line {
    Fire(Fire),
    Sleep(Duration),
    Switch(u64),
    Touch(Touch),
    Thread(usize),
}

/// The named addresses of this process.
struct Places {
    heap: Vec<u8>,
    stack: [u8; 4096],
    /// The mapped programs and their addresses.
    programs: RefCell<BTreeMap<String, u64>>,
}

/// Maps a program as code. It is never executed and never unmapped; scripted samples have its
/// addresses.
fn map(path: &str) -> Result<u64> {
    let file = File::open(path).with_context(|| path.to_owned())?;
    let length = usize::try_from(file.metadata()?.len())?;
    // SAFETY: a new private mapping of a file, which is never read.
    let start = unsafe {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
    };
    ensure!(start != libc::MAP_FAILED, "{path}: {}", io::Error::last_os_error());
    Ok(start as u64)
}

impl Places {
    fn number(&self, text: &str) -> Result<u64> {
        let (base, offset) = text.split_once('+').unwrap_or((text, "0"));
        let base = match base {
            path if path.starts_with('/') => self.program(path)?,
            "target" => lab_fire_target as *const () as u64,
            "data" => LAB_FIRE_DATA.0.as_ptr() as u64,
            "branches" => lab_fire_branches as *const () as u64,
            "heap" => self.heap.as_ptr() as u64,
            "stack" => self.stack.as_ptr() as u64,
            number => plain_number(number)?,
        };
        Ok(base + plain_number(offset)?)
    }

    fn program(&self, path: &str) -> Result<u64> {
        let mut programs = self.programs.borrow_mut();
        if let Some(start) = programs.get(path) {
            return Ok(*start);
        }
        let start = map(path)?;
        programs.insert(path.to_owned(), start);
        Ok(start)
    }
}

fn plain_number(text: &str) -> Result<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .with_context(|| format!("{text} is not a number"))
}

fn parse(line: &str, places: &Places) -> Result<Option<Line>> {
    let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
    let Some(kind) = words.next() else {
        return Ok(None);
    };
    let words: Vec<&str> = words.collect();
    let value = |key: &str| {
        let found = words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        found.map(|text| places.number(text)).transpose()
    };
    let number = |key: &str| value(key).map(Option::unwrap_or_default);
    let count = value("count")?.unwrap_or(1);
    let known: &[&str] = match kind {
        "sleep" => &["ms"],
        "switch" => &["count"],
        "touch" | "grow" => &["count", "addr", "stride"],
        "thread" => &["cpu"],
        "op" => &[
            "count", "ip", "addr", "stride", "phys", "latency", "source", "width", "target", "data", "data2",
            "data3", "data4",
        ],
        "fetch" => &["count", "ip", "phys", "latency", "ctl", "ctl-ext"],
        _ => &["count", "ip", "addr", "stride", "latency", "source", "event"],
    };
    for word in &words {
        let good = match word.split_once('=') {
            Some((key, _)) => known.contains(&key),
            None if kind == "op" => OP_WORDS.iter().any(|(name, ..)| name == word),
            None if kind == "fetch" => FETCH_WORDS.iter().any(|(name, _)| name == word),
            None => false,
        };
        ensure!(good, "{kind} has no {word}");
    }
    match kind {
        "sleep" => return Ok(Some(Line::Sleep(Duration::from_millis(number("ms")?)))),
        "switch" => return Ok(Some(Line::Switch(count))),
        "touch" | "grow" => {
            let (addr, stride) = (number("addr")?, number("stride")?);
            let data = LAB_FIRE_DATA.0.as_ptr_range();
            let last = count.checked_sub(1).and_then(|last| last.checked_mul(stride)?.checked_add(addr));
            let inside = |at: u64| (data.start as u64..data.end as u64).contains(&at);
            ensure!(inside(addr) && last.is_some_and(inside), "only data may be written");
            return Ok(Some(Line::Touch(Touch { addr, stride, count, grow: kind == "grow" })));
        }
        "thread" => return Ok(Some(Line::Thread(usize::try_from(number("cpu")?)?))),
        _ => {}
    }
    let (_, code) =
        KINDS.iter().find(|(name, _)| *name == kind).with_context(|| format!("no kind {kind}"))?;
    let mut fire = Fire {
        size: u32::try_from(size_of::<Fire>())?,
        kind: *code,
        count,
        ip: number("ip")?,
        addr: number("addr")?,
        stride: number("stride")?,
        latency: number("latency")?,
        source: number("source")?,
        event: match kind {
            "cycles" => 0x3c,
            "instructions" => 0xc0,
            _ => number("event")?,
        },
        ..Fire::default()
    };
    let has = |name: &str| words.contains(&name);
    if kind == "op" {
        let (mut data2, mut data3) = (number("data2")?, number("data3")?);
        for (_, bits2, bits3) in OP_WORDS.iter().filter(|(name, ..)| has(name)) {
            data2 |= bits2;
            data3 |= bits3;
        }
        if let Some(source) = value("source")? {
            data2 |= source & 7 | source >> 3 << 6;
            data3 |= 1 | 1 << 7 | 1 << 20;
        }
        // Addresses are marked valid if they are given; the width is 2^(n-1) bytes.
        data3 |= u64::from(value("addr")?.is_some()) << 17 | u64::from(value("phys")?.is_some()) << 18;
        data3 |= value("width")?.map_or(0, |bytes| u64::from(bytes.trailing_zeros() + 1) << 22);
        data3 |= fire.latency << 32;
        fire.registers = [
            value("data")?.unwrap_or(0x5_000a),
            data2,
            data3,
            number("phys")?,
            number("target")?,
            number("data4")?,
        ];
    } else if kind == "fetch" {
        let mut ctl = number("ctl")? | fire.latency << 32 | u64::from(value("phys")?.is_some()) << 52;
        ctl |= FETCH_WORDS.iter().filter(|(name, _)| has(name)).fold(0, |bits, (_, bit)| bits | bit);
        fire.registers = [ctl, number("phys")?, number("ctl-ext")?, 0, 0, 0];
    }
    Ok(Some(Line::Fire(fire)))
}

struct Options {
    cpu: usize,
    cgroup: Option<String>,
    comm: Option<String>,
    wait: Duration,
    events: u32,
    script: String,
}

fn options() -> Result<Options> {
    let mut options =
        Options { cpu: 0, cgroup: None, comm: None, wait: Duration::ZERO, events: 0, script: String::new() };
    let mut args = std::env::args().skip(1);
    let mut given = false;
    while let Some(arg) = args.next() {
        let mut next = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--help" | "-h" => {
                print!("{HELP}");
                std::process::exit(0);
            }
            "--cpu" => options.cpu = next()?.parse()?,
            "--cgroup" => options.cgroup = Some(next()?),
            "--comm" => options.comm = Some(next()?),
            "--wait" => options.wait = Duration::from_secs_f64(next()?.parse()?),
            "--events" => options.events = next()?.parse()?,
            "-e" => {
                given = true;
                options.script += &format!("{}\n", next()?);
            }
            "-" => {
                given = true;
                io::stdin().read_to_string(&mut options.script)?;
            }
            file if !file.starts_with('-') => {
                given = true;
                options.script += &fs::read_to_string(file).with_context(|| file.to_owned())?;
            }
            other => bail!("no option {other}; see --help"),
        }
    }
    if !given {
        io::stdin().read_to_string(&mut options.script)?;
    }
    Ok(options)
}

fn pin_to(cpu: usize) -> io::Result<()> {
    // SAFETY: the set is plain data, created and read only here.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Fires one line to its end. Retries on `EAGAIN` (no event counts) until `deadline`.
fn fire(device: &File, fire: &Fire, deadline: Instant) -> Result<Fire> {
    let mut rest = *fire;
    let (mut done, mut taken) = (0, 0);
    loop {
        // SAFETY: the driver reads and writes one struct of the size that is given in it.
        let result = unsafe { libc::ioctl(device.as_raw_fd(), LAB_FIRE, &raw mut rest) };
        let error = io::Error::last_os_error();
        done += rest.done;
        taken += rest.taken;
        if result == 0 {
            return Ok(Fire { done, taken, ..rest });
        }
        let wait = error.raw_os_error() == Some(libc::EAGAIN) && Instant::now() < deadline;
        if !wait && error.kind() != io::ErrorKind::Interrupted {
            bail!("after {done} of {}: {}", fire.count, explain(&error));
        }
        rest.addr = rest.addr.wrapping_add(rest.stride.wrapping_mul(rest.done));
        rest.count -= rest.done;
        // The process whose event should count needs the CPU meanwhile.
        std::thread::sleep(Duration::from_millis(10 * u64::from(wait)));
    }
}

/// Waits until this number of precise events sample on this CPU.
fn wait_for(device: &File, events: u32, deadline: Instant) -> Result<()> {
    loop {
        let mut text = [0; 128];
        let length = device.read_at(&mut text, 0)?;
        let text = str::from_utf8(&text[..length])?;
        let sampling: u32 = text
            .split_whitespace()
            .skip_while(|word| *word != "sampling")
            .nth(1)
            .with_context(|| format!("/dev/lab-pmu says nothing of what samples: {text}"))?
            .parse()?;
        if sampling >= events {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{sampling} of {events} events sample on this CPU");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => {
            "no event of this kind counts on this CPU now (none, disabled or throttled)".to_owned()
        }
        Some(libc::EINVAL) => "this PMU has no samples of this kind".to_owned(),
        _ => error.to_string(),
    }
}

/// Time that it stays alive after the last event if it waited for the first.
const LINGER: Duration = Duration::from_millis(800);

fn main() -> Result<()> {
    let options = options()?;
    let places = Places { heap: vec![1; 1 << 20], stack: [1; 4096], programs: RefCell::default() };
    pin_to(options.cpu).with_context(|| format!("CPU {}", options.cpu))?;
    if let Some(dir) = &options.cgroup {
        fs::create_dir_all(dir)?;
        fs::write(format!("{dir}/cgroup.procs"), "0").with_context(|| dir.clone())?;
    }
    if let Some(comm) = &options.comm {
        fs::write("/proc/self/comm", comm)?;
    }
    let device = File::open("/dev/lab-pmu").context("/dev/lab-pmu: this runs in a lab guest only")?;
    let mut lines = Vec::new();
    for (number, text) in options.script.lines().enumerate() {
        lines.extend(parse(text, &places).with_context(|| format!("line {}: {text}", number + 1))?);
    }
    let deadline = Instant::now() + options.wait;
    let (done, taken) = run(&device, &lines, options.events, deadline)?;
    println!("fired {done} taken {taken}");
    if !options.wait.is_zero() {
        // Who samples whole CPUs learns which processes there are after its events have begun to
        // count. This one must still be there then, or its samples have no names.
        std::thread::sleep(LINGER);
    }
    Ok(())
}

/// Fires lines up to one after which another thread continues, and waits for that thread.
fn run(device: &File, lines: &[Line], events: u32, deadline: Instant) -> Result<(u64, u64)> {
    wait_for(device, events, deadline)?;
    let (mut done, mut taken) = (0, 0);
    for (number, line) in lines.iter().enumerate() {
        match line {
            Line::Fire(wanted) => {
                let result = fire(device, wanted, deadline)?;
                done += result.done;
                taken += result.taken;
            }
            Line::Sleep(time) => std::thread::sleep(*time),
            // SAFETY: the bytes are in LAB_FIRE_DATA, whose bytes are atomic.
            Line::Touch(touch) if touch.grow => unsafe { lab_fire_grow(touch) },
            // SAFETY: as above.
            Line::Touch(touch) => unsafe { lab_fire_touch(touch) },
            Line::Switch(count) => {
                for _ in 0..*count {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
            Line::Thread(cpu) => {
                let rest = std::thread::scope(|scope| {
                    let other = scope.spawn(|| {
                        pin_to(*cpu).with_context(|| format!("CPU {cpu}"))?;
                        run(device, &lines[number + 1..], events, deadline)
                    });
                    other.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?
                })?;
                return Ok((done + rest.0, taken + rest.1));
            }
        }
    }
    Ok((done, taken))
}
