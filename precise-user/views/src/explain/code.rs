//! Findings in code: where the samples are, and how branches and fetches end.

use super::chosen::SelectedBy;
use super::{CheckAnswer, Look, Number, Question, Records, Topic, Unknown, cannot, thresholds};
use crate::branches::{BranchOptions, branches};
use crate::code::Code;
use crate::fetch::{FetchFact, FetchOptions, fetch};
use crate::grouping::Group;
use crate::report::{ReportOptions, report};
use crate::stats::Share;
use crate::{branches, fetch};
use precise_model::digits::percent_to;
use precise_model::keys::Key;
use precise_model::values::Value;

/// Checks whether the front end waits.
pub(crate) fn front_end(look: &Look<'_>) -> Vec<CheckAnswer> {
    let topic = Topic::FrontEnd;
    let view = match fetch(look.capture, &FetchOptions::default()) {
        Ok(view) => view,
        Err(error) => return vec![cannot(topic, &error)],
    };
    let mut answers = Vec::new();
    for section in &view.sections {
        let Some(event) = section.events.first() else { continue };
        if section.basis == fetch::FetchBasis::Retired {
            let why = format!("{} counts only fetches that went wrong, not all of them.", event.name);
            answers.push(CheckAnswer::Unknown(Unknown { topic, why, record: None }));
            continue;
        }
        let record: Records<'_> = ("fetch", &[]);
        if let Some(answer) = look.chosen(topic, &event.name, SelectedBy::Fetch, record) {
            answers.push(answer);
            continue;
        }
        let of = |fact| section.facts.iter().find(|known| known.fact == fact);
        let attempted = of(FetchFact::Attempted).and_then(|known| known.samples).unwrap_or(0);
        // Without latencies, the share of instruction cache misses is used instead.
        let waited = of(FetchFact::Waited).and_then(|known| known.share);
        let missed = || of(FetchFact::IcMiss).and_then(|known| known.share);
        let (share, what) = match waited {
            Some(share) => (Some(share), "wait for 16 cycles or more"),
            None => (missed(), "miss the instruction cache"),
        };
        let question = Question {
            topic,
            event: &event.name,
            number: share.map(Number::share),
            samples: if share.is_some() { attempted } else { 0 },
            threshold: thresholds::FETCHES,
            of: "fetches that wait",
            view: "fetch",
            record,
        };
        answers.push(question.answer(look, || {
            let mut details = Vec::new();
            let causes: Vec<_> = [FetchFact::IcMiss, FetchFact::L2Miss, FetchFact::ItlbWalk]
                .into_iter()
                .filter_map(|fact| Some((fact, of(fact)?.share?)))
                .filter(|(_, share)| share.low > 0.01)
                .map(|(fact, share)| format!("{} {}", fact.words(), percent_to(share.value, 0)))
                .collect();
            if !causes.is_empty() {
                details.push(format!("Of all fetches: {}.", causes.join(", ")));
            }
            if let Some(group) = section.groups.first() {
                details.push(format!("Most of the time is in {}.", text(&group.values)));
            }
            (
                format!(
                    "of the fetches of {} {what}, which leaves the core without instructions to run",
                    event.name
                ),
                details,
            )
        }));
    }
    answers
}

/// Checks whether branches are mispredicted.
pub(crate) fn mispredictions(look: &Look<'_>, files: &mut dyn Code) -> Vec<CheckAnswer> {
    let topic = Topic::Mispredictions;
    let view = match branches(look.capture, &BranchOptions::default(), files) {
        Ok(view) => view,
        Err(error) => return vec![cannot(topic, &error)],
    };
    let mut answers = Vec::new();
    for event in &view.events {
        let name = &event.event.name;
        if event.basis == branches::BranchBasis::Mispredictions {
            let why = format!(
                "{name} samples only mispredicted branches, so their share of all branches is unknown."
            );
            answers.push(CheckAnswer::Unknown(Unknown { topic, why, record: None }));
            continue;
        }
        let record: Records<'_> = ("branches", &[]);
        if let Some(answer) = look.chosen(topic, name, SelectedBy::Branch, record) {
            answers.push(answer);
            continue;
        }
        let question = Question {
            topic,
            event: name,
            number: event.rate.map(Number::share),
            samples: event.branches,
            threshold: thresholds::MISPREDICTED,
            of: "mispredicted branches",
            view: "branches",
            record,
        };
        answers.push(question.answer(look, || {
            let worst = event.sites.first().map(|site| {
                let line = site.line.as_ref().map_or_else(String::new, |line| format!(" ({line})"));
                format!(
                    "{} of these are of the branch at {}{line}.",
                    percent_to(site.share.value, 0),
                    site.place
                )
            });
            (format!("of the branches of {name} are mispredicted"), worst.into_iter().collect())
        }));
    }
    answers
}

/// Checks whether one line, or one function, has most of the samples.
pub(crate) fn hot_spot(look: &Look<'_>) -> Vec<CheckAnswer> {
    let topic = Topic::HotSpot;
    let by = |by: Vec<Key>| {
        let options = ReportOptions { by, min_samples: look.options.min_samples, ..ReportOptions::default() };
        report(look.capture, &options)
    };
    let (functions, lines) = match (by(vec![Key::Function, Key::Module]), by(vec![Key::Line, Key::Function]))
    {
        (Ok(functions), Ok(lines)) => (functions, lines),
        (Err(error), _) | (_, Err(error)) => return vec![cannot(topic, &error)],
    };
    let sections = functions.events.iter().zip(&lines.events);
    sections
        .map(|(functions, lines)| {
            let name = &functions.event.name;
            let known = |group: &&Group| !matches!(group.values.first(), Some(Value::Unknown(_)));
            let function = functions.groups.list.iter().find(known);
            let line = lines.groups.list.iter().find(known).filter(|_| functions.event.trust.precise);
            let line = line.filter(|line| line.share.low >= thresholds::HOT);
            let share: Option<Share> = line.or(function).map(|group| group.share);
            if share.is_none() && functions.groups.too_few.is_none() {
                let why = format!("no function of the samples of {name} has a name.");
                return CheckAnswer::Unknown(Unknown { topic, why, record: None });
            }
            let question = Question {
                topic,
                event: name,
                number: share.map(Number::share),
                samples: functions.groups.total.count,
                threshold: thresholds::HOT,
                of: "samples in one function",
                view: if functions.event.trust.precise { "annotate" } else { "report" },
                record: (name, &[]),
            };
            question.answer(look, || match (line, function) {
                (Some(line), _) => {
                    let place = line.values.iter().map(Value::text).collect::<Vec<_>>();
                    let place = format!("{}, in {}", place[0], place.get(1).map_or("", String::as_str));
                    (format!("of the samples of {name} are at one line: {place}"), Vec::new())
                }
                (None, Some(function)) => {
                    let place = text(&function.values);
                    (format!("of the samples of {name} are in one function: {place}"), Vec::new())
                }
                (None, None) => (format!("of the samples of {name} are in one place"), Vec::new()),
            })
        })
        .collect()
}

/// Formats a function as `function (module)`.
pub(crate) fn text(values: &[Value]) -> String {
    match values {
        [function, module] => format!("{} ({})", function.text(), module.text()),
        values => values.iter().map(Value::label).collect::<Vec<_>>().join(", "),
    }
}
