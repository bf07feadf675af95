//! The tools over the tables of a fleet: their arguments, how far their numbers can be trusted, and
//! what to ask next.

use std::sync::Arc;
use std::time::Duration;

use precise_fleet::{
    AskError, FleetAsked, FleetBucket, FleetEvent, FleetEventDiff, FleetFinding, FleetKey, FleetLatencyEvent,
    FleetLedger, FleetQuestion, FleetSpan, FleetTotals, FleetTypes, fleet_diff, fleet_latency, fleet_report,
};
use precise_model::digits::{counted, thousands};
use precise_model::text::sanitize;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answers::{self, EventVerdict, ToolAnswer};
use super::fit::shorten;
use super::next::NextCall;
use super::tools;
use crate::archive::{ArchivePlace, fleet_bucket};
use crate::asking::{self, DiffDocument, LatencyDocument, ReportDocument};
use crate::error::Failure;

/// Memory for the groups of a question, in bytes.
const MEMORY: u64 = 64 << 20;
/// The longest time that can be asked about, in hours, and the usual one.
const LONGEST_HOURS: u32 = 24 * 366;
const USUAL_HOURS: u32 = 24;
/// The largest number of groups of an event, and the usual one. An answer is small.
const MOST_GROUPS: u32 = 1000;
const USUAL_GROUPS: u32 = 20;

precise_model::catalogue! {
    /// A tool over the tables of a fleet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum FleetTool: (&'static str, &'static str, &'static str) {
        /// Where the samples are.
        Report => (
            "fleet_report",
            "Show where the samples of many machines are",
            "Group by these keys, with commas between: service, function, module, level, node, cluster, \
             hour, type, field [default: service, or of one service function,module]",
        ),
        /// How long accesses take.
        Latency => (
            "fleet_latency",
            "Show how long the memory accesses of many machines take",
            "Group by these keys, with commas between: level, service, function, module, cluster, hour; or \
             none [default: level]",
        ),
        /// Which types and fields are accessed.
        Types => (
            "fleet_types",
            "Show which types and fields the samples of many machines access",
            "Group by these keys, with commas between: type, field, service, function, module, hour \
             [default: type]",
        ),
        /// What changed.
        Diff => (
            "fleet_diff",
            "Show what changed on many machines from one time to another",
            "Group by these keys, with commas between: service, function, module, level, node, cluster, \
             type, field [default: service, or of one service function,module]",
        ),
    }
}

/// The arguments of all these tools.
#[derive(Debug, Deserialize, JsonSchema)]
struct FleetArguments {
    /// Only this service, as in shop/web; the empty text for samples without one [default: all]
    service: Option<String>,
    /// Only this event, as the captures name it [default: all]
    event: Option<String>,
    /// Ask about the last hours that are over: this number of them
    #[schemars(range(min = 1, max = LONGEST_HOURS), extend("default" = USUAL_HOURS))]
    hours: Option<u32>,
    /// Ask about a day or an hour of UTC, or FROM..TO with both included, instead of `hours`:
    /// 2026-11-24, 2026-11-24T19, 2026-11-24T19..2026-11-24T22
    time: Option<String>,
    /// The time before: a day or an hour of UTC, or FROM..TO with both included: 2026-11-24,
    /// 2026-11-24T19, 2026-11-24T19..2026-11-24T22
    before: Option<String>,
    /// The time after
    after: Option<String>,
    /// Group by these keys
    by: Option<String>,
    /// Show this number of groups of each event
    #[schemars(range(min = 1, max = MOST_GROUPS), extend("default" = USUAL_GROUPS))]
    limit: Option<u32>,
}

/// What a tool was asked.
struct FleetAsking {
    question: FleetQuestion,
    /// The time before, of a comparison.
    before: Option<FleetSpan>,
}

/// What the tables say.
struct FleetFound {
    verdict: Vec<EventVerdict>,
    /// The values of the first group; of a comparison, of the first that changed.
    top: Option<Vec<Option<String>>>,
    /// Whether samples have latencies.
    timed: bool,
    document: Option<Value>,
}

/// An event of an answer, for the verdict.
struct AnsweredEvent<'a> {
    event: &'a str,
    kind: &'a str,
    samples: u64,
    ledger: &'a FleetLedger,
    too_few: Option<u64>,
    node_groups: u32,
}

impl FleetTool {
    /// Returns the name of the tool.
    pub(super) const fn name(self) -> &'static str {
        self.entry().0
    }

    /// Returns the tool with this name.
    pub(super) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Returns whether the tool takes an argument.
    fn takes(self, argument: &str) -> bool {
        match argument {
            "before" | "after" => self == Self::Diff,
            "hours" | "time" => self != Self::Diff,
            _ => true,
        }
    }

    /// Returns the definition of the tool, as `tools/list` has it.
    pub(super) fn definition(self) -> Value {
        let schema = schema_for!(FleetArguments).to_value();
        let mut properties = Map::new();
        for (argument, mut value) in schema["properties"].as_object().cloned().unwrap_or_default() {
            // Whether it may be left out says `required`.
            if let Some(kind) = value["type"].get(0).cloned() {
                value["type"] = kind;
            }
            let help = if argument == "by" { Some(self.entry().2) } else { value["description"].as_str() };
            value["description"] = json!(help.map(|help| help.replace('\n', " ")));
            if let Some(fields) = value.as_object_mut() {
                fields.remove("format");
            }
            if self.takes(&argument) {
                properties.insert(argument, value);
            }
        }
        let required: &[&str] = if self == Self::Diff { &["before", "after"] } else { &[] };
        json!({
            "name": self.name(),
            "description": self.entry().1,
            "inputSchema": tools::object(Value::Object(properties), required),
            "annotations": tools::reading(),
        })
    }

    /// Asks the tables of a place. `types` knows what instructions access.
    pub(super) fn ask(
        self,
        place: &ArchivePlace,
        given: &Map<String, Value>,
        types: &mut dyn FleetTypes,
    ) -> Result<ToolAnswer, Failure> {
        let asking = self.parse(given)?;
        let bucket = fleet_bucket(place)?;
        match self.look(&bucket, &asking, types) {
            Ok(FleetFound { verdict, top, timed, document }) => {
                let key = asking.question.by.first().copied();
                let top = key.zip(top.and_then(|values| values.into_iter().next()?));
                let next = self.next(&asking, top, timed);
                Ok(ToolAnswer { verdict, next, answer: document, ..ToolAnswer::of(self.name()) })
            }
            Err(error) => {
                let time = match &error {
                    AskError::NoTables { newest, .. } => newest.map(|day| day.to_string()),
                    AskError::Fleet(_) => None,
                    _ => Some(asking.question.span.spelled()),
                };
                let services = |time| json!({ "by": "service", "time": time });
                let next = time.map(|time| {
                    NextCall::of(
                        Self::Report.name(),
                        services(time),
                        "the services of a time that has tables",
                    )
                });
                let failure = asking::failed(&place.to_string(), error);
                Ok(ToolAnswer::failed(self.name(), &failure, next.into_iter().collect()))
            }
        }
    }

    fn look(
        self,
        bucket: &Arc<dyn FleetBucket>,
        FleetAsking { question, before }: &FleetAsking,
        types: &mut dyn FleetTypes,
    ) -> Result<FleetFound, AskError> {
        if let Some(before) = *before {
            let diff = fleet_diff(bucket, question, [before, question.span], types)?;
            let mut groups = diff.events.iter().flat_map(|event| &event.groups);
            return Ok(FleetFound {
                verdict: verdict_of(&diff.after, diff.events.iter().map(AnsweredEvent::of_diff)),
                timed: groups.clone().any(|group| group.latency_avg[1].is_some()),
                top: groups.find(|group| group.changed).map(|group| group.values.clone()),
                document: answers::value_of(&DiffDocument(&diff)),
            });
        }
        if self == Self::Latency {
            let latency = fleet_latency(bucket, question)?;
            let mut groups = latency.events.iter().flat_map(|event| &event.groups);
            return Ok(FleetFound {
                verdict: verdict_of(&latency.asked, latency.events.iter().map(AnsweredEvent::of_latency)),
                timed: true,
                top: groups.next().map(|group| group.values.clone()),
                document: answers::value_of(&LatencyDocument(&latency)),
            });
        }
        let report = fleet_report(bucket, question, types, || Duration::ZERO)?;
        let mut groups = report.events.iter().flat_map(|event| &event.groups);
        Ok(FleetFound {
            verdict: verdict_of(&report.asked, report.events.iter().map(AnsweredEvent::of_report)),
            timed: report.events.iter().any(|event| event.latency_avg.is_some()),
            top: groups.next().map(|group| group.values.clone()),
            document: answers::value_of(&ReportDocument(&report)),
        })
    }

    /// Makes a question of arguments.
    fn parse(self, given: &Map<String, Value>) -> Result<FleetAsking, Failure> {
        let given = given.iter().filter(|(_, value)| !value.is_null());
        let given: Map<String, Value> = given.map(|(key, value)| (key.clone(), value.clone())).collect();
        let definition = self.definition();
        let known = &definition["inputSchema"]["properties"];
        if let Some(other) = given.keys().find(|key| known.get(key.as_str()).is_none()) {
            let known: Vec<&str> =
                known.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
            let what = format!(
                "{} takes {}, not {:?}",
                self.name(),
                known.join(", "),
                shorten(&sanitize(other), 60)
            );
            return Err(tools::wrong(what));
        }
        let given: FleetArguments = serde_json::from_value(Value::Object(given))
            .map_err(|error| tools::wrong(shorten(&sanitize(&error.to_string()), 200)))?;
        let bounds = [("hours", given.hours, LONGEST_HOURS), ("limit", given.limit, MOST_GROUPS)];
        if let Some((name, _, most)) = bounds
            .into_iter()
            .find(|(_, number, most)| number.is_some_and(|number| !(1..=*most).contains(&number)))
        {
            return Err(tools::wrong(format!("{name} is a whole number from 1 to {most}")));
        }
        let by = match (self, given.by.as_deref()) {
            (Self::Latency, text) => asking::latency_keys(text.unwrap_or("level")),
            (Self::Types, text) => asking::keys(text.unwrap_or("type")),
            (Self::Report | Self::Diff, None) => Ok(asking::usual_keys(given.service.as_deref())),
            (Self::Report | Self::Diff, Some(text)) => asking::keys(text),
        };
        let by = by.map_err(tools::wrong)?;
        let time = |text: &str| asking::span(text).map_err(tools::wrong);
        let (before, span);
        if self == Self::Diff {
            let needed = |given: Option<&String>, name: &str| match given {
                Some(text) => time(text),
                None => {
                    Err(tools::wrong(format!("{} needs {name}, for example \"2026-11-24\"", self.name())))
                }
            };
            before = Some(needed(given.before.as_ref(), "before")?);
            span = needed(given.after.as_ref(), "after")?;
            asking::check_keys_of_diff(&by)?;
        } else {
            before = None;
            span = match (&given.time, given.hours) {
                (Some(_), Some(_)) => {
                    return Err(tools::wrong("hours and time exclude each other".to_owned()));
                }
                (Some(text), None) => time(text)?,
                (None, hours) => FleetSpan::last(hours.unwrap_or(USUAL_HOURS), asking::now_ns()),
            };
        }
        if self == Self::Types {
            asking::check_keys_of_types(&by)?;
        }
        let limit = given.limit.unwrap_or(USUAL_GROUPS) as usize;
        let FleetArguments { service, event, .. } = given;
        let question =
            FleetQuestion { service, event, limit, memory: MEMORY, ..FleetQuestion::about(span, by) };
        Ok(FleetAsking { question, before })
    }

    /// Returns what to ask after an answer. `top` is the first group of the answer, by its first
    /// key; `timed` tells whether samples have latencies.
    fn next(
        self,
        FleetAsking { question, before }: &FleetAsking,
        top: Option<(FleetKey, String)>,
        timed: bool,
    ) -> Vec<NextCall> {
        let before = before.unwrap_or_else(|| question.span.earlier()).spelled();
        let time = question.span.spelled();
        let service = question.service.as_deref();
        let mut calls = Vec::new();
        let mut add = |tool: Self, service: Option<&str>, by: &str, why: &str| {
            let mut arguments = json!({});
            if let Some(service) = service {
                arguments["service"] = json!(service);
            }
            if let Some(event) = &question.event {
                arguments["event"] = json!(event);
            }
            if !by.is_empty() {
                arguments["by"] = json!(by);
            }
            if tool == Self::Diff {
                arguments["before"] = json!(before);
                arguments["after"] = json!(time);
            } else {
                arguments["time"] = json!(time);
            }
            calls.push(NextCall::of(tool.name(), arguments, why));
        };
        match (self, service, top) {
            (Self::Report | Self::Latency | Self::Types, None, Some((FleetKey::Service, name))) => {
                add(Self::Report, Some(&name), "", "the functions of the first service");
                add(Self::Diff, None, "", "which services changed since the time before");
            }
            (Self::Diff, None, Some((FleetKey::Service, name))) => {
                add(Self::Diff, Some(&name), "", "which functions of the service changed");
                add(Self::Report, Some(&name), "node", "on which nodes");
            }
            (Self::Report | Self::Latency | Self::Types, None, _) => {
                add(Self::Report, None, "service", "which services have the samples");
            }
            (Self::Diff, None, _) => {
                if timed && !question.by.contains(&FleetKey::Level) {
                    add(Self::Diff, None, "level", "whether other memory serves the accesses than before");
                }
                add(Self::Report, None, "service", "which services have the samples");
            }
            (Self::Report, Some(name), _) => {
                if timed {
                    add(
                        Self::Latency,
                        Some(name),
                        "level",
                        "how long its accesses take, and which memory serves them",
                    );
                    add(Self::Types, Some(name), "type,field", "which fields it accesses");
                }
                add(Self::Diff, Some(name), "", "which functions changed since the time before");
                if !question.by.contains(&FleetKey::Node) {
                    add(Self::Report, Some(name), "node", "whether single nodes stand out");
                }
            }
            (Self::Latency, Some(name), _) => {
                add(Self::Report, Some(name), "function,level", "which functions wait, for which memory");
                add(Self::Diff, Some(name), "level", "whether other memory serves it than before");
            }
            (Self::Types, Some(name), _) => {
                add(Self::Types, Some(name), "function,type,field", "which functions access the fields");
            }
            (Self::Diff, Some(name), _) => {
                if timed {
                    add(Self::Diff, Some(name), "level", "whether other memory serves it than before");
                }
                add(Self::Report, Some(name), "node", "on which nodes");
            }
        }
        calls
    }
}

impl<'a> AnsweredEvent<'a> {
    fn of_report(of: &'a FleetEvent) -> Self {
        let FleetEvent { event, kind, samples, ledger, too_few, node_groups, .. } = of;
        Self { event, kind, samples: *samples, ledger, too_few: *too_few, node_groups: *node_groups }
    }

    fn of_latency(of: &'a FleetLatencyEvent) -> Self {
        let FleetLatencyEvent { event, kind, all, ledger, too_few, node_groups, .. } = of;
        Self { event, kind, samples: all.samples, ledger, too_few: *too_few, node_groups: *node_groups }
    }

    fn of_diff(of: &'a FleetEventDiff) -> Self {
        let FleetEventDiff { event, kind, totals: [_, after], too_few, node_groups, .. } = of;
        let FleetTotals { samples, ledger, .. } = after;
        Self { event, kind, samples: *samples, ledger, too_few: *too_few, node_groups: *node_groups }
    }
}

/// Returns how far the numbers of each event can be trusted.
fn verdict_of<'a>(asked: &FleetAsked, events: impl Iterator<Item = AnsweredEvent<'a>>) -> Vec<EventVerdict> {
    let FleetAsked { nodes, read, .. } = asked;
    let missing = read.missing_hours.len() as u64;
    let mut of_all = Vec::new();
    if missing > 0 {
        let hours = counted(read.hours.into(), "hour");
        of_all.push(format!("There are no tables of {} of the {hours}.", thousands(missing)));
    }
    let lacking = read.hours_without_instructions.len() as u64;
    if lacking > 0 {
        let hours = counted(lacking, "hour");
        of_all.push(format!("The samples of {hours} are not counted: their tables have no instructions."));
    }
    if nodes.silent > 0 {
        let first = nodes.silent_nodes.first().map(String::as_str).unwrap_or_default();
        let known = counted(nodes.known, "node");
        of_all.push(format!("{} of {known} did not report, the first {first}.", thousands(nodes.silent)));
    }
    if let Some(FleetFinding { node, finding }) = nodes.degraded_nodes.first() {
        let known = counted(nodes.known, "node");
        let why =
            finding.as_deref().map(|why| format!(": {}", why.trim_end_matches('.'))).unwrap_or_default();
        let number = thousands(nodes.degraded);
        of_all.push(format!("{number} of {known} did not sample precisely, the first {node}{why}."));
    }
    let verdict = |of: AnsweredEvent<'_>| {
        let mut doubts = Vec::new();
        if let Some(needed) = of.too_few {
            doubts.push(format!("There are fewer than the {needed} samples that a ranking needs."));
        }
        if of.node_groups < 2 {
            doubts.push(
                "The intervals do not include the differences between nodes: too few have samples."
                    .to_owned(),
            );
        }
        if !of.ledger.closes {
            let samples = counted(of.ledger.unaccounted, "sample");
            doubts.push(format!("The ledger does not say what became of {samples}."));
        }
        doubts.extend(of_all.iter().cloned());
        EventVerdict {
            // Loads that PEBS and IBS sampled have the same name, and are not the same events.
            event: sanitize(&format!("{} ({})", of.event, of.kind)),
            samples: of.samples,
            precise: nodes.degraded == 0,
            closes: of.ledger.closes,
            coverage: None,
            doubts: doubts.iter().map(|doubt| sanitize(doubt)).collect(),
            more_doubts: 0,
        }
    };
    events.map(verdict).collect()
}
