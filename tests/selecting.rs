//! Asks a capture again: the flags that narrow it, in every command that reads one.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::model::testing::CaptureBuilder;
use precise::views::registry::VIEWS;
use precise::views::view::{Captures, Command};
use precise_tests::run::{Ended, precise};

/// A capture of two services in three epochs of one second: 300 samples, of which 180 are of nginx.
fn capture(folder: &Path, cgroups: bool) -> Result<String> {
    let mut made = CaptureBuilder::new();
    if !cgroups {
        made.meta().dimensions.retain(|dimension| dimension.as_str() != "cgroup");
    }
    for epoch in 0..3 {
        for (pid, comm, path, samples) in
            [(1, "nginx", "/system/nginx.service", 60), (2, "backup", "/batch/job", 40)]
        {
            let cell = made.cell().epoch(epoch).samples(samples).latency(100).process(pid, comm);
            let cell =
                cell.code(0x1000 + u64::from(pid), "/bin/app", comm, "app.c", 7).data(0x40, "[heap]", "");
            if cgroups {
                cell.cgroup(u64::from(pid), path);
            }
        }
    }
    let path = folder.join("run.parquet");
    made.build().write(&path)?;
    Ok(path.display().to_string())
}

fn run(arguments: &[&str]) -> Result<Ended> {
    precise(arguments)
}

#[test]
fn every_command_reads_a_part_of_a_capture() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = capture(folder.path(), true)?;
    for view in VIEWS {
        let about = view.description();
        if about.command != Command::Own || about.captures != Captures::One {
            continue;
        }
        let ended = run(&[about.name, "-i", &file, "--comm", "nginx", "--json"])?;
        if ended.code == Some(0) {
            let document: serde_json::Value = serde_json::from_str(&ended.stdout)?;
            ensure!(document["selection"]["samples"] == 180, "{}: {}", about.name, document["selection"]);
            ensure!(document["selection"]["of_samples"] == 300, "{}", about.name);
        } else {
            // What it says is about the view's own needs.
            ensure!(!ended.stderr.contains("unexpected argument"), "{}: {}", about.name, ended.stderr);
        }
    }
    Ok(())
}

#[test]
fn the_head_says_what_is_selected() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = capture(folder.path(), true)?;
    let ended = run(&["report", &file, "--comm", "nginx", "--time", "1s..2s"])?.expect(0)?;
    ensure!(
        ended.stdout.starts_with("Only comm == \"nginx\", 1 s to 2 s: 60 of 300 samples."),
        "{}",
        ended.stdout
    );
    let csv = run(&["report", &file, "--by", "process", "-x,", "-p", "2"])?.expect(0)?;
    ensure!(csv.stderr.contains("120 of 300 samples"), "{}", csv.stderr);
    ensure!(csv.stdout.contains("backup") && !csv.stdout.contains("nginx"), "{}", csv.stdout);
    let cgroup = run(&["latency", &file, "-G", "/batch", "--json"])?.expect(0)?;
    ensure!(cgroup.stdout.contains("\"samples\": 120"), "{}", cgroup.stdout);
    let page = folder.path().join("page.html").display().to_string();
    run(&["report", &file, "--filter", "comm != nginx", "--html", &page])?.expect(0)?;
    let page = std::fs::read_to_string(&page)?;
    ensure!(page.contains("120 of 300 samples"), "the page does not say what it is about");
    let folded = run(&["flamegraph", &file, "--comm", "backup", "--folded"])?.expect(0)?;
    ensure!(!folded.stdout.contains("nginx") && folded.stderr.contains("120 of 300"), "{folded:?}");
    let rows = run(&["export", &file, "--comm", "backup", "--format", "csv"])?.expect(0)?;
    ensure!(!rows.stdout.contains("nginx"), "{}", rows.stdout);
    Ok(())
}

#[test]
fn two_captures_are_narrowed_alike() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = capture(folder.path(), true)?;
    let diff = run(&["diff", &file, &file, "--comm", "nginx", "--json"])?.expect(0)?;
    let document: serde_json::Value = serde_json::from_str(&diff.stdout)?;
    ensure!(document["selection"]["samples"] == 180, "{}", document["selection"]);
    Ok(())
}

#[test]
fn a_capture_is_an_argument_or_an_option_but_not_both() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = capture(folder.path(), true)?;
    for command in ["report", "latency", "explain", "heatmap"] {
        let (argument, option) =
            (run(&[command, &file])?.expect(0)?, run(&[command, "-i", &file])?.expect(0)?);
        ensure!(argument.stdout == option.stdout, "{command}");
        let both = run(&[command, &file, "-i", &file])?.expect(2)?;
        ensure!(both.stderr.contains("cannot be used with"), "{}", both.stderr);
    }
    // Its arguments are functions.
    run(&["annotate", "-i", &file, "nginx", "--comm", "nginx"])?;
    Ok(())
}

#[test]
fn what_cannot_hold_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = capture(folder.path(), false)?;
    for (arguments, code, says) in [
        (&["report", "-G", "/batch"][..], 2, "this capture did not record"),
        (&["report", "--filter", "latency >= 100 &&"], 2, ""),
        (&["report", "--filter", "uid == 0"], 2, "captures do not keep"),
        (&["report", "--comm", "nobody"], 69, "none of the 300 samples"),
        (&["report", "--comm", "a-name-of-17-byte"], 2, "--comm"),
        (&["report", "--time", "9s..12s"], 2, "no epoch"),
        (&["report", "--time", "5s"], 2, "not a range of time"),
        (&["heatmap", "--panels", "cgroup"], 2, "did not record it"),
    ] {
        let (command, rest) = arguments.split_first().context("a command")?;
        let ended = run(&[&[*command, "-i", &file], rest].concat())?.expect(code)?;
        ensure!(ended.stderr.contains(says), "{arguments:?}: {}", ended.stderr);
    }
    Ok(())
}
