//! `precise script`: each sample that passes the filter is one line, with its symbols, in the order
//! of time; lost samples are counted.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStdout, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use precise::machine::{MachineInfo, Root};
use precise_tests::{
    load::{Load, fault},
    program::{BASE, FUNCTION, LINE, PAGE, faults},
    run::{Disturbed, Ended, command, precise, undisturbed},
    say,
};
use serde_json::Value;

/// A prime, so that no two numbers of a test are equal by accident.
const PAGES: u64 = 1009;
const HALF: u64 = 504;
/// Options that stream every page fault.
const FAULTS: &[&str] = &["script", "-e", "page-faults", "-c", "1"];

struct Workload {
    _folder: tempfile::TempDir,
    program: String,
}

impl Workload {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let program = faults(folder.path(), "faulting")?.display().to_string();
        Ok(Self { _folder: folder, program })
    }

    /// Streams the program's faults. Repeated if bpf(2) calls of other processes prevented the
    /// program from seeing each fault (see epochs.rs), which the account shows.
    fn stream(&self, options: &[&str]) -> Result<Ended> {
        let pages = PAGES.to_string();
        for _ in 0..5 {
            let arguments = [FAULTS, options, &["--", &self.program, &pages]].concat();
            let ended = precise(arguments)?.expect(0)?;
            if ended.stderr.contains("coverage 100.0%") {
                return Ok(ended);
            }
            say(&format!("again: {}", ended.stderr));
        }
        bail!("five runs in which not every event became a sample")
    }
}

/// Returns the number at the start of a row of the account.
fn row(ended: &Ended, what: &str) -> Result<u64> {
    for line in ended.stderr.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some(number), Some(name)) = (words.next(), words.next()) else { continue };
        if let Ok(number) = number.replace(',', "").parse()
            && name == what
        {
            return Ok(number);
        }
    }
    bail!("the account has no row {what}: {}", ended.stderr)
}

/// Checks that the samples seen are rejected, written, lost or left, and that as many lines were
/// printed as written.
fn assert_closed(ended: &Ended, lines: usize) -> Result<()> {
    ensure!(ended.stderr.contains("Every sample that the program saw is in one of these rows."), "{ended:?}");
    let known: u64 =
        ["rejected", "own", "written", "lost", "left"].iter().map(|what| row(ended, what).unwrap_or(0)).sum();
    ensure!(row(ended, "seen")? == known, "{}", ended.stderr);
    ensure!(row(ended, "written")? == lines as u64, "{lines} lines: {}", ended.stderr);
    Ok(())
}

fn samples(ended: &Ended) -> Result<Vec<Value>> {
    ended.stdout.lines().map(|line| serde_json::from_str(line).context(line.to_owned())).collect()
}

fn own_pages() -> String {
    format!("{BASE:#x}..{:#x}", BASE + PAGES * PAGE)
}

#[test]
fn every_page_is_one_object_at_its_place() -> Result<()> {
    let workload = Workload::new()?;
    for read_path in ["direct", "probe"] {
        let ended = workload.stream(&["--json", "--addr", &own_pages(), "--read-path", read_path])?;
        let samples = samples(&ended)?;
        let addresses: Vec<String> = (0..PAGES).map(|page| format!("{:#x}", BASE + page * PAGE)).collect();
        let seen: Vec<&str> = samples.iter().filter_map(|sample| sample["address"].as_str()).collect();
        ensure!(seen == addresses, "{read_path}: {seen:?}");
        for sample in &samples {
            ensure!(sample["symbol"] == FUNCTION && sample["symbol_offset"].is_u64(), "{sample}");
            ensure!(sample["line"] == format!("{}.c:{LINE}", workload.program), "{sample}");
            ensure!(sample["module"] == workload.program && sample["comm"] == "faulting", "{sample}");
            ensure!(sample["event"] == "page-faults" && sample["period"] == 1, "{sample}");
            ensure!(sample["exact"] == true && sample["mode"] == "user", "{sample}");
            ensure!(sample["pid"] == samples[0]["pid"] && sample["tid"] == sample["pid"], "{sample}");
            // Anonymous memory has no variables: there is no name, but the reason.
            ensure!(sample["variable"].is_null() && sample["variable_unknown"] == "no-symbol", "{sample}");
            ensure!(sample.get("latency").is_none(), "page faults have no latency: {sample}");
        }
        ensure!(samples.is_sorted_by_key(|sample| sample["time"].as_u64()), "not in the order of time");
        assert_closed(&ended, samples.len())?;
    }
    Ok(())
}

/// The kernel would write every fault if the record contained the period.
#[test]
fn a_fixed_period_of_a_software_event_is_kept_and_said() -> Result<()> {
    undisturbed(|| {
        const PERIOD: u64 = 1000;
        const MANY: u64 = 50_021;
        let workload = Workload::new()?;
        let (period, many) = (PERIOD.to_string(), MANY.to_string());
        for event in ["page-faults", "minor-faults"] {
            let arguments = ["script", "--json", "-e", event, "-c", &period, "--", &workload.program, &many];
            let ended = precise(arguments)?.expect(0)?;
            let samples = samples(&ended)?;
            // The loader also faults a few hundred times.
            let (due, samples_of_it) = (MANY / PERIOD, samples.len() as u64);
            if samples_of_it < due {
                return Err(Disturbed { seen: samples_of_it * PERIOD, counted: MANY }.into());
            }
            ensure!(samples_of_it <= due + 2, "{samples_of_it} samples, {due} due");
            ensure!(samples.iter().all(|sample| sample["period"] == PERIOD), "{samples:?}");
            assert_closed(&ended, samples.len())?;
        }
        // If the kernel varies the period, each sample has its own.
        let arguments =
            ["script", "--json", "-e", "page-faults", "-F", "997", "--", &workload.program, &many];
        let samples = samples(&precise(arguments)?.expect(0)?)?;
        let stand_for: u64 = samples.iter().filter_map(|sample| sample["period"].as_u64()).sum();
        ensure!((MANY / 2..2 * MANY).contains(&stand_for), "{} samples for {stand_for}", samples.len());
        Ok(())
    })
}

#[test]
fn a_filter_halves_the_lines() -> Result<()> {
    let workload = Workload::new()?;
    let half = format!("{BASE:#x}..{:#x}", BASE + HALF * PAGE);
    let ended = workload.stream(&["--filter", &format!("addr in {half}"), "--fields", "addr,sym,pid"])?;
    let mut lines = ended.stdout.lines();
    let header: Vec<&str> = lines.next().context("no header")?.split_whitespace().collect();
    ensure!(header == ["#", "ADDRESS", "SYMBOL", "PID"], "{header:?}");
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    for (page, line) in lines.iter().enumerate() {
        ensure!(line.len() == 3 && line[0] == format!("{:#x}", BASE + page as u64 * PAGE), "{line:?}");
        ensure!(line[1].starts_with(&format!("{FUNCTION}+0x")), "{line:?}");
    }
    ensure!(lines.len() as u64 == HALF, "{} lines", lines.len());
    ensure!(row(&ended, "rejected")? >= PAGES - HALF);
    assert_closed(&ended, lines.len())
}

#[test]
fn what_finds_no_room_in_the_ring_is_counted() -> Result<()> {
    let workload = Workload::new()?;
    let own = own_pages();
    for quiet in [&[][..], &["--quiet"]] {
        let options = [&["--ring-pages", "1", "--json", "--addr", &own], quiet].concat();
        let ended = workload.stream(&options)?;
        let (lines, lost) = (ended.stdout.lines().count(), row(&ended, "lost")?);
        say(&format!("a ring of one page: {lines} of {PAGES} samples written, {lost} lost"));
        ensure!(lost > 0 && lines > 0, "{ended:?}");
        ensure!(lines as u64 + lost == PAGES, "{lines} lines and {lost} lost: {}", ended.stderr);
        ensure!(ended.stderr.contains("--ring-pages"), "nothing says what to do: {}", ended.stderr);
        assert_closed(&ended, lines)?;
    }
    Ok(())
}

#[test]
fn quiet_runs_say_nothing_unless_something_is_missing() -> Result<()> {
    let workload = Workload::new()?;
    let own = own_pages();
    let arguments = [FAULTS, &["-q", "--addr", &own, "--", &workload.program, "10"][..]].concat();
    let ended = precise(arguments)?.expect(0)?;
    ensure!(ended.stderr.is_empty() && ended.stdout.lines().count() == 11, "{ended:?}");
    Ok(())
}

#[test]
fn a_number_of_samples_ends_it() -> Result<()> {
    let workload = Workload::new()?;
    let ended = workload.stream(&["-n", "7", "--json", "--addr", &own_pages()])?;
    ensure!(ended.stdout.lines().count() == 7, "{ended:?}");
    // Usually the workload has ended when its first samples are read; otherwise it is ended.
    ensure!((1..=PAGES - 7).contains(&row(&ended, "left")?), "{}", ended.stderr);
    assert_closed(&ended, 7)
}

/// Starts a run that takes minutes unless it is ended.
fn endless(options: &[&str]) -> Result<(Child, BufReader<ChildStdout>)> {
    let arguments = [FAULTS, &["--duration", "300s", "--fields", "time,cpu,tid"], options].concat();
    let mut child = command(arguments)?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().context("a pipe")?;
    Ok((child, BufReader::new(stdout)))
}

fn cpus() -> Vec<u32> {
    MachineInfo::read(&Root::default()).online
}

fn load() -> Load {
    Load::on(&cpus(), || {
        // Without memory there are no faults, and the test then reports that there are no lines.
        let _failed = fault(64);
    })
}

#[test]
fn a_reader_that_goes_ends_it() -> Result<()> {
    let _load = load();
    let (mut child, mut stdout) = endless(&["-a"])?;
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    ensure!(line.starts_with('#'), "{line}");
    drop(stdout);
    let mut said = String::new();
    child.stderr.take().context("a pipe")?.read_to_string(&mut said)?;
    ensure!(child.wait()?.code() == Some(0) && !said.contains("panicked"), "{said}");
    ensure!(said.contains("is in one of these rows") && !said.contains("cannot"), "{said}");
    Ok(())
}

#[test]
fn an_interrupt_ends_it_with_every_line_in_the_order_of_time() -> Result<()> {
    let _load = load();
    // By process: the events of all threads of this test share one ring buffer per CPU.
    let own = std::process::id().to_string();
    for target in [&["-a"][..], &["-p", &own]] {
        let (mut child, stdout) = endless(target)?;
        let mut lines = Vec::new();
        for line in stdout.lines() {
            lines.push(line?);
            if lines.len() == 2000 {
                // SAFETY: a child that has not been waited for, so the id still belongs to it.
                unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
            }
        }
        let mut stderr = String::new();
        child.stderr.take().context("a pipe")?.read_to_string(&mut stderr)?;
        let ended = Ended { code: child.wait()?.code(), stdout: String::new(), stderr }.expect(0)?;
        let lines: Vec<Vec<&str>> =
            lines.iter().skip(1).map(|line| line.split_whitespace().collect()).collect();
        ensure!(lines.iter().all(|line| line.len() == 3), "a line was cut");
        let times: Vec<f64> = lines.iter().map(|line| line[0].parse()).collect::<Result<_, _>>()?;
        ensure!(times.is_sorted(), "{target:?}: not in the order of time");
        let threads: BTreeSet<&str> = lines.iter().map(|line| line[2]).collect();
        ensure!(threads.len() >= cpus().len(), "{target:?}: only the threads {threads:?}");
        assert_closed(&ended, lines.len())?;
        say(&format!("{target:?}: {} lines of {} threads, in order", lines.len(), threads.len()));
    }
    Ok(())
}

#[test]
fn arguments_that_make_no_sense_are_refused() -> Result<()> {
    for (arguments, words) in [
        (&["--fields", "callchain"][..], "Valid fields: time"),
        (&["--fields", "latency"], "samples of page-faults have no latency"),
        (&["--fields", "raw"], "samples of page-faults have no raw"),
        (&["--ring-pages", "3"], "not a power of two"),
        (&["-n", "0"], "not a positive number"),
    ] {
        let ended = precise([FAULTS, arguments].concat())?.expect(2)?;
        ensure!(ended.stderr.contains(words), "{arguments:?}: {ended:?}");
    }
    Ok(())
}
