//! How long lines of text are: `cargo test -p xtask columns`. rustfmt looks after code.

use std::fs;

use crate::checkout;

/// The longest line of a comment or of a page, in characters.
const COLUMNS: usize = 100;

fn tracked(ending: &str) -> Vec<(String, String)> {
    let names = checkout::files().into_iter().filter(|name| name.ends_with(ending));
    let read = |name: String| fs::read_to_string(checkout::root().join(&name)).ok().map(|text| (name, text));
    names.filter_map(read).collect()
}

/// Lines of prose that are too long, with their numbers. `prose` takes a line to its prose, if it
/// has some. Code blocks, rows of tables and links stay as long as they are.
fn too_long(text: &str, prose: impl Fn(&str) -> Option<&str>) -> Vec<usize> {
    let mut in_block = false;
    let mut long = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(said) = prose(line) else {
            in_block = false;
            continue;
        };
        let fence = said.trim_start().starts_with("```");
        in_block ^= fence;
        let keeps_its_length =
            in_block || fence || said.trim_start().starts_with('|') || said.contains("://");
        if !keeps_its_length && line.chars().count() > COLUMNS {
            long.push(at + 1);
        }
    }
    long
}

fn of_comment(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']))
}

// A page is prose, line by line.
#[expect(clippy::unnecessary_wraps, reason = "it has the type of `of_comment`")]
fn of_page(line: &str) -> Option<&str> {
    Some(line)
}

fn found(ending: &str, prose: impl Fn(&str) -> Option<&str> + Copy) -> Vec<String> {
    let files = tracked(ending);
    assert!(files.len() > 20, "{} files end in {ending}", files.len());
    let long = |(name, text): &(String, String)| {
        too_long(text, prose).into_iter().map(|at| format!("{name}:{at}")).collect::<Vec<_>>()
    };
    files.iter().flat_map(long).collect()
}

#[test]
fn comments_end_at_100_columns() {
    assert_eq!(found(".rs", of_comment), Vec::<String>::new());
}

#[test]
fn pages_end_at_100_columns() {
    assert_eq!(found(".md", of_page), Vec::<String>::new());
}

#[test]
fn a_long_line_is_found_where_it_is_prose() {
    let long = "word ".repeat(25);
    let text =
        format!("// {long}\nlet x = \"{long}\";\n/// ```\n/// {long}\n/// ```\n/// {long}\n/// | {long}");
    assert_eq!(too_long(&text, of_comment), [1, 6]);
}
