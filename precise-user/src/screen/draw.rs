//! Drawing: the state of the screen into the cells of a buffer.

use precise_model::text::{Cut, fit, lines, width};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};

use super::answers::{WindowQuestion, answer};
use super::{Colours, SORTS, Screen, ScreenTable, Shown, Tab, TabAnswer, head, help, strip};

/// The least size at which there is something to read.
const LEAST: (u16, u16) = (60, 12);
/// The lines above the content: title, rate, ledger, verdict, tabs.
const HEAD: u16 = 5;
/// The lines below the content: what is selected, and the keys.
const FOOT: u16 = 2;
/// The most columns of a sparkline.
const SPARKLINE: usize = 60;
/// The width of the rate and of the cost beside the sparkline.
const COST: usize = 66;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Draws a text into one line of an area, cut at the end. Nothing is drawn outside of the area.
pub(super) fn put(buffer: &mut Buffer, area: Rect, y: u16, text: &str, style: Style) {
    let area = area.intersection(buffer.area);
    if y >= area.top() && y < area.bottom() && area.width > 0 {
        let cut = fit(text, usize::from(area.width), Cut::End);
        buffer.set_stringn(area.left(), y, cut, usize::from(area.width), style);
    }
}

impl Screen {
    /// Draws the screen.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        if let Some(column) = self.fill(area, frame.buffer_mut()) {
            frame.set_cursor_position(Position::new(column, area.bottom().saturating_sub(1)));
        }
    }

    /// Fills a buffer. Returns the column of the cursor in the last line, if a filter is typed.
    pub(super) fn fill(&mut self, area: Rect, buffer: &mut Buffer) -> Option<u16> {
        if area.width < LEAST.0 || area.height < LEAST.1 {
            let (columns, rows) = LEAST;
            let text = format!("precise top needs {columns} columns and {rows} lines");
            put(buffer, area, area.top(), &text, Style::new());
            return None;
        }
        if self.help {
            for (y, line) in (area.top()..).zip(help::lines(usize::from(area.width))) {
                put(buffer, area, y, &line, if line.starts_with(' ') { Style::new() } else { BOLD });
            }
            put(buffer, area, area.bottom() - 1, "any key: back", DIM);
            return None;
        }
        let content = Rect { y: area.y + HEAD, height: area.height - HEAD - FOOT, ..area };
        self.ask(content);
        self.head(area, buffer);
        self.content(content, buffer);
        self.foot(area, buffer)
    }

    /// Asks the question of the tab, if the answer is not there.
    fn ask(&mut self, content: Rect) {
        let size = (usize::from(content.width), usize::from(content.height));
        if self.strip != size {
            (self.strip, self.answer) = (size, None);
        }
        let Some(shown) = &self.shown else { return };
        if self.answer.is_some() {
            return;
        }
        let question = WindowQuestion {
            tab: self.tab,
            event: self.event,
            sort: SORTS[self.sort].0,
            selected: self.selected.as_deref(),
            columns: size.0,
        };
        self.answer = Some(match shown.part() {
            Err(why) => TabAnswer::Nothing(why.to_owned()),
            Ok(_) if self.tab == Tab::Types => self.types.answer(self.event),
            Ok(part) if self.tab == Tab::Time => strip::strips(part, self.event, size.0, size.1),
            Ok(part) => answer(part, &question),
        });
    }

    fn tint(&self, colour: Color) -> Style {
        if self.colours == Colours::None { Style::new() } else { Style::new().fg(colour) }
    }

    fn head(&self, area: Rect, buffer: &mut Buffer) {
        let top = area.top();
        self.tabs(area, buffer, top + 4);
        let Some(shown) = &self.shown else {
            put(buffer, area, top, "precise top", BOLD);
            put(buffer, area, top + 1, "waiting for the first epoch", DIM);
            return;
        };
        let Shown { snapshot, trust, rates, .. } = shown;
        put(buffer, area, top, &head::title(snapshot, self.event), BOLD);
        if self.paused {
            let paused = " PAUSED ";
            let x = area.right().saturating_sub(paused.len() as u16);
            put(buffer, Rect { x, width: area.right() - x, ..area }, top, paused, REVERSED);
        }
        let rates = rates.get(self.event).map_or(&[][..], Vec::as_slice);
        let room = usize::from(area.width).saturating_sub(COST).clamp(8, SPARKLINE);
        let line = head::sparkline(rates, room.min(rates.len()));
        put(buffer, area, top + 1, &line, self.tint(Color::Cyan));
        let after = area.left() + width(&line) as u16 + 1;
        let rest = Rect { x: after, width: area.right().saturating_sub(after), ..area };
        let cost = format!("{}  {}", head::rate(rates), head::cost(snapshot));
        put(buffer, rest, top + 1, &cost, Style::new());
        let (Some(event), Some(trust)) =
            (snapshot.capture.meta.events.get(self.event), trust.events.get(self.event))
        else {
            return;
        };
        // What was left out is known of the part that is shown.
        let event = shown.part().ok().and_then(|part| part.meta.events.get(self.event)).unwrap_or(event);
        let good = if trust.closes && event.ledger.lost_total() == 0 { Color::Green } else { Color::Red };
        put(buffer, area, top + 2, &head::ledger(event, trust), self.tint(good));
        let good = match (trust.precise, trust.findings.is_empty()) {
            (true, true) => Color::Green,
            (true, false) => Color::Yellow,
            (false, _) => Color::Red,
        };
        put(buffer, area, top + 3, &head::verdict(trust), self.tint(good));
    }

    fn tabs(&self, area: Rect, buffer: &mut Buffer, y: u16) {
        let mut x = area.left();
        for (at, tab) in Tab::ALL.into_iter().enumerate() {
            let text = format!("{} {}", at + 1, tab.title());
            let style = if tab == self.tab { REVERSED } else { Style::new() };
            if x >= area.right() {
                return;
            }
            put(buffer, Rect { x, width: area.right() - x, ..area }, y, &text, style);
            x += text.len() as u16 + 1;
        }
    }

    fn content(&mut self, area: Rect, buffer: &mut Buffer) {
        let visible = usize::from(area.height).saturating_sub(1);
        self.follow(visible);
        match &self.answer {
            None => {}
            Some(TabAnswer::Nothing(why)) => {
                let columns = usize::from(area.width).saturating_sub(4);
                let text = lines(why, |_, line| width(line) <= columns);
                for (y, line) in (area.top() + 1..).zip(text) {
                    put(
                        buffer,
                        Rect { x: area.x + 2, width: area.width - 2, ..area },
                        y,
                        &line,
                        Style::new(),
                    );
                }
            }
            Some(TabAnswer::Text(text)) => {
                for (y, line) in (area.top()..area.bottom()).zip(text.iter().skip(self.at)) {
                    put(buffer, area, y, line, Style::new());
                }
            }
            Some(TabAnswer::Strips(heatmap)) => strip::draw(heatmap, self.colours, area, buffer),
            Some(TabAnswer::Table(table)) => self.table(table, area, buffer),
        }
    }

    fn table(&self, table: &ScreenTable, area: Rect, buffer: &mut Buffer) {
        let widths = widths(table, usize::from(area.width));
        let (mut y, bottom) = (area.top(), area.bottom());
        put(buffer, area, y, &row(&table.titles, &widths, table.names), BOLD);
        y += 1;
        for (at, line) in table.lines.iter().enumerate().skip(self.top) {
            if y >= bottom {
                break;
            }
            let text = row(&line.cells, &widths, table.names);
            let style = if at == self.at { REVERSED } else { Style::new() };
            put(buffer, area, y, &format!("{text:<all$}", all = usize::from(area.width)), style);
            y += 1;
        }
    }

    fn foot(&self, area: Rect, buffer: &mut Buffer) -> Option<u16> {
        let y = area.bottom() - FOOT;
        let about = match &self.answer {
            Some(answer @ TabAnswer::Table(table)) => {
                let note = table.note.as_deref().or_else(|| self.shortened());
                note.or_else(|| answer.id(self.at)).unwrap_or_default().to_owned()
            }
            _ => self.shortened().unwrap_or_default().to_owned(),
        };
        put(buffer, area, y, &about, DIM);
        if let Some(typed) = &self.typed {
            let typed = precise_model::text::sanitize(typed);
            let before = "filter: ";
            let room = usize::from(area.width).saturating_sub(before.len() + 1);
            put(buffer, area, y + 1, &format!("{before}{}", fit(&typed, room, Cut::Start)), Style::new());
            if let Some(message) = &self.message {
                put(buffer, area, y, &format!("{:<all$}", message, all = usize::from(area.width)), BOLD);
            }
            return Some(area.left() + (before.len() + width(&typed).min(room)) as u16);
        }
        if let Some(message) = &self.message {
            put(buffer, area, y + 1, message, BOLD);
            return None;
        }
        put(buffer, area, y + 1, &self.keys(), Style::new());
        None
    }

    fn shortened(&self) -> Option<&str> {
        self.shown.as_ref()?.snapshot.shortened.as_deref()
    }

    fn keys(&self) -> String {
        let event = match self.meta().map_or(1, |meta| meta.events.len()) {
            0 | 1 => "",
            _ => "  e event",
        };
        let pause = if self.paused { "go on" } else { "pause" };
        let filter = match self.filter.as_str() {
            "" => String::new(),
            filter => format!(" [{}]", precise_model::text::sanitize(filter)),
        };
        let sort = SORTS[self.sort].1;
        format!("q quit  ? help  / filter{filter}  s sort: {sort}{event}  space {pause}  w write")
    }
}

/// Returns the widths of the columns. Numbers keep theirs; names share what is left of `columns`.
fn widths(table: &ScreenTable, columns: usize) -> Vec<usize> {
    let all = table.titles.len();
    let numbers = all.saturating_sub(table.names);
    let wanted = |at: usize| {
        let cells = table.lines.iter().filter_map(|line| line.cells.get(at)).chain(table.titles.get(at));
        cells.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..all).map(wanted).collect();
    let used = widths.iter().take(numbers).map(|width| width + 2).sum::<usize>();
    let mut room = columns.saturating_sub(used + 2 * table.names.saturating_sub(1));
    // The first name is the one that readers look for; the later ones get at least a third.
    for at in numbers..all {
        let later = all - at - 1;
        let most = if later == 0 { room } else { room - (room / 3).min(widths[at + 1..].iter().sum()) };
        widths[at] = widths[at].min(most);
        room -= widths[at];
    }
    widths
}

/// Returns a line of a table: numbers to the right, then names, cut at the end.
fn row(cells: &[String], widths: &[usize], names: usize) -> String {
    let numbers = widths.len().saturating_sub(names);
    let cells = cells.iter().zip(widths).enumerate().map(|(at, (cell, wide))| {
        let cell = fit(cell, *wide, Cut::End);
        let blanks = " ".repeat(wide.saturating_sub(width(&cell)));
        if at < numbers { format!("{blanks}{cell}") } else { format!("{cell}{blanks}") }
    });
    cells.collect::<Vec<_>>().join("  ")
}
