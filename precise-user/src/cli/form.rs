//! The form that results are printed in, and what the capture must be: the same flags for every command that shows one.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use precise::archive;
use precise::error::{Class, Failure};
use precise::model::Capture;
use precise::model::keys::Key;
use precise::render::TextOptions;
use precise::views::ViewError;
use precise::views::document::Document;
use precise::views::gates::GateResult;

use super::{
    Outcome, Output,
    require::{self, RequireArguments},
};

/// The form of a result.
#[derive(Debug, Args)]
pub struct Form {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print values separated by this, for a spreadsheet: -x,
    #[arg(short = 'x', long, value_name = "SEPARATOR", conflicts_with = "json")]
    field_separator: Option<String>,
    /// Print text; the default
    #[arg(long, hide = true)]
    stdio: bool,
    #[command(flatten)]
    require: RequireArguments,
}

/// What a command can make of its result.
pub struct Printers<T, J, C> {
    /// Text.
    pub text: T,
    /// JSON, with what became of the gates.
    pub json: J,
    /// Lines of separated values.
    pub csv: C,
}

impl Form {
    /// What became of the gates; `None` where nothing is required.
    pub fn gates(&self, capture: &Capture) -> Option<Vec<GateResult>> {
        self.require.evaluate(capture)
    }

    /// Whether lines of separated values are asked for.
    pub fn is_csv(&self) -> bool {
        self.field_separator.is_some()
    }

    /// Prints a result in the form that was asked for.
    pub fn print<T, J, C>(
        &self,
        gates: Option<&[GateResult]>,
        out: &mut Output,
        printers: Printers<T, J, C>,
    ) -> Result<(), Failure>
    where
        T: FnOnce(&TextOptions) -> String,
        J: FnOnce(Option<&[GateResult]>) -> Result<String, serde_json::Error>,
        C: FnOnce(&str) -> String,
    {
        let printed = match &self.field_separator {
            Some(separator) => (printers.csv)(separator),
            None if self.json => (printers.json)(gates).map_err(no_json)?,
            None => {
                let text = (printers.text)(&out.text);
                match gates.and_then(require::all_hold) {
                    Some(line) => text + &precise::model::text::wrap(&line, out.text.width, 2) + "\n",
                    None => text,
                }
            }
        };
        out.print(&printed)
    }
}

/// A capture, and the form in which a view of it is printed.
#[derive(Debug, Args)]
pub struct ViewArguments {
    /// The capture; `-` is the standard input
    #[arg(short, long, value_name = "FILE", default_value = "precise.parquet")]
    input: PathBuf,
    #[command(flatten)]
    pub form: Form,
}

impl ViewArguments {
    /// Reads the capture.
    pub fn capture(&self) -> Result<Capture, Failure> {
        read(&self.input)
    }

    /// Fails where a gate does not hold.
    pub fn check(&self, capture: &Capture) -> Outcome {
        require::check(self.form.gates(capture).as_deref())?;
        Ok(ExitCode::SUCCESS)
    }

    /// Prints a view of the capture, then fails where a gate does not hold.
    pub fn print<T, J, C>(&self, capture: &Capture, out: &mut Output, printers: Printers<T, J, C>) -> Outcome
    where
        T: FnOnce(&TextOptions) -> String,
        J: FnOnce(Option<&[GateResult]>) -> Result<String, serde_json::Error>,
        C: FnOnce(&str) -> String,
    {
        let gates = self.form.gates(capture);
        self.form.print(gates.as_deref(), out, printers)?;
        require::check(gates.as_deref())?;
        Ok(ExitCode::SUCCESS)
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

/// The help of a `--by` that takes every key: what it does, the keys, and what else there is to say.
pub fn by_help(what: &str, more: &str) -> String {
    format!("{what}: {}; perf's names work as well{more}", Key::list())
}

/// The keys of `--by`.
pub fn keys(by: Option<&str>) -> Result<Option<Vec<Key>>, Failure> {
    by.map(Key::parse_list).transpose().map_err(|error| Failure::new(Class::Usage, error.to_string()))
}

/// A view that has no answer, as a failure.
pub fn no_answer(error: ViewError) -> Failure {
    Failure::new(Class::Usage, error.to_string())
}
