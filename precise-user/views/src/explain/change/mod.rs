//! Changes: when a cgroup (or process) took more samples, became slower or went to memory more
//! often than in the rest of the run, and which others began and ended with it.

pub mod interval;
mod series;

pub(super) use series::is_far;

use std::ops::Range;

use super::{Answer, Finding, Look, Number, Quiet, Topic, Unit, Unknown, thresholds};
use interval::{Found, find};
use precise_model::digits::{counted, percent_to, thousands};
use series::{Cell, FEWEST, Measure, Of, Timeline, User, timeline, users_of};

/// The number of findings of an event.
const MOST: usize = 4;
/// Two intervals are the same if they share this part of the time that either has.
const SAME: f64 = 0.6;

/// A measure of a user that changed.
struct Change {
    user: usize,
    measure: Measure,
    columns: Range<usize>,
    distance: f64,
}

/// Checks whether something changed during the run.
pub(crate) fn changes(look: &Look<'_>) -> Vec<Answer> {
    let topic = Topic::Change;
    let columns = look.capture.meta.epochs.len();
    if columns < FEWEST {
        let why = format!("the capture has {}; at least {FEWEST} are needed.", counted(columns as u64, "epoch"));
        return vec![Answer::Unknown(Unknown { topic, why, record: None })];
    }
    let events = look.capture.meta.events.iter().enumerate();
    events.flat_map(|(index, info)| of_event(look, index, &info.name)).collect()
}

fn of_event(look: &Look<'_>, index: usize, name: &str) -> Vec<Answer> {
    let topic = Topic::Change;
    let line = timeline(look.capture, index);
    let mut which = Vec::new();
    let mut series = Vec::new();
    for (user, of) in line.users.iter().enumerate() {
        for measure in Measure::ALL {
            if let Some(points) = of.points(measure, &line.seconds) {
                which.push((user, measure));
                series.push(points);
            }
        }
    }
    let samples = crate::samples(look.capture, index);
    if series.is_empty() {
        let why = format!(
            "the capture has {} of {name}, too few for each part of the run.",
            counted(samples, "sample")
        );
        return vec![Answer::Unknown(Unknown { topic, why, record: None })];
    }
    let changes: Vec<Change> = which
        .into_iter()
        .zip(find(&series))
        .filter_map(|((user, measure), found)| {
            let Found { columns, distance } = found?;
            let columns = line.unusual(columns);
            Some(Change { user, measure, columns, distance })
        })
        .collect();
    let mut findings = findings(look, &line, name, &changes);
    if findings.is_empty() {
        let threshold = thresholds::CHANGE;
        let of = "the largest change of a rate, a latency or a share of memory";
        return vec![Answer::Quiet(Quiet {
            topic,
            event: name.to_owned(),
            samples,
            number: None,
            threshold,
            of,
        })];
    }
    if line.others > 0
        && let Some(first) = findings.first_mut()
    {
        first.details.push(format!(
            "{} more {} were not looked at, because they have fewer samples.",
            thousands(line.others as u64),
            plural(look)
        ));
    }
    findings.into_iter().map(Answer::Found).collect()
}

fn plural(look: &Look<'_>) -> &'static str {
    match users_of(look.capture) {
        Of::Cgroup => "cgroups",
        Of::Process | Of::Run => "processes",
    }
}

/// Returns the findings: first who became slower, with who was active then; then other changes.
fn findings(look: &Look<'_>, line: &Timeline, event: &str, changes: &[Change]) -> Vec<Finding> {
    let mut told: Vec<(usize, Range<usize>)> = Vec::new();
    let mut findings = Vec::new();
    let by = |wanted: &[Measure]| {
        let mut found: Vec<&Change> =
            changes.iter().filter(|change| wanted.contains(&change.measure)).collect();
        found.sort_by(|a, b| b.distance.total_cmp(&a.distance));
        found
    };
    let slower = by(&[Measure::Tail, Measure::Latency, Measure::Memory]);
    // Who does more than usual does something else than usual, and is rather a cause.
    let (busier, slower): (Vec<&Change>, Vec<&Change>) =
        slower.into_iter().partition(|change| line.around(change).rises());
    for change in slower.into_iter().chain(busier) {
        if told_of(&told, line, change) {
            continue;
        }
        let either = [Some(change.columns.clone()), line.rest(&change.columns)];
        let found = either.into_iter().flatten().find_map(|columns| {
            let change = Change { columns, ..*change };
            let said = line.around(&change).slower(&line.users, &change)?;
            Some((change, said))
        });
        let Some((change, (number, threshold, says))) = found else { continue };
        let change = &change;
        let others = others(line, changes, change);
        told.push((change.user, change.columns.clone()));
        told.extend(others.iter().map(|(other, _)| (*other, change.columns.clone())));
        let mut details: Vec<String> = others.into_iter().map(|(_, says)| says).collect();
        if details.is_empty() && line.users.len() > 1 {
            details.push(format!("No other of the {} changed with it.", plural(look)));
        }
        findings.push(finding(look, event, Some(number), threshold, says, details));
    }
    for change in by(&[Measure::Rate]) {
        if told_of(&told, line, change) {
            continue;
        }
        let Some((number, says)) = line.around(change).rate(&line.users, change) else { continue };
        let others = others(line, changes, change);
        told.push((change.user, change.columns.clone()));
        told.extend(others.iter().map(|(other, _)| (*other, change.columns.clone())));
        let details = others.into_iter().map(|(_, says)| says).collect();
        findings.push(finding(look, event, number, thresholds::CHANGE, says, details));
    }
    findings.truncate(MOST);
    findings
}

fn told_of(told: &[(usize, Range<usize>)], line: &Timeline, change: &Change) -> bool {
    told.iter().any(|(user, columns)| *user == change.user && line.same(columns, &change.columns))
}

fn finding(
    look: &Look<'_>,
    event: &str,
    number: Option<Number>,
    threshold: f64,
    says: String,
    details: Vec<String>,
) -> Finding {
    Finding {
        topic: Topic::Change,
        event: event.to_owned(),
        number,
        threshold: number.map(|_| threshold),
        says,
        details,
        command: look.command("heatmap"),
    }
}

/// Returns the other users that were more active in the interval of a change, each with a sentence.
fn others(line: &Timeline, changes: &[Change], change: &Change) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for other in changes.iter().filter(|other| other.measure == Measure::Rate && other.user != change.user) {
        let around = line.around(other);
        if !around.rises() || !line.same(&other.columns, &change.columns) {
            continue;
        }
        let Some(user) = line.users.get(other.user) else { continue };
        let ran = match around.outside_rate() {
            0.0 => format!("{} ran in the same interval only", user.name),
            usual => format!(
                "{} took {:.1} times its usual samples in the same interval",
                user.name,
                around.inside_rate() / usual
            ),
        };
        let went = match around.inside.served > 0.0 {
            true => {
                let far = around.inside.far / around.inside.served;
                format!(": {} of its accesses went to memory", percent_to(far, 0))
            }
            false => String::new(),
        };
        found.push((other.user, ran + &went));
    }
    found
}

impl Timeline {
    /// Returns the rest instead of an interval that has more of the time than the rest, if the rest
    /// is an interval.
    fn unusual(&self, columns: Range<usize>) -> Range<usize> {
        let all = self.length(&(0..self.columns.len()));
        match self.rest(&columns) {
            Some(rest) if self.length(&columns) > all / 2.0 => rest,
            _ => columns,
        }
    }

    /// Returns the rest of the run, if it is an interval.
    fn rest(&self, columns: &Range<usize>) -> Option<Range<usize>> {
        let all = self.columns.len();
        match (columns.start, columns.end) {
            (0, end) if end < all => Some(end..all),
            (start, end) if end == all && start > 0 => Some(0..start),
            _ => None,
        }
    }

    fn length(&self, columns: &Range<usize>) -> f64 {
        self.seconds.get(columns.clone()).unwrap_or_default().iter().sum()
    }

    fn same(&self, a: &Range<usize>, b: &Range<usize>) -> bool {
        let both = self.length(&(a.start.max(b.start)..a.end.min(b.end).max(a.start.max(b.start))));
        let either = self.length(a) + self.length(b) - both;
        either > 0.0 && both / either >= SAME
    }

    fn around(&self, change: &Change) -> Around {
        let all = 0..self.columns.len();
        let Some(user) = self.users.get(change.user) else { return Around::default() };
        let when = (self.columns.get(change.columns.start), self.columns.get(change.columns.end.max(1) - 1));
        let inside_seconds = self.length(&change.columns);
        Around {
            inside: user.sum(change.columns.clone()),
            outside: user.sum(all.clone().filter(|at| !change.columns.contains(at))),
            inside_seconds,
            outside_seconds: self.length(&all) - inside_seconds,
            when: match when {
                (Some(first), Some(last)) => {
                    format!("from {} to {}", seconds(first.start), seconds(last.end))
                }
                _ => String::new(),
            },
        }
    }
}

fn seconds(ns: u64) -> String {
    match ns {
        0..10_000_000_000 => format!("{:.2} s", ns as f64 / 1e9),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// A user in an interval and in the rest of the run.
#[derive(Default)]
struct Around {
    inside: Cell,
    outside: Cell,
    inside_seconds: f64,
    outside_seconds: f64,
    when: String,
}

impl Around {
    fn inside_rate(&self) -> f64 {
        self.inside.weight / self.inside_seconds.max(1e-9)
    }

    fn outside_rate(&self) -> f64 {
        self.outside.weight / self.outside_seconds.max(1e-9)
    }

    /// Returns whether the user was more active in the interval.
    fn rises(&self) -> bool {
        self.inside_rate() > thresholds::CHANGE * self.outside_rate()
    }

    /// Returns the number, its threshold and the sentence if the user was slower in the interval.
    fn slower(&self, users: &[User], change: &Change) -> Option<(Number, f64, String)> {
        let name = &users.get(change.user)?.name;
        let when = &self.when;
        for (fraction, percentile) in [(0.99, "99th percentile"), (0.5, "median")] {
            let inside = self.inside.latencies.percentile(fraction);
            let Some((inside, outside)) = inside.zip(self.outside.latencies.percentile(fraction)) else {
                continue;
            };
            let times = inside.cycles / outside.cycles.max(1.0);
            if times >= thresholds::CHANGE_OF_LATENCY {
                let says = format!(
                    "the usual {percentile} of the latency is what {name} had {when}: {} core cycles instead of {}",
                    thousands(inside.cycles.round() as u64),
                    thousands(outside.cycles.round() as u64)
                );
                return Some((Number::counted(Unit::Times, times), thresholds::CHANGE_OF_LATENCY, says));
            }
        }
        let share = |cell: &Cell| (cell.served > 0.0).then(|| cell.far / cell.served);
        let (inside, outside) = share(&self.inside).zip(share(&self.outside))?;
        if inside - outside < thresholds::CHANGE_OF_MEMORY {
            return None;
        }
        let says =
            format!("of the accesses of {name} {when} went to memory, instead of {}", percent_to(outside, 1));
        Some((Number::counted(Unit::Share, inside), outside + thresholds::CHANGE_OF_MEMORY, says))
    }

    /// Returns the number and the sentence if the rate of the user changed enough.
    fn rate(&self, users: &[User], change: &Change) -> Option<(Option<Number>, String)> {
        let name = &users.get(change.user)?.name;
        let (inside, outside) = (self.inside_rate(), self.outside_rate());
        let when = &self.when;
        let per_second = |rate: f64| thousands(rate.round() as u64);
        if outside == 0.0 {
            return Some((None, format!("{name} has samples only {when}")));
        }
        if inside == 0.0 {
            return Some((
                None,
                format!("{name} has no samples {when}, and {} a second otherwise", per_second(outside)),
            ));
        }
        let times = inside / outside;
        if times < thresholds::CHANGE && times > thresholds::CHANGE.recip() {
            return None;
        }
        let says = format!(
            "the usual rate of samples is what {name} had {when}: {} a second instead of {}",
            per_second(inside),
            per_second(outside)
        );
        Some((Some(Number::counted(Unit::Times, times)), says))
    }
}
