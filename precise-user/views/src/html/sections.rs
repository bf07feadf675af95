//! The sections for findings, reliability, how the capture was made, and a glossary.

use super::element::text;
use super::tables::plain;
use crate::explain::text::{ending, nothing, number, numbers, sentence, title, unknown};
use crate::explain::{Explanation, Finding, Number, Unit};
use crate::page::Made;
use crate::render::number::{percent, utc};
use crate::trust::{EventTrust, Trust};
use precise_model::digits::thousands;

/// Returns the findings, the checks without a finding, and the checks that were not possible.
pub(crate) fn findings(view: &Explanation) -> String {
    let mut out = String::from("<h2 id=\"findings\">Findings</h2>\n");
    let (trust, work): (Vec<_>, Vec<_>) = view.findings.iter().partition(|f| f.topic.is_trust());
    out += "<ol class=\"findings\">\n";
    for finding in &trust {
        out += &card(finding, "bad");
    }
    if view.nothing_stands_out {
        let tint = if view.quiet.is_empty() { "warn" } else { "good" };
        out += &format!("<li class=\"card {tint}\"><p class=\"big\">{}</p></li>\n", text(nothing(view)));
    }
    for finding in &work {
        out += &card(finding, "warn");
    }
    out += "</ol>\n";
    if !view.quiet.is_empty() {
        let rows = view.quiet.iter().map(|quiet| {
            let (seen, passes) = numbers(quiet);
            vec![
                quiet.topic.words().to_owned(),
                seen,
                passes,
                quiet.of.to_owned(),
                thousands(quiet.samples),
                quiet.event.clone(),
            ]
        });
        out += &plain(
            "Checked, without a finding. In parentheses: the 95% interval, whose lower end would have \
             to pass the threshold.",
            &["What", "Number", "Threshold", "Of", "Samples", "Event"],
            rows,
        );
    }
    if !view.unknown.is_empty() {
        out += "<details><summary>Not checked</summary>\n<ul>\n";
        for (topics, missing) in unknown(view) {
            let record = missing
                .record
                .as_ref()
                .map_or_else(String::new, |record| format!("<br>Record: <code>{}</code>", text(record)));
            let why = text(&ending(&missing.why));
            out += &format!("<li><strong>{topics}:</strong> {why}{record}</li>\n");
        }
        out += "</ul>\n</details>\n";
    }
    out
}

fn card(finding: &Finding, tint: &str) -> String {
    let says = sentence(finding);
    // The number is what a reader looks for first.
    let says = match finding.number.map(|n| number(&n)) {
        Some(n) => {
            format!("<span class=\"big\">{}</span>{}", text(&n), text(says.strip_prefix(&n).unwrap_or(&says)))
        }
        None => {
            let mut chars = says.chars();
            let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
            text(&(first + chars.as_str()))
        }
    };
    let details: String =
        finding.details.iter().map(|detail| format!("<p>{}</p>\n", text(&ending(detail)))).collect();
    let scale = finding.number.map_or_else(String::new, |n| scale(&n, finding.threshold));
    format!(
        "<li class=\"card {tint}\">\n<h3>{}</h3>\n<p>{says}</p>\n{scale}{details}<p class=\"soft\">See: \
         <code>{}</code></p>\n</li>\n",
        title(finding.topic),
        text(&finding.command)
    )
}

/// Returns a share with its interval and the threshold, on a scale from 0 to 100 %.
fn scale(number: &Number, threshold: Option<f64>) -> String {
    let (Unit::Share, Some(low), Some(high)) = (number.unit, number.low, number.high) else {
        return String::new();
    };
    let [value, low, high] = [number.value, low, high].map(|part| part.clamp(0.0, 1.0) * 200.0);
    let mark = threshold.map_or_else(String::new, |threshold| {
        format!("<rect class=\"mark\" x=\"{:.1}\" width=\"1\" height=\"12\"/>", threshold * 200.0)
    });
    let words = match threshold {
        Some(threshold) => {
            format!("On a scale from 0 to 100%; the mark is the threshold, {}.", percent(threshold))
        }
        None => "On a scale from 0 to 100%.".to_owned(),
    };
    format!(
        "<svg class=\"scale\" viewBox=\"0 0 200 12\" preserveAspectRatio=\"none\" role=\"img\"><title>{words}</title>\
         <rect class=\"track\" y=\"2\" width=\"200\" height=\"8\"/><rect class=\"value\" y=\"2\" width=\"{value:.1}\" \
         height=\"8\"/><rect class=\"band\" x=\"{low:.1}\" y=\"4\" width=\"{:.1}\" height=\"4\"/>{mark}</svg>\n",
        (high - low).max(0.5)
    )
}

/// Returns the verdict and the ledger of each event.
pub(crate) fn verdict(trust: &Trust) -> String {
    let mut out = String::from("<h2 id=\"trust\">Reliability</h2>\n");
    for event in &trust.events {
        out += &of_event(event);
    }
    if !trust.notes.is_empty() {
        out += &list(&trust.notes);
    }
    out
}

fn of_event(event: &EventTrust) -> String {
    let tint = match (event.precise, event.findings.is_empty()) {
        (false, _) => "bad",
        (true, false) => "warn",
        (true, true) => "good",
    };
    let mut out = format!(
        "<div class=\"card {tint}\"><p><span class=\"big\">{}:</span> {}.</p>{}</div>\n",
        text(&event.event),
        text(&event.summary),
        list(&event.findings)
    );
    if event.ledger.is_empty() {
        return out;
    }
    let rows = event.ledger.iter().map(|row| {
        let share = row.share.map_or_else(String::new, percent);
        vec![row.what.clone(), thousands(row.count), share, row.meaning.clone()]
    });
    let closing = if event.closes {
        "Ledger: where the samples went. It closes: every sample that the program saw is in one of \
         these rows."
            .to_owned()
    } else {
        format!(
            "Ledger: where the samples went. It does not close: {} samples are missing.",
            event.unaccounted
        )
    };
    out += &plain(&closing, &["What", "Samples", "Share", "Meaning"], rows);
    out
}

fn list(sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let items: String =
        sentences.iter().map(|sentence| format!("<li>{}</li>\n", text(&ending(sentence)))).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// Returns the command, the machine and the time of the run.
pub(crate) fn made(made: &Made, view: &Explanation) -> String {
    let machine = &made.machine;
    let start = if made.start_unix_ns > 0 { utc(made.start_unix_ns) } else { "unknown".to_owned() };
    let encodings: Vec<_> =
        view.events.iter().map(|e| format!("{}: {}", e.event.name, e.event.encoding)).collect();
    let mut out = String::from("<h2 id=\"made\">How it was made</h2>\n");
    out += &format!("<p class=\"command\"><code>{}</code></p>\n<dl>\n", text(&made.command.join(" ")));
    for (term, said) in [
        ("Start", start),
        ("Machine", format!("{}, {} CPUs, {}", machine.host, machine.cpus, machine.cpu)),
        ("Kernel", format!("{} ({})", machine.kernel, machine.arch)),
        ("Events", encodings.join("; ")),
        ("Made by", made.producer.clone()),
    ] {
        out += &format!("<dt>{term}</dt><dd>{}</dd>\n", text(&said));
    }
    out + "</dl>\n"
}

/// Returns the glossary of the page.
pub(crate) fn words() -> String {
    let mut out = String::from("<h2 id=\"words\">Words</h2>\n<dl>\n");
    for (word, meaning) in [
        (
            "Sample",
            "One record that the hardware or the kernel took: where a CPU was, and what it did there.",
        ),
        (
            "Share, ±",
            "A part of all samples. In 95 of 100 runs the true value is within ± percentage points of \
             it: the lighter part of a bar.",
        ),
        ("Precise", "The sampled instruction is the one that caused the event, not one shortly after it."),
        ("Ledger", "An account of every expected sample: kept, rejected by the filter, or lost, and where."),
        ("Coverage", "The events that the samples stand for, relative to the event's own count."),
        ("Latency", "How long an access took, in core cycles."),
        (
            "p50, p90, p99",
            "The latency that 50, 90 or 99 of 100 samples do not exceed. Empty if there are too few \
             samples.",
        ),
        ("Cgroup", "A group of processes in the kernel: a service or a container."),
        (
            "False sharing",
            "Two cores write different bytes of the same 64-byte cache line, so the line moves between \
             them each time.",
        ),
        ("Remote memory", "Memory that belongs to another socket or node than the CPU that reads it."),
        (
            "Page walk",
            "A look-up in the page table, because no TLB (a cache of address translations) held the \
             address.",
        ),
        ("Front end", "The part of a core that fetches and decodes instructions."),
    ] {
        out += &format!("<dt>{word}</dt><dd>{meaning}</dd>\n");
    }
    out + "</dl>\n"
}
