//! Compares the arrows of ARCHITECTURE.md with the dependencies that Cargo and the compiler see:
//! `cargo test -p xtask architecture`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::module_arrows::{Arrows, ROOT, circle, modules};
use crate::{checkout, process};

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

/// Returns the folders of the sources of all crates, except programs of one file.
fn sources() -> BTreeSet<PathBuf> {
    let manifests = ["Cargo.toml", "precise-ebpf/Cargo.toml", "tests/fuzz/Cargo.toml"];
    let packages = manifests.map(|manifest| {
        let mut cargo = process::cargo();
        cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"]);
        let output = process::output(cargo.arg(checkout::root().join(manifest))).unwrap();
        serde_json::from_str::<Value>(&output).unwrap()["packages"].as_array().unwrap().clone()
    });
    let targets = packages.iter().flatten().flat_map(|package| package["targets"].as_array().unwrap());
    let built = targets.filter(|target| target["kind"] != json!(["test"]));
    let files = built.map(|target| Path::new(target["src_path"].as_str().unwrap()));
    let roots = files.filter(|file| file.ends_with("lib.rs") || file.ends_with("main.rs"));
    roots.map(|root| root.parent().unwrap().to_owned()).collect()
}

fn metadata() -> Value {
    let mut cargo = process::cargo();
    cargo.args(["metadata", "--locked", "--offline", "--format-version", "1"]);
    // A build has fetched only the crates of this platform.
    cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
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
        for library in
            ["aya-obj", "tokio", "hyper", "clap", "blazesym", "perf-event-open-sys", "object_store"]
        {
            assert!(!all.contains(library), "{root} is built with {library}");
        }
    }
    assert!(built_with("precise-user").contains("aya-obj"), "the walk finds nothing");
}

#[test]
fn modules_use_what_their_row_says() {
    for of in ["precise-user/sampling", "precise-user"] {
        let wanted = Rows::behind(&format!("modules: {of}")).lists("module", "uses");
        let mut real = modules(&checkout::root().join(of).join("src"));
        real.remove(ROOT);
        assert_eq!(
            real, wanted,
            "{of}: paths in the source (left), and the table in ARCHITECTURE.md (right)"
        );
    }
}

#[test]
fn modules_of_a_crate_do_not_use_each_other_in_a_circle() {
    let sources = sources();
    assert!(sources.len() >= 12, "the list of crates is not complete: {sources:?}");
    for source in sources {
        let circle = circle(&modules(&source)).map(|names| names.join(" -> "));
        assert_eq!(circle, None, "{}: modules that use each other in a circle", source.display());
    }
}

#[test]
fn files_that_the_pages_name_exist() {
    let files: Vec<String> = checkout::files().iter().map(|file| format!("/{file}")).collect();
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
