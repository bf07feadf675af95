//! How long each view takes to answer, by the number of rows of a capture.

use std::fs;
use std::rc::Rc;

use anyhow::Result;
use precise_tests::large_recording::{self, Addresses, Size};
use precise_tests::program;

use super::growth::Growth;
use super::part::Part;
use super::question::Question;
use super::setting::Setting;
use super::tool::Tool;

const ROWS: [u64; 3] = [100_000, 1_000_000, 10_000_000];
/// A capture may name no more than fits into half a gigabyte.
const ADDRESSES: u64 = 1_000_000;
/// The views, and how they are asked.
const VIEWS: [(&str, &str); 7] = [
    ("report", "report"),
    ("report of functions and processes", "report --by function,process"),
    ("mem", "mem"),
    ("latency", "latency"),
    ("c2c", "c2c"),
    ("heatmap", "heatmap"),
    ("explain", "explain"),
];

/// Returns the parts of this chapter.
///
/// # Errors
///
/// Returns an error if a capture cannot be made.
pub fn parts(setting: &Rc<Setting>) -> Result<Vec<Part>> {
    for (at, rows) in ROWS.into_iter().enumerate() {
        let recording = setting.folder.join("views.data");
        large_recording::write(&recording, Size::Samples(rows), Addresses::Distinct(ADDRESSES))?;
        setting.run(&setting.command(Tool::Precise, &format!("import -q -o {} views.data", file(at))))?;
        fs::remove_file(&recording)?;
    }
    let note = "CPU time, of one thread. The captures are imported from recordings of loads, whose samples have \
                a million different addresses, one after the other, so that each sample is a row. Views that \
                need no addresses do not read them.";
    let time = Growth::new("Time to the answer", "s", note, "rows", &ROWS);
    let time = VIEWS.into_iter().fold(time, |growth, (name, text)| {
        let setting = Rc::clone(setting);
        growth.with(name, move |at| Ok(setting.run(&asked(&setting, text, at))?.cpu_seconds))
    });
    let memory = Growth::new("Memory of the answer", "MB", "", "rows", &ROWS);
    let memory = VIEWS.into_iter().take(1).fold(memory, |growth, (name, text)| {
        let setting = Rc::clone(setting);
        growth.with(name, move |at| Ok(setting.run(&asked(&setting, text, at))?.peak_bytes as f64 / 1e6))
    });
    let sums = SUMS.map(|question| Part::Question(sums(setting, question)));
    Ok([Part::Growth(time), Part::Growth(memory)].into_iter().chain(sums).collect())
}

fn file(at: usize) -> String {
    format!("views-{at}.parquet")
}

fn asked(setting: &Setting, text: &str, at: usize) -> Vec<String> {
    setting.command(Tool::Precise, &format!("{text} -i {}", file(at)))
}

/// Questions of which DuckDB computes the same sums: what is added up, the view, the columns and
/// the sums.
const SUMS: [(&str, &str, &str, &str); 3] = [
    (
        "Samples of each function and process",
        "report --by function,process",
        "function, process",
        "sum(count), sum(period_sum)",
    ),
    (
        "Accesses of each level",
        "mem",
        "op, level, snoop, tlb, locked",
        "sum(count), sum(period_sum), sum(latency_sum)",
    ),
    ("Latencies of each level", "latency", "level, latency_bucket", "sum(count), sum(latency_sum)"),
];

/// Asks for the same sums as DuckDB does.
fn sums(setting: &Rc<Setting>, (title, view, columns, sums): (&str, &str, &str, &str)) -> Question {
    let at = ROWS.len() - 1;
    let note = "CPU time, of one thread each; start, reading and printing are included. What precise prints has \
                intervals, percentiles and the verdict beside the sums.";
    let question = Question::new(format!("{title}, of 10,000,000 rows"), "s", note);
    let ours = asked(setting, view, at);
    let sql =
        format!("select {columns}, {sums} from '{}' group by {columns} order by sum(count) desc", file(at));
    let python = program::python().map(|path| path.display().to_string()).unwrap_or_default();
    const PROGRAM: &str = "import duckdb, sys; duckdb.sql('set threads = 1'); print(duckdb.sql(sys.argv[1]))";
    let theirs = [&python, "-c", PROGRAM, &sql].map(str::to_owned);
    let theirs = theirs.to_vec();
    [(Tool::Precise, ours), (Tool::DuckDb, theirs)].into_iter().fold(question, |question, (tool, command)| {
        let setting = Rc::clone(setting);
        question.with(tool, vec![command], move |commands| {
            commands.iter().map(|command| Ok(setting.run(command)?.cpu_seconds)).sum()
        })
    })
}
