//! Whether line information covers enough of the samples for a table of lines.

use crate::render::number::percent;
use precise_model::{Capture, CompactSort as _, Name, NameId};
use rustc_hash::FxHashMap;

/// The least share of samples with a line for a table of lines.
const LEAST: f64 = 0.2;
/// The number of files that the sentence names.
const FILES: usize = 3;

/// Returns why there is no table of lines: few samples have a line. Names the files with the most
/// samples without one. `None` if enough samples have a line.
pub(super) fn too_few(capture: &Capture) -> Option<String> {
    let (mut all, mut with) = (0u64, 0u64);
    let mut without: FxHashMap<NameId, u64> = FxHashMap::default();
    for row in &capture.rows {
        let count = row.measures.count;
        all = all.saturating_add(count);
        let Some(code) = row.code.and_then(|id| capture.code.get(id as usize)) else { continue };
        match (code.source, code.module) {
            (Name::Known(_), _) => with = with.saturating_add(count),
            (_, Name::Known(module)) => {
                let sum = without.entry(module).or_default();
                *sum = sum.saturating_add(count);
            }
            _ => {}
        }
    }
    if all == 0 || with as f64 >= LEAST * all as f64 {
        return None;
    }
    let mut files: Vec<(u64, &str)> = without
        .into_iter()
        .map(|(module, count)| (count, capture.names.get(module)))
        .filter(|(_, name)| name.starts_with('/'))
        .collect();
    files.compact_sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let names = files.iter().map(|(_, name)| name.rsplit('/').next().unwrap_or(name));
    let names: Vec<&str> = names.take(FILES).collect();
    let mut why = format!(
        "lines are not shown, because debug information tells them for {} of the samples only",
        percent(with as f64 / all as f64)
    );
    if !names.is_empty() {
        why += &format!("; install that of {}, or compile with -g", names.join(", "));
    }
    Some(why)
}
