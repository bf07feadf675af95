//! What is generated from the definition of the command line: manual pages, completions, the table of exit codes.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use clap_complete::Shell;
use precise::error::{Class, Failure};
use precise::text::exit_codes::ExitCodes;
use precise::views::registry;
use precise::views::view::{Description, Example};

use super::{Outcome, Output, form::json, output};

#[derive(Debug, Args)]
pub struct ExitCodesArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Args)]
pub struct ManArguments {
    /// Write one page for each command into this folder
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Prints the table of exit codes.
pub fn exit_codes(arguments: &ExitCodesArguments, out: &mut Output) -> Outcome {
    let table = ExitCodes::all();
    if arguments.json {
        out.print(&json(&table, None)?)?;
    } else {
        let mut text = String::from("code  meaning\n");
        for precise::text::exit_codes::ExitCode { code, meaning } in table.codes {
            text.push_str(&format!("{code:>4}  {meaning}\n"));
        }
        text.push_str(
            "\n`record -- command` ends with the command's own code when precise itself\nsucceeds.\n",
        );
        out.print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a completion script.
pub fn completions(arguments: &CompletionsArguments, out: &mut Output) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::command(), "precise", &mut script);
    out.print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the main manual page, or writes all of them.
pub fn man(arguments: &ManArguments, out: &mut Output) -> Outcome {
    let page = |command: clap::Command| {
        let examples = registry::find(command.get_name()).map(|view| examples(&view.description()));
        // What --help has at its end are the examples, which have a section of their own here.
        let command = if examples.is_some() { command.after_long_help(None) } else { command };
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map(|()| [page, examples.unwrap_or_default().into_bytes()].concat())
            .map_err(|error| Failure::new(Class::Failed, format!("the manual page cannot be made: {error}")))
    };
    let main = super::command();
    let Some(folder) = &arguments.output else {
        out.print(&String::from_utf8_lossy(&page(main)?))?;
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::new(Class::Failed, format!("{} cannot be made: {error}", folder.display()))
    })?;
    for sub in main.get_subcommands() {
        let name = format!("precise-{}", sub.get_name());
        // Pages are found as `man precise-record`.
        let sub = sub.clone().display_name(name.clone()).bin_name(name.replace('-', " "));
        output::write_file(&folder.join(format!("{name}.1")), &page(sub)?)?;
    }
    output::write_file(&folder.join("precise.1"), &page(main)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The section of a manual page that has a view's examples.
fn examples(about: &Description) -> String {
    let mut section = String::from(".SH EXAMPLES\n");
    for Example { command, says } in about.examples {
        section += &format!(".TP\n\\fB{}\\fR\n{}\n", roff(command), roff(says));
    }
    section
}

/// A text in which roff finds nothing to do; none of its lines begins with a control character.
fn roff(text: &str) -> String {
    format!("\\&{}", text.replace('\\', "\\e").replace('-', "\\-"))
}
