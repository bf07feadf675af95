//! The answers of the tabs: each asks a view about the window.

use precise_code::{FunctionId, Instruction};
use precise_model::digits::{percent, thousands};
use precise_model::keys::{Key, Sort};
use precise_model::text::{sanitize, wrap};
use precise_model::{Capture, Reason};
use precise_views::c2c::{C2cOptions, c2c};
use precise_views::call_graph::{CallGraphOptions, FunctionCalls, Neighbour, call_graph};
use precise_views::code::Code;
use precise_views::grouping::{Group, Groups};
use precise_views::heatmap::Heatmap;
use precise_views::mem::{MemOptions, mem};
use precise_views::render::TextOptions;
use precise_views::render::number::{cycles, share, short};
use precise_views::report::{ReportOptions, report};
use precise_views::trust::trust;
use precise_views::trust_text::trust_text;

use super::Tab;
use super::columns::Columns;

/// The most lines of a table. More would be read by nobody while they move.
pub(super) const MOST_LINES: usize = 200;

/// What a tab shows.
#[derive(Debug)]
pub enum TabAnswer {
    /// A table.
    Table(ScreenTable),
    /// Strips over time.
    Strips(Box<Heatmap>),
    /// Lines of text.
    Text(Vec<String>),
    /// A sentence that says why there is no answer.
    Nothing(String),
}

/// A table. All of its texts are safe for a terminal.
#[derive(Debug, Default)]
pub struct ScreenTable {
    /// The titles of the columns. All but the last `names` are numbers.
    pub titles: Vec<String>,
    /// The number of columns with names, which are the last ones.
    pub names: usize,
    /// The lines.
    pub lines: Vec<TableLine>,
    /// A sentence about the table; `None` if there is nothing to say.
    pub note: Option<String>,
}

/// A line of a table.
#[derive(Debug, Default)]
pub struct TableLine {
    /// One text for each column.
    pub cells: Vec<String>,
    /// What the line is about, in full. It identifies the line.
    pub about: String,
}

impl TabAnswer {
    /// Returns the number of lines that can be selected or scrolled.
    pub fn lines(&self) -> usize {
        match self {
            Self::Table(table) => table.lines.len(),
            Self::Text(lines) => lines.len(),
            Self::Strips(_) | Self::Nothing(_) => 0,
        }
    }

    /// Returns the identity of a line.
    pub fn id(&self, at: usize) -> Option<&str> {
        match self {
            Self::Table(table) => table.lines.get(at).map(|line| line.about.as_str()),
            _ => None,
        }
    }

    /// Returns the index of the line with this identity.
    pub fn position(&self, id: &str) -> Option<usize> {
        match self {
            Self::Table(table) => table.lines.iter().position(|line| line.about == id),
            _ => None,
        }
    }
}

/// What is asked of the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowQuestion<'a> {
    pub tab: Tab,
    pub event: usize,
    pub sort: Sort,
    /// The function whose callers are wanted.
    pub selected: Option<&'a str>,
    /// The width of the screen.
    pub columns: usize,
}

/// Answers a question about a window, unless it is for strips.
pub(super) fn answer(capture: &Capture, question: &WindowQuestion<'_>) -> TabAnswer {
    let asked = match question.tab {
        Tab::Functions => grouped(capture, question, &[Key::Function, Key::Module]),
        Tab::Lines => grouped(capture, question, &[Key::Line, Key::Function]),
        Tab::Cgroups => grouped(capture, question, &[Key::Cgroup]),
        Tab::Levels => levels(capture, question),
        Tab::CacheLines => cache_lines(capture),
        Tab::Callers => callers(capture, question),
        Tab::Time | Tab::Ledger | Tab::Types => Ok(TabAnswer::Text(ledger(capture, question.columns))),
    };
    asked.unwrap_or_else(|error| TabAnswer::Nothing(sanitize(&error)))
}

fn unranked(groups: &Groups) -> Option<String> {
    let needed = groups.too_few?;
    let have = thousands(groups.total.count);
    Some(format!(
        "Only {have} samples. At least {needed} are needed to rank them: the order means nothing yet."
    ))
}

/// Returns the file name of a module, and any other name as it is.
fn name(text: &str, key: Key) -> &str {
    match key {
        Key::Module => text.rsplit('/').next().unwrap_or_default(),
        _ => text,
    }
}

fn grouped(capture: &Capture, question: &WindowQuestion<'_>, by: &[Key]) -> Result<TabAnswer, String> {
    let options = ReportOptions {
        by: by.to_vec(),
        sort: question.sort,
        limit: Some(MOST_LINES),
        ..ReportOptions::default()
    };
    let mut answer = report(capture, &options).map_err(|error| error.to_string())?;
    if question.event >= answer.events.len() {
        return Err("The window has no such event.".to_owned());
    }
    let event = answer.events.swap_remove(question.event);
    if event.groups.list.is_empty() {
        return Err("No samples yet.".to_owned());
    }
    let columns = Columns::of(&event.groups, question.sort, by == [Key::Cgroup]);
    let mut table = ScreenTable { names: by.len(), note: unranked(&event.groups), ..ScreenTable::default() };
    table.titles = columns.titles();
    table.titles.extend(by.iter().map(|key| key.title().to_owned()));
    table.lines = event.groups.list.iter().map(|group| line(&columns, group, by)).collect();
    Ok(TabAnswer::Table(table))
}

fn line(columns: &Columns, group: &Group, by: &[Key]) -> TableLine {
    let mut cells = columns.cells(group);
    let labels = group.values.iter().zip(by);
    cells.extend(labels.map(|(value, key)| sanitize(name(&value.label(), *key))));
    let about: Vec<String> = group.values.iter().map(|value| sanitize(&value.text())).collect();
    TableLine { cells, about: about.join("  ") }
}

fn levels(capture: &Capture, question: &WindowQuestion<'_>) -> Result<TabAnswer, String> {
    let options = MemOptions { sort: Some(question.sort), ..MemOptions::default() };
    let mut answer = mem(capture, &options).map_err(|error| error.to_string())?;
    if question.event >= answer.events.len() {
        return Err("The window has no such event.".to_owned());
    }
    let event = answer.events.swap_remove(question.event);
    let Some(first) = event.accesses.first() else { return Err("No memory accesses yet.".to_owned()) };
    let columns = Columns::of(&first.groups, question.sort, true);
    let mut table =
        ScreenTable { names: answer.by.len() + 1, note: unranked(&first.groups), ..ScreenTable::default() };
    table.titles = columns.titles();
    table.titles.push("Op".to_owned());
    table.titles.extend(answer.by.iter().map(|key| key.title().to_owned()));
    for accesses in &event.accesses {
        table.lines.extend(accesses.groups.list.iter().map(|group| {
            let TableLine { mut cells, about } = line(&columns, group, &answer.by);
            cells.insert(cells.len() - answer.by.len(), accesses.op.to_owned());
            TableLine { cells, about: format!("{}  {about}", accesses.op) }
        }));
    }
    Ok(TabAnswer::Table(table))
}

/// A machine without code: the window has no files open, and widths come from the hardware.
struct Nowhere;

impl Code for Nowhere {
    fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        Err(Reason::FileMissing)
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}

fn cache_lines(capture: &Capture) -> Result<TabAnswer, String> {
    let options = C2cOptions { limit: Some(MOST_LINES), ..C2cOptions::default() };
    let answer = c2c(capture, &options, &mut Nowhere).map_err(|error| error.to_string())?;
    if let Some(needed) = answer.too_few {
        return Err(format!(
            "Only {} loads found their line modified in another core's cache. At least {needed} are needed \
             to rank lines.",
            thousands(answer.hitm)
        ));
    }
    let titles = ["HITM", "Loads", "Stores", "Avg cycles", "Sharing", "Where"];
    let mut table =
        ScreenTable { titles: titles.map(str::to_owned).to_vec(), names: 2, ..ScreenTable::default() };
    table.lines = answer
        .lines
        .iter()
        .map(|line| {
            let place =
                if line.variables.is_empty() { line.region.clone() } else { line.variables.join(", ") };
            let place = sanitize(&format!("{:#x} {place}", line.address));
            let numbers = [share(&line.share), thousands(line.loads), thousands(line.stores)];
            let average = line.hitm_average.map_or_else(|| "-".to_owned(), cycles);
            let mut cells = numbers.to_vec();
            cells.extend([average, line.verdict.words().to_owned(), place.clone()]);
            TableLine { cells, about: place }
        })
        .collect();
    Ok(TabAnswer::Table(table))
}

fn callers(capture: &Capture, question: &WindowQuestion<'_>) -> Result<TabAnswer, String> {
    let function = question.selected.and_then(|about| about.split("  ").next()).map(str::to_owned);
    let options = CallGraphOptions { function, limit: Some(MOST_LINES), ..CallGraphOptions::default() };
    let mut answer = call_graph(capture, &options).map_err(|error| error.to_string())?;
    if question.event >= answer.events.len() {
        return Err("The window has no such event.".to_owned());
    }
    let calls = answer.events.swap_remove(question.event);
    if calls.functions.is_empty() {
        return Err(format!("Only {} samples with call chains so far.", thousands(calls.samples)));
    }
    let titles = ["Total", "Self", "Samples", "Function", "Called by"];
    let mut table =
        ScreenTable { titles: titles.map(str::to_owned).to_vec(), names: 2, ..ScreenTable::default() };
    table.lines = calls
        .functions
        .iter()
        .map(|cost| {
            let around = calls.around.iter().find(|around| around.function.function == cost.function);
            let called = around.map_or_else(String::new, called_by);
            let function = sanitize(&cost.function.text());
            let numbers = [share(&cost.inclusive.share), share(&cost.exclusive.share)];
            let samples = short(cost.inclusive.samples);
            let module = sanitize(&cost.module.text());
            let mut cells = numbers.to_vec();
            cells.extend([samples, function.clone(), called]);
            TableLine { cells, about: format!("{function}  {module}") }
        })
        .collect();
    Ok(TabAnswer::Table(table))
}

/// Returns the callers of a function in one text, those with most samples first.
fn called_by(around: &FunctionCalls) -> String {
    let caller = |Neighbour { function, share, .. }: &Neighbour| {
        let name = function.as_ref().map_or_else(|| "(outermost)".to_owned(), |name| name.text());
        sanitize(&format!("{} {name}", percent(share.value)))
    };
    around.callers.iter().take(3).map(caller).collect::<Vec<_>>().join(", ")
}

fn ledger(capture: &Capture, columns: usize) -> Vec<String> {
    let options = TextOptions { width: columns.max(40), ..TextOptions::default() };
    let mut text = trust_text(&trust(capture), &options);
    if let Some(selection) = &capture.meta.selection {
        text = format!("{}\n\n{text}", wrap(&sanitize(&selection.text), options.width, 0));
    }
    text.lines().map(sanitize).collect()
}
