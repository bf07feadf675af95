//! Reads exports with other tools: Go's pprof, inferno's reader of folded stacks.

use precise::capture::CaptureFile as _;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use precise::model::testing::CaptureBuilder;
use precise_tests::run::precise;

const RAM: u64 = 0x1a_6820_1042;

/// Writes a capture of 100 samples: 40 of `lookup`, which waits, called by `serve`; 60 of `hash`.
fn capture(folder: &std::path::Path) -> Result<String> {
    let mut builder = CaptureBuilder::new();
    builder.meta().events[0].name = "loads".into();
    for (function, callers, cgroup, samples, latency) in [
        ("lookup", &["serve", "main"][..], "/web", 30, 300),
        ("lookup", &["serve", "main"][..], "/batch", 10, 500),
        ("hash", &["main"][..], "/web", 60, 5),
    ] {
        let ip = 0x1000 + 16 * u64::from(function == "hash");
        let cell = builder.cell().samples(samples).latency(latency).process(1, "app").cgroup(samples, cgroup);
        cell.code(ip, "/bin/app", function, "/src/app.c", 7).callers(callers).data_src(RAM);
    }
    let file = folder.join("loads.parquet");
    builder.build().write(&file)?;
    Ok(file.display().to_string())
}

/// Runs `go tool pprof` on a file, without network access and without symbol lookup.
fn pprof(folder: &std::path::Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("go")
        .args(["tool", "pprof", "-symbolize=none"])
        .args(arguments)
        .env("HOME", folder)
        .env("PPROF_TMPDIR", folder)
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-mod=mod")
        .env("GOPROXY", "off")
        .output()
        .context("go cannot be started; `cargo xtask setup` installs golang-go")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "pprof: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn go_tool_pprof_reads_the_profile() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let capture = capture(folder.path())?;
    let profile = folder.path().join("precise.pb.gz").display().to_string();
    precise(["export", "-i", &capture, "--format", "pprof", "-o", &profile])?.expect(0)?;
    let line = |text: &str, name: &str| -> Result<Vec<String>> {
        let line = text.lines().find(|line| line.ends_with(&format!(" {name}")));
        let line = line.with_context(|| format!("no {name}: {text}"))?;
        Ok(line.split_whitespace().map(str::to_owned).collect())
    };
    // flat flat% sum% cum cum% name
    let top = pprof(folder.path(), &["-top", &profile])?;
    ensure!(top.contains("Type: samples"), "{top}");
    ensure!(line(&top, "hash")?[..2] == ["60", "60.00%"], "{top}");
    ensure!(line(&top, "lookup")?[0] == "40" && line(&top, "main")?[3] == "100", "{top}");
    // 30 × 300 + 10 × 500 cycles, compared with 60 × 5.
    let waits = pprof(folder.path(), &["-top", "-sample_index=latency", &profile])?;
    ensure!(line(&waits, "lookup")?[0] == "14000cycles" || line(&waits, "lookup")?[0] == "14000", "{waits}");
    let periods = pprof(folder.path(), &["-top", "-sample_index=cycles", &profile])?;
    ensure!(line(&periods, "hash")?[0].starts_with("60000"), "{periods}");
    let batch = pprof(folder.path(), &["-top", "-tagfocus=cgroup=/batch", &profile])?;
    ensure!(line(&batch, "lookup")?[0] == "10" && !batch.contains("hash"), "{batch}");
    let tags = pprof(folder.path(), &["-tags", &profile])?;
    ensure!(tags.contains("RAM hit") && tags.contains("/web") && tags.contains("app"), "{tags}");
    let lines = pprof(folder.path(), &["-top", "-lines", &profile])?;
    ensure!(lines.contains("lookup /src/app.c:7"), "{lines}");
    let comments = pprof(folder.path(), &["-comments", &profile])?;
    ensure!(comments.contains("Verdict: precise (level 2 granted)"), "{comments}");
    Ok(())
}

#[test]
fn folded_stacks_and_tables_are_printed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let capture = capture(folder.path())?;
    let export = |more: &[&str]| -> Result<String> {
        Ok(precise([&["export", "-i", &capture, "--format"], more].concat())?.expect(0)?.stdout)
    };
    ensure!(export(&["folded"])? == "app;main;hash 60\napp;main;serve;lookup 40\n");
    ensure!(export(&["folded", "--by", "latency"])? == "app;main;hash 300\napp;main;serve;lookup 14000\n");
    let csv = export(&["csv"])?;
    ensure!(csv.lines().count() == 1 + 3 && csv.starts_with("epoch,"), "{csv}");
    let json = export(&["json"])?;
    let rows: Vec<serde_json::Value> = json.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let samples: u64 = rows.iter().filter_map(|row| row["count"].as_u64()).sum();
    ensure!(rows.len() == 3 && samples == 100, "{json}");
    let said = precise(["export", "-i", &capture, "--format", "folded", "-e", "stores"])?.expect(2)?.stderr;
    ensure!(said.contains("its events: loads"), "{said}");
    Ok(())
}
