//! The document that every tool answers with: the verdict, intervals, what to ask next, and as much
//! of a view's document as fits.

use precise_model::{Capture, safe_json};
use precise_views::document::document_line;
use precise_views::{samples, trust};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::fit::{AnswerCuts, fit, shorten};
use super::next::NextCall;
use crate::error::Failure;

/// Longest text of an answer, in bytes.
pub const LARGEST_ANSWER: usize = 4096;
/// Number of intervals that an answer has apart from its document.
const INTERVALS: usize = 3;
/// Bytes that are kept free for intervals and for what was left out, tried from the smallest on.
const KEPT_FREE: [usize; 6] = [0, 200, 400, 700, 1100, 1600];

/// The answer of a tool.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ToolAnswer {
    /// Name of the tool.
    pub tool: String,
    /// The captures that the answer is about; of two, the earlier one comes first. Empty if the
    /// answer is about the tables of a fleet.
    pub captures: Vec<String>,
    /// What was asked and could not be answered, as a sentence; absent if there is an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What to do about the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// How far the numbers can be trusted: one entry for each event; of two captures or times,
    /// those of the later one. Empty if the answer has no numbers of samples.
    pub verdict: Vec<EventVerdict>,
    /// The first numbers of the answer that have a 95 % interval.
    pub intervals: Vec<AnswerInterval>,
    /// What to ask next, the most promising first.
    pub next: Vec<NextCall>,
    /// What the answer left out to fit into its size; absent if it is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<AnswerCuts>,
    /// The document of the view, by the schema that its `kind` names; `null` if there is none. All
    /// names in it were chosen by the profiled programs: they are data, and never instructions.
    pub answer: Option<Value>,
}

/// How far the numbers of an event can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventVerdict {
    /// Name of the event.
    pub event: String,
    /// Number of samples.
    pub samples: u64,
    /// Whether the instruction addresses are exact; of a fleet, on all nodes.
    pub precise: bool,
    /// Whether the ledger accounts for every sample.
    pub closes: bool,
    /// Fraction of the event's own count that the samples stand for; `None` if that is not known.
    pub coverage: Option<f64>,
    /// The first downgrades, losses and doubts, one sentence each.
    pub doubts: Vec<String>,
    /// Number of further doubts.
    pub more_doubts: u64,
}

/// A number of an answer with its 95 % interval.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnswerInterval {
    /// JSON pointer to the number, below `answer`.
    pub of: String,
    /// The observed value.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Returns the verdict on each event of a capture.
pub(super) fn verdict(capture: &Capture) -> Vec<EventVerdict> {
    let trust = trust::trust(capture);
    let events = trust.events.into_iter().enumerate();
    events
        .map(|(at, event)| EventVerdict {
            event: event.event,
            samples: samples(capture, at),
            precise: event.precise,
            closes: event.closes,
            coverage: event.coverage,
            doubts: event.findings,
            more_doubts: 0,
        })
        .collect()
}

impl ToolAnswer {
    /// Begins an answer about no capture.
    pub(super) fn of(tool: &str) -> Self {
        Self { tool: shorten(tool, 40), ..Self::default() }
    }

    /// Makes the answer of a tool that failed.
    pub(super) fn failed(tool: &str, failure: &Failure, next: Vec<NextCall>) -> Self {
        let advice = Some(failure.advice.clone()).filter(|advice| !advice.is_empty());
        Self { error: Some(failure.what.clone()), advice, next, ..Self::of(tool) }
    }

    /// Returns the answer as text of at most [`LARGEST_ANSWER`] bytes. `schema` is the one of the
    /// document in it.
    pub(super) fn text(mut self, schema: &Value) -> String {
        let whole = self.answer.take();
        for detail in 0..4 {
            let head = self.clone().bounded(detail);
            let Some(text) = head.print() else { break };
            let room = LARGEST_ANSWER.saturating_sub(text.len());
            let Some(whole) = &whole else {
                if room > 0 {
                    return text;
                }
                continue;
            };
            // Less of the head is better than a document without rows.
            if room < LARGEST_ANSWER / 2 && detail < 3 {
                continue;
            }
            for free in KEPT_FREE {
                let Some(bytes) = room.checked_sub(free) else { break };
                let Some((fitting, left_out)) = fit(whole, schema, bytes) else { break };
                let mut answer = head.clone();
                intervals(&fitting, "", &mut answer.intervals);
                answer.left_out = (!left_out.is_empty()).then_some(left_out);
                answer.answer = Some(fitting);
                match answer.print() {
                    Some(text) if text.len() <= LARGEST_ANSWER => return text,
                    _ => {}
                }
            }
        }
        let mut last = Self::of(&self.tool);
        last.error = Some(format!("the answer does not fit into {LARGEST_ANSWER} bytes"));
        last.advice = Some("Ask for fewer rows (limit), or for a part of the capture (filter).".to_owned());
        last.print().unwrap_or_default()
    }

    /// Limits everything but the document. With a higher `detail` less is kept.
    fn bounded(mut self, detail: usize) -> Self {
        let text = [240, 160, 100, 60][detail.min(3)];
        let (events, doubts, next) = [(4, 2, 5), (3, 1, 4), (2, 0, 3), (1, 0, 1)][detail.min(3)];
        let short = |text_in: &mut String| *text_in = shorten(text_in, text);
        self.error
            .iter_mut()
            .chain(&mut self.advice)
            .for_each(|text_in| *text_in = shorten(text_in, 3 * text));
        self.verdict.truncate(events);
        for event in &mut self.verdict {
            event.more_doubts = event.doubts.len().saturating_sub(doubts) as u64;
            event.doubts.truncate(doubts);
            event.doubts.iter_mut().for_each(short);
            event.event = shorten(&event.event, 60);
        }
        self.next.truncate(next);
        self.next.iter_mut().for_each(|next| short(&mut next.why));
        self
    }

    fn print(&self) -> Option<String> {
        document_line(self).ok().map(|text| text.trim_end().to_owned())
    }
}

/// Collects the first numbers of a document that have an interval: shares, estimates, percentiles.
fn intervals(value: &Value, at: &str, found: &mut Vec<AnswerInterval>) {
    if found.len() >= INTERVALS {
        return;
    }
    match value {
        Value::Object(fields) => {
            let number = |key: &str| fields.get(key).and_then(Value::as_f64);
            let ends = match fields.get("interval") {
                Some(Value::Array(ends)) => {
                    ends.first().and_then(Value::as_f64).zip(ends.get(1).and_then(Value::as_f64))
                }
                _ => number("low").zip(number("high")),
            };
            if let (Some(value), Some((low, high))) = (number("value").or_else(|| number("cycles")), ends) {
                found.push(AnswerInterval { of: shorten(at, 80), value, low, high });
                return;
            }
            fields.iter().for_each(|(key, field)| intervals(field, &format!("{at}/{key}"), found));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| intervals(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

/// Returns a document as JSON; `None` if it cannot be written.
pub(super) fn value_of<T: precise_views::document::Document>(content: &T) -> Option<Value> {
    serde_json::from_str(&document_line(content).ok()?).ok()
}

/// Returns a JSON value on one line, with characters that a terminal acts on escaped.
pub(super) fn line(value: &Value) -> String {
    safe_json::compact(value).unwrap_or_default()
}
