//! The programs that are profiled. Each prints the nanoseconds that one of its operations took.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};
use precise_tests::kill_on_drop::KillOnDrop;
use precise_tests::program;

/// The name of the program that does one of [`Load`].
pub const NAME: &str = "load";

/// What a program does again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Touches a new page: a page fault.
    Faults,
    /// Follows a chain of addresses through 64 MiB: cache misses.
    Memory,
    /// Multiplies numbers in registers.
    Compute,
    /// Calls getppid(2).
    Syscalls,
}

impl Load {
    /// The name of the load, as the program takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Faults => "faults",
            Self::Memory => "memory",
            Self::Compute => "compute",
            Self::Syscalls => "syscalls",
        }
    }

    /// How often the operation is repeated: about a second's work.
    const fn operations(self) -> u64 {
        match self {
            Self::Faults => 400_000,
            Self::Memory => 10_000_000,
            Self::Compute => 1_000_000_000,
            Self::Syscalls => 10_000_000,
        }
    }
}

const SOURCE: &str = r#"#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 16384, LINKS = 1 << 20, STRIDE = 8 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static char *pages(long number)
{
    char *begin = mmap(0, number * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED)
        exit(2);
    madvise(begin, number * PAGE, MADV_NOHUGEPAGE);
    return begin;
}

/* Only the touching is timed, not the freeing. */
static double faults(long operations)
{
    double spent = 0;
    long done, at;
    for (done = 0; done < operations; done += PAGES) {
        volatile char *begin = pages(PAGES);
        double start = now();
        for (at = 0; at < PAGES; at++)
            begin[at * PAGE] = 1;
        spent += now() - start;
        munmap((void *)begin, (long)PAGES * PAGE);
    }
    return spent / done;
}

/* One cycle through all lines in a random order. */
static size_t *cycle(void)
{
    size_t *chain = (size_t *)pages(LINKS * STRIDE * sizeof(size_t) / PAGE);
    size_t *order = malloc(LINKS * sizeof(*order));
    long i;
    for (i = 0; i < LINKS; i++)
        order[i] = i;
    srandom(1);
    for (i = LINKS - 1; i > 0; i--) {
        long other = random() % (i + 1);
        size_t keep = order[i];
        order[i] = order[other];
        order[other] = keep;
    }
    for (i = 0; i < LINKS; i++)
        chain[order[i] * STRIDE] = order[(i + 1) % LINKS] * STRIDE;
    free(order);
    return chain;
}

static double memory(long operations)
{
    static size_t *chain, at;
    long i;
    double start;
    if (!chain)
        chain = cycle();
    start = now();
    for (i = 0; i < operations; i++)
        at = chain[at];
    __asm__ volatile("" : : "r"(at));
    return (now() - start) / operations;
}

static double compute(long operations)
{
    unsigned long value = 1;
    double start = now();
    long i;
    for (i = 0; i < operations; i++) {
        value = value * 6364136223846793005ul + 1;
        __asm__ volatile("" : "+r"(value));
    }
    return (now() - start) / operations;
}

static double syscalls(long operations)
{
    double start = now();
    long i;
    for (i = 0; i < operations; i++)
        syscall(SYS_getppid);
    return (now() - start) / operations;
}

static double run(const char *name, long operations)
{
    if (!strcmp(name, "faults"))
        return faults(operations);
    if (!strcmp(name, "memory"))
        return memory(operations);
    if (!strcmp(name, "compute"))
        return compute(operations);
    if (!strcmp(name, "syscalls"))
        return syscalls(operations);
    exit(1);
}

/* Does as many operations as each line says. */
int main(int count, char **arguments)
{
    long operations;
    if (count != 2)
        return 1;
    while (scanf("%ld", &operations) == 1 && operations > 0) {
        printf("%f\n", run(arguments[1], operations));
        fflush(stdout);
    }
    return 0;
}
"#;

/// Starts a program that ends at once, again and again.
const STARTS: &str = r#"#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

int main(int count, char **arguments)
{
    char *program[] = { "/bin/true", 0 };
    struct timespec next;
    long pause = count == 2 ? 1000000000 / atol(arguments[1]) : 0;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (pause > 0) {
        pid_t child;
        if (posix_spawn(&child, program[0], 0, 0, program, environ) != 0)
            return 1;
        waitpid(child, 0, 0);
        next.tv_nsec += pause;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
    }
    return 1;
}
"#;

/// Is many processes, each in the cgroup of its folder if there are any, that touch a number of
/// pages each second; or one process with a number of mappings of its own program.
const CROWD: &str = r#"#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void touch(long pages)
{
    char *begin = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long at;
    if (begin == MAP_FAILED)
        exit(2);
    madvise(begin, pages * PAGE, MADV_NOHUGEPAGE);
    for (at = 0; at < pages; at++)
        ((volatile char *)begin)[at * PAGE] = 1;
    munmap(begin, pages * PAGE);
}

static void enter(const char *folder)
{
    char name[4096];
    int file;
    snprintf(name, sizeof(name), "%s/cgroup.procs", folder);
    file = open(name, O_WRONLY);
    if (file < 0 || write(file, "0", 1) != 1)
        exit(3);
    close(file);
}

static void spread(long processes, long pages, char **folders)
{
    long at;
    for (at = 0; at < processes; at++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (*folders)
                enter(folders[at]);
            for (;; usleep(1000000))
                touch(pages);
        }
}

static void map(long mappings)
{
    int file = open("/proc/self/exe", O_RDONLY);
    long at;
    for (at = 0; at < mappings; at++)
        if (mmap(0, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
            exit(4);
}

int main(int count, char **arguments)
{
    if (count >= 4 && !strcmp(arguments[1], "spread"))
        spread(atol(arguments[2]), atol(arguments[3]), arguments + 4);
    else if (count == 3 && !strcmp(arguments[1], "mappings"))
        map(atol(arguments[2]));
    else
        return 1;
    puts("ready");
    fflush(stdout);
    for (;; usleep(10000))
        touch(1);
}
"#;

/// The compiled programs.
pub struct Work {
    program: PathBuf,
    starts: PathBuf,
    crowd: PathBuf,
    /// The load that ran last. It waits for the next question, so that all contenders have the same
    /// process: another one would have other pages, and with them another part of its memory in the
    /// cache.
    waiting: RefCell<Option<(Load, Worker)>>,
}

/// A process that does operations of a load.
pub struct Worker {
    // Killed before its pipes are closed.
    _process: KillOnDrop,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a process, and lets it do what it does only once.
    fn start(command: &mut Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let process = KillOnDrop::from(process);
        let (input, output) = pipes.context("a load without pipes")?;
        let mut worker = Self { _process: process, input, output: BufReader::new(output) };
        worker.run(1)?;
        Ok(worker)
    }

    /// Tells it to do this number of operations.
    fn tell(&mut self, times: u64) -> Result<()> {
        writeln!(self.input, "{times}").context("the load has ended")
    }

    /// Lets it do this number of operations. Returns the nanoseconds of one.
    fn run(&mut self, times: u64) -> Result<f64> {
        self.tell(times)?;
        let mut said = String::new();
        self.output.read_line(&mut said)?;
        said.trim().parse().with_context(|| format!("the load printed {said:?}"))
    }
}

impl Work {
    /// Compiles the programs.
    ///
    /// # Errors
    ///
    /// Returns the compiler's errors.
    pub fn new(folder: &Path) -> Result<Self> {
        Ok(Self {
            program: program::c(folder, NAME, SOURCE)?,
            starts: program::c(folder, "starts", STARTS)?,
            crowd: program::c(folder, "crowd", CROWD)?,
            waiting: RefCell::new(None),
        })
    }

    /// Returns the program that is many processes, or has many mappings.
    pub fn crowd(&self) -> &Path {
        &self.crowd
    }

    /// Runs a load on one CPU. Returns the nanoseconds of one operation.
    ///
    /// # Errors
    ///
    /// Returns an error if the load fails.
    pub fn run(&self, load: Load) -> Result<f64> {
        self.run_times(load, load.operations())
    }

    /// Does the operation of a load `times` times. Returns the nanoseconds of one.
    ///
    /// # Errors
    ///
    /// Returns an error if the load fails.
    pub fn run_times(&self, load: Load, times: u64) -> Result<f64> {
        let mut waiting = self.waiting.borrow_mut();
        let (_, worker) = match waiting.take() {
            Some((of, worker)) if of == load => waiting.insert((of, worker)),
            _ => {
                let mut command = Command::new("taskset");
                command.args(["-c", "1"]).arg(&self.program).arg(load.name());
                waiting.insert((load, Worker::start(&mut command)?))
            }
        };
        worker.run(times).with_context(|| format!("the load {}", load.name()))
    }

    /// Keeps each CPU busy with a load until the result is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if a program cannot be started.
    pub fn busy(&self, load: Load) -> Result<Vec<Worker>> {
        let cpus = std::thread::available_parallelism()?.get();
        let start = |_| {
            let mut worker = Worker::start(Command::new(&self.program).arg(load.name()))?;
            worker.tell(u64::from(u32::MAX) * 1000)?;
            Ok(worker)
        };
        (0..cpus).map(start).collect()
    }

    /// Starts this number of programs each second until the result is dropped, or as many as the
    /// machine can.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot begin.
    pub fn starting(&self, each_second: u32) -> Result<KillOnDrop> {
        Ok(Command::new(&self.starts).arg(each_second.to_string()).spawn()?.into())
    }
}
