//! Findings in a capture, most important first: results of the other views, compared with
//! thresholds.
//!
//! A finding requires that the lower end of its interval passes the threshold, so few findings are
//! due to chance. If the capture cannot answer a question, the result names the question and the
//! command that records the missing data, instead of reporting no finding.
//!
//! A finding is a number, what it measures, and the command that shows the details:
//!
//! ```
//! # struct NoCode;
//! # impl precise_views::code::Code for NoCode {
//! #     fn instructions(
//! #         &mut self,
//! #         _: &precise_code::FunctionId,
//! #     ) -> Result<Vec<precise_code::Instruction>, precise_model::Reason> {
//! #         Err(precise_model::Reason::FileMissing)
//! #     }
//! #     fn source(&mut self, _: &str, _: u32) -> Option<String> {
//! #         None
//! #     }
//! # }
//! use precise_model::Node;
//! use precise_model::testing::{CaptureBuilder, L1, REMOTE_RAM};
//! use precise_views::explain::{ExplainOptions, Topic, explain};
//!
//! let mut made = CaptureBuilder::new();
//! made.meta().machine.nodes = vec![Node { id: 0, cpus: vec![0] }, Node { id: 1, cpus: vec![1] }];
//! made.cell().samples(700).latency(5).cpu(0).data_src(L1);
//! made.cell().samples(300).latency(600).cpu(0).data_src(REMOTE_RAM);
//!
//! // `NoCode` implements `Code` without files; this finding needs none.
//! let result = explain(&made.build(), &ExplainOptions::default(), &mut NoCode);
//!
//! let remote = result.findings.iter().find(|finding| finding.topic == Topic::RemoteMemory);
//! let remote = remote.expect("was found");
//! let number = remote.number.expect("is measured");
//! assert_eq!(number.value, 0.30, "{remote:#?}");
//! // The lower end of the 95 % interval passes the threshold, so chance is an unlikely cause.
//! assert!(number.low.zip(remote.threshold).is_some_and(|(low, threshold)| low > threshold));
//! // Branches were not recorded. Their check is listed as unknown, not as passed.
//! assert!(result.unknown.iter().any(|check| check.topic == Topic::Mispredictions));
//! # Ok::<(), precise_views::ViewError>(())
//! ```

mod change;
mod chosen;
mod code;
pub mod csv;
mod memory;
mod owners;
mod page;
#[cfg(test)]
mod planted;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
pub mod thresholds;
mod trust;
mod view;
mod waiting;

pub use view::ExplainView;

use chosen::{SelectedBy, chosen};
use schemars::JsonSchema;
use serde::Serialize;

use super::ViewError;
use super::about::{EventSummary, Run};
use super::code::Code;
use super::stats::{MIN_SAMPLES, Share};
use crate::again::Again;
use precise_model::digits::counted;
use precise_model::text::quoted;
use precise_model::{Capture, CompactSort as _, Dimension, EventInfo, Joining, PmuKind, Row};

/// Options for `precise explain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainOptions {
    /// The file as a command names it; empty for the default file of the commands.
    pub file: String,
    /// The number of samples below which a check is not made.
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
    /// Where and how the capture was made.
    #[serde(flatten)]
    pub run: Run,
    /// The events that were sampled.
    pub events: Vec<EventSamples>,
    /// Whether there is no finding about the workload. Findings about trust do not count.
    pub nothing_stands_out: bool,
    /// The findings, most important first: those that make all numbers doubtful, then the others by
    /// the ratio of their number to its threshold.
    pub findings: Vec<Finding>,
    /// The checks without a finding.
    pub quiet: Vec<Quiet>,
    /// The checks that this capture does not allow.
    pub unknown: Vec<Unknown>,
}

/// An event with the number of its samples.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventSamples {
    /// The event.
    #[serde(flatten)]
    pub event: EventSummary,
    /// The number of samples of the event in the capture.
    pub samples: u64,
}

/// The subject of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// The instruction addresses of the samples are not exact.
    NotPrecise,
    /// The ledger does not account for every sample.
    OpenLedger,
    /// Some samples were taken but are not in the capture.
    Lost,
    /// The samples stand for fewer or more events than were counted.
    Coverage,
    /// The kernel throttled the event because it overflowed too often.
    Throttled,
    /// Precise stopped the event because it took far more samples than were requested.
    Stopped,
    /// Cores contend for a cache line although they use different bytes of it.
    FalseSharing,
    /// Cores contend for a cache line and use the same bytes.
    TrueSharing,
    /// Cores contend for cache lines, whether or not they use the same bytes.
    Contention,
    /// Accesses to the memory of another node.
    RemoteMemory,
    /// Accesses whose address no TLB could translate.
    PageWalks,
    /// Fetches that the front end waits for.
    FrontEnd,
    /// Mispredicted branches.
    Mispredictions,
    /// One function, or one line, with most of the samples.
    HotSpot,
    /// The slowest accesses of one cgroup, compared with those of all others.
    LatencyTail,
    /// A cgroup or process that was slower, or more active, for a part of the run.
    Change,
    /// The level of the memory hierarchy that takes most of the waiting.
    Waiting,
    /// One cgroup, process, thread, page, cache line or variable with most of the waiting.
    OneUser,
}

impl Topic {
    /// The topics about the workload, in the order of a report. The other topics are about the
    /// capture.
    pub const OF_WORKLOAD: [Self; 12] = [
        Self::FalseSharing,
        Self::TrueSharing,
        Self::Contention,
        Self::RemoteMemory,
        Self::PageWalks,
        Self::FrontEnd,
        Self::Mispredictions,
        Self::HotSpot,
        Self::LatencyTail,
        Self::Change,
        Self::Waiting,
        Self::OneUser,
    ];

    /// Returns the topic in a few words.
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
            Self::Contention => "contention",
            Self::RemoteMemory => "remote memory",
            Self::PageWalks => "page walks",
            Self::FrontEnd => "front end",
            Self::Mispredictions => "branch mispredictions",
            Self::HotSpot => "hot spot",
            Self::LatencyTail => "latency tail",
            Self::Change => "change",
            Self::Waiting => "waiting",
            Self::OneUser => "one user",
        }
    }

    /// Returns whether the topic is about the capture and not about the workload.
    pub fn is_trust(self) -> bool {
        !Self::OF_WORKLOAD.contains(&self)
    }
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingUnit {
    /// A part of 1.
    Share,
    /// A ratio, 1.0 = equal.
    Times,
    /// A count.
    Count,
}

/// A number with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Number {
    /// The unit of the number.
    pub unit: FindingUnit,
    /// The observed value.
    pub value: f64,
    /// The lower end of the 95 % interval; `None` if the number was counted and not sampled.
    pub low: Option<f64>,
    /// The upper end of the 95 % interval; `None` if the number was counted and not sampled.
    pub high: Option<f64>,
}

impl Number {
    fn share(share: Share) -> Self {
        Self { unit: FindingUnit::Share, value: share.value, low: Some(share.low), high: Some(share.high) }
    }

    fn counted(unit: FindingUnit, value: f64) -> Self {
        Self { unit, value, low: None, high: None }
    }

    /// Returns the value to compare with a threshold: the lower end of the interval, if there is
    /// one.
    fn least(&self) -> f64 {
        self.low.unwrap_or(self.value)
    }
}

/// A finding: a number that passes its threshold, or a fact.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// The topic of the finding.
    pub topic: Topic,
    /// The event whose samples show it.
    pub event: String,
    /// The number; `None` if the finding is a fact without a number.
    pub number: Option<Number>,
    /// The threshold that the lower end of the interval passed; `None` if there is no threshold.
    pub threshold: Option<f64>,
    /// What the number measures: the rest of the sentence that starts with the number.
    pub says: String,
    /// More sentences: where it happens, and what to do.
    pub details: Vec<String>,
    /// The command that shows the details.
    pub command: String,
}

/// A check without a finding.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Quiet {
    /// The topic of the check.
    pub topic: Topic,
    /// The event whose samples were checked.
    pub event: String,
    /// The number of samples that were checked.
    pub samples: u64,
    /// The number; `None` if no group has one.
    pub number: Option<Number>,
    /// The threshold that the number did not pass.
    pub threshold: f64,
    /// What the number measures.
    pub of: &'static str,
}

/// A check that the capture does not allow.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Unknown {
    /// The topic of the check.
    pub topic: Topic,
    /// The reason, as a sentence.
    pub why: String,
    /// The command that records the missing data; `None` if no recording would help.
    #[schemars(with = "Option<String>")]
    pub record: Option<Again>,
}

impl Unknown {
    /// Says that only some machines have the events to record, if that is so: a run of software
    /// events is often one of a machine without others.
    fn needs_hardware(&mut self) {
        const EVENTS: [&str; 5] = [" -e mem", " -e c2c", " -e loads", " -e fetch", " -e branches"];
        if self
            .record
            .as_ref()
            .is_some_and(|again| EVENTS.iter().any(|event| again.command().contains(event)))
        {
            self.why = "software events do not tell. It takes a machine with PEBS or IBS; `precise doctor` \
                        says what this one has."
                .to_owned();
            self.record = None;
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug)]
enum CheckAnswer {
    Found(Finding),
    Quiet(Quiet),
    Unknown(Unknown),
    /// What a check that was made left out.
    Partly(Unknown),
}

/// Returns the findings in a capture. `files` is the source of code that the capture does not have.
pub fn explain(capture: &Capture, options: &ExplainOptions, files: &mut dyn Code) -> Explanation {
    let trusted = super::trust::trust(capture);
    let whole = Look { capture, options };
    // Most checks need neither addresses nor times, and rows without them are few.
    let few = without_addresses(capture);
    let look = Look { capture: few.as_ref().unwrap_or(capture), options };
    let mut answers: Vec<CheckAnswer> = Vec::new();
    answers.extend(memory::sharing(&whole, files));
    let decided = |answer: &CheckAnswer| matches!(answer, CheckAnswer::Found(_));
    if !answers.iter().any(decided) {
        answers.extend(waiting::contention(&look));
    }
    answers.extend(memory::remote(&look));
    answers.extend(memory::walks(&look));
    answers.extend(code::front_end(&look));
    answers.extend(code::mispredictions(&whole, files));
    answers.extend(code::hot_spot(&look));
    answers.extend(memory::tail(&look));
    answers.extend(change::changes(&whole));
    answers.extend(waiting::levels(&look));
    answers.extend(waiting::users(&look, &whole));
    let mut findings = trust::findings(&whole, &trusted);
    let about_trust = findings.len();
    let (mut quiet, mut unknown, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            CheckAnswer::Found(finding) => findings.push(finding),
            CheckAnswer::Quiet(looked) => quiet.push(looked),
            CheckAnswer::Unknown(missing) => unknown.push(missing),
            CheckAnswer::Partly(missing) => left_out.push(missing),
        }
    }
    // The sort is stable: findings with the same ratio stay in the order of the topics.
    findings[about_trust..].compact_sort_by(|a, b| b.times().total_cmp(&a.times()));
    // Another event may have answered what this one cannot.
    let said = |topic| {
        findings.iter().map(|f| f.topic).chain(quiet.iter().map(|q: &Quiet| q.topic)).any(|t| t == topic)
    };
    unknown.retain(|missing: &Unknown| !said(missing.topic));
    unknown.dedup_by_key(|missing| missing.topic);
    if capture.meta.origin.is_none() && capture.meta.events.iter().all(|info| info.pmu == PmuKind::Software) {
        unknown.iter_mut().for_each(Unknown::needs_hardware);
    }
    unknown.extend(left_out);
    let events = capture.meta.events.iter().zip(trusted.events).enumerate();
    let events = events.map(|(index, (info, trust))| EventSamples {
        samples: super::samples(capture, index),
        event: EventSummary::of(info, trust),
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

/// Returns a capture without data addresses and times, whose equal rows are joined; `None` if few
/// rows are equal without them.
fn without_addresses(capture: &Capture) -> Option<Capture> {
    let mut joining = Joining::of(&capture.meta, !capture.data.is_empty());
    let mut rows = Vec::new();
    for row in &capture.rows {
        if !joining.is_on() {
            return None;
        }
        joining.add(&mut rows, Row { epoch: 0, data: None, width: None, ..*row });
    }
    Some(Capture {
        meta: capture.meta.clone(),
        names: capture.names.clone(),
        code: capture.code.clone(),
        stacks: capture.stacks.clone(),
        rows,
        ..Capture::default()
    })
}

impl Finding {
    /// Returns the ratio of the number to its threshold, by the lower end of the interval.
    fn times(&self) -> f64 {
        match (self.number, self.threshold) {
            (Some(number), Some(threshold)) if threshold > 0.0 => number.least() / threshold,
            _ => f64::INFINITY,
        }
    }
}

/// Events and the dimensions to group them by.
type Records<'a> = (&'a str, &'a [Dimension]);

/// The input of every check.
struct Look<'a> {
    capture: &'a Capture,
    options: &'a ExplainOptions,
}

/// A check of the samples of one event.
struct Question<'a> {
    topic: Topic,
    event: &'a str,
    /// The number to compare with the threshold.
    number: Option<Number>,
    /// The number of samples behind it.
    samples: u64,
    threshold: f64,
    of: &'static str,
    /// The subcommand that shows the details.
    view: &'a str,
    /// The events and the dimensions that record more of these samples; no dimensions: the default
    /// ones.
    record: Records<'a>,
}

impl Question<'_> {
    /// Returns the result of the check. `tell` makes `says` and `details`; it is called only for a
    /// finding.
    fn answer(self, look: &Look<'_>, tell: impl FnOnce() -> (String, Vec<String>)) -> CheckAnswer {
        let least = look.options.min_samples;
        if self.samples < least {
            let why = match self.samples {
                0 => format!("the capture has no samples of {} for this check.", self.event),
                n => format!(
                    "the capture has {} of {} for this check; at least {least} are needed.",
                    counted(n, "sample"),
                    self.event
                ),
            };
            return CheckAnswer::Unknown(Unknown {
                topic: self.topic,
                why,
                record: Some(look.record(self.record)),
            });
        }
        match self.number.filter(|number| number.least() >= self.threshold) {
            Some(number) => {
                let (says, details) = tell();
                CheckAnswer::Found(Finding {
                    topic: self.topic,
                    event: self.event.to_owned(),
                    number: Some(number),
                    threshold: Some(self.threshold),
                    says,
                    details,
                    command: look.command(self.view),
                })
            }
            None => CheckAnswer::Quiet(Quiet {
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
    /// Returns the description of an event in the capture.
    fn info(&self, name: &str) -> Option<&EventInfo> {
        self.capture.meta.events.iter().find(|info| info.name == name)
    }

    /// Returns the answer for an event whose samples were selected by the property that is checked,
    /// so that they do not tell how often it happens. `record` says what records unselected
    /// samples. `None` if the samples were not selected by it.
    fn chosen(&self, topic: Topic, event: &str, by: SelectedBy, record: Records<'_>) -> Option<CheckAnswer> {
        let why = chosen(self.info(event)?, by)?;
        Some(CheckAnswer::Unknown(Unknown { topic, why, record: Some(self.record(record)) }))
    }

    /// Returns the command that records events.
    fn record(&self, (events, dimensions): Records<'_>) -> Again {
        Again::record(self.capture, events, dimensions)
    }

    /// Returns the command that shows a view of this capture.
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

/// Returns the item with the greatest weight, of several the first: views list equals by name, so
/// that all findings name the same one.
fn most<T>(items: impl IntoIterator<Item = T>, weight: impl Fn(&T) -> f64) -> Option<T> {
    items.into_iter().reduce(|most, item| if weight(&item) > weight(&most) { item } else { most })
}

/// Returns the answer for a view that failed. The reason is short, because the command follows it.
fn cannot(topic: Topic, error: &ViewError) -> CheckAnswer {
    let why = match error {
        ViewError::NotRecorded { missing, .. } => format!("the run did not group by {missing}."),
        ViewError::NoSuchSamples { what, events, .. } => format!("samples of {events} do not have {what}."),
        other => other.to_string(),
    };
    CheckAnswer::Unknown(Unknown { topic, why, record: error.again().cloned() })
}
