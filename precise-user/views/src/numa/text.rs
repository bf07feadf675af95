//! Accesses by NUMA node as text.

use std::collections::BTreeSet;

use crate::group_table::too_few;
use crate::numa::{FromNode, Numa, NumaEvent, ServedAccesses, ServingPlace};
use crate::render::TextOptions;
use crate::render::number::{cycles, percent, share};
use crate::render::table::{Table, TableColumn};
use crate::run_text::{header, legend, notes, verdict};
use precise_model::digits::thousands;
use precise_model::format_cpu_list;
use precise_model::text::{Cut, wrap};

/// Formats the nodes, then for each event the accesses from each node to each place.
pub fn numa_text(numa: &Numa, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, event) in numa.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let samples = event.accesses.saturating_add(event.without);
        out += &header(&numa.run, &event.event, samples, options);
        for node in &numa.nodes {
            let cpus = match node.cpus.is_empty() {
                true => "memory only".to_owned(),
                false => format!("CPUs {}", format_cpu_list(&node.cpus)),
            };
            out += &format!("Node {}: {cpus}\n", node.id);
        }
        out.push('\n');
        out += &match event.too_few {
            Some(needed) => too_few(event.accesses, needed, options),
            None => matrix(event, options),
        };
        out.push('\n');
        out += &notes(&event.notes, options);
        out += &verdict(&event.event, numa.events.len() > 1, options);
    }
    if numa.events.iter().all(|event| event.too_few.is_some()) {
        return out;
    }
    out + &legend(
        &[
            "One row per node of the CPU, one column per place that served the access: accesses, share \
             of the row, average latency in core cycles.",
            "Own caches: caches of the same node. Memory was not accessed, so its node is unknown.",
        ],
        options,
    )
}

fn matrix(event: &NumaEvent, options: &TextOptions) -> String {
    let places: BTreeSet<ServingPlace> =
        event.from.iter().flat_map(|row| row.to.iter().map(|to| to.place)).collect();
    let mut columns = vec![TableColumn::text("CPU", Cut::End)];
    columns.extend(places.iter().map(|place| TableColumn::number(&title(*place))));
    let mut table = Table::new(columns);
    for row in &event.from {
        let to = |place| row.to.iter().find(|to| to.place == place);
        let line = |first: String, cell: &dyn Fn(&ServedAccesses) -> String| {
            let cells = places.iter().map(|place| to(*place).map_or_else(String::new, cell));
            [first].into_iter().chain(cells).collect::<Vec<_>>()
        };
        table.row(line(name(row), &|to| thousands(to.samples)));
        table.row(line(String::new(), &|to| to.share.as_ref().map_or_else(|| "too few".to_owned(), share)));
        if row.to.iter().any(|to| to.average.is_some()) {
            let latency = |to: &ServedAccesses| {
                to.average.map_or_else(|| "-".to_owned(), |a| format!("{} cycles", cycles(a)))
            };
            table.row(line(String::new(), &latency));
        }
    }
    let mut out = table.render(options.table_width(), options.style);
    let line = match event.remote_share {
        Some(remote) => format!(
            "{} of the accesses to memory went to another node: {} of {} ({} of all accesses).",
            share(&remote),
            thousands(event.remote),
            thousands(event.memory),
            percent(event.remote as f64 / event.accesses.max(1) as f64),
        ),
        None => format!(
            "{} {} reached memory, {} of them on another node: too few for a share.",
            thousands(event.memory),
            if event.memory == 1 { "access" } else { "accesses" },
            thousands(event.remote)
        ),
    };
    out += &format!("\n{}\n", wrap(&line, options.width, 0));
    out
}

fn name(row: &FromNode) -> String {
    row.node.map_or_else(|| "node ?".to_owned(), |node| format!("node {node}"))
}

/// Returns the column title of a place.
pub(crate) fn title(place: ServingPlace) -> String {
    match place {
        ServingPlace::Memory(node) => format!("memory {node}"),
        ServingPlace::OwnMemory => "own memory".to_owned(),
        ServingPlace::OtherMemory => "other memory".to_owned(),
        ServingPlace::OtherCache => "other caches".to_owned(),
        ServingPlace::RemoteCache => "remote caches".to_owned(),
        ServingPlace::Cache => "own caches".to_owned(),
        ServingPlace::Elsewhere => "elsewhere".to_owned(),
    }
}
