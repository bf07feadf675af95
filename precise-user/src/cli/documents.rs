//! Commands whose output is generated from the definition of the command line: manual pages,
//! completions, and the table of exit codes.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use precise::error::{ExitClass, Failure};
use precise::text::exit_codes::ExitCodes;

use super::{CommandResult, Output, form::json, output};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:\n\
  precise exit-codes\n\
  precise exit-codes --json")]
pub struct ExitCodesArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:\n\
  precise completions bash > /etc/bash_completion.d/precise\n\
  precise completions fish > ~/.config/fish/completions/precise.fish")]
pub struct CompletionsArguments {
    /// Print the completion script of this shell
    shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:\n\
  precise man | man -l -                     show the main page\n\
  precise man -o /usr/local/share/man/man1   install the pages of all commands")]
pub struct ManArguments {
    /// Write one page per command to this folder
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Prints the table of exit codes.
pub fn exit_codes(arguments: &ExitCodesArguments, out: &mut Output) -> CommandResult {
    let table = ExitCodes::all();
    if arguments.json {
        out.print(&json(&table, None)?)?;
    } else {
        let mut text = String::from("code  meaning\n");
        for precise::text::exit_codes::ExitCode { code, meaning } in table.codes {
            text.push_str(&format!("{code:>4}  {meaning}\n"));
        }
        text.push_str("\n`record -- COMMAND` exits with the code of COMMAND if precise itself succeeds.\n");
        out.print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a completion script.
pub fn completions(arguments: &CompletionsArguments, out: &mut Output) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::command(), "precise", &mut script);
    out.print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Heading of the examples in `after_help`.
const EXAMPLES: &str = "Examples:\n";

/// Returns a manual page: clap's description of the command, its examples, and the exit codes.
fn page(command: &clap::Command) -> Result<Vec<u8>, Failure> {
    let help = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let (examples, more) = split_help(&help);
    let failed = |error: std::io::Error| {
        Failure::new(ExitClass::Failed, format!("cannot make the manual page: {error}"))
    };
    let has_options = command.get_arguments().any(|argument| !argument.is_hide_set());
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    let mut write = || -> std::io::Result<()> {
        man.render_title(&mut page)?;
        man.render_name_section(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        if has_options {
            man.render_options_section(&mut page)?;
        }
        if command.has_subcommands() {
            man.render_subcommands_section(&mut page)?;
        }
        let mut roff = Roff::default();
        if !examples.is_empty() {
            roff.control("SH", ["EXAMPLES"]).control("nf", []);
            examples.lines().for_each(|line| _ = roff.text([roman(line)]));
            roff.control("fi", []);
        }
        if !more.is_empty() {
            roff.control("SH", ["NOTES"]);
            more.lines().for_each(|line| _ = roff.text([roman(line)]));
        }
        roff.control("SH", ["EXIT STATUS"]);
        for code in ExitCodes::all().codes {
            roff.control("TP", []).text([bold(code.code.to_string())]).text([roman(code.meaning)]);
        }
        if command.get_version().is_some() {
            roff.to_writer(&mut page)?;
            return man.render_version_section(&mut page);
        }
        roff.to_writer(&mut page)
    };
    write().map_err(failed)?;
    Ok(page)
}

/// Splits an `after_help` into the examples, without their indentation, and the paragraphs after
/// them.
fn split_help(help: &str) -> (String, &str) {
    let Some(rest) = help.strip_prefix(EXAMPLES) else { return (String::new(), help) };
    let (examples, more) = rest.split_once("\n\n").unwrap_or((rest, ""));
    let lines: Vec<&str> = examples.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    (lines.join("\n"), more)
}

/// Writes the page of a command. Pages have names such as `precise-record`, so that `man
/// precise-record` finds them.
fn write_page(command: &clap::Command, name: &str, folder: &std::path::Path) -> Result<(), Failure> {
    let command = command.clone().display_name(name.to_owned()).bin_name(name.replace('-', " "));
    output::write_file(&folder.join(format!("{name}.1")), &page(&command)?)
}

/// Prints the main manual page, or writes the pages of all commands.
pub fn man(arguments: &ManArguments, out: &mut Output) -> CommandResult {
    let main = super::command();
    let Some(folder) = &arguments.output else {
        out.print(&String::from_utf8_lossy(&page(&main)?))?;
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::new(ExitClass::Failed, format!("cannot create {}: {error}", folder.display()))
    })?;
    for sub in main.get_subcommands() {
        let name = format!("precise-{}", sub.get_name());
        write_page(sub, &name, folder)?;
        for inner in sub.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            write_page(inner, &format!("{name}-{}", inner.get_name()), folder)?;
        }
    }
    output::write_file(&folder.join("precise.1"), &page(&main)?)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_pages_have_examples_and_exit_codes() {
        let help = "Examples:\n  precise a\n    --b\n\nMore of it.";
        assert_eq!(split_help(help), ("precise a\n  --b".to_owned(), "More of it."));
        assert_eq!(split_help("More of it."), (String::new(), "More of it."));
        let main = super::super::command();
        let record = main.get_subcommands().find(|command| command.get_name() == "record").unwrap();
        let page = String::from_utf8(page(record).unwrap()).unwrap();
        for wanted in [
            ".SH EXAMPLES\n.nf\n",
            "precise record \\-\\- ./program",
            ".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\n",
        ] {
            assert!(page.contains(wanted), "{wanted}\n{page}");
        }
    }
}
