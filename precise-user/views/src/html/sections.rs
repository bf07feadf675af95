//! The sections that no view contributes: reliability, how the capture was made, and a glossary.

use crate::markup::tables::plain;
use crate::markup::text;
use crate::render::number::{percent, utc};
use crate::trust::{EventTrust, Trust};
use crate::view::{Section, SectionPlace};
use precise_model::Meta;
use precise_model::digits::{counted, thousands};
use precise_model::text::ending;

/// Returns the verdict and the ledger of each event.
pub(crate) fn verdict(trust: &Trust) -> Section {
    let events: String = trust.events.iter().map(of_event).collect();
    let body = events + &list(&trust.notes);
    Section { id: "trust", title: "Reliability", place: SectionPlace::Reliability, body, numbers: None }
}

/// Returns how far each event can be trusted, in a line, for the head of the page.
pub(crate) fn sum(trust: &Trust) -> String {
    let line = |event: &EventTrust| {
        let (tint, name, summary) = (tint(event), text(&event.event), text(&event.summary));
        format!("<p class=\"{tint}\"><a href=\"#trust\">{name}</a>: {summary}.</p>\n")
    };
    trust.events.iter().map(line).collect()
}

fn tint(event: &EventTrust) -> &'static str {
    match (event.precise, event.findings.is_empty()) {
        (false, _) => "bad",
        (true, false) => "warn",
        (true, true) => "good",
    }
}

fn of_event(event: &EventTrust) -> String {
    let tint = tint(event);
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
            "Ledger: where the samples went. It does not close: it is off by {} of the samples that the \
             program saw.",
            thousands(event.unaccounted.unsigned_abs())
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
pub(crate) fn made(meta: &Meta) -> Section {
    let machine = &meta.machine;
    let start = if meta.start_unix_ns > 0 { utc(meta.start_unix_ns) } else { "unknown".to_owned() };
    let encodings: Vec<_> = meta.events.iter().map(|e| format!("{}: {}", e.name, e.encoding)).collect();
    let command = text(&meta.command.join(" "));
    let mut body = format!("<p class=\"command\"><code>{command}</code></p>\n<dl>\n");
    for (term, said) in [
        ("Start", start),
        ("Machine", format!("{}, {}, {}", machine.host, counted(machine.cpus.into(), "CPU"), machine.cpu)),
        ("Kernel", format!("{} ({})", machine.kernel, machine.arch)),
        ("Events", encodings.join("; ")),
        ("Made by", meta.producer.clone()),
    ] {
        body += &format!("<dt>{term}</dt><dd>{}</dd>\n", text(&said));
    }
    body += "</dl>\n";
    Section { id: "made", title: "How it was made", place: SectionPlace::Making, body, numbers: None }
}

/// Returns the glossary of the page.
pub(crate) fn words() -> Section {
    let mut body = String::from("<dl>\n");
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
            "The latency that 50, 90 or 99 of 100 samples do not exceed. Empty if there are too few samples.",
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
            "A look-up in the page table, because no TLB (a cache of address translations) held the address.",
        ),
        ("Front end", "The part of a core that fetches and decodes instructions."),
    ] {
        body += &format!("<dt>{word}</dt><dd>{meaning}</dd>\n");
    }
    body += "</dl>\n";
    Section { id: "words", title: "Words", place: SectionPlace::Making, body, numbers: None }
}
