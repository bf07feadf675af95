//! Derives the checks of the self-test from the numbers.

use super::evidence::{Evidence, Granted};
use precise_model::Preset;
use precise_model::digits::thousands;
use precise_sampling::doctor::{Check, CheckStatus};
use precise_views::render::number::{cycles, percent};
use precise_views::stats::MIN_SAMPLES;

/// Minimum fraction of the samples at the expected places. The rest allows for what the kernel does
/// in between.
const MOST: f64 = 0.95;
/// Minimum fraction of loads that the cache must serve if the buffer fits into it. Prefetchers and
/// page walks reduce the fraction.
const HALF: f64 = 0.5;
/// Minimum ratio of the latencies of one buffer and the next smaller one.
const SLOWER: f64 = 1.2;
/// Minimum ratio of the misprediction rates of the random and the predictable branch.
const MORE_OFTEN: f64 = 5.0;
/// Minimum misprediction rate of the random branch; about half is expected.
const MISPREDICTED: f64 = 0.1;
/// Minimum coverage: the fraction of the event's own count that the samples stand for.
const COVERED: f64 = 0.95;
/// Minimum number of samples that report a line from another core's cache.
const FROM_PEER: u64 = 10;

/// Returns the checks for the runs of a preset.
pub fn checks(preset: Preset, runs: &[Evidence]) -> Vec<Check> {
    let software = matches!(preset, Preset::Faults | Preset::Clock);
    let mut checks = vec![opened(runs, preset != Preset::Clock), arrived(runs), closed(runs)];
    checks.extend(coverage(runs, software));
    if runs.iter().any(|run| run.samples < MIN_SAMPLES) {
        return checks;
    }
    match preset {
        Preset::Cycles => checks.push(in_loop(runs, MOST)),
        Preset::Clock | Preset::Fetch => checks.push(in_loop(runs, HALF)),
        Preset::Branches => {}
        _ => checks.push(on_instructions(runs)),
    }
    if runs.iter().any(|run| run.address_due > 0) && preset != Preset::Branches && preset != Preset::Cycles {
        checks.push(in_buffer(runs));
    }
    match preset {
        Preset::Loads => {
            checks.push(latency_alive(runs));
            checks.push(latency_order(runs));
            checks.extend(runs.iter().map(level));
        }
        Preset::C2c => checks.extend(runs.iter().map(from_peer)),
        Preset::Branches => checks.extend(runs.iter().map(mispredicted)),
        Preset::Fetch => checks.extend(runs.iter().filter(|run| run.outcomes > 0).map(completed)),
        _ => {}
    }
    checks
}

fn sum(runs: &[Evidence], of: impl Fn(&Evidence) -> u64) -> u64 {
    runs.iter().map(of).sum()
}

fn events(runs: &[Evidence]) -> impl Iterator<Item = &Granted> {
    runs.iter().flat_map(|run| &run.events)
}

fn opened(runs: &[Evidence], must_be_precise: bool) -> Check {
    let levels: Vec<String> =
        runs.first().map_or_else(Vec::new, |run| run.events.iter().map(granted).collect());
    let found = levels.join(", ");
    match events(runs).find(|event| !event.precise) {
        Some(event) if must_be_precise => {
            let why = format!("{} is not precise at the granted level", event.encoding);
            Check::new("opens", CheckStatus::Failed, found, why)
        }
        _ => Check::new("opens", CheckStatus::Passed, found, ""),
    }
}

/// Returns the granted precision. IBS and software events have no levels.
fn granted(event: &Granted) -> String {
    match (event.level, event.precise) {
        (0, true) => format!("{}, always exact", event.encoding),
        (0, false) => format!("{}, not precise", event.encoding),
        (level, _) => format!("{} at level {level}", event.encoding),
    }
}

fn arrived(runs: &[Evidence]) -> Check {
    let seen: u64 = events(runs).map(|event| event.seen).sum();
    let kept = runs.iter().map(|run| run.samples).min().unwrap_or(0);
    let found = runs.iter().map(|run| thousands(run.samples)).collect::<Vec<_>>().join(", ");
    if kept >= MIN_SAMPLES {
        return Check::new("samples", CheckStatus::Passed, found, "");
    }
    let (status, why) = if seen == 0 {
        (CheckStatus::Failed, "no samples reached the program".to_owned())
    } else if kept == 0 {
        let seen = thousands(seen);
        (
            CheckStatus::Failed,
            format!("{seen} samples reached the program, but none passed the filter of the preset"),
        )
    } else {
        (CheckStatus::NotDecided, format!("at least {MIN_SAMPLES} are needed to decide"))
    };
    Check::new("samples", status, found, why)
}

fn closed(runs: &[Evidence]) -> Check {
    let name = "ledger closes";
    match events(runs).map(|event| event.unaccounted.unsigned_abs()).sum::<u64>() {
        0 => Check::new(name, CheckStatus::Passed, "", ""),
        off => {
            let why = "samples that no counter accounts for: this is a bug in precise";
            Check::new(name, CheckStatus::Failed, thousands(off), why)
        }
    }
}

/// Checks that the samples account for the event's own count.
fn coverage(runs: &[Evidence], software: bool) -> Option<Check> {
    let name = "coverage";
    let worst = events(runs).filter(|event| event.seen >= MIN_SAMPLES).filter_map(|event| event.coverage);
    let worst = worst.reduce(f64::min)?;
    let found = percent(worst);
    if worst >= COVERED {
        return Some(Check::new(name, CheckStatus::Passed, found, ""));
    }
    // The timer of a virtual machine is sometimes late and then counts time that it did not sample.
    if software {
        let why = "the kernel held samples back, so this does not test the hardware";
        return Some(Check::new(name, CheckStatus::NotDecided, found, why));
    }
    let (throttled, lost): (u64, u64) =
        events(runs).fold((0, 0), |(a, b), event| (a + event.throttled, b + event.lost));
    let why =
        format!("samples are missing: throttled {} times, {} lost", thousands(throttled), thousands(lost));
    Some(Check::new(name, CheckStatus::Failed, found, why))
}

/// Checks that a fraction reaches `least`.
fn share(name: &str, part: u64, whole: u64, least: f64, what: &str) -> Check {
    if whole < MIN_SAMPLES {
        let why = format!("at least {MIN_SAMPLES} are needed to decide");
        return Check::new(name, CheckStatus::NotDecided, format!("{} samples", thousands(whole)), why);
    }
    let value = part as f64 / whole as f64;
    let found = format!("{} of {}", percent(value), thousands(whole));
    if value >= least {
        Check::new(name, CheckStatus::Passed, found, "")
    } else {
        Check::new(name, CheckStatus::Failed, found, format!("at least {} {what}", percent(least)))
    }
}

fn on_instructions(runs: &[Evidence]) -> Check {
    let (part, whole) = (sum(runs, |run| run.wanted), sum(runs, |run| run.samples));
    share("instructions", part, whole, MOST, "must have the IP of an instruction of the expected kind")
}

fn in_loop(runs: &[Evidence], least: f64) -> Check {
    let (part, whole) = (sum(runs, |run| run.in_function), sum(runs, |run| run.samples));
    share("function", part, whole, least, "must have an IP in the loop")
}

fn in_buffer(runs: &[Evidence]) -> Check {
    let (part, whole) = (sum(runs, |run| run.in_data), sum(runs, |run| run.address_due));
    share("addresses", part, whole, MOST, "must have an address in the buffer")
}

/// Checks that loads have latencies. Uses the buffer that fits no cache, because on AMD loads that
/// hit the L1 cache have no latency.
fn latency_alive(runs: &[Evidence]) -> Check {
    let (part, whole) = runs.last().map_or((0, 0), |run| (run.latencies.total().count, run.latency_due));
    share("latency", part, whole, MOST, "of the loads from memory must have a latency")
}

fn latency_order(runs: &[Evidence]) -> Check {
    let name = "latency grows";
    let medians: Vec<(&str, f64)> = runs
        .iter()
        // If most loads of a buffer have no latency, the few misses do not represent the hits among
        // them.
        .filter(|run| run.latencies.total().count * 2 >= run.latency_due)
        .filter_map(|run| Some((run.name, run.latencies.percentile(0.5)?.cycles)))
        .collect();
    let found: Vec<String> =
        medians.iter().map(|(name, median)| format!("{} cycles {name}", cycles(*median))).collect();
    let found = found.join(", ");
    if medians.len() < 2 {
        return Check::new(
            name,
            CheckStatus::NotDecided,
            found,
            "fewer than two of the buffers have latencies",
        );
    }
    if medians.windows(2).all(|pair| pair[1].1 >= pair[0].1 * SLOWER) {
        Check::new(name, CheckStatus::Passed, found, "")
    } else {
        Check::new(name, CheckStatus::Failed, found, "the latency must grow with the size of the buffer")
    }
}

fn level(run: &Evidence) -> Check {
    let wanted: &[&str] = match run.name {
        "in the L1 cache" => &["L1", "LFB/MAB"],
        "in the L2 cache" => &["L2", "LFB/MAB"],
        _ => &["RAM", "PMEM", "CXL"],
    };
    let name = match run.name {
        "in the L1 cache" => "level: L1",
        "in the L2 cache" => "level: L2",
        _ => "level: memory",
    };
    let known: u64 = run.levels.values().sum();
    if known == 0 && run.source_due >= MIN_SAMPLES {
        return Check::new(name, CheckStatus::Failed, "0", "no sample reports the level");
    }
    let part = run.levels.iter().filter(|(level, _)| wanted.contains(level)).map(|(_, count)| count).sum();
    let mut check = share(name, part, run.source_due, HALF, "must report this level");
    if check.status == CheckStatus::Failed
        && let Some((level, count)) = run.levels.iter().max_by_key(|(_, count)| **count)
    {
        check.reason += &format!("; {} of them report {level}", thousands(*count));
    }
    check
}

fn from_peer(run: &Evidence) -> Check {
    let name = "HITM";
    let found = format!("{} of {}", thousands(run.from_peer), thousands(run.source_due));
    match run.from_peer {
        0 if run.source_due < MIN_SAMPLES => {
            Check::new(name, CheckStatus::NotDecided, found, "too few of the samples have a data source")
        }
        0 => Check::new(
            name,
            CheckStatus::Failed,
            found,
            "no sample reports a line that another core had modified",
        ),
        n if n < FROM_PEER => {
            Check::new(name, CheckStatus::NotDecided, found, format!("at least {FROM_PEER} are needed"))
        }
        _ => Check::new(name, CheckStatus::Passed, found, ""),
    }
}

fn mispredicted(run: &Evidence) -> Check {
    let name = "mispredictions";
    let (random, predictable) = (run.random, run.predictable);
    let of = |(all, bad): (u64, u64)| bad as f64 / all.max(1) as f64;
    if run.outcomes > 0 {
        // Every branch is sampled, with its outcome.
        let found = format!(
            "{} of {} random, {} of {} predictable",
            percent(of(random)),
            thousands(random.0),
            percent(of(predictable)),
            thousands(predictable.0)
        );
        if random.0 < MIN_SAMPLES || predictable.0 < MIN_SAMPLES {
            let why = format!("at least {MIN_SAMPLES} of each branch are needed");
            return Check::new(name, CheckStatus::NotDecided, found, why);
        }
        return if of(random) >= MISPREDICTED && of(random) >= of(predictable) * MORE_OFTEN {
            Check::new(name, CheckStatus::Passed, found, "")
        } else {
            Check::new(
                name,
                CheckStatus::Failed,
                found,
                "the random branch must be mispredicted far more often",
            )
        };
    }
    // Only mispredicted branches are sampled.
    share(name, random.0, run.samples, MOST, "must be of the random branch")
}

fn completed(run: &Evidence) -> Check {
    share("completed", run.completed, run.outcomes, HALF, "of the fetches must be completed")
}
