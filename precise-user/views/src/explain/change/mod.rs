//! Changes: when a cgroup (or process) took more samples, became slower or went to memory more
//! often than in the rest of the run, and which others changed in the same time.

mod around;
pub mod interval;
mod repeat;
mod series;
mod spike;
mod trend;
mod when;

pub(super) use series::is_far;

use super::{CheckAnswer, Finding, Look, Quiet, Topic, Unknown, thresholds};
use around::{Said, UserInPart};
use interval::{Deviation, Points, find};
use precise_model::CompactSort as _;
use precise_model::digits::{counted, percent_to, thousands};
use series::{ChangeMeasure, FEWEST, Of, Timeline, timeline, users_of};
use when::When;

/// The number of findings of an event.
const MOST: usize = 4;
/// The number of others that a finding names.
const NAMED: usize = 3;

/// A measure of a user that changed.
#[derive(Clone)]
struct Change {
    user: usize,
    measure: ChangeMeasure,
    when: When,
    distance: f64,
}

/// An event by time, with its changes.
struct Changed {
    line: Timeline,
    measured: bool,
    changes: Vec<Change>,
}

/// Checks whether something changed during the run.
pub(crate) fn changes(look: &Look<'_>) -> Vec<CheckAnswer> {
    let columns = look.capture.meta.epochs.len();
    if columns < FEWEST {
        let why =
            format!("the capture has {}; at least {FEWEST} are needed.", counted(columns as u64, "epoch"));
        return vec![CheckAnswer::Unknown(Unknown { topic: Topic::Change, why, record: None })];
    }
    let names = look.capture.meta.events.iter().map(|info| info.name.as_str()).enumerate();
    let found = names.zip(changed(look));
    found.flat_map(|((index, name), changed)| of_event(look, index, name, &changed)).collect()
}

/// Returns the changes of all events. One test decides about all of them, so that events do not add
/// up their chances of a false alarm.
fn changed(look: &Look<'_>) -> Vec<Changed> {
    let events = 0..look.capture.meta.events.len();
    let mut all: Vec<Changed> = events
        .map(|event| Changed { line: timeline(look.capture, event), measured: false, changes: Vec::new() })
        .collect();
    let mut which = Vec::new();
    let mut series = Vec::new();
    for (event, changed) in all.iter_mut().enumerate() {
        for (user, of) in changed.line.users.iter().enumerate() {
            for measure in ChangeMeasure::ALL {
                if let Some(points) = of.points(measure, &changed.line.seconds) {
                    changed.measured = true;
                    which.push((event, user, measure));
                    series.push(points);
                }
            }
        }
    }
    let deviations = with_bursts(&which, &series, find(&series));
    for ((event, user, measure), found) in which.into_iter().zip(deviations) {
        if let Some((changed, found)) = all.get_mut(event).zip(found) {
            let when = changed.line.unusual(When(found.columns));
            changed.changes.push(Change { user, measure, when, distance: found.distance });
        }
    }
    all
}

/// Adds the short bursts of series without another deviation. Series that a single sample can
/// change are left out.
fn with_bursts(
    which: &[(usize, usize, ChangeMeasure)],
    series: &[Points],
    mut found: Vec<Option<Deviation>>,
) -> Vec<Option<Deviation>> {
    let tested = which.iter().zip(series).enumerate();
    let tested = tested.filter_map(|(at, ((.., measure), points))| {
        let (least_weight, least_variance) = measure.of_bursts()?;
        Some((at, spike::TestedSeries { points, least_weight, least_variance }))
    });
    let (places, tested): (Vec<usize>, Vec<spike::TestedSeries<'_>>) = tested.unzip();
    for (at, burst) in places.into_iter().zip(spike::find(&tested)) {
        if let Some((slot, burst)) = found.get_mut(at).zip(burst)
            && slot.is_none()
        {
            let columns = (0..series.get(at).map_or(0, Vec::len)).map(|column| burst.contains(&column));
            *slot = series.get(at).map(|points| Deviation::of(points, columns.collect()));
        }
    }
    found
}

fn of_event(look: &Look<'_>, index: usize, name: &str, changed: &Changed) -> Vec<CheckAnswer> {
    let topic = Topic::Change;
    let samples = crate::samples(look.capture, index);
    if !changed.measured {
        let why = format!(
            "the capture has {} of {name}, too few for each part of the run.",
            counted(samples, "sample")
        );
        return vec![CheckAnswer::Unknown(Unknown { topic, why, record: None })];
    }
    let mut answers: Vec<CheckAnswer> =
        findings(look, &changed.line, name, &changed.changes).into_iter().map(CheckAnswer::Found).collect();
    if answers.is_empty() {
        answers.push(CheckAnswer::Quiet(Quiet {
            topic,
            event: name.to_owned(),
            samples,
            number: None,
            threshold: thresholds::CHANGE,
            of: "the largest change of a rate, a latency or a share of memory",
        }));
    }
    if changed.line.others > 0 {
        let why = format!(
            "{} other {}, with {} of the samples of {name}, were not looked at: they have the fewest.",
            thousands(changed.line.others as u64),
            plural(look),
            percent_to(changed.line.of_others, 1)
        );
        answers.push(CheckAnswer::Partly(Unknown { topic, why, record: None }));
    }
    answers
}

fn plural(look: &Look<'_>) -> &'static str {
    match users_of(look.capture) {
        Of::Cgroup => "cgroups",
        Of::Process | Of::Run => "processes",
    }
}

/// Returns the findings: first who became slower, with who changed then; then other changes.
fn findings(look: &Look<'_>, line: &Timeline, event: &str, changes: &[Change]) -> Vec<Finding> {
    let by = |wanted: &dyn Fn(ChangeMeasure) -> bool| {
        let mut found: Vec<&Change> = changes.iter().filter(|change| wanted(change.measure)).collect();
        found.compact_sort_by(|a, b| b.distance.total_cmp(&a.distance));
        found
    };
    let slower = by(&|measure| measure != ChangeMeasure::Rate);
    // Who does more than usual does something else than usual, and is rather a cause.
    let (busier, slower): (Vec<&Change>, Vec<&Change>) =
        slower.into_iter().partition(|change| around(line, change).is_some_and(|around| around.rises()));
    let slower = slower.into_iter().chain(busier).map(|change| (change, true));
    let rates = by(&|measure| measure == ChangeMeasure::Rate);
    let mut told: Vec<(usize, When)> = Vec::new();
    let mut findings = Vec::new();
    for (change, is_slower) in slower.chain(rates.into_iter().map(|change| (change, false))) {
        // What is told of a part of the run is told of the rest of it, too.
        let is_told = |when: &When| line.same(when, &change.when) || line.same(when, &change.when.rest());
        if told.iter().any(|(user, when)| *user == change.user && is_told(when)) {
            continue;
        }
        let said = match is_slower {
            true => slow_part(line, change),
            false => around(line, change)
                .and_then(|around| around.rate())
                .or_else(|| trend::said(line, line.users.get(change.user)?, &change.when))
                .map(|said| (change.clone(), said)),
        };
        let Some((change, Said { number, threshold, says, .. })) = said else { continue };
        let (others, mut details) = others(line, changes, &change);
        told.extend(others.into_iter().chain([change.user]).map(|user| (user, change.when.clone())));
        if details.is_empty() && line.users.len() > 1 {
            details.push(format!("None of the other {} changed in the same time.", plural(look)));
        }
        if is_slower && let Some(around) = around(line, &change) {
            details.splice(0..0, around.kinds(&says));
        }
        findings.push(Finding {
            topic: Topic::Change,
            event: event.to_owned(),
            number,
            threshold: number.map(|_| threshold),
            says,
            details,
            command: look.command("heatmap"),
        });
    }
    findings.truncate(MOST);
    findings
}

fn around<'a>(line: &'a Timeline, change: &Change) -> Option<UserInPart<'a>> {
    line.users.get(change.user).map(|user| UserInPart::of(line, user, &change.when))
}

/// Returns the part of the run in which a user was slower, which may be the rest of a change's, and
/// what to say of it.
fn slow_part(line: &Timeline, change: &Change) -> Option<(Change, Said)> {
    let parts = || [change.when.clone(), change.when.rest()].map(|when| Change { when, ..change.clone() });
    let said = |says: &dyn Fn(&UserInPart<'_>) -> Option<Said>| {
        parts().into_iter().find_map(|change| Some((says(&around(line, &change)?)?, change)))
    };
    // Where fewer accesses go to memory, those may take longer on average.
    let often = said(&|around| around.slower_mostly());
    let (said, change) = often.or_else(|| said(&|around| around.far_latency()))?;
    Some((change, said))
}

/// Returns the other users that changed in the same time, and sentences about them: first who was
/// more active.
fn others(line: &Timeline, changes: &[Change], change: &Change) -> (Vec<usize>, Vec<String>) {
    let rest = change.when.rest();
    let mut ran: Vec<(usize, f64, String)> = Vec::new();
    let mut changed: Vec<(usize, f64, String)> = Vec::new();
    for other in changes.iter().filter(|other| other.user != change.user) {
        // A change is told by the part of the run that has less of the time.
        let same = [&change.when, &rest].into_iter().find(|when| line.same(when, &other.when));
        if same.is_none() {
            continue;
        }
        let other = Change { when: change.when.clone(), ..other.clone() };
        let Some(around) = around(line, &other) else { continue };
        if around.rises() {
            ran.push((other.user, other.distance, around.ran()));
        } else if let Some(said) = around.slower().or_else(|| around.rate()) {
            changed.push((other.user, other.distance, said.short));
        }
    }
    // Who is more active may slow others whose own series are too noisy for the test. One user is
    // compared in one part of the run that does not depend on it.
    if changes.iter().any(|own| own.user == change.user && own.measure == ChangeMeasure::Rate)
        && around(line, change).is_some_and(|around| around.rises())
    {
        for user in (0..line.users.len()).filter(|user| *user != change.user) {
            let said =
                line.users.get(user).and_then(|of| UserInPart::of(line, of, &change.when).surely_slower());
            changed.extend(said.map(|said| (user, 0.0, said.short)));
        }
    }
    for list in [&mut ran, &mut changed] {
        list.compact_sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        list.dedup_by_key(|(user, ..)| *user);
        list.compact_sort_by(|a, b| b.1.total_cmp(&a.1));
    }
    changed.retain(|(user, ..)| ran.iter().all(|(runs, ..)| runs != user));
    let users: Vec<usize> = ran.iter().chain(&changed).map(|(user, ..)| *user).collect();
    let mut details: Vec<String> = ran.into_iter().take(NAMED).map(|(.., says)| says).collect();
    let left = NAMED - details.len();
    let also: Vec<String> = changed.into_iter().take(left).map(|(.., short)| short).collect();
    if !also.is_empty() {
        details.push(format!("In the same time, {}.", also.join("; ")));
    }
    if users.len() > NAMED {
        details.push(format!("{} more changed in the same time.", users.len() - NAMED));
    }
    (users, details)
}
