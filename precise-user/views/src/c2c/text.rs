//! Contended cache lines as text.

use std::collections::BTreeSet;

use precise_common::hitm::Hitm;
use precise_model::CompactSort as _;

use crate::c2c::{C2c, SharedAccess, SharedLine, SharingVerdict, WidthFrom};
use crate::group_table::unranked;
use crate::render::TextOptions;
use crate::render::Tint;
use crate::render::number::{cycles, share};
use crate::render::table::{Table, TableColumn};
use crate::run_text::{header, legend, notes, verdict};
use precise_model::digits::thousands;
use precise_model::format_cpu_list;
use precise_model::text::{Cut, sanitize, wrap};

/// Formats the table of lines, then for each line who uses which bytes, the advice, and the
/// processes that it moves between.
pub fn c2c_text(view: &C2c, options: &TextOptions) -> String {
    let mut out = String::new();
    for event in &view.events {
        out += &header(&view.run, &event.event, event.samples, options);
    }
    out += &format!("\n{}\n", wrap(&found(view), options.width, 0));
    if view.hitm > 0 {
        if let Some(needed) = view.too_few {
            out += &format!("\n{}", unranked(view.hitm, needed, options));
        }
        out += &ranked(view, options);
    }
    out.push('\n');
    out += &notes(&view.notes, options);
    for event in &view.events {
        out += &notes(&event.notes, options);
        out += &verdict(&event.event, view.events.len() > 1, options);
    }
    if view.lines.is_empty() {
        return out;
    }
    out + &legend(
        &[
            "HITM: sampled loads that found their line modified in another core's cache; each took the \
             latency shown.",
            "Offset, Bytes: the bytes of the access within its 64-byte line; ~ if the width is unknown. \
             W: the access writes.",
        ],
        options,
    )
}

/// Returns the sentence that says how many HITM loads were found.
fn found(view: &C2c) -> String {
    let sum = |of: &dyn Fn(&crate::c2c::C2cEvent) -> u64| {
        thousands(view.events.iter().fold(0u64, |sum, event| sum.saturating_add(of(event))))
    };
    let shown = view.lines.len() + view.left_out.0;
    let lines = |count: usize| match count {
        1 => "1 cache line".to_owned(),
        n => format!("{} cache lines", thousands(n as u64)),
    };
    let mut text = match view.hitm {
        0 => "No load found its cache line modified in another core's cache (HITM), so no line moves \
            between cores."
            .to_owned(),
        hitm if shown > 0 => format!(
            "{} loads found their cache line modified in another core's cache (HITM), in {}.",
            thousands(hitm),
            lines(shown)
        ),
        hitm => format!(
            "{} loads found their cache line modified in another core's cache (HITM).",
            thousands(hitm)
        ),
    };
    text += &format!(" {} loads and {} stores were sampled.", sum(&|e| e.loads), sum(&|e| e.stores));
    match view.promoted_lines {
        Some(room) => {
            text += &format!(
                " Lines are kept in detail from their first HITM load on, at most {} lines; {} samples \
                 of other lines have no address.",
                thousands(room),
                sum(&|e| e.elsewhere)
            );
        }
        None if view.quiet_lines > 0 => {
            text += &format!(" {} had no such load.", lines(view.quiet_lines));
        }
        None => {}
    }
    text
}

fn ranked(view: &C2c, options: &TextOptions) -> String {
    let mut columns = vec![
        TableColumn::number("#"),
        TableColumn::number("Share"),
        TableColumn::number("HITM"),
        TableColumn::number("Loads"),
        TableColumn::number("Stores"),
        TableColumn::number("Threads"),
        TableColumn::text("Verdict", Cut::End),
    ];
    columns.push(TableColumn::text("Where", Cut::Start));
    let mut table = Table::new(columns);
    for (index, line) in view.lines.iter().enumerate() {
        table.row(vec![
            (index + 1).to_string(),
            share(&line.share),
            thousands(line.hitm.total),
            thousands(line.loads),
            thousands(line.stores),
            if line.threads.is_empty() { "-".to_owned() } else { thousands(line.threads.len() as u64) },
            line.verdict.words().to_owned(),
            place(line),
        ]);
    }
    let (lines, rest) = view.left_out;
    if lines > 0 {
        let mut row = vec![String::new(), String::new(), thousands(rest)];
        row.resize(7, String::new());
        row.push(format!("({} more)", thousands(lines as u64)));
        table.row(row);
    }
    let mut out = format!("\n{}", table.render(options.table_width(), options.style));
    for (index, line) in view.lines.iter().enumerate() {
        out += &format!("\n{}", detail(index + 1, line, options));
    }
    out + &pairs(view, options)
}

/// Returns the variables of a line, each with the offset of its first used byte; without variables,
/// the memory region of the line.
fn place(line: &SharedLine) -> String {
    let mut named: Vec<(&str, u64)> = Vec::new();
    for (name, offset) in line.fields.iter().filter_map(|field| field.variable.as_ref()) {
        if !named.iter().any(|(known, _)| known == name) {
            named.push((name, *offset));
        }
    }
    let named = named.into_iter().map(|(name, offset)| match offset {
        0 => name.to_owned(),
        offset => format!("{name}+{offset}"),
    });
    let named: Vec<_> = named.collect();
    if named.is_empty() { line.region.clone() } else { named.join(", ") }
}

fn detail(number: usize, line: &SharedLine, options: &TextOptions) -> String {
    let title = format!(
        "{number}: line {:#x}, {}: {}",
        line.address,
        sanitize(&place(line)),
        line.verdict.words().to_uppercase()
    );
    let tint = match line.verdict {
        SharingVerdict::FalseSharing | SharingVerdict::TrueSharing | SharingVerdict::Both => Tint::Warning,
        _ => Tint::Heading,
    };
    let mut out = format!("{}\n", options.style.paint(tint, &wrap(&title, options.width, 2)));
    let classes = Hitm::ALL.iter().map(|class| (class, line.hitm.of(*class))).filter(|(_, count)| *count > 0);
    let classes: Vec<_> =
        classes.map(|(class, count)| format!("{} {}", thousands(count), class.name())).collect();
    let mut facts = format!("{} HITM: {}", thousands(line.hitm.total), classes.join(", "));
    if let Some(average) = line.hitm_average {
        facts += &format!("; {} cycles on average", cycles(average));
    }
    if !line.cpus.is_empty() {
        facts += &format!("; CPUs {}", cpus(&line.cpus));
    }
    if !line.nodes.is_empty() {
        facts += &format!("; nodes {}", format_cpu_list(&line.nodes.iter().copied().collect::<Vec<_>>()));
    }
    out += &format!("   {}\n", wrap(&facts, options.width.saturating_sub(3), 3));
    out += &accesses(line, options);
    for advice in &line.advice {
        out += &format!("   {}\n", wrap(&sanitize(advice), options.width.saturating_sub(3), 3));
    }
    out
}

fn cpus(cpus: &BTreeSet<u16>) -> String {
    format_cpu_list(&cpus.iter().map(|cpu| u32::from(*cpu)).collect::<Vec<_>>())
}

fn accesses(line: &SharedLine, options: &TextOptions) -> String {
    /// Maximum number of accesses shown for a line. JSON and CSV contain all of them.
    const SHOWN: usize = 12;
    let mut by_weight: Vec<&SharedAccess> = line.accesses.iter().collect();
    by_weight.compact_sort_by_key(|access| std::cmp::Reverse((access.hitm, access.samples)));
    let left_out = by_weight.len().saturating_sub(SHOWN);
    by_weight.truncate(SHOWN);
    by_weight.compact_sort_by_key(|access| (access.offset, access.writes));
    let mut table = Table::new(vec![
        TableColumn::number("  Offset"),
        TableColumn::number("Bytes"),
        TableColumn::text("Op", Cut::End),
        TableColumn::number("HITM"),
        TableColumn::number("Samples"),
        TableColumn::text("CPUs", Cut::End),
        TableColumn::text("Process", Cut::End),
        TableColumn::text("Code", Cut::Middle),
    ]);
    for access in by_weight {
        let bytes = match (access.width, access.width_from) {
            (Some(width), WidthFrom::Hardware | WidthFrom::Instruction) => width.to_string(),
            _ => "~".to_owned(),
        };
        let op = if access.writes && access.op != "STORE" {
            format!("{} W", access.op)
        } else {
            access.op.to_owned()
        };
        table.row(vec![
            access.offset.to_string(),
            bytes,
            op,
            thousands(access.hitm),
            thousands(access.samples),
            if access.cpus.is_empty() { "-".to_owned() } else { cpus(&access.cpus) },
            format!("{} {}", access.process, access.pid),
            code(access),
        ]);
    }
    let mut out = table.render(options.table_width(), options.style);
    if left_out > 0 {
        out += &format!("   ({} more accesses; --json lists them)\n", thousands(left_out as u64));
    }
    out
}

/// Returns the function, and the source line with the name of its file.
fn code(access: &SharedAccess) -> String {
    let line = access.line.rsplit('/').next().unwrap_or_default();
    if line.starts_with('[') { access.function.clone() } else { format!("{} {line}", access.function) }
}

fn pairs(view: &C2c, options: &TextOptions) -> String {
    let between = |pair: &&crate::c2c::ProcessPair| {
        pair.reader != pair.writer || pair.reader_cgroup != pair.writer_cgroup
    };
    let pairs: Vec<_> = view.pairs.iter().filter(between).take(10).collect();
    if pairs.is_empty() {
        return String::new();
    }
    let mut table = Table::new(vec![
        TableColumn::number("HITM"),
        TableColumn::text("Reader", Cut::End),
        TableColumn::text("its cgroup", Cut::Start),
        TableColumn::text("Writer", Cut::End),
        TableColumn::text("its cgroup", Cut::Start),
    ]);
    let called = |path: &String| view.cgroup_names.get(path).unwrap_or(path).clone();
    for pair in pairs {
        table.row(vec![
            thousands(pair.hitm),
            pair.reader.clone(),
            called(&pair.reader_cgroup),
            pair.writer.clone(),
            called(&pair.writer_cgroup),
        ]);
    }
    let title = options.style.paint(Tint::Heading, "Between processes and cgroups");
    format!("\n{title}\n{}", table.render(options.table_width(), options.style))
}
