//! The progress of a run or an import: one line on a terminal, nothing elsewhere.

use std::{io::IsTerminal as _, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use precise::import;
use precise::model::digits::counted;
use precise::render::number;
use precise::run::budget::NamesBudget;
use precise::run::live::Progress;

use super::output::say;

/// The progress line.
#[derive(Debug)]
pub struct ProgressLine {
    bar: ProgressBar,
    what: String,
    quiet: bool,
    report: bool,
}

impl ProgressLine {
    /// Creates a line for a run of the given length. `what` names what is sampled; `report` is true
    /// if a report is printed after the run.
    pub fn new(what: &str, duration: Option<Duration>, quiet: bool, report: bool) -> Self {
        let bar = match duration {
            _ if quiet || !std::io::stderr().is_terminal() => ProgressBar::hidden(),
            Some(duration) => ProgressBar::new(duration.as_millis() as u64),
            None => ProgressBar::new_spinner(),
        };
        let template =
            if duration.is_some() { "{elapsed:>4} {bar:24} {msg}" } else { "{elapsed:>4} {spinner} {msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, what: what.to_owned(), quiet, report }
    }

    /// Shows the current progress.
    pub fn show(&self, progress: &Progress) {
        match progress {
            Progress::Started { .. } if self.quiet => {}
            Progress::Started { table_bytes, ring_bytes, findings } => {
                say(&format!("sampling {}. Press Ctrl-C to stop early; samples so far are kept", self.what));
                let [tables, rings] = [table_bytes, ring_bytes].map(|bytes| number::short(*bytes as u64));
                let names = number::short(NamesBudget::of_this_machine().sum() as u64);
                say(&format!(
                    "memory: tables {tables}B, rings {rings}B (fixed); processes and names at most {names}B"
                ));
                match self.report {
                    // The verdict of the report has each of these sentences.
                    true if !findings.is_empty() => {
                        say(
                            "these samples are not precise in every respect; the verdict after the run says why",
                        );
                    }
                    true => {}
                    false => findings.iter().for_each(|finding| say(finding)),
                }
            }
            Progress::Epoch { seen, elapsed, .. } => {
                self.bar.set_position(elapsed.as_millis() as u64);
                self.bar.set_message(counted(*seen, "sample"));
            }
        }
    }

    /// Removes the line.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// The progress line of an import: bytes, speed and the time that is left.
#[derive(Debug)]
pub struct ImportLine(ProgressBar);

impl ImportLine {
    /// Creates a line; hidden if `quiet`, or if standard error is not a terminal.
    pub fn new(quiet: bool) -> Self {
        let hidden = quiet || !std::io::stderr().is_terminal();
        Self(if hidden { ProgressBar::hidden() } else { ProgressBar::new_spinner() })
    }

    /// Shows how far the import is.
    pub fn show(&self, now: import::Progress) {
        let bar = &self.0;
        if bar.is_hidden() {
            return;
        }
        if now.bytes <= 1 << 20 {
            bar.set_length(now.size.unwrap_or(0));
            let template = match now.size {
                Some(_) => "{elapsed:>4} {bar:24} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
                None => "{elapsed:>4} {spinner} {bytes}, {bytes_per_sec}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
        }
        bar.set_position(now.bytes);
    }

    /// Removes the line.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}
