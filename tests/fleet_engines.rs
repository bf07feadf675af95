//! Twenty questions to the tables of a fleet, asked of five engines and of precise: the sums must
//! be equal to the last sample.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use precise::fleet::testing::MadeFleet;
use precise::fleet::{FleetDay, FleetHour};
use precise_tests::made_fleet::{over, write};
use precise_tests::program::python;
use precise_tests::run::{binary, precise};

/// Asks each question of each engine: samples, events and the largest latency of each group. A
/// question is a table, what is wanted of it, and its groups. Prints a line for each difference.
const ASK: &str = r#"
import glob, json, os, subprocess, sys
binary, place, day, until, catalog = sys.argv[1:]

WEB = "shop/web2"
QUESTIONS = [
    ("hour", "", ["service"]),
    ("hour", "", ["level"]),
    ("hour", "", ["node"]),
    ("hour", "", ["cluster"]),
    ("hour", "", ["hour"]),
    ("hour", "", ["module"]),
    ("hour", "", ["service", "level"]),
    ("hour", "", ["hour", "service"]),
    ("hour", "", ["function", "service"]),
    ("hour", WEB, ["function"]),
    ("hour", WEB, ["function", "module"]),
    ("hour", WEB, ["node"]),
    ("hour", WEB, ["hour", "level"]),
    ("hour", WEB, ["node", "level"]),
    ("tier", "", ["service"]),
    ("tier", "", ["function", "level"]),
    ("tier", WEB, ["node"]),
    ("latency", "", ["level"]),
    ("latency", "", ["hour", "service"]),
    ("latency", WEB, ["function"]),
]

# The newest manifest of each hour and of the day, as docs/fleet.md says.
newest = {}
for name in sorted(glob.glob(f"{place}/v1/manifest/*/*.json")):
    manifest = json.load(open(name))
    newest[manifest["period"]] = manifest
files = {"hour": [], "latency": [], "tier": [], "symbols": []}
for period, manifest in newest.items():
    for part in manifest["parts"]:
        name, table = f"{place}/{part['name']}", part["table"]
        if "T" in period and table in files:
            files[table].append(name)
        elif "T" in period or table != "day" or period != day:
            continue
        elif part["tier"] == 3:
            files["tier"].append(name)
assert all(files.values()), files

def ours(table, service, by):
    kind = "latency" if table == "latency" else "report"
    when = day if table == "tier" else f"{day}..{until}"
    command = [binary, "fleet", kind, place, "--time", when, "--by", ",".join(by), "-n", "1000000", "--json"]
    command += ["--service", service] if service else []
    command += ["--within", "100%"] if table == "tier" else []
    answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert table != "tier" or answer["read"]["tier"] == 3, answer["read"]
    rows = []
    for event in answer["events"]:
        for group in event["groups"]:
            count = group["samples_read"] if table != "latency" else group["samples"]
            most = group.get("latency_max")
            rows.append((event["event"], event["kind"], *group["values"], count, group["weight"], most))
    return rows

def sql(table, service, by, hour):
    names = {"function": "coalesce(name, reason)", "hour": hour}
    keys = ["event", "kind"] + [names.get(key, key) for key in by]
    most = "NULL" if table == "latency" else "max(latency_max)"
    where = f"WHERE service = '{service}'" if service else ""
    return f"SELECT {', '.join(keys)}, sum(count), sum(weight), {most} " \
           f"FROM {{{table}}} AS r JOIN {{names}} AS n USING (function) {where} GROUP BY {', '.join(keys)}"

def duckdb():
    import duckdb
    for table, paths in files.items():
        duckdb.sql(f"CREATE VIEW {table}_ AS SELECT * FROM read_parquet({paths}, hive_partitioning = false)")
    names = "(SELECT DISTINCT * FROM symbols_)"
    tables = {table: table + "_" for table in files} | {"names": names}
    hour = "strftime(timezone('UTC', time), '%Y-%m-%dT%H')"
    return lambda *question: duckdb.sql(sql(*question, hour).format(**tables)).fetchall()

def chdb():
    import chdb
    def source(table):
        return "(" + " UNION ALL ".join(f"SELECT * FROM file('{path}', Parquet)" for path in files[table]) + ")"
    tables = {table: source(table) for table in files}
    # Not *, which would have columns of the names of folders.
    tables["names"] = f"(SELECT DISTINCT function, name, module, reason FROM {source('symbols')})"
    hour = "formatDateTime(time, '%Y-%m-%dT%H', 'UTC')"
    def ask(*question):
        text = sql(*question, hour).format(**tables).replace("sum(count)", "toInt64(sum(count))")
        rows = str(chdb.query(text, "JSONCompactEachRow")).splitlines()
        # Numbers of 64 bits come as texts.
        return [(*row[:-3], int(row[-3]), int(row[-2]), row[-1]) for row in map(json.loads, rows)]
    return ask

def spark():
    import pyspark
    os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
    from pyspark.sql import SparkSession
    # Two workers, each a process of its own.
    session = SparkSession.builder.master("local-cluster[2,1,512]").config("spark.ui.enabled", "false") \
        .config("spark.sql.shuffle.partitions", "2").config("spark.executor.memory", "512m") \
        .config("spark.sql.session.timeZone", "UTC").config("spark.driver.bindAddress", "127.0.0.1") \
        .config("spark.driver.host", "127.0.0.1").config("spark.sql.sources.partitionColumnTypeInference.enabled", "false") \
        .getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    for table, paths in files.items():
        session.read.option("recursiveFileLookup", "true").parquet(*paths).createOrReplaceTempView(table + "_")
    session.sql("SELECT DISTINCT * FROM symbols_").cache().createOrReplaceTempView("names")
    tables = {table: table + "_" for table in files} | {"names": "names"}
    hour = "date_format(time, \"yyyy-MM-dd'T'HH\")"
    return lambda *question: session.sql(sql(*question, hour).format(**tables)).collect()

def polars():
    import polars as pl
    tables = {table: pl.scan_parquet(paths, hive_partitioning=False) for table, paths in files.items()}
    names = tables["symbols"].unique()
    def ask(table, service, by):
        keys = {"function": pl.coalesce("name", "reason").alias("of_function"),
                "hour": pl.col("time").dt.strftime("%Y-%m-%dT%H").alias("of_hour")}
        rows = tables[table].join(names, on="function")
        rows = rows.filter(pl.col("service") == service) if service else rows
        groups = rows.group_by(["event", "kind"] + [keys.get(key, pl.col(key)) for key in by], maintain_order=False)
        most = pl.lit(None) if table == "latency" else pl.col("latency_max").max()
        return groups.agg(pl.col("count").sum().alias("samples"), pl.col("weight").sum().alias("events"),
                          most.alias("most")).collect().rows()
    return ask

def iceberg():
    from pyiceberg.catalog.sql import SqlCatalog
    import duckdb
    opened = SqlCatalog("fleet", uri=f"sqlite:///{catalog}/fleet.db", warehouse=f"file://{catalog}")
    connection = duckdb.connect()
    for table in ["hour", "latency", "symbols"]:
        rows = opened.load_table(f"fleet.{table}").scan().to_arrow()
        connection.register(table + "_", rows)
    tables = {table: table + "_" for table in files} | {"names": "(SELECT DISTINCT * FROM symbols_)"}
    hour = "strftime(timezone('UTC', time), '%Y-%m-%dT%H')"
    def ask(table, *question):
        # The catalog has the tables of hours, of which those of a day are made.
        return None if table == "tier" else connection.sql(sql(table, *question, hour).format(**tables)).fetchall()
    return ask

engines = [(engine.__name__, engine()) for engine in [duckdb, chdb, polars, iceberg, spark]]
rows, asked = 0, {}
for number, question in enumerate(QUESTIONS):
    def sorted_rows(rows):
        return sorted((tuple(row) for row in rows), key=repr)
    expected = sorted_rows(ours(*question))
    rows += len(expected)
    for name, ask in engines:
        found = ask(*question)
        if found is None:
            continue
        asked[name] = asked.get(name, 0) + 1
        found = sorted_rows(found)
        if found != expected:
            print(f"DIFFERS: {name}: question {number}: {question}: {found[:3]} instead of {expected[:3]}")
assert asked.pop("iceberg") == 17 and set(asked.values()) == {20}, asked
print(f"{len(QUESTIONS)} questions, {len(engines)} engines, {rows} rows")
"#;

#[test]
fn five_engines_and_precise_add_up_alike() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = folder.path().join("place");
    // A whole day, which has its own tables, and some hours of the next.
    let day = FleetDay(over().day().0 - 2);
    let first = FleetHour(day.first().0 + 19);
    // The thinnest tier must have enough samples of a service.
    let made = MadeFleet { first, rows: 300, ..MadeFleet::small() };
    write(&made, 7, &place)?;
    let catalog = folder.path().join("iceberg");
    fs::create_dir(&catalog)?;
    let (place, catalog) = (place.to_string_lossy(), catalog.to_string_lossy());
    precise(["fleet", "compact", "--since", "7d", &place])?.expect(0)?;
    // The job adds what is new, and nothing twice.
    let registered = register(&place, &catalog)?;
    ensure!(registered.contains("fleet.hour: 8 new files of 8\n"), "{registered}");
    let again = register(&place, &catalog)?;
    ensure!(again.contains("fleet.hour: 0 new files of 8\n"), "{again}");
    let output = Command::new(python()?)
        .args(["-c", ASK])
        .arg(binary()?)
        .args([&place, day.to_string().as_str(), FleetDay(day.0 + 1).to_string().as_str(), &catalog])
        .current_dir(folder.path())
        // Spark listens to its own workers only.
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .output()
        .context("cannot start Python")?;
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success() && !said.contains("DIFFERS"), "{said}{error}");
    let last = said.lines().last().unwrap_or_default();
    let rows = last.strip_prefix("20 questions, 5 engines, ").and_then(|rest| rest.strip_suffix(" rows"));
    ensure!(rows.and_then(|rows| rows.parse::<u32>().ok()).is_some_and(|rows| rows > 500), "{said}{error}");
    Ok(())
}

/// Runs the job of docs/fleet.md that registers tables in Iceberg.
fn register(place: &str, catalog: &str) -> Result<String> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/fleet.md"))?;
    let job = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).context("no job")?;
    let place = format!("file://{place}");
    let output = Command::new(python()?).args(["-c", job, &place, catalog]).output()?;
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{said}{error}");
    Ok(said.into_owned())
}

/// Runs each statement of a text, and prints the number of its rows.
const CLICKHOUSE: &str = r#"
import chdb, sys
for sql in filter(None, map(str.strip, sys.argv[1].split(";"))):
    print(len(str(chdb.query(sql, "TSV")).splitlines()))
"#;

#[test]
fn the_statements_for_clickhouse_find_something() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = folder.path().join("profiles");
    let day = FleetDay(over().day().0 - 2);
    let made = MadeFleet { nodes: 6, first: day.first(), ..MadeFleet::small() };
    write(&made, 2, &place)?;
    precise(["fleet", "compact", "--since", "7d", &place.to_string_lossy()])?.expect(0)?;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/fleet.md");
    let page = fs::read_to_string(page)?;
    let blocks = page.split("```clickhouse\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut statements = 0;
    for block in blocks {
        let plain: String =
            block.lines().filter(|line| !line.starts_with("--")).map(|line| format!("{line}\n")).collect();
        let output =
            Command::new(python()?).args(["-c", CLICKHOUSE, &plain]).current_dir(folder.path()).output()?;
        let (said, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "{said}{error}");
        for rows in said.lines() {
            ensure!(rows != "0", "statement {statements} finds nothing: {plain}");
            statements += 1;
        }
    }
    ensure!(statements == 3, "{statements} statements");
    Ok(())
}
