//! Tests of heatmaps as text and as JSON.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end at once")]

use super::*;
use crate::heatmap::Drawing;
use crate::heatmap::heatmap;
use crate::heatmap::plot_tests as pictures;

fn map(capture: &precise_model::Capture) -> Heatmap {
    heatmap(capture, &options_for(80, HeatmapOptions::default())).unwrap()
}

#[test]
fn lines_fit_the_width_in_every_shade() {
    for (name, capture) in pictures::captures() {
        let map = map(&capture);
        for width in [0, 40, 80, 200] {
            for shade in [Shade::Ascii, Shade::Blocks] {
                for line in text(&map, width, shade).lines() {
                    assert!(line.chars().count() <= width.max(MIN_WIDTH), "{name} {width}: {line}");
                }
            }
            let coloured = text(&map, width, Shade::TrueColour);
            assert_eq!(coloured.contains("\x1b[48;2;"), coloured.contains(RESET));
        }
        if let Ok(folder) = std::env::var("PRECISE_PICTURES") {
            std::fs::write(format!("{folder}/{name}.txt"), text(&map, 80, Shade::Blocks)).unwrap();
            std::fs::write(format!("{folder}/{name}.ascii"), text(&map, 80, Shade::Ascii)).unwrap();
        }
    }
}

#[test]
fn nothing_of_a_capture_reaches_the_terminal_raw() {
    let map = map(&pictures::hostile());
    let text = text(&map, 80, Shade::Ascii);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    assert!(!text.contains('\u{202e}'));
}

#[test]
fn a_small_map_is_as_drawn() {
    use crate::heatmap::tests::{blank, row};
    let mut capture = blank(2);
    capture.rows = vec![precise_model::Row { latency_bucket: Some(32), ..row(0, 9) }, row(1, 1)];
    let options = HeatmapOptions { max_rows: Some(1), ..Default::default() };
    let text = text(&heatmap(&capture, &options).unwrap(), 40, Shade::Ascii);
    let expected = "\
latency (core cycles) - loads - web-01
2 s - 10 samples - no filter
precise samples
samples per cell:
blank none, 1 .:-=+*#@ 10

cgroup not recorded  10 samples
        64 |@@@@@@@@@@@@@@              
no latency |              ..............
           +----------------------------
            0            1           2 s
";
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn json_has_a_schema_and_every_sample() {
    let map = map(&pictures::bimodal());
    let text = crate::document::document(&Drawing(map.clone()), None).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["kind"], &value["schema"]), (&"heatmap".into(), &1.into()));
    let cells = value["panels"].as_array().unwrap().iter().flat_map(|p| p["cells"].as_array().unwrap());
    let sum: u64 = cells.map(|c| c[2].as_u64().unwrap()).sum();
    assert_eq!(value["samples"].as_u64(), Some(sum));
    assert_eq!(value["rows"].as_array().unwrap().len(), map.rows());
}
