//! The panel of each row, and the titles of the panels.

use rustc_hash::{FxHashMap, FxHashSet};

use super::PanelBy;
use precise_model::digits::thousands;
use precise_model::text::quoted;
use precise_model::{Capture, CompactSort as _, Dimension, Name, NameId, Names, Row};

/// The key that rows of a panel have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum PanelKey {
    All,
    /// The path identifies a cgroup better than its id: a cgroup that was created again is still
    /// the same service.
    CgroupPath(precise_model::NameId),
    CgroupId(u64),
    Process(u32),
    Event(u16),
}

/// Returns the titles of the panels, most samples first, and the panel of each row.
pub(crate) fn panels(
    capture: &Capture,
    rows: &[&Row],
    by: PanelBy,
    most: usize,
) -> (Vec<String>, Vec<usize>) {
    let by_cgroup = capture.meta.dimensions.contains(&Dimension::Cgroup)
        || rows.iter().any(|r| r.cgroup_id != 0 || matches!(r.cgroup, Name::Known(_)));
    let key = |row: &Row| match (by, row.cgroup) {
        (PanelBy::Event, _) => PanelKey::Event(row.event),
        (PanelBy::Process, _) => PanelKey::Process(row.pid),
        (PanelBy::Cgroup | PanelBy::Auto, Name::Known(path)) if by_cgroup => PanelKey::CgroupPath(path),
        (PanelBy::Cgroup | PanelBy::Auto, Name::Unknown(_)) if by_cgroup => PanelKey::CgroupId(row.cgroup_id),
        _ => PanelKey::All,
    };
    // A process that executes several programs is called by the one with most samples.
    let mut named: FxHashMap<(PanelKey, Name), (u64, &Row)> = FxHashMap::default();
    for row in rows {
        let of_name = named.entry((key(row), row.process)).or_insert((0, row));
        of_name.0 = of_name.0.saturating_add(row.measures.count);
    }
    let mut groups: FxHashMap<PanelKey, (u64, u64, &Row)> = FxHashMap::default();
    for ((key, name), (samples, row)) in named {
        let (all, most, by) = groups.entry(key).or_insert((0, samples, row));
        *all = all.saturating_add(samples);
        if (samples, by.process) > (*most, name) {
            (*most, *by) = (samples, row);
        }
    }
    let mut order: Vec<(PanelKey, u64, String)> =
        groups.into_iter().map(|(key, (all, _, row))| (key, all, title(capture, row, key))).collect();
    order.compact_sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.2.cmp(&b.2)));

    let shown = if order.len() > most { most - 1 } else { order.len() };
    let others = order.len() - shown;
    let place: FxHashMap<PanelKey, usize> =
        order.iter().enumerate().map(|(i, (k, ..))| (*k, i.min(shown))).collect();
    let mut titles: Vec<String> = order.into_iter().take(shown).map(|(_, _, title)| title).collect();
    if others > 0 {
        let what = match by {
            PanelBy::Process => "processes",
            PanelBy::Event => "events",
            _ => "cgroups",
        };
        let others = thousands(others as u64);
        titles.push(if shown == 0 { format!("{others} {what}") } else { format!("{others} other {what}") });
    }
    (titles, rows.iter().map(|row| place[&key(row)]).collect())
}

/// Returns the flag of each panel that makes a command show only its samples, with a leading blank;
/// `None` for a panel that no flag selects.
pub(crate) fn selectors(
    capture: &Capture,
    rows: &[&Row],
    by: PanelBy,
    panels: usize,
    panel_of: &[usize],
) -> Vec<Option<String>> {
    let paths: FxHashSet<&str> = rows
        .iter()
        .filter_map(|row| match row.cgroup {
            Name::Known(path) => Some(capture.names.get(path)),
            Name::Unknown(_) => None,
        })
        .collect();
    // The flag selects the cgroups below as well.
    let is_alone = |path: &str| {
        // The flag takes it for a pattern.
        if path.contains(['*', '?']) {
            return false;
        }
        let below = format!("{}/", path.trim_end_matches('/'));
        !paths.iter().any(|other| *other != path && other.starts_with(&below))
    };
    let mut alone: FxHashMap<NameId, bool> = FxHashMap::default();
    let mut found: Vec<Option<Option<String>>> = vec![None; panels];
    for (row, panel) in rows.iter().zip(panel_of) {
        let flag = match (by, row.cgroup) {
            _ if panels == 1 => Some(String::new()),
            (PanelBy::Process, _) => Some(format!(" -p {}", row.pid)),
            (PanelBy::Cgroup | PanelBy::Auto, Name::Known(path)) => {
                let name = capture.names.get(path);
                alone.entry(path).or_insert_with(|| is_alone(name)).then(|| format!(" -G {}", quoted(name)))
            }
            _ => None,
        };
        let Some(of) = found.get_mut(*panel) else { continue };
        match of {
            // A panel of several has no flag.
            Some(known) if *known != flag => *known = None,
            Some(_) => {}
            None => *of = Some(flag),
        }
    }
    found.into_iter().map(Option::flatten).collect()
}

fn title(capture: &Capture, row: &Row, key: PanelKey) -> String {
    let names = &capture.names;
    match key {
        PanelKey::All => "all samples".to_owned(),
        PanelKey::CgroupPath(path) => match names.get(path) {
            "" | "/" => "/ (root cgroup)".to_owned(),
            path => capture.meta.owner(path).map_or(path, |owner| &owner.name).to_owned(),
        },
        PanelKey::CgroupId(0) => "cgroup not recorded".to_owned(),
        PanelKey::CgroupId(id) => match row.cgroup {
            Name::Unknown(reason) => format!("cgroup {id} ({})", reason.words()),
            Name::Known(_) => format!("cgroup {id}"),
        },
        PanelKey::Process(pid) => process_title(names, row, pid),
        PanelKey::Event(event) => {
            capture.meta.events.get(usize::from(event)).map_or_else(String::new, |e| e.name.clone())
        }
    }
}

fn process_title(names: &Names, row: &Row, pid: u32) -> String {
    match (row.process, pid) {
        (Name::Known(name), 0) => names.get(name).to_owned(),
        (Name::Known(name), pid) => format!("{} ({pid})", names.get(name)),
        (Name::Unknown(_), 0) => "process not recorded".to_owned(),
        (Name::Unknown(reason), pid) => format!("process {pid} ({})", reason.words()),
    }
}
