//! The help of the screen.

use super::Tab;

/// The keys, with what they do.
const KEYS: &[(&str, &str)] = &[
    ("1-9, tab", "the tabs, below"),
    ("up, down", "select a line; its full name is at the bottom (j, k, pages, home, end)"),
    ("s", "sort by the next number; ▼ marks it"),
    ("e", "show the next event: samples of different events are never added up"),
    ("/", "filter the window: 'comm == nginx && latency >= 128', as --filter"),
    ("escape", "remove the filter"),
    ("space", "pause the screen; sampling goes on"),
    ("w", "write the window to a capture file, for every other command"),
    ("q, ctrl-c", "quit"),
];

/// Returns the help as lines of at most `columns`.
pub(super) fn lines(columns: usize) -> Vec<String> {
    let fit = |line: String| precise_model::text::fit(&line, columns, precise_model::text::Cut::End);
    let mut lines = vec!["Keys".to_owned()];
    lines.extend(KEYS.iter().map(|(key, does)| fit(format!("  {key:<10} {does}"))));
    lines.push(String::new());
    lines.push("Tabs".to_owned());
    lines.extend(
        Tab::ALL
            .iter()
            .enumerate()
            .map(|(at, tab)| fit(format!("  {} {:<9} {}", at + 1, tab.title(), tab.question()))),
    );
    lines.push(fit("± is in percentage points: in 95% of runs the true share is within it.".to_owned()));
    lines
}
