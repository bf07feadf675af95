//! Compares the arrows of ARCHITECTURE.md with the dependencies that Cargo and the compiler see:
//! `cargo test -p xtask architecture`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{checkout, process};

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// A table of ARCHITECTURE.md: for each row, the cells by the title of their column.
struct Rows(Vec<BTreeMap<String, String>>);

impl Rows {
    /// Reads the table after `<!-- mark -->`.
    fn behind(mark: &str) -> Self {
        let page = fs::read_to_string(checkout::root().join("ARCHITECTURE.md")).unwrap();
        let (_, behind) = page.split_once(&format!("<!-- {mark} -->\n")).expect(mark);
        let mut lines = behind.lines().skip_while(|line| line.is_empty()).take_while(|l| l.starts_with('|'));
        let cells = |line: &str| -> Vec<String> {
            line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
        };
        let titles = cells(lines.next().expect(mark));
        let rows = lines.skip(1).map(|line| titles.iter().cloned().zip(cells(line)).collect());
        Self(rows.collect())
    }

    /// Returns the names in the cells of a column, by the name in the first column.
    fn lists(&self, name: &str, list: &str) -> Arrows {
        let list = |row: &BTreeMap<String, String>| {
            let names = row[list].split(", ").filter(|name| *name != "–").map(str::to_owned).collect();
            (row[name].clone(), names)
        };
        self.0.iter().map(list).collect()
    }
}

fn metadata() -> Value {
    let mut cargo = process::cargo();
    cargo.args(["metadata", "--locked", "--offline", "--format-version", "1"]);
    serde_json::from_str(&process::output(&mut cargo).unwrap()).unwrap()
}

/// Returns the names of a package's dependencies, except those of its tests.
fn dependencies(package: &Value) -> BTreeSet<String> {
    let all = package["dependencies"].as_array().unwrap().iter();
    all.filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the dependencies of the workspace's packages.
fn packages() -> Arrows {
    let metadata = metadata();
    let members = metadata["workspace_members"].as_array().unwrap();
    let all = metadata["packages"].as_array().unwrap().iter();
    all.filter(|package| members.contains(&package["id"]))
        .map(|package| (package["name"].as_str().unwrap().to_owned(), dependencies(package)))
        .collect()
}

/// Returns the names of all packages that a package is built with.
fn built_with(root: &str) -> BTreeSet<String> {
    let metadata = metadata();
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["id"].as_str().unwrap(), node))
        .collect();
    let packages = metadata["packages"].as_array().unwrap();
    let names: BTreeMap<&str, &str> =
        packages.iter().map(|p| (p["id"].as_str().unwrap(), p["name"].as_str().unwrap())).collect();
    let mut left: Vec<&str> = names.iter().filter(|(_, name)| **name == root).map(|(id, _)| *id).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = left.pop() {
        if !seen.insert(id) {
            continue;
        }
        for dependency in nodes[id]["deps"].as_array().unwrap() {
            let kinds = dependency["dep_kinds"].as_array().unwrap();
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                left.push(dependency["pkg"].as_str().unwrap());
            }
        }
    }
    seen.into_iter().map(|id| names[id].to_owned()).collect()
}

/// Returns a path from a name back to itself, if there is one.
fn circle(arrows: &Arrows) -> Option<Vec<String>> {
    fn walk(arrows: &Arrows, path: &mut Vec<String>) -> bool {
        let Some(to) = path.last().and_then(|last| arrows.get(last)) else { return false };
        to.iter().any(|next| {
            let closed = path.contains(next);
            path.push(next.clone());
            closed || walk(arrows, path) || path.pop().is_none()
        })
    }
    arrows.keys().find_map(|name| {
        let mut path = vec![name.clone()];
        walk(arrows, &mut path).then_some(path)
    })
}

/// Returns the modules at the root of a crate, each with the other root modules that it names.
fn modules(source: &Path) -> Arrows {
    let mut arrows = Arrows::new();
    let mut folders = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let below = path.strip_prefix(source).unwrap();
            let name = below.components().next().unwrap().as_os_str().to_str().unwrap();
            let module = name.trim_end_matches(".rs").to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs")
                && !["lib", "main"].contains(&module.as_str())
                && !is_test(below)
            {
                arrows.entry(module).or_default().extend(named(&fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let known: BTreeSet<String> = arrows.keys().cloned().collect();
    for (module, to) in &mut arrows {
        to.retain(|other| known.contains(other) && other != module);
    }
    arrows
}

/// Returns whether a file is a test. Tests may use any module.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| {
        let part = part.as_os_str().to_string_lossy();
        let name = part.trim_end_matches(".rs");
        ["tests", "testing", "fixture"].contains(&name) || name.ends_with("_tests")
    })
}

/// Returns the modules that follow `crate::` in a file, in the part before its tests.
fn named(text: &str) -> BTreeSet<String> {
    let code: String = text
        .split("#[cfg(test)]\nmod ")
        .next()
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let mut names = BTreeSet::new();
    for behind in code.split("crate::").skip(1) {
        match behind.strip_prefix('{') {
            Some(group) => names.extend(heads(group)),
            None => names.extend(word(behind)),
        }
    }
    names
}

/// Returns the first word of each member of a group, up to the closing brace.
fn heads(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut heads) = (0, true, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            c if start && !c.is_whitespace() => {
                heads.extend(word(&group[at..]));
                start = false;
            }
            _ => {}
        }
    }
    heads
}

fn word(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

#[test]
fn crates_use_what_their_row_says() {
    let table = Rows::behind("crates");
    let wanted = table.lists("crate", "uses");
    assert_eq!(circle(&packages()), None, "crates use each other in a circle");
    let packages = packages();
    let ours = |name: &str| wanted.contains_key(name);
    for (name, uses) in &wanted {
        let uses: BTreeSet<String> = uses.iter().map(|short| format!("precise-{short}")).collect();
        let real: BTreeSet<String> = packages[name].iter().filter(|name| ours(name)).cloned().collect();
        assert_eq!(real, uses, "{name}: Cargo.toml, and the table of crates in ARCHITECTURE.md");
    }
    for package in packages.keys().filter(|name| !["precise-tests", "xtask"].contains(&name.as_str())) {
        assert!(ours(package), "{package} has no row in the table of crates of ARCHITECTURE.md");
    }
    for (name, ends) in table.lists("crate", "ends here") {
        for library in ends {
            for (other, uses) in packages.iter().filter(|(other, _)| ours(other)) {
                let may = *other == name;
                assert_eq!(uses.contains(&library), may, "{library} ends in {name}, and {other} is asked");
            }
        }
    }
}

#[test]
fn reading_captures_needs_no_kernel_and_no_command_line() {
    for root in ["precise-capture", "precise-views"] {
        let all = built_with(root);
        for library in ["aya", "tokio", "hyper", "clap", "blazesym", "perf-event-open-sys", "object_store"] {
            assert!(!all.contains(library), "{root} is built with {library}");
        }
    }
    assert!(built_with("precise-user").contains("aya"), "the walk finds nothing");
}

#[test]
fn modules_use_what_their_row_says() {
    for of in ["precise-user/sampling", "precise-user"] {
        let wanted = Rows::behind(&format!("modules: {of}")).lists("module", "uses");
        let real = modules(&checkout::root().join(of).join("src"));
        assert_eq!(circle(&real), None, "modules of {of} use each other in a circle");
        assert_eq!(real, wanted, "{of}: `use` paths (left), and the table in ARCHITECTURE.md (right)");
    }
}

#[test]
fn an_arrow_is_found_however_it_is_written() {
    let text = "//! crate::doc\nuse crate::{\n    a::{self, b},\n    c,\n};\nuse crate::d::e;\nfn f() { crate::g::h() }\n\
                #[cfg(test)]\nmod tests { use crate::i; }";
    assert_eq!(named(text), ["a", "c", "d", "g"].map(str::to_owned).into());
    let arrows = |pairs: &[(&str, &str)]| -> Arrows {
        let mut arrows = Arrows::new();
        for (from, to) in pairs {
            arrows.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        arrows
    };
    assert_eq!(circle(&arrows(&[("a", "b"), ("b", "c")])), None);
    assert!(circle(&arrows(&[("a", "b"), ("b", "c"), ("c", "b")])).is_some());
}

#[test]
fn files_that_the_pages_name_exist() {
    let mut list = std::process::Command::new("git");
    list.args(["ls-files", "-co", "--exclude-standard"]).current_dir(checkout::root());
    let files: Vec<String> = process::output(&mut list).unwrap().lines().map(|l| format!("/{l}")).collect();
    let pages = files.iter().filter(|file| file.ends_with(".md") && !file.contains("CHANGELOG"));
    let mut named = 0;
    for page in pages {
        let text =
            fs::read_to_string(checkout::root().join(page.trim_start_matches('/'))).unwrap_or_default();
        for word in text.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs")) {
            let found = files.iter().any(|file| file.ends_with(&format!("/{word}")));
            assert!(found, "{page} names {word}, and there is no such file");
            named += 1;
        }
    }
    assert!(named > 10, "{named}");
}
