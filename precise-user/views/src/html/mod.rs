//! The HTML page about a capture: a single file that works on paper, on a phone and without a
//! network.
//!
//! All text from the capture is written by `element::text`, which escapes characters with a meaning
//! in HTML and replaces those that hide or reorder their neighbours. The content security policy
//! (CSP) of the page forbids every resource, and every script except its own, which is allowed by
//! its hash.

mod code;
mod element;
mod heatmap;
mod sections;
mod tables;
#[cfg(test)]
mod tests;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};

use self::element::text;
use crate::explain::text::sampled;
use crate::page::Page;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Returns the page as HTML.
///
/// # Errors
///
/// Returns an error if the numbers of the picture cannot be serialized.
pub fn page_html(page: &Page) -> Result<String, serde_json::Error> {
    let view = &page.explanation;
    let title = title(page);
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    let policy = format!(
        "default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; form-action 'none'"
    );
    let mut main = sections::findings(view) + &sections::verdict(&page.trust);
    let mut links = vec![("findings", "Findings"), ("trust", "Reliability")];
    match &page.heatmap {
        Ok(heatmap) => main += &heatmap::section(heatmap)?,
        Err(why) => main += &format!("<h2 id=\"time\">Over time</h2>\n<p>{}</p>\n", text(why)),
    }
    main += &tables::section(&page.reports);
    links.extend([("time", "Over time"), ("tables", "Where the samples are")]);
    if let Some(annotation) = &page.annotation {
        main += &code::section(annotation);
        links.push(("code", "Hot lines"));
    }
    main += &sections::made(&page.made, view);
    main += &sections::words();
    links.extend([("made", "How it was made"), ("words", "Words")]);
    let links = links.iter().map(|(to, name)| format!("<li><a href=\"#{to}\">{name}</a></li>"));
    let links: String = links.collect();
    let (name, what) = (text(&title), text(&sampled(view)));
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<header>\n<p class=\"brand\">precise &middot; report of a capture</p>\n<h1>{name}</h1>\n\
         <p class=\"soft\">{what}.</p>\n<nav aria-label=\"Sections\"><ul>{links}</ul></nav>\n</header>\n\
         <main>\n{main}</main>\n<div class=\"tip\" id=\"tip\" role=\"status\" hidden></div>\n<script>{SCRIPT}</script>\n\
         </body>\n</html>\n"
    ))
}

/// Returns the title: the events and the host.
fn title(page: &Page) -> String {
    let events: Vec<_> = page.explanation.events.iter().map(|e| e.event.name.as_str()).collect();
    let host = &page.made.machine.host;
    let on = if host.is_empty() { String::new() } else { format!(" on {host}") };
    format!("{}{on}", events.join(", "))
}

/// Returns the hash of a script or style as a source expression for the policy.
fn hash(content: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content)))
}
