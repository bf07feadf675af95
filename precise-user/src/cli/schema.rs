//! `precise schema`.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use precise::error::{ExitClass, Failure};
use precise::model::text::Cut;
use precise::render::table::{Table, TableColumn};
use precise::text::schema;

use super::{CommandResult, Output};

const AFTER_HELP: &str = "\
Examples:
  precise schema --list
  precise schema report > report-1.json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[command(group = ArgGroup::new("what").required(true).args(["name", "list"]))]
pub struct SchemaArguments {
    /// Print the schema of this document: report, mem, check, … (its field `kind`)
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// List all documents with the versions of their schemas and the commands that print them
    #[arg(short, long)]
    list: bool,
}

/// Prints a schema, or the list of all schemas.
pub fn run(arguments: &SchemaArguments, out: &mut Output) -> CommandResult {
    let text = match &arguments.name {
        None => list(out),
        Some(name) => {
            let kind = schema::find(name).ok_or_else(|| {
                Failure::new(ExitClass::Usage, format!("unknown document {name:?}"))
                    .advise("`precise schema --list` shows all documents.")
            })?;
            schema::text(&kind).ok_or_else(|| {
                let file = schema::file_name(&kind);
                Failure::new(ExitClass::Failed, format!("this build carries no {file}"))
                    .advise("Build it again after `cargo test -p precise-tests --test files schemas`.")
            })?
        }
    };
    out.print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn list(out: &Output) -> String {
    let columns = [
        TableColumn::text("Name", Cut::End),
        TableColumn::number("Version"),
        TableColumn::text("Printed by precise", Cut::End),
    ];
    let mut table = Table::new(columns.to_vec());
    for kind in schema::kinds() {
        table.row(vec![kind.name.to_owned(), kind.version.to_string(), kind.command.into_owned()]);
    }
    table.render(out.text.width, out.text.style)
}
