//! Tests of the command line as users and scripts use it.

use anyhow::{Context as _, Result, ensure};
use precise_tests::{
    program,
    run::{precise, record_faults, subcommands},
};

#[test]
fn every_subcommand_explains_itself() -> Result<()> {
    for name in subcommands()? {
        for flag in ["--help", "-h"] {
            let ended = precise([&name, flag])?.expect(0)?;
            ensure!(ended.stdout.contains(&format!("Usage: precise {name}")), "{ended:?}");
            ensure!(ended.stderr.is_empty(), "{ended:?}");
        }
        refused(&[&name, "--no-such-flag"])?;
    }
    Ok(())
}

fn refused(arguments: &[&str]) -> Result<()> {
    let ended = precise(arguments)?.expect(2)?;
    ensure!(ended.stderr.contains("--help"), "{ended:?}");
    Ok(())
}

#[test]
fn what_says_json_is_json() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = program::faults(folder.path(), "faulting")?.display().to_string();
    let recorded = record_faults(folder.path(), &["--json"], &[&program, "1009"])?;
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text);
    parse(&recorded.ended.stdout).context("record --json")?;
    let file = folder.path().join("faults.parquet").display().to_string();
    for arguments in [
        &["report", "-i", &file][..],
        &["report", "-i", &file, "--by", "address,cpu,cgroup,pid"],
        &["heatmap", "-i", &file],
        &["list"],
        &["exit-codes"],
    ] {
        let ended = precise([arguments, &["--json"]].concat())?.expect(0)?;
        let value = parse(&ended.stdout).with_context(|| format!("{arguments:?}: {}", ended.stdout))?;
        ensure!(value.is_object(), "{arguments:?}: {value}");
        ensure!(ended.stderr.is_empty(), "{ended:?}");
    }
    // By default the report has the tables of the summary, each an answer of its own.
    let json = precise(["exit-codes", "--json"])?.expect(0)?.stdout;
    let codes: Vec<u64> = parse(&json)?["codes"]
        .as_array()
        .context("a list")?
        .iter()
        .filter_map(|code| code["code"].as_u64())
        .collect();
    ensure!(codes == [0, 1, 2, 65, 66, 67, 68, 69, 70, 71, 72], "a code was changed: {codes:?}");
    Ok(())
}

#[test]
fn separated_values_have_as_many_columns_in_each_line() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = program::faults(folder.path(), "faulting")?.display().to_string();
    record_faults(folder.path(), &[], &[&program, "1009"])?;
    let file = folder.path().join("faults.parquet").display().to_string();
    let ended = precise(["report", "-i", &file, "--by", "pid,ip,cpu", "-x", ";"])?.expect(0)?;
    let columns: Vec<usize> = ended.stdout.lines().map(|line| line.split(';').count()).collect();
    ensure!(columns.len() > 5 && columns.iter().all(|n| *n == columns[0] && *n > 3), "{}", ended.stdout);
    Ok(())
}

#[test]
fn manual_pages_and_completions() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let pages = folder.path().join("man");
    precise(["man", "-o", &pages.display().to_string()])?.expect(0)?;
    let commands = subcommands()?;
    for page in commands.iter().map(|name| format!("precise-{name}.1")).chain(["precise.1".into()]) {
        let text = std::fs::read_to_string(pages.join(&page)).context(page.clone())?;
        ensure!(text.contains(".TH") && text.contains(".SH") && text.len() > 300, "{page}: {text}");
    }
    // A command of its own commands has a page for each of them: precise-fleet-report.1.
    for entry in std::fs::read_dir(&pages)? {
        let page = entry?.file_name().to_string_lossy().into_owned();
        let known = |name: &String| {
            let rest = page.strip_prefix(&format!("precise-{name}"));
            rest.is_some_and(|rest| rest == ".1" || rest.starts_with('-'))
        };
        ensure!(page == "precise.1" || commands.iter().any(known), "{page} is a page too many");
    }
    ensure!(precise(["man"])?.expect(0)?.stdout.contains(".TH precise"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = precise(["completions", shell])?.expect(0)?.stdout;
        for name in &commands {
            ensure!(script.contains(name.as_str()), "{shell} does not know {name}");
        }
    }
    Ok(())
}

#[test]
fn no_line_is_longer_than_80_columns() -> Result<()> {
    let folder = tempfile::tempdir()?;
    // Names longer than a line, with characters of more than one byte.
    let name = format!("touch_{}", "x".repeat(150));
    let source = program::FAULTS.replace("touch_pages", &name);
    let deep = folder.path().join("größe".repeat(10));
    std::fs::create_dir(&deep)?;
    let program = program::c(&deep, "faulting", &source)?.display().to_string();
    let recorded =
        record_faults(folder.path(), &["--table-cells", "16", "--width", "80"], &[&program, "1009"])?;
    let narrow = |what: &str, text: &str| -> Result<()> {
        ensure!(text.lines().count() > 10, "{what}: {text}");
        for line in text.lines() {
            ensure!(line.chars().count() <= 80, "{what}: {} columns: {line}", line.chars().count());
            ensure!(line.trim_end() == line, "{what}: space at the end of {line:?}");
        }
        Ok(())
    };
    narrow("record", &recorded.ended.stdout)?;
    let file = folder.path().join("faults.parquet").display().to_string();
    narrow("report", &precise(["report", "-i", &file, "--width", "80"])?.expect(0)?.stdout)?;
    for by in
        ["function", "function,line,module,cgroup,process,pid,cpu", "address,region,variable", "kernel,epoch"]
    {
        narrow(by, &precise(["report", "-i", &file, "--by", by, "--width", "80"])?.expect(0)?.stdout)?;
    }
    for (what, arguments) in
        [("heatmap", &["heatmap", "-i", &file][..]), ("list", &["list"]), ("exit codes", &["exit-codes"])]
    {
        let text = precise(arguments)?.expect(0)?.stdout;
        for line in text.lines() {
            ensure!(line.chars().count() <= 80, "{what}: {} columns: {line}", line.chars().count());
        }
    }
    // Without a width, a pipe has the whole names.
    let whole = record_faults(folder.path(), &[], &[&program, "1009"])?.ended.stdout;
    ensure!(whole.contains(&name), "{whole}");
    Ok(())
}
