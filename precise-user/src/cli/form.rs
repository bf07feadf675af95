//! The output form of results, and the requirements on the capture. Every command that shows a
//! result has these flags.

use clap::{ArgMatches, Args};
use precise::error::{ExitClass, Failure};
use precise::model::digits::counted;
use precise::model::keys::Key;
use precise::model::{Capture, Projection, Selection, text};
use precise::views::document::Document;
use precise::views::gates::GateResult;
use precise::views::samples;
use precise::views::stats::MIN_SAMPLES;
use precise::views::view::AnyAnswer;

use super::{
    Output,
    output::say,
    require::{self, RequireArguments},
};

/// The flag `--json`.
#[derive(Debug, Args)]
pub struct JsonArguments {
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// The flag `-x`, for results that are tables.
#[derive(Debug, Args)]
pub struct CsvArguments {
    /// Print values separated by SEPARATOR, for a spreadsheet: -x,
    #[arg(short = 'x', long, value_name = "SEPARATOR", conflicts_with = "json", help_heading = "Output")]
    field_separator: Option<String>,
    /// Print text; the default
    #[arg(long, hide = true)]
    stdio: bool,
}

/// The flags of a result that is a table, and of the requirements on the capture.
#[derive(Debug, Args)]
pub struct FormArguments {
    #[command(flatten)]
    json: JsonArguments,
    #[command(flatten)]
    csv: CsvArguments,
    #[command(flatten)]
    require: RequireArguments,
}

impl FormArguments {
    /// Returns the form that the flags ask for.
    pub fn form(&self) -> Form {
        Form { json: self.json.json, separator: self.csv.field_separator.clone() }
    }

    /// Returns whether something is required.
    pub fn has_gates(&self) -> bool {
        !self.require.is_empty()
    }

    /// Returns the parts of rows that decide the gates.
    pub fn reads(&self) -> Projection {
        self.require.reads()
    }

    /// Evaluates the gates; `None` if nothing is required.
    pub fn gates(&self, capture: &Capture) -> Option<Vec<GateResult>> {
        self.require.evaluate(capture)
    }
}

/// The output form of a result.
#[derive(Clone, Debug)]
pub struct Form {
    json: bool,
    separator: Option<String>,
}

impl Form {
    /// Returns the form that a command's arguments ask for.
    pub fn of(matches: &ArgMatches) -> Self {
        let separator = matches.try_get_one::<String>("field_separator").ok().flatten().cloned();
        Self { json: matches.get_flag("json"), separator }
    }

    /// Returns whether CSV is requested.
    pub fn is_csv(&self) -> bool {
        self.separator.is_some()
    }

    /// Returns whether text is requested.
    pub fn is_text(&self) -> bool {
        !self.json && !self.is_csv()
    }

    /// Prints a view's answer in this form.
    pub fn print_answer(
        &self,
        gates: Option<&[GateResult]>,
        out: &mut Output,
        answer: &dyn AnyAnswer,
        selection: Option<&Selection>,
    ) -> Result<(), Failure> {
        let printed = match &self.separator {
            Some(separator) => {
                // A table of numbers has no place for a sentence.
                if let Some(selection) = selection {
                    say(&selection.text);
                }
                answer.csv(separator)
            }
            None if self.json => answer.json(gates, selection).map_err(no_json)?,
            None => {
                let head = selection.map(|selection| text::wrap(&selection.text, out.text.width, 0) + "\n\n");
                let whole = head.unwrap_or_default() + &answer.text(&out.text);
                let whole = match gates.and_then(require::all_hold) {
                    Some(line) => whole + &text::wrap(&line, out.text.width, 2) + "\n",
                    None => whole,
                };
                return out.page(&whole);
            }
        };
        out.print(&printed)
    }
}

/// Says which events of a capture have too few samples to be ordered, for forms that are numbers
/// only.
pub fn say_few(capture: &Capture) {
    for (index, event) in capture.meta.events.iter().enumerate() {
        let samples = samples(capture, index);
        if (1..MIN_SAMPLES).contains(&samples) {
            say(&format!(
                "{}: only {}, so the rows are in no reliable order, for which at least {MIN_SAMPLES} are needed",
                event.name,
                counted(samples, "sample")
            ));
        }
    }
}

/// Serializes a result as a JSON document.
pub fn json<T: Document>(content: &T, gates: Option<&[GateResult]>) -> Result<String, Failure> {
    precise::views::document::document(content, gates).map_err(no_json)
}

/// Serializes a result about a capture as a JSON document.
pub fn json_about<T: Document>(
    content: &T,
    gates: Option<&[GateResult]>,
    capture: &Capture,
) -> Result<String, Failure> {
    let selection = capture.meta.selection.as_ref();
    precise::views::document::document_about(content, gates, selection).map_err(no_json)
}

fn no_json(error: serde_json::Error) -> Failure {
    Failure::new(ExitClass::Failed, format!("the result cannot be written as JSON: {error}"))
}

/// Returns the long help of a `--by` flag: what it does, the list of keys, and the text `more`.
pub fn by_help(what: &str, more: &str) -> String {
    let space = if more.is_empty() { "" } else { " " };
    format!("{what}\n\nAll keys: {}. perf's names work as well.{space}{more}", Key::list())
}
