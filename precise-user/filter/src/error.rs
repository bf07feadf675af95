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

/// The one of `known` that `word` may be a slip of; `None` when nothing comes near.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_ascii_lowercase();
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|name| (distance(&lower, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Edits (insert, delete, replace, swap of neighbours) between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(32).collect(), b.chars().take(32).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let mut best = (last[j] + usize::from(a[i] != b[j])).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        assert_eq!(nearest("laod", ["load", "store"]), Some("load"));
        assert_eq!(nearest("LOAD", ["load", "store"]), Some("load"));
        assert_eq!(nearest("mem_level", ["mem_lvl", "mem_op"]), Some("mem_lvl"));
        assert_eq!(nearest("xyz", ["load", "store"]), None);
        assert_eq!(nearest("", ["load"]), None);
    }
}
