//! Standard output and standard error: width, colours, and writing.

use std::{
    io::{self, ErrorKind, IsTerminal as _, Write as _},
    path::Path,
};

use clap::{Arg, ArgAction, ArgMatches, ColorChoice, Command, value_parser};
use precise::capture::write_whole;
use precise::error::{ExitClass, Failure};
use precise::model::text;
use precise::render::{Shade, Style, TextOptions};
use precise::rights::Rights;

use super::pager::Pager;

/// Standard output.
#[derive(Debug)]
pub struct Output {
    /// Width and colours of text.
    pub text: TextOptions,
    /// The rights that this process had when it started; `None` if it has not lowered them.
    pub started_with: Option<Rights>,
    /// The pager for long texts; `None` if they are printed.
    pub pager: Option<Pager>,
}

impl Output {
    /// Detects the properties of standard output. Sentences have the width that was asked for, that
    /// of the terminal, or 80 columns; names are cut on a terminal only.
    pub fn detect(asked: &Appearance) -> Self {
        let terminal = io::stdout().is_terminal();
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let dumb = variable("TERM").is_some_and(|term| term == "dumb");
        let style = match asked.color {
            ColorChoice::Always => Style::for_terminal(true, None),
            ColorChoice::Never => Style::plain(),
            ColorChoice::Auto => {
                Style::for_terminal(terminal && !dumb, std::env::var_os("NO_COLOR").as_deref())
            }
        };
        let of_terminal = || size(libc::STDOUT_FILENO).filter(|_| terminal).map(|size| size.0);
        let of_shell = || variable("COLUMNS")?.parse().ok();
        let fixed = asked.width.or_else(of_shell);
        let width = fixed.or_else(of_terminal).unwrap_or(80);
        let shade = shade(style.is_coloured(), dumb);
        let whole = !terminal && fixed.is_none();
        Self {
            text: TextOptions { width: width.clamp(60, 400), whole, style, shade },
            started_with: None,
            pager: None,
        }
    }

    /// Lets [`Self::page`] start a pager on a terminal. Only for commands that have dropped the
    /// file capabilities of the program.
    pub fn allow_pager(&mut self, asked: &Appearance) {
        self.pager =
            if asked.no_pager { None } else { Pager::choose(size(libc::STDOUT_FILENO).map(|size| size.1)) };
    }

    /// Shows text for a reader: in the pager if it is long, or else like [`Self::print`].
    pub fn page(&mut self, text: &str) -> Result<(), Failure> {
        if self.pager.as_ref().is_some_and(|pager| pager.show(text)) {
            return Ok(());
        }
        self.print(text)
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
                Err(Failure::new(ExitClass::Failed, format!("cannot print the result: {error}")))
            }
            _ => Ok(()),
        }
    }
}

/// How text should look: flags of every command.
#[derive(Debug, Default)]
pub struct Appearance {
    color: ColorChoice,
    width: Option<usize>,
    no_pager: bool,
}

impl Appearance {
    const COLOR: &str = "color";
    const COLUMNS: &str = "columns";
    const NO_PAGER: &str = "no_pager";

    /// Adds the flags to a command. Commands that draw pictures have a `--width` of their own, that
    /// of the picture.
    pub fn add(command: Command) -> Command {
        let has_width = command.get_arguments().any(|argument| argument.get_long() == Some("width"));
        let colour = Arg::new(Self::COLOR)
            .long("color")
            .value_name("WHEN")
            .value_parser(value_parser!(ColorChoice))
            .hide_possible_values(true)
            .hide_short_help(true)
            .help("When to use colours: auto, always, never [default: auto]")
            .long_help(
                "When to use colours: auto, always, never. auto means on a terminal, unless NO_COLOR is \
                 set or TERM is dumb [default: auto]",
            );
        let columns = Arg::new(Self::COLUMNS)
            .long("width")
            .value_name("N")
            .value_parser(value_parser!(usize))
            .hide_short_help(true)
            .help("Make text N columns wide [default: COLUMNS, or the terminal's]")
            .long_help(
                "Make text N columns wide, and cut names that do not fit. Default: the variable COLUMNS, \
                 or the width of the terminal. In a pipe, sentences have 80 columns and names are whole.",
            );
        let no_pager = Arg::new(Self::NO_PAGER)
            .long("no-pager")
            .hide_short_help(true)
            .action(ArgAction::SetTrue)
            .help("Do not start a pager for text that is longer than the terminal")
            .long_help(
                "Do not start a pager for text that is longer than the terminal. The pager is \
                 PRECISE_PAGER, PAGER or less; an empty variable and `cat` mean none.",
            );
        let flags = [Some(colour), (!has_width).then_some(columns), Some(no_pager)];
        let flag = |flag: Arg| flag.global(true).help_heading("Output");
        command.args(flags.into_iter().flatten().map(flag))
    }

    /// Returns the values of the flags that [`Appearance::add`] has added.
    pub fn of(matches: &ArgMatches) -> Self {
        let width = matches.try_get_one(Self::COLUMNS).ok().flatten().copied();
        let no_pager = matches.get_flag(Self::NO_PAGER);
        Self { color: matches.get_one(Self::COLOR).copied().unwrap_or_default(), width, no_pager }
    }
}

/// Returns how the cells of heatmaps are shown.
fn shade(coloured: bool, dumb: bool) -> Shade {
    let set = |name: &str, wanted: &str| std::env::var(name).is_ok_and(|value| value.contains(wanted));
    if coloured {
        return if set("COLORTERM", "truecolor") || set("COLORTERM", "24bit") {
            Shade::TrueColour
        } else {
            Shade::Colour256
        };
    }
    if dumb {
        return Shade::Ascii;
    }
    if set("LC_ALL", "UTF-8") || set("LC_CTYPE", "UTF-8") || set("LANG", "UTF-8") {
        Shade::Blocks
    } else {
        Shade::Ascii
    }
}

/// Returns the columns and lines of the terminal that a descriptor is open on.
fn size(descriptor: libc::c_int) -> Option<(usize, usize)> {
    // SAFETY: an all-zero winsize is valid, and TIOCGWINSZ fills one in.
    unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        let asked = libc::ioctl(descriptor, libc::TIOCGWINSZ, &mut size);
        (asked == 0 && size.ws_col > 0).then_some((size.ws_col.into(), size.ws_row.into()))
    }
}

/// Writes lines to standard error, without control characters; on a terminal broken at spaces.
pub fn say(message: &str) {
    let mut err = io::stderr().lock();
    let columns = size(libc::STDERR_FILENO).map(|size| size.0);
    for line in message.lines() {
        // If standard error fails, there is no other way to report it.
        let _gone = writeln!(err, "{}", said(&text::sanitize(line), columns));
    }
}

/// Returns a line for standard error. Lines that begin with a space are quoted text, such as a
/// filter with a mark below it, and stay as they are.
fn said(line: &str, columns: Option<usize>) -> String {
    const WHO: &str = "precise: ";
    match columns {
        Some(columns) if !line.starts_with(' ') => text::wrap_after(WHO, line, columns, 2),
        _ => format!("{WHO}{line}"),
    }
}

/// Removes the numbers of system errors, which repeat the words before them: "No such file or
/// directory (os error 2)".
fn in_words(message: &str) -> String {
    const MARK: &str = " (os error ";
    let mut parts = message.split(MARK);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (number, rest) = part.split_once(')').unwrap_or((part, ""));
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text + rest } else { text + MARK + part }
    })
}

/// Says where a capture is, and under which name the one is that it has replaced.
pub fn say_written(path: &Path, old: Option<&Path>) {
    let old = old.map(|old| format!("; the one before is {} now", old.display())).unwrap_or_default();
    say(&format!("wrote the capture to {}{old}", path.display()));
}

/// Writes a failure to standard error.
pub fn complain(failure: &Failure) {
    say(&in_words(&failure.to_string()));
    if let Some(remedy) = failure.remedy {
        say(super::remedy::words(remedy));
    }
}

/// Writes a file that only its owner may read. The file is written completely or not at all; `-` is
/// standard output.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, bytes).map_err(|error| {
        let failure = Failure::new(ExitClass::Failed, format!("cannot write {}: {error}", path.display()));
        match error.kind() {
            ErrorKind::StorageFull => failure.advise("Free some space, or write elsewhere."),
            _ => failure,
        }
    })
}

/// Refuses to write binary data to a terminal: `path` is `-`, and standard output is one.
pub fn refuse_terminal(path: &Path, what: &str) -> Result<(), Failure> {
    refuse_binary(path, what, io::stdout().is_terminal())
}

fn refuse_binary(path: &Path, what: &str, terminal: bool) -> Result<(), Failure> {
    if path != Path::new("-") || !terminal {
        return Ok(());
    }
    let why = format!("{what} is binary, and the standard output is a terminal");
    Err(Failure::new(ExitClass::Usage, why).advise("Write to a file, or pipe the output to another program."))
}

/// Returns an error if the folder of a file that is written after the run does not exist.
pub fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            let why = format!("cannot write {}: there is no folder {}", path.display(), folder.display());
            Err(Failure::new(ExitClass::Failed, why).advise("Create the folder, or write elsewhere."))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_refuses_binary_data() {
        let refused = refuse_binary(Path::new("-"), "a capture", true).unwrap_err();
        assert_eq!(refused.class, ExitClass::Usage);
        assert!(refused.to_string().contains("a capture is binary"), "{refused}");
        assert!(refuse_binary(Path::new("-"), "a capture", false).is_ok());
        assert!(refuse_binary(Path::new("x.parquet"), "a capture", true).is_ok());
    }

    #[test]
    fn lines_fit_the_terminal_and_quotes_stay() {
        let text = "Overhead: 0.7% of the busiest CPU (peak 0.7%, limit 1.0%), plus 5.7% of one CPU";
        let wrapped = said(text, Some(40));
        assert!(wrapped.lines().all(|line| line.len() <= 40), "{wrapped}");
        assert_eq!(wrapped.split_whitespace().collect::<Vec<_>>().join(" "), format!("precise: {text}"));
        assert_eq!(said(text, None), format!("precise: {text}"));
        assert_eq!(said("  com == x", Some(5)), "precise:   com == x");
    }

    #[test]
    fn errors_are_words_without_numbers() {
        let error = io::Error::from_raw_os_error(libc::ENOENT);
        assert_eq!(
            in_words(&format!("cannot read x: {error}. Check x.")),
            "cannot read x: No such file or directory. Check x."
        );
        for kept in ["plain", "a file (os error x)", "(os error 2", ""] {
            assert_eq!(in_words(kept), kept);
        }
    }

    #[test]
    fn a_missing_folder_is_found_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_folder(&folder.path().join("x.png")).is_ok());
        assert!(check_folder(Path::new("x.png")).is_ok());
        let missing = folder.path().join("missing");
        let refused = check_folder(&missing.join("x.png")).unwrap_err().to_string();
        assert!(refused.contains(&format!("there is no folder {}", missing.display())), "{refused}");
    }
}
