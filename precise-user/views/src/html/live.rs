//! The page about the last minutes of a run that goes on: the picture, the tables, the ledger and
//! the verdict of the page about a capture, without a script. The browser loads it again by itself.

use std::time::Duration;

use super::{STYLE, hash, html, link, sections, title};
use crate::heatmap::HeatmapView;
use crate::markup::text;
use crate::render::number::{duration, percent};
use crate::summary::SummaryView;
use crate::trust::trust;
use crate::view::{AnyView, Input, NoAnswer, Section};

/// What is known of a run that goes on, besides its last minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LiveNow {
    /// The time since the run began.
    pub elapsed: Duration,
    /// The cost of sampling on the busiest CPU, as a share of its time.
    pub cost: f64,
    /// The limit of `cost`; `None` if there is none.
    pub budget: Option<f64>,
    /// After how many seconds the browser loads the page again.
    pub refresh: u32,
}

/// Returns the page about the last minutes of a run as HTML.
///
/// # Errors
///
/// Returns an error if a view cannot make its section.
pub fn live_page(input: &mut Input<'_>, now: &LiveNow) -> Result<String, NoAnswer> {
    let capture = input.capture;
    let trust = trust(capture);
    let views: [&dyn AnyView; 2] = [&HeatmapView, &SummaryView];
    let mut shown: Vec<Section> = Vec::new();
    for view in views {
        shown.extend(view.page(input)?);
    }
    shown.push(sections::verdict(&trust));
    let links: String = shown.iter().map(link).collect();
    let main: String = shown.iter().map(html).collect();
    let (name, sum, style) = (text(&title(&capture.meta)), sections::sum(&trust), hash(STYLE));
    let length = capture.meta.epochs.last().map_or(0, |epoch| epoch.end_ns);
    let limit = now.budget.map_or_else(String::new, |budget| format!(" (limit {})", percent(budget)));
    let what = text(&format!(
        "Sampled are {}: the last {} of {}. Sampling costs {} of the busiest CPU{limit}. The page is loaded again every \
         {} seconds.",
        capture.meta.target,
        duration(length),
        duration(u64::try_from(now.elapsed.as_nanos()).unwrap_or(u64::MAX)),
        percent(now.cost),
        now.refresh
    ));
    let refresh = now.refresh;
    let policy = format!("default-src 'none'; style-src {style}; base-uri 'none'; form-action 'none'");
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta http-equiv=\"refresh\" content=\"{refresh}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<header>\n<p class=\"brand\">precise &middot; live</p>\n<h1>{name}</h1>\n\
         <p class=\"soft\">{what}</p>\n{sum}<nav aria-label=\"Sections\"><ul>{links}\
         <li><a href=\"/metrics\">Metrics</a></li></ul></nav>\n</header>\n<main>\n{main}</main>\n</body>\n</html>\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::Nowhere;
    use crate::html::tests::hostile;

    fn page() -> String {
        let now =
            LiveNow { elapsed: Duration::from_secs(3700), cost: 0.004, budget: Some(0.01), refresh: 10 };
        live_page(&mut Input::of(&hostile().build(), &mut Nowhere), &now).unwrap()
    }

    #[test]
    fn a_live_page_has_picture_tables_and_ledger_and_no_script() {
        let html = page();
        let at = |what: &str| html.find(what).unwrap_or_else(|| panic!("{what} is not in\n{html}"));
        assert!(at("id=\"time\"") < at("id=\"tables\"") && at("id=\"tables\"") < at("id=\"trust\""));
        assert!(
            html.contains("<svg") && html.contains("Sampling costs 0.4% of the busiest CPU (limit 1.0%)"),
            "{html}"
        );
        assert!(html.contains("<meta http-equiv=\"refresh\" content=\"10\">"));
        assert_eq!(html.matches("<script").count(), 0);
    }

    #[test]
    fn hostile_names_are_text_there_too() {
        let html = page();
        assert!(!html.contains("<img") && !html.contains('\u{202e}') && !html.contains('\u{1b}'), "{html}");
    }
}
