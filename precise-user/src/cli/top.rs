//! `precise top`.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;
use precise::capture::{CaptureWriter, WriteError};
use precise::error::{ExitClass, Failure};
use precise::kernel::clock::thread_cpu_ns;
use precise::model::Capture;
use precise::run::kill_switch;
use precise::run::plan::Plan;
use precise::screen::{Action, Colours, Screen, ScreenKey};
use precise::top::{self, Live, TopProgress};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::{cursor, execute, terminal};
use ratatui::{Terminal, backend::CrosstermBackend};

use super::{
    CommandResult, Output,
    aggregating::AggregatingArguments,
    call_graph::AggregatedChainArguments,
    idle::IdleArguments,
    output::{check_folder, say},
    plan_failure::plan_failure,
    sample,
    selection::{LIMITS, OUTPUT, SelectionArguments},
    types_thread::TypesThread,
    values,
};

const AFTER_HELP: &str = "\
Examples:
  precise top                                what the CPUs do, live
  precise top -e loads                       latencies by level and cgroup
  precise top -p 4711 -g                     one process, with callers

Press ? on the screen for its keys.";

/// How long the screen waits for a key before it looks for new samples.
const LOOK: Duration = Duration::from_millis(100);

/// The least time between two windows. Nobody reads faster, and each is made from all of its rows.
const OFTEN: Duration = Duration::from_millis(900);
/// Between two windows passes this multiple of the CPU time that the first took, so that the screen
/// takes at most 2 % of a CPU, whatever the number of rows.
const PAUSE: u32 = 50;
/// How long the end of the run waits for the screen.
const STUCK: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("command", |arg| arg.hide(true)))]
#[command(mut_arg("epoch", |arg| arg.help("Read the table, and draw, at this interval [default: 1s]")))]
#[command(mut_arg("duration", |arg| arg.help("Stop after this time [default: run until stopped]")))]
pub struct TopArguments {
    #[command(flatten)]
    selection: SelectionArguments,
    #[command(flatten)]
    chains: AggregatedChainArguments,
    /// Show the samples of this time
    ///
    /// Tables and strips are about the newest samples of this length. Memory is bounded: with very
    /// many rows the window is shorter, and the screen says so.
    #[arg(long, value_name = "TIME", value_parser = values::duration, default_value = "60s", help_heading = LIMITS)]
    window: Duration,
    #[command(flatten)]
    aggregating: AggregatingArguments,
    /// Write the window to FILE when w is pressed
    #[arg(short, long, value_name = "FILE", default_value = "precise-top.parquet", help_heading = OUTPUT)]
    output: PathBuf,
    #[command(flatten)]
    idle: IdleArguments,
}

/// Samples and shows the screen until the user quits.
pub fn run(arguments: &TopArguments, out: &mut Output) -> CommandResult {
    if arguments.selection.has_command() {
        let what = "`precise top` runs no command: the command would write over the screen";
        let advice = "Start the command in another terminal, and sample it with -p, or use `precise record`.";
        return Err(Failure::new(ExitClass::Usage, what).advise(advice));
    }
    check_terminal()?;
    check_folder(&arguments.output)?;
    let plan = plan(arguments)?;
    let colours = colours(out.text.style.is_coloured());
    let mut shown: Option<JoinHandle<Result<(), Failure>>> = None;
    let mut result = Ok(());
    let ended = sample(async {
        let progress = |progress: TopProgress<'_>| match progress {
            TopProgress::Started(live) => {
                let screen = Screen::new(colours, arguments.idle.includes());
                let (live, output) = (live.clone(), arguments.output.clone());
                let stop = live.clone();
                // The name tells its CPU time from that of the others.
                let thread = std::thread::Builder::new().name("screen".into()).spawn(move || {
                    let _stops = Stops(live.clone());
                    show(screen, &live, &output)
                });
                match thread {
                    Ok(thread) => shown = Some(thread),
                    Err(error) => {
                        let what = format!("cannot start the thread of the screen: {error}");
                        result = Err(Failure::new(ExitClass::Failed, what));
                        stop.stop();
                    }
                }
            }
            TopProgress::Over(live) => {
                live.close();
                if let Some(thread) = shown.take() {
                    result = ended_screen(thread);
                }
            }
        };
        top::run(&plan, arguments.window, progress).await
    })?;
    result?;
    ended.notes.iter().for_each(|note| say(note));
    if let Some(why) = &ended.stopped {
        return Err(kill_switch::ended(why).into());
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits for the thread of the screen. A terminal that takes no more output (Ctrl-S) must not keep
/// the process alive.
fn ended_screen(thread: JoinHandle<Result<(), Failure>>) -> Result<(), Failure> {
    let begin = Instant::now();
    while !thread.is_finished() {
        if begin.elapsed() > STUCK {
            // Nothing is written: that would wait too.
            let _gone = terminal::disable_raw_mode();
            return Err(Failure::new(
                ExitClass::Failed,
                "the terminal takes no output, so the screen is still on it",
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let died = |_| Err(Failure::new(ExitClass::Failed, "the thread of the screen died"));
    thread.join().unwrap_or_else(died)
}

/// Ends the run when the thread of the screen ends, for whatever reason.
struct Stops(Live);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn plan(arguments: &TopArguments) -> Result<Plan, Failure> {
    let builder = arguments.aggregating.complete(arguments.selection.plan()?);
    arguments.chains.complete(builder.live()).build().map_err(plan_failure)
}

/// Returns an error if there is no terminal that can show a screen.
fn check_terminal() -> Result<(), Failure> {
    let instead = "Use `precise record` and `precise report`, or `precise script` for samples as they come.";
    let refuse = |what: &str| Err(Failure::new(ExitClass::Usage, what).advise(instead));
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return refuse("`precise top` needs a terminal, and standard input and output are not both one");
    }
    match std::env::var("TERM").as_deref() {
        Ok("dumb") => refuse("`precise top` draws a screen, and this terminal cannot (TERM=dumb)"),
        Ok("") | Err(_) => refuse("`precise top` draws a screen, and TERM does not say how"),
        Ok(_) => Ok(()),
    }
}

fn colours(coloured: bool) -> Colours {
    let many = std::env::var("COLORTERM").is_ok_and(|term| term == "truecolor" || term == "24bit");
    match (coloured, many) {
        (false, _) => Colours::None,
        (true, false) => Colours::Few,
        (true, true) => Colours::True,
    }
}

/// The terminal while the screen is on it. Dropping it restores the terminal.
struct Shown(Terminal<CrosstermBackend<io::Stdout>>);

impl Shown {
    fn start() -> io::Result<Self> {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // A message on the other screen would be lost. A panic that is an answer has none.
            if !precise::capture::panics_are_answered() {
                restore();
            }
            hook(panic);
        }));
        terminal::enable_raw_mode()?;
        let started = execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        started.map(Self).inspect_err(|_| restore())
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back as it was. Does no harm if it was given back before.
fn restore() {
    // If the terminal is gone, nobody sees it.
    let _gone = execute!(io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
    let _gone = terminal::disable_raw_mode();
}

/// Shows the screen until the user quits or the run is over.
fn show(mut screen: Screen, live: &Live, output: &Path) -> Result<(), Failure> {
    let failed =
        |error: io::Error| Failure::new(ExitClass::Failed, format!("cannot draw on the terminal: {error}"));
    let mut types = TypesThread::start().map_err(|error| {
        Failure::new(ExitClass::Failed, format!("cannot start the thread that finds types: {error}"))
    })?;
    let mut shown = Shown::start().map_err(failed)?;
    let mut version = 0;
    let mut due = Instant::now();
    let mut changed = true;
    while !live.is_closed() {
        let (now, begin) = (Instant::now(), thread_cpu_ns());
        let newer = if now >= due { live.latest(version) } else { None };
        let is_newer = newer.is_some();
        if let Some((now, snapshot)) = newer {
            screen.show(snapshot);
            (version, changed) = (now, true);
        }
        changed |= types.turn(&mut screen, OFTEN, PAUSE);
        if changed {
            shown.0.draw(|frame| screen.draw(frame)).map_err(failed)?;
            changed = false;
        }
        if is_newer {
            let took = Duration::from_nanos(thread_cpu_ns().saturating_sub(begin));
            due = now + OFTEN.max(took.saturating_mul(PAUSE));
        }
        if input(LOOK) == Input::Gone {
            return Ok(());
        }
        while event::poll(Duration::ZERO).map_err(failed)? {
            changed = true;
            let Some(key) = key(&event::read().map_err(failed)?) else { continue };
            match key.map_or(Action::Quit, |key| screen.key(key)) {
                Action::None => {}
                Action::Quit => return Ok(()),
                Action::Write => {
                    let said = screen.with_window(|window| written(window, output));
                    said.iter().for_each(|said| screen.say(said));
                }
            }
        }
    }
    Ok(())
}

/// The state of the terminal's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// There may be keys, or a new size.
    Maybe,
    /// The terminal is gone.
    Gone,
}

/// Waits for input, for at most this time. crossterm reads the end of a terminal that is gone over
/// and over again, so it is only asked while there is one.
fn input(most: Duration) -> Input {
    let mut stdin = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: points to one live pollfd.
    unsafe { libc::poll(&raw mut stdin, 1, most.as_millis() as libc::c_int) };
    if stdin.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) == 0 {
        Input::Maybe
    } else {
        Input::Gone
    }
}

/// Writes the window, and returns a sentence about it.
fn written(window: &Capture, output: &Path) -> String {
    let write = || -> Result<Option<PathBuf>, WriteError> {
        let mut writer = CaptureWriter::create(output)?.keep_old()?;
        writer.append_epoch(window, &window.rows)?;
        writer.finish(&window.meta)
    };
    match write() {
        Ok(None) => format!("Wrote the window to {}.", output.display()),
        Ok(Some(old)) => {
            format!("Wrote the window to {}; the old file is {}.", output.display(), old.display())
        }
        Err(error) => error.to_string(),
    }
}

/// Returns the key of an event; `Some(None)` for the keys that end the program, and `None` for
/// events that are no keys.
fn key(event: &Event) -> Option<Option<ScreenKey>> {
    let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return None };
    if *kind == KeyEventKind::Release {
        return None;
    }
    let control = modifiers.contains(KeyModifiers::CONTROL);
    Some(Some(match code {
        KeyCode::Char('c' | 'd') if control => return Some(None),
        KeyCode::Char(_) if control || modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char(c) => ScreenKey::Char(*c),
        KeyCode::Enter => ScreenKey::Enter,
        KeyCode::Esc => ScreenKey::Escape,
        KeyCode::Backspace => ScreenKey::Backspace,
        KeyCode::Tab | KeyCode::Right => ScreenKey::Next,
        KeyCode::BackTab | KeyCode::Left => ScreenKey::Back,
        KeyCode::Up => ScreenKey::Up,
        KeyCode::Down => ScreenKey::Down,
        KeyCode::PageUp => ScreenKey::PageUp,
        KeyCode::PageDown => ScreenKey::PageDown,
        KeyCode::Home => ScreenKey::Home,
        KeyCode::End => ScreenKey::End,
        _ => return None,
    }))
}
