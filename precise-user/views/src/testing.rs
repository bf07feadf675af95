//! Helpers that the tests of several views share.

use precise_model::PmuKind;
use precise_model::testing::CaptureBuilder;
use precise_model::{CpuId, TaggedOf, Vendor};

/// Builds a capture with one IBS event on a Zen 4.
pub(crate) fn of_ibs(name: &str, pmu: PmuKind, tagged: TaggedOf) -> CaptureBuilder {
    let mut builder = CaptureBuilder::new();
    let meta = builder.meta();
    meta.machine.cpu_id = Some(CpuId { vendor: Vendor::Amd, family: 0x19, model: 0x11, ..CpuId::default() });
    let event = &mut meta.events[0];
    (event.name, event.pmu, event.tagged) = (name.into(), pmu, Some(tagged));
    builder
}

/// Asserts that the text contains these lines consecutively, and that no line is wider than 80
/// columns.
pub(crate) fn has(text: &str, lines: &str) {
    assert!(text.contains(lines), "\n{text}");
    assert!(text.lines().all(|line| precise_model::text::width(line) <= 80), "\n{text}");
}

/// Asserts that docs/PAGE shows this text: the lines of the fence after `<!-- text: NAME -->`,
/// where a line `…` stands for any lines.
pub(crate) fn shown(page: &str, name: &str, text: &str) {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let whole = std::fs::read_to_string(&path).unwrap();
    let mark = format!("<!-- text: {name} -->\n\n```\n");
    let fence = whole.split_once(&mark).and_then(|(_, rest)| rest.split_once("\n```\n"));
    let (fence, _) = fence.unwrap_or_else(|| panic!("docs/{page} has no fence {name}"));
    let mut rest = text;
    for part in fence.split("\n…\n") {
        let found = rest.split_once(part.trim_start_matches("…\n").trim_end_matches("\n…"));
        let Some((_, after)) = found else { panic!("docs/{page} shows\n{part}\nin\n{text}") };
        rest = after;
    }
}

/// Asserts that every CSV line has one field for each name of its header.
pub(crate) fn csv_has_a_field_for_each_name(csv: &str, separator: char) {
    let fields: Vec<_> = csv.lines().map(|line| line.split(separator).count()).collect();
    assert!(fields.len() > 1 && fields.iter().all(|count| *count == fields[0]), "{csv}");
}
