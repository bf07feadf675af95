//! What is said about a filter that does not parse: what, where, and what was meant perhaps.

use std::fmt;

/// A filter that does not parse.
///
/// Printed, it shows the text with a caret under the place:
///
/// ```text
/// unknown term `mem_lvll`
///   mem_op == load, mem_lvll == l2
///                   ^
///   did you mean `mem_lvl`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What is wrong, in one line.
    pub message: String,
    /// What to write instead, where that is known.
    pub help: Option<String>,
    /// The text.
    pub text: String,
    /// Where in the text: characters from its begin, starting with 0.
    pub column: usize,
}

impl std::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Control characters would move the caret away from its place.
        let line: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "{}\n  {line}\n  {:width$}^", self.message, "", width = self.column)?;
        match &self.help {
            Some(help) => write!(f, "\n  {help}"),
            None => Ok(()),
        }
    }
}
