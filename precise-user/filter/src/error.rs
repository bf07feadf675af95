//! The errors of a filter: its text does not parse, or its expression cannot be compiled.

use std::fmt;

/// The error for a filter that does not parse: the problem, its position, and a suggestion.
///
/// [`Display`](fmt::Display) prints the text with a caret under the position:
///
/// ```text
/// unknown term `mem_lvll`
///   mem_op == load, mem_lvll == l2
///                   ^
///   did you mean `mem_lvl`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The problem, in one line.
    pub message: String,
    /// A suggestion what to write instead, if there is one.
    pub help: Option<String>,
    /// The text of the filter.
    pub text: String,
    /// The position in the text, in characters from 0.
    pub column: usize,
}

impl std::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Control characters would shift the caret.
        let line: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "{}\n  {line}\n  {:width$}^", self.message, "", width = self.column)?;
        match &self.help {
            Some(help) => write!(f, "\n  {help}"),
            None => Ok(()),
        }
    }
}

/// The reason why an expression cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The expression needs more compares than the BPF program has.
    #[error(
        "the filter needs {}{needed} comparisons; the limit is {allowed}. Use fewer alternatives, or \
         ranges instead of lists",
        if *.at_least { "more than " } else { "" }
    )]
    TooComplex {
        /// The number of compares that it needs.
        needed: usize,
        /// Whether `needed` is a lower bound.
        at_least: bool,
        /// The limit: [`MAX_SLOTS`](precise_common::config::MAX_SLOTS).
        allowed: usize,
    },
    /// No sample can pass.
    #[error("no sample can pass this filter: {0}")]
    Never(String),
    /// A cgroup that does not exist or cannot be used.
    #[error("cgroup `{path}`: {reason}")]
    Cgroup {
        /// The path as the user wrote it.
        path: String,
        /// The reason in words.
        reason: String,
    },
    /// A test of a field that the event does not record.
    #[error("`{test}` needs {what}, but `{event}` does not record it{}", match .other {
        Some(other) => format!("; `{other}` does"),
        None => String::new(),
    })]
    NotRecorded {
        /// The test.
        test: String,
        /// The field that it needs, in words.
        what: &'static str,
        /// The event.
        event: String,
        /// An event that records the field, if there is one.
        other: Option<String>,
    },
}
