//! What a command says of an imported capture that lacks something: the user has a recording and
//! perf, and not this machine's PMU. An import that is advised is made, and must help.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, ensure};
use precise::model::keys::Key;
use precise::views::registry::VIEWS;
use precise::views::view::{Captures, Command};
use precise_tests::run::precise;

const RECORDINGS: [&str; 6] = [
    "amd-epyc9254-c2c-seqlock",
    "intel-cfl-mem-rcppthread",
    "intel-skx-google-weightstruct",
    "na-hsw-addr",
    "pipe-zstd-na",
    "recon-amd-genoa-ibs-raw",
];

/// Returns the commands that show a capture: each view, and a report by each key.
fn shown() -> Vec<Vec<String>> {
    let views = VIEWS.iter().map(|view| view.description());
    let views = views.filter(|about| about.command == Command::Own && about.captures == Captures::One);
    let mut shown: Vec<_> = views.map(|about| vec![about.name.to_owned()]).collect();
    shown.push(vec!["report".into(), "-g".into()]);
    // One key for each dimension.
    let mut dimensions = BTreeSet::new();
    let keys = Key::ALL.into_iter().filter(|key| key.dimension().is_some_and(|of| dimensions.insert(of)));
    let keys: Vec<_> = keys.collect();
    shown.extend(keys.into_iter().map(|key| vec!["report".into(), "--by".into(), key.name().to_owned()]));
    shown
}

/// Returns the imports that a text advises, as arguments.
fn imports(text: &str) -> Vec<Vec<String>> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let starts = text.match_indices("precise import ").map(|(at, _)| &text[at + "precise ".len()..]);
    // The path, `--by` and the dimensions.
    let words = starts.map(|rest| rest.split(['`', ' ']).take(4).map(str::to_owned).collect());
    words.collect()
}

fn import(arguments: &[String], output: &Path) -> Result<()> {
    let output = output.display().to_string();
    let mut all: Vec<&str> = arguments.iter().map(String::as_str).collect();
    all.extend(["-q", "-o", &output]);
    let ended = precise(&all)?;
    ensure!(ended.code == Some(0), "{all:?}: {}", ended.stderr);
    Ok(())
}

/// Returns what a command prints of a capture. As in a wide terminal, so that commands are whole.
fn printed(command: &[String], capture: &Path) -> Result<String> {
    let capture = capture.display().to_string();
    let mut all: Vec<&str> = command.iter().map(String::as_str).collect();
    all.extend(["-i", &capture, "--width", "2000"]);
    let ended = precise(&all)?;
    Ok(format!("{}\n{}", ended.stdout, ended.stderr))
}

#[test]
fn advice_for_an_import_is_of_its_recording_and_helps() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (capture, second) = (folder.path().join("a.parquet"), folder.path().join("b.parquet"));
    let shown = shown();
    let (mut wrong, mut perf, mut made) = (Vec::new(), 0, BTreeSet::new());
    for name in RECORDINGS {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(name).join("perf.data");
        let file = file.display().to_string();
        for by in ["", "process"] {
            let mut arguments = vec!["import".to_owned(), file.clone()];
            arguments.extend(["--by", by].map(str::to_owned).into_iter().filter(|_| !by.is_empty()));
            import(&arguments, &capture)?;
            for command in &shown {
                let text = printed(command, &capture)?;
                let what = format!("{} of {name} by {by:?}", command.join(" "));
                if text.contains("precise record") {
                    wrong.push(format!("{what} advises precise record: {text}"));
                }
                perf += usize::from(text.contains("`perf ") || text.contains("Record: perf "));
                for advised in imports(&text) {
                    ensure!(advised.get(1) == Some(&file), "{what}: {advised:?}");
                    import(&advised, &second)?;
                    made.insert(advised.clone());
                    let again = printed(command, &second)?;
                    if again.contains("needs the ") || again.contains("no call chains") {
                        wrong.push(format!("{what}: {advised:?} does not help: {again}"));
                    } else if imports(&again).contains(&advised) {
                        wrong.push(format!("{what}: {advised:?} is advised again: {again}"));
                    }
                }
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    ensure!(perf > 20 && made.len() > 10, "{perf} times perf, {} imports", made.len());
    // Only one recording has the outcomes of ops, which take the place of their sources.
    let outcome = made.iter().any(|import| import.last().is_some_and(|by| by.ends_with(",outcome")));
    ensure!(outcome, "no import was advised for outcomes: {made:?}");
    Ok(())
}
