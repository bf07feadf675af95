//! Tests that docs/events.md matches the code.

use super::fixture;
use super::preset::{PresetOptions, events_for};
use precise_model::Preset;

/// Checks the tables of docs/events.md, or writes them if `PRECISE_UPDATE_DOCUMENTS` is set.
#[test]
fn the_page_of_presets_shows_these_words() {
    let machines = [
        ("Haswell, Broadwell", fixture::hsw()),
        ("Skylake, Cascade Lake", fixture::skl()),
        ("Ice Lake", fixture::icx()),
        ("Sapphire, Emerald Rapids", fixture::spr()),
        ("Granite Rapids", fixture::gnr()),
        ("Alder, Raptor Lake", fixture::adl()),
        ("Meteor Lake", fixture::mtl()),
    ];
    let mut intel = table_head(&["preset"], machines.iter().map(|(name, _)| *name));
    let shown = Preset::ALL
        .into_iter()
        .filter(|preset| !matches!(preset, Preset::Cycles | Preset::Clock | Preset::Skid | Preset::Faults));
    for preset in shown.clone() {
        let cells = machines.iter().map(|(_, tree)| {
            let Ok(events) = events_for(preset, &tree.pmus(), &PresetOptions::default()) else {
                return "—".to_owned();
            };
            let of = |small: bool| {
                let of = events.iter().filter(|event| (event.pmu == "cpu_atom") == small);
                of.map(|event| match event.config1 {
                    0 => format!("{:#x}", event.config),
                    config1 => format!("{:#x}/{config1:#x}", event.config),
                })
                .collect::<Vec<_>>()
                .join(" ")
            };
            match of(true) {
                small if small.is_empty() => of(false),
                small => format!("{}; small {small}", of(false)),
            }
        });
        intel += &row(std::iter::once(format!("`{preset}`")).chain(cells));
    }
    let machines = [fixture::zen2(), fixture::zen3(), fixture::zen4(), fixture::zen5()];
    let mut amd = table_head(&["preset", "event", "filter"], ["Zen 2", "Zen 3", "Zen 4", "Zen 5"]);
    for preset in
        Preset::ALL.into_iter().filter(|w| !matches!(w, Preset::Clock | Preset::Skid | Preset::Faults))
    {
        let events = machines.iter().map(|tree| events_for(preset, &tree.pmus(), &PresetOptions::default()));
        let events: Vec<_> = events.collect();
        let first = events.iter().flatten().next().map(|events| &events[0]);
        let code = |text: &str| {
            if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) }
        };
        let start = [
            code(preset.name()),
            code(first.map_or("", |event| &event.encoding)),
            code(first.and_then(|event| event.filter.as_deref()).unwrap_or_default()),
        ];
        amd += &row(start
            .into_iter()
            .chain(events.iter().map(|e| if e.is_ok() { "yes" } else { "—" }.to_owned())));
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut wanted = page.clone();
    for (what, table) in [("intel", intel), ("amd", amd)] {
        let (begin, end) = (format!("<!-- {what}: generated -->\n"), format!("<!-- {what}: end -->"));
        let (before, rest) = wanted.split_once(&begin).unwrap();
        let (_, after) = rest.split_once(&end).unwrap();
        wanted = format!("{before}{begin}{table}{end}{after}");
    }
    if std::env::var_os("PRECISE_UPDATE_DOCUMENTS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    } else {
        assert!(
            page == wanted,
            "docs/events.md is out of date: run this test with PRECISE_UPDATE_DOCUMENTS=1"
        );
    }
}

fn table_head<'a>(first: &[&'a str], machines: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = first.iter().copied().chain(machines).map(str::to_owned).collect();
    let rules = vec!["---".to_owned(); names.len()];
    row(names.into_iter()) + &row(rules.into_iter())
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}
