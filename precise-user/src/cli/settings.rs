//! Settings of a command from a TOML file. Each key is the long name of a flag, so that flags and
//! keys cannot differ: the file becomes words of a command line, which clap parses.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use precise::error::{Class, Failure};
use precise::model::suggest::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The largest file, in bytes.
const LARGEST: u64 = 1 << 20;
/// Flags that are about the file itself, or about the look of help.
const NO_KEYS: [&str; 7] = ["config", "check-config", "print-config", "help", "color", "width", "no-pager"];

/// Returns the flags of a command that a file can set, in the order of the help.
fn keys(command: &Command) -> impl Iterator<Item = &Arg> {
    let has_key =
        |arg: &&Arg| arg.get_long().is_some_and(|long| !NO_KEYS.contains(&long)) && !arg.is_hide_set();
    command.get_arguments().filter(has_key)
}

fn key(arg: &Arg) -> &str {
    arg.get_long().unwrap_or_default()
}

/// Returns whether the flag stands alone, without a value.
fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// Returns whether the flag may be given several times.
fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append) || arg.get_value_delimiter().is_some()
}

/// Parses `words`, a command line without the name of the command, together with the settings of
/// the file. The words take precedence.
///
/// # Errors
///
/// Returns an error if the file cannot be read, is not TOML, or has a key or a value that is not
/// valid. The message has the line and what is allowed.
pub fn parse(command: &Command, words: &[OsString], file: &Path) -> Result<ArgMatches, Failure> {
    let text = read(file).map_err(|error| unreadable(file, &error))?;
    let settings = Settings { command, file, text: &text };
    let given = matches(command, words).map_err(|error| super::view::usage(&error))?;
    let mut all = settings.words(&given)?;
    all.extend_from_slice(words);
    let wrong = |error| settings.failure(None, &said(&error));
    matches(command, &all).map_err(wrong)
}

fn matches(command: &Command, words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let name = OsString::from(command.get_name());
    command.clone().try_get_matches_from([&[name], words].concat())
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(file)?.take(LARGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LARGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 1 MiB"));
    }
    Ok(text)
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::new(Class::Usage, format!("cannot read the settings in {}: {error}", file.display()))
}

/// Returns what clap says about a value, without its advice on usage.
fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let lines = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let lines: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// The settings of one file.
struct Settings<'a> {
    command: &'a Command,
    file: &'a Path,
    text: &'a str,
}

impl Settings<'_> {
    /// Returns the words for all keys, except for those whose flag, or another flag of the same
    /// group, is already given.
    fn words(&self, given: &ArgMatches) -> Result<Vec<OsString>, Failure> {
        let table = DeTable::parse(self.text)
            .map_err(|error| self.failure(error.span().map(|span| span.start), error.message()))?;
        let mut words = Vec::new();
        for (name, value) in table.get_ref() {
            let at = name.span().start;
            let arg = self.arg(name.get_ref(), at)?;
            let own = self.words_of(arg, value)?;
            // Each value is checked alone, so that an error has the line of its key.
            matches(self.command, &own).map_err(|error| self.failure(Some(at), &said(&error)))?;
            if !self.is_given(arg, given) {
                words.extend(own);
            }
        }
        Ok(words)
    }

    fn arg(&self, name: &str, at: usize) -> Result<&Arg, Failure> {
        let found = keys(self.command).find(|arg| key(arg) == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = keys(self.command).map(key).collect();
            let near = nearest(name, names.iter().copied());
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            self.failure(Some(at), &format!("there is no key `{name}`{near}"))
                .advise(format!("The keys are the flags of the command: {}.", names.join(", ")))
        })
    }

    /// Returns the words that stand for one key.
    fn words_of(&self, arg: &Arg, value: &Spanned<DeValue<'_>>) -> Result<Vec<OsString>, Failure> {
        let name = key(arg);
        let wrong = |what: &str| {
            let found = value.get_ref().type_str();
            self.failure(Some(value.span().start), &format!("`{name}` must be {what}, not {found}"))
        };
        let word = |text: &str| OsString::from(format!("--{name}={text}"));
        match (value.get_ref(), is_switch(arg)) {
            (DeValue::Boolean(true), true) => Ok(vec![format!("--{name}").into()]),
            (DeValue::Boolean(false), true) => Ok(Vec::new()),
            (_, true) => Err(wrong("true or false")),
            (DeValue::Array(items), false) if is_list(arg) => items
                .iter()
                .map(|item| scalar(item.get_ref()).map(|text| word(&text)))
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("a list of texts and numbers")),
            (value, false) => scalar(value).map(|text| vec![word(&text)]).ok_or_else(|| {
                wrong(if is_list(arg) { "a text, a number or a list" } else { "a text or a number" })
            }),
        }
    }

    /// Returns whether the command line decides what this flag decides.
    fn is_given(&self, arg: &Arg, given: &ArgMatches) -> bool {
        let on_line = |id: &clap::Id| given.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        let beside = |group: &clap::ArgGroup| {
            let exclusive = !group.clone().is_multiple();
            exclusive && group.get_args().any(|id| id == arg.get_id()) && group.get_args().any(on_line)
        };
        on_line(arg.get_id()) || self.command.get_groups().any(beside)
    }

    /// Returns an error about this file, with the line of the byte `at`.
    fn failure(&self, at: Option<usize>, what: &str) -> Failure {
        let line = |at: usize| 1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        let line = at.map_or_else(String::new, |at| format!(":{}", line(at)));
        Failure::new(Class::Usage, format!("{}{line}: {what}", self.file.display()))
    }
}

/// Returns the text of a value that is one word; `None` for lists, tables, switches and dates.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns a file with all keys of a command, each commented out, with its help and its default.
pub fn template(command: &Command) -> String {
    let mut text = format!(
        "# Settings of `precise {name}`: `precise {name} --config FILE`. Each key is the long name of a flag,\n\
         # and a flag on the command line takes precedence. `precise {name} --help` says more about each.\n",
        name = command.get_name()
    );
    let mut heading = None;
    for arg in keys(command) {
        let now = arg.get_help_heading();
        if now != heading {
            heading = now;
            text += &format!("\n## {}\n", now.unwrap_or("Options"));
        }
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let default = default(arg).map_or_else(String::new, |default| format!(" [default: {default}]"));
        text += &format!("\n# {help}{default}\n# {} = {}\n", key(arg), example(arg));
    }
    text
}

fn default(arg: &Arg) -> Option<String> {
    let values = arg.get_default_values();
    if is_switch(arg) { None } else { Some(values.first()?.to_string_lossy().into_owned()) }
}

/// Returns a value as it may stand in the file: the default, or the placeholder of the help.
fn example(arg: &Arg) -> String {
    if is_switch(arg) {
        return "true".to_owned();
    }
    let name = arg.get_value_names().and_then(<[_]>::first).map(ToString::to_string);
    let text = format!("{:?}", default(arg).or(name).unwrap_or_default());
    if is_list(arg) { format!("[{text}]") } else { text }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
