//! Findings in a capture, most important first: the other views' results, each held against a
//! threshold.
//!
//! A finding is made only where the lower end of its interval passes the threshold, so that chance
//! alone makes few. What a capture cannot say is no "nothing": it is named, with the command that
//! records it.

mod chosen;
mod code;
pub mod csv;
mod memory;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
pub mod thresholds;
mod trust;
mod view;

pub use view::ExplainView;

use chosen::{By, chosen};
use schemars::JsonSchema;
use serde::Serialize;

use super::ViewError;
use super::about::{Event, Run};
use super::code::Code;
use super::stats::{MIN_SAMPLES, Share};
use precise_model::{Capture, EventInfo};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainOptions {
    /// The file, as a command would name it; empty for the one that commands take by themselves.
    pub file: String,
    /// Samples below which a question has no answer.
    pub min_samples: u64,
}

impl Default for ExplainOptions {
    fn default() -> Self {
        Self { file: String::new(), min_samples: MIN_SAMPLES }
    }
}

/// The findings of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Explanation {
    /// Where the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// What was sampled.
    pub events: Vec<Sampled>,
    /// Whether no finding is about the workload: those about trust do not count.
    pub nothing_stands_out: bool,
    /// Findings, most important first: what makes all numbers doubtful, then by how many times each
    /// number passes its threshold.
    pub findings: Vec<Finding>,
    /// What was looked at without a finding.
    pub quiet: Vec<Quiet>,
    /// What this capture cannot say.
    pub unknown: Vec<Unknown>,
}

/// An event, with the samples that the capture has of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sampled {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// Its samples.
    pub samples: u64,
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// The instruction addresses of the samples are not exact.
    NotPrecise,
    /// The ledger does not account for every sample.
    OpenLedger,
    /// Samples were taken and are not in the capture.
    Lost,
    /// The samples stand for less, or more, than the event counted.
    Coverage,
    /// The kernel stopped the event because it came too often.
    Throttled,
    /// Precise stopped the event because it took far more samples than were asked for.
    Stopped,
    /// Cores take a cache line from each other though they use different bytes of it.
    FalseSharing,
    /// Cores take a cache line from each other, and use the same bytes.
    TrueSharing,
    /// Accesses to memory of another node.
    RemoteMemory,
    /// Accesses whose address no TLB could translate.
    PageWalks,
    /// Fetches that the front end waits for.
    FrontEnd,
    /// Branches that went another way than predicted.
    Mispredictions,
    /// One function, or one line, with most of the samples.
    HotSpot,
    /// The slowest accesses of one cgroup against those of all others.
    LatencyTail,
}

impl Topic {
    /// What is asked of the workload, in the order of a report; the others are about the capture.
    pub const OF_WORKLOAD: [Self; 8] = [
        Self::FalseSharing,
        Self::TrueSharing,
        Self::RemoteMemory,
        Self::PageWalks,
        Self::FrontEnd,
        Self::Mispredictions,
        Self::HotSpot,
        Self::LatencyTail,
    ];

    /// In a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotPrecise => "not precise",
            Self::OpenLedger => "samples unaccounted for",
            Self::Lost => "samples lost",
            Self::Coverage => "coverage",
            Self::Throttled => "throttled",
            Self::Stopped => "stopped",
            Self::FalseSharing => "false sharing",
            Self::TrueSharing => "true sharing",
            Self::RemoteMemory => "remote memory",
            Self::PageWalks => "page walks",
            Self::FrontEnd => "front end",
            Self::Mispredictions => "branch mispredictions",
            Self::HotSpot => "hot spot",
            Self::LatencyTail => "latency tail",
        }
    }

    /// Whether it is about the capture and not about what was sampled.
    pub fn is_trust(self) -> bool {
        !Self::OF_WORKLOAD.contains(&self)
    }
}

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A part of 1.
    Share,
    /// So many times as much.
    Times,
    /// A count.
    Count,
}

/// A number, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Number {
    /// What it is.
    pub unit: Unit,
    /// As seen.
    pub value: f64,
    /// Lower end of the 95 % interval; `None` of what was counted and not sampled.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Number {
    fn share(share: Share) -> Self {
        Self { unit: Unit::Share, value: share.value, low: Some(share.low), high: Some(share.high) }
    }

    fn counted(unit: Unit, value: f64) -> Self {
        Self { unit, value, low: None, high: None }
    }

    /// What a threshold must be below.
    fn least(&self) -> f64 {
        self.low.unwrap_or(self.value)
    }
}

/// Something that stands out.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// What it is.
    pub topic: Topic,
    /// The event whose samples show it.
    pub event: String,
    /// The number; `None` where it is a fact without one.
    pub number: Option<Number>,
    /// What the lower end of its interval passed; `None` where any is too much.
    pub threshold: Option<f64>,
    /// What the number is of: the rest of the sentence that it begins.
    pub says: String,
    /// More sentences: where, and what to do.
    pub details: Vec<String>,
    /// The command that shows it.
    pub command: String,
}

/// Something that was looked at, and does not stand out.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Quiet {
    /// What.
    pub topic: Topic,
    /// The event.
    pub event: String,
    /// Samples that were looked at.
    pub samples: u64,
    /// The number; `None` where there is no group to give one of.
    pub number: Option<Number>,
    /// What it would have to pass.
    pub threshold: f64,
    /// What the number is of.
    pub of: &'static str,
}

/// Something that the capture cannot say.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Unknown {
    /// What.
    pub topic: Topic,
    /// Why, a sentence.
    pub why: String,
    /// The command that records what is missing; `None` where none would help.
    pub record: Option<String>,
}

/// What a look at one topic gives.
#[derive(Clone, Debug)]
enum Answer {
    Found(Finding),
    Quiet(Quiet),
    Unknown(Unknown),
}

/// Findings in a capture. `files` is where code is looked up that the capture does not have.
pub fn explain(capture: &Capture, options: &ExplainOptions, files: &mut dyn Code) -> Explanation {
    let trusted = super::trust::trust(capture);
    let look = Look { capture, options };
    let mut answers: Vec<Answer> = Vec::new();
    answers.extend(memory::sharing(&look, files));
    answers.extend(memory::remote(&look));
    answers.extend(memory::walks(&look));
    answers.extend(code::front_end(&look));
    answers.extend(code::mispredictions(&look, files));
    answers.extend(code::hot_spot(&look));
    answers.extend(memory::tail(&look));
    let mut findings = trust::findings(&look, &trusted);
    let about_trust = findings.len();
    let (mut quiet, mut unknown) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Answer::Found(finding) => findings.push(finding),
            Answer::Quiet(looked) => quiet.push(looked),
            Answer::Unknown(missing) => unknown.push(missing),
        }
    }
    // A stable sort: what passes its threshold by as much stays in the order of the topics.
    findings[about_trust..].sort_by(|a, b| b.times().total_cmp(&a.times()));
    // What one event cannot say, another may have said.
    let said = |topic| {
        findings.iter().map(|f| f.topic).chain(quiet.iter().map(|q: &Quiet| q.topic)).any(|t| t == topic)
    };
    unknown.retain(|missing: &Unknown| !said(missing.topic));
    unknown.dedup_by_key(|missing| missing.topic);
    let events = capture.meta.events.iter().zip(trusted.events).enumerate();
    let events = events.map(|(index, (info, trust))| Sampled {
        samples: super::samples(capture, index),
        event: Event::of(info, trust),
    });
    Explanation {
        run: Run::of(capture),
        events: events.collect(),
        nothing_stands_out: findings.len() == about_trust,
        findings,
        quiet,
        unknown,
    }
}

impl Finding {
    /// How many times its number passes its threshold, by the lower end of the interval.
    fn times(&self) -> f64 {
        match (self.number, self.threshold) {
            (Some(number), Some(threshold)) if threshold > 0.0 => number.least() / threshold,
            _ => f64::INFINITY,
        }
    }
}

/// What every look needs.
struct Look<'a> {
    capture: &'a Capture,
    options: &'a ExplainOptions,
}

/// A question put to the samples of one event.
struct Question<'a> {
    topic: Topic,
    event: &'a str,
    /// The number that answers it.
    number: Option<Number>,
    /// Samples behind it.
    samples: u64,
    threshold: f64,
    of: &'static str,
    /// The subcommand that shows it.
    view: &'a str,
    /// What records more of it.
    record: &'a str,
}

impl Question<'_> {
    /// The answer; `says` and `details` are made only for a finding.
    fn answer(self, look: &Look<'_>, tell: impl FnOnce() -> (String, Vec<String>)) -> Answer {
        let least = look.options.min_samples;
        if self.samples < least {
            let why = match self.samples {
                0 => format!("the capture has no samples of {} for this check.", self.event),
                n => format!(
                    "the capture has {n} samples of {} for this check; at least {least} are needed.",
                    self.event
                ),
            };
            return Answer::Unknown(Unknown {
                topic: self.topic,
                why,
                record: Some(format!("precise record {}", self.record)),
            });
        }
        match self.number.filter(|number| number.least() >= self.threshold) {
            Some(number) => {
                let (says, details) = tell();
                Answer::Found(Finding {
                    topic: self.topic,
                    event: self.event.to_owned(),
                    number: Some(number),
                    threshold: Some(self.threshold),
                    says,
                    details,
                    command: look.command(self.view),
                })
            }
            None => Answer::Quiet(Quiet {
                topic: self.topic,
                event: self.event.to_owned(),
                samples: self.samples,
                number: self.number,
                threshold: self.threshold,
                of: self.of,
            }),
        }
    }
}

impl Look<'_> {
    /// What the capture says of an event.
    fn info(&self, name: &str) -> Option<&EventInfo> {
        self.capture.meta.events.iter().find(|info| info.name == name)
    }

    /// What is left to say where the samples of an event were chosen by the very thing: they do not
    /// tell how often it happens. `record` takes some that do.
    fn chosen(&self, topic: Topic, event: &str, by: By, record: &str) -> Option<Answer> {
        let why = chosen(self.info(event)?, by)?;
        Some(Answer::Unknown(Unknown { topic, why, record: Some(format!("precise record {record}")) }))
    }

    /// The command that shows a view of this capture.
    fn command(&self, view: &str) -> String {
        match self.options.file.as_str() {
            "" => format!("precise {view}"),
            file => {
                let (name, flags) = view.split_once(' ').unwrap_or((view, ""));
                format!("precise {name} -i {} {flags}", quoted(file)).trim_end().to_owned()
            }
        }
    }
}

/// What a view that has no answer leaves. The command stands beside it, so the reason is short.
fn cannot(look: &Look<'_>, topic: Topic, error: &ViewError) -> Answer {
    let imported = look.capture.meta.origin.is_some();
    let record = match error {
        // The file may have what the import did not keep.
        ViewError::NotRecorded { by, .. } if imported => Some(format!("precise import --by {by} …")),
        error => error.record(),
    };
    let why = match error {
        ViewError::NotRecorded { missing, .. } => format!("the run did not group by {missing}."),
        ViewError::NoSuchSamples { what, events, .. } => format!("samples of {events} do not have {what}."),
        other => other.to_string(),
    };
    Answer::Unknown(Unknown { topic, why, record })
}

/// A file's name as a shell takes it for one word.
fn quoted(file: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if file.chars().all(plain) { file.to_owned() } else { format!("'{}'", file.replace('\'', r"'\''")) }
}
