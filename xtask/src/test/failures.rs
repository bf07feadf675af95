//! Prints what failed tests wrote once more at the end of the run: a log of CI is long, and people
//! read it from its end.

use std::io::{Read, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process;

/// How long output is waited for before the tests are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// The most lines of failed tests that are repeated.
const MOST_LINES: usize = 400;

/// Runs tests, and passes on what they write.
///
/// # Errors
///
/// The error of a run that fails ends with what the failed tests wrote.
pub fn run_tests(command: &mut Command) -> Result<()> {
    println!("$ {}", process::show(command));
    run_into(command, &mut std::io::stdout())
}

fn run_into(command: &mut Command, out: &mut dyn Write) -> Result<()> {
    let shown = process::show(command);
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = started.with_context(|| process::cannot_start(command))?;
    let mut failures = Failures::default();
    let chunks = chunks(child.stdout.take());
    loop {
        match chunks.recv_timeout(LOOK) {
            Ok(new) => {
                let passed_on = out.write_all(&new).and_then(|()| out.flush());
                passed_on.context("cannot pass on what the tests write")?;
                failures.add(&new);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            // What a test has left behind may hold the pipe open.
            Err(RecvTimeoutError::Timeout) => {
                if child.try_wait().context("cannot wait for the tests")?.is_some() {
                    break;
                }
            }
        }
    }
    let status = child.wait().context("cannot wait for the tests")?;
    if !status.success() {
        bail!("`{shown}` ended with {status}\n{}", failures.text());
    }
    Ok(())
}

/// Returns what comes from a pipe.
fn chunks(from: Option<ChildStdout>) -> Receiver<Vec<u8>> {
    let (send, chunks) = channel();
    std::thread::spawn(move || {
        let mut chunk = vec![0; 1 << 16];
        let Some(mut from) = from else { return };
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            let Some(new) = chunk.get(..read) else { return };
            if send.send(new.to_vec()).is_err() {
                return;
            }
        }
    });
    chunks
}

/// The parts of the output of tests that are about failures, without backtraces.
#[derive(Default)]
struct Failures {
    /// The line that has not ended yet.
    line: Vec<u8>,
    inside: bool,
    in_backtrace: bool,
    lines: Vec<String>,
    omitted: usize,
}

impl Failures {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                self.add_line(&String::from_utf8_lossy(&line));
            } else {
                self.line.push(*byte);
            }
        }
    }

    /// The test harness writes `failures:`, what each failed test wrote, `failures:` again, their
    /// names, and `test result:`.
    fn add_line(&mut self, line: &str) {
        self.inside = (self.inside || line == "failures:") && !line.starts_with("test result: ");
        // Those of panics and those of errors, which an empty line ends.
        self.in_backtrace =
            (self.in_backtrace || line.eq_ignore_ascii_case("stack backtrace:")) && !line.is_empty();
        if !self.inside || self.in_backtrace || line.is_empty() {
            return;
        }
        if self.lines.len() < MOST_LINES {
            self.lines.push(line.to_owned());
        } else {
            self.omitted += 1;
        }
    }

    fn text(&self) -> String {
        let mut text = self.lines.join("\n");
        if self.lines.is_empty() {
            text += "no test failed; what the command wrote is above";
        }
        if self.omitted > 0 {
            text += &format!("\n({} more lines are above)", self.omitted);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints what two tests print, one of which fails, and exits with the status of such a run.
    const FAILED: &str = "printf 'running 2 tests\ntest a ... FAILED\ntest b ... ok\n\nfailures:\n\n\
---- a stdout ----\nError: it is 3\n\nStack backtrace:\n   0: main\n\n\nfailures:\n    a\n\ntest result: FAILED. 1 passed; 1 failed\n\n\
running 0 tests\n'; exit 101";

    #[test]
    fn what_a_failed_test_wrote_ends_the_error() {
        let mut out = Vec::new();
        // Not to standard output: a reader of that would count a failed test.
        let error = run_into(Command::new("sh").args(["-c", FAILED]), &mut out).unwrap_err().to_string();
        assert!(out.starts_with(b"running 2 tests\ntest a ... "), "{out:?}");
        let (command, said) = error.split_once("ended with exit status: 101\n").unwrap();
        assert!(command.starts_with("`sh -c "), "{error}");
        assert_eq!(said, "failures:\n---- a stdout ----\nError: it is 3\nfailures:\n    a");
        run_into(Command::new("sh").args(["-c", "echo test result: ok"]), &mut out).unwrap();
    }

    #[test]
    fn a_command_that_fails_without_a_test_says_so() {
        let error = run_into(&mut Command::new("false"), &mut Vec::new()).unwrap_err().to_string();
        assert!(error.ends_with("no test failed; what the command wrote is above"), "{error}");
        let error =
            format!("{:#}", run_into(&mut Command::new("/nonexistent/tool"), &mut Vec::new()).unwrap_err());
        assert!(error.contains("`tool` cannot be started"), "{error}");
    }

    #[test]
    fn what_a_test_leaves_behind_is_not_waited_for() {
        let begin = std::time::Instant::now();
        let mut out = Vec::new();
        run_into(Command::new("sh").args(["-c", "sleep 20 & echo all"]), &mut out).unwrap();
        assert!(out == b"all\n" && begin.elapsed() < Duration::from_secs(15), "{out:?}");
    }

    #[test]
    fn very_many_lines_are_counted() {
        let mut failures = Failures::default();
        failures.add(b"failures:\n");
        (0..MOST_LINES + 6).for_each(|_| failures.add(b"a li\xffne\n"));
        assert!(failures.text().ends_with("\n(7 more lines are above)"));
    }
}
