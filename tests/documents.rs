//! Compares the documents with the binary: generated parts must be up to date, and lists must be
//! complete.
//!
//! With `PRECISE_UPDATE_DOCUMENTS=1` the generated parts are rewritten instead of compared: see
//! [`UPDATE`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use precise::capture::{Column, ColumnType, FlatColumn};
use precise::filter::{Term, TermKind};
use precise::fleet::FleetTable;
use precise::serve::PageMetric;
use precise::stream::StreamField;
use precise::views::registry::VIEWS;
use precise::views::view::Command as Shown;
use precise_common::ledger::{Counter, CounterInfo};

/// The command that updates everything generated.
const UPDATE: &str = "cargo build -p precise-user && PRECISE_UPDATE_DOCUMENTS=1 \
    cargo test -p precise-tests --test files documents";

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn updating() -> bool {
    std::env::var_os("PRECISE_UPDATE_DOCUMENTS").is_some()
}

/// Runs the binary next to this test: `target/debug/precise`.
fn precise(arguments: &[&str]) -> Result<String> {
    let test = std::env::current_exe()?;
    let binary = test.ancestors().nth(2).context("the test lies in no target folder")?.join("precise");
    ensure!(binary.exists(), "{} is missing: run `cargo build -p precise-user`", binary.display());
    let output = Command::new(&binary).args(arguments).output()?;
    ensure!(output.status.success(), "precise {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn read(name: &str) -> Result<String> {
    let path = docs().join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Fails if `docs/name` differs from `wanted`, or rewrites it.
fn same(name: &str, wanted: &str) -> Result<()> {
    if updating() {
        return Ok(fs::write(docs().join(name), wanted)?);
    }
    ensure!(read(name).ok().as_deref() == Some(wanted), "docs/{name} is out of date: run `{UPDATE}`");
    Ok(())
}

/// Compares or rewrites the part of a page between `<!-- what: generated -->` and `<!-- what: end
/// -->`.
pub fn same_part(name: &str, what: &str, wanted: &str) -> Result<()> {
    let page = read(name)?;
    let (begin, end) = (format!("<!-- {what}: generated -->\n"), format!("<!-- {what}: end -->"));
    let (before, rest) = page.split_once(&begin).with_context(|| format!("docs/{name} has no {begin}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("docs/{name} has no {end}"))?;
    same(name, &format!("{before}{begin}{wanted}{end}{after}"))
}

/// Returns the names and texts of the manual pages that the binary generates.
fn manual() -> Result<BTreeMap<String, String>> {
    let folder = tempfile::tempdir()?;
    precise(&["man", "-o", &folder.path().display().to_string()])?;
    fs::read_dir(folder.path())?
        .map(|entry| {
            let entry = entry?;
            Ok((entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path())?))
        })
        .collect()
}

#[test]
fn manual_pages_are_what_the_binary_makes() -> Result<()> {
    let pages = manual()?;
    for (name, text) in &pages {
        same(&format!("man/{name}"), text)?;
    }
    for entry in fs::read_dir(docs().join("man"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        ensure!(pages.contains_key(&name), "docs/man/{name} is of a command that is gone: remove it");
    }
    Ok(())
}

#[test]
fn completions_are_what_the_binary_makes() -> Result<()> {
    for shell in SHELLS {
        same(&format!("completions/precise.{shell}"), &precise(&["completions", shell])?)?;
    }
    Ok(())
}

#[test]
fn every_exit_code_is_explained() -> Result<()> {
    let page = read("exit-codes.md")?;
    let json: serde_json::Value = serde_json::from_str(&precise(&["exit-codes", "--json"])?)?;
    let codes = json["codes"].as_array().context("no codes")?;
    ensure!(!codes.is_empty(), "no codes");
    for code in codes {
        let row = format!("| {} | {} |", code["code"], code["meaning"].as_str().context("no meaning")?);
        ensure!(page.contains(&row), "docs/exit-codes.md has no row that begins with `{row}`");
    }
    Ok(())
}

/// Returns a table of columns, with the types of DuckDB.
fn column_table(columns: &[FlatColumn]) -> String {
    let mut table = String::from("| column | type | null | what it says |\n| --- | --- | --- | --- |\n");
    for FlatColumn { name, kind, nullable, doc } in columns {
        let kind = match kind {
            ColumnType::Bool => "BOOLEAN",
            ColumnType::U8 => "UTINYINT",
            ColumnType::U16 => "USMALLINT",
            ColumnType::U32 => "UINTEGER",
            ColumnType::U64 => "UBIGINT",
            ColumnType::I64 => "BIGINT",
            ColumnType::Text => "VARCHAR",
            ColumnType::Time => "TIMESTAMP WITH TIME ZONE",
        };
        table += &format!("| `{name}` | {kind} | {} | {doc} |\n", if *nullable { "yes" } else { "" });
    }
    table
}

#[test]
fn every_column_of_a_capture_is_explained() -> Result<()> {
    same_part("capture-format.md", "columns", &column_table(&Column::ALL.map(Column::flat)))
}

#[test]
fn every_column_of_a_fleet_is_explained() -> Result<()> {
    let mut tables: Vec<(Vec<&str>, &[FlatColumn])> = Vec::new();
    for table in FleetTable::ALL {
        let names = |columns: &[FlatColumn]| columns.iter().map(|column| column.name).collect::<Vec<_>>();
        match tables.iter_mut().find(|(_, columns)| names(columns) == names(table.columns())) {
            Some((same, _)) => same.push(table.name()),
            None => tables.push((vec![table.name()], table.columns())),
        }
    }
    let text = |(names, columns): &(Vec<&str>, &[FlatColumn])| {
        format!("`v1/{}`:\n\n{}", names.join("` and `v1/"), column_table(columns))
    };
    let text = tables.iter().map(text).collect::<Vec<_>>().join("\n");
    same_part("fleet.md", "columns", &text)
}

#[test]
fn every_counter_of_the_ledger_is_explained() -> Result<()> {
    let mut table = String::from("| counter | unit | fate | meaning |\n| --- | --- | --- | --- |\n");
    for counter in Counter::ALL {
        let CounterInfo { name, unit, fate, meaning, .. } = counter.info();
        let fate = match fate.part_of() {
            Some(whole) => format!("part of `{}`", whole.name()),
            None => fate.words().to_owned(),
        };
        table += &format!("| `{name}` | {} | {fate} | {meaning} |\n", unit.name());
    }
    same_part("capture-format.md", "counters", &table)
}

#[test]
fn every_term_of_a_filter_is_explained() -> Result<()> {
    let code = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut table = String::from("| term | also written | values |\n| --- | --- | --- |\n");
    for term in Term::ALL {
        let values = match term.kind() {
            TermKind::Number { .. } => "a number".to_owned(),
            TermKind::Text => "a text".to_owned(),
            TermKind::Class(values) => {
                // Alternative names are in parentheses after the name.
                let value = |names: &[&str]| match names {
                    [name, more @ ..] if !more.is_empty() => format!("{} ({})", code(&[name]), code(more)),
                    names => code(names),
                };
                values.iter().map(|class| value(class.names)).collect::<Vec<_>>().join(", ")
            }
        };
        table += &format!("| `{}` | {} | {values} |\n", term.name(), code(&term.names()[1..]));
    }
    same_part("filters.md", "terms", &table)
}

#[test]
fn every_metric_is_explained() -> Result<()> {
    same_part("serve.md", "metrics", &PageMetric::table())
}

/// The example of settings is on the page, and `precise serve` finds nothing wrong with it. The
/// file with all settings is what the binary prints.
#[test]
fn settings_of_serve_are_those_of_its_flags() -> Result<()> {
    same("examples/serve-all.toml", &precise(&["serve", "--print-config"])?)?;
    same_part("serve.md", "example", &format!("```toml\n{}```\n", read("examples/serve.toml")?))?;
    let file = docs().join("examples/serve.toml").display().to_string();
    let said = precise(&["serve", "--check-config", "--config", &file])?;
    ensure!(said.ends_with("no problem was found\n"), "{said}");
    Ok(())
}

#[test]
fn every_field_of_a_streamed_sample_is_explained() -> Result<()> {
    let mut table = String::from("| field | also written | what it says |\n| --- | --- | --- |\n");
    for field in StreamField::all() {
        let aliases: Vec<String> = field.aliases().iter().map(|name| format!("`{name}`")).collect();
        table += &format!("| `{}` | {} | {} |\n", field.name(), aliases.join(", "), field.doc());
    }
    same_part("script.md", "fields", &table)
}

/// Every command has a page of its own, or docs/README.md states that it needs none.
#[test]
fn every_command_has_a_page() -> Result<()> {
    let index = read("README.md")?;
    let none = index
        .lines()
        .find_map(|line| line.strip_prefix("Commands without a page: "))
        .context("docs/README.md does not say which commands have no page")?;
    let mut commands = 0;
    let pages = manual()?;
    for page in pages.keys() {
        let Some(command) = page.strip_prefix("precise-").and_then(|page| page.strip_suffix(".1")) else {
            continue;
        };
        // `fleet-compact` is a command of `fleet`, whose page has both; `exit-codes` is not.
        let (parent, _) = command.split_once('-').unwrap_or((command, ""));
        let command = if pages.contains_key(&format!("precise-{parent}.1")) { parent } else { command };
        commands += 1;
        let exempt = none.contains(&format!("`{command}`"));
        let own = format!("{command}.md");
        ensure!(exempt || docs().join(&own).exists(), "`precise {command}` needs docs/{own}");
        ensure!(exempt || index.contains(&format!("({own})")), "docs/README.md does not link to {own}");
    }
    ensure!(commands > 0, "no command has a manual page");
    Ok(())
}

/// Every view of the registry has a manual page with its examples, a page, and a schema. A view
/// that is shown by another command is documented under that command.
#[test]
fn every_view_is_documented() -> Result<()> {
    let manual = manual()?;
    for view in VIEWS {
        let about = view.description();
        let command = match about.command {
            Shown::Own => about.name,
            Shown::Of(way) => way.split_once(' ').context("a command and a flag")?.0,
        };
        let page = manual
            .get(&format!("precise-{command}.1"))
            .with_context(|| format!("`precise {command}` has no manual page"))?;
        for example in about.examples.iter().filter(|_| command == about.name) {
            let line = example.command.replace('-', "\\-").replace('\'', "\\*(Aq");
            ensure!(page.contains(&line), "the manual page of {command} lacks the example `{line}`");
        }
        ensure!(docs().join(format!("{command}.md")).exists(), "`precise {command}` needs docs/{command}.md");
        let kind = view.document();
        let schema = format!("schemas/{}-{}.json", kind.name, kind.version);
        ensure!(docs().join(&schema).exists(), "docs/{schema} is missing");
    }
    Ok(())
}
