//! Programs whose line table names a file that has nothing to do with them: no view shows its
//! lines, unless the user asks for the folder that the file is in.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::error::ExitClass;
use precise::model::testing::CaptureBuilder;
use precise_tests::{
    program::{self, FUNCTION, LINE},
    run::{Ended, command, precise},
};
use tempfile::TempDir;

/// Begins each line of the secret file; it has no character that a page escapes.
const SECRET: &str = "only the owner reads line";

/// The words on standard error when lines are not shown.
const NOT_SHOWN: &str = "the lines of 1 source file are not shown";

/// A program with samples, and the file that its line table names.
struct Sampled {
    folder: TempDir,
    capture: String,
    secret: PathBuf,
}

impl Sampled {
    /// Compiles a program with a line table that names `source`, and writes a capture of it. The
    /// folder has a secret file that only its owner may read.
    fn new(source: impl Fn(&Path) -> PathBuf) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = fs::canonicalize(folder.path())?;
        let secret = at.join("private/key");
        fs::create_dir(at.join("private"))?;
        fs::create_dir(at.join("project"))?;
        let lines: Vec<String> = (1..=50).map(|line| format!("{SECRET} {line}")).collect();
        fs::write(&secret, lines.join("\n"))?;
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600))?;
        let named = source(&at).display().to_string();
        let program = program::c(&at, "hostile", &format!("# 1 \"{named}\"\n{}", program::FAULTS))?;

        let symbols = Ended::from(Command::new("nm").arg(&program).output()?).expect(0)?.stdout;
        let line = symbols.lines().find(|line| line.ends_with(&format!(" {FUNCTION}")));
        let address = line.and_then(|line| line.split(' ').next()).context("nm lists the function")?;
        let mut builder = CaptureBuilder::new();
        let module = program.display().to_string();
        builder.cell().samples(500).process(1, "hostile").code(0x1000, &module, FUNCTION, &named, LINE);
        let mut capture = builder.build();
        // The code of the program has the same addresses and file offsets.
        capture.code[0].file_offset = u64::from_str_radix(address, 16)?;
        capture.code[0].function_offset = 0;
        let file = at.join("hostile.parquet");
        capture.write(&file)?;
        Ok(Self { folder, capture: file.display().to_string(), secret })
    }

    /// Runs each command that shows lines of source, in a folder. Returns everything that each of
    /// them showed, and its standard error.
    fn views(&self, current: &Path, flags: &[&str]) -> Result<Vec<(String, String)>> {
        let page = self.folder.path().join("page.html");
        let page = page.to_str().context("a path")?;
        let mut all = Vec::new();
        for view in [
            &["annotate"][..],
            &["annotate", "--lines"],
            &["annotate", "--all", "--json"],
            &["annotate", "-x,"],
            &["report", "--html", page],
        ] {
            let mut command = command([view, &["-i", &self.capture], flags].concat())?;
            let ended = Ended::from(command.current_dir(current).output()?).expect(0)?;
            let drawn = if view.contains(&page) { fs::read_to_string(page)? } else { String::new() };
            let shown = ended.stdout + &drawn;
            ensure!(shown.contains(FUNCTION), "{view:?}: {shown}");
            all.push((shown, ended.stderr));
        }
        Ok(all)
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Checks that the program's code is found: then its line table names the file, and not only the
/// capture.
fn with_code(sampled: &Sampled) -> Result<()> {
    let json = precise(["annotate", "-i", &sampled.capture, "--json"])?.expect(0)?.stdout;
    let json: serde_json::Value = serde_json::from_str(&json)?;
    let function = &json["events"][0]["functions"][0];
    ensure!(function["no_code"].is_null(), "{function:#}");
    let file = function["instructions"][0]["frames"][0]["file"].as_str();
    ensure!(file == sampled.secret.to_str(), "{function:#}");
    Ok(())
}

#[test]
fn no_view_shows_a_file_outside_of_the_folders() -> Result<()> {
    let sampled = Sampled::new(|at| at.join("private/key"))?;
    with_code(&sampled)?;
    let private = sampled.folder("private").display().to_string();
    let project = sampled.folder("project").display().to_string();
    let root = Path::new("/");

    // The current folder, `/`, does not count; another one does not contain the file.
    let cases = [
        (root, vec![], format!("to show them, use --source {private}")),
        (Path::new(&project), vec![], format!("to show them, use --source . --source {private}")),
        (root, vec!["--source", &project], format!("to show them, add --source {private}")),
    ];
    for (current, flags, advice) in cases {
        for (shown, said) in sampled.views(current, &flags)? {
            ensure!(!shown.contains(SECRET), "{current:?} {flags:?}: {shown}");
            ensure!(said.matches(NOT_SHOWN).count() == 1 && said.contains(&advice), "{said}");
        }
    }
    Ok(())
}

#[test]
fn a_folder_that_is_asked_for_is_shown() -> Result<()> {
    let sampled = Sampled::new(|at| at.join("private/key"))?;
    let private = sampled.folder("private").display().to_string();
    let project = sampled.folder("project").display().to_string();
    let whole = sampled.folder.path();
    let cases = [
        (Path::new("/"), vec!["--source", &private]),
        (Path::new("/"), vec!["--source", &project, "--source", &private]),
        (Path::new("/"), vec!["--source", "/"]),
        (whole, vec!["--source", "private"]),
        (whole, vec![]),
    ];
    for (current, flags) in cases {
        for (shown, said) in sampled.views(current, &flags)? {
            ensure!(shown.contains(SECRET), "{current:?} {flags:?}: {shown}");
            ensure!(!said.contains("not shown"), "{said}");
        }
    }
    Ok(())
}

/// A tenant may have a folder that is asked for, and links in it.
#[test]
fn no_link_and_no_parent_folder_leads_out() -> Result<()> {
    let through = ["project/link/key", "project/key", "project/../private/key"];
    for name in through {
        let sampled = Sampled::new(|at| at.join(name))?;
        let project = sampled.folder("project");
        symlink("../private", project.join("link"))?;
        symlink(&sampled.secret, project.join("key"))?;
        for (shown, said) in sampled.views(&project, &[])? {
            ensure!(!shown.contains(SECRET), "{name}: {shown}");
            ensure!(said.contains(NOT_SHOWN), "{name}: {said}");
        }
    }
    Ok(())
}

#[test]
fn a_folder_that_does_not_exist_is_an_error() -> Result<()> {
    let sampled = Sampled::new(|at| at.join("private/key"))?;
    let missing = sampled.folder("missing").display().to_string();
    for view in [&["annotate"][..], &["report", "--html", "/dev/null"]] {
        let ended = precise([view, &["-i", &sampled.capture, "--source", &missing]].concat())?;
        let ended = ended.expect(ExitClass::Usage.code().into())?;
        ensure!(ended.stderr.contains(&format!("cannot open the folder {missing} (--source)")), "{ended:#?}");
    }
    Ok(())
}

/// A tenant chooses the names of folders, too.
#[test]
fn the_advice_is_safe_to_paste() -> Result<()> {
    let sampled = Sampled::new(|at| {
        let folder = at.join("a; $(id)");
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("x.c"), "text").expect("a file");
        folder.join("x.c")
    })?;
    let quoted = format!("use --source '{}'", sampled.folder("a; $(id)").display());
    for (_, said) in sampled.views(Path::new("/"), &[])? {
        ensure!(said.contains(&quoted), "{said}");
    }
    Ok(())
}
