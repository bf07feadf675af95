//! `cargo xtask bench churn`: runs `precise record` and `precise serve` while processes, containers
//! and libraries come and go, and judges whether their memory stays flat.

use std::{
    ffi::OsStr,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use precise::capture::{CaptureFile as _, ReadLimits};
use precise::model::Capture;
use precise_tests::{cgroup::Cgroup, kill_on_drop::KillOnDrop, program, resident, say};

/// The interval between two measurements.
const LOOK: Duration = Duration::from_secs(1);
/// A row of the table for this number of looks.
const LOOKS_OF_ROW: u32 = 10;
/// How far the median of a minute may be above that of the first minute after the warm-up.
const FLAT: f64 = 0.05;
/// The minutes before the memory of `record` is judged. By then, what is bounded by time is full: a
/// run forgets each 30 s what nobody asked for since the time before.
const RECORD_WARM_UP: usize = 1;
/// The same for `serve`, which keeps a series for ten minutes after its last sample, so that no
/// scrape misses it.
const SERVE_WARM_UP: usize = 11;
/// The pause after each process, so that the churn leaves CPU time to others.
const PAUSE: Duration = Duration::from_millis(20);

/// The names of the processes that come and go. No others are sampled, so that what else runs on
/// the machine is followed, but has no rows.
const ENDS: &str = "churn-true";
const UNSHARE: &str = "churn-unshare";
const FAULTS: &str = "churn-faults";
const LOADS: &str = "churn-loader";

/// A library that is loaded under a new name each time. Its data are pages of its own, which
/// fault.
const LIBRARY: &str = r#"
static volatile char data[16 * 4096] = { 1 };
int churn_touch(void)
{
    int at;
    for (at = 0; at < 16; at++)
        data[at * 4096]++;
    return data[0];
}
"#;

/// Copies the library to a new name, loads it, calls it, and unloads it, again and again. Also
/// touches pages from code that only a perf map names: a new function each time, in one file that
/// grows and begins again, as that of a just-in-time compiler.
const LOADER: &str = r#"#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char image[1 << 20];

/* for (; rsi > 0; rsi--, rdi += 4096) *rdi = 1; */
static const unsigned char code[] = { 0x48, 0x85, 0xf6, 0x74, 0x0f, 0xc6, 0x07, 0x01, 0x48, 0x81,
    0xc7, 0x00, 0x10, 0x00, 0x00, 0x48, 0xff, 0xce, 0xeb, 0xec, 0xc3 };

static void load(const char *from, long number)
{
    char name[4096];
    FILE *in = fopen(from, "r"), *out;
    size_t length;
    void *library;
    if (!in)
        exit(2);
    length = fread(image, 1, sizeof(image), in);
    fclose(in);
    snprintf(name, sizeof(name), "%s.%ld", from, number);
    out = fopen(name, "w");
    if (!out || fwrite(image, 1, length, out) != length || fclose(out))
        exit(3);
    library = dlopen(name, RTLD_NOW);
    unlink(name);
    if (!library)
        exit(4);
    ((int (*)(void))dlsym(library, "churn_touch"))();
    dlclose(library);
}

static void compile(const char *map, long number)
{
    FILE *names = fopen(map, number % 1000 ? "a" : "w");
    char *function = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *pages = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!names)
        exit(5);
    memcpy(function, code, sizeof(code));
    fprintf(names, "%lx 1000 compiled_%ld\n", (long)function, number);
    fclose(names);
    ((void (*)(char *, long))function)(pages, 64);
    munmap(pages, 64 * 4096);
    munmap(function, 4096);
}

int main(int argc, char **argv)
{
    char map[64];
    long number;
    snprintf(map, sizeof(map), "/tmp/perf-%d.map", getpid());
    for (number = 0; argc > 2 ? number < atol(argv[2]) : 1; number++) {
        load(argv[1], number);
        compile(map, number);
        putchar('.');
        fflush(stdout);
        usleep(50000);
    }
    unlink(map);
    return 0;
}
"#;

/// What has come and gone so far.
#[derive(Default)]
struct Churn {
    stop: AtomicBool,
    processes: AtomicU64,
    containers: AtomicU64,
    programs: AtomicU64,
    libraries: AtomicU64,
}

impl Churn {
    /// Starts processes, containers and new programs in turn until it is stopped.
    fn go_on(&self, folder: &Path) -> Result<()> {
        // Elsewhere than the pages that the tests sample on the whole machine.
        let elsewhere = program::FAULTS.replace("0x500000000000", "0x600000000000");
        let faults = program::c(folder, FAULTS, &elsewhere)?;
        let own = |name: &str, from: &str| -> Result<PathBuf> {
            let program = folder.join(name);
            fs::copy(from, &program).with_context(|| from.to_owned())?;
            Ok(program)
        };
        let (ends, unshare) = (own(ENDS, "/bin/true")?, own(UNSHARE, "/usr/bin/unshare")?);
        for number in 0_u64.. {
            if self.stop.load(Relaxed) {
                break;
            }
            match number % 4 {
                // The name that systemd gives the cgroup of a container.
                0 => {
                    let cgroup = Cgroup::new(&format!("churn-{number:064x}.scope"))?;
                    let options = ["--mount", "--pid", "--fork"].map(OsStr::new);
                    cgroup.run(&unshare, options.into_iter().chain([ends.as_os_str()]))?;
                    cgroup.remove()?;
                    self.containers.fetch_add(1, Relaxed);
                }
                // A program that did not exist before, and does not exist after.
                1 => {
                    let home = folder.join(format!("home-{number}"));
                    fs::create_dir(&home)?;
                    let program = home.join(FAULTS);
                    fs::copy(&faults, &program)?;
                    // A process that the other thread is starting may still have the copy open.
                    while let Err(error) = run(Command::new(&program).arg("50")) {
                        let busy = |error: &std::io::Error| error.kind() == ErrorKind::ExecutableFileBusy;
                        ensure!(error.downcast_ref().is_some_and(busy), error);
                        thread::sleep(PAUSE);
                    }
                    fs::remove_dir_all(&home)?;
                    self.programs.fetch_add(1, Relaxed);
                }
                _ => run(&mut Command::new(&ends))?,
            }
            self.processes.fetch_add(1, Relaxed);
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Keeps one process that loads libraries for long, and others that load some and end.
    fn load(&self, folder: &Path) -> Result<()> {
        let library = folder.join("churn-library.so");
        let source = folder.join("churn-library.c");
        fs::write(&source, LIBRARY)?;
        run(Command::new("gcc").args(["-O1", "-g", "-shared", "-fPIC", "-o"]).args([&library, &source]))?;
        let loader = program::c(folder, LOADS, LOADER)?;
        let output = folder.join("loaded");
        let mut long = Command::new(&loader).arg(&library).stdout(fs::File::create(&output)?).spawn()?;
        let other = folder.join("churn-other.so");
        fs::copy(&library, &other)?;
        let loaded = || fs::metadata(&output).map_or(0, |file| file.len());
        let mut short = 0;
        while !self.stop.load(Relaxed) {
            run(Command::new(&loader).arg(&other).arg("10").stdout(Stdio::null()))?;
            short += 10;
            self.libraries.store(loaded() + short, Relaxed);
            ensure!(long.try_wait()?.is_none(), "the process that loads libraries has ended");
        }
        long.kill()?;
        long.wait()?;
        // It had no chance to remove its own.
        let _absent = fs::remove_file(format!("/tmp/perf-{}.map", long.id()));
        Ok(())
    }
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// A run of precise that is measured, and killed when this is dropped.
struct Run {
    name: &'static str,
    /// The minutes before its memory is judged.
    warm_up: usize,
    child: KillOnDrop,
    /// The file with its standard error.
    said: PathBuf,
    /// Memory in bytes of the run's own process, and of the processes that read files for it.
    looks: Vec<(u64, u64)>,
}

impl Run {
    fn start(precise: &Path, folder: &Path, name: &'static str, arguments: &[&str]) -> Result<Self> {
        let said = folder.join(format!("{name}.stderr"));
        let child = Command::new(precise)
            .arg(name)
            .args(["-a", "-e", "page-faults", "-c", "7", "--epoch", "1s", "--duration", "100h"])
            .args(["--filter", &format!("comm in {{{ENDS}, {UNSHARE}, {FAULTS}, {LOADS}}}")])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&said)?)
            .spawn()?;
        let warm_up = if name == "serve" { SERVE_WARM_UP } else { RECORD_WARM_UP };
        Ok(Self { name, warm_up, child: child.into(), said, looks: Vec::new() })
    }

    fn look(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} has ended by itself: {status}: {}", self.name, fs::read_to_string(&self.said)?);
        }
        let own = resident::of(self.child.id())?;
        self.looks.push((own, resident::of_children(self.child.id())));
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        // SAFETY: a child that has not been waited for, so the id still belongs to it.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGINT) };
        let asked = Instant::now();
        let status = self.child.wait()?;
        ensure!(status.success(), "{}: {status}: {}", self.name, fs::read_to_string(&self.said)?);
        say(&format!("{} ended {:.1} s after it was asked", self.name, asked.elapsed().as_secs_f64()));
        Ok(())
    }
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// Returns the median of each minute after the warm-up.
fn minutes(looks: &[u64], warm_up: usize) -> Vec<f64> {
    let of_a_minute = (60 / LOOK.as_secs()) as usize;
    let median = |minute: &[u64]| {
        let mut sorted = minute.to_vec();
        sorted.sort_unstable();
        sorted[sorted.len() / 2] as f64
    };
    looks.chunks_exact(of_a_minute).skip(warm_up).map(median).collect()
}

/// Judges memory over time, and prints why. Returns whether it is flat.
fn judge(what: &str, looks: &[u64], warm_up: usize) -> bool {
    let minutes = minutes(looks, warm_up);
    let (Some(&first), false) = (minutes.first(), minutes.len() < 2) else {
        say(&format!("{what}: less than {} minutes cannot be judged", warm_up + 2));
        return false;
    };
    let least = minutes.iter().copied().fold(f64::INFINITY, f64::min);
    let most = minutes.iter().copied().fold(0.0, f64::max);
    // The median slope of all pairs of minutes (Theil and Sen): one minute does not bend it.
    let pairs = |at: usize| (at + 1..minutes.len()).map(move |later| (at, later));
    let mut slopes: Vec<f64> = (0..minutes.len())
        .flat_map(pairs)
        .map(|(at, later)| (minutes[later] - minutes[at]) / (later - at) as f64)
        .collect();
    slopes.sort_by(f64::total_cmp);
    let slope = slopes[slopes.len() / 2] * 60.0;
    let flat = most <= first * (1.0 + FLAT) && slope <= first * FLAT;
    say(&format!(
        "{what}: {:.1} MiB in minute {}; {:.1} to {:.1} MiB since ({:+.1} % at most); \
         slope {:+.2} MiB an hour: {}",
        mib(first),
        warm_up + 1,
        mib(least),
        mib(most),
        (most / first - 1.0) * 100.0,
        mib(slope),
        if flat { "flat" } else { "NOT FLAT" }
    ));
    flat
}

/// Prints a row of the table: seconds, what has come and gone, memory.
fn row(begin: Instant, churn: &Churn, runs: &[Run]) {
    let count = |counter: &AtomicU64| counter.load(Relaxed);
    let memory: Vec<String> = runs
        .iter()
        .filter_map(|run| run.looks.last())
        .map(|(own, others)| format!("{:>8.1} {:>8.1}", mib(*own as f64), mib(*others as f64)))
        .collect();
    println!(
        "{:>6} {:>9} {:>10} {:>8} {:>9} {}",
        begin.elapsed().as_secs(),
        count(&churn.processes),
        count(&churn.containers),
        count(&churn.programs),
        count(&churn.libraries),
        memory.join(" ")
    );
}

/// Measures for this time, and returns the runs, ended.
fn measure(precise: &Path, folder: &Path, duration: Duration) -> Result<(Vec<Run>, Churn)> {
    let capture = folder.join("churn.parquet");
    let capture = capture.to_str().context("a path")?;
    let mut runs = vec![
        Run::start(precise, folder, "record", &["--by", "ip,process,cgroup", "-o", capture])?,
        Run::start(precise, folder, "serve", &["--by", "cgroup,process", "--listen", "127.0.0.1:0"])?,
    ];
    let churn = Churn::default();
    println!("     s processes containers programs libraries   record +readers  serve +readers (MiB)");
    let measured = thread::scope(|scope| -> Result<()> {
        let coming = scope.spawn(|| churn.go_on(folder));
        let loading = scope.spawn(|| churn.load(folder));
        let begin = Instant::now();
        let measured = (|| {
            for look in 1_u32.. {
                thread::sleep((LOOK * look).saturating_sub(begin.elapsed()));
                runs.iter_mut().try_for_each(Run::look)?;
                if look % LOOKS_OF_ROW == 0 {
                    row(begin, &churn, &runs);
                }
                ensure!(!coming.is_finished() && !loading.is_finished(), "the churn has ended early");
                if begin.elapsed() >= duration {
                    break;
                }
            }
            runs.iter_mut().try_for_each(Run::end)
        })();
        churn.stop.store(true, Relaxed);
        let died = || anyhow::anyhow!("a thread of the churn died");
        coming.join().map_err(|_| died())?.context("processes and containers")?;
        loading.join().map_err(|_| died())?.context("libraries")?;
        measured
    });
    measured?;
    Ok((runs, churn))
}

/// Checks that the ledger of the capture closes, and prints its notes.
fn check(folder: &Path) -> Result<()> {
    let file = folder.join("churn.parquet");
    let capture = Capture::read_limited(&file, &ReadLimits::default())?;
    let ledger = &capture.meta.events[0].ledger;
    ensure!(ledger.unaccounted() == 0, "{ledger:?}");
    let samples: u64 = capture.rows.iter().map(|row| row.measures.count).sum();
    say(&format!("{samples} samples in {} epochs; the ledger closes", capture.meta.epochs.len()));
    capture.meta.notes.iter().for_each(|note| say(&format!("note: {note}")));
    Ok(())
}

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let precise = PathBuf::from(arguments.next().context("usage: bench-churn PRECISE SECONDS")?);
    let seconds = arguments.next().context("for how many seconds?")?;
    let seconds: u64 = seconds.to_str().context("seconds")?.parse()?;
    let folder = tempfile::tempdir()?;
    let (runs, _) = measure(&precise, folder.path(), Duration::from_secs(seconds))?;
    check(folder.path())?;
    let mut flat = true;
    for run in &runs {
        let own: Vec<u64> = run.looks.iter().map(|(own, _)| *own).collect();
        let all: Vec<u64> = run.looks.iter().map(|(own, others)| own + others).collect();
        flat &= judge(run.name, &own, run.warm_up);
        flat &= judge(&format!("{} with its readers", run.name), &all, run.warm_up);
    }
    Ok(if flat { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
