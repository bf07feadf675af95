//! Results of `precise check` as text.

use crate::check::{
    ChangeUnit, CheckReport, ConditionResult, ConditionVerdict, Judged, MetricEstimate, MetricUnit,
};
use crate::group_table::{key_column, short_text};
use crate::render::number::{percent, percent_to};
use crate::render::table::{Table, TableColumn};
use crate::render::{TextOptions, Tint};
use crate::run_text::{legend, notes, verdict};
use precise_model::digits::{counted, thousands};
use precise_model::text::{sanitize, wrap};

/// Returns each condition with its result and at most `limit` groups.
pub fn check_text(check: &CheckReport, limit: usize, options: &TextOptions) -> String {
    let mut out = String::new();
    for (name, run) in [("BASE", &check.base), ("NEW", &check.new)] {
        let line = format!("{name}: {} on {}", sanitize(&run.target), sanitize(&run.host));
        out += &format!("{}\n", wrap(&line, options.width, 2));
    }
    for judgement in &check.conditions {
        out += &condition(judgement, limit, options);
    }
    out.push('\n');
    for pair in &check.events {
        for (name, event) in ["BASE", "NEW"].iter().zip(pair) {
            out += &format!("{name}\n{}", verdict(event, check.events.len() > 1, options));
        }
    }
    if !check.notes.is_empty() {
        out += "BASE and NEW\n";
        out += &notes(&check.notes, options);
    }
    out += &legend(
        &[
            "fail: the change exceeds the bound with 95% confidence (corrected for the number of groups \
             by Holm's method). pass: the whole 95% interval is within the bound. cannot tell: the \
             bound lies inside the interval; 9x: nine times as many samples would be enough, if nothing \
             changed.",
            "Samples of one burst are not independent, so a true interval may be wider. Groups with \
             fewer than 100 samples are not judged.",
        ],
        options,
    );
    out
}

fn condition(judgement: &ConditionResult, limit: usize, options: &TextOptions) -> String {
    let title = format!("{}: {}", sanitize(&judgement.condition), judgement.verdict.words());
    let mut out =
        format!("\n{}\n", options.style.paint(tint(judgement.verdict), &wrap(&title, options.width, 2)));
    let [base, new] = judgement.samples;
    let (base, new) = (counted(base, "sample"), thousands(new));
    out += &format!("{}: {base} in BASE, {new} in NEW\n", sanitize(&judgement.event));
    if judgement.groups.is_empty() {
        return out + &wrap(&sanitize(&judgement.sentence), options.width, 2) + "\n";
    }
    let change = if judgement.change == ChangeUnit::Level { "Bound" } else { "Change" };
    let mut columns = ["BASE", "NEW", change, "95% interval"].map(TableColumn::number).to_vec();
    columns.push(TableColumn::text("Verdict", precise_model::text::Cut::End));
    columns.extend(judgement.by.iter().map(|key| key_column(*key)));
    let mut table = Table::new(columns);
    for group in judgement.groups.iter().take(limit) {
        let mut cells = vec![
            number(judgement, &group.base),
            number(judgement, &group.new),
            change_cell(judgement, group),
            interval(judgement, &group.change),
            verdict_cell(judgement, group),
        ];
        let values = group.values.iter().zip(&judgement.by);
        cells.extend(values.map(|(value, key)| short_text(&value.text(), *key)));
        table.row(cells);
    }
    out += "\n";
    out += &table.render(options.table_width(), options.style);
    let more = judgement.groups.len().saturating_sub(limit);
    if more > 0 {
        out += &format!("({} more)\n", thousands(more as u64));
    }
    let left = &judgement.left_out;
    if left.groups > 0 {
        let part = |i: usize| percent(left.samples[i] as f64 / judgement.samples[i].max(1) as f64);
        let line = format!(
            "Not judged: {} with too few samples in one of the captures, {} of the samples in BASE \
             and {} in NEW.",
            if left.groups == 1 {
                "a group".to_owned()
            } else {
                format!("{} groups", thousands(left.groups))
            },
            part(0),
            part(1)
        );
        out += &format!("{}\n", wrap(&line, options.width, 2));
    }
    out
}

fn tint(verdict: ConditionVerdict) -> Tint {
    match verdict {
        ConditionVerdict::Pass => Tint::Heading,
        ConditionVerdict::CannotTell | ConditionVerdict::Fail => Tint::Warning,
    }
}

fn number(judgement: &ConditionResult, estimate: &Option<MetricEstimate>) -> String {
    let value = estimate.and_then(|estimate| estimate.value);
    value.map_or_else(
        || "-".to_owned(),
        |value| match judgement.unit {
            MetricUnit::Share => percent_to(value, 2),
            MetricUnit::Events | MetricUnit::EventsPerSecond | MetricUnit::Cycles => {
                thousands(value.round() as u64)
            }
        },
    )
}

fn change_cell(judgement: &ConditionResult, group: &Judged) -> String {
    let value = match judgement.change {
        ChangeUnit::Level => Some(judgement.bound),
        _ => group.change.and_then(|change| change.value),
    };
    value.map_or_else(|| "-".to_owned(), |value| judgement.change_number(value))
}

fn interval(judgement: &ConditionResult, change: &Option<MetricEstimate>) -> String {
    change.map_or_else(
        || "-".to_owned(),
        |change| {
            let high =
                change.high.map_or_else(|| "no upper limit".to_owned(), |high| judgement.change_number(high));
            format!("{} to {high}", judgement.change_number(change.low))
        },
    )
}

fn verdict_cell(judgement: &ConditionResult, group: &Judged) -> String {
    match judgement.times(group) {
        Some(times) => format!("{}, {times}x", group.verdict.words()),
        None => group.verdict.words().to_owned(),
    }
}
