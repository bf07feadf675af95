//! `precise schema`.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use precise::error::{Class, Failure};
use precise::model::text::Cut;
use precise::render::table::{Column, Table};
use precise::text::schema;

use super::{Outcome, Output};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["name", "list"]))]
pub struct SchemaArguments {
    /// What `kind` says in the document: report, mem, check, …
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// List the kinds of documents, the versions of their schemas and the commands that print them
    #[arg(short, long)]
    list: bool,
}

/// Prints a schema, or the list of them.
pub fn run(arguments: &SchemaArguments, out: &mut Output) -> Outcome {
    let text = match &arguments.name {
        None => list(out),
        Some(name) => {
            let kind = schema::find(name).ok_or_else(|| {
                Failure::new(Class::Usage, format!("there is no document {name:?}"))
                    .advise("`precise schema --list` shows all.")
            })?;
            format!("{:#}\n", (kind.schema)())
        }
    };
    out.print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn list(out: &Output) -> String {
    let columns = [
        Column::text("Name", Cut::End),
        Column::number("Version"),
        Column::text("Printed by precise", Cut::End),
    ];
    let mut table = Table::new(columns.to_vec());
    for kind in schema::kinds() {
        table.row(vec![kind.name.to_owned(), kind.version.to_string(), kind.command.into_owned()]);
    }
    table.render(out.text.width, out.text.style)
}
