//! The parts of a chapter.

use anyhow::Result;

use super::growth::Growth;
use super::question::Question;

/// A part of a chapter.
pub enum Part {
    /// A question with its answers.
    Question(Question),
    /// Figures at several sizes.
    Growth(Growth),
    /// Markdown.
    Text(String),
}

impl Part {
    /// Asks, or measures, in this number of rounds.
    ///
    /// # Errors
    ///
    /// Returns the first error.
    pub fn ask(&mut self, rounds: usize) -> Result<()> {
        match self {
            Self::Question(question) => question.ask(rounds),
            Self::Growth(growth) => growth.measure(rounds),
            Self::Text(_) => Ok(()),
        }
    }

    /// Returns the part as Markdown.
    pub fn text(&self) -> String {
        match self {
            Self::Question(question) => question.text(),
            Self::Growth(growth) => growth.text(),
            Self::Text(text) => text.clone(),
        }
    }
}
