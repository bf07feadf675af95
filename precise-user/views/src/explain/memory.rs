//! Findings in memory accesses.

use super::chosen::SelectedBy;
use super::code::text;
use super::waiting;
use super::{
    CheckAnswer, FindingUnit, Look, Number, Question, Quiet, Records, Topic, Unknown, cannot, most,
    thresholds,
};
use crate::ViewError;
use crate::c2c::{C2cOptions, SharedLine, SharingVerdict, c2c};
use crate::code::Code;
use crate::latency::{Distribution, LatencyOptions, latency};
use crate::numa::numa;
use crate::stats::{Histogram, Percentile, Samples};
use crate::tlb::{TlbOptions, tlb};
use precise_model::digits::percent_to;
use precise_model::keys::Key;
use precise_model::values::Value;
use precise_model::{Dimension, EventInfo};

/// The largest number of contended lines that are looked at: each takes kilobytes. The loads of the
/// others are of no known kind.
const MOST_LINES: usize = 10_000;

/// Checks whether cores contend for cache lines.
pub(crate) fn sharing(look: &Look<'_>, files: &mut dyn Code) -> Vec<CheckAnswer> {
    let topics = [Topic::FalseSharing, Topic::TrueSharing];
    // No minimum of HITM loads: the interval decides here.
    let options = C2cOptions { min_samples: 0, limit: Some(MOST_LINES) };
    let view = match c2c(look.capture, &options, files) {
        Ok(view) => view,
        Err(error) => return topics.map(|topic| cannot(topic, &error)).to_vec(),
    };
    // Loads of different events are not added up: the event with the most loads is used.
    let Some(event) = view.events.iter().max_by_key(|event| event.loads) else { return Vec::new() };
    let name = &event.event.name;
    let info = look.info(name);
    let record: Records<'_> = ("c2c", &[]);
    topics
        .map(|topic| {
            if let Some(answer) = look.chosen(topic, name, SelectedBy::Access, record) {
                return answer;
            }
            let is = |line: &&SharedLine| match topic {
                Topic::FalseSharing => matches!(line.verdict, SharingVerdict::FalseSharing | SharingVerdict::Both),
                _ => line.verdict == SharingVerdict::TrueSharing,
            };
            let hitm: Samples = view.lines.iter().filter(is).map(|line| line.weight).sum();
            let threshold = of_slow(info, thresholds::SHARING);
            // Lines without a verdict may be of either kind: no all-clear for them.
            let undecided = view.lines.iter().filter(|line| is_undecided(line.verdict));
            let open: Samples = undecided.clone().map(|line| line.weight).sum();
            let open = open.and(view.left_out_weight);
            if hitm.share_of(event.weight).low < threshold
                && hitm.and(open).share_of(event.weight).low >= threshold
                && let Some(line) = undecided.max_by_key(|line| line.weight.count)
            {
                let why = format!(
                    "{} of the loads of {name} found a line modified in another core's cache, but whether the cores \
                     use the same bytes is not known: {}.",
                    percent_to(open.share_of(event.weight).value, 0),
                    line.verdict.words()
                );
                return CheckAnswer::Unknown(Unknown { topic, why, record: None });
            }
            let question = Question {
                topic,
                event: name,
                number: Some(Number::share(hitm.share_of(event.weight))),
                samples: event.loads,
                threshold,
                of: "loads of such a line",
                view: "c2c",
                record,
            };
            question.answer(look, || {
                let which = match topic {
                    Topic::FalseSharing => "cores use different bytes of it",
                    _ => "cores use the same bytes of it",
                };
                let mut details: Vec<_> =
                    view.lines.iter().find(is).map(|line| worst(line, hitm)).into_iter().collect();
                details.push(
                    match topic {
                        Topic::FalseSharing => {
                            "Padding helps: give each core's bytes a cache line of their own."
                        }
                        _ => "Padding does not help: share the bytes less often, or keep one copy per core.",
                    }
                    .to_owned(),
                );
                (
                    format!("of the {} found a line modified in another core's cache: {which}", loads(info)),
                    details,
                )
            })
        })
        .to_vec()
}

/// Returns whether a line is contended, and nobody knows how.
fn is_undecided(verdict: SharingVerdict) -> bool {
    matches!(
        verdict,
        SharingVerdict::TooFew
            | SharingVerdict::WidthNotKnown
            | SharingVerdict::NotRecorded
            | SharingVerdict::NoWriter
    )
}

fn worst(line: &SharedLine, hitm: Samples) -> String {
    let what = match line.variables.first() {
        Some(variable) => format!("{variable} ({})", line.region),
        None => format!("line {:#x} ({})", line.address, line.region),
    };
    let loads = most(&line.accesses, |access| access.hitm as f64);
    let by = loads.map_or_else(String::new, |access| format!(", loaded by {}", access.function));
    format!("{} of them: {what}{by}.", percent_to(line.weight.share_of(hitm).value, 0))
}

/// Checks whether accesses go to the memory of another node.
pub(crate) fn remote(look: &Look<'_>) -> Vec<CheckAnswer> {
    let topic = Topic::RemoteMemory;
    let view = match numa(look.capture, Some(look.options.min_samples)) {
        Ok(view) => view,
        // Without CPUs and nodes, the hardware still says which accesses were remote.
        Err(ViewError::NotRecorded { .. }) => return waiting::remote(look),
        Err(error) => return vec![cannot(topic, &error)],
    };
    let mut answers = Vec::new();
    for event in &view.events {
        let info = look.info(&event.event.name);
        let record = ("mem", &[Dimension::Ip, Dimension::Cpu, Dimension::Source][..]);
        if let Some(answer) = look.chosen(topic, &event.event.name, SelectedBy::Access, record) {
            answers.push(answer);
            continue;
        }
        let question = Question {
            topic,
            event: &event.event.name,
            number: event.remote_of_accesses.map(Number::share),
            samples: event.accesses,
            threshold: of_slow(info, thresholds::REMOTE),
            of: "accesses to remote memory",
            view: "numa",
            record,
        };
        answers.push(question.answer(look, || {
            let part = event.remote_share.map(|share| {
                format!("That is {} of all accesses that reached memory.", percent_to(share.value, 0))
            });
            let who = waiting::of_remote(look.capture, &event.event.name);
            let details = part.into_iter().chain(who).collect();
            (format!("of the {} went to memory of another node", accesses(info)), details)
        }));
    }
    // Few accesses may be most of the waiting.
    let is_found = |answer: &CheckAnswer| matches!(answer, CheckAnswer::Found(_));
    if !answers.iter().any(is_found) {
        let waited: Vec<CheckAnswer> = waiting::remote(look).into_iter().filter(is_found).collect();
        if !waited.is_empty() {
            return waited;
        }
    }
    answers
}

/// Checks whether accesses walk the page table.
pub(crate) fn walks(look: &Look<'_>) -> Vec<CheckAnswer> {
    let topic = Topic::PageWalks;
    let view = match tlb(look.capture, &TlbOptions::default()) {
        Ok(view) => view,
        Err(error) => return vec![cannot(topic, &error)],
    };
    let mut answers = Vec::new();
    for event in &view.events {
        let info = look.info(&event.event.name);
        let record: Records<'_> = ("mem", &[]);
        if let Some(answer) = look.chosen(topic, &event.event.name, SelectedBy::Access, record) {
            answers.push(answer);
            continue;
        }
        let question = Question {
            topic,
            event: &event.event.name,
            number: Some(Number::share(event.all.rate)),
            samples: event.all.accesses,
            threshold: of_slow(info, thresholds::WALKS),
            of: "accesses with a page walk",
            view: "tlb",
            record,
        };
        answers.push(question.answer(look, || {
            let mut details = Vec::new();
            if let (Some(walked), Some(other)) = (event.all.walked_average, event.all.other_average) {
                details.push(format!(
                    "They took {walked:.0} cycles on average, the other accesses {other:.0} cycles."
                ));
            }
            if let Some(worst) = event.walks.first().filter(|walks| !walks.values.is_empty()) {
                details.push(format!(
                    "{} of the page walks are in {}.",
                    percent_to(worst.share.value, 0),
                    text(&worst.values)
                ));
            }
            (
                format!("of the {} needed a page walk, because no TLB held the address", accesses(info)),
                details,
            )
        }));
    }
    answers
}

/// Checks whether the slowest accesses of one cgroup, process, CPU or thread are slower than those
/// of all others.
pub(crate) fn tail(look: &Look<'_>) -> Vec<CheckAnswer> {
    let recorded = |key: &Key| key.dimension().is_none_or(|of| look.capture.meta.dimensions.contains(&of));
    let keys = [Key::Cgroup, Key::Process, Key::Cpu, Key::Tid];
    let mut answers: Vec<CheckAnswer> =
        keys.into_iter().filter(recorded).flat_map(|key| tail_by(look, key)).collect();
    if answers.is_empty() {
        // The answer names what is missing: of an import, what its recording has.
        let has = |key: &Key| {
            let origin = look.capture.meta.origin.as_ref();
            origin.is_none_or(|origin| key.dimension().is_some_and(|of| origin.dimensions.contains(&of)))
        };
        answers = tail_by(look, keys.into_iter().find(has).unwrap_or(Key::Cgroup));
    }
    // A slow process has slow threads, and may be alone in its cgroup: the widest gap is told.
    let times = |answer: &CheckAnswer| match answer {
        CheckAnswer::Found(finding) => Some(finding.times()),
        _ => None,
    };
    let found = answers.iter().enumerate().filter_map(|(at, answer)| Some((at, times(answer)?)));
    // Of equal ones the first.
    let most = found.fold(None, |most: Option<(usize, f64)>, (at, times)| match most {
        Some((_, known)) if known >= times => most,
        _ => Some((at, times)),
    });
    let most = most.map(|(at, _)| at);
    let mut at = 0..;
    answers.retain(|answer| at.next() == most || times(answer).is_none());
    // Without a finding, too, the widest gap of each event is told.
    let least = |quiet: &Quiet| quiet.number.map_or(0.0, |number| number.least());
    let mut widest: Vec<Quiet> = Vec::new();
    for answer in answers.extract_if(.., |answer| matches!(answer, CheckAnswer::Quiet(_))) {
        let CheckAnswer::Quiet(quiet) = answer else { continue };
        match widest.iter_mut().find(|known| known.event == quiet.event) {
            Some(known) if least(known) >= least(&quiet) => {}
            Some(known) => *known = quiet,
            None => widest.push(quiet),
        }
    }
    answers.extend(widest.into_iter().map(CheckAnswer::Quiet));
    answers
}

fn tail_by(look: &Look<'_>, key: Key) -> Vec<CheckAnswer> {
    let topic = Topic::LatencyTail;
    let by = Some(vec![key]);
    let options = LatencyOptions { by, min_samples: look.options.min_samples, ..LatencyOptions::default() };
    let view = match latency(look.capture, &options) {
        Ok(view) => view,
        Err(error) => return vec![cannot(topic, &error)],
    };
    let (one, many, shows) = match key {
        Key::Process => ("process", "processes", "latency --by process"),
        Key::Cpu => ("CPU", "CPUs", "latency --by cpu"),
        Key::Tid => ("thread", "threads", "latency --by tid"),
        _ => ("cgroup", "cgroups", "latency --by cgroup"),
    };
    let mut answers = Vec::new();
    for event in &view.events {
        let record =
            ("loads", &[Dimension::Ip, Dimension::Cgroup, Dimension::Source, Dimension::Latency][..]);
        if let Some(answer) = look.chosen(topic, &event.event.name, SelectedBy::Latency, record) {
            answers.push(answer);
            continue;
        }
        let slowest = event
            .groups
            .iter()
            .filter_map(|group| Some((group, against_others(group, &event.groups)?)))
            .max_by(|(_, a), (_, b)| a.0.least().total_cmp(&b.0.least()));
        if slowest.is_none() && event.timed >= look.options.min_samples {
            let why =
                format!("two {many} need at least 500 accesses each, and {} has fewer.", event.event.name);
            answers.push(CheckAnswer::Unknown(Unknown { topic, why, record: None }));
            continue;
        }
        let question = Question {
            topic,
            event: &event.event.name,
            number: slowest.map(|(_, (number, ..))| number),
            samples: event.timed,
            threshold: thresholds::TAIL,
            of: "the slowest cgroup's, process's, CPU's or thread's 99th percentile relative to the others'",
            view: shows,
            record,
        };
        answers.push(question.answer(look, || {
            let Some((group, (_, own, others))) = slowest else { return Default::default() };
            let name = |values: &[Value]| match key {
                Key::Cpu | Key::Tid => format!("{one} {}", text(values)),
                _ => text(values),
            };
            let says = format!(
                "the others' 99th percentile of latency is reached by {}: {:.0} core cycles against {:.0}",
                name(&group.group.values),
                own.cycles,
                others.cycles
            );
            let share = percent_to(group.group.share.value, 0);
            (says, vec![format!("{share} of the accesses with a latency belong to this {one}.")])
        }));
    }
    answers
}

/// Returns the ratio of the 99th percentile of a group to that of all other groups, with both
/// percentiles. The interval comes from the ends of both percentiles' intervals; it is wider than
/// 95 %, which many groups need.
fn against_others(group: &Distribution, all: &[Distribution]) -> Option<(Number, Percentile, Percentile)> {
    if matches!(group.group.values.first(), Some(Value::Unknown(_)) | None) {
        return None;
    }
    let mut others = Histogram::default();
    for other in all.iter().filter(|other| !std::ptr::eq(*other, group)) {
        others.merge(&other.histogram);
    }
    let (own, theirs) = (group.group.p99?, others.percentile(0.99)?);
    let times = |a: f64, b: f64| a / b.max(1.0);
    let number = Number {
        unit: FindingUnit::Times,
        value: times(own.cycles, theirs.cycles),
        low: Some(times(own.interval[0] as f64, theirs.interval[1] as f64)),
        high: Some(times(own.interval[1] as f64, theirs.interval[0] as f64)),
    };
    Some((number, own, theirs))
}

/// Returns the usual threshold, or the one for samples of slow loads only.
pub(super) fn of_slow(info: Option<&EventInfo>, usual: f64) -> f64 {
    if slow_only(info).is_some() { thresholds::OF_SLOW.max(usual) } else { usual }
}

fn slow_only(info: Option<&EventInfo>) -> Option<u32> {
    info.and_then(|info| info.hardware_filter.min_latency)
}

fn loads(info: Option<&EventInfo>) -> String {
    match slow_only(info) {
        Some(cycles) => format!("loads of {cycles} cycles or more"),
        None => "loads".to_owned(),
    }
}

fn accesses(info: Option<&EventInfo>) -> String {
    match slow_only(info) {
        Some(_) => loads(info),
        None => "accesses".to_owned(),
    }
}
