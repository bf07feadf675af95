//! What all questions share.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use precise_tests::usage::Usage;

use super::question::words;
use super::tool::{Tool, newer_perf};
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
    /// Returns the words of a command; those of precise and of the newer perf are its arguments.
    pub fn command(&self, tool: Tool, text: &str) -> Vec<String> {
        let program = match tool {
            Tool::Precise => Some(self.precise.clone()),
            Tool::NewerPerf => newer_perf(),
            _ => None,
        };
        program.into_iter().map(|path| path.display().to_string()).chain(words(text)).collect()
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
