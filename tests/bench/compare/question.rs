//! A question that is asked of each contender, once in each round.

use anyhow::{Context as _, Result};
use precise_tests::say;

use super::tool::Tool;

/// Does what is asked, once, by these commands. Returns the value.
type Measure = Box<dyn Fn(&[Vec<String>]) -> Result<f64>>;

/// A program, with what it does to answer a question.
pub struct Contender {
    /// The program.
    pub tool: Tool,
    /// The commands, in words; empty without one.
    commands: Vec<Vec<String>>,
    measure: Measure,
    /// The values, one for each round.
    pub values: Vec<f64>,
}

/// A question, and what was answered.
pub struct Question {
    /// The heading of its table.
    pub title: String,
    /// The unit of the values.
    pub unit: &'static str,
    /// What is to be reached, and what the reader must know.
    pub note: &'static str,
    /// The largest ratio of precise's cost to that of perf with which `bench quick` is content. It
    /// leaves room for a noisy machine: it is twice what was measured, or more.
    pub limit: Option<f64>,
    /// Those who answer it, the one without a profiler first.
    pub contenders: Vec<Contender>,
}

impl Question {
    /// Returns a question without contenders.
    pub fn new(title: impl Into<String>, unit: &'static str, note: &'static str) -> Self {
        Self { title: title.into(), unit, note, limit: None, contenders: Vec::new() }
    }

    /// Sets the limit of `bench quick`.
    pub fn limit(mut self, ratio: f64) -> Self {
        self.limit = Some(ratio);
        self
    }

    /// Adds a contender, if its program is installed.
    pub fn with(
        mut self,
        tool: Tool,
        commands: Vec<Vec<String>>,
        measure: impl Fn(&[Vec<String>]) -> Result<f64> + 'static,
    ) -> Self {
        if tool.is_installed() {
            self.contenders.push(Contender {
                tool,
                commands,
                measure: Box::new(measure),
                values: Vec::new(),
            });
        }
        self
    }

    /// Asks all contenders in turn, in each round: from first to last, then from last to first. A
    /// machine that becomes slower would be against the last of them otherwise. Forgets what they
    /// answered before.
    ///
    /// # Errors
    ///
    /// Returns the error of the first one that fails.
    pub fn ask(&mut self, rounds: usize) -> Result<()> {
        self.contenders.iter_mut().for_each(|contender| contender.values.clear());
        for round in 1..=rounds {
            let mut turn: Vec<&mut Contender> = self.contenders.iter_mut().collect();
            if round % 2 == 0 {
                turn.reverse();
            }
            for contender in turn {
                let value = (contender.measure)(&contender.commands);
                let value = value.with_context(|| format!("{}, {}", self.title, contender.tool.name()))?;
                contender.values.push(value);
            }
            say(&format!("{}: round {round} of {rounds}", self.title));
        }
        Ok(())
    }

    /// Returns the commands of all contenders, as a page shows them: those of two versions of a
    /// program once.
    pub fn commands(&self) -> Vec<String> {
        let all = self.contenders.iter().flat_map(|contender| &contender.commands);
        let mut shown: Vec<String> = all.map(|words| shown_as(words)).collect();
        shown.dedup();
        shown
    }
}

/// Returns a command as somebody would type it, without the folders of programs.
fn shown_as(words: &[String]) -> String {
    let short = |word: &String| match word.rsplit_once('/') {
        Some((_, name)) if word.starts_with('/') => name.to_owned(),
        _ if word.contains([' ', '{']) => format!("'{word}'"),
        _ => word.clone(),
    };
    words.iter().map(short).collect::<Vec<_>>().join(" ")
}

/// Returns the words of a command.
pub fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
