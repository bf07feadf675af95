//! The lab: Debian guests with an emulated precise PMU under the kernel's own driver. See
//! tests/lab/README.md.

pub mod apt;
pub mod described;
mod guest;
mod initramfs;
mod kernel;
mod modules;
pub mod newer_perf;
mod pmu;
mod sh;
mod suite;

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;

use crate::{checkout, process};
use guest::{Boot, Guest};
use kernel::{Kernel, KernelSeries, SERIES};
use pmu::GuestPmu;
use suite::LabTest;

/// The Debian packages that the lab needs, for `cargo xtask setup --lab`. Debian 12's kernels ask
/// for the compiler that built them by its version.
pub const HOST_PACKAGES: [&str; 12] = [
    "qemu-system-x86",
    "gcc",
    "gcc-12",
    "make",
    "binutils",
    "libc6-dev",
    "libelf-dev",
    "xz-utils",
    "lz4",
    "zstd",
    "kmod",
    "linux-perf",
];

/// The commands of these packages that the lab itself runs.
const COMMANDS: [&str; 9] =
    ["qemu-system-x86_64", "gcc", "make", "strip", "xz", "lz4", "zstd", "perf", "dpkg-deb"];

/// The largest number of failed tests that are run again, each alone, after they failed next to
/// another guest. More failures than this are not a coincidence.
const MOST_AGAIN: usize = 2;

/// The largest number of guests at a time, however many CPUs there are: each takes 1.5 GB of
/// memory.
const MOST_GUESTS: usize = 4;

/// Run tests in guests with an emulated precise PMU
#[derive(clap::Args)]
pub struct LabArgs {
    /// Kernel series; `newest` has no PMU [default: all]
    #[arg(long, value_delimiter = ',', value_parser = SERIES.map(|series| series.name))]
    kernel: Vec<String>,

    /// PMUs [default: all; zen3, zen5 and icl run only the few tests for every generation]
    #[arg(long, value_enum, value_delimiter = ',')]
    pmu: Vec<GuestPmu>,

    /// Only fetch Debian's current kernels and build everything that a run needs
    #[arg(long)]
    prepare: bool,

    /// Run this script instead of the tests, show everything that it prints, and return its exit
    /// status
    #[arg(long, value_name = "FILE", conflicts_with = "test")]
    shell_script: Option<PathBuf>,

    /// Kill a guest after this many seconds [default: the sum of its tests' timeouts, at least 90]
    #[arg(long)]
    timeout: Option<u64>,

    /// Give the guest the release build of precise
    #[arg(long)]
    release: bool,

    /// Do not build precise and lab-fire first
    #[arg(long)]
    no_build: bool,

    /// Show the console output of the tests
    #[arg(long, short)]
    verbose: bool,

    /// Set a variable in the tests' environment: `C2C_LINES=1000000` makes precise_c2c touch a
    /// million quiet lines
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,

    /// Tests to run, by name or prefix [default: all]
    test: Vec<String>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it is no NAME=VALUE".to_owned()),
    }
}

/// Runs the task.
pub fn run(args: LabArgs) -> Result<()> {
    let asked: Vec<&KernelSeries> = SERIES
        .iter()
        .filter(|series| args.kernel.is_empty() || args.kernel.iter().any(|name| name == series.name))
        .collect();
    // What was asked for by name must be there. What was not asked for is left out.
    if !args.kernel.is_empty()
        && let Some(why) =
            asked.iter().find_map(|series| args.pmu.iter().find_map(|&pmu| series.why_not(pmu)))
    {
        bail!(why);
    }
    let bench = Bench::set_up(&args)?;
    let kernels: Vec<Kernel> = asked
        .into_iter()
        .map(|series| {
            let kernel = Kernel::prepare(&bench.lab, series, args.prepare)?;
            // Before the guests, which need it at the same time.
            kernel.own_perf()?;
            Ok(kernel)
        })
        .collect::<Result<_>>()?;

    let tests = match &args.shell_script {
        Some(file) => {
            vec![LabTest::read(fs::canonicalize(file).with_context(|| file.display().to_string())?)?]
        }
        None => chosen(LabTest::all(&bench.sources.join("tests"))?, &args.test)?,
    };
    let pmus = if args.pmu.is_empty() { GuestPmu::value_variants() } else { &args.pmu };
    let mut jobs = Vec::new();
    for kernel in &kernels {
        for &pmu in pmus.iter().filter(|pmu| kernel.series.why_not(**pmu).is_none()) {
            // A script of the user runs on every requested guest.
            let wanted = |test: &&LabTest| {
                args.shell_script.is_some()
                    || test.runs_on(pmu, kernel.series.name)
                        && (!args.pmu.is_empty() || pmu.has_all_tests() || test.every_generation)
            };
            let here: Vec<&LabTest> = tests.iter().filter(wanted).collect();
            let build = |vendor| modules::build(&bench.lab, &bench.sources.join("modules"), kernel, vendor);
            let module = pmu.vendor().map(build).transpose()?;
            if !args.prepare && !here.is_empty() {
                jobs.push(Job { kernel, pmu, module, tests: here, alone: false });
            }
        }
    }
    // The longest jobs first, so that short ones fill the end, when one CPU would wait for the
    // other.
    jobs.sort_by_key(|job| Reverse(job.tests.iter().map(|test| test.timeout).sum::<u64>()));
    let ran: usize = jobs.iter().map(|job| job.tests.len()).sum();
    let mut failures = bench.run_guests(&args, &jobs)?;
    if jobs.len() > 1 && (1..=MOST_AGAIN).contains(&failures.len()) {
        failures = bench.once_more(&args, failures)?;
    }
    if !failures.is_empty() {
        let names: Vec<String> = failures.iter().map(Job::names).collect();
        bail!("{} of {ran} failed: {}", failures.len(), names.join(", "));
    }
    if ran == 0 && !args.prepare {
        bail!("no test runs on the kernels and PMUs that were asked for");
    }
    Ok(())
}

fn chosen(all: Vec<LabTest>, names: &[String]) -> Result<Vec<LabTest>> {
    if let Some(unknown) =
        names.iter().find(|name| !all.iter().any(|test| test.name.starts_with(name.as_str())))
    {
        let known: Vec<&str> = all.iter().map(|test| test.name.as_str()).collect();
        bail!("no lab test is called {unknown}; there are: {}", known.join(", "));
    }
    Ok(all
        .into_iter()
        .filter(|test| names.is_empty() || names.iter().any(|name| test.name.starts_with(name.as_str())))
        .collect())
}

/// A guest, and the tests that run in it.
struct Job<'a> {
    kernel: &'a Kernel,
    pmu: GuestPmu,
    /// The module that emulates the PMU.
    module: Option<PathBuf>,
    tests: Vec<&'a LabTest>,
    /// Whether it runs alone, after a failure next to other guests.
    alone: bool,
}

impl<'a> Job<'a> {
    /// Returns a job with one of the tests, in a guest of its own.
    fn only(&self, test: &'a LabTest) -> Self {
        let Self { kernel, pmu, module, .. } = self;
        Self { kernel, pmu: *pmu, module: module.clone(), tests: vec![test], alone: true }
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.tests.iter().map(|test| test.name.as_str()).collect();
        format!("{} on {} {}", names.join(", "), self.kernel.series.name, self.pmu.name())
    }
}

/// The settings that all guests of a run share.
struct Bench {
    /// The checkout.
    checkout: PathBuf,
    /// The folder tests/lab in the checkout.
    sources: PathBuf,
    /// The folder for everything that is fetched, built and written.
    lab: PathBuf,
    /// The folder where cargo puts binaries.
    binaries: PathBuf,
    precise: PathBuf,
    init: PathBuf,
}

impl Bench {
    fn set_up(args: &LabArgs) -> Result<Self> {
        let missing: Vec<&str> = COMMANDS.into_iter().filter(|name| !sh::has(name)).collect();
        let no_virtiofsd = (!Path::new(guest::VIRTIOFSD).exists()).then_some(guest::VIRTIOFSD);
        if !missing.is_empty() || no_virtiofsd.is_some() {
            let missing: Vec<&str> = missing.into_iter().chain(no_virtiofsd).collect();
            bail!("the lab needs {}: run `cargo xtask setup --lab`", missing.join(", "));
        }
        let (checkout, target) = (checkout::root(), checkout::target());
        // Several checkouts can share the fetched files.
        let lab = std::env::var_os("PRECISE_LAB_DIR").map_or_else(|| target.join("lab"), PathBuf::from);
        let sources = checkout.join("tests/lab");
        fs::create_dir_all(&lab)?;
        if !args.no_build {
            build_binaries(args.release)?;
        }
        build_workloads(&sources, &lab.join("workloads"))?;
        let init = initramfs::build_init(&lab, &sources.join("init.rs"))?;
        let precise = target.join(if args.release { "release" } else { "debug" }).join("precise");
        Ok(Self { sources, lab, binaries: target.join("debug"), precise, init, checkout })
    }

    /// Runs all guests, as many at a time as there are CPUs, because each is emulated by one
    /// thread. Returns the jobs that did not pass.
    fn run_guests<'a>(&self, args: &LabArgs, jobs: &[Job<'a>]) -> Result<Vec<Job<'a>>> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<Job<'a>>> {
            let mut failures = Vec::new();
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                failures.extend(self.run_guest(args, job)?.into_iter().map(|test| job.only(test)));
            }
            Ok(failures)
        };
        // Output that is shown as it arrives must not be mixed.
        let shown = args.verbose || args.shell_script.is_some();
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let workers = if shown { 1 } else { cpus.clamp(1, MOST_GUESTS) };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let mut failures = Vec::new();
            for worker in workers {
                failures.extend(worker.join().map_err(|_| anyhow!("a guest's thread panicked"))??);
            }
            Ok(failures)
        })
    }

    /// Runs jobs that failed next to other guests once more, alone. When a guest shares the machine
    /// with others, its time jumps as on no real machine. Both results are shown. Returns the jobs
    /// that failed again.
    fn once_more<'a>(&self, args: &LabArgs, failures: Vec<Job<'a>>) -> Result<Vec<Job<'a>>> {
        let mut again = Vec::new();
        for job in failures {
            println!("lab: FAILED BESIDE ANOTHER GUEST, once more alone: {}", job.names());
            if self.run_guest(args, &job)?.is_empty() {
                println!("lab: passed alone: {}", job.names());
            } else {
                again.push(job);
            }
        }
        Ok(again)
    }

    /// Boots one guest for all tests of a job and returns the tests that did not pass.
    fn run_guest<'a>(&self, args: &LabArgs, job: &Job<'a>) -> Result<Vec<&'a LabTest>> {
        let Job { kernel, pmu, module, tests, alone } = job;
        let ending = if *alone { "-alone" } else { "" };
        let dir = self.lab.join("runs").join(format!("{}-{}{ending}", kernel.series.name, pmu.name()));
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(&dir)?;
        let list: Vec<String> =
            tests.iter().map(|test| format!("{}:{}", test.timeout, test.path.display())).collect();
        let environment = [
            ("LAB_CHECKOUT", self.checkout.display().to_string()),
            ("LAB_DIR", self.sources.display().to_string()),
            ("LAB_WORKLOADS", self.lab.join("workloads").display().to_string()),
            ("LAB_BIN", self.binaries.display().to_string()),
            ("PRECISE", self.precise.display().to_string()),
            ("LAB_KERNEL", kernel.series.name.to_owned()),
            ("LAB_MODULES", kernel.modules().display().to_string()),
            ("LAB_PMU", pmu.name().to_owned()),
            ("LAB_VENDOR", pmu.vendor_name().to_owned()),
            ("LAB_TESTS", list.join(" ")),
        ];
        let module_name = pmu.vendor().map(|vendor| ("LAB_MODULE", vendor.module().to_owned()));
        let perf = kernel.own_perf()?.map(|command| ("NEWEST_PERF", command.display().to_string()));
        let set = args.set.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let environment: Vec<_> = environment.into_iter().chain(module_name).chain(perf).chain(set).collect();
        let initramfs = initramfs::pack(&self.init, kernel, *pmu, module.as_deref(), &environment)?;
        let sum: u64 = tests.iter().map(|test| test.timeout).sum();
        let guest = Guest {
            cpu: &pmu.qemu_cpu(),
            cpus: pmu.cpus(),
            vmlinux: &kernel.vmlinux(),
            initramfs: &initramfs,
            dir: &dir,
            limit: Duration::from_secs(args.timeout.unwrap_or_else(|| (sum + 30).max(90))),
        };
        let show = args.verbose || args.shell_script.is_some();
        let follow = |line: &str| {
            if show {
                println!("{line}");
            }
        };
        let mut boot = guest.boot(follow)?;
        if !boot.came_up() {
            eprintln!("lab: {} {} did not come up, once more", kernel.series.name, pmu.name());
            boot = guest.boot(follow)?;
        }
        let (text, failed) = judge(&boot, kernel, *pmu, tests, show, &dir);
        print!("{text}");
        Ok(failed)
    }
}

/// Prints a line per test, with the output of failed ones, and returns the tests that did not
/// report that they passed.
fn judge<'a>(
    boot: &Boot,
    kernel: &Kernel,
    pmu: GuestPmu,
    tests: &[&'a LabTest],
    shown: bool,
    dir: &Path,
) -> (String, Vec<&'a LabTest>) {
    let mut text = format!(
        "lab: {} {} ({}): {:.1} s{}\n",
        kernel.series.name,
        pmu.name(),
        kernel.release,
        boot.took.as_secs_f64(),
        if boot.ended { "" } else { ", did not end by itself" }
    );
    let mut failed = Vec::new();
    for test in tests {
        let verdict = verdict(&boot.lines, &test.name);
        text += &format!("  {:<40} {}\n", test.name, verdict.unwrap_or("no result"));
        if verdict.is_some_and(|v| v.starts_with("pass")) {
            continue;
        }
        failed.push(*test);
        if !shown {
            said(&boot.lines, &test.name).iter().for_each(|line| text += &format!("    | {line}\n"));
        }
    }
    if !failed.is_empty() {
        text += &format!("  the whole console: {}\n", dir.join("console.log").display());
    }
    (text, failed)
}

/// Returns the text that the guest's runner wrote after `LAB-RESULT <name>`.
fn verdict<'a>(lines: &'a [String], name: &str) -> Option<&'a str> {
    lines.iter().find_map(|line| {
        let (test, verdict) = line.strip_prefix("LAB-RESULT ")?.split_once(' ')?;
        (test == name).then_some(verdict)
    })
}

/// Returns the output of a test, or the whole console if it never started.
fn said<'a>(lines: &'a [String], name: &str) -> &'a [String] {
    let start = format!("LAB-TEST {name}");
    let Some(from) = lines.iter().position(|line| *line == start) else {
        return lines;
    };
    let rest = &lines[from + 1..];
    let to = rest.iter().position(|line| line.starts_with("LAB-TEST ") || line.starts_with(guest::END));
    &rest[..to.unwrap_or(rest.len())]
}

fn build_binaries(release: bool) -> Result<()> {
    process::run(&mut process::build_for_tests(&[
        "precise",
        "lab-fire",
        "lab-fields",
        "lab-said",
        "lab-chains",
        "lab-trouble",
        "bench-kernel-types",
    ]))?;
    if release {
        process::run(&mut process::build_release())?;
    }
    Ok(())
}

/// Compiles the workloads with debug information, because tests look up lines and variables; the
/// forest also with frame pointers, in each function; and the programs of the host's tests that
/// print their objects.
fn build_workloads(sources: &Path, to: &Path) -> Result<()> {
    const SHAPES: [(&str, &str, &[&str]); 3] = [
        ("c", "gcc", &["-O2", "-g"]),
        ("cc", "g++", &["-O2", "-g"]),
        ("rs", "rustc", &["-Copt-level=2", "-g", "--edition=2024"]),
    ];
    const OWN: &[&str] = &["-O2", "-g", "-pthread"];
    const FRAMES: &[&str] = &["-O2", "-g", "-pthread", "-fno-omit-frame-pointer", "-DFRAMES"];
    /// Mapped without what they would be linked with.
    const LIBRARY: &[&str] = &["-O2", "-g", "-shared", "-fPIC", "-nostdlib", "-mno-red-zone"];
    const LIBRARIES: u32 = 10;
    fs::create_dir_all(to)?;
    let shapes = SHAPES.map(|(language, compiler, flags)| {
        let source = sources.join("../host/type_programs").join(format!("shapes.{language}"));
        (source, to.join(format!("shapes-{language}")), compiler, flags, Vec::new())
    });
    let mut programs = Vec::from(shapes);
    programs.push((sources.join("workloads/forest.c"), to.join("forest-frames"), "gcc", FRAMES, Vec::new()));
    for entry in fs::read_dir(sources.join("workloads"))? {
        let source = entry?.path();
        if source.extension().is_some_and(|e| e == "c") {
            let binary = to.join(source.file_stem().unwrap_or_default());
            programs.push((source, binary, "gcc", OWN, Vec::new()));
        }
    }
    for number in 0..LIBRARIES {
        let source = sources.join("workloads/libraries/library.c");
        let own = [format!("-DNUMBER={number}"), format!("-Wl,-e,library_{number}_outer")];
        programs.push((source, to.join(format!("library_{number}.so")), "gcc", LIBRARY, own.into()));
    }
    for (source, binary, compiler, flags, more) in programs {
        let newer = |a: &Path, b: &Path| -> Option<bool> {
            Some(a.metadata().ok()?.modified().ok()? > b.metadata().ok()?.modified().ok()?)
        };
        if newer(&binary, &source) != Some(true) {
            sh::run(Command::new(compiler).args(flags).args(more).arg("-o").arg(&binary).arg(&source))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_counts_only_for_the_test_it_names() {
        let lines: Vec<String> = [
            "LAB-TEST a",
            "x",
            "LAB-RESULT a pass",
            "LAB-TEST ab",
            "y",
            "LAB-RESULT ab fail: exit 1",
            "LAB-END",
        ]
        .map(str::to_owned)
        .to_vec();
        assert_eq!(verdict(&lines, "a"), Some("pass"));
        assert_eq!(verdict(&lines, "ab"), Some("fail: exit 1"));
        assert_eq!(verdict(&lines, "b"), None);
        assert_eq!(said(&lines, "ab"), ["y", "LAB-RESULT ab fail: exit 1"]);
        assert_eq!(said(&lines, "zz"), &lines[..]);
    }
}
