//! Who has most of a kind of access.

use super::thresholds;
use crate::weighing::Weighing;
use precise_common::data_src::DataSource;
use precise_model::digits::percent_to;
use precise_model::{Capture, Name, NameId, Row};
use rustc_hash::{FxHashMap, FxHashSet};

/// Returns a name of a row.
type NameOf = fn(&Capture, &Row) -> Option<NameId>;

/// Returns a sentence about who has most of a kind of access: the function, and the cgroup or
/// process, if there are several and one of them has a large part.
pub(super) fn owners(capture: &Capture, event: usize, is: impl Fn(DataSource) -> bool) -> Option<String> {
    let kinds: [(&str, NameOf); 3] = [
        ("function", |capture, row| known(capture.code.get(row.code? as usize)?.function)),
        ("cgroup", |_, row| known(row.cgroup)),
        ("process", |_, row| known(row.process)),
    ];
    let weighing = Weighing::of(capture, event);
    let mut said = Vec::new();
    for (kind, name) in kinds {
        let mut all: FxHashMap<NameId, f64> = FxHashMap::default();
        let mut several: FxHashSet<NameId> = FxHashSet::default();
        let (mut whole, rows) = (0.0, capture.rows.iter().filter(|row| usize::from(row.event) == event));
        for row in rows.filter(|row| row.data_src != 0) {
            let of_kind = is(row.data_source());
            let weight = if of_kind { weighing.samples(row).weight.sum } else { 0.0 };
            whole += weight;
            let Some(id) = name(capture, row) else { continue };
            several.insert(id);
            *all.entry(id).or_default() += weight;
        }
        let text = |id| capture.names.get(id);
        let most = all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| text(b.0).cmp(text(a.0))));
        if let Some((id, part)) =
            most.filter(|(_, part)| *part >= thresholds::WORTH_NAMING * whole && whole > 0.0)
            && several.len() > 1
        {
            let text = capture.names.get(id);
            let text = match kind {
                "cgroup" => capture.meta.owner(text).map_or(text, |owner| &owner.name),
                _ => text,
            };
            said.push(format!("{} come from {kind} {text}", percent_to(part / whole, 0)));
        }
    }
    let (last, first) = said.split_last()?;
    let all = if first.is_empty() { last.clone() } else { format!("{} and {last}", first.join(", ")) };
    Some(format!("Of these accesses, {all}."))
}

fn known(name: Name) -> Option<NameId> {
    match name {
        Name::Known(id) => Some(id),
        Name::Unknown(_) => None,
    }
}
