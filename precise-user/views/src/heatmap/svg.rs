//! The cells of a heatmap as SVG: one path per colour and row height instead of one rectangle per
//! cell. This keeps the file small, sharp at every zoom, and free of embedded bitmaps.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::heatmap::Heatmap;
use crate::heatmap::layout::{ABSENT, CellRun, PictureLayout};
use crate::heatmap::plot::{NO_SAMPLES, NOT_MEASURED};
use crate::render::plot_colour::on_light;
use plotters::style::RGBColor;

/// Returns what lies below the grid and the text: the backgrounds and the cells of all panels.
pub(crate) fn cells(heatmap: &Heatmap, layout: &PictureLayout) -> String {
    let mut svg = String::from("<g shape-rendering=\"crispEdges\">\n");
    for (panel, &top) in heatmap.panels.iter().zip(&layout.tops) {
        for &(y0, y1) in &layout.blocks {
            rectangle(&mut svg, (layout.left, layout.right), (top + y0, top + y1), NOT_MEASURED);
            for &(x0, x1) in &layout.covered {
                rectangle(&mut svg, (x0, x1), (top + y0, top + y1), NO_SAMPLES);
            }
        }
        for &x in &layout.absent {
            rectangle(&mut svg, x, (top + ABSENT.0, top + ABSENT.1), NOT_MEASURED);
        }
        paths(&mut svg, &layout.runs(heatmap, panel, top));
    }
    svg.push_str("</g>\n");
    svg
}

fn rectangle(svg: &mut String, (x0, x1): (i32, i32), (y0, y1): (i32, i32), colour: RGBColor) {
    let (width, height, fill) = (x1 - x0, y1 - y0, hex(colour));
    let _ = writeln!(svg, r#"<rect x="{x0}" y="{y0}" width="{width}" height="{height}" fill="{fill}"/>"#);
}

/// Writes each run as a horizontal stroke as thick as its row. The pen moves by relative offsets,
/// which are shorter to write.
fn paths(svg: &mut String, runs: &[CellRun]) {
    let mut groups: BTreeMap<(usize, i32), Vec<&CellRun>> = BTreeMap::new();
    for run in runs {
        groups.entry((run.level, run.y1 - run.y0)).or_default().push(run);
    }
    for ((level, height), runs) in groups {
        let colour = hex(on_light(level));
        let _ = write!(svg, r#"<path fill="none" stroke="{colour}" stroke-width="{height}" d=""#);
        // Twice the vertical middle, to stay in integers.
        let mut pen: Option<(i32, i32)> = None;
        for run in runs {
            let middle = run.y0 + run.y1;
            let _ = match pen {
                None => write!(svg, "M{} {}", run.x0, f64::from(middle) / 2.0),
                Some((x, y)) => write!(svg, "m{} {}", run.x0 - x, f64::from(middle - y) / 2.0),
            };
            let _ = write!(svg, "h{}", run.x1 - run.x0);
            pen = Some((run.x1, middle));
        }
        svg.push_str("\"/>\n");
    }
}

fn hex(RGBColor(r, g, b): RGBColor) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}
