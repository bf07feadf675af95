//! The HTML page about a capture: a single file that works on paper, on a phone and without a
//! network.
//!
//! The views of the registry contribute sections by [`View::page`](crate::view::View::page); this
//! module adds how far the capture can be trusted, how it was made, and a glossary.
//!
//! All text from the capture is written by `markup::text`, which escapes characters with a meaning
//! in HTML and replaces those that hide or reorder their neighbours. The content security policy
//! (CSP) of the page forbids every resource, and every script except its own, which is allowed by
//! its hash.

mod live;
mod sections;
#[cfg(test)]
mod tests;

pub use live::{LiveNow, live_page};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};

use crate::about::Run;
use crate::markup::{json as escaped, text};
use crate::registry::VIEWS;
use crate::run_text::sampled;
use crate::samples;
use crate::trust::trust;
use crate::view::{Input, NoAnswer, Section};
use precise_model::text::quoted;
use precise_model::{CompactSort as _, Meta};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The box that searches the tables. Without the script it does nothing, so it is not shown.
const SEARCH: &str = "<p class=\"search js-only\"><label>Find in the tables <input type=\"search\" id=\"find\" \
                      autocomplete=\"off\" aria-describedby=\"found\"></label> <kbd>/</kbd> <span id=\"found\" \
                      role=\"status\"></span></p>\n";
/// What is selected in the pictures, and the command that shows all of it.
const SELECTED: &str = "<aside id=\"selected\" aria-label=\"Selection\" hidden><p><span class=\"what\" role=\"status\">\
                        </span> <button type=\"button\">Show all</button></p><p class=\"soft\">Latencies of the \
                        selection, and rows that are not among the first of the whole run: <code data-command=\"COMMAND\"></code><span \
                        class=\"no-flag\"> (no flag selects exactly this picture)</span>ALSO</p></aside>\n";

/// Returns the page about a capture as HTML, complete for a reader without the capture.
///
/// # Errors
///
/// Returns an error if a view cannot make its section.
pub fn page(input: &mut Input<'_>) -> Result<String, NoAnswer> {
    let capture = input.capture;
    let trust = trust(capture);
    let mut sections = vec![sections::verdict(&trust), sections::made(&capture.meta), sections::words()];
    for view in VIEWS {
        sections.extend(view.page(input)?);
    }
    // The sort is stable: sections of one place stay in the order of the registry.
    sections.compact_sort_by_key(|section| section.place);
    let links: String = sections.iter().map(link).collect();
    let main: String = sections.iter().map(|section| html(section) + &numbers(section)).collect();
    let events = capture.meta.events.iter().enumerate();
    let events = events.map(|(index, event)| (event.name.as_str(), samples(capture, index)));
    let (name, what) = (text(&title(&capture.meta)), text(&sampled(&Run::of(capture), events)));
    let sum = sections::sum(&trust);
    let selection =
        capture.meta.selection.as_ref().map_or_else(String::new, |selection| {
            format!("<p><strong>{}</strong></p>\n", text(&selection.text))
        });
    let file = if input.file.is_empty() { String::new() } else { format!(" {}", quoted(&input.file)) };
    // First what is ours: the file's name may be anything.
    let also = match capture.meta.selection {
        Some(_) => " (and the flags that narrowed this page)",
        None => "",
    };
    let command = text(&format!("precise report{file}"));
    let selected = SELECTED.replace("ALSO", also).replace("COMMAND", &command);
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    let policy = format!(
        "default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; form-action 'none'"
    );
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<header>\n<p class=\"brand\">precise &middot; report of a capture</p>\n<h1>{name}</h1>\n\
         <p class=\"soft\">{what}.</p>\n{selection}{sum}<nav aria-label=\"Sections\"><ul>{links}</ul></nav>\n{SEARCH}</header>\n\
         <main>\n{main}</main>\n{selected}<div class=\"tip\" id=\"tip\" role=\"status\" hidden></div>\n<script>{SCRIPT}</script>\n\
         </body>\n</html>\n"
    ))
}

fn link(section: &Section) -> String {
    format!("<li><a href=\"#{}\">{}</a></li>", section.id, section.title)
}

/// Returns a section without the numbers that only a script reads.
fn html(section: &Section) -> String {
    format!("<h2 id=\"{}\">{}</h2>\n{}", section.id, section.title, section.body)
}

/// Returns the numbers of a section for the script.
fn numbers(section: &Section) -> String {
    section.numbers.as_ref().map_or_else(String::new, |numbers| {
        format!(
            "<script type=\"application/json\" id=\"{}\">{}</script>\n",
            numbers.id,
            escaped(&numbers.json)
        )
    })
}

/// Returns the title: the events and the host.
fn title(meta: &Meta) -> String {
    let events: Vec<_> = meta.events.iter().map(|event| event.name.as_str()).collect();
    let host = &meta.machine.host;
    let on = if host.is_empty() { String::new() } else { format!(" on {host}") };
    format!("{}{on}", events.join(", "))
}

/// Returns the hash of a script or style as a source expression for the policy.
fn hash(content: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content)))
}
