//! The form that results are printed in, and what the capture must be: the same flags for every
//! command that shows one.

use std::path::Path;

use clap::{ArgMatches, Args};
use precise::archive;
use precise::error::{Class, Failure};
use precise::model::Capture;
use precise::model::keys::Key;
use precise::views::document::Document;
use precise::views::gates::GateResult;
use precise::views::view::AnyAnswer;

use super::{
    Output,
    require::{self, RequireArguments},
};

/// `--json`.
#[derive(Debug, Args)]
pub struct JsonArguments {
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// `-x`, for results that are tables.
#[derive(Debug, Args)]
pub struct CsvArguments {
    /// Print values separated by SEPARATOR, for a spreadsheet: -x,
    #[arg(short = 'x', long, value_name = "SEPARATOR", conflicts_with = "json", help_heading = "Output")]
    field_separator: Option<String>,
    /// Print text; the default
    #[arg(long, hide = true)]
    stdio: bool,
}

/// The flags of a result that is a table, and of what the capture must be.
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
    /// The form that they ask for.
    pub fn form(&self) -> Form {
        Form { json: self.json.json, separator: self.csv.field_separator.clone() }
    }

    /// What became of the gates; `None` where nothing is required.
    pub fn gates(&self, capture: &Capture) -> Option<Vec<GateResult>> {
        self.require.evaluate(capture)
    }
}

/// The form of a result.
#[derive(Clone, Debug)]
pub struct Form {
    json: bool,
    separator: Option<String>,
}

impl Form {
    /// The form that a command's arguments ask for.
    pub fn of(matches: &ArgMatches) -> Self {
        let separator = matches.try_get_one::<String>("field_separator").ok().flatten().cloned();
        Self { json: matches.get_flag("json"), separator }
    }

    /// Whether lines of separated values are asked for.
    pub fn is_csv(&self) -> bool {
        self.separator.is_some()
    }

    /// Whether text is asked for.
    pub fn is_text(&self) -> bool {
        !self.json && !self.is_csv()
    }

    /// Prints a view's answer in the form that was asked for.
    pub fn print_answer(
        &self,
        gates: Option<&[GateResult]>,
        out: &mut Output,
        answer: &dyn AnyAnswer,
    ) -> Result<(), Failure> {
        let printed = match &self.separator {
            Some(separator) => answer.csv(separator),
            None if self.json => answer.json(gates).map_err(no_json)?,
            None => {
                let text = answer.text(&out.text);
                match gates.and_then(require::all_hold) {
                    Some(line) => text + &precise::model::text::wrap(&line, out.text.width, 2) + "\n",
                    None => text,
                }
            }
        };
        out.print(&printed)
    }
}

/// A result as a JSON document.
pub fn json<T: Document>(content: &T, gates: Option<&[GateResult]>) -> Result<String, Failure> {
    precise::views::document::document(content, gates).map_err(no_json)
}

fn no_json(error: serde_json::Error) -> Failure {
    Failure::new(Class::Failed, format!("the result cannot be written as JSON: {error}"))
}

/// Reads a capture: a file, or of an archive.
pub fn read(reference: &Path) -> Result<Capture, Failure> {
    archive::read(reference)
}

/// The long help of a `--by`: what it does, which keys there are, and what else there is to say.
pub fn by_help(what: &str, more: &str) -> String {
    let space = if more.is_empty() { "" } else { " " };
    format!("{what}\n\nAll keys: {}. perf's names work as well.{space}{more}", Key::list())
}
