//! What to ask next: the commands that an answer names, as calls of tools.

use precise_model::text::sanitize;
use precise_model::{Capture, Dimension};
use precise_views::registry;
use precise_views::view::{Captures, Description, OptionKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::record;

/// A call of a tool that is worth making.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NextCall {
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the call, as the tool takes them.
    pub arguments: Map<String, Value>,
    /// What the answer is expected to tell.
    pub why: String,
}

impl NextCall {
    pub(super) fn of(tool: &str, arguments: Value, why: &str) -> Self {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        Self { tool: tool.to_owned(), arguments, why: why.to_owned() }
    }
}

/// Views that a view leads to: its name, the next view with its options, what that tells.
const SUCCESSORS: [(&str, &str, &str); 12] = [
    ("heatmap", "latency --by cgroup", "whose accesses are slow"),
    ("diff", "explain", "what stands out after the change"),
    ("check", "diff", "what changed, by function"),
    ("summary", "explain", "what stands out"),
    ("report", "annotate", "which lines and instructions"),
    ("c2c", "annotate", "which instructions take the line"),
    ("mem", "annotate", "which instructions wait"),
    ("latency", "report --by cgroup,level", "which memory serves whom"),
    ("latency", "mem --by function,level", "which functions wait, for which memory"),
    ("tlb", "annotate", "which instructions need the walks"),
    ("fetch", "report --by function", "which functions, by samples"),
    ("branches", "annotate", "which instructions are around the branches"),
];

/// Finds what to ask after the answer of a view.
pub(super) struct NextCalls<'a> {
    /// Name of the view that was asked.
    pub(super) view: &'a str,
    /// The capture that it was asked about.
    pub(super) capture: &'a Capture,
    /// Arguments that name captures and narrow them.
    pub(super) about: &'a Map<String, Value>,
    /// Whether the tool `record` exists.
    pub(super) records: bool,
}

impl NextCalls<'_> {
    /// Returns the calls, the most promising first.
    pub(super) fn calls(&self, document: &Value) -> Vec<NextCall> {
        let mut calls = Vec::new();
        for finding in list(document, "findings") {
            let (Some(command), Some(says)) = (finding["command"].as_str(), finding["says"].as_str()) else {
                continue;
            };
            let topic = finding["topic"].as_str().unwrap_or_default();
            self.add(&mut calls, command, &format!("{topic}: {}", sanitize(says)));
        }
        for (view, command, why) in SUCCESSORS {
            if view == self.view {
                self.add(&mut calls, &format!("precise {command}"), why);
            }
        }
        // A check that was not made; what it takes comes after what can be asked now.
        for unknown in list(document, "unknown") {
            let (Some(command), Some(why)) = (unknown["record"].as_str(), unknown["why"].as_str()) else {
                continue;
            };
            let topic = unknown["topic"].as_str().unwrap_or_default();
            self.add(&mut calls, command, &format!("{topic}: {}", sanitize(why)));
        }
        if self.view == "explain" && document["nothing_stands_out"] == true {
            self.add(&mut calls, "precise report --by function", "where the samples are");
        } else if self.view != "explain" {
            self.add(&mut calls, "precise explain", "what stands out in the capture");
        }
        calls
    }

    /// Returns the calls that the advice of an error names in backticks.
    pub(super) fn after_error(&self, text: &str) -> Vec<NextCall> {
        let mut calls = Vec::new();
        for command in text.split('`').skip(1).step_by(2) {
            self.add(&mut calls, command, "the advice of this error");
        }
        // The view that refused is named in its own error.
        calls.retain(|call| call.tool != self.view);
        calls
    }

    fn add(&self, calls: &mut Vec<NextCall>, command: &str, why: &str) {
        let call = match command.strip_prefix("precise ").and_then(words) {
            Some(words) => self.call(&words),
            None => None,
        };
        let Some((tool, arguments)) = call else { return };
        let known = calls.iter().any(|known: &NextCall| known.tool == tool && known.arguments == arguments);
        if !known {
            calls.push(NextCall { tool, arguments, why: why.to_owned() });
        }
    }

    /// Converts the words of a command into a call; `None` if no tool does the same.
    fn call(&self, words: &[String]) -> Option<(String, Map<String, Value>)> {
        let (name, rest) = words.split_first()?;
        if name == "record" {
            let arguments = record::arguments_of(rest)?;
            return self.records.then(|| (name.clone(), arguments));
        }
        let about = registry::find(name)?.description();
        let mut arguments = options(&about, rest)?;
        // A capture with fewer dimensions would only answer what it lacks.
        let lacks = |dimension: &Dimension| !self.capture.meta.dimensions.contains(dimension);
        if about.needs.dimensions.iter().any(lacks) {
            return None;
        }
        for (key, value) in self.about {
            if key != "base" || about.captures != Captures::One {
                arguments.insert(key.clone(), value.clone());
            }
        }
        Some((name.clone(), arguments))
    }
}

fn list<'a>(document: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    document[key].as_array().into_iter().flatten()
}

/// Converts the flags of a view's command into the arguments of its tool.
fn options(about: &Description, words: &[String]) -> Option<Map<String, Value>> {
    let mut arguments = Map::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (flag, inline) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let short = |option: &&precise_views::view::Opt| {
            option.short.is_some_and(|short| flag.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4])))
        };
        let option = match flag.strip_prefix("--") {
            Some(name) => about.options.iter().find(|option| option.name == name)?,
            None if flag.starts_with('-') => about.options.iter().find(short)?,
            None => {
                let option = about.options.iter().find(|option| option.positional)?;
                arguments.insert(option.name.to_owned(), json!([word]));
                continue;
            }
        };
        let value = match option.kind {
            OptionKind::Flag => json!(true),
            kind => {
                let text = inline.or_else(|| words.next().cloned())?;
                match kind {
                    OptionKind::Number(..) => json!(text.parse::<u64>().ok()?),
                    _ if option.several => json!([text]),
                    _ => json!(text),
                }
            }
        };
        arguments.insert(option.name.to_owned(), value);
    }
    Some(arguments)
}

/// Splits a command line as a shell does, for what precise itself writes: quotes are single ones.
/// `None` if a quote is open at the end.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut quoted = false;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            '\\' if !quoted => word.get_or_insert_default().extend(characters.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    (!quoted).then_some(words)
}

/// Returns what to ask first: the findings of the newest capture, and what changed since the one
/// before it, if both have the same events.
pub(super) fn first_calls(captures: &[super::captures::ListedCapture]) -> Vec<NextCall> {
    let mut usable = captures.iter().filter(|capture| capture.problem.is_none());
    let Some(newest) = usable.next() else { return Vec::new() };
    let about = json!({ "capture": newest.capture });
    let mut calls = vec![NextCall::of("explain", about, "what stands out in the newest capture")];
    let events = |capture: &super::captures::ListedCapture| -> Vec<String> {
        capture.events.iter().map(|event| event.event.clone()).collect()
    };
    let same = |other: &&super::captures::ListedCapture| {
        other.host == newest.host && events(other) == events(newest)
    };
    if let Some(before) = usable.find(same) {
        let two = json!({ "base": before.capture, "capture": newest.capture });
        calls.push(NextCall::of("diff", two, "what changed since the capture before, by function"));
    }
    calls
}

/// Returns whether all successors are views.
#[cfg(test)]
pub(super) fn successors_are_views() -> bool {
    let names: Vec<_> = registry::VIEWS.iter().map(|view| view.description().name).collect();
    SUCCESSORS.iter().all(|(view, command, _)| {
        let words = words(command).unwrap_or_default();
        let parsed =
            words.split_first().and_then(|(name, rest)| options(&registry::find(name)?.description(), rest));
        names.contains(view) && parsed.is_some()
    })
}
