//! Reads a capture with another program: DuckDB's sums must equal those of our own report.

use precise::capture::CaptureFile as _;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use precise::capture::{CaptureWriter, Column};
use precise::model::Capture;
use precise::model::keys::Key;
use precise::model::testing::CaptureBuilder;
use precise::model::values::Value;
use precise::views::report::{ReportOptions, report};
use precise_tests::program::python;

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {error}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the result rows of a query, with values joined by `|`.
fn query(python: &Path, sql: &str) -> Result<Vec<String>> {
    const PROGRAM: &str = "import duckdb, sys\n\
        for row in duckdb.sql(sys.argv[1]).fetchall(): print('|'.join(str(value) for value in row))";
    let answer = run(Command::new(python).args(["-c", PROGRAM, sql]))?;
    Ok(answer.lines().map(str::to_owned).collect())
}

fn capture() -> Capture {
    let mut builder = CaptureBuilder::new();
    for epoch in 0..40 {
        for cell in 0..500u64 {
            let function =
                ["parse", "größe", "it's | \"quoted\"", "std::vec<int>::push", ""][cell as usize % 5];
            builder
                .cell()
                .epoch(epoch)
                .samples(1 + cell * u64::from(epoch) % 7)
                .latency(4 + cell as u32)
                .process(100 + cell as u32 % 3, "nginx")
                .code(0xffff_ffff_8100_0000 + cell * 4, "/usr/bin/app", function, "src/a.c", cell as u32);
        }
    }
    builder.build()
}

#[test]
fn duckdb_adds_up_to_our_report() -> Result<()> {
    let python = python()?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("capture.parquet");
    let capture = capture();
    // Written epoch by epoch, as in a run.
    let mut writer = CaptureWriter::create(&path)?;
    for rows in capture.rows.chunk_by(|a, b| a.epoch == b.epoch) {
        writer.append_epoch(&capture, rows)?;
    }
    writer.finish(&capture.meta)?;
    let table = format!("'{}'", path.display());

    let options = ReportOptions { by: vec![Key::Function], ..ReportOptions::default() };
    let ours = report(&Capture::read(&path)?, &options)?;
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for group in &ours.events[0].groups.list {
        // Code without a symbol is a row by file and offset in the report, and null in the capture.
        let name = match &group.values[0] {
            Value::Text(name) if !name.starts_with("app+0x") => name.clone(),
            _ => "None".to_owned(),
        };
        *sums.entry(name).or_default() += group.measures.count;
    }
    let ours = sums;
    ensure!(ours.len() == 5, "{ours:?}");
    let theirs =
        query(&python, &format!("SELECT SUM(count)::UBIGINT, function FROM {table} GROUP BY function"))?;
    let theirs: BTreeMap<String, u64> = theirs
        .iter()
        .filter_map(|line| line.split_once('|'))
        .map(|(count, name)| Ok((name.to_owned(), count.parse()?)))
        .collect::<Result<_>>()?;
    assert_eq!(ours, theirs);

    // Types and nulls in SQL.
    let columns = query(&python, &format!("SELECT column_name FROM (DESCRIBE SELECT * FROM {table})"))?;
    assert_eq!(columns, Column::ALL.map(Column::name));
    let sql = format!(
        "SELECT epoch, epoch_ns(epoch_start), epoch_ns(epoch_end), ip, function_reason, latency_low, latency_high, kernel, cpu, cgroup_reason \
         FROM {table} WHERE epoch = 3 AND line = 254"
    );
    assert_eq!(
        query(&python, &sql)?,
        ["3|1700000003000000000|1700000004000000000|18446744071578846200|no-symbol|256|287|False|None|\
             not-recorded"]
    );
    let sql = format!(
        "SELECT decode(value) FROM parquet_kv_metadata({table}) WHERE decode(key) = 'precise.schema'"
    );
    assert_eq!(query(&python, &sql)?, ["1"]);
    Ok(())
}

/// Each query of the documentation runs, and finds something.
#[test]
fn the_documented_queries_run() -> Result<()> {
    let python = python()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("precise.parquet");
    let mut capture = capture();
    capture.meta.events[0].name = "page-faults".to_owned();
    capture.write(&path)?;
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/capture-format.md"))?;
    let block = page.split("```sql\n").nth(1).and_then(|rest| rest.split("```").next());
    let queries: Vec<&str> =
        block.context("the page has no queries")?.split(';').filter(|sql| !sql.trim().is_empty()).collect();
    ensure!(queries.len() >= 5, "{queries:?}");
    for sql in queries {
        let sql =
            sql.replace("captures/*", "precise").replace("precise.parquet", &path.display().to_string());
        ensure!(!query(&python, &sql)?.is_empty(), "no rows: {sql}");
    }
    Ok(())
}
