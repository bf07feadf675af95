//! What the pages show of runs: a run never prints the same numbers again, but the same words.
//!
//! A fence after `<!-- live: PROGRAM -->` is run as a whole: its lines with a prompt are commands
//! of a shell, in a folder that has PROGRAM, made from `tests/lab/workloads/PROGRAM.c`. What the
//! page shows after a command must be in what the command prints, word for word and in this order.
//! Any number stands for any other, and `…` for anything.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use precise_tests::{
    program,
    run::{binary, until_undisturbed},
};

/// The start of a mark before a fence.
const LIVE: &str = "<!-- live: ";
/// What the shell prints after each command.
const END: char = '\u{1}';
/// Units of times: which of them is printed depends on how fast the machine is.
const TIMES: [&str; 4] = ["ns", "us", "ms", "s"];

#[test]
fn what_pages_show_of_runs_has_the_words_that_runs_print() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/runbooks"] {
        let entries = fs::read_dir(root.join(folder))?;
        pages.extend(entries.flatten().map(|entry| entry.path()).filter(|path| is_markdown(path)));
    }
    pages.sort();
    let (mut compared, mut wrong) = (0, Vec::new());
    for page in pages {
        let text = fs::read_to_string(&page)?;
        for fence in text.split(LIVE).skip(1) {
            let context = || format!("{}: a fence that is run has no end", page.display());
            let (name, rest) = fence.split_once(" -->\n\n```\n").with_context(context)?;
            let (body, _) = rest.split_once("\n```\n").with_context(context)?;
            // The sentence about a rate says something else if a run was held up.
            let problem = until_undisturbed(|| missing(name, body));
            wrong.extend(problem.err().map(|error| format!("{}: {error:#}", page.display())));
            compared += 1;
        }
    }
    ensure!(compared > 0, "no page shows a run");
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// Runs a fence. Returns a sentence about the first words that no command printed.
fn missing(name: &str, body: &str) -> Result<Option<String>> {
    let folder = tempfile::tempdir()?;
    let workloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/workloads");
    program::c(folder.path(), name, &fs::read_to_string(workloads.join(format!("{name}.c")))?)?;
    // What is before the first prompt is not of a command.
    let text = format!("\n{body}");
    let blocks: Vec<(&str, &str)> =
        text.split("\n$ ").skip(1).map(|block| block.split_once('\n').unwrap_or((block, ""))).collect();
    let mut script = String::new();
    for (command, _) in &blocks {
        script += &format!("{command}\nstatus=$?\nprintf '\\001'\n(exit $status)\n");
    }
    let mut path = vec![binary()?.parent().map(PathBuf::from).context("a folder")?];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{script}")])
        .env("PATH", std::env::join_paths(path)?)
        .env("COLUMNS", "80")
        .current_dir(folder.path())
        .output()?;
    let printed = String::from_utf8(output.stdout)?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
    let host = host.trim();
    for ((command, shown), printed) in blocks.iter().zip(printed.split(END)) {
        // Where a line is wrapped depends on how long the host's name is.
        let line = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.replace(&format!("on {host}"), "on vm").replace(&format!("-{host}-"), "-vm-");
        let mut words = words(&line);
        for part in parts(shown) {
            let Some(at) = (0..words.len()).find(|&at| words.iter().skip(at).take(part.len()).eq(&part))
            else {
                return Ok(Some(format!("`{command}` does not print `{}`, but:\n{printed}", part.join(" "))));
            };
            words.drain(..at + part.len());
        }
    }
    Ok(None)
}

/// Returns the words that are shown between one `…` and the next.
fn parts(shown: &str) -> Vec<Vec<String>> {
    let words: Vec<String> = words(shown).into();
    words.split(|word| word == "…").filter(|part| !part.is_empty()).map(<[String]>::to_vec).collect()
}

/// Returns the words of a text, with `#` for each number.
fn words(text: &str) -> VecDeque<String> {
    let mut found: VecDeque<String> = VecDeque::new();
    for word in text.split_whitespace() {
        let is_time = TIMES.contains(&word.trim_end_matches([',', '.']));
        if is_time && found.back().is_some_and(|last| last == "#") {
            continue;
        }
        found.push_back(without_numbers(word));
    }
    found
}

fn without_numbers(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let hex =
            rest.strip_prefix("0x").map(|digits| digits.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
        let end = match hex {
            Some(end) => end,
            None if first.is_ascii_digit() => {
                let end = rest.trim_start_matches(|c: char| c.is_ascii_digit() || ".,:".contains(c));
                // What ends a clause is not of the number.
                let digits = &rest[..rest.len() - end.len()];
                &rest[digits.trim_end_matches(['.', ',', ':']).len()..]
            }
            None => {
                // A share below a tenth of a percent has this sign before it.
                if first != '<' {
                    out.push(first);
                }
                rest = &rest[first.len_utf8()..];
                continue;
            }
        };
        out.push('#');
        rest = end;
    }
    out
}

#[test]
fn a_number_stands_for_any_other() {
    let of = |text: &str| words(text).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(of("97.3% ±0.8  -72.5 <0.1%, 8,062 in 127 ms, at 0x7f2a+0x10"), "#% ±# -# #%, # in # at #+#");
    assert_eq!(of("on 12 s."), "on #");
    assert_eq!(parts("a 1\n …\nb … c"), [vec!["a", "#"], vec!["b"], vec!["c"]]);
}
