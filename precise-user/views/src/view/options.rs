//! The options of a view, as data: the command line makes flags of them, and a view makes its own
//! struct of their values.

use std::collections::BTreeMap;
use std::str::FromStr;

use precise_model::keys::{Key, Sort};

use super::NoAnswer;

/// What an option accepts.
#[derive(Clone, Copy, Debug)]
pub enum OptionKind {
    /// Nothing: it is given or not.
    Flag,
    /// A number from the first to the second, both included.
    Number(u64, u64),
    /// Any text.
    Text,
    /// Group keys, separated by commas.
    Keys,
    /// What to sort by.
    Sort,
    /// One of these words, each with what it means; an empty meaning is not shown.
    Choice(&'static [(&'static str, &'static str)]),
    /// A text that this function accepts; its error says why not.
    Checked(fn(&str) -> Result<(), String>),
}

/// The part of the help that an option is listed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// What is read.
    Input,
    /// What the samples are grouped and sorted by, and which of them are shown.
    Selection,
    /// How much is shown.
    Limits,
    /// The form of the result.
    Output,
    /// What decides the exit code.
    Gates,
}

impl Heading {
    /// The heading.
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

/// One option of a view.
#[derive(Clone, Copy, Debug)]
pub struct Opt {
    /// Name of the long flag; of a positional argument, the name of its value.
    pub name: &'static str,
    /// Short flag.
    pub short: Option<char>,
    /// Short flag that is accepted too, and not shown.
    pub short_alias: Option<char>,
    /// Long flag that is accepted too.
    pub alias: Option<&'static str>,
    /// What it accepts.
    pub kind: OptionKind,
    /// Name of the value in the help.
    pub value_name: &'static str,
    /// Value where none is given.
    pub default: Option<&'static str>,
    /// One line, imperative.
    pub help: &'static str,
    /// Where it is listed.
    pub heading: Heading,
    /// Whether it is an argument without a flag.
    pub positional: bool,
    /// Whether several values may be given.
    pub several: bool,
    /// A value for tests and examples where one must be given; such an option is required.
    pub required: Option<&'static str>,
    /// Options that it cannot be given with.
    pub conflicts: &'static [&'static str],
}

impl Opt {
    /// An option with a long flag, under "Selection".
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

    /// `--by KEYS`.
    pub const fn by(help: &'static str) -> Self {
        Self::new("by", OptionKind::Keys, "KEYS", help)
    }

    /// `-s, --sort WHAT`.
    pub const fn sort(help: &'static str) -> Self {
        Self::new("sort", OptionKind::Sort, "WHAT", help).short('s')
    }

    /// `-n, --limit N`; `-E` and `--entries` are perf's names of it.
    pub const fn limit(default: &'static str, help: &'static str) -> Self {
        let mut limit = Self::new("limit", OptionKind::Number(0, u64::MAX), "N", help)
            .short('n')
            .default(default)
            .heading(Heading::Limits);
        (limit.short_alias, limit.alias) = (Some('E'), Some("entries"));
        limit
    }

    /// `--width PIXELS`, of a picture.
    pub const fn width(default: &'static str) -> Self {
        Self::new("width", OptionKind::Number(0, 1 << 16), "PIXELS", "Width of the picture, pixels")
            .default(default)
            .heading(Heading::Output)
    }

    /// A flag without a value.
    pub const fn flag(name: &'static str, help: &'static str) -> Self {
        Self::new(name, OptionKind::Flag, "", help)
    }

    /// The same with a short flag.
    #[must_use]
    pub const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }

    /// The same with a default.
    #[must_use]
    pub const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// The same under another heading.
    #[must_use]
    pub const fn heading(mut self, heading: Heading) -> Self {
        self.heading = heading;
        self
    }

    /// The same as an argument without a flag.
    #[must_use]
    pub const fn positional(mut self) -> Self {
        self.positional = true;
        self
    }

    /// The same for several values.
    #[must_use]
    pub const fn several(mut self) -> Self {
        self.several = true;
        self
    }

    /// The same, required; `example` is a value that it accepts.
    #[must_use]
    pub const fn required(mut self, example: &'static str) -> Self {
        self.required = Some(example);
        self
    }

    /// The same, refused together with other options.
    #[must_use]
    pub const fn conflicts(mut self, with: &'static [&'static str]) -> Self {
        self.conflicts = with;
        self
    }
}

/// Values of options, by name. A view turns them into its own struct.
#[derive(Clone, Debug, Default)]
pub struct Values {
    values: BTreeMap<&'static str, Vec<String>>,
}

impl Values {
    /// The defaults of some options; of those that are required, their example.
    pub fn defaults(options: &[Opt]) -> Self {
        let value = |option: &Opt| {
            let value = option.default.or(option.required)?;
            Some((option.name, vec![value.to_owned()]))
        };
        Self { values: options.iter().filter_map(value).collect() }
    }

    /// Gives an option values instead of what it had; a flag is given by an empty list.
    pub fn set(&mut self, option: &'static str, values: Vec<String>) {
        self.values.insert(option, values);
    }

    /// The same with one value of an option.
    #[must_use]
    pub fn with(mut self, option: &'static str, value: &str) -> Self {
        self.set(option, vec![value.to_owned()]);
        self
    }

    /// Whether a flag is given.
    pub fn flag(&self, option: &str) -> bool {
        self.values.contains_key(option)
    }

    /// All values of an option.
    pub fn all(&self, option: &str) -> &[String] {
        self.values.get(option).map_or(&[], Vec::as_slice)
    }

    /// The value of an option; `None` where it was not given and has no default.
    pub fn text(&self, option: &str) -> Option<&str> {
        self.all(option).last().map(String::as_str)
    }

    /// A number.
    ///
    /// # Errors
    ///
    /// When it is none, or the option has no value.
    pub fn number<T: FromStr>(&self, option: &str) -> Result<T, NoAnswer> {
        let text = self.text(option).unwrap_or_default();
        text.parse().map_err(|_| NoAnswer::usage(format!("--{option} takes a number, not {text:?}")))
    }

    /// Group keys; `None` where none were given.
    ///
    /// # Errors
    ///
    /// When a word is no key.
    pub fn keys(&self, option: &str) -> Result<Option<Vec<Key>>, NoAnswer> {
        let keys = self.text(option).map(Key::parse_list).transpose();
        keys.map_err(|error| NoAnswer::usage(error.to_string()))
    }

    /// What to sort by; `None` where it was not given.
    ///
    /// # Errors
    ///
    /// When nothing can be sorted by it.
    pub fn sort(&self, option: &str) -> Result<Option<Sort>, NoAnswer> {
        let sort = self.text(option).map(Sort::parse).transpose();
        sort.map_err(|error| NoAnswer::usage(error.to_string()))
    }

    /// What the chosen word stands for.
    ///
    /// # Errors
    ///
    /// When the word is not among them.
    pub fn choice<T: Copy>(&self, option: &str, words: &[(&str, T)]) -> Result<T, NoAnswer> {
        let text = self.text(option).unwrap_or_default();
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            NoAnswer::usage(format!("--{option} is one of {}, not {text:?}", known.join(", ")))
        })
    }
}
