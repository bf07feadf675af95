//! Where the waiting goes, and whose it is. The waiting is the sum of the latencies.

use super::change::is_far;
use super::chosen::SelectedBy;
use super::code::text;
use super::memory;
use super::owners::owners;
use super::{
    CheckAnswer, Finding, Look, Number, Question, Records, Topic, Unknown, cannot, most, thresholds,
};
use crate::ViewError;
use crate::again::Again;
use crate::grouping::Group;
use crate::report::{Report, ReportOptions, report};
use crate::stats::{Samples, Share, Weight};
use crate::weighing::Weighing;
use precise_common::data_src::{DataSource, MemoryLevel, Snoop};
use precise_model::digits::{percent_to, thousands};
use precise_model::keys::{Key, Sort};
use precise_model::values::Value;
use precise_model::{Capture, Dimension, Projection, RowPart};

/// How many users are compared. One that has most of something is among the first of those that
/// wait most.
const USERS: usize = 64;
/// The parts of rows that the checks of few rows do without.
const LEFT_OUT: Projection = Projection::of(&[RowPart::Epoch, RowPart::Data, RowPart::Width]);

fn by_waiting(look: &Look<'_>, by: Vec<Key>, limit: Option<usize>) -> Result<Report, ViewError> {
    let options = ReportOptions {
        by,
        sort: Sort::Latency,
        limit,
        min_samples: look.options.min_samples,
        ..ReportOptions::default()
    };
    report(look.capture, &options)
}

/// Checks which level takes most of the waiting, and whose waiting that is.
pub(crate) fn levels(look: &Look<'_>) -> Vec<CheckAnswer> {
    let topic = Topic::Waiting;
    let view = match by_waiting(look, vec![Key::Level], None) {
        Ok(view) => view,
        Err(error) => return vec![cannot(topic, &error)],
    };
    let mut answers = Vec::new();
    for section in &view.events {
        let name = &section.event.name;
        let record: Records<'_> = ("mem", &[]);
        if let Some(answer) = look.chosen(topic, name, SelectedBy::Access, record) {
            answers.push(answer);
            continue;
        }
        let behind = section.groups.list.iter().filter(|group| is_behind_l1(group));
        let most = most(behind, |&group| waiting(group));
        let told = |group: &Group| group.measures.latency_sum > 0;
        // A few accesses to memory take most of the waiting of every program that caches well.
        let usual = memory::of_slow(look.info(name), thresholds::TO_MEMORY);
        let long = |group: &Group| {
            is_memory(group)
                || group.average.is_some_and(|cycles| cycles * group.share.low >= thresholds::FOR_CACHE)
        };
        let often = |group: &&Group| group.share.low >= usual && long(group);
        let question = Question {
            topic,
            event: name,
            number: most.filter(often).and_then(|group| group.latency_share).map(Number::share),
            samples: if section.groups.list.iter().any(told) { section.groups.total.count } else { 0 },
            threshold: thresholds::WAITING,
            of: "the waiting for one level",
            view: "mem",
            record,
        };
        answers.push(question.answer(look, || {
            let level = most.and_then(|group| group.values.first()).map_or_else(String::new, Value::text);
            let mut details = Vec::new();
            if let Some(group) = most {
                let average =
                    group.average.map_or_else(String::new, |cycles| format!(", {cycles:.0} cycles each"));
                details.push(format!(
                    "{} of the samples went there{average}.",
                    percent_to(group.share.value, 1)
                ));
            }
            details.extend(whose(look, name, &level));
            let level = level.trim_end_matches(" hit");
            (format!("of the waiting of {name} is for accesses that {level} served"), details)
        }));
    }
    answers
}

fn waiting(group: &Group) -> f64 {
    group.latency_share.map_or(0.0, |share| share.value)
}

/// Returns whether a group of [`Key::Level`] tells that something behind the L1 cache served it.
fn is_behind_l1(group: &Group) -> bool {
    let level = group.values.first().filter(|level| !matches!(level, Value::Unknown(_)));
    level.is_some_and(|level| !level.text().starts_with("L1 ") && level.text().ends_with("hit"))
}

/// Returns whether a group of [`Key::Level`] was served behind the caches.
fn is_memory(group: &Group) -> bool {
    let level = group.values.first().map_or_else(String::new, Value::text);
    ["RAM", "PMEM", "CXL"].iter().any(|memory| level.contains(memory))
}

/// Returns a sentence about who waits for a level: the functions, and the cgroups or processes.
fn whose(look: &Look<'_>, event: &str, level: &str) -> Vec<String> {
    let keys: [&[Key]; 3] = [&[Key::Function, Key::Module], &[Key::Cgroup], &[Key::Process]];
    let mut said = Vec::new();
    for keys in keys {
        let by = std::iter::once(Key::Level).chain(keys.iter().copied()).collect();
        let Ok(view) = by_waiting(look, by, None) else { continue };
        let Some(section) = view.events.iter().find(|section| section.event.name == event) else { continue };
        let of_level = || {
            section.groups.list.iter().filter(|group| group.values.first().is_some_and(|v| v.text() == level))
        };
        let whole: f64 = of_level().map(waiting).sum();
        let known = |group: &&Group| !matches!(group.values.get(1), Some(Value::Unknown(_)) | None);
        let Some(most) = most(of_level().filter(known), |&group| waiting(group)) else {
            continue;
        };
        // One of one says nothing.
        if whole <= 0.0 || (keys[0] != Key::Function && of_level().count() < 2) {
            continue;
        }
        let part = waiting(most) / whole;
        if part >= thresholds::WORTH_NAMING {
            said.push(format!("{} of it is in {}.", percent_to(part, 0), text(&most.values[1..])));
        }
    }
    said
}

/// The accesses of one event of a kind, and all its accesses that tell where they were served.
struct Part {
    samples: [Samples; 2],
    waiting: [Weight; 2],
}

fn part_of(look: &Look<'_>, event: usize, is: impl Fn(DataSource) -> bool) -> Part {
    let weighing = Weighing::of(look.capture, event);
    let mut part = Part { samples: Default::default(), waiting: Default::default() };
    for row in look.capture.rows.iter().filter(|row| usize::from(row.event) == event && row.data_src != 0) {
        let source = row.data_source();
        if source.level == MemoryLevel::Na {
            continue;
        }
        let (samples, waiting) = (weighing.samples(row), weighing.latency(row));
        for at in if is(source) { 0..2 } else { 1..2 } {
            part.samples[at].add(samples);
            part.waiting[at].add(waiting);
        }
    }
    part
}

/// Checks the part of a kind of access in each event: its share of the accesses, or, if that is
/// small, its share of the waiting.
fn check_part(
    look: &Look<'_>,
    topic: Topic,
    threshold: f64,
    kind: &str,
    (view, of): (&'static str, &'static str),
    is: impl Fn(DataSource) -> bool,
) -> Vec<CheckAnswer> {
    let mut answers = Vec::new();
    for (index, info) in look.capture.meta.events.iter().enumerate() {
        let record: Records<'_> = ("mem", &[]);
        if let Some(answer) = look.chosen(topic, &info.name, SelectedBy::Access, record) {
            answers.push(answer);
            continue;
        }
        let Part { samples: [part, all], waiting: [waits, whole] } = part_of(look, index, &is);
        let share = part.share_of(all);
        let waiting = (whole.sum > 0.0).then(|| Share::weighted(waits, whole));
        let waited = waiting.filter(|share| share.low >= thresholds::WAITING_PART);
        let threshold = memory::of_slow(Some(info), threshold);
        let (number, threshold, what) = match waited {
            Some(waiting) if share.low < threshold => (waiting, thresholds::WAITING_PART, "waiting"),
            _ => (share, threshold, "accesses"),
        };
        let question = Question {
            topic,
            event: &info.name,
            number: (all.count > 0).then(|| Number::share(number)),
            samples: all.count,
            threshold,
            of,
            view,
            record,
        };
        answers.push(question.answer(look, || {
            let mut details = Vec::new();
            if let Some(waiting) = waiting {
                details.push(format!(
                    "That is {} of the accesses and {} of the waiting.",
                    percent_to(share.value, 1),
                    percent_to(waiting.value, 1)
                ));
            }
            details.extend(owners(look.capture, index, &is));
            (format!("of the {what} of {} {kind}", info.name), details)
        }));
    }
    answers
}

/// Returns whether the memory of another node served an access.
pub(super) fn is_remote(source: DataSource) -> bool {
    // One hop is another core of the same node.
    source.remote && source.hops != 1 && is_far(source.level)
}

/// Returns who has most of the accesses of an event to another node's memory.
pub(super) fn of_remote(capture: &Capture, event: &str) -> Option<String> {
    let index = capture.meta.events.iter().position(|info| info.name == event)?;
    owners(capture, index, is_remote)
}

/// Checks for accesses to the memory of another node by what the hardware says of each access.
pub(crate) fn remote(look: &Look<'_>) -> Vec<CheckAnswer> {
    check_part(
        look,
        Topic::RemoteMemory,
        thresholds::REMOTE,
        "went to memory of another node",
        ("mem", "accesses to remote memory"),
        is_remote,
    )
}

/// Checks for loads that find their line modified in another core's cache, whatever is known about
/// the bytes that the cores use.
pub(crate) fn contention(look: &Look<'_>) -> Vec<CheckAnswer> {
    check_part(
        look,
        Topic::Contention,
        thresholds::SHARING,
        "found the line modified in another core's cache",
        ("c2c", "accesses to a line that another core has modified"),
        |source| source.snoop == Snoop::HitM,
    )
}

/// Checks whether one cgroup, process, thread, page, cache line or variable has most of the
/// waiting. `whole` has the addresses and times that `look` need not have.
pub(crate) fn users(look: &Look<'_>, whole: &Look<'_>) -> Vec<CheckAnswer> {
    let topic = Topic::OneUser;
    let kinds: Vec<(Key, &str)> = kinds(look.capture).collect();
    if kinds.is_empty() {
        let why = "the capture does not tell cgroups, processes or addresses.".to_owned();
        let by_process = look.capture.meta.dimensions.contains(&Dimension::Process);
        let record = match look.capture.meta.origin {
            Some(_) if by_process => None,
            Some(_) => Again::import(look.capture, &[Dimension::Process]),
            None => Some(Again::Record("precise record -a".to_owned())),
        };
        return vec![CheckAnswer::Unknown(Unknown { topic, why, record })];
    }
    let mut answers: Vec<CheckAnswer> = Vec::new();
    // Each has all events.
    let needed = |key: Key| match Projection::of_keys(&[key]).has_any(LEFT_OUT) {
        true => whole,
        false => look,
    };
    let views =
        kinds.iter().map(|(key, what)| (key, what, by_waiting(needed(*key), vec![*key], Some(USERS))));
    let views: Vec<_> = views.filter_map(|(key, what, view)| Some((key, what, view.ok()?))).collect();
    for (index, info) in look.capture.meta.events.iter().enumerate() {
        let mut found: Vec<Finding> = Vec::new();
        let mut quiet = None;
        for (key, what, view) in &views {
            let Some(section) = view.events.iter().find(|section| section.event.name == info.name) else {
                continue;
            };
            let waits = section.groups.total.latency_sum > 0;
            let share = |group: &Group| if waits { group.latency_share } else { Some(group.share) };
            let known = |group: &&Group| !matches!(group.values.first(), Some(Value::Unknown(_)) | None);
            let least = |group: &Group| share(group).map_or(0.0, |share: Share| share.low);
            let most = most(section.groups.list.iter().filter(known), |&group| least(group));
            // Of one there is always most.
            let (users, _) = section.groups.left_out;
            let users = section.groups.list.len() + users;
            let several = users > 1;
            let number = most.filter(|_| several).and_then(share).map(Number::share);
            let question = Question {
                topic,
                event: &info.name,
                number,
                samples: crate::samples(look.capture, index),
                threshold: thresholds::ONE_USER,
                of: "one user's part of the waiting or the samples",
                view: &format!("report --by {}", key.name()),
                record: (&info.name, &[]),
            };
            let answer = question.answer(look, || {
                let who = most.and_then(|group| group.values.first()).map_or_else(String::new, Value::label);
                let part = if waits { "waiting" } else { "samples" };
                let others = users - 1;
                let belong = if waits { "belongs" } else { "belong" };
                let rest = match others {
                    1 => "The rest belongs to one other.".to_owned(),
                    n => format!("The rest belongs to {} others.", thousands(n as u64)),
                };
                (format!("of the {part} of {} {belong} to one {what}: {who}", info.name), vec![rest])
            });
            match answer {
                // A cgroup of one process, and a page with one hot line, are told once.
                CheckAnswer::Found(finding) => {
                    match found.iter_mut().find(|known| is_as_much(known, &finding)) {
                        Some(known) => {
                            known.details.push(format!("As much belongs to one {what}: {}.", told(&finding)))
                        }
                        None => found.push(finding),
                    }
                }
                other => quiet = quiet.or(Some(other)),
            }
        }
        if found.is_empty() {
            answers.extend(quiet);
        } else {
            answers.extend(found.into_iter().map(CheckAnswer::Found));
        }
    }
    answers
}

/// Returns whether two findings have nearly the same number.
fn is_as_much(a: &Finding, b: &Finding) -> bool {
    a.number.zip(b.number).is_some_and(|(a, b)| (a.value - b.value).abs() < 0.01)
}

/// Returns who a finding of [`users`] is about.
fn told(finding: &Finding) -> &str {
    finding.says.rsplit_once(": ").map_or("", |(_, who)| who)
}

/// Returns the keys that the capture has and in which one may dominate.
fn kinds(capture: &Capture) -> impl Iterator<Item = (Key, &'static str)> {
    let recorded = |dimension| capture.meta.dimensions.contains(&dimension);
    // If the target is one program, most of the samples are its.
    let everybody = is_of_everybody(capture);
    let (process, thread) = (recorded(Dimension::Process), recorded(Dimension::Thread));
    let (cgroup, address) = (recorded(Dimension::Cgroup), recorded(Dimension::Address));
    [
        (cgroup && everybody, Key::Cgroup, "cgroup"),
        ((process || thread) && everybody, Key::Process, "process"),
        (thread, Key::Tid, "thread"),
        (address, Key::Page, "page"),
        (address, Key::LineAddress, "cache line"),
        (address, Key::Variable, "variable"),
    ]
    .into_iter()
    .filter_map(|(there, key, what)| there.then_some((key, what)))
}

/// Returns whether a capture has the samples of all processes, and not those of one program.
fn is_of_everybody(capture: &Capture) -> bool {
    let Some(origin) = &capture.meta.origin else { return capture.meta.target == "all processes" };
    // perf's flags end where the recorded command begins, but their values look like commands.
    let asks = |word: &String| word == "--all-cpus" || (word.starts_with("-a") && !word.starts_with("--"));
    let flags = origin.command.iter().take_while(|word| *word != "--");
    // Only an event of a whole CPU samples the idle task.
    let with_idle = || {
        capture.meta.dimensions.contains(&Dimension::Process) && capture.rows.iter().any(|row| row.pid == 0)
    };
    origin.command.is_empty() || flags.into_iter().any(asks) || with_idle()
}
