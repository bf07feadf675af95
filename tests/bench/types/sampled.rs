//! Accesses that were sampled while a program works.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::programs::{RealProgram, run, stdout};

/// The accesses that a timer sampled. Its samples are a few instructions late, so the access is one
/// near those that took the time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampledAccesses {
    pub typed: u64,
    pub untyped: u64,
    /// Those in code without variables.
    pub undescribed: u64,
}

impl SampledAccesses {
    /// Returns the share of the samples in code that has variables that have a type, in percent.
    pub fn share(self) -> f64 {
        100.0 * self.typed as f64 / (self.typed + self.untyped).max(1) as f64
    }

    /// Returns half of the 95 % interval of the share, in percentage points.
    pub fn spread(self) -> f64 {
        let (p, n) = (self.share() / 100.0, (self.typed + self.untyped).max(1) as f64);
        196.0 * (p * (1.0 - p) / n).sqrt()
    }
}

/// What the addresses of page faults say about the types.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampledFaults {
    pub confirmed: u64,
    pub contradicted: u64,
    pub not_checkable: u64,
}

impl SampledFaults {
    pub const fn checked(self) -> u64 {
        self.confirmed + self.contradicted
    }
}

/// Samples a program by a timer.
pub fn accesses(
    precise: &Path,
    program: RealProgram,
    binary: &Path,
    folder: &Path,
) -> Result<SampledAccesses> {
    let event = sample(precise, program, binary, folder, &["-e", "cpu-clock", "-F", "1000", "--by", "ip"])?;
    let mut found = SampledAccesses { typed: sum(&event["types"]), ..SampledAccesses::default() };
    for missing in event["untyped"].as_array().context("untyped")? {
        let samples = missing["samples"].as_u64().unwrap_or(0);
        match missing["reason"].as_str().context("a reason")? {
            "no-debug-info" | "no-variables" => found.undescribed += samples,
            "stack" | "no-global" | "segment" => {}
            reason if program_reason(reason) => found.untyped += samples,
            _ => {}
        }
    }
    ensure!(found.typed > 0, "no sample has a type: {event:#}");
    Ok(found)
}

/// Returns whether a reason is about an access, and not about code that is not the program's.
fn program_reason(reason: &str) -> bool {
    matches!(
        reason,
        "no-register"
            | "conflict"
            | "no-type"
            | "outside"
            | "index"
            | "vector"
            | "several"
            | "not-decoded"
            | "too-large"
    )
}

/// Types whose objects are freed and allocated again many times in an epoch, in places that
/// overlap. For the addresses, that is a contradiction. `btbeginscan` of PostgreSQL (nbtree.c)
/// allocates 27 kB for each scan, and all of these faults are where it writes
/// `so->markPos.currPage`.
const REUSED: [(RealProgram, &str); 1] = [(RealProgram::Postgres, "BTScanOpaqueData")];

/// Samples the page faults of a program, each with its address.
pub fn faults(precise: &Path, program: RealProgram, binary: &Path, folder: &Path) -> Result<SampledFaults> {
    let words = ["-e", "page-faults", "-c", "1", "--granule", "1", "--by", "ip,address,process"];
    let event = sample(precise, program, binary, folder, &words)?;
    let number = |of: &Value, name: &str| of[name].as_u64().context("a number");
    let checked = &event["checked"];
    let mut found = SampledFaults {
        confirmed: number(checked, "confirmed")?,
        contradicted: number(checked, "contradicted")?,
        not_checkable: number(checked, "not_checkable")?,
    };
    for ty in event["types"].as_array().into_iter().flatten() {
        let contradicted = ty["checked"]["contradicted"].as_u64().unwrap_or(0);
        if contradicted == 0 {
            continue;
        }
        println!("{}: {} is {}", program.name(), ty["name"], ty["checked"]);
        if REUSED.iter().any(|(of, name)| *of == program && ty["name"] == *name) {
            found.contradicted -= contradicted;
            found.not_checkable += contradicted;
        }
    }
    Ok(found)
}

/// Records a program, and returns what `precise types` says of it.
fn sample(
    precise: &Path,
    program: RealProgram,
    binary: &Path,
    folder: &Path,
    event: &[&str],
) -> Result<Value> {
    program.prepare(binary, folder)?;
    let file = folder.join("samples.parquet").display().to_string();
    let mut words: Vec<String> = ["record", "-q", "--overhead", "off"].map(str::to_owned).into();
    words.extend(event.iter().map(|word| (*word).to_owned()));
    words.extend(["-o".to_owned(), file.clone(), "--".to_owned()]);
    words.extend(program.command(binary, folder));
    run(precise, program, &words)?;
    // Libraries without debug information have no variables, so they are counted apart.
    let shown = stdout(precise, &["types", "-i", &file, "--json", "-n", "100000"])?;
    let view: Value = serde_json::from_slice(&shown)?;
    view["events"].get(0).cloned().context("an event")
}

fn sum(types: &Value) -> u64 {
    types.as_array().into_iter().flatten().filter_map(|ty| ty["samples"].as_u64()).sum()
}
