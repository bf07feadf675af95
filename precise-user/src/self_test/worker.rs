//! The worker process of the self-test.
//!
//! The worker writes one line of JSON with the places where its samples must be, waits for one
//! byte, and works until its standard input closes. The input closes when the process that started
//! the worker ends.

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
    places::{Span, WorkerPlaces},
    task::{Task, Work},
};
use crate::error::{ExitClass, Failure};
use precise_sampling::kernel::map_memory::page_size;

const LINE: u64 = 64;
/// Rounds per call of a loop. The number is so large that practically all samples are in the loop
/// itself.
const ROUNDS: u64 = 1 << 20;

fn failed(what: &str, error: io::Error) -> Failure {
    Failure::new(ExitClass::Failed, format!("the self-test's worker cannot {what}: {error}"))
}

/// Does a task, which is given as JSON, until standard input closes. Does not return on success.
///
/// # Errors
///
/// Returns an error if the task is invalid on this machine, or if there is no memory for it.
pub fn work(task: &str) -> Result<std::convert::Infallible, Failure> {
    let task: Task = serde_json::from_str(task)
        .map_err(|error| Failure::new(ExitClass::Usage, format!("not a task of the self-test: {error}")))?;
    let first = *task
        .cpus
        .first()
        .ok_or_else(|| Failure::new(ExitClass::Usage, "a task of the self-test needs a CPU"))?;
    if !task.bytes.is_power_of_two() || task.bytes < page_size() as u64 {
        return Err(Failure::new(
            ExitClass::Usage,
            "the size of a task must be a power of two and at least a page",
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
    // The other threads exist before the first line is written, so that a sampler of this process
    // finds all of them.
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
                    // SAFETY: the loop reads and writes one word of a buffer that exists as long as
                    // the process.
                    unsafe { call(from, ROUNDS) };
                }
            })
            .map_err(|error| failed("start a thread", error))?;
        ready.wait();
    }
    let places = WorkerPlaces {
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

fn say(places: &WorkerPlaces) -> Result<(), Failure> {
    let mut line = serde_json::to_string(places)
        .map_err(|error| Failure::new(ExitClass::Failed, format!("cannot report the addresses: {error}")))?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| failed("report its addresses", error))
}

/// Waits for the first byte, and starts a thread that ends the process when the input closes.
fn begin() -> Result<(), Failure> {
    let mut go = [0];
    io::stdin().lock().read_exact(&mut go).map_err(|error| failed("wait for the start", error))?;
    std::thread::Builder::new()
        .name("end".into())
        .spawn(|| {
            // The process ends whether or not this read succeeded, because the parent is gone.
            let _ended = io::stdin().lock().read_until(0, &mut Vec::new());
            std::process::exit(0);
        })
        .map(drop)
        .map_err(|error| failed("start a thread", error))
}

fn run(work: Work, code: &Loop, buffer: &Buffer) -> ! {
    // Any start value except 0 works.
    let mut from = if work == Work::Branch { 0x9e37_79b9_7f4a_7c15 } else { buffer.address };
    loop {
        match work {
            // SAFETY: `link` stored in each word of the chain the address of another one, and the
            // loop only reads.
            Work::Chase => from = unsafe { (code.call)(from, ROUNDS) },
            // SAFETY: the loop computes in registers only.
            Work::Branch => from = unsafe { (code.call)(from, ROUNDS) },
            // SAFETY: the loop accesses one word of the buffer.
            Work::Share => drop(unsafe { (code.call)(from, ROUNDS) }),
            // SAFETY: the loop stores to each line of the buffer, and not beyond its end.
            Work::Store => drop(unsafe { (code.call)(from, buffer.bytes / LINE) }),
            Work::Touch => {
                // SAFETY: the loop stores to each page of the buffer, and not beyond its end.
                unsafe { (code.call)(from, buffer.bytes / page_size() as u64) };
                buffer.forget();
            }
        }
    }
}

/// Pins this thread to one CPU.
fn pin(cpu: u32) -> Result<(), Failure> {
    // SAFETY: an all-zero set is empty, CPU_SET checks its bound, and the kernel reads one set.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result == 0 { Ok(()) } else { Err(failed(&format!("run on CPU {cpu}"), io::Error::last_os_error())) }
}

/// A buffer without huge pages, which only the loops access.
struct Buffer {
    address: u64,
    bytes: u64,
}

impl Buffer {
    fn map(bytes: u64) -> Result<Self, Failure> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: this creates a new mapping at an address that the kernel chooses.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(failed(&format!("allocate {bytes} bytes"), io::Error::last_os_error()));
        }
        // Huge pages would cause fewer faults than there are pages. A kernel without huge pages
        // returns an error, which is fine. SAFETY: the range is the mapping created above.
        unsafe { libc::madvise(mapped, bytes as usize, libc::MADV_NOHUGEPAGE) };
        Ok(Self { address: mapped as u64, bytes })
    }

    fn span(&self) -> Span {
        Span { begin: self.address, end: self.address + self.bytes }
    }

    /// Returns a function that gives access to the first word of each line. Nothing else accesses
    /// the words before the work starts.
    fn words(&self) -> impl Fn(u64) -> &'static AtomicU64 + use<> {
        let (address, lines) = (self.address, self.bytes / LINE);
        // SAFETY: the word is inside a mapping that is never unmapped, it is aligned to its line,
        // and it is only ever accessed as a word.
        move |line| unsafe { &*((address + line % lines * LINE) as *const AtomicU64) }
    }

    fn fill(&self) {
        let word = self.words();
        (0..self.bytes / LINE).for_each(|line| word(line).store(1, Ordering::Relaxed));
    }

    /// Links all lines into one ring, in an order that looks random.
    fn link(&self) {
        let (word, lines) = (self.words(), self.bytes / LINE);
        let mut at = 0;
        for _ in 0..lines {
            let next = step(at, lines);
            word(place(at, lines)).store(self.address + place(next, lines) * LINE, Ordering::Relaxed);
            at = next;
        }
    }

    /// Returns the pages of the buffer to the kernel.
    fn forget(&self) {
        // SAFETY: the range is the whole mapping, and its content is no longer needed.
        unsafe { libc::madvise(self.address as *mut _, self.bytes as usize, libc::MADV_DONTNEED) };
    }
}

/// Returns the next number of a linear congruential generator with the period `lines`, a power of
/// two (Hull and Dobell: the increment is odd, the multiplier is 1 modulo 4).
pub(super) fn step(at: u64, lines: u64) -> u64 {
    at.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f) & (lines - 1)
}

/// Permutes the line numbers. The lowest bits of the generator alternate, which a prefetcher would
/// detect.
pub(super) fn place(at: u64, lines: u64) -> u64 {
    let bits = lines.trailing_zeros();
    let half = bits.div_ceil(2).max(1);
    let mixed = (at ^ at >> half) & (lines - 1);
    let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (lines - 1);
    (mixed ^ mixed >> half) & (lines - 1)
}

/// Returns the command that starts a worker: this program itself, with a hidden argument of
/// `precise doctor`.
///
/// # Errors
///
/// Returns an error if the file of this program cannot be found.
pub(super) fn command(task: &Task) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|error| failed("find its own program", error))?;
    let text = serde_json::to_string(task)
        .map_err(|error| Failure::new(ExitClass::Failed, format!("cannot write a task: {error}")))?;
    let mut command = Command::new(program);
    command.args(["doctor", "--worker", &text]);
    Ok(command)
}
