//! Opens one capture with the engines that the documentation names. Each must give the same rows
//! for one question, with the times, the counts and the nulls of the model.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::model::Owner;
use precise::model::testing::CaptureBuilder;
use precise_tests::program::python;

/// Asks each engine for the samples and latencies of each pod and second. Prints a line for each
/// row, the engine's name first; `-` is null.
const ASK: &str = r#"
import sys
path = sys.argv[1]
KEYS = ["host", "pod", "container", "unit", "namespace", "pid"]

def show(engine, rows):
    for row in sorted(map(tuple, rows), key=str):
        print(engine, *("-" if value is None or value != value else value for value in row), sep="|")

SQL = "SELECT {keys}, {second}, CAST(sum(count) AS BIGINT), CAST(sum(latency_sum) AS BIGINT) " \
      "FROM {table} GROUP BY {keys}, {second}"

def duckdb():
    import duckdb
    keys = ", ".join(KEYS)
    second = "CAST(epoch(date_trunc('second', epoch_start)) AS BIGINT)"
    return duckdb.sql(SQL.format(keys=keys, second=second, table=f"'{path}'")).fetchall()

def plain(value):
    return None if value is None or value != value else int(value) if isinstance(value, float) else value

def pandas():
    import pandas
    table = pandas.read_parquet(path)
    assert table["count"].dtype == "int64" and str(table["epoch_start"].dtype).startswith("datetime64[us"), table.dtypes
    table["second"] = table["epoch_start"].map(lambda time: int(time.timestamp()))
    groups = table.groupby(KEYS + ["second"], dropna=False)
    sums = groups.agg({"count": "sum", "latency_sum": lambda all: all.sum(min_count=1)}).reset_index()
    return [[plain(value) for value in row] for row in sums.astype(object).values.tolist()]

def polars():
    import polars
    table = polars.scan_parquet(path)
    second = polars.col("epoch_start").dt.epoch("s").alias("second")
    latency = polars.col("latency_sum")
    latency = polars.when(latency.count() > 0).then(latency.sum()).otherwise(None)
    return table.group_by(KEYS + [second]).agg(polars.col("count").sum(), latency).collect().rows()

def chdb():
    import chdb, json
    keys = ", ".join(KEYS)
    sql = SQL.format(keys=keys, second="toUnixTimestamp(epoch_start)", table=f"file('{path}', Parquet)")
    sql = sql.replace("CAST(sum(latency_sum) AS BIGINT)", "CAST(sum(latency_sum) AS Nullable(BIGINT))")
    rows = str(chdb.query(sql, "JSONCompactEachRow")).splitlines()
    return [[int(v) if isinstance(v, str) and v.isdigit() else v for v in json.loads(row)] for row in rows]

def spark():
    from pyspark.sql import SparkSession
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false") \
        .config("spark.sql.shuffle.partitions", "1").config("spark.driver.bindAddress", "127.0.0.1") \
        .config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.read.parquet(path).createOrReplaceTempView("capture")
    keys = ", ".join(KEYS)
    return session.sql(SQL.format(keys=keys, second="unix_timestamp(epoch_start)", table="capture")).collect()

for engine in [duckdb, pandas, polars, chdb, spark]:
    show(engine.__name__, engine())
"#;

#[test]
fn five_engines_read_a_capture_alike() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("capture.parquet");
    let mut builder = CaptureBuilder::new();
    builder.meta().owners = vec![
        Owner {
            path: "/kubepods/web".into(),
            name: "shop/web-0/nginx".into(),
            container: Some("nginx".into()),
            pod: Some("web-0".into()),
            namespace: Some("shop".into()),
            ..Owner::default()
        },
        Owner {
            path: "/system.slice/cron.service".into(),
            name: "cron.service".into(),
            unit: Some("cron.service".into()),
            ..Owner::default()
        },
    ];
    let start = builder.meta().start_unix_ns / 1_000_000_000;
    let mut expected = Vec::new();
    for epoch in 0..3u32 {
        let second = start + u64::from(epoch);
        for (at, path) in
            ["/kubepods/web", "/system.slice/cron.service", "/elsewhere"].into_iter().enumerate()
        {
            let pid = 100 + at as u32;
            let samples = u64::from(epoch) + 1;
            for line in 0..4u32 {
                let cell = builder
                    .cell()
                    .epoch(epoch)
                    .samples(samples)
                    .process(pid, "some")
                    .cgroup(pid.into(), path);
                let cell = if at == 1 { cell } else { cell.latency(40) };
                cell.code(0x40_1000 + u64::from(line), "/usr/bin/app", "work", "src/a.c", line);
            }
            let (pod, container, unit, namespace) = match at {
                0 => ("web-0", "nginx", "-", "shop"),
                1 => ("-", "-", "cron.service", "-"),
                _ => ("-", "-", "-", "-"),
            };
            let latency = if at == 1 { "-".to_owned() } else { (4 * samples * 40).to_string() };
            let owner = format!("{pod}|{container}|{unit}|{namespace}");
            expected.push(format!("testhost|{owner}|{pid}|{second}|{}|{latency}", 4 * samples));
        }
    }
    expected.sort();
    let capture = builder.build();
    capture.write(&path)?;

    let output = Command::new(python()?)
        .args(["-c", ASK])
        .arg(&path)
        // Spark listens to its own workers only.
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .output()
        .context("cannot start Python")?;
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{said}{error}");
    for engine in ["duckdb", "pandas", "polars", "chdb", "spark"] {
        let of = |line: &str| line.strip_prefix(engine)?.strip_prefix('|').map(str::to_owned);
        let mut rows: Vec<String> = said.lines().filter_map(of).collect();
        rows.sort();
        ensure!(rows == expected, "{engine}: {rows:#?}\nexpected: {expected:#?}\n{error}");
    }
    Ok(())
}
