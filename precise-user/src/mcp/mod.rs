//! A server for agents, over the Model Context Protocol: its tools are the views, over a folder, a
//! file or a bucket of captures, or a running `serve`. It reads, unless it is allowed to record.
//!
//! A line of the client goes through [`protocol`]; `tools` makes options of arguments; `captures`
//! reads; `answers` adds verdict, intervals and what to ask next, and `fit` makes the view's
//! document small enough.
//!
//! The client is not trusted, and neither are the captures. Lines, arguments, answers and memory
//! are bounded, and a capture can be named only by a name that the list of captures has.

mod answers;
mod captures;
mod fit;
mod fleet;
#[cfg(test)]
mod fleet_tests;
mod next;
pub mod protocol;
mod record;
#[cfg(feature = "s3")]
mod served;
#[cfg(test)]
#[cfg(feature = "s3")]
mod served_tests;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use precise_model::keys::Key;
use precise_model::text::sanitize;
use precise_model::{Capture, first_touch};
use precise_sampling::serve::Token;
use precise_views::code::Code;
use precise_views::typing;
use precise_views::view::{AnyView, Input, NoAnswer, Why};
use serde_json::{Map, Value, json};

pub use answers::{AnswerInterval, EventVerdict, LARGEST_ANSWER, ToolAnswer};
pub use captures::{CaptureList, EventCount, ListedCapture};
pub use fit::{AnswerCuts, CutList};
pub use next::NextCall;
pub use record::{LONGEST, LONGEST_TOGETHER, RecordRequest};

use crate::archive::StoredFile;
use crate::asking::CodeTypes;
use crate::error::{ExitClass, Failure};
use captures::PlaceCaptures;
use fleet::FleetTool;
use next::NextCalls;

/// Columns for views that choose their resolution by the width of a text: an answer is small.
const COLUMNS: usize = 60;

/// An argument that every view has beside its options: it narrows the capture.
#[derive(Clone, Debug)]
pub struct ToolArgument {
    /// Name of the argument.
    pub name: String,
    /// Its description.
    pub help: String,
    /// Whether it takes several values.
    pub several: bool,
}

/// What the tools need from the program around them.
pub trait ToolHost {
    /// Returns the schema of a kind of document.
    fn schema(&self, kind: &str) -> Option<Value>;

    /// Returns the arguments that narrow captures.
    fn narrowing(&self) -> Vec<ToolArgument>;

    /// Narrows a capture by the values of these arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is not valid, or if the capture has not recorded what it tests.
    fn narrow(&self, capture: Capture, values: &BTreeMap<String, Vec<String>>) -> Result<Capture, Failure>;

    /// Returns access to the code on this machine.
    ///
    /// # Errors
    ///
    /// Returns an error if a folder of sources cannot be opened.
    fn code(&self) -> Result<Box<dyn Code>, Failure>;

    /// Records, and writes the capture.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no capture in the end.
    fn record(&self, request: &RecordRequest) -> Result<(), Failure>;
}

/// The tools over one place.
pub struct ToolServer<H> {
    host: H,
    captures: PlaceCaptures,
    records: bool,
    /// Seconds that recordings took.
    recorded: u64,
}

/// The answer of a call: its text, and whether it is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The answer, a JSON document of at most [`LARGEST_ANSWER`] bytes.
    pub text: String,
    /// Whether the question could not be answered.
    pub is_error: bool,
}

/// Captures to ask about, and in which way they are prepared.
struct Asked {
    file: StoredFile,
    base: Option<StoredFile>,
    way: String,
    keys: Vec<Key>,
    narrowing: BTreeMap<String, Vec<String>>,
    about: Map<String, Value>,
}

impl<H: ToolHost> ToolServer<H> {
    /// Opens a place: a folder, a capture, `s3://BUCKET/PREFIX`, or the address of a running
    /// `serve`, which may want a token. With `records` there is a tool that records into the
    /// folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the place does not exist, or if it cannot take recordings and must.
    pub fn open(place: &Path, token: Option<&Token>, records: bool, host: H) -> Result<Self, Failure> {
        let captures = PlaceCaptures::open(place, token)?;
        if records && captures.folder().is_none() {
            let what = format!("{} is not a folder, so recordings have no place in it", captures.place());
            return Err(Failure::new(ExitClass::Usage, what)
                .advise("Use a folder as the place, or leave the captures as they are."));
        }
        Ok(Self { host, captures, records, recorded: 0 })
    }

    /// Returns the tools, as `tools/list` has them.
    pub fn tools(&self) -> Vec<Value> {
        tools::definitions(&self.host.narrowing(), self.records, self.captures.fleet().is_some())
    }

    /// Returns what a client should know before it asks.
    pub fn instructions(&self) -> String {
        tools::instructions(&self.captures.place(), self.records, self.captures.fleet().is_some())
    }

    /// Calls a tool; `None` if there is no tool with this name.
    pub fn call(&mut self, tool: &str, arguments: &Map<String, Value>) -> Option<ToolResult> {
        let answer = match (tool, precise_views::registry::find(tool)) {
            ("captures", _) => self.list(arguments),
            ("record", _) => self.record(arguments),
            (_, Some(view)) => self.view(view, arguments),
            _ => self.fleet(FleetTool::find(tool)?, arguments),
        };
        let answer = answer.unwrap_or_else(|failure| self.failed(tool, &failure));
        let kind = answer.answer.as_ref().and_then(|answer| answer["kind"].as_str());
        let schema = kind.and_then(|kind| self.host.schema(kind)).unwrap_or_default();
        Some(ToolResult { is_error: answer.error.is_some(), text: answer.text(&schema) })
    }

    /// Makes the answer for a question that failed, before a capture was asked.
    fn failed(&mut self, tool: &str, failure: &Failure) -> ToolAnswer {
        let next = match tool {
            "captures" => Vec::new(),
            _ => vec![NextCall::of("captures", json!({}), "which captures there are")],
        };
        ToolAnswer::failed(tool, failure, next)
    }

    fn list(&mut self, arguments: &Map<String, Value>) -> Result<ToolAnswer, Failure> {
        let skip = tools::skip(arguments)?;
        let list = self.captures.describe(skip)?;
        let mut next = next::first_calls(&list.captures);
        let shown = list.skipped + list.captures.len() as u64;
        if shown < list.total {
            next.push(NextCall::of("captures", json!({ "skip": shown }), "older captures"));
        }
        if self.captures.fleet().is_some() {
            next.push(NextCall::of(FleetTool::Report.name(), json!({}), "the services of all machines"));
        }
        if self.records {
            next.push(NextCall::of("record", json!({}), "what the machine does now"));
        }
        let answer = answers::value_of(&list);
        Ok(ToolAnswer { next, answer, ..ToolAnswer::of("captures") })
    }

    /// Asks the tables of a fleet.
    fn fleet(&self, tool: FleetTool, arguments: &Map<String, Value>) -> Result<ToolAnswer, Failure> {
        let place = self.captures.fleet().ok_or_else(|| {
            let what = format!("{} has no tables of a fleet", self.captures.place());
            Failure::new(ExitClass::Usage, what)
                .advise("`precise fleet compact PLACE` makes them of the captures of a folder or a bucket.")
        })?;
        let mut code = self.host.code()?;
        tool.ask(place, arguments, &mut CodeTypes(&mut *code))
    }

    fn record(&mut self, arguments: &Map<String, Value>) -> Result<ToolAnswer, Failure> {
        let folder = self.captures.folder().filter(|_| self.records);
        let folder = folder.ok_or_else(|| {
            Failure::new(
                ExitClass::Permission,
                "this server only reads: it was started without the right to record",
            )
            .advise("Ask the user to start it with --allow-record, or to run `precise record`.")
        })?;
        let request = record::request(arguments, folder, self.recorded)?;
        let began = Instant::now();
        let recorded = self.host.record(&request);
        self.recorded += began.elapsed().as_secs().max(1);
        self.captures.look_again();
        recorded?;
        let name = request.output.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut about = Map::new();
        about.extend(name.map(|name| ("capture".to_owned(), json!(name))));
        let explain = precise_views::registry::find("explain")
            .ok_or_else(|| Failure::new(ExitClass::Failed, "this precise has no view `explain`"))?;
        Ok(ToolAnswer { tool: "record".to_owned(), ..self.view(explain, &about)? })
    }

    fn view(&mut self, view: &dyn AnyView, arguments: &Map<String, Value>) -> Result<ToolAnswer, Failure> {
        let description = view.description();
        let asked = tools::parse(&description, &self.host.narrowing(), arguments)?;
        view.check(&asked.values).map_err(failure_of)?;
        let file = self.captures.find(asked.capture.as_deref())?;
        let base = asked.base.as_deref().map(|base| self.captures.find(Some(base))).transpose()?;
        let mut about = asked.narrowing_arguments;
        about.insert("capture".to_owned(), json!(file.name));
        if let Some(base) = &base {
            about.insert("base".to_owned(), json!(base.name));
        }
        let keys = view.keys(&asked.values).map_err(failure_of)?;
        // Who touched pages first is found before samples are left out.
        let way = (&asked.narrowing, keys.iter().any(|key| key.needs_touches()));
        let way = serde_json::to_string(&way).unwrap_or_default();
        let asked_about = Asked { file, base, way, keys, narrowing: asked.narrowing, about };
        let mut capture = self.take(&asked_about.file, &asked_about)?;
        let base = asked_about.base.as_ref().map(|base| self.take(base, &asked_about)).transpose();
        let answered = base.and_then(|mut base| {
            let mut code = self.host.code()?;
            base.iter_mut()
                .chain([&mut capture])
                .for_each(|capture| typing::look_up(capture, &asked_about.keys, &mut *code));
            let mut input = Input {
                capture: &capture,
                base: base.as_ref(),
                file: String::new(),
                code: &mut *code,
                columns: Some(COLUMNS),
            };
            let answer = self.answer(view, &mut input, &asked.values, &asked_about);
            if let Some((file, base)) = asked_about.base.clone().zip(base) {
                self.captures.put_back(file, asked_about.way.clone(), base);
            }
            answer
        });
        self.captures.put_back(asked_about.file, asked_about.way, capture);
        answered
    }

    fn take(&mut self, file: &StoredFile, asked: &Asked) -> Result<Capture, Failure> {
        let host = &self.host;
        self.captures.take(file, &asked.way, |mut capture| {
            first_touch::look_up(&mut capture, &asked.keys);
            host.narrow(capture, &asked.narrowing)
        })
    }

    /// Asks a view, and adds to its answer what an agent needs.
    fn answer(
        &self,
        view: &dyn AnyView,
        input: &mut Input<'_>,
        values: &precise_views::view::OptionValues,
        asked: &Asked,
    ) -> Result<ToolAnswer, Failure> {
        let name = view.description().name;
        let following =
            NextCalls { view: name, capture: input.capture, about: &asked.about, records: self.records };
        let mut answer = ToolAnswer::of(name);
        let base = asked.base.iter().map(|base| base.name.clone());
        answer.captures = base.chain([asked.file.name.clone()]).collect();
        answer.verdict = answers::verdict(input.capture);
        let selection = input.capture.meta.selection.as_ref();
        match view.answer(input, values) {
            Ok(answered) => {
                let text = answered.json(None, selection).ok();
                let document: Option<Value> = text.and_then(|text| serde_json::from_str(&text).ok());
                answer.next = following.calls(document.as_ref().unwrap_or(&Value::Null));
                answer.answer = document;
            }
            Err(none) => {
                let failure = failure_of(none);
                answer.next = following.after_error(&failure.to_string());
                if name != "explain" {
                    let about = Value::Object(asked.about.clone());
                    let about = json!({ "capture": about["capture"] });
                    answer.next.push(NextCall::of("explain", about, "what this capture can tell"));
                }
                answer.error = Some(failure.what);
                answer.advice = Some(failure.advice).filter(|advice| !advice.is_empty());
            }
        }
        Ok(answer)
    }
}

/// Converts a view's error into a failure.
fn failure_of(none: NoAnswer) -> Failure {
    let class = match none.why {
        Why::Usage => ExitClass::Usage,
        Why::Damaged => ExitClass::BadFile,
        Why::NoSamples => ExitClass::NoSamples,
        Why::Failed => ExitClass::Failed,
    };
    let failure = Failure::new(class, sanitize(&none.text));
    match none.advice {
        Some(advice) => failure.advise(advice),
        None => failure,
    }
}
