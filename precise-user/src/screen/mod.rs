//! The screen of `precise top`: a live window as tables and strips, drawn into cells.
//!
//! The screen knows no terminal. [`Screen::show`] takes the newest window, [`Screen::key`] a key,
//! and [`Screen::draw`] fills a buffer of any size. Every number comes from a view: a tab is a view
//! of the window, narrowed by the filter.
//!
//! Names come from the profiled programs, so every text is made safe before it becomes a cell.

mod answers;
mod columns;
mod draw;
mod head;
mod help;
mod strip;
mod tab;
#[cfg(test)]
mod tests;
mod types;

use precise_model::keys::Sort;
use precise_model::{Capture, Meta, Row, text};
use precise_sampling::top::WindowSnapshot;
use precise_views::narrow::{WantedPart, narrow};
use precise_views::trust::{Trust, trust};
use precise_views::{idle, view};

pub use answers::{ScreenTable, TabAnswer, TableLine};
pub use tab::Tab;
use types::TypesPane;
pub use types::{TypesAnswer, TypesQuestion};

/// A key, as the screen understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenKey {
    /// A character.
    Char(char),
    /// Return.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Tab, to the next tab.
    Next,
    /// Shift and tab, or left: to the tab before.
    Back,
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// One page up.
    PageUp,
    /// One page down.
    PageDown,
    /// To the first line.
    Home,
    /// To the last line.
    End,
}

/// What a key asks of the program around the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// To end.
    Quit,
    /// To write the window to a file: [`Screen::with_window`].
    Write,
}

/// The colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// None: bold, reversed and plain text only.
    None,
    /// The sixteen colours that every terminal has.
    Few,
    /// 24 bits.
    True,
}

/// The longest filter that can be typed, in characters.
const LONGEST_FILTER: usize = 500;
/// The orders of tables, in the order in which a key takes them.
const SORTS: [(Sort, &str); 5] = [
    (Sort::Samples, "samples"),
    (Sort::Period, "events"),
    (Sort::Latency, "latency"),
    (Sort::Average, "average latency"),
    (Sort::Maximum, "largest latency"),
];

/// A window, and what was made of it. A window may have a hundred thousand rows, so it is copied
/// only if a filter needs it both whole and in part.
#[derive(Debug)]
struct Shown {
    snapshot: WindowSnapshot,
    part: Part,
    trust: Trust,
    /// The samples of each event in each epoch, per second, with those of idle CPUs.
    rates: Vec<Vec<f64>>,
}

/// What the tables are about.
#[derive(Debug)]
enum Part {
    /// The capture of the snapshot, from which these rows of idle CPUs were taken.
    Whole(Vec<Row>),
    /// The part that the filter selects, without idle CPUs; or why there is none.
    Filtered(Result<Box<Capture>, String>),
}

impl Shown {
    /// Returns what the tables are about, or why there is nothing.
    fn part(&self) -> Result<&Capture, &str> {
        match &self.part {
            Part::Whole(_) => Ok(&self.snapshot.capture),
            Part::Filtered(part) => part.as_deref().map_err(String::as_str),
        }
    }

    /// Returns the snapshot as it was taken.
    fn whole(mut self) -> WindowSnapshot {
        if let Part::Whole(idle) = self.part {
            let capture = &mut self.snapshot.capture;
            capture.rows.extend(idle);
            capture.rows.sort_by_key(|row| row.epoch);
            capture.meta.events.iter_mut().for_each(|event| event.idle = None);
        }
        self.snapshot
    }
}

/// The state of the screen.
#[derive(Debug)]
pub struct Screen {
    colours: Colours,
    /// Whether samples of idle CPUs are included.
    idle: bool,
    shown: Option<Shown>,
    /// The newest window, while an older one is shown.
    newest: Option<WindowSnapshot>,
    paused: bool,
    tab: Tab,
    sort: usize,
    event: usize,
    /// The filter in effect, and its text; empty for none.
    wanted: WantedPart,
    filter: String,
    /// The filter that is being typed.
    typed: Option<String>,
    help: bool,
    /// A sentence about the last key, until the next one.
    message: Option<String>,
    /// The answer of the tab, until something changes.
    answer: Option<TabAnswer>,
    /// The answer of the tab of types, which others make.
    types: TypesPane,
    /// The size of the strip that `answer` was made for.
    strip: (usize, usize),
    /// The line that is selected, by its identity; lines move while the view is live.
    selected: Option<String>,
    /// The index of the selected line, if its identity is gone.
    at: usize,
    /// The first line that is visible, and the number of visible lines.
    top: usize,
    visible: usize,
}

impl Screen {
    /// Makes a screen without a window. `idle` includes the samples of idle CPUs.
    pub fn new(colours: Colours, idle: bool) -> Self {
        Self {
            colours,
            idle,
            shown: None,
            newest: None,
            paused: false,
            tab: Tab::Functions,
            sort: 0,
            event: 0,
            wanted: WantedPart::default(),
            filter: String::new(),
            typed: None,
            help: false,
            message: None,
            answer: None,
            types: TypesPane::default(),
            strip: (0, 0),
            selected: None,
            at: 0,
            top: 0,
            visible: 0,
        }
    }

    /// Takes the newest window. While the screen is paused, the window is shown later.
    pub fn show(&mut self, snapshot: WindowSnapshot) {
        if self.paused {
            self.newest = Some(snapshot);
            return;
        }
        let trust = trust(&snapshot.capture);
        self.shown = Some(self.narrowed(snapshot, trust));
        self.answer = None;
        self.types.renew();
    }

    /// Shows a sentence in the last line, until the next key.
    pub fn say(&mut self, sentence: &str) {
        self.message = Some(text::sanitize(sentence));
    }

    /// Calls `of` with the window that is shown, whole. Returns `None` before the first.
    pub fn with_window<T>(&mut self, of: impl FnOnce(&Capture) -> T) -> Option<T> {
        let shown = self.shown.take()?;
        let trust = shown.trust.clone();
        let snapshot = shown.whole();
        let result = of(&snapshot.capture);
        self.shown = Some(self.narrowed(snapshot, trust));
        Some(result)
    }

    /// Returns the metadata of the window that is shown; `None` before the first.
    fn meta(&self) -> Option<&Meta> {
        self.shown.as_ref().map(|shown| &shown.snapshot.capture.meta)
    }

    /// Returns whether a filter is being typed, so that every character is part of it.
    pub fn is_typing(&self) -> bool {
        self.typed.is_some()
    }

    /// Returns a window with the part of it that the filter selects.
    fn narrowed(&self, mut snapshot: WindowSnapshot, trust: Trust) -> Shown {
        let events = 0..snapshot.capture.meta.events.len();
        let rates = events.map(|event| head::rates(&snapshot.capture, event)).collect();
        let part = if self.wanted.is_everything() {
            Part::Whole(idle::take_out(&mut snapshot.capture, self.idle))
        } else {
            Part::Filtered(self.filtered(&snapshot.capture).map(Box::new))
        };
        Shown { snapshot, part, trust, rates }
    }

    fn filtered(&self, capture: &Capture) -> Result<Capture, String> {
        let narrowed = narrow(capture.clone(), &self.wanted);
        let mut part = narrowed.map_err(|error: view::NoAnswer| {
            let advice = error.advice.map_or_else(String::new, |advice| format!(" {advice}"));
            text::sanitize(&format!("{}{advice}", text::ending(&error.text)))
        })?;
        idle::leave_out(&mut part, self.idle);
        Ok(part)
    }

    /// Narrows the shown window again.
    fn narrow_again(&mut self) {
        if let Some(shown) = self.shown.take() {
            let trust = shown.trust.clone();
            self.shown = Some(self.narrowed(shown.whole(), trust));
        }
        self.answer = None;
        self.types.forget();
    }

    /// Handles a key.
    pub fn key(&mut self, key: ScreenKey) -> Action {
        self.message = None;
        if self.help {
            self.help = false;
            return if key == ScreenKey::Char('q') { Action::Quit } else { Action::None };
        }
        if self.typed.is_some() {
            self.type_filter(key);
            return Action::None;
        }
        match key {
            ScreenKey::Char('q') => return Action::Quit,
            ScreenKey::Char('w') if self.shown.is_some() => return Action::Write,
            ScreenKey::Char('w') => self.say("There is nothing to write yet."),
            ScreenKey::Char('?' | 'h') => self.help = true,
            ScreenKey::Char('/') => self.typed = Some(self.filter.clone()),
            ScreenKey::Char(' ') => self.pause(),
            ScreenKey::Char('s') => self.next_sort(),
            ScreenKey::Char('e') => self.next_event(),
            ScreenKey::Escape if !self.filter.is_empty() => self.set_filter(String::new()),
            ScreenKey::Char(digit @ '1'..='9') => {
                let at = digit as usize - '1' as usize;
                if let Some(tab) = Tab::ALL.get(at) {
                    self.turn_to(*tab);
                }
            }
            ScreenKey::Next => self.turn_to(self.tab.beside(1)),
            ScreenKey::Back => self.turn_to(self.tab.beside(Tab::ALL.len() - 1)),
            ScreenKey::Char('k') | ScreenKey::Up => self.select(|at, _| at.saturating_sub(1)),
            ScreenKey::Char('j') | ScreenKey::Down => self.select(|at, _| at + 1),
            ScreenKey::PageUp => self.select(usize::saturating_sub),
            ScreenKey::PageDown => self.select(|at, page| at + page),
            ScreenKey::Home => self.select(|_, _| 0),
            ScreenKey::End => self.select(|_, _| usize::MAX),
            ScreenKey::Char(_) | ScreenKey::Enter | ScreenKey::Escape | ScreenKey::Backspace => {}
        }
        Action::None
    }

    fn turn_to(&mut self, tab: Tab) {
        (self.tab, self.answer, self.selected, self.at, self.top) = (tab, None, None, 0, 0);
    }

    fn pause(&mut self) {
        self.paused = !self.paused;
        if let Some(newest) = self.newest.take() {
            self.show(newest);
        }
    }

    fn type_filter(&mut self, key: ScreenKey) {
        let Some(typed) = &mut self.typed else { return };
        match key {
            ScreenKey::Char(c) if typed.chars().count() < LONGEST_FILTER => typed.push(c),
            ScreenKey::Backspace => drop(typed.pop()),
            ScreenKey::Escape => self.typed = None,
            ScreenKey::Enter => {
                let typed = std::mem::take(typed);
                self.set_filter(typed.trim().to_owned());
            }
            _ => {}
        }
    }

    /// Parses a filter and uses it. One that cannot be parsed stays in the box.
    fn set_filter(&mut self, typed: String) {
        let mut wanted = WantedPart::default();
        if !typed.is_empty() {
            match wanted.flags.clone().with_filter(&typed) {
                Ok(flags) => wanted.flags = flags,
                Err(error) => {
                    self.say(&error.to_string());
                    self.typed = Some(typed);
                    return;
                }
            }
        }
        (self.typed, self.filter, self.wanted) = (None, typed, wanted);
        self.narrow_again();
    }

    /// Returns the orders that the shown event has.
    fn sorts(&self) -> impl Iterator<Item = usize> {
        let events = self.meta().map_or(&[][..], |meta| &meta.events);
        let timed = events.get(self.event).is_some_and(|event| event.fields.latency);
        (0..SORTS.len()).filter(move |at| timed || *at < 2)
    }

    fn next_sort(&mut self) {
        let next = self.sorts().find(|at| *at > self.sort);
        (self.sort, self.answer) = (next.unwrap_or(0), None);
    }

    fn next_event(&mut self) {
        let events = self.meta().map_or(1, |meta| meta.events.len().max(1));
        self.event = (self.event + 1) % events;
        if !self.sorts().any(|at| at == self.sort) {
            self.sort = 0;
        }
        self.turn_to(self.tab);
    }

    /// Moves the selection; `to` gets the selected line and the number of visible lines.
    fn select(&mut self, to: impl Fn(usize, usize) -> usize) {
        let Some(answer) = &self.answer else { return };
        let last = answer.lines().saturating_sub(1);
        self.at = to(self.at, self.visible.max(1)).min(last);
        self.selected = answer.id(self.at).map(str::to_owned);
    }

    /// Finds the selected line in a new answer, and scrolls until it is visible.
    fn follow(&mut self, visible: usize) {
        let Some(answer) = &self.answer else { return };
        self.visible = visible;
        if let Some(at) = self.selected.as_deref().and_then(|id| answer.position(id)) {
            self.at = at;
        }
        self.at = self.at.min(answer.lines().saturating_sub(1));
        let lowest = (self.at + 1).saturating_sub(visible);
        let highest = answer.lines().saturating_sub(visible);
        self.top = self.top.clamp(lowest, self.at.max(lowest)).min(highest);
    }
}
