//! The memory levels of loads and stores as text.

use crate::group_table::{Measure, groups_table};
use crate::mem::{Accesses, Mem};
use crate::render::TextOptions;
use crate::render::Tint;
use crate::run_text::{header, legend, notes, verdict};
use precise_model::digits::counted;

/// Formats for each event the tables of its loads and stores, its verdict, and the explanation of
/// the terms.
pub fn mem_text(mem: &Mem, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, event) in mem.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &header(&mem.run, &event.event, event.samples, options);
        for accesses in &event.accesses {
            let title =
                format!("{}: {}", plural(accesses.op), counted(accesses.groups.total.count, "sample"));
            out += &format!("\n{}\n", options.style.paint(Tint::Heading, &title));
            let unit = &event.event.unit;
            out += &groups_table(&accesses.groups, &mem.by, &measures(accesses), unit, options);
        }
        out.push('\n');
        out += &notes(&event.notes, options);
        out += &verdict(&event.event, mem.events.len() > 1, options);
    }
    let shown = || mem.events.iter().flat_map(|e| &e.accesses).filter(|a| !a.groups.list.is_empty());
    let mut lines = Vec::new();
    if shown().any(|a| a.timed) {
        lines.push(
            "Overhead: share of the total latency of all loads (or stores), as in perf mem report. Avg, \
             Max: latency in core cycles.",
        );
    }
    if shown().any(|a| !a.timed) {
        lines.push("Share: share of the samples; these have no latencies.");
    }
    if !lines.is_empty() {
        lines.push(
            "In 95% of runs the true value is within ± percentage points of each share. N/A: the \
            hardware did not report it.",
        );
    }
    out + &legend(&lines, options)
}

fn plural(op: &str) -> &'static str {
    match op {
        "LOAD" => "Loads",
        "STORE" => "Stores",
        "LOAD|STORE" => "Loads that also store",
        "PFETCH" => "Prefetches",
        _ => "Instruction fetches",
    }
}

fn measures(accesses: &Accesses) -> Vec<Measure> {
    if !accesses.timed {
        return vec![Measure::Share, Measure::Samples];
    }
    vec![Measure::LatencyShare("Overhead"), Measure::Samples, Measure::Average, Measure::Maximum]
}
