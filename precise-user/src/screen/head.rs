//! The head of the screen: what is sampled, how fast, what it costs, and how far to trust it.

use precise_common::ledger::Counter;
use precise_model::digits::{percent, percent_to};
use precise_model::text::sanitize;
use precise_model::{Capture, EventInfo};
use precise_sampling::top::WindowSnapshot;
use precise_views::render::number::{duration, short};
use precise_views::trust::EventTrust;

/// The heights of a sparkline, from nothing to the most.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns what is sampled, and over what time.
pub(super) fn title(snapshot: &WindowSnapshot, event: usize) -> String {
    let meta = &snapshot.capture.meta;
    let name = meta.events.get(event).map_or("", |event| event.name.as_str());
    let of = match meta.events.len() {
        0 | 1 => String::new(),
        all => format!(" ({} of {all})", event + 1),
    };
    let length = meta.epochs.last().map_or(0, |epoch| epoch.end_ns);
    let filter = match meta.filter.as_str() {
        "" => String::new(),
        filter => format!(", {filter}"),
    };
    sanitize(&format!(
        "precise top  {name}{of} of {}{filter}  last {} of {}",
        meta.target,
        duration(length),
        duration(snapshot.elapsed.as_nanos() as u64)
    ))
}

/// Returns the samples of an event in each epoch, per second.
pub(super) fn rates(capture: &Capture, event: usize) -> Vec<f64> {
    let epochs = &capture.meta.epochs;
    let mut sums = vec![0u64; epochs.len()];
    for row in capture.rows.iter().filter(|row| usize::from(row.event) == event) {
        if let Some(sum) = sums.get_mut(row.epoch as usize) {
            *sum = sum.saturating_add(row.measures.count);
        }
    }
    let per_second = |(sum, epoch): (&u64, &precise_model::Epoch)| {
        *sum as f64 * 1e9 / epoch.end_ns.saturating_sub(epoch.start_ns).max(1) as f64
    };
    sums.iter().zip(epochs).map(per_second).collect()
}

/// Returns the newest `width` numbers as bars. The highest bar is the largest number.
pub(super) fn sparkline(numbers: &[f64], width: usize) -> String {
    let newest = &numbers[numbers.len().saturating_sub(width)..];
    let most = newest.iter().copied().fold(0.0, f64::max);
    let bar = |number: &f64| match most {
        0.0 => BARS[0],
        // Whatever is above 0 is visible.
        _ if *number > 0.0 => BARS[((number / most * 8.0).round() as usize).clamp(1, 8)],
        _ => BARS[0],
    };
    newest.iter().map(bar).collect()
}

/// Returns the newest rate in words.
pub(super) fn rate(numbers: &[f64]) -> String {
    format!("{} samples/s", short(numbers.last().map_or(0, |rate| rate.round() as u64)))
}

/// Returns what the view costs, in shares of one CPU.
pub(super) fn cost(snapshot: &WindowSnapshot) -> String {
    let cost = &snapshot.cost;
    let limit =
        cost.budget.map_or_else(|| "no limit".to_owned(), |limit| format!("limit {}", percent(limit)));
    format!("cost: sampling {} ({limit}), process {}", percent_to(cost.sampling, 2), percent(cost.process))
}

/// Returns where the samples of the window went, in one line.
pub(super) fn ledger(event: &EventInfo, trust: &EventTrust) -> String {
    let ledger = &event.ledger;
    let mut text = format!(
        "ledger  seen {}, kept {}",
        short(ledger.counter(Counter::Seen)),
        short(ledger.counter(Counter::Aggregated))
    );
    for (what, count) in [("rejected", ledger.rejected_total()), ("throttled", ledger.throttled)] {
        if count > 0 {
            text += &format!(", {what} {}", short(count));
        }
    }
    text += &format!(", lost {}; ", short(ledger.lost_total()));
    text += if trust.closes { "closes" } else { "DOES NOT CLOSE" };
    if let Some(coverage) = trust.coverage {
        text += &format!("; coverage {}", percent(coverage));
    }
    if let Some(idle) = event.idle.filter(|idle| !idle.included) {
        text += &format!("; {} of idle CPUs left out", short(idle.samples));
    }
    text
}

/// Returns whether the samples are precise, and the first finding.
pub(super) fn verdict(trust: &EventTrust) -> String {
    let precise = trust.summary.split("; ").next().unwrap_or_default();
    let findings = match &trust.findings[..] {
        [] => String::new(),
        [one] => format!(": {one}"),
        [one, ..] => format!(" ({} findings, tab 8): {one}", trust.findings.len()),
    };
    sanitize(&format!("verdict {precise}{findings}"))
}
