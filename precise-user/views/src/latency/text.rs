//! Latencies as text: a histogram, and a table of percentiles.

use crate::group_table::{Measure, groups_table, too_few};
use crate::grouping::Groups;
use crate::latency::{Distribution, Latency, LatencyBucket, LatencyEvent, LatencyMode};
use crate::render::TextOptions;
use crate::render::Tint;
use crate::render::number::percent;
use crate::run_text::{header, legend, notes, verdict};
use precise_model::digits::thousands;
use precise_model::text::wrap;

/// Maximum number of lines of a histogram.
const LINES: usize = 16;
/// Columns that a histogram line needs besides its bar.
const BESIDE: usize = 34;

/// Formats for each event its histogram and percentiles, its verdict, and the explanation of the
/// terms.
pub fn latency_text(view: &Latency, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, event) in view.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let samples = event.timed.saturating_add(event.untimed);
        out += &header(&view.run, &event.event, samples, options);
        out.push('\n');
        match (&event.all, event.too_few) {
            (Some(all), None) => out += &tables(view, event, all, options),
            (None, _) if event.timed == 0 => {
                let text = format!("No sample of {} has a latency.", event.event.name);
                out += &format!("{}\n", wrap(&text, options.width, 0));
            }
            (_, needed) => out += &too_few(event.timed, needed.unwrap_or(0), options),
        }
        out.push('\n');
        out += &notes(&event.notes, options);
        out += &verdict(&event.event, view.events.len() > 1, options);
    }
    if view.events.iter().all(|event| event.all.is_none()) {
        return out;
    }
    let mut lines = vec![
        "Latencies in core cycles, from buckets, within 6.3%. p50: half of the accesses took at most \
         this long. In parentheses: the 95% interval; - if there are too few samples.",
    ];
    if !view.by.is_empty() {
        lines.push("Share: share of the samples with a latency, with its 95% interval.");
    }
    out + &legend(&lines, options)
}

fn tables(view: &Latency, event: &LatencyEvent, all: &Distribution, options: &TextOptions) -> String {
    let mut out = histogram(&all.buckets, options);
    if let Some(mode) = &all.mode {
        out += &format!("{}\n", wrap(&mode_words(mode), options.width, 0));
    }
    let measures =
        [Measure::Samples, Measure::P50Within, Measure::P90Within, Measure::P99Within, Measure::P999Within];
    let table = |groups: Vec<_>, left_out, by: &[_], share: bool| {
        let (total, left_out_share) = (all.group.measures, event.left_out_share);
        let groups = Groups { total, list: groups, left_out, left_out_share, ..Groups::default() };
        let mut shown = measures.to_vec();
        // A column that contains only dashes is left out.
        shown.retain(|m| *m != Measure::P999Within || groups.list.iter().any(|g| g.p999.is_some()));
        if share {
            shown.insert(0, Measure::Share);
        }
        shown.push(Measure::Maximum);
        groups_table(&groups, by, &shown, &event.event.unit, options)
    };
    out += "\n";
    out += &table(vec![all.group.clone()], (0, Default::default()), &[], false);
    if !event.groups.is_empty() {
        let rest = precise_model::Measures { count: event.left_out.1, ..Default::default() };
        out += "\n";
        let groups = event.groups.iter().map(|d| d.group.clone()).collect();
        out += &table(groups, (event.left_out.0, rest), &view.by, true);
    }
    out
}

/// Returns what the most frequent latency probably comes from.
pub(crate) fn mode_words(mode: &LatencyMode) -> String {
    let LatencyBucket { low, high, .. } = mode.bucket;
    let range = if low == high { low.to_string() } else { format!("{}-{}", thousands(low), thousands(high)) };
    match &mode.served {
        Some((level, share)) => format!(
            "Most frequent: {range} cycles; {} of these accesses are \"{level}\".",
            percent(share.value)
        ),
        None => format!(
            "Most frequent: {range} cycles, usually {} (a rule of thumb, because the capture has no levels).",
            mode.usually
        ),
    }
}

/// Formats one bar per power of two, or per half or quarter of one if there is room.
fn histogram(buckets: &[LatencyBucket], options: &TextOptions) -> String {
    let lines =
        [8, 4, 2, 1].into_iter().map(|per_power| merged(buckets, per_power)).find(|l| l.len() <= LINES);
    let lines = lines.unwrap_or_else(|| merged(buckets, 1));
    let most = lines.iter().map(|line| line.share).fold(f64::MIN_POSITIVE, f64::max);
    let room = options.width.saturating_sub(BESIDE).clamp(10, 60);
    let mut out =
        options.style.paint(Tint::Heading, &format!("{:>13}  {:>9}  {:>6}", "Cycles", "Samples", "Share"));
    out.push('\n');
    for line in &lines {
        let range = if line.low == line.high {
            thousands(line.low)
        } else {
            format!("{}-{}", thousands(line.low), thousands(line.high))
        };
        let eighths = (line.share / most * room as f64 * 8.0).round() as usize;
        let mut bar = "█".repeat(eighths / 8);
        // A bucket with samples always has a visible bar.
        match (eighths % 8, line.samples > 0 && eighths == 0) {
            (_, true) => bar.push('▏'),
            (0, _) => {}
            (part, _) => bar.push(['▏', '▎', '▍', '▌', '▋', '▊', '▉'][part - 1]),
        }
        let share = percent(line.share);
        let text = format!("{range:>13}  {:>9}  {share:>6}  {bar}", thousands(line.samples));
        out += text.trim_end();
        out.push('\n');
    }
    out
}

/// Merges buckets, so that a power of two has at most `per_power` of them. Buckets without samples
/// in between are included, so that the axis has no gaps.
fn merged(buckets: &[LatencyBucket], per_power: u64) -> Vec<LatencyBucket> {
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return Vec::new() };
    let mut lines: Vec<LatencyBucket> = Vec::new();
    let mut low = begin_of(first.low, per_power);
    while low <= last.high {
        let high = end_of(low, per_power);
        let inside = buckets.iter().filter(|b| b.low >= low && b.low <= high);
        let none = LatencyBucket { low, high, samples: 0, share: 0.0 };
        lines.push(inside.fold(none, |sum, b| LatencyBucket {
            samples: sum.samples.saturating_add(b.samples),
            share: sum.share + b.share,
            ..sum
        }));
        low = high + 1;
    }
    lines
}

/// Returns the width of the merged bucket that contains `value`.
fn step(value: u64, per_power: u64) -> u64 {
    let power = 1u64 << value.max(1).ilog2();
    (power / per_power).max(1)
}

fn begin_of(value: u64, per_power: u64) -> u64 {
    value - value % step(value, per_power)
}

fn end_of(begin: u64, per_power: u64) -> u64 {
    begin + step(begin, per_power) - 1
}
