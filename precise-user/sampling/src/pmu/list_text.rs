//! Formats the event list as text.

use super::list::{EventGroup, EventList, ListedName};
use precise_model::CompactSort as _;
use precise_model::text::wrap_after;

impl EventList {
    /// Formats the list as text with lines of at most `width` columns (at least 40), unless a
    /// single word is longer.
    ///
    /// In each group, a note that applies to several names appears once, below them. A reason that
    /// several groups share appears once, at the end.
    pub fn to_text(&self, width: usize) -> String {
        let width = width.max(40);
        let mut text = String::new();
        let common = self.common_reasons();
        for group in &self.groups {
            group.write(&mut text, width, &common);
            text.push('\n');
        }
        for (index, reason) in common.iter().enumerate() {
            add(&mut text, &format!("[{}] {reason}", index + 1), 0, 4, width);
        }
        for problem in &self.problems {
            add(&mut text, &format!("note: {problem}"), 0, 2, width);
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}

impl EventList {
    /// Returns the reasons that appear in more than one group, in the order of first appearance.
    fn common_reasons(&self) -> Vec<&str> {
        let mut reasons: Vec<(&str, usize)> = Vec::new();
        for group in &self.groups {
            let mut here: Vec<&str> =
                group.entries.iter().filter_map(|entry| entry.missing.as_deref()).collect();
            here.compact_sort();
            here.dedup();
            for reason in here {
                match reasons.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, groups)) => *groups += 1,
                    None => reasons.push((reason, 1)),
                }
            }
        }
        reasons.into_iter().filter(|(_, groups)| *groups > 1).map(|(reason, _)| reason).collect()
    }
}

impl EventGroup {
    fn write(&self, text: &mut String, width: usize, common: &[&str]) {
        text.push_str(&self.title);
        text.push('\n');
        for entry in self.entries.iter().filter(|entry| entry.missing.is_none()) {
            entry.write(text, width);
        }
        let notes = self.entries.iter().flat_map(|entry| entry.notes.iter().map(move |note| (note, entry)));
        write_shared(text, "", notes, &[], width);
        let missing = self.entries.iter().filter_map(|entry| entry.missing.as_ref().map(|why| (why, entry)));
        write_shared(text, "not available here: ", missing, common, width);
    }
}

/// Writes each note once, after the names that it applies to; for a common one, only its number.
fn write_shared<'a>(
    text: &mut String,
    mark: &str,
    sentences: impl Iterator<Item = (&'a String, &'a ListedName)>,
    common: &[&str],
    width: usize,
) {
    let mut shared: Vec<(&String, Vec<&str>)> = Vec::new();
    for (sentence, entry) in sentences {
        match shared.iter_mut().find(|(known, _)| *known == sentence) {
            Some((_, names)) => names.push(&entry.name),
            None => shared.push((sentence, vec![&entry.name])),
        }
    }
    for (sentence, names) in shared {
        let names = names.join(", ");
        let line = match common.iter().position(|reason| reason == sentence) {
            Some(index) => format!("{mark}{names} [{}]", index + 1),
            None => format!("{mark}{names}: {sentence}"),
        };
        add(text, &line, 2, 6, width);
    }
}

impl ListedName {
    fn write(&self, text: &mut String, width: usize) {
        let name = &self.name;
        if !self.summary.is_empty() {
            add_after(text, &format!("  {name:<10}"), &self.summary, 12, width);
            self.events.iter().for_each(|event| add(text, &event.text(&event.full()), 12, 14, width));
            return;
        }
        // A plain event that equals its own encoding needs no second line.
        match self.events.as_slice() {
            [event] if event.full() == *name => add(text, &event.text(name), 2, 6, width),
            events => {
                add(text, name, 2, 6, width);
                events.iter().for_each(|event| add(text, &event.text(&event.full()), 4, 6, width));
            }
        }
    }
}

/// Appends `words` as lines, indented by `first` columns on the first line and by `rest` on the
/// others.
fn add(text: &mut String, words: &str, first: usize, rest: usize, width: usize) {
    add_after(text, &" ".repeat(first), words, rest, width);
}

fn add_after(text: &mut String, before: &str, words: &str, rest: usize, width: usize) {
    text.push_str(&wrap_after(before, words, width, rest));
    text.push('\n');
}
