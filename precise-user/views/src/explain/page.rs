//! Findings on the HTML page.

use super::text::{nothing, number, numbers, sentence, title, unknown};
use super::{Explanation, Finding, FindingUnit, Number};
use crate::markup::tables::plain;
use crate::markup::text;
use crate::render::number::percent;
use crate::view::{Section, SectionPlace};
use precise_model::digits::thousands;
use precise_model::text::ending;

/// Returns the findings, the checks without a finding, and the checks that were not possible.
pub(super) fn section(view: &Explanation) -> Section {
    let (trust, work): (Vec<_>, Vec<_>) = view.findings.iter().partition(|f| f.topic.is_trust());
    let mut body = String::from("<ol class=\"findings\">\n");
    for finding in &trust {
        body += &card(finding, "bad");
    }
    if view.nothing_stands_out {
        let tint = if view.quiet.is_empty() { "warn" } else { "good" };
        body += &format!("<li class=\"card {tint}\"><p class=\"big\">{}</p></li>\n", text(nothing(view)));
    }
    for finding in &work {
        body += &card(finding, "warn");
    }
    body += "</ol>\n";
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
        body += &plain(
            "Checked, without a finding. In parentheses: the 95% interval, whose lower end would have \
             to pass the threshold.",
            &["What", "Number", "Threshold", "Of", "Samples", "Event"],
            rows,
        );
    }
    if !view.unknown.is_empty() {
        body += "<details><summary>Not checked</summary>\n<ul>\n";
        for (topics, missing) in unknown(view) {
            let record = missing.record.as_ref().map_or_else(String::new, |again| {
                format!("<br>{}: <code>{}</code>", again.verb(), text(again.command()))
            });
            let why = text(&ending(&missing.why));
            body += &format!("<li><strong>{topics}:</strong> {why}{record}</li>\n");
        }
        body += "</ul>\n</details>\n";
    }
    Section { id: "findings", title: "Findings", place: SectionPlace::Findings, body, numbers: None }
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
    let (FindingUnit::Share, Some(low), Some(high)) = (number.unit, number.low, number.high) else {
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
