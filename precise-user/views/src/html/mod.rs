//! The HTML page about a capture: a single file that works on paper, on a phone and without a
//! network.
//!
//! The views of the registry contribute sections by [`View::page`](crate::view::View::page); this
//! module adds how far the capture can be trusted, how it was made, and a glossary.
//!
//! All text from the capture is written by `element::text`, which escapes characters with a meaning
//! in HTML and replaces those that hide or reorder their neighbours. The content security policy
//! (CSP) of the page forbids every resource, and every script except its own, which is allowed by
//! its hash.

pub(crate) mod element;
mod sections;
pub(crate) mod tables;
#[cfg(test)]
mod tests;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};

use self::element::text;
use crate::about::Run;
use crate::registry::VIEWS;
use crate::run_text::sampled;
use crate::samples;
use crate::trust::trust;
use crate::view::{Input, NoAnswer};
use precise_model::Meta;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A section of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The anchor of the section, which no other section has.
    pub id: &'static str,
    /// The heading, and the name of the link to the section.
    pub title: &'static str,
    /// Where on the page the section stands.
    pub place: Place,
    /// The HTML after the heading. Text from the capture must be escaped by `element::text`.
    pub body: String,
}

/// The place of a section, from the top of the page down. Sections of the same place follow the
/// order of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Findings: what the reader should do something about.
    Findings,
    /// How far the capture can be trusted.
    Reliability,
    /// Pictures of the whole run.
    Pictures,
    /// Tables of groups of samples.
    Tables,
    /// Lines of source and instructions.
    Code,
    /// How the capture was made, and what the words of the page mean.
    Making,
}

impl Section {
    fn link(&self) -> String {
        format!("<li><a href=\"#{}\">{}</a></li>", self.id, self.title)
    }

    fn html(&self) -> String {
        format!("<h2 id=\"{}\">{}</h2>\n{}", self.id, self.title, self.body)
    }
}

/// Returns the page about a capture as HTML, complete for a reader without the capture.
///
/// # Errors
///
/// Returns an error if a view cannot make its section.
pub fn page(input: &mut Input<'_>) -> Result<String, NoAnswer> {
    let capture = input.capture;
    let mut sections =
        vec![sections::verdict(&trust(capture)), sections::made(&capture.meta), sections::words()];
    for view in VIEWS {
        sections.extend(view.page(input)?);
    }
    // The sort is stable: sections of one place stay in the order of the registry.
    sections.sort_by_key(|section| section.place);
    let links: String = sections.iter().map(Section::link).collect();
    let main: String = sections.iter().map(Section::html).collect();
    let events = capture.meta.events.iter().enumerate();
    let events = events.map(|(index, event)| (event.name.as_str(), samples(capture, index)));
    let (name, what) = (text(&title(&capture.meta)), text(&sampled(&Run::of(capture), events)));
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
         <p class=\"soft\">{what}.</p>\n<nav aria-label=\"Sections\"><ul>{links}</ul></nav>\n</header>\n\
         <main>\n{main}</main>\n<div class=\"tip\" id=\"tip\" role=\"status\" hidden></div>\n<script>{SCRIPT}</script>\n\
         </body>\n</html>\n"
    ))
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
