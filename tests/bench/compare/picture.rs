//! The ratios of a page as a picture: precise beside each of the others, question by question.

use std::fmt::Write as _;

use precise::model::text::{Cut, fit};

use super::tool::Tool;

/// Sizes in pixels.
const WIDTH: f64 = 960.0;
const LABELS: f64 = 500.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 66.0;
const ROW: f64 = 18.0;
/// The longest label, in columns.
const LONGEST: usize = 76;
/// The ends of the axis; what is beyond is drawn at its end.
const LEAST: f64 = 0.01;
const MOST: f64 = 100.0;
/// The programs that are drawn, with their colours. Nobody would use an empty program.
const COLOURS: [(Tool, &str); 8] = [
    (Tool::Perf, "#1f5fa8"),
    (Tool::NewerPerf, "#7fb2e5"),
    (Tool::Bpftrace, "#d9730d"),
    (Tool::Below, "#c2185b"),
    (Tool::Addr2line, "#3d8b40"),
    (Tool::Blazecli, "#8e44ad"),
    (Tool::DuckDb, "#b8a000"),
    (Tool::HashMap, "#6b7280"),
];

/// A line of the picture.
enum Line {
    Chapter(String),
    /// With the colours of those who were asked.
    Question(String, Vec<(&'static str, f64)>),
}

/// Returns the picture of a page as SVG.
pub fn ratios(page: &str) -> String {
    let lines = lines(page);
    let height = TOP + ROW * lines.len() as f64 + 14.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"DejaVu Sans, sans-serif\" font-size=\"12\" role=\"img\">\n\
         <title>What precise costs, as a part of what others cost</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let mut left = 12.0;
    for (tool, colour) in COLOURS.into_iter().filter(|(_, colour)| lines.iter().any(|line| line.has(colour)))
    {
        dot(&mut svg, left, 16.0, colour);
        text(&mut svg, left + 10.0, 20.0, "", tool.name());
        left += 30.0 + 7.5 * tool.name().len() as f64;
    }
    for (at, label) in
        [(0.01, "1 : 100"), (0.1, "1 : 10"), (1.0, "the same"), (10.0, "10 : 1"), (100.0, "100 : 1")]
    {
        let (x, colour) = (place(at), if at == 1.0 { "#333" } else { "#ddd" });
        let bottom = height - 10.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"{colour}\"/>",
            TOP - 12.0
        );
        text(&mut svg, x, TOP - 18.0, " text-anchor=\"middle\" fill=\"#555\"", label);
    }
    text(
        &mut svg,
        LABELS - 10.0,
        TOP - 18.0,
        " text-anchor=\"end\" fill=\"#555\"",
        "left: precise costs less",
    );
    for (at, line) in lines.iter().enumerate() {
        let y = TOP + ROW * at as f64;
        match line {
            Line::Chapter(title) => text(&mut svg, 12.0, y + 4.0, " font-weight=\"bold\"", title),
            Line::Question(title, found) => {
                text(&mut svg, 24.0, y + 4.0, "", &fit(title, LONGEST, Cut::End));
                for (colour, ratio) in found {
                    dot(&mut svg, place(*ratio), y, colour);
                }
            }
        }
    }
    svg + "</svg>\n"
}

impl Line {
    fn has(&self, colour: &str) -> bool {
        matches!(self, Self::Question(_, found) if found.iter().any(|(of, _)| *of == colour))
    }
}

/// Returns the chapters and questions of a page that have ratios. Those that are lost in the noise
/// are left out.
fn lines(page: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for chapter in page.split("\n## ").skip(1) {
        let mut parts = chapter.split("\n### ");
        let title = parts.next().and_then(|before| before.lines().next()).unwrap_or_default();
        let questions: Vec<Line> = parts.filter_map(question).collect();
        if !questions.is_empty() {
            lines.push(Line::Chapter(title.to_owned()));
            lines.extend(questions);
        }
    }
    lines
}

fn question(part: &str) -> Option<Line> {
    let title = part.lines().next()?;
    let ratio = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let name = cells.next()?;
        let (_, colour) = COLOURS.into_iter().find(|(tool, _)| tool.name() == name)?;
        Some((colour, cells.next_back()?.parse::<f64>().ok()?))
    };
    let table = part.lines().skip_while(|line| !line.ends_with("precise : this |"));
    let found: Vec<_> = table.filter_map(ratio).collect();
    (!found.is_empty()).then(|| Line::Question(title.to_owned(), found))
}

/// Returns where a ratio is on the axis, which is logarithmic.
fn place(ratio: f64) -> f64 {
    let part = (ratio.clamp(LEAST, MOST) / LEAST).ln() / (MOST / LEAST).ln();
    (LABELS + 30.0 + part * (WIDTH - LABELS - 60.0 - RIGHT)).round()
}

fn dot(svg: &mut String, x: f64, y: f64, colour: &str) {
    let _ =
        writeln!(svg, "<circle cx=\"{x}\" cy=\"{y}\" r=\"4.5\" fill=\"{colour}\" fill-opacity=\"0.85\"/>");
}

fn text(svg: &mut String, x: f64, y: f64, how: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\"{how}>{words}</text>");
}
