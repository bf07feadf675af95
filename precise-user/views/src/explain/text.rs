//! Findings as text.

use crate::explain::{Explanation, Finding, FindingUnit, Number, Quiet, Topic, Unknown};
use crate::render::number::{percent, percent_to};
use crate::render::table::{Table, TableColumn};
use crate::render::{TextOptions, Tint};
use crate::run_text::sampled;
use precise_model::digits::thousands;
use precise_model::text::{Cut, ending, sanitize, wrap};

/// Returns the findings, most important first; then the checks without a finding; then the checks
/// that were not possible, and how to record the missing data.
pub fn explain_text(view: &Explanation, options: &TextOptions) -> String {
    let events = view.events.iter().map(|sampled| (sampled.event.name.as_str(), sampled.samples));
    let mut out = wrap(&sampled(&view.run, events), options.width, 2) + "\n";
    let (trust, work): (Vec<_>, Vec<_>) = view.findings.iter().partition(|f| f.topic.is_trust());
    if !trust.is_empty() {
        heading(&mut out, "Reliability of this capture", options);
        trust.iter().for_each(|finding| item(&mut out, finding, None, options));
    }
    if view.nothing_stands_out {
        let line = nothing(view);
        out += &format!("\n{}\n", options.style.paint(Tint::Good, &wrap(line, options.width, 2)));
    } else {
        heading(&mut out, "Findings", options);
        for (number, finding) in (1..).zip(work) {
            item(&mut out, finding, Some(number), options);
        }
    }
    if !view.quiet.is_empty() {
        heading(&mut out, "Checked, without a finding", options);
        out += &quiet(&view.quiet, options);
    }
    if !view.unknown.is_empty() {
        heading(&mut out, "Not checked", options);
        unknown(view).iter().for_each(|(topics, missing)| lacking(&mut out, topics, missing, options));
    }
    if view.findings.iter().any(|f| f.number.is_some_and(|n| n.low.is_some())) || !view.quiet.is_empty() {
        let legend = "In parentheses: the 95% interval. A finding requires that its lower end passes a \
                      threshold; docs/explain.md lists the thresholds with reasons.";
        out += &format!("\n{}\n", options.style.paint(Tint::Dim, &wrap(legend, options.width, 2)));
    }
    out
}

/// Returns the sentence for a capture without findings, depending on which checks were possible.
pub(crate) fn nothing(view: &Explanation) -> &'static str {
    match (view.quiet.is_empty(), view.unknown.is_empty()) {
        (true, _) => "No check was possible: the reasons are below.",
        (false, true) => "No check found a problem.",
        (false, false) => "No check found a problem. Not checked: see below.",
    }
}

/// Returns the finding in one sentence, with its number first.
pub(crate) fn sentence(finding: &Finding) -> String {
    let number = finding.number.map_or_else(String::new, |n| number(&n) + " ");
    format!("{number}{}.", finding.says)
}

/// Formats a number with its interval: `34.1% (32.0% to 36.3%)`.
pub(crate) fn number(number: &Number) -> String {
    let one = |value: f64| match number.unit {
        FindingUnit::Share => percent(value),
        FindingUnit::Times => format!("{value:.1}"),
        FindingUnit::Count => thousands(value as u64),
    };
    let times = if number.unit == FindingUnit::Times { " times" } else { "" };
    match (number.low, number.high) {
        (Some(low), Some(high)) => format!("{} ({} to {}){times}", one(number.value), one(low), one(high)),
        _ => one(number.value) + times,
    }
}

/// Returns a topic with a capital letter, to start a sentence.
pub(crate) fn title(topic: Topic) -> String {
    let words = topic.words();
    words.chars().take(1).flat_map(char::to_uppercase).chain(words.chars().skip(1)).collect()
}

/// Returns a sentence with a capital letter, unless it begins with a name (`cpu-clock`, `ls`).
fn capital(sentence: &str) -> String {
    const WORDS: [&str; 8] = ["a", "an", "in", "no", "some", "the", "this", "to"];
    if !sentence.split(' ').next().is_some_and(|word| WORDS.contains(&word)) {
        return sentence.to_owned();
    }
    sentence.chars().take(1).flat_map(char::to_uppercase).chain(sentence.chars().skip(1)).collect()
}

fn heading(out: &mut String, text: &str, options: &TextOptions) {
    *out += &format!("\n{}\n", options.style.paint(Tint::Heading, text));
}

fn item(out: &mut String, finding: &Finding, number: Option<usize>, options: &TextOptions) {
    let mark = number.map_or_else(|| "*".to_owned(), |number| format!("{number}."));
    let indent = mark.len() + 1;
    let more = finding.details.iter().map(|detail| capital(&ending(&sanitize(detail))));
    let text: Vec<_> =
        std::iter::once(format!("{mark} {}: {}", title(finding.topic), sanitize(&sentence(finding))))
            .chain(more)
            .collect();
    *out += &wrap(&text.join(" "), options.width, indent);
    // The command is not wrapped, so that it can be copied.
    let command = format!("{}See: {}", " ".repeat(indent), sanitize(&finding.command));
    *out += &format!("\n{}\n", options.style.paint(Tint::Dim, &command));
}

fn quiet(list: &[Quiet], options: &TextOptions) -> String {
    let mut table = Table::new(vec![
        TableColumn::text("What", Cut::End),
        TableColumn::text("Number", Cut::End),
        TableColumn::text("Threshold", Cut::End),
        TableColumn::number("Samples"),
        TableColumn::text("Of", Cut::Middle),
    ]);
    for quiet in list {
        let (seen, passes) = numbers(quiet);
        let what = quiet.topic.words().to_owned();
        table.row(vec![what, seen, passes, thousands(quiet.samples), quiet.event.clone()]);
    }
    table.render(options.table_width(), options.style)
}

/// Returns the observed number, and the threshold that it did not pass.
pub(crate) fn numbers(quiet: &Quiet) -> (String, String) {
    // Only ratios have thresholds above 1.
    let usual = if quiet.threshold > 1.0 { FindingUnit::Times } else { FindingUnit::Share };
    let unit = quiet.number.map_or(usual, |number| number.unit);
    let passes = match unit {
        FindingUnit::Times => format!("{} times", quiet.threshold),
        _ => percent_to(quiet.threshold, 0),
    };
    (quiet.number.map_or_else(|| "-".to_owned(), |n| number(&n)), passes)
}

/// Returns the checks that were not possible, those with the same missing data together.
pub(crate) fn unknown(view: &Explanation) -> Vec<(String, &Unknown)> {
    let mut found: Vec<(String, &Unknown)> = Vec::new();
    for missing in &view.unknown {
        match found.iter_mut().find(|(_, one)| (&one.why, &one.record) == (&missing.why, &missing.record)) {
            Some((topics, _)) => *topics += &format!(", {}", missing.topic.words()),
            None => found.push((title(missing.topic), missing)),
        }
    }
    found
}

fn lacking(out: &mut String, topics: &str, missing: &Unknown, options: &TextOptions) {
    let text = format!("* {topics}: {}", sanitize(&ending(&missing.why)));
    *out += &wrap(&text, options.width, 2);
    match &missing.record {
        Some(again) => *out += &format!("\n  {}: {}\n", again.verb(), sanitize(again.command())),
        None => out.push('\n'),
    }
}
