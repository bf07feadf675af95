//! The process that does the work.
//!
//! It says where its samples must lie as one line of JSON, waits for one byte, works, and ends when
//! its input does: with the process that started it.

use std::{
    io::{self, BufRead as _, Read as _, Write},
    process::Command,
    sync::{
        Arc, Barrier,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    code::{self, Loop},
    places::{Places, Span},
    task::{Task, Work},
};
use crate::error::{Class, Failure};
use precise_sampling::kernel::map_memory::page_size;

const LINE: u64 = 64;
/// Rounds between two looks at nothing: long enough that the loop itself is all that is ever seen.
const ROUNDS: u64 = 1 << 20;

fn failed(what: &str, error: io::Error) -> Failure {
    Failure::new(Class::Failed, format!("the self-test's worker cannot {what}: {error}"))
}

/// Does a task, given as JSON, until the standard input ends. Does not come back.
///
/// # Errors
///
/// When the task makes no sense here, or there is no memory for it.
pub fn work(task: &str) -> Result<std::convert::Infallible, Failure> {
    let task: Task = serde_json::from_str(task)
        .map_err(|error| Failure::new(Class::Usage, format!("not a task of the self-test: {error}")))?;
    let first = *task
        .cpus
        .first()
        .ok_or_else(|| Failure::new(Class::Usage, "a task of the self-test needs a CPU"))?;
    if !task.bytes.is_power_of_two() || task.bytes < page_size() as u64 {
        return Err(Failure::new(
            Class::Usage,
            "the size of a task must be a power of two and at least a \
            page",
        ));
    }
    pin(first)?;
    let buffer = Buffer::map(task.bytes)?;
    let (code, data) = match task.work {
        Work::Chase => (code::chase(), Some(buffer.span())),
        Work::Store => (code::store(), Some(buffer.span())),
        Work::Touch => (code::touch(), Some(buffer.span())),
        Work::Share => (code::share(), Some(Span { begin: buffer.address, end: buffer.address + LINE })),
        Work::Branch => (code::branch(), None),
    };
    match task.work {
        Work::Chase => buffer.link(),
        Work::Store | Work::Share => buffer.fill(),
        Work::Branch | Work::Touch => {}
    }
    let start = Arc::new(Barrier::new(task.cpus.len().max(1)));
    // The other threads are there before the first word: whoever samples this process finds them
    // all.
    for (number, cpu) in task.cpus.iter().copied().enumerate().skip(1) {
        let (start, call, from) = (start.clone(), code.call, buffer.address + 8 * number as u64);
        let ready = Arc::new(Barrier::new(2));
        let tell = ready.clone();
        std::thread::Builder::new()
            .name("share".into())
            .spawn(move || {
                let pinned = pin(cpu);
                tell.wait();
                start.wait();
                while pinned.is_ok() {
                    // SAFETY: the loop reads and writes one word of a buffer that lives as long as
                    // the process.
                    unsafe { call(from, ROUNDS) };
                }
            })
            .map_err(|error| failed("start a thread", error))?;
        ready.wait();
    }
    let places = Places {
        function: code.function,
        instructions: code.instructions.clone(),
        predictable: code.predictable,
        data,
    };
    say(&places)?;
    begin()?;
    start.wait();
    run(task.work, &code, &buffer)
}

fn say(places: &Places) -> Result<(), Failure> {
    let mut line = serde_json::to_string(places)
        .map_err(|error| Failure::new(Class::Failed, format!("cannot report the addresses: {error}")))?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| failed("report its addresses", error))
}

/// Waits for the first byte, and ends the process when there are no more.
fn begin() -> Result<(), Failure> {
    let mut go = [0];
    io::stdin().lock().read_exact(&mut go).map_err(|error| failed("wait for the start", error))?;
    std::thread::Builder::new()
        .name("end".into())
        .spawn(|| {
            // Whether it ended well or not: nobody is there any more.
            let _ended = io::stdin().lock().read_until(0, &mut Vec::new());
            std::process::exit(0);
        })
        .map(drop)
        .map_err(|error| failed("start a thread", error))
}

fn run(work: Work, code: &Loop, buffer: &Buffer) -> ! {
    // Any start but 0 will do.
    let mut from = if work == Work::Branch { 0x9e37_79b9_7f4a_7c15 } else { buffer.address };
    loop {
        match work {
            // SAFETY: `link` made each word of the chain the address of another; the loop only
            // reads.
            Work::Chase => from = unsafe { (code.call)(from, ROUNDS) },
            // SAFETY: computes in registers only.
            Work::Branch => from = unsafe { (code.call)(from, ROUNDS) },
            // SAFETY: one word of the buffer.
            Work::Share => drop(unsafe { (code.call)(from, ROUNDS) }),
            // SAFETY: a store to each line of the buffer, and none behind its end.
            Work::Store => drop(unsafe { (code.call)(from, buffer.bytes / LINE) }),
            Work::Touch => {
                // SAFETY: a store to each page of the buffer, and none behind its end.
                unsafe { (code.call)(from, buffer.bytes / page_size() as u64) };
                buffer.forget();
            }
        }
    }
}

/// Keeps this thread on one CPU.
fn pin(cpu: u32) -> Result<(), Failure> {
    // SAFETY: an all-zero set is empty, CPU_SET checks its bound, and the kernel reads one set.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result == 0 { Ok(()) } else { Err(failed(&format!("run on CPU {cpu}"), io::Error::last_os_error())) }
}

/// Memory of its own, without huge pages: touched by nothing but the loops.
struct Buffer {
    address: u64,
    bytes: u64,
}

impl Buffer {
    fn map(bytes: u64) -> Result<Self, Failure> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, wherever there is room.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(failed(&format!("allocate {bytes} bytes"), io::Error::last_os_error()));
        }
        // With huge pages there would be fewer faults than pages. A kernel without them refuses,
        // and is right. SAFETY: the mapping made above.
        unsafe { libc::madvise(mapped, bytes as usize, libc::MADV_NOHUGEPAGE) };
        Ok(Self { address: mapped as u64, bytes })
    }

    fn span(&self) -> Span {
        Span { begin: self.address, end: self.address + self.bytes }
    }

    /// The first word of each line. Nobody else looks at it before the work begins.
    fn words(&self) -> impl Fn(u64) -> &'static AtomicU64 + use<> {
        let (address, lines) = (self.address, self.bytes / LINE);
        // SAFETY: inside of a mapping that is never unmapped, aligned to its line, and only ever
        // accessed as a word.
        move |line| unsafe { &*((address + line % lines * LINE) as *const AtomicU64) }
    }

    fn fill(&self) {
        let word = self.words();
        (0..self.bytes / LINE).for_each(|line| word(line).store(1, Ordering::Relaxed));
    }

    /// Makes one ring of all lines, in an order that looks like none.
    fn link(&self) {
        let (word, lines) = (self.words(), self.bytes / LINE);
        let mut at = 0;
        for _ in 0..lines {
            let next = step(at, lines);
            word(place(at, lines)).store(self.address + place(next, lines) * LINE, Ordering::Relaxed);
            at = next;
        }
    }

    /// Gives the pages back.
    fn forget(&self) {
        // SAFETY: the whole mapping; its content is of no use to anybody.
        unsafe { libc::madvise(self.address as *mut _, self.bytes as usize, libc::MADV_DONTNEED) };
    }
}

/// The next number of a linear congruential generator whose period is `lines`, a power of two (Hull
/// and Dobell: the increment is odd, the multiplier 1 modulo 4).
pub(super) fn step(at: u64, lines: u64) -> u64 {
    at.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f) & (lines - 1)
}

/// A permutation of the lines: the generator's lowest bits alternate, and a prefetcher would see
/// it.
pub(super) fn place(at: u64, lines: u64) -> u64 {
    let bits = lines.trailing_zeros();
    let half = bits.div_ceil(2).max(1);
    let mixed = (at ^ at >> half) & (lines - 1);
    let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (lines - 1);
    (mixed ^ mixed >> half) & (lines - 1)
}

/// The command that starts a worker: this program itself, with a hidden argument of `precise
/// doctor`.
///
/// # Errors
///
/// When the program's own file cannot be found.
pub(super) fn command(task: &Task) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|error| failed("find its own program", error))?;
    let text = serde_json::to_string(task)
        .map_err(|error| Failure::new(Class::Failed, format!("cannot write a task: {error}")))?;
    let mut command = Command::new(program);
    command.args(["doctor", "--worker", &text]);
    Ok(command)
}
