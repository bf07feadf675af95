//! Types and fields as text.

use super::advise::{LayoutAdvice, MeanLines};
use super::{AddressChecks, SampledType, TypeProfile, TypesEvent};
use crate::cache_line::LINE;
use crate::group_table::too_few;
use crate::render::TextOptions;
use crate::render::number::{cycles, share};
use crate::render::table::{Table, TableColumn};
use crate::run_text::{header, legend, notes, verdict};
use crate::stats::Share;
use precise_model::digits::thousands;
use precise_model::text::{Cut, sanitize, wrap};

/// Formats for each event its types, or with `layouts` their fields.
pub fn types_text(view: &TypeProfile, layouts: bool, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, event) in view.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &header(&view.run, &event.event, event.samples, options);
        out.push('\n');
        out += &match event.too_few {
            Some(needed) if !event.types.is_empty() || event.accesses > 0 => {
                too_few(event.accesses, needed, options)
            }
            _ => String::new(),
        };
        out += &account(event, options);
        out.push('\n');
        if layouts {
            let before = view.events.iter().take(i).flat_map(|event| &event.types);
            let before: Vec<_> = before.filter_map(|ty| ty.advice.as_ref()).collect();
            for ty in &event.types {
                out += &match &ty.advice {
                    Some(advice) if advice.refused.is_none() && before.contains(&advice) => {
                        format!("{}: the advice above counts these samples, too.\n", sanitize(&ty.name))
                    }
                    Some(advice) => advised(ty, advice, options),
                    None => layout(ty, options),
                };
                out.push('\n');
            }
            if event.types.is_empty() {
                out += "No sampled type has this name.\n\n";
            }
        } else {
            out += &types(event, options);
            out.push('\n');
            out += &untyped(event, options);
            out.push('\n');
        }
        out += &notes(&event.notes, options);
        out += &verdict(&event.event, view.events.len() > 1, options);
    }
    let lines = if layouts {
        [
            "Samples: of each field. Share: part of the samples of the type; in 95% of runs the true \
             value is within ± percentage points of it.",
            "Lines are counted from the start of the object. They are those of the cache if the object \
             begins at a multiple of 64 bytes.",
        ]
    } else {
        [
            "Share: part of the samples that access memory; in 95% of runs the true value is within ± \
             percentage points of it.",
            "By address: of the samples of the type, how many the data address confirms and contradicts. \
             Types come from debug information, which may be wrong in optimized code.",
        ]
    };
    out + &legend(&lines, options)
}

/// Formats how much is known.
fn account(event: &TypesEvent, options: &TextOptions) -> String {
    let AddressChecks { confirmed, contradicted, not_checkable } = event.checked;
    let all = event.checked.all();
    let part = |samples| Share::wilson(samples, all.max(1)).value * 100.0;
    let mut out = format!(
        "Typed: {} of the {} samples at accesses to memory.",
        share(&event.typed),
        thousands(event.accesses)
    );
    if all > 0 {
        out += &format!(
            " By address: {:.1}% confirmed, {:.1}% contradicted, {:.1}% not checkable.",
            part(confirmed),
            part(contradicted),
            part(not_checkable)
        );
    }
    wrap(&out, options.width, 0) + "\n"
}

fn types(event: &TypesEvent, options: &TextOptions) -> String {
    let timed = event.types.iter().any(|ty| ty.latency_share.is_some());
    let mut columns = vec![TableColumn::number("Share"), TableColumn::number("Samples")];
    if timed {
        columns.extend([TableColumn::number("Latency"), TableColumn::number("Avg")]);
    }
    columns.extend(["Loads", "Stores", "Size"].map(TableColumn::number));
    columns.extend([TableColumn::number("By address"), TableColumn::text("Type", Cut::End)]);
    let mut table = Table::new(columns);
    for ty in &event.types {
        let mut cells = vec![share(&ty.share), thousands(ty.samples)];
        if timed {
            cells.push(ty.latency_share.as_ref().map_or_else(|| "-".to_owned(), share));
            cells.push(ty.average.map_or_else(|| "-".to_owned(), cycles));
        }
        cells.extend([thousands(ty.loads), thousands(ty.stores), thousands(ty.size)]);
        let AddressChecks { confirmed, contradicted, .. } = ty.checked;
        cells.push(format!("+{} -{}", thousands(confirmed), thousands(contradicted)));
        let name = sanitize(&ty.name);
        cells.push(if ty.uncertain { format!("{name} (uncertain)") } else { name });
        table.row(cells);
    }
    let (more, samples) = event.left_out;
    if more > 0 {
        let mut cells = vec![String::new(), thousands(samples)];
        cells.resize(if timed { 8 } else { 6 }, String::new());
        cells.push(format!("({} more)", thousands(more as u64)));
        table.row(cells);
    }
    table.render(options.table_width(), options.style)
}

fn untyped(event: &TypesEvent, options: &TextOptions) -> String {
    let mut table = Table::new(vec![
        TableColumn::number("Samples"),
        TableColumn::text("Without a type, because", Cut::End),
    ]);
    for missing in &event.untyped {
        table.row(vec![thousands(missing.samples), missing.words.clone()]);
    }
    if event.untyped.is_empty() {
        return String::new();
    }
    table.render(options.table_width(), options.style)
}

/// Formats a struct with its members in another order, and what that would change.
fn advised(ty: &SampledType, advice: &LayoutAdvice, options: &TextOptions) -> String {
    let name = sanitize(&ty.name);
    let mut out = format!("{name}: {} bytes, {} samples\n\n", thousands(ty.size), thousands(ty.samples));
    if let Some(refused) = &advice.refused {
        return out + &wrap(&sanitize(refused), options.width, 0) + "\n";
    }
    out += &advice.definition;
    let lines = |lines: &MeanLines| format!("{:.2} ({:.2} to {:.2})", lines.value, lines.low, lines.high);
    let mut said = format!(
        "A visit is an object that a thread uses in an epoch. {} visits to {} objects were sampled. Each \
         touches {} cache lines now, and {} with this order: {} fewer.",
        thousands(advice.visits),
        thousands(advice.objects),
        lines(&advice.lines_now),
        lines(&advice.lines_advised),
        lines(&advice.saved),
    );
    if advice.apart {
        said += " What one thread writes is on another line than what other threads use; a member that one \
                 thread writes and another uses has a line of its own. A visit may touch more lines for \
                 that, but threads do not wait for each other's writes.";
    }
    if !advice.by_affinity {
        said += " Too few visits used two members or more, so the order is that of the samples alone.";
    }
    said += " Allocate the objects at multiples of 64 bytes, or the lines begin elsewhere.";
    out.push('\n');
    out + &wrap(&said, options.width, 0) + "\n"
}

fn layout(ty: &SampledType, options: &TextOptions) -> String {
    let uncertain = if ty.uncertain { ", uncertain: data addresses contradict it" } else { "" };
    let mut out = format!(
        "{}: {} bytes, {} samples{uncertain}\n\n",
        sanitize(&ty.name),
        thousands(ty.size),
        thousands(ty.samples)
    );
    let timed = ty.fields.iter().any(|field| field.average.is_some());
    let threads = ty.fields.iter().any(|field| field.threads.is_some());
    let mut columns: Vec<TableColumn> =
        ["Offset", "Size", "Share", "Samples", "Loads", "Stores"].map(TableColumn::number).into();
    if timed {
        columns.push(TableColumn::number("Avg"));
    }
    if threads {
        columns.push(TableColumn::number("Threads"));
    }
    let before = columns.len();
    columns.extend([TableColumn::text("Field", Cut::End), TableColumn::text("Type", Cut::End)]);
    let mut table = Table::new(columns);
    let mut line = 0;
    for field in &ty.fields {
        if field.offset / LINE != line {
            line = field.offset / LINE;
            let mut cells = vec![String::new(); before];
            cells.extend([format!("--- line {line} ---"), String::new()]);
            table.row(cells);
        }
        let mut cells = vec![field.offset.to_string(), field.size.to_string()];
        match field.samples {
            0 => cells.extend([const { String::new() }; 4]),
            samples => {
                cells.extend([share(&field.share), thousands(samples)]);
                cells.extend([thousands(field.loads), thousands(field.stores)]);
            }
        }
        if timed {
            cells.push(field.average.map_or_else(String::new, cycles));
        }
        if threads {
            let count = field.threads.filter(|count| *count > 0);
            cells.push(count.map_or_else(String::new, |count| count.to_string()));
        }
        cells.extend([sanitize(&field.name), sanitize(&field.type_name)]);
        table.row(cells);
    }
    if ty.fields.is_empty() {
        return out + "A value without fields.\n";
    }
    out += &table.render(options.table_width(), options.style);
    out
}
