//! `precise explain`.

use std::path::{Path, PathBuf};

use clap::Args;
use precise::{
    render::TextOptions,
    views::{
        explain::{self, ExplainOptions},
        gates::GateResult,
    },
};

use super::{
    Outcome, Output,
    code::CodeArguments,
    form::{Form, Printers, read},
    require,
};

/// What commands read where they are not told otherwise.
const USUAL: &str = "precise.parquet";

#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// The capture; `-` is the standard input
    #[arg(value_name = "FILE", default_value = USUAL)]
    file: PathBuf,
    /// The same, as the other commands take it
    #[arg(short, long, value_name = "FILE", conflicts_with = "file", hide = true)]
    input: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    code: CodeArguments,
}

/// Says what stands out in a capture.
pub fn run(arguments: &ExplainArguments, out: &mut Output) -> Outcome {
    let file = arguments.input.as_ref().unwrap_or(&arguments.file);
    let capture = read(file)?;
    let options = ExplainOptions { file: named(file), ..ExplainOptions::default() };
    let view = explain::explain(&capture, &options, &mut arguments.code.files());
    let gates = arguments.form.gates(&capture);
    let printers = Printers {
        text: |text: &TextOptions| precise::views::explain::text::explain_text(&view, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&view, gates),
        csv: |separator: &str| precise::views::explain::text::explain_csv(&view, separator),
    };
    arguments.form.print(gates.as_deref(), out, printers)?;
    require::check(gates.as_deref())?;
    Ok(std::process::ExitCode::SUCCESS)
}

/// The file as a command names it; empty where it need not.
pub fn named(file: &Path) -> String {
    if file == Path::new(USUAL) { String::new() } else { file.display().to_string() }
}
