//! Hostile names, which the profiled programs choose: a process, a file, a function, a source and a
//! cgroup whose names are control sequences for a terminal, formulas for a spreadsheet and markup
//! for a browser, in every output that prints them.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use precise_tests::{
    cgroup::Cgroup,
    program,
    run::{FAULTS, Live, command, precise, undisturbed},
};

const PAGES: u64 = 1009;
/// Clears a terminal, reverses text, ends a line, is markup and a formula. The name of a process
/// has at most 15 bytes.
const PROCESS: &str = "=\u{1b}[2J\u{202e}<b>\n";
const CGROUP: &str = "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}&<script>";
/// A symbol of an ELF file may have any name. This name replaces the assembler's name in the string
/// table.
const FUNCTION: &str = "@x\u{1b}[2J\u{202e}<i>;\"&";

/// Returns whether a character must not be in any output.
fn harmful(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{80}'..='\u{9f}')
}

fn check(what: &str, text: &str) -> Result<()> {
    let bad = text.chars().find(|c| harmful(*c));
    ensure!(bad.is_none(), "{what} prints {bad:?}: {text:?}");
    Ok(())
}

/// Builds a program that faults in a function with that name.
fn build(folder: &Path) -> Result<std::path::PathBuf> {
    let placeholder = "x".repeat(FUNCTION.len());
    let source = program::FAULTS.replace("touch_pages", &placeholder);
    let built = program::c(folder, "plain", &source)?;
    let mut bytes = fs::read(&built)?;
    let from = placeholder.as_bytes();
    let places: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    ensure!(!places.is_empty(), "the symbol is not in the file");
    for at in places {
        bytes[at..at + from.len()].copy_from_slice(FUNCTION.as_bytes());
    }
    let hostile = folder.join(PROCESS);
    fs::write(&hostile, bytes)?;
    fs::set_permissions(&hostile, fs::metadata(&built)?.permissions())?;
    Ok(hostile)
}

#[test]
fn nothing_that_is_printed_obeys_a_name() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = build(folder.path())?;
        let cgroup = Cgroup::new(CGROUP)?;
        let options = ["-a", "--duration", "60s", "--filter", "addr in 0x500000000000..0x500100000000"];
        let live = Live::start(folder.path(), &[FAULTS, &options].concat())?;
        cgroup.run(&program, [PAGES.to_string()])?;
        let recorded = live.interrupt()?;
        // The capture has the names unchanged.
        let row = recorded.rows().of(FUNCTION);
        ensure!(row.count() == PAGES, "{recorded:#?}");
        ensure!(row.all(|row| row.cgroup.clone()).iter().all(|path| path.ends_with(CGROUP)));
        check("record", &recorded.ended.stdout)?;
        check("record's standard error", &recorded.ended.stderr)?;

        let file = folder.path().join("live.parquet");
        let file = file.to_str().context("a path")?;
        let by = ["--by", "process,function,module,line,cgroup,region"];
        for arguments in [
            &[&["report", "-i", file][..], &by].concat()[..],
            &[&["report", "-i", file, "-x,"][..], &by].concat(),
            &[&["report", "-i", file, "--json"][..], &by].concat(),
            &["diff", file, file],
            &["diff", file, file, "--json"],
            &["annotate", "-i", file],
            &["heatmap", "-i", file, "--panels", "cgroup"],
            &["heatmap", "-i", file, "--panels", "process", "--json"],
        ] {
            let ended = precise(arguments)?;
            ensure!(!ended.stderr.contains("panicked"), "{ended:#?}");
            let what = arguments.join(" ");
            check(&what, &ended.stdout)?;
            check(&what, &ended.stderr)?;
        }
        // JSON loses nothing; CSV has no formula, and each record is one line.
        let json =
            precise(["report", "-i", file, "--by", "process,function,cgroup", "--json"])?.expect(0)?.stdout;
        let json: serde_json::Value = serde_json::from_str(&json)?;
        let values = &json["events"][0]["groups"][0]["values"];
        ensure!(values[1]["text"] == FUNCTION, "{values}");
        ensure!(values[2]["text"].as_str().is_some_and(|path| path.ends_with(CGROUP)), "{values}");
        let csv = precise(["report", "-i", file, "--by", "function", "-x,"])?.expect(0)?.stdout;
        ensure!(csv.lines().any(|line| line.contains("'@x")) && !csv.contains(",@x"), "{csv}");

        // Pictures are XML.
        for arguments in [
            &["heatmap", "-i", file, "--panels", "cgroup", "-o"][..],
            &["heatmap", "-i", file, "--panels", "process", "-o"],
            &["heatmap", "-i", file, "-y", "function", "-o"],
        ] {
            let picture = folder.path().join("x.svg");
            let path = picture.to_str().context("a path")?;
            precise([arguments, &[path]].concat())?.expect(0)?;
            let svg = fs::read_to_string(&picture)?;
            check(&arguments.join(" "), &svg)?;
            ensure!(!svg.contains("<script>") && !svg.contains("<b>") && !svg.contains("<i>"), "{svg}");
        }
        Ok(())
    })
}

#[test]
fn call_chains_and_streams_obey_none_either() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = build(folder.path())?;
    let program = program.to_str().context("a path")?;
    let pages = PAGES.to_string();
    let file = folder.path().join("g.parquet");
    let path = file.to_str().context("a path")?;
    let recorded =
        precise(["record", "-g", "-e", "page-faults", "-c", "1", "-o", path, "--", program, &pages])?
            .expect(0)?;
    check("record -g", &recorded.stdout)?;
    let svg = folder.path().join("flame.svg");
    precise(["flamegraph", "-i", path, "-o", svg.to_str().context("a path")?])?.expect(0)?;
    let text = fs::read_to_string(&svg)?;
    check("flamegraph", &text)?;
    ensure!(!text.contains("<i>"), "markup of a name");
    for more in [&["--json"][..], &[]] {
        let arguments =
            [&["script", "-e", "page-faults", "-c", "1"][..], more, &["--", program, &pages]].concat();
        let ended = precise_tests::run::Ended::from(command(arguments)?.output()?);
        check("script", &ended.stdout)?;
        check("script", &ended.stderr)?;
        ensure!(ended.stdout.lines().count() as u64 >= PAGES, "{}", ended.stderr);
    }
    Ok(())
}
