//! CPUs that go offline during a run, and come online: they are sampled again, the numbers are
//! exact while they are online, and the time between is in the ledger.

use std::{
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use precise::model::{CpuGap, Ledger};
use precise_tests::{
    kill_on_drop::KillOnDrop,
    program::{BASE, FUNCTION, PAGE, faults},
    run::{EVERYWHERE, Ended, FAULTS, Live, Recorded, command, precise},
    serving::Serving,
    skip,
};

/// The CPU that goes and comes.
const CPU: u32 = 1;
/// The file that takes it offline and brings it back.
const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";
/// Primes, so that no two numbers of a test are equal by accident.
const BEFORE: u64 = 1009;
const AFTER: u64 = 503;
/// How long a run may take to sample a CPU that came online.
const SOON: Duration = Duration::from_millis(400);
const SECOND: u64 = 1_000_000_000;

/// The CPU while it is offline; dropped, it is online.
struct Offline;

impl Offline {
    fn take() -> Result<Self> {
        // Restored even if the write fails halfway.
        let offline = Self;
        std::fs::write(ONLINE, "0")?;
        Ok(offline)
    }

    /// Takes the CPU offline for some time, and waits until it must be sampled again.
    fn for_a_while(time: Duration) -> Result<()> {
        let offline = Self::take()?;
        sleep(time);
        drop(offline);
        sleep(SOON);
        Ok(())
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        if let Err(error) = std::fs::write(ONLINE, "1") {
            skip(&format!("CPU {CPU} cannot be brought back: {error}"));
        }
    }
}

/// A program whose faults are known, on the CPU that goes and comes.
struct Workload {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Workload {
    /// Returns nothing if the machine cannot take the CPU offline.
    fn new() -> Result<Option<Self>> {
        if !Path::new(ONLINE).exists() {
            skip(&format!("this machine cannot take CPU {CPU} offline"));
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let program = faults(folder.path(), "faulting")?;
        Ok(Some(Self { folder, program }))
    }

    /// Touches pages on the CPU that goes and comes.
    fn touch(&self, pages: u64) -> Result<()> {
        self.touch_on(CPU, pages)
    }

    fn touch_on(&self, cpu: u32, pages: u64) -> Result<()> {
        let mut program = Command::new(&self.program);
        program.arg(pages.to_string()).stdout(Stdio::null());
        let pin = move || {
            // SAFETY: a set of zeros is an empty set, and the calls read and write only this set.
            let done = unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu as usize, &mut set);
                libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
            };
            if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        };
        // SAFETY: the function makes one system call and allocates nothing.
        let status = unsafe { program.pre_exec(pin) }.status()?;
        ensure!(status.success(), "the workload failed: {status}");
        Ok(())
    }

    /// Starts a recorder of whole CPUs that takes all faults of the workload.
    fn record(&self, more: &[&str]) -> Result<Live> {
        Live::start(self.folder.path(), &[FAULTS, EVERYWHERE, more].concat())
    }

    /// The filter for the pages of the workload.
    fn pages() -> String {
        format!("addr in {BASE:#x}..{:#x}", BASE + 4096 * PAGE)
    }
}

/// Checks that the ledger closes, and returns its gaps.
fn gaps(recorded: &Recorded) -> Result<Vec<CpuGap>> {
    let ledger: &Ledger = recorded.ledger();
    ensure!(ledger.unaccounted() == 0, "{ledger:?}");
    ensure!(ledger.gaps.iter().all(|gap| gap.cpu == CPU), "{ledger:?}");
    ensure!(ledger.gaps.is_empty() || ledger.coverage().is_none_or(|share| share < 0.99), "{ledger:?}");
    let epochs = &recorded.capture.meta.epochs;
    let whole = 2 * epochs.last().context("no epoch")?.end_ns;
    let known = ledger.enabled_ns + ledger.gap_ns();
    ensure!(whole.abs_diff(known) < SECOND / 5, "{known} of {whole} ns are known: {ledger:?}");
    Ok(ledger.gaps.clone())
}

/// Checks that every page was one sample.
fn all_pages(recorded: &Recorded, pages: u64) -> Result<()> {
    let rows = recorded.rows();
    ensure!(rows.of(FUNCTION).count() == pages, "{} of {pages} faults", rows.of(FUNCTION).count());
    ensure!(rows.all(|row| row.cpu) == [Some(CPU as u16)].into(), "{:?}", rows.all(|row| row.cpu));
    Ok(())
}

#[test]
fn a_cpu_that_comes_back_is_sampled_again() -> Result<()> {
    let Some(workload) = Workload::new()? else { return Ok(()) };
    for cpus in [&[][..], &["-C", "0-1"]] {
        let live = workload.record(cpus)?;
        workload.touch(BEFORE)?;
        Offline::for_a_while(Duration::from_millis(700))?;
        workload.touch(AFTER)?;
        let recorded = live.interrupt()?;
        all_pages(&recorded, BEFORE + AFTER)?;
        let gaps = gaps(&recorded)?;
        let [gap] = gaps[..] else { anyhow::bail!("one gap was expected: {gaps:?}") };
        ensure!((7 * SECOND / 10..2 * SECOND).contains(&gap.duration_ns()), "{gap:?}");
    }
    Ok(())
}

/// The capture tells the reader what was not measured.
#[test]
fn the_time_between_is_told() -> Result<()> {
    let Some(workload) = Workload::new()? else { return Ok(()) };
    let live = workload.record(&["--epoch", "100ms"])?;
    workload.touch(BEFORE)?;
    Offline::for_a_while(Duration::from_millis(500))?;
    workload.touch(AFTER)?;
    let recorded = live.interrupt()?;
    gaps(&recorded)?;
    let file = workload.folder.path().join("live.parquet").display().to_string();
    let report = precise(["report", "--json", "-i", &file])?.expect(0)?.stdout;
    let report: serde_json::Value = serde_json::from_str(&report)?;
    let text = report.to_string();
    ensure!(text.contains("Not measured: CPU 1 from "), "{text}");
    let heatmap = precise(["heatmap", "--json", "-i", &file])?.expect(0)?.stdout;
    let heatmap: serde_json::Value = serde_json::from_str(&heatmap)?;
    ensure!(heatmap["not_measured"][0]["cpu"] == CPU, "{heatmap}");
    let picture = workload.folder.path().join("picture.svg").display().to_string();
    precise(["heatmap", "-i", &file, "-o", &picture])?.expect(0)?;
    ensure!(std::fs::read_to_string(picture)?.contains("not measured"), "the picture does not tell it");
    precise(["report", "-i", &file, "--require", "coverage>=99%"])?.expect(68)?;
    Ok(())
}

/// The governor has lengthened the period when the CPU comes back.
#[test]
fn a_cpu_comes_back_at_the_rate_in_force() -> Result<()> {
    let Some(workload) = Workload::new()? else { return Ok(()) };
    let folder = workload.folder.path();
    let load = format!("while :; do {} 4000; done", workload.program.display());
    let busy = || Command::new("sh").args(["-c", &load]).stdout(Stdio::null()).spawn().map(KillOnDrop::from);
    let _busy = [busy()?, busy()?];
    let options = ["record", "-a", "-e", "page-faults", "-c", "1", "--overhead", "0.1%", "--by", "cpu"];
    let live = Live::start(folder, &[&options[..], &["--epoch", "200ms", "--duration", "60s"]].concat())?;
    sleep(Duration::from_secs(2));
    Offline::for_a_while(Duration::from_millis(500))?;
    sleep(Duration::from_secs(2));
    let recorded = live.interrupt()?;
    let gaps = gaps(&recorded)?;
    let [gap] = gaps[..] else { anyhow::bail!("one gap was expected: {gaps:?}") };
    let (capture, ledger) = (&recorded.capture, recorded.ledger());
    ensure!(capture.meta.events[0].rates.len() > 1, "nothing had to be governed");
    // A period for each change of the rate on each CPU, and one for the CPU that went.
    let missing = ledger.event_count as f64 * (1.0 - ledger.delivered().unwrap_or(0.0));
    let most = capture.meta.events[0].in_flight(3);
    ensure!((0.0..=most).contains(&missing), "{missing} events are missing, at most {most}: {ledger:?}");
    // Events per sample on each CPU, since the CPU came back.
    let mut sums = [(0u64, 0u64); 2];
    for row in &capture.rows {
        if capture.meta.epochs[row.epoch as usize].start_ns > gap.end_ns {
            let sum = &mut sums[usize::from(row.cpu.context("no CPU")?)];
            *sum = (sum.0 + row.measures.period_sum, sum.1 + row.measures.count);
        }
    }
    let [zero, one] = sums.map(|(events, samples)| events as f64 / samples as f64);
    ensure!(zero > 2.0 && (0.7..1.4).contains(&(one / zero)), "{zero} and {one} events for each sample");
    Ok(())
}

/// Nobody looks in the moment in which the CPU is offline.
#[test]
fn a_cpu_that_is_back_at_once_is_sampled_again() -> Result<()> {
    const TIMES: u64 = 5;
    let Some(workload) = Workload::new()? else { return Ok(()) };
    let live = workload.record(&[])?;
    for _ in 0..TIMES {
        Offline::for_a_while(Duration::ZERO)?;
        // Reading all events interrupts every CPU, so a run does it at most once a second.
        sleep(Duration::from_secs(1));
        workload.touch(AFTER)?;
    }
    let recorded = live.interrupt()?;
    all_pages(&recorded, TIMES * AFTER)?;
    ensure!(gaps(&recorded)?.len() as u64 == TIMES, "{:?}", recorded.ledger());
    Ok(())
}

#[test]
fn a_cpu_that_was_offline_at_the_start_is_sampled() -> Result<()> {
    let Some(workload) = Workload::new()? else { return Ok(()) };
    let offline = Offline::take()?;
    let live = workload.record(&[])?;
    sleep(Duration::from_millis(300));
    drop(offline);
    sleep(SOON);
    workload.touch(AFTER)?;
    let recorded = live.interrupt()?;
    all_pages(&recorded, AFTER)?;
    let gaps = gaps(&recorded)?;
    ensure!(matches!(gaps[..], [CpuGap { cpu: CPU, start_ns: 0, .. }]), "{gaps:?}");

    // A CPU that stays offline is nobody's loss.
    let offline = Offline::take()?;
    let live = workload.record(&[])?;
    workload.touch_on(0, BEFORE)?;
    let recorded = live.interrupt()?;
    drop(offline);
    ensure!(recorded.ledger().gaps.is_empty(), "{:?}", recorded.ledger());
    Ok(())
}

/// Events of tasks are open on a CPU that is offline.
#[test]
fn a_command_is_sampled_on_a_cpu_that_came_online() -> Result<()> {
    let Some(workload) = Workload::new()? else { return Ok(()) };
    let script = format!("sleep 1; exec taskset -c {CPU} {} {AFTER}", workload.program.display());
    let offline = Offline::take()?;
    let live = Live::start_command(
        workload.folder.path(),
        &[FAULTS, &["--filter", &Workload::pages()]].concat(),
        &["--", "sh", "-c", &script],
    )?;
    sleep(Duration::from_millis(200));
    drop(offline);
    sleep(Duration::from_secs(2));
    let recorded = live.interrupt()?;
    all_pages(&recorded, AFTER)
}

#[test]
fn a_stream_has_the_samples_of_a_cpu_that_came_back() -> Result<()> {
    let Some(workload) = Workload::new()? else { return Ok(()) };
    let filter = Workload::pages();
    let child =
        command(["script", "-a", "-e", "page-faults", "-c", "1", "--duration", "4s", "--fields", "cpu,sym"])?
            .args(["--filter", &filter])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
    sleep(Duration::from_secs(1));
    workload.touch(BEFORE)?;
    Offline::for_a_while(Duration::from_millis(500))?;
    workload.touch(AFTER)?;
    let ended = Ended::from(child.wait_with_output()?).expect(0)?;
    let lines = ended.stdout.lines().filter(|line| line.contains(FUNCTION)).count() as u64;
    ensure!(lines == BEFORE + AFTER, "{lines} lines: {}", ended.stderr);
    ensure!(ended.stderr.contains("Not measured: CPU 1 from "), "{}", ended.stderr);
    Ok(())
}

#[test]
fn a_service_samples_a_cpu_that_came_back() -> Result<()> {
    let Some(workload) = Workload::new()? else { return Ok(()) };
    let filter = Workload::pages();
    let arguments = ["-e", "page-faults", "-c", "1", "--by", "process", "--filter", &filter];
    let serving = Serving::start(&arguments)?;
    workload.touch(BEFORE)?;
    Offline::for_a_while(Duration::from_millis(500))?;
    workload.touch(AFTER)?;
    let sampled = |page: &precise_tests::serving::Page| {
        page.0.lines().any(|line| {
            line.starts_with("precise_samples_total")
                && line.contains("process=\"faulting\"")
                && line.ends_with(&format!(" {}", BEFORE + AFTER))
        })
    };
    let page = serving.page_where("all faults", sampled)?;
    ensure!(page.value("precise_unsampled_cpus") == Some(0.0), "{}", page.0);
    let ended = serving.end(libc::SIGINT)?;
    ensure!(ended.stderr.contains("CPU 1 went offline"), "{}", ended.stderr);
    ensure!(ended.stderr.contains("CPU 1 came online"), "{}", ended.stderr);
    Ok(())
}
