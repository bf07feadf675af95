//! What all questions share.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use precise_tests::usage::Usage;

use super::question::words;
use super::tool::Tool;
use super::work::Work;

/// What all questions share.
pub struct Setting {
    /// The binary.
    pub precise: PathBuf,
    /// Where everything is written.
    pub folder: PathBuf,
    /// The programs that are profiled.
    pub work: Work,
}

impl Setting {
    /// Returns the words of a command; those of precise are its arguments.
    pub fn command(&self, tool: Tool, text: &str) -> Vec<String> {
        let words = words(text);
        let program = (tool == Tool::Precise).then(|| self.precise.display().to_string());
        program.into_iter().chain(words).collect()
    }

    /// Returns a command that runs in the folder.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no words.
    pub fn command_of(&self, words: &[String]) -> Result<Command> {
        let (program, arguments) = words.split_first().context("an empty command")?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder);
        Ok(command)
    }

    /// Runs a command in the folder, to its end.
    ///
    /// # Errors
    ///
    /// Returns an error if it fails.
    pub fn run(&self, command: &[String]) -> Result<Usage> {
        Usage::of(&mut self.command_of(command)?)
    }

    /// Runs commands one after the other. Returns the seconds of all.
    ///
    /// # Errors
    ///
    /// Returns the error of the first one that fails.
    pub fn seconds(&self, commands: &[Vec<String>]) -> Result<f64> {
        commands.iter().map(|command| Ok(self.run(command)?.seconds)).sum()
    }
}
