//! What the pages show of runs: a run never prints the same numbers again, but the same words.
//!
//! A fence after `<!-- live: PROGRAM… -->` is run as a whole: its lines with a prompt are commands
//! of a shell, in a folder that has each PROGRAM, made from `docs/examples/PROGRAM.c` or
//! `tests/lab/workloads/PROGRAM.c`, or copied if it is a script. What the page shows after a
//! command must be in what the command prints, word for word and in this order. Any number stands
//! for any other, and `…` for anything.
//!
//! Further lines of the mark are commands that run before. There, `start CGROUP PROGRAM…` starts a
//! program in the background, in a cgroup that is made for it. It is ended with the fence.

use std::{
    collections::VecDeque,
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use precise_tests::{
    cgroup::mount_point,
    program,
    run::{binary, until_undisturbed},
};

/// The start of a mark before a fence.
const LIVE: &str = "<!-- live: ";
/// What the shell prints after each command.
const END: char = '\u{1}';
/// Where the sources of the programs are.
const SOURCES: [&str; 2] = ["../docs/examples", "lab/workloads"];
/// The folder in which the pages run their commands: as long as that of the test, because lines are
/// cut where they do not fit.
const FOLDER: &str = "/srv/demo";
/// What a shell needs to run a fence: `$tree` is where the cgroups are.
const SHELL: &str = r#"
exec 2>&1
start() {
    group=$tree$1
    shift
    mkdir -p "$group"
    groups="$groups $group"
    sh -c 'echo 0 > "$0/cgroup.procs" && exec "$@"' "$group" "$@" > /dev/null &
}
finish() {
    trap '' TERM
    kill 0
    wait
    for group in $groups; do
        while [ "$group" != "$tree" ] && rmdir "$group" 2> /dev/null; do
            group=${group%/*}
        done
    done
}
trap finish EXIT
"#;
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
            let (mark, rest) = fence.split_once(" -->\n\n```\n").with_context(context)?;
            let (body, _) = rest.split_once("\n```\n").with_context(context)?;
            let (programs, before) = mark.split_once('\n').unwrap_or((mark, ""));
            let programs: Vec<&str> = programs.split(' ').collect();
            // The sentence about a rate says something else if a run was held up.
            let problem = until_undisturbed(|| missing(&programs, before, body));
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

/// Runs a fence, after the commands `before`. Returns a sentence about the first words that no
/// command printed.
fn missing(programs: &[&str], before: &str, body: &str) -> Result<Option<String>> {
    let folder = tempfile::Builder::new().prefix("d").rand_bytes(3).tempdir_in("/tmp")?;
    for name in programs {
        let script = name.contains('.');
        let file = if script { (*name).to_owned() } else { format!("{name}.c") };
        let path = |sources| Path::new(env!("CARGO_MANIFEST_DIR")).join(sources).join(&file);
        let source = SOURCES.into_iter().map(path).find(|path| path.exists());
        let source = fs::read_to_string(source.with_context(|| format!("no {file} in {SOURCES:?}"))?)?;
        if script {
            fs::write(folder.path().join(name), source)?;
        } else {
            program::c(folder.path(), name, &source)?;
        }
    }
    commands(folder.path())?;
    // What is before the first prompt is not of a command.
    let text = format!("\n{body}");
    let blocks: Vec<(&str, &str)> = text.split("\n$ ").skip(1).map(command).collect();
    let mut script = format!("tree={}{SHELL}{before}\nprintf '\\001'\n", mount_point()?.display());
    for (command, _) in &blocks {
        script += &format!("{command}\nstatus=$?\nprintf '\\001'\n(exit $status)\n");
    }
    let mut path =
        vec![binary()?.parent().map(PathBuf::from).context("a folder")?, folder.path().join("bin")];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let output = Command::new("sh")
        .args(["-c", &script])
        // All that it starts is ended with it.
        .process_group(0)
        .env("PATH", std::env::join_paths(path)?)
        .env("COLUMNS", "80")
        .current_dir(folder.path())
        .output()?;
    let printed = String::from_utf8(output.stdout)?.replace(&folder.path().display().to_string(), FOLDER);
    let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
    let host = host.trim();
    for ((command, shown), printed) in blocks.iter().zip(printed.split(END).skip(1)) {
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

/// Makes the commands `python3` and `duckdb -c QUERY`, of the Python that has the packages of
/// tests.
fn commands(folder: &Path) -> Result<()> {
    let (bin, python) = (folder.join("bin"), program::python()?);
    let python = python.display();
    fs::create_dir(&bin)?;
    let query = "import duckdb, sys; duckdb.sql(sys.argv[2]).show()";
    for (name, start) in [("python3", python.to_string()), ("duckdb", format!("{python} -c '{query}'"))] {
        fs::write(bin.join(name), format!("#!/bin/sh\nexec {start} \"$@\"\n"))?;
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Returns the command at the start of a block, which ends where its quotes do, and what follows.
fn command(block: &str) -> (&str, &str) {
    let mut ends = block.match_indices('\n').map(|(at, _)| at);
    match ends.find(|&at| block[..at].matches('"').count().is_multiple_of(2)) {
        Some(at) => (&block[..at], &block[at + 1..]),
        None => (block, ""),
    }
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
                rest = &rest[first.len_utf8()..];
                // A share below 0.1 % or above 99.9 % has such a sign before it.
                if !"<>".contains(first) || !rest.starts_with(|c: char| c.is_ascii_digit()) {
                    out.push(first);
                }
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
    assert_eq!(of("coverage >99.9%, a -> b"), "coverage #%, a -> b");
    assert_eq!(parts("a 1\n …\nb … c"), [vec!["a", "#"], vec!["b"], vec!["c"]]);
}
