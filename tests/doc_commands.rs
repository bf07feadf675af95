//! Runs the commands of README.md and docs: each must be one that the binary takes, and what a page
//! shows of a command on a recording of this repository must be what the command prints.
//!
//! With `PRECISE_UPDATE_DOCUMENTS=1` the outputs are rewritten instead of compared.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, ensure};
use precise_tests::fleet_place;
use precise_tests::run::binary;
use tempfile::TempDir;

/// The start of the information of a fence whose output is compared.
const RUN: &str = "<!-- run: ";
/// Where the recordings are.
const RECORDINGS: &str = "tests/recordings";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns README.md and the pages of docs, but for the journal, which is about the past, and for
/// generated ones.
fn pages() -> Result<Vec<PathBuf>> {
    let mut found = vec![root().join("README.md")];
    for folder in ["docs", "docs/runbooks"] {
        for entry in fs::read_dir(root().join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the commands of a page's fences, as arguments of `precise`, with their lines.
fn commands(page: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut fenced = false;
    // In a fence with a prompt, the other lines are output.
    let mut prompts = false;
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            let rest = page.lines().skip(at + 1);
            prompts = rest.take_while(|line| !line.contains("```")).any(|line| line.starts_with("$ "));
            continue;
        }
        let mut line = line.trim().to_owned();
        let prompt = line.starts_with("$ ");
        for prefix in ["$ ", "sudo ", "PRECISE_PAGER= "] {
            line = line.strip_prefix(prefix).unwrap_or(&line).to_owned();
        }
        if !fenced || prompts != prompt || !line.starts_with("precise ") {
            continue;
        }
        while line.ends_with('\\') {
            line.pop();
            let Some((_, next)) = lines.next() else { break };
            line = format!("{} {}", line.trim_end(), next.trim());
        }
        found.extend(arguments(&line, prompt).map(|arguments| (at + 1, arguments)));
    }
    found
}

/// Returns the arguments of a command line; `None` if it has a gap for the reader to fill.
fn arguments(line: &str, prompt: bool) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut characters = line.chars().peekable();
    let mut quoted = false;
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => word.push(character),
            (None, '\'' | '"') => (quote, quoted) = (Some(character), true),
            (None, ' ') => {
                if !word.is_empty() || quoted {
                    words.push(std::mem::take(&mut word));
                }
                quoted = false;
                // Two spaces separate a command from what is said about it.
                if characters.peek() == Some(&' ') && !prompt {
                    break;
                }
            }
            (None, '#' | '|' | '>' | '&' | ';' | ')') if word.is_empty() => break,
            (None, '|' | '&' | ';') => break,
            (None, '2') if word.is_empty() && characters.peek() == Some(&'>') => break,
            (None, '…' | '[' | '{' | '<') => return None,
            (None, '\\') => word.extend(characters.next()),
            _ => word.push(character),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words.remove(0);
    (!words.is_empty() && words[0] != "…").then_some(words)
}

/// Every flag that a page names exists: a wrong flag is an error even before `--help`.
#[test]
fn every_command_of_the_documents_is_one_that_the_binary_takes() -> Result<()> {
    let binary = binary()?;
    let mut wrong = Vec::new();
    let mut checked = 0;
    for path in pages()? {
        let page = fs::read_to_string(&path)?;
        for (line, mut arguments) in commands(&page) {
            if let Some(end) = arguments.iter().position(|argument| argument == "--") {
                arguments.truncate(end);
            }
            arguments.push("--help".to_owned());
            let output = Command::new(&binary).args(&arguments).output()?;
            checked += 1;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().next().unwrap_or_default().to_owned();
                wrong.push(format!("{}:{line}: {arguments:?}: {said}", path.display()));
            }
        }
    }
    ensure!(checked > 100, "only {checked} commands were found");
    ensure!(wrong.is_empty(), "{} of {checked} commands are wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// A fence after `<!-- run: a | b -->` shows what these commands print, the last one's output. They
/// run in a folder of their own, which has the recordings of this repository under the first two
/// words of their names: `amd-epyc9254.data`; and the tables of a small fleet as `prod`.
#[test]
fn outputs_in_the_documents_are_what_the_commands_print() -> Result<()> {
    let updating = std::env::var_os("PRECISE_UPDATE_DOCUMENTS").is_some();
    let (mut compared, made) = (0, OnceCell::new());
    for path in pages()? {
        let page = fs::read_to_string(&path)?;
        let mut now = String::new();
        let mut rest = page.as_str();
        while let Some((before, after)) = rest.split_once(RUN) {
            let context = || format!("{}: a fence that is run has no end", path.display());
            let (script, after) = after.split_once(" -->\n").with_context(context)?;
            let after = after.strip_prefix("\n").unwrap_or(after);
            let body = after.strip_prefix("```\n").with_context(context)?;
            let (_, behind) = body.split_once("\n```\n").with_context(context)?;
            now += &format!("{before}{RUN}{script} -->\n\n```\n{}\n```\n", shown(script, &made)?);
            rest = behind;
            compared += 1;
        }
        now += rest;
        if updating {
            fs::write(&path, &now)?;
        }
        ensure!(updating || now == page, "{} shows old output: PRECISE_UPDATE_DOCUMENTS=1", path.display());
    }
    ensure!(compared > 0, "no fence is compared");
    Ok(())
}

/// Returns the folder of a small fleet, which is made once.
fn fleet(made: &OnceCell<TempDir>) -> Result<&Path> {
    if made.get().is_none() {
        let folder = tempfile::tempdir()?;
        fleet_place::write_tables(folder.path())?;
        made.set(folder).map_err(|_| anyhow!("a fleet was made twice"))?;
    }
    Ok(made.get().context("a fleet")?.path())
}

/// Returns the last command of a script with a prompt, and what it prints.
fn shown(script: &str, made: &OnceCell<TempDir>) -> Result<String> {
    let folder = tempfile::tempdir()?;
    // A recording without a clock is as old as its file.
    let written = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_750_000_000);
    for entry in fs::read_dir(root().join(RECORDINGS))? {
        let recording = entry?.path().join("perf.data");
        let name = recording.ancestors().nth(1).and_then(Path::file_name).context("a folder")?;
        let name = name.to_string_lossy();
        let short: Vec<&str> = name.split('-').take(2).collect();
        if recording.exists() {
            let copy = folder.path().join(short.join("-") + ".data");
            fs::copy(&recording, &copy)?;
            fs::File::options().write(true).open(&copy)?.set_modified(written)?;
        }
    }
    if script.contains(" prod ") {
        std::os::unix::fs::symlink(fleet(made)?, folder.path().join("prod"))?;
    }
    let mut text = String::new();
    // A long script is on several lines of the page.
    let script = script.replace('\n', " ");
    let commands: Vec<&str> = script.split(" | ").collect();
    for (at, command) in commands.iter().enumerate() {
        let arguments = arguments(command, true).with_context(|| format!("no command: {command}"))?;
        let output = Command::new(binary()?)
            .args(&arguments)
            .env("COLUMNS", "80")
            .current_dir(folder.path())
            .output()
            .with_context(|| command.to_string())?;
        ensure!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        if at + 1 == commands.len() {
            let printed = String::from_utf8(output.stdout)?;
            text = format!("$ {command}\n{}", printed.trim_end());
        }
    }
    Ok(text)
}

#[test]
fn command_lines_are_split_as_a_shell_does() {
    let split = |line: &str| arguments(line, false).unwrap_or_default().join("|");
    assert_eq!(split("precise list  # events"), "list");
    assert_eq!(split("precise record -a   Everything"), "record|-a");
    assert_eq!(split("precise record --filter 'a == 1 && b' -a"), "record|--filter|a == 1 && b|-a");
    assert_eq!(split("precise script -a | jq ."), "script|-a");
    assert_eq!(split("precise record …"), "");
}
