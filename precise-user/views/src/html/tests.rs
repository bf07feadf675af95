//! Tests of the page on synthetic captures. Tests in a browser are in tests/host/html.rs.

use super::*;
use crate::explain::tests::Nowhere;
use crate::mem::tests::{L1, RAM};
use precise_model::testing::Builder;

/// Names that a profiled program may choose.
const HOSTILE: &str =
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"' onload='x\u{1b}[31m\u{202e}cod\u{0}";

pub(super) fn hostile() -> Builder {
    let mut builder = Builder::new();
    let meta = builder.meta();
    meta.target = format!("process {HOSTILE}");
    meta.machine.host = HOSTILE.into();
    meta.filter = HOSTILE.into();
    meta.notes = vec![HOSTILE.into()];
    meta.command = vec!["precise".into(), HOSTILE.into()];
    let event = &mut meta.events[0];
    (event.name, event.unit, event.encoding) = (HOSTILE.into(), HOSTILE.into(), HOSTILE.into());
    event.verdict.findings = vec![HOSTILE.into()];
    for (at, (source, latency)) in [(L1, 5), (RAM, 300)].into_iter().enumerate() {
        let cell = builder.cell().samples(400).latency(latency).epoch(at as u32).process(1, HOSTILE);
        let cell = cell.cgroup(1, HOSTILE).code(0x1000, HOSTILE, HOSTILE, HOSTILE, 7);
        cell.data(0x7000, HOSTILE, HOSTILE).data_src(source);
    }
    builder
}

fn html(builder: Builder) -> String {
    page(&mut Input::of(&builder.build(), &mut Nowhere)).unwrap()
}

#[test]
fn hostile_names_stay_text_everywhere() {
    let html = html(hostile());
    // The script of the page, and the numbers of the picture and of the tables.
    assert_eq!(html.matches("<script").count(), 3);
    assert_eq!(html.matches("</script").count(), 3);
    assert!(!html.contains("<img") && !html.contains("onerror=alert(2)>"));
    for c in ['\u{1b}', '\u{202e}', '\u{0}'] {
        assert!(!html.contains(c), "{c:?}");
    }
    // Escaped and shown, not dropped.
    assert!(html.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
}

#[test]
fn the_page_needs_nothing_and_may_load_nothing() {
    let html = html(hostile());
    assert!(html.contains("default-src 'none'; script-src 'sha256-"));
    for external in ["http://", "https://", "src=", "@import", "url(", " style=\"", "unsafe-inline"] {
        let ours = html.replace("img src=x", "").replace(&text(HOSTILE), "");
        assert!(!ours.contains(external), "{external}");
    }
}

#[test]
fn a_capture_with_next_to_nothing_has_a_page() {
    let mut builder = Builder::new();
    builder.meta().dimensions = vec![precise_model::Dimension::Process];
    builder.cell().samples(3).process(1, "app");
    let html = html(builder);
    assert!(html.contains("Too few samples to rank") && html.contains("No check was possible"));
}

#[test]
fn sections_are_in_their_places_and_have_anchors_of_their_own() {
    let html = html(hostile());
    let ids: Vec<_> = html.split("<h2 id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let nav = html.split("<nav").nth(1).unwrap();
    let links: Vec<_> = nav.split("<a href=\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(ids, ["tables", "findings", "time", "code", "trust", "made", "words"]);
    assert_eq!(links, ids);
}
