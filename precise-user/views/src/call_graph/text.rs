//! Call graphs as text.

use crate::call_graph::{CallGraphReport, Calls, FunctionCalls, FunctionCost, Neighbour};
use crate::group_table::too_few;
use crate::render::TextOptions;
use crate::render::Tint;
use crate::render::number::share;
use crate::render::table::{Table, TableColumn};
use crate::run_text::{header, legend, notes, verdict};
use precise_model::digits::{counted, thousands};
use precise_model::text::{Cut, sanitize};
use precise_model::values::Value;

/// Formats the functions by inclusive cost, then the callers and callees of some of them.
pub fn call_graph_text(graph: &CallGraphReport, options: &TextOptions) -> String {
    let mut out = String::new();
    for (i, calls) in graph.events.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out += &header(&graph.run, &calls.event, calls.samples, options);
        out.push('\n');
        match calls.too_few {
            Some(needed) => out += &too_few(calls.samples, needed, options),
            None => out += &tables(calls, options),
        }
        out += &ends(calls, options);
        if !calls.notes.is_empty() {
            out.push('\n');
        }
        out += &notes(&calls.notes, options);
        out.push('\n');
        out += &verdict(&calls.event, graph.events.len() > 1, options);
    }
    if graph.events.iter().all(|calls| calls.functions.is_empty()) {
        return out;
    }
    let lines = [
        "Total: share of the samples in the function and its callees. Self: share in the function \
         alone. In 95% of runs the true value is within ± percentage points of it.",
        "Callers and callees: share of the function's total whose chain contains the call. A chain with \
         several such calls counts for each, so the shares may add up to more than 100%.",
    ];
    out + &legend(&lines, options)
}

fn timed(calls: &Calls) -> bool {
    calls.functions.iter().any(|f| f.inclusive.latency_share.is_some_and(|share| share.value > 0.0))
}

fn tables(calls: &Calls, options: &TextOptions) -> String {
    let timed = timed(calls);
    let mut columns =
        vec![TableColumn::number("Total"), TableColumn::number("Self"), TableColumn::number("Samples")];
    if timed {
        columns.push(TableColumn::number("Latency"));
    }
    columns.extend([TableColumn::text("Function", Cut::Middle), TableColumn::text("Module", Cut::Start)]);
    let mut table = Table::new(columns);
    for cost in &calls.functions {
        let mut cells = vec![
            share(&cost.inclusive.share),
            share(&cost.exclusive.share),
            thousands(cost.inclusive.samples),
        ];
        if timed {
            cells.push(cost.inclusive.latency_share.map_or_else(|| "-".to_owned(), |s| share(&s)));
        }
        cells.extend([cost.function.text(), module(cost)]);
        table.row(cells);
    }
    let mut out = table.render(options.table_width(), options.style);
    if calls.left_out > 0 {
        out += &format!("({} more)\n", thousands(calls.left_out as u64));
    }
    for around in &calls.around {
        out += &neighbours(around, options);
    }
    out
}

/// Maximum number of ends that the text lists. The JSON document has all of them.
const ENDS: usize = 5;

/// Formats how many chains are whole, and where the others end.
fn ends(calls: &Calls, options: &TextOptions) -> String {
    let all: u64 = calls.ends.iter().map(|ends| ends.samples).sum();
    if all == 0 {
        return String::new();
    }
    let early: Vec<_> = calls.ends.iter().filter(|ends| !ends.whole).collect();
    if early.is_empty() {
        return format!("\nAll call chains are whole: {}.\n", counted(all, "sample"));
    }
    let ended: u64 = early.iter().map(|ends| ends.samples).sum();
    let whole = 100.0 * (all - ended) as f64 / all as f64;
    let mut table = Table::new(vec![
        TableColumn::number("Share"),
        TableColumn::number("Samples"),
        TableColumn::text("Chain ends because", Cut::End),
        TableColumn::text("In", Cut::Start),
    ]);
    for ends in early.iter().take(ENDS) {
        let module = ends.module.as_ref().map(file_name).unwrap_or_default();
        table.row(vec![share(&ends.share), thousands(ends.samples), ends.end.words().to_owned(), module]);
    }
    let mut out =
        format!("\n{whole:.1}% of the call chains are whole. The others lack their outermost callers:\n");
    out += &table.render(options.table_width(), options.style);
    if early.len() > ENDS {
        out += &format!("({} more)\n", thousands((early.len() - ENDS) as u64));
    }
    out
}

fn module(cost: &FunctionCost) -> String {
    file_name(&cost.module)
}

fn file_name(path: &Value) -> String {
    path.text().rsplit('/').next().unwrap_or_default().to_owned()
}

fn neighbours(around: &FunctionCalls, options: &TextOptions) -> String {
    let name = sanitize(&around.function.function.text());
    let title = format!("{name}: {}", counted(around.function.inclusive.samples, "sample"));
    let mut table = Table::new(vec![
        TableColumn::text("", Cut::End),
        TableColumn::number("Share"),
        TableColumn::number("Samples"),
        TableColumn::text("Function", Cut::Middle),
    ]);
    for (what, none, list) in
        [("called by", "(none: outermost frame)", &around.callers), ("calls", "(its own)", &around.callees)]
    {
        for (at, Neighbour { function, samples, share: of }) in list.iter().enumerate() {
            let what = if at == 0 { what } else { "" };
            let function = function.as_ref().map_or_else(|| none.to_owned(), |function| function.text());
            table.row(vec![what.to_owned(), share(of), thousands(*samples), function]);
        }
    }
    let title = options.style.paint(Tint::Heading, &title);
    format!("\n{title}\n{}", table.render(options.table_width(), options.style))
}
