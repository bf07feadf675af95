//! The answers of `precise fleet report`, `latency` and `diff` as text and as separated values.

mod diff;
mod latency;
mod report;

pub use diff::{diff_csv, diff_text};
pub use latency::{latency_csv, latency_text};
pub use report::{report_csv, report_text};

use precise_fleet::{FleetAsked, FleetInterval, FleetKey, FleetLedger};
use precise_model::csv::line;
use precise_model::digits::{counted, percent, percent_to, thousands};
use precise_model::text::{Cut, sanitize, wrap};
use precise_views::render::table::TableColumn;
use precise_views::render::{TextOptions, Tint};

/// The number of hours that are named.
const NAMED: usize = 3;

/// Returns a sentence, wrapped, and a newline.
fn sentence(text: &str, options: &TextOptions) -> String {
    wrap(&sanitize(text), options.width, 2) + "\n"
}

fn warning(text: &str, options: &TextOptions) -> String {
    options.style.paint(Tint::Warning, &wrap(&sanitize(text), options.width, 2)) + "\n"
}

/// Returns sentences that explain the words of an answer, after an empty line.
fn legend(lines: &[&str], options: &TextOptions) -> String {
    let line = |text: &&str| options.style.paint(Tint::Dim, &wrap(text, options.width, 2)) + "\n";
    "\n".to_owned() + &lines.iter().map(line).collect::<String>()
}

/// Returns who, where and when: the first lines of an answer.
fn head(asked: &FleetAsked, options: &TextOptions) -> String {
    let who = match asked.service.as_deref() {
        None => "All services".to_owned(),
        Some("") => "Samples without a service".to_owned(),
        Some(name) => name.to_owned(),
    };
    let least = if asked.read.tier > 0 { "at least " } else { "" };
    let nodes = match asked.service_nodes {
        Some(nodes) => format!("{least}{}", thousands(nodes)),
        None => thousands(asked.nodes.reported),
    };
    let known = counted(asked.nodes.known, "node");
    let on = if asked.service.is_some() && asked.service_nodes.is_none() {
        format!("in a fleet of {known}")
    } else {
        format!("on {nodes} of {known}")
    };
    let mut out = options
        .style
        .paint(Tint::Heading, &wrap(&sanitize(&format!("{who} {on}, {}", asked.span)), options.width, 2));
    out.push('\n');
    out += &sentence(&nodes_line(asked), options);
    out += &sentence(&read_line(asked), options);
    if !asked.read.missing_hours.is_empty() {
        let missing = &asked.read.missing_hours;
        let named = missing.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = if missing.len() > NAMED { ", …" } else { "" };
        let text = format!(
            "No tables of {} of the {}: {named}{more}. Either nothing was archived then, or it is not compacted yet.",
            thousands(missing.len() as u64),
            counted(asked.read.hours.into(), "hour"),
        );
        out += &warning(&text, options);
    }
    let lacking = &asked.read.hours_without_instructions;
    if let Some(first) = lacking.first() {
        let text = format!(
            "The tables of {}, the first of them {first}, have no instructions, and their samples are not \
             below: an older precise compacted them.",
            counted(lacking.len() as u64, "hour")
        );
        out += &warning(&text, options);
    }
    out
}

fn nodes_line(asked: &FleetAsked) -> String {
    let nodes = &asked.nodes;
    let listed = |names: Vec<String>, all: u64| {
        let more = if all > names.len() as u64 { ", …" } else { "" };
        names.join(", ") + more
    };
    let expected = match nodes.expected {
        Some(expected) => format!("{} expected (seen in the 24 h before)", thousands(expected)),
        None => "none known of the 24 h before".to_owned(),
    };
    let mut text = format!("Nodes: {expected}, {} reported", thousands(nodes.reported));
    if nodes.silent > 0 {
        let names = listed(nodes.silent_nodes.clone(), nodes.silent);
        text += &format!("; {} silent: {names}", thousands(nodes.silent));
    }
    match &nodes.degraded_nodes[..] {
        [] => text += "; all precise",
        found => {
            let names = found.iter().map(|found| found.node.clone()).collect();
            text +=
                &format!("; {} not precise: {}", thousands(nodes.degraded), listed(names, nodes.degraded));
            if let Some(finding) = found.iter().find_map(|found| found.finding.as_ref()) {
                text += &format!(" ({})", finding.trim_end_matches('.'));
            }
        }
    }
    text
}

fn read_line(asked: &FleetAsked) -> String {
    let read = &asked.read;
    let samples = match read.one_of {
        1 => "all samples".to_owned(),
        one_of => format!("1 of {one_of} samples (tier {})", read.tier),
    };
    let days = if read.days > 0 {
        format!(", {} from the tables of days", counted(read.days, "day"))
    } else {
        String::new()
    };
    format!("Read: {samples}, {}{days}", counted(read.rows, "row"))
}

/// Returns what became of the samples of an event on all nodes.
fn ledger_line(ledger: &FleetLedger) -> String {
    let taken = ledger.arrived.saturating_add(ledger.missed);
    let share = |count: u64| percent_to(count as f64 / taken.max(1) as f64, 2);
    let closes = if ledger.closes {
        "it closes".to_owned()
    } else {
        format!("it does NOT close, by {}", counted(ledger.unaccounted, "sample"))
    };
    let lost = ledger.lost.saturating_add(ledger.discarded);
    format!(
        "Ledger of all services: {} arrived on {}; filtered {}, lost {}, missed {}; {closes}.",
        counted(ledger.arrived, "sample"),
        counted(ledger.nodes, "node"),
        share(ledger.rejected),
        share(lost),
        share(ledger.missed),
    )
}

/// Returns why there is no ranking, or why an interval does not have all that it should.
fn doubts(samples: u64, too_few: Option<u64>, node_groups: u32, options: &TextOptions) -> String {
    let mut out = String::new();
    if let Some(needed) = too_few {
        let text = format!(
            "Too few samples: {} were read, and at least {} are needed. The rows are in no reliable order.",
            thousands(samples),
            thousands(needed)
        );
        out += &warning(&text, options);
    }
    if node_groups < 2 {
        let text = "All samples are of one group of nodes: ± is that of the samples alone, without the \
                    differences between nodes.";
        out += &warning(text, options);
    }
    out
}

/// Formats a share with its interval, in percentage points: `12.3% ±0.4`.
fn share(share: &FleetInterval) -> String {
    format!("{} ±{:.1}", percent(share.value), (share.half_width() * 100.0).max(0.1))
}

/// Returns the columns of keys.
fn key_columns(by: &[FleetKey]) -> impl Iterator<Item = TableColumn> {
    by.iter().map(|key| {
        let cut = match key {
            FleetKey::Function | FleetKey::Type | FleetKey::Field => Cut::Middle,
            FleetKey::Level | FleetKey::Hour => Cut::End,
            _ => Cut::Start,
        };
        TableColumn::text(key.title(), cut)
    })
}

/// Returns the cells of keys.
fn key_cells<'a>(values: &'a [Option<String>], by: &'a [FleetKey]) -> impl Iterator<Item = String> {
    values.iter().zip(by).map(|(value, key)| match (value, key) {
        (Some(module), FleetKey::Module) => module.rsplit('/').next().unwrap_or_default().to_owned(),
        (Some(value), _) => value.clone(),
        (None, FleetKey::Service) => "(no cgroup)".to_owned(),
        (None, FleetKey::Level) => "(not reported)".to_owned(),
        (None, _) => "-".to_owned(),
    })
}

/// Separated values, a header first.
struct AnswerLines<'a> {
    separator: &'a str,
    out: String,
}

impl<'a> AnswerLines<'a> {
    fn new(separator: &'a str, by: &[FleetKey], names: &[&str]) -> Self {
        let mut lines = Self { separator, out: String::new() };
        let first = ["event", "unit", "kind"].into_iter().chain(by.iter().map(|key| key.name()));
        lines.line(first.chain(names.iter().copied()).map(str::to_owned).collect());
        lines
    }

    fn line(&mut self, fields: Vec<String>) {
        line(&mut self.out, &fields, self.separator);
    }
}

/// Returns the fields of an event and of the values of keys; an unknown value is empty.
fn first_fields(event: [&String; 3], values: &[Option<String>]) -> Vec<String> {
    let values = values.iter().map(|value| value.clone().unwrap_or_default());
    event.into_iter().cloned().chain(values).collect()
}

fn interval_fields(of: &FleetInterval) -> [String; 3] {
    [of.value, of.low, of.high].map(|part| format!("{part:.6}"))
}

fn average_field(average: Option<f64>) -> String {
    average.map_or_else(String::new, |average| format!("{average:.3}"))
}
