//! The pager: shows text that is longer than the terminal, as git and perf do.
//!
//! Only commands that read files start it. They have dropped the file capabilities of the program
//! before ([`precise::rights`]), so the pager has the rights of its caller and no more.

use std::{
    io::{self, IsTerminal as _, Write as _},
    process::{Command, Stdio},
};

use super::output::say;

/// The pager if the environment names none.
const DEFAULT: &str = "less";
/// Options of less, unless `LESS` is set: end at once if everything fits, show colours, and leave
/// the text on the screen.
const LESS: &str = "FRX";

/// A command that shows text, for the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pager {
    command: String,
    /// Lines of the terminal. Shorter texts need no pager.
    lines: usize,
}

impl Pager {
    /// Returns the pager of a terminal with this number of lines: `PRECISE_PAGER`, `PAGER`, or
    /// less. `None` if the variable is empty or `cat`, or if there is no terminal.
    pub fn choose(lines: Option<usize>) -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        if variable("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
            return None;
        }
        let lines = lines.filter(|_| io::stdout().is_terminal())?;
        Self::named(variable("PRECISE_PAGER").or_else(|| variable("PAGER")), lines)
    }

    fn named(variable: Option<String>, lines: usize) -> Option<Self> {
        let command = variable.unwrap_or_else(|| DEFAULT.to_owned()).trim().to_owned();
        (!command.is_empty() && command != "cat").then_some(Self { command, lines })
    }

    /// Shows a text and returns when the reader has ended. Returns false if the text is short, or
    /// if the pager cannot be started: then the text was not shown.
    pub fn show(&self, text: &str) -> bool {
        if text.lines().count() < self.lines {
            return false;
        }
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        let Ok(mut child) = command.spawn() else { return false };
        // Ctrl-C is for the pager. If this process ended first, the two would share the terminal
        // with the shell.
        // SAFETY: ignoring a signal runs no code (signal(2)).
        unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        if let Some(mut stdin) = child.stdin.take() {
            // A reader that ends early needs no more text.
            let _closed = stdin.write_all(text.as_bytes());
        }
        let ended = child.wait();
        // SAFETY: as above; nothing else in commands that read files handles this signal.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        // The codes of a shell that cannot run a command.
        let failed = ended.map_or(true, |status| matches!(status.code(), Some(126 | 127)));
        if failed && self.command != DEFAULT {
            say(&format!("the pager `{}` cannot be run (PRECISE_PAGER, PAGER)", self.command));
        }
        !failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses() {
        let named = |name: Option<&str>| Pager::named(name.map(str::to_owned), 10).map(|pager| pager.command);
        assert_eq!(named(None).as_deref(), Some("less"));
        assert_eq!(named(Some("more -s")).as_deref(), Some("more -s"));
        assert_eq!([named(Some("")), named(Some("cat"))], [None, None]);
    }

    #[test]
    fn long_texts_go_to_the_pager_whole() {
        let folder = tempfile::tempdir().unwrap();
        let shown = folder.path().join("shown");
        let pager = |command: String| Pager { command, lines: 3 };
        let cat = pager(format!("cat >{}", shown.display()));
        assert!(!cat.show("a\nb\n") && !shown.exists(), "it fits");
        let long = "a line\n".repeat(100_000);
        assert!(cat.show(&long));
        assert_eq!(std::fs::read_to_string(&shown).unwrap(), long);
        assert!(pager("head -1 >/dev/null".to_owned()).show(&long), "the reader needs no more");
        assert!(!pager("/no/such/pager".to_owned()).show(&long), "the caller prints it");
    }
}
