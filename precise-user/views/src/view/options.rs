//! The options of a view, as data: the command line makes flags of them, and each view makes its
//! own struct of their values.

use std::collections::BTreeMap;
use std::str::FromStr;

use precise_model::keys::{Key, Sort};

use super::NoAnswer;

/// The kind of values that an option accepts.
#[derive(Clone, Copy, Debug)]
pub enum OptionKind {
    /// No value: a flag is given or not.
    Flag,
    /// A number from the first to the second, both included.
    Number(u64, u64),
    /// Any text.
    Text,
    /// Group keys, separated by commas.
    Keys,
    /// The measure to sort by.
    Sort,
    /// One of these words, each with its meaning. An empty meaning is not shown.
    Choice(&'static [(&'static str, &'static str)]),
    /// A text that this function accepts; otherwise its error is the reason.
    Checked(fn(&str) -> Result<(), String>),
}

/// The section of the help that lists an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// What is read.
    Input,
    /// Which samples are shown, and how they are grouped and sorted.
    Selection,
    /// How much is shown.
    Limits,
    /// The form of the result.
    Output,
    /// The conditions that decide the exit code.
    Gates,
}

impl Heading {
    /// Returns the title of the section.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Input => "Input",
            Self::Selection => "Selection",
            Self::Limits => "Limits",
            Self::Output => "Output",
            Self::Gates => "Gates",
        }
    }
}

/// An option of a view.
#[derive(Clone, Copy, Debug)]
pub struct Opt {
    /// The name of the long flag; for a positional argument, the name of its value.
    pub name: &'static str,
    /// The short flag.
    pub short: Option<char>,
    /// Another short flag that is accepted, but not shown.
    pub short_alias: Option<char>,
    /// Another long flag that is accepted.
    pub alias: Option<&'static str>,
    /// The kind of values that the option accepts.
    pub kind: OptionKind,
    /// The name of the value in the help.
    pub value_name: &'static str,
    /// The default value; `None` if there is none.
    pub default: Option<&'static str>,
    /// The help: one line, imperative.
    pub help: &'static str,
    /// The section of the help that lists the option.
    pub heading: Heading,
    /// Whether the option is an argument without a flag.
    pub positional: bool,
    /// Whether several values may be given.
    pub several: bool,
    /// For a required option, a value for tests and examples; `None` if the option is not required.
    pub required: Option<&'static str>,
    /// The options that this one conflicts with.
    pub conflicts: &'static [&'static str],
}

impl Opt {
    /// Makes an option with a long flag, in the section "Selection".
    pub const fn new(
        name: &'static str,
        kind: OptionKind,
        value_name: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            short: None,
            short_alias: None,
            alias: None,
            kind,
            value_name,
            default: None,
            help,
            heading: Heading::Selection,
            positional: false,
            several: false,
            required: None,
            conflicts: &[],
        }
    }

    /// Makes `--by KEYS`.
    pub const fn by(help: &'static str) -> Self {
        Self::new("by", OptionKind::Keys, "KEYS", help)
    }

    /// Makes `-s, --sort WHAT`.
    pub const fn sort(help: &'static str) -> Self {
        Self::new("sort", OptionKind::Sort, "WHAT", help).short('s')
    }

    /// Makes `-n, --limit N`. `-E` and `--entries` are perf's names of it.
    pub const fn limit(default: &'static str, help: &'static str) -> Self {
        let mut limit = Self::new("limit", OptionKind::Number(0, u64::MAX), "N", help)
            .short('n')
            .default(default)
            .heading(Heading::Limits);
        (limit.short_alias, limit.alias) = (Some('E'), Some("entries"));
        limit
    }

    /// Makes `--width PIXELS`, the width of a picture.
    pub const fn width(default: &'static str) -> Self {
        Self::new("width", OptionKind::Number(0, 1 << 16), "PIXELS", "Width of the picture, pixels")
            .default(default)
            .heading(Heading::Output)
    }

    /// Makes a flag without a value.
    pub const fn flag(name: &'static str, help: &'static str) -> Self {
        Self::new(name, OptionKind::Flag, "", help)
    }

    /// Sets the short flag.
    #[must_use]
    pub const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }

    /// Sets the default value.
    #[must_use]
    pub const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// Sets the section of the help.
    #[must_use]
    pub const fn heading(mut self, heading: Heading) -> Self {
        self.heading = heading;
        self
    }

    /// Makes the option an argument without a flag.
    #[must_use]
    pub const fn positional(mut self) -> Self {
        self.positional = true;
        self
    }

    /// Allows several values.
    #[must_use]
    pub const fn several(mut self) -> Self {
        self.several = true;
        self
    }

    /// Makes the option required; `example` is a value that it accepts.
    #[must_use]
    pub const fn required(mut self, example: &'static str) -> Self {
        self.required = Some(example);
        self
    }

    /// Sets the options that this one conflicts with.
    #[must_use]
    pub const fn conflicts(mut self, with: &'static [&'static str]) -> Self {
        self.conflicts = with;
        self
    }
}

/// The values of options, by name. A view makes its own struct of them.
#[derive(Clone, Debug, Default)]
pub struct OptionValues {
    values: BTreeMap<&'static str, Vec<String>>,
}

impl OptionValues {
    /// Returns the default values of some options, and the examples of the required ones.
    pub fn defaults(options: &[Opt]) -> Self {
        let value = |option: &Opt| {
            let value = option.default.or(option.required)?;
            Some((option.name, vec![value.to_owned()]))
        };
        Self { values: options.iter().filter_map(value).collect() }
    }

    /// Replaces the values of an option; an empty list sets a flag.
    pub fn set(&mut self, option: &'static str, values: Vec<String>) {
        self.values.insert(option, values);
    }

    /// Replaces the values of an option by one value.
    #[must_use]
    pub fn with(mut self, option: &'static str, value: &str) -> Self {
        self.set(option, vec![value.to_owned()]);
        self
    }

    /// Returns whether a flag is given.
    pub fn flag(&self, option: &str) -> bool {
        self.values.contains_key(option)
    }

    /// Returns all values of an option.
    pub fn all(&self, option: &str) -> &[String] {
        self.values.get(option).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of an option; `None` if it was not given and has no default.
    pub fn text(&self, option: &str) -> Option<&str> {
        self.all(option).last().map(String::as_str)
    }

    /// Returns the value of an option as a number.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not a number or the option has no value.
    pub fn number<T: FromStr>(&self, option: &str) -> Result<T, NoAnswer> {
        let text = self.text(option).unwrap_or_default();
        text.parse().map_err(|_| NoAnswer::usage(format!("--{option} takes a number, not {text:?}")))
    }

    /// Returns the value of an option as group keys; `None` if none were given.
    ///
    /// # Errors
    ///
    /// Returns an error if a word is not a group key.
    pub fn keys(&self, option: &str) -> Result<Option<Vec<Key>>, NoAnswer> {
        let keys = self.text(option).map(Key::parse_list).transpose();
        keys.map_err(|error| NoAnswer::usage(error.to_string()))
    }

    /// Returns the measure to sort by; `None` if it was not given.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not a measure to sort by.
    pub fn sort(&self, option: &str) -> Result<Option<Sort>, NoAnswer> {
        let sort = self.text(option).map(Sort::parse).transpose();
        sort.map_err(|error| NoAnswer::usage(error.to_string()))
    }

    /// Returns the item that `words` assigns to the chosen word.
    ///
    /// # Errors
    ///
    /// Returns an error if the word is not among them.
    pub fn choice<T: Copy>(&self, option: &str, words: &[(&str, T)]) -> Result<T, NoAnswer> {
        let text = self.text(option).unwrap_or_default();
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            NoAnswer::usage(format!("--{option} is one of {}, not {text:?}", known.join(", ")))
        })
    }
}
