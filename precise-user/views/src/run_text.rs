//! Text that every view prints before and after its tables: what was sampled, and the verdict.

use super::trust_text::{bullet, verdict_line};
use crate::about::{EventSummary, Run};
use crate::idle;
use crate::render::TextOptions;
use crate::render::Tint;
use crate::render::number::duration;
use crate::stats::Estimate;
use precise_model::digits::{counted, thousands};
use precise_model::text::{sanitize, wrap};

/// Describes a run and its events, each with its name and number of samples.
pub(crate) fn sampled<'a>(run: &Run, events: impl Iterator<Item = (&'a str, u64)>) -> String {
    let events =
        events.map(|(name, samples)| format!("{} of {}", counted(samples, "sample"), sanitize(name)));
    let mut text = format!(
        "{}, {} of {}",
        events.collect::<Vec<_>>().join(", "),
        duration(run.duration_ns),
        sanitize(&run.target)
    );
    if !run.host.is_empty() {
        text += &format!(" on {}", sanitize(&run.host));
    }
    if let Some(when) = run.when() {
        text += &format!(", {when}");
    }
    if !run.filter.is_empty() {
        text += &format!("; only samples that passed the filter: {}", sanitize(&run.filter));
    }
    text
}

/// Formats the header: event, period, number of samples, duration and target.
pub(crate) fn header(run: &Run, event: &EventSummary, samples: u64, options: &TextOptions) -> String {
    header_of(run, event, samples, None, options)
}

/// Formats the header with an estimate of the events that the samples stand for, if sample periods
/// vary.
pub(crate) fn header_of(
    run: &Run,
    event: &EventSummary,
    samples: u64,
    estimate: Option<Estimate>,
    options: &TextOptions,
) -> String {
    let width = options.width;
    let mut title = sanitize(&event.name);
    if !event.encoding.is_empty() && event.encoding != event.name {
        title += &format!("  ({})", sanitize(&event.encoding));
    }
    let mut out = options.style.paint(Tint::Heading, &wrap(&title, width, 2));
    let unit = if event.unit.is_empty() { "events".to_owned() } else { sanitize(&event.unit) };
    let periods = event.rates.iter().filter_map(|rate| rate.period);
    let rate = match (event.period, event.frequency) {
        (None, None) if let Some((least, most)) = periods.clone().min().zip(periods.max()) => {
            format!("1 sample per {} to {} {unit}", thousands(least), thousands(most))
        }
        (Some(1), _) => format!("a sample of each of the {unit}"),
        (Some(period), _) => format!("1 sample per {} {unit}", thousands(period)),
        (None, Some(frequency)) => format!("about {} samples per second per CPU", thousands(frequency)),
        (None, None) => "at a varying period".to_owned(),
    };
    let mut line = format!(
        "{}, {rate}, {} of {}",
        counted(samples, "sample"),
        duration(run.duration_ns),
        sanitize(&run.target),
    );
    if !run.host.is_empty() {
        line += &format!(" on {}", sanitize(&run.host));
    }
    if let Some(when) = run.when() {
        line += &format!(", {when}");
    }
    out += &format!("\n{}\n", wrap(&line, width, 2));
    if let Some(Estimate { value, low, high }) = estimate.filter(|_| event.period.is_none()) {
        let text = format!(
            "They stand for {} {unit} (95% interval: {} to {})",
            thousands(value),
            thousands(low),
            thousands(high)
        );
        out += &format!("{}\n", wrap(&text, width, 2));
    }
    out += &above(event, options);
    if !run.filter.is_empty() {
        out += &format!("{}\n", wrap(&format!("Filter: {}", sanitize(&run.filter)), width, 2));
    }
    out
}

/// Formats what a reader must know before the tables: idle CPUs, and lost samples.
fn above(event: &EventSummary, options: &TextOptions) -> String {
    let idle = event.idle.as_ref().map(idle::sentence);
    let mut out = idle.map_or_else(String::new, |text| wrap(&text, options.width, 2) + "\n");
    if let Some(loss) = &event.trust.loss {
        let text = wrap(&loss.sentence(), options.width, 2);
        out += &format!("{}\n", options.style.paint(Tint::Bad, &text));
    }
    out
}

/// Formats the verdict of an event and what is missing from it. The text names the event if there
/// are several.
pub(crate) fn verdict(event: &EventSummary, one_of_several: bool, options: &TextOptions) -> String {
    let mut out = verdict_line(&event.trust, one_of_several, options);
    for finding in &event.trust.findings {
        bullet(&mut out, finding, options);
    }
    out
}

/// Formats each note as a sentence.
pub(crate) fn notes(notes: &[String], options: &TextOptions) -> String {
    let mut out = String::new();
    for note in notes {
        bullet(&mut out, note, options);
    }
    out
}

/// Formats lines that explain the terms of a view, after an empty line. Returns an empty text if
/// there are no lines.
pub(crate) fn legend(lines: &[&str], options: &TextOptions) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n");
    for line in lines {
        out += &options.style.paint(Tint::Dim, &wrap(line, options.width, 2));
        out.push('\n');
    }
    out
}
