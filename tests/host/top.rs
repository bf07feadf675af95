//! `precise top`, in a real terminal: tmux is one whose screen can be read.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use precise_tests::{
    clock::Clock,
    kill_on_drop::KillOnDrop,
    program,
    run::{binary, precise},
};

/// A timer's sample is at an instruction behind the one that took the time: there, too, is an
/// access.
const WORK: &str = "volatile long s;
    #define ADD asm volatile(\"addq %1,%0\" : \"+m\"(s) : \"r\"(i));
    __attribute__((noinline)) void known_work(void) { for (long i = 0; i < 1000000; i++) { ADD ADD ADD ADD } }
    int main(void) { for (;;) known_work(); }";

/// How long a screen is waited for; a machine that has much to do needs more than ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A terminal with `precise top` in it.
struct Terminal {
    /// The name of the server, which no other test has.
    server: String,
}

impl Terminal {
    fn start(folder: &Path, size: (u16, u16), top: &str) -> Result<Self> {
        let server = format!("precise-top-{}-{}", std::process::id(), size.0);
        let terminal = Self { server };
        let (columns, lines) = (size.0.to_string(), size.1.to_string());
        // The shell stays, so that the screen after the end can be read.
        let command = format!("{} top {top}; echo ended with $?; exec cat", binary()?.display());
        let folder = folder.display().to_string();
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &lines,
            "-c",
            &folder,
            "-e",
            "LC_ALL=C.UTF-8",
            &command,
        ])?;
        Ok(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("tmux").arg("-u").args(["-L", &self.server]).args(arguments).output();
        let output = output.context("tmux: cargo xtask setup installs it")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tmux {arguments:?}: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn press(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat()).map(drop)
    }

    /// Waits for a screen that is right, and returns its lines.
    fn wait(&self, what: &str, right: impl Fn(&[&str]) -> bool) -> Result<Vec<String>> {
        let clock = Clock::start();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"])?;
            let lines: Vec<&str> = screen.lines().collect();
            if right(&lines) {
                return Ok(lines.into_iter().map(str::to_owned).collect());
            }
            ensure!(clock.elapsed() < PATIENCE, "{what} did not come:\n{screen}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn shows(&self, text: &str) -> Result<Vec<String>> {
        self.wait(text, |lines| lines.iter().any(|line| line.contains(text)))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _gone = self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_session_on_a_small_and_on_a_large_screen() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let work = program::c(folder.path(), "topwork", WORK)?;
    let _work = KillOnDrop::from(Command::new(work).spawn()?);
    let terminal = Terminal::start(folder.path(), (80, 24), "-e cpu-clock --epoch 200ms -o top.parquet")?;
    let screen = terminal.shows("known_work")?;
    ensure!(screen[0].starts_with("precise top  cpu-clock of all processes  last "), "{screen:#?}");
    ensure!(screen[1].contains(" samples/s  cost: sampling "), "{screen:#?}");
    ensure!(screen[2].starts_with("ledger  seen ") && screen[2].contains("lost 0; closes"), "{screen:#?}");
    ensure!(screen[3].starts_with("verdict NOT PRECISE"), "{screen:#?}");
    ensure!(screen[4].starts_with("1 Functions 2 Lines 3 Levels 4 Cgroups 5 Time"), "{screen:#?}");
    ensure!(screen[23].starts_with("q quit  ? help  / filter"), "{screen:#?}");

    terminal.press(&["3"])?;
    terminal.shows("needs the")?;
    terminal.press(&["5"])?;
    terminal.shows("functions upwards")?;
    terminal.press(&["8"])?;
    terminal.shows("Ledger of cpu-clock")?;
    terminal.press(&["1", "/"])?;
    terminal.press(&["-l", "comm == topwork"])?;
    terminal.press(&["Enter"])?;
    let one = |lines: &[&str]| lines.get(6).is_some_and(|line| line.contains("known_work"));
    terminal.wait("the filtered table", |lines| one(lines) && lines[23].contains("[comm == topwork]"))?;
    // Types of the filtered part only: those of all processes would fill the screen.
    terminal.press(&["9"])?;
    terminal.wait("the type of what is counted", |lines| lines[6].contains("  long int"))?;
    terminal.press(&["1"])?;

    // A window that is paused has the same numbers at each size.
    terminal.press(&["Space"])?;
    let small = terminal.wait("the pause", |lines| one(lines) && lines[0].ends_with(" PAUSED"))?;
    let keys = |line: usize| move |lines: &[&str]| lines.get(line).is_some_and(|l| l.starts_with("q quit"));
    terminal.tmux(&["resize-window", "-x", "200", "-y", "60"])?;
    let large = terminal.wait("the larger screen", keys(59))?;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for line in [0, 2, 3, 4, 5, 6] {
        // What is cut on 80 columns goes on.
        let same = match small[line].strip_suffix('…') {
            Some(cut) => large[line].starts_with(cut),
            None => words(&small[line]) == words(&large[line]),
        };
        ensure!(same, "line {line}: {small:#?} {large:#?}");
    }
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"])?;
    terminal
        .wait("the screen as it was", |lines| lines.iter().copied().eq(small.iter().map(String::as_str)))?;
    terminal.press(&["Space"])?;
    terminal.wait("the end of the pause", |lines| one(lines) && !lines[0].ends_with(" PAUSED"))?;

    terminal.tmux(&["resize-window", "-x", "200", "-y", "60"])?;
    terminal.wait("the larger screen while it runs", |lines| one(lines) && keys(59)(lines))?;
    terminal.press(&["w"])?;
    terminal.shows("Wrote the window to top.parquet.")?;
    terminal.press(&["q"])?;
    let screen = terminal.shows("ended with 0")?;
    ensure!(!screen.iter().any(|line| line.contains("1 Functions")), "the screen stayed: {screen:#?}");

    // What was written is a capture whose ledger closes, and that knows the work.
    let file = folder.path().join("top.parquet").display().to_string();
    let said = precise(["report", "-i", &file, "--by", "function", "--json"])?.expect(0)?.stdout;
    let report: serde_json::Value = serde_json::from_str(&said)?;
    let trust = &report["events"][0]["trust"];
    ensure!(trust["closes"] == true && trust["unaccounted"] == 0, "{trust}");
    let findings = trust["findings"].to_string();
    ensure!(!findings.contains("The rows hold"), "{findings}");
    ensure!(said.contains("known_work"), "{said}");
    Ok(())
}

/// Returns a line of a screen without its numbers and bars, which differ from run to run.
fn masked(line: &str) -> String {
    let mut out = String::new();
    for word in line.split_whitespace() {
        let bars = word.chars().all(|c| ('▁'..='█').contains(&c));
        let mut number = false;
        // `>99.9%` is a number, too.
        for c in word.chars().filter(|c| !bars && *c != '>') {
            let part = c.is_ascii_digit() || (number && matches!(c, '.' | ',' | 'k' | 'M'));
            if part && !number {
                out.push('N');
            }
            // A comma or dot after a number may end a part of the sentence.
            if !part || c == ',' {
                out.push(c);
            }
            number = part;
        }
        out.push(' ');
    }
    out.trim_end().to_owned()
}

/// Returns the lines above the table, its titles and its first line, masked. The ledger and the
/// verdict go on with what a run met.
fn head<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let ends = |at: usize| ["", "", "coverage N%", "NOT PRECISE"].get(at).copied().unwrap_or_default();
    let cut = |(at, line): (usize, &str)| {
        let (line, end) = (masked(line), ends(at));
        match line.split_once(end).filter(|_| !end.is_empty()) {
            Some((begin, _)) => format!("{begin}{end}"),
            None => line,
        }
    };
    lines.take(7).enumerate().map(cut).collect()
}

/// docs/top.md shows a screen of this: the lines above the table, its titles, and its first line.
#[test]
fn the_screen_of_the_documents_is_what_a_terminal_shows() -> Result<()> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/top.md"))?;
    let documented =
        page.split("```").find(|block| block.contains("1 Functions 2 Lines")).context("a screen")?;
    let folder = tempfile::tempdir()?;
    let work = program::c(folder.path(), "topwork", WORK)?;
    let _work = KillOnDrop::from(Command::new(work).spawn()?);
    let wanted = head(documented.trim_start().lines());
    let last = wanted.last().context("a line of the table")?;
    // A larger screen has more lines of the table, and more bars.
    for size in [(80, 24), (200, 60)] {
        let terminal = Terminal::start(folder.path(), size, "-e cpu-clock")?;
        let screen =
            terminal.wait("the documented line", |lines| lines.get(6).is_some_and(|l| masked(l) == *last))?;
        let found = head(screen.iter().map(String::as_str));
        ensure!(
            found == wanted,
            "{size:?}: docs/top.md has\n{wanted:#?}, the terminal\n{found:#?}\n{screen:#?}"
        );
    }
    Ok(())
}

#[test]
fn the_terminal_is_given_back_however_the_view_ends() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (number, end) in ["C-c", "SIGTERM"].into_iter().enumerate() {
        let terminal = Terminal::start(folder.path(), (90 + number as u16, 24), "-e cpu-clock")?;
        terminal.shows("1 Functions")?;
        match end {
            "C-c" => terminal.press(&["C-c"])?,
            _ => {
                let shell = terminal.tmux(&["display-message", "-p", "#{pane_pid}"])?;
                let done =
                    Command::new("pkill").args(["-TERM", "-P", shell.trim(), "-x", "precise"]).status()?;
                ensure!(done.success(), "no precise below the shell {shell}");
            }
        }
        terminal.shows("ended with 0")?;
        // The shell's terminal echoes again: raw mode is off.
        terminal.press(&["-l", "echoed"])?;
        terminal.shows("echoed")?;
    }
    Ok(())
}

#[test]
fn a_view_without_a_screen_is_refused_in_words() -> Result<()> {
    let output = Command::new(binary()?).arg("top").stdin(Stdio::null()).output()?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.code() == Some(2) && said.contains("needs a terminal"), "{said}");
    ensure!(said.contains("precise record"), "{said}");
    Ok(())
}
