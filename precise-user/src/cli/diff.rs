//! `precise diff`.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use precise::error::{Class, Failure};
use precise::model::keys::Key;
use precise::render::TextOptions;
use precise::views::diff;
use precise::views::diff::DiffOptions;
use precise::views::gates::GateResult;

use super::{
    Outcome, Output,
    form::{Form, Printers, keys, read},
    require,
};

#[derive(Debug, Args)]
pub struct DiffArguments {
    /// The capture to compare with: before the change
    #[arg(value_name = "BASE")]
    base: PathBuf,
    /// The capture to compare: after the change
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Compare by these: function, line, level, cgroup, variable, …
    #[arg(long, value_name = "KEYS", default_value = "function")]
    by: String,
    /// Show this many entries of each event, those that changed most first
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    form: Form,
}

/// Compares two captures. Both must hold what is required.
pub fn run(arguments: &DiffArguments, out: &mut Output) -> Outcome {
    let by = keys(Some(&arguments.by))?.unwrap_or_else(|| vec![Key::Function]);
    let options = DiffOptions { by, limit: Some(arguments.limit), ..DiffOptions::default() };
    let (base, new) = (read(&arguments.base)?, read(&arguments.new)?);
    let view =
        diff::diff(&base, &new, &options).map_err(|error| Failure::new(Class::Usage, error.to_string()))?;
    let gates = arguments.form.gates(&base).zip(arguments.form.gates(&new));
    let gates = gates.map(|(base, new)| [base, new].concat());
    let printers = Printers {
        text: |text: &TextOptions| precise::views::diff::text::diff_text(&view, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&view, gates),
        csv: |separator: &str| precise::views::diff::text::diff_csv(&view, separator),
    };
    arguments.form.print(gates.as_deref(), out, printers)?;
    require::check(gates.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
