//! Standard output and standard error: width, colours, and writing.

use std::{
    io::{self, ErrorKind, IsTerminal as _, Write as _},
    path::Path,
};

use precise::capture::write_whole;
use precise::error::{Class, Failure};
use precise::model::text;
use precise::render::{Shade, Style, TextOptions};
use precise::rights::Rights;

/// Standard output.
#[derive(Debug)]
pub struct Output {
    /// Width and colours of text.
    pub text: TextOptions,
    /// The rights that this process had when it started; `None` if it has not lowered them.
    pub started_with: Option<Rights>,
}

impl Output {
    /// Detects the properties of standard output. Unless it is a terminal, text has 80 columns and
    /// no colour.
    pub fn detect() -> Self {
        let terminal = io::stdout().is_terminal();
        let style = Style::for_terminal(terminal, std::env::var_os("NO_COLOR").as_deref());
        let width = if terminal { columns().unwrap_or(80) } else { 80 };
        Self {
            text: TextOptions { width: width.clamp(60, 200), style, shade: shade(terminal) },
            started_with: None,
        }
    }

    /// Prints text. A closed pipe is not an error: its reader needs no more output.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        let ending = if text.ends_with('\n') { "" } else { "\n" };
        self.write(text.as_bytes())?;
        self.write(ending.as_bytes())
    }

    /// Writes bytes unchanged. A closed pipe is not an error here either.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::new(Class::Failed, format!("cannot print the result: {error}")))
            }
            _ => Ok(()),
        }
    }
}

/// Returns how the cells of heatmaps are shown.
fn shade(terminal: bool) -> Shade {
    let set = |name: &str, wanted: &str| std::env::var(name).is_ok_and(|value| value.contains(wanted));
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if terminal && !plain {
        return if set("COLORTERM", "truecolor") || set("COLORTERM", "24bit") {
            Shade::TrueColour
        } else {
            Shade::Colour256
        };
    }
    if set("LC_ALL", "UTF-8") || set("LC_CTYPE", "UTF-8") || set("LANG", "UTF-8") {
        Shade::Blocks
    } else {
        Shade::Ascii
    }
}

fn columns() -> Option<usize> {
    // SAFETY: an all-zero winsize is valid, and TIOCGWINSZ fills one in.
    unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        let asked = libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size);
        (asked == 0 && size.ws_col > 0).then_some(size.ws_col.into())
    }
}

/// Writes lines to standard error, without control characters.
pub fn say(message: &str) {
    let mut err = io::stderr().lock();
    for line in message.lines() {
        // If standard error fails, there is no other way to report it.
        let _gone = writeln!(err, "precise: {}", text::sanitize(line));
    }
}

/// Writes a failure to standard error.
pub fn complain(failure: &Failure) {
    say(&failure.to_string());
    if let Some(remedy) = failure.remedy {
        say(super::remedy::words(remedy));
    }
}

/// Writes a file that only its owner may read. The file is written completely or not at all; `-` is
/// standard output.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, bytes).map_err(|error| {
        let failure = Failure::new(Class::Failed, format!("cannot write {}: {error}", path.display()));
        match error.kind() {
            ErrorKind::StorageFull => failure.advise("Free some space, or write elsewhere."),
            _ => failure,
        }
    })
}
