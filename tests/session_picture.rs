//! The picture of a first session in README.md: the lines of docs/first-session.md as they appear
//! on a terminal of 80 columns. What the page shows is compared with a run (`host/documents.rs`).
//!
//! With `PRECISE_UPDATE_DOCUMENTS=1` the picture is drawn instead of compared.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

const PAGE: &str = "docs/first-session.md";
const PICTURE: &str = "docs/pictures/session.svg";
/// The number of lines of README.md that are seen without scrolling: the picture follows the last.
const SCREEN: usize = 16;
/// The size of the terminal in columns.
const COLUMNS: usize = 80;
/// The size of a character in pixels.
const CELL: (f64, usize) = (8.0, 18);
/// The margin in pixels.
const MARGIN: usize = 12;
/// The time until a line appears after the one before, and after a command, in seconds.
const LINE: f64 = 0.06;
const COMMAND: f64 = 1.2;

/// Returns the lines of the session on the page.
fn session(page: &str) -> Result<Vec<&str>> {
    let fence = page.split_once("<!-- live: ").and_then(|(_, rest)| rest.split_once("```\n"));
    let (_, body) = fence.context("the page has no session")?;
    Ok(body.split_once("\n```").context("the session has no end")?.0.lines().collect())
}

/// Draws lines as a picture in which they appear one after the other. Without animations, and for
/// readers who do not want them, all lines are there.
fn draw(lines: &[&str]) -> Result<String> {
    let (width, height) = (COLUMNS as f64 * CELL.0, lines.len() * CELL.1);
    let (all, tall) = (width as usize + 2 * MARGIN, height + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {all} {tall}\" width=\"{all}\" height=\"{tall}\" \
         role=\"img\" aria-label=\"A first session with precise\">\n<style>\n\
         text {{ font: 13px ui-monospace, 'DejaVu Sans Mono', monospace; fill: #d4d4d4; white-space: pre }}\n\
         .c {{ font-weight: bold; fill: #fff }}\n\
         @media (prefers-reduced-motion: no-preference) {{\n\
         text {{ animation: show 1ms both }}\n@keyframes show {{ from {{ opacity: 0 }} }}\n}}\n\
         </style>\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1e1e1e\"/>\n"
    );
    let mut at = 0.4;
    for (number, line) in lines.iter().enumerate() {
        let columns = line.chars().count();
        ensure!(columns <= COLUMNS, "{columns} columns: {line}");
        let (command, y) = (line.starts_with("$ "), MARGIN + number * CELL.1 + 13);
        let text = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let class = if command { " class=\"c\"" } else { "" };
        if command && number > 0 {
            at += COMMAND;
        }
        // The length keeps columns aligned in fonts of any width.
        let length = columns as f64 * CELL.0;
        writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\"{class} textLength=\"{length}\" xml:space=\"preserve\" \
             style=\"animation-delay: {at:.2}s\">{text}</text>"
        )?;
        at += if command { COMMAND } else { LINE };
    }
    Ok(svg + "</svg>\n")
}

#[test]
fn the_picture_in_the_readme_is_the_session_of_the_documents() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join(PAGE))?;
    let drawn = draw(&session(&page)?)?;
    if std::env::var_os("PRECISE_UPDATE_DOCUMENTS").is_some() {
        fs::write(root.join(PICTURE), &drawn)?;
    }
    let picture = fs::read_to_string(root.join(PICTURE))?;
    ensure!(picture == drawn, "{PICTURE} is not {PAGE}: PRECISE_UPDATE_DOCUMENTS=1 draws it");
    Ok(())
}

/// Who opens the page sees how to install precise, and what a first session looks like.
#[test]
fn the_first_screen_of_the_readme_is_an_install_line_and_the_session() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md"))?;
    let install = fs::read_to_string(root.join("docs/install.md"))?;
    let screen: Vec<&str> = readme.lines().take(SCREEN).collect();
    // The same two commands as in docs/install.md, whose packages are tested with them.
    let installs = screen.iter().find(|line| line.starts_with("apt-get install "));
    let command = installs.and_then(|line| line.split(" #").next()).context("no line installs")?.trim_end();
    ensure!(install.lines().any(|line| line.starts_with(command)), "docs/install.md has no {command}");
    let answers =
        screen.iter().find(|line| line.starts_with("precise record ")).context("no first answer")?;
    ensure!(install.lines().any(|line| line == *answers), "docs/install.md has no {answers}");
    ensure!(screen.iter().any(|line| line.contains(&format!("({PICTURE})"))), "no {PICTURE}: {screen:#?}");
    Ok(())
}

#[test]
fn a_line_beyond_the_terminal_is_refused() {
    assert!(draw(&["$ precise list", &"x".repeat(80)]).is_ok());
    assert!(draw(&[&"x".repeat(81)]).is_err());
    assert!(draw(&["a < b & c"]).is_ok_and(|svg| svg.contains("a &lt; b &amp; c</text>")));
}
