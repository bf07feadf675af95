//! lab-said: prints one fact from a report of precise, in words that a shell script can compare.
//!
//! It is written in Rust because it is called for each number that a test checks, and an
//! interpreter takes seconds to start in a guest.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;

use anyhow::{Context, Result, bail};
use serde_json::Value;

thread_local! {
    /// What will be printed, at once: a reader such as `grep -q` ends as soon as it has seen
    /// enough, and what is written after that fails.
    static OUT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Adds a line to the output.
macro_rules! say {
    ($($line:tt)*) => {
{
        let line = format!($($line)*);
        OUT.with_borrow_mut(|out| out.push_str(&(line + "\n")));
    }    };
}

const HELP: &str = "\
lab-said REPORT.json WHAT [NAME]
REPORT.json is the output of `precise report --json` or `precise record --json`, with whatever else was printed before it;
the first report in it is meant, and of that the first event, or the one that $EVENT names.

  ledger NAME     the count of a row of the ledger, 0 where it has none: seen, aggregated, \"table full\", lost, …
  trust NAME      a field of the trust: event_count, expected, closes, coverage, granted, precise, …
  findings        one per line
  groups          a line each: the values, then count, sum of periods, sum and maximum of latencies
  rejected        a line for each clause of the filter: the clause, the samples that it was the first to reject
  account         what a clean run says of itself, in one line: seen N due N closes true throttled 0 lost 0 full 0 kept N rejected N
  ends            of `precise report -g --json`: a line for each reason why call chains end, then for each why samples have
                  none: reason, samples
  permille        the coverage
  drift           |seen * period / event_count - 1|, in millionths
  heatmap         of `precise heatmap --json`: a line for each panel and row of it: panel, where the row begins, samples,
                  first and last column
";

/// Returns a value as one word.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // The spelling that the tests have always used.
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Object(tagged) => match tagged.iter().next() {
            Some((kind, inner)) if kind == "address" => {
                inner.as_u64().map_or_else(|| word(inner), |address| format!("{address:#x}"))
            }
            Some((kind, inner)) if kind == "cycles" => {
                format!("{}..{}", inner["low"], word(&inner["high"]))
            }
            Some((_, inner)) => word(inner).replace(' ', "_"),
            None => String::new(),
        },
        Value::Null => "None".to_owned(),
        other => other.to_string(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the event of a report, or of the first of several reports.
fn event(report: &Value) -> Result<&Value> {
    let report = report.get("reports").and_then(|reports| reports.get(0)).unwrap_or(report);
    let events = list(&report["events"]);
    match std::env::var("EVENT") {
        Ok(name) => events.iter().find(|event| event["event"] == name.as_str()),
        Err(_) => events.first(),
    }
    .context("the report has no such event")
}

fn ledger(event: &Value, name: &str) -> u64 {
    let rows = list(&event["trust"]["ledger"]);
    rows.iter().find(|row| row["what"] == name).map_or(0, |row| row["count"].as_u64().unwrap_or(0))
}

fn heatmap(map: &Value) {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    for panel in list(&map["panels"]) {
        // Row: samples, first column, last column.
        let mut rows = BTreeMap::<u64, (u64, u64, u64)>::new();
        for cell in list(&panel["cells"]) {
            let (column, row, samples) = (number(&cell[0]), number(&cell[1]), number(&cell[2]));
            let sums = rows.entry(row).or_insert((0, column, column));
            *sums = (sums.0 + samples, sums.1.min(column), sums.2.max(column));
        }
        for (row, (samples, first, last)) in rows {
            let row = &map["rows"][row as usize];
            let begins = row.get("from").unwrap_or(&row["name"]);
            say!("{} {} {samples} {first} {last}", word(&panel["title"]).replace(' ', "_"), word(begins));
        }
    }
}

fn run(path: &str, what: &str, name: Option<&str>) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    // The recorded command may have printed something before the report.
    let begin = if text.starts_with('{') { 0 } else { text.find("\n{").context("no report")? };
    let report: Value = serde_json::from_str(&text[begin..]).with_context(|| path.to_owned())?;
    if what == "heatmap" {
        heatmap(&report);
        return Ok(());
    }
    let event = event(&report)?;
    let trust = &event["trust"];
    let named = || name.with_context(|| format!("{what} needs a name"));
    match what {
        "ledger" => say!("{}", ledger(event, named()?)),
        "trust" => match trust.get(named()?).context("the trust has no such field")? {
            Value::String(text) => say!("{text}"),
            value => say!("{value}"),
        },
        "findings" => {
            for finding in list(&trust["findings"]).iter().chain(list(&event["notes"])) {
                say!("{}", word(finding));
            }
        }
        "groups" => {
            for group in list(&event["groups"]) {
                let mut words: Vec<String> = list(&group["values"]).iter().map(word).collect();
                words.extend(
                    ["count", "period_sum", "latency_sum", "latency_max"]
                        .map(|key| group["measures"][key].to_string()),
                );
                say!("{}", words.join(" "));
            }
        }
        "rejected" => {
            for row in list(&trust["ledger"]).iter().filter(|row| row["what"] == "rejected") {
                let clause = row["meaning"].as_str().unwrap_or_default();
                say!("{}: {}", clause.trim_start_matches("failed the clause: "), row["count"]);
            }
        }
        "account" => {
            let rejected = list(&trust["ledger"]).iter().filter(|row| row["what"] == "rejected");
            say!(
                "seen {} due {} closes {} throttled {} lost {} full {} kept {} rejected {}",
                ledger(event, "seen"),
                trust["expected"],
                trust["closes"],
                ledger(event, "throttled"),
                ledger(event, "lost"),
                ledger(event, "table full"),
                ledger(event, "aggregated"),
                rejected.filter_map(|row| row["count"].as_u64()).sum::<u64>(),
            );
        }
        "ends" => {
            let mut ends = BTreeMap::<String, u64>::new();
            let all = list(&event["ends"]).iter().map(|end| (word(&end["end"]), end));
            let none = list(&event["without"]).iter().map(|why| (word(&why["reason"]), why));
            for (reason, of) in all.chain(none) {
                *ends.entry(reason).or_default() += of["samples"].as_u64().context("no samples")?;
            }
            ends.iter().for_each(|(reason, samples)| say!("{reason} {samples}"));
        }
        "permille" => {
            let coverage = trust["coverage"].as_f64().context("no coverage")?;
            say!("{}", (coverage * 1e3).round());
        }
        "drift" => {
            let period = event["period"].as_u64().context("no fixed period")?;
            let due = trust["event_count"].as_f64().context("no count")?;
            let seen = (ledger(event, "seen") * period) as f64;
            say!("{}", ((seen / due - 1.0).abs() * 1e6).round());
        }
        other => bail!("lab-said: nothing is called {other}"),
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [path, what] => run(path, what, None)?,
        [path, what, name] => run(path, what, Some(name))?,
        _ => OUT.with_borrow_mut(|out| out.push_str(HELP)),
    }
    std::io::stdout().write_all(OUT.take().as_bytes()).context("cannot print")
}
