//! `--overhead`: a load that jumps a hundredfold stays within the budget, and what the samples stand for is true.

use precise::capture::CaptureFile as _;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use precise::model::Capture;
use precise_tests::{
    program,
    run::{Ended, command, precise},
    say,
};

/// Touches fresh pages below a known address: few for a while, as many as it can, and few again. Says how many.
const JUMP: &str = r#"#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static long touched;

__attribute__((noinline)) void touch_pages(long pages)
{
    volatile char *p = mmap((void *)0x500000000000, pages * 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    long i;
    madvise((void *)p, pages * 4096, MADV_NOHUGEPAGE);
    for (i = 0; i < pages; i++)
        p[i * 4096] = 1;
    munmap((void *)p, pages * 4096);
    touched += pages;
}

static void few(double seconds)
{
    double begin = now();
    while (now() - begin < seconds) {
        touch_pages(2);
        usleep(10000);
    }
}

int main(void)
{
    double begin;
    few(2.5);
    begin = now();
    while (now() - begin < 5)
        touch_pages(1000);
    few(2.5);
    fprintf(stderr, "touched %ld\n", touched);
    return 0;
}
"#;

const BUDGET: f64 = 0.005;

#[test]
fn a_load_that_jumps_a_hundredfold_stays_within_the_budget() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let workload = program::c(folder.path(), "jump", JUMP)?;
    let file = folder.path().join("jump.parquet");
    let ended: Ended = command(["record", "-e", "page-faults", "-c", "1", "--overhead", "0.5%"])?
        .args(["--by", "ip", "--table-cells", "1024", "--epoch", "500ms"])
        .args(["--filter", "addr in 0x500000000000..0x500100000000", "-o"])
        .arg(&file)
        .arg("--")
        .arg(&workload)
        .stdout(Stdio::piped())
        .output()?
        .into();
    let ended = ended.expect(0)?;
    let touched: u64 = ended
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("touched ")?.parse().ok())
        .context("the program does not say how many pages it touched")?;

    let capture = Capture::read(&file)?;
    let (event, epochs) = (&capture.meta.events[0], &capture.meta.epochs);
    let cost = capture.meta.overhead.context("the capture does not say what it cost")?;
    // What each epoch cost, if all of it was on one CPU, by what the run says of a sample.
    let each = (cost.sample_measured_ns + cost.sample_assumed_ns) as f64;
    let mut samples = vec![0u64; epochs.len()];
    let mut events = vec![0u64; epochs.len()];
    for row in &capture.rows {
        samples[row.epoch as usize] += row.measures.count;
        events[row.epoch as usize] += row.measures.period_sum;
    }
    let seconds = |at: usize| (epochs[at].end_ns - epochs[at].start_ns) as f64 / 1e9;
    let whole: Vec<usize> = (0..epochs.len()).filter(|at| seconds(*at) > 0.4).collect();
    let costs: Vec<f64> =
        whole.iter().map(|at| samples[*at] as f64 * each / 1e9 / seconds(*at) / BUDGET).collect();
    let rates: Vec<f64> = whole.iter().map(|at| events[*at] as f64 / seconds(*at)).collect();
    say(&format!("faults a second: {rates:.0?}\ncost, of the budget: {costs:.2?}\nrates: {:?}", event.rates));

    let jump = rates.iter().position(|rate| *rate > 20.0 * rates[1].max(1.0)).context("there is no jump")?;
    let most = rates.iter().copied().fold(0.0, f64::max);
    ensure!(most > 100.0 * rates[1], "the load is no hundredfold: {rates:.0?}");
    ensure!(most * each / 1e9 > 2.0 * BUDGET, "nothing had to be governed: {rates:.0?}");
    ensure!(costs[jump + 2..].iter().all(|cost| *cost <= 1.5), "{costs:.2?} from {jump} on");
    ensure!(event.period.is_none() && event.rates.len() > 2, "{:?}", event.rates);
    ensure!(event.ledger.unaccounted() == 0, "{:?}", event.ledger);

    // What a user reads: the number of faults, with an interval that holds the true one.
    let json =
        precise(["report".as_ref(), "--json".as_ref(), "-i".as_ref(), file.as_os_str()])?.expect(0)?.stdout;
    let json: serde_json::Value = serde_json::from_str(&json)?;
    let estimate = &json["reports"][0]["events"][0]["estimate"];
    let number = |name: &str| estimate[name].as_u64().with_context(|| format!("no {name} in {estimate}"));
    let (low, value, high) = (number("low")?, number("value")?, number("high")?);
    say(&format!("{touched} pages touched; estimated {value}, from {low} to {high}"));
    ensure!(low <= touched && touched <= high, "{touched} pages touched, and not within {low} to {high}");
    ensure!((high - low) as f64 / (touched as f64) < 0.2, "an interval that says nothing: {low} to {high}");
    let report = precise(["report".as_ref(), "-i".as_ref(), file.as_os_str()])?.expect(0)?.stdout;
    ensure!(report.contains("They stand for") && report.contains("To stay within --overhead"), "{report}");
    Ok(())
}

/// Who asks for a period gets it.
#[test]
fn a_fixed_period_is_left_alone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let workload = program::faults(folder.path(), "faults")?;
    let file = folder.path().join("fixed.parquet");
    command(["record", "-e", "page-faults", "-c", "1", "--by", "ip", "-o"])?
        .arg(&file)
        .arg("--")
        .arg(&workload)
        .arg("200000")
        .output()
        .map(Ended::from)?
        .expect(0)?;
    let capture = Capture::read(&file)?;
    let event = &capture.meta.events[0];
    ensure!(event.period == Some(1) && event.rates.is_empty(), "{event:?}");
    ensure!(
        capture.meta.overhead.is_some_and(|cost| cost.budget_ppm.is_none()),
        "{:?}",
        capture.meta.overhead
    );
    Ok(())
}
