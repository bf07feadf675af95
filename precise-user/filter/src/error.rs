//! The error for a filter that does not parse: the problem, its position, and a suggestion.

use std::fmt;

/// The error for a filter that does not parse.
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
