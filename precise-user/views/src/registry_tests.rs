//! Tests that hold for every view.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{VIEWS, derived_schemas, document_kinds};
use crate::view::trial::Trials;
use crate::view::{OptionKind, OptionValues};

/// Fields that must not depend on how often the load was sampled: fractions, means and percentiles.
/// The order of all lists must not depend on it either.
const SAME: [&str; 14] = [
    "share",
    "latency_share",
    "period_share",
    "rate",
    "taken",
    "average",
    "walked_average",
    "other_average",
    "hitm_average",
    "remote_share",
    "remote_of_accesses",
    "precise_share",
    "level",
    "served",
];

/// Asserts that two results agree, and returns how many numbers were compared.
fn same(a: &Value, b: &Value, path: &str) -> usize {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.iter().filter_map(|(key, value)| Some((key, value, b.get(key)?)));
            keys.map(|(key, a, b)| {
                let path = format!("{path}.{key}");
                match (a, b) {
                    (Value::Number(a), Value::Number(b))
                        if SAME.contains(&key.as_str()) || key == "value" =>
                    {
                        // Some counts of samples are called `value` too, as in derived events.
                        if a.is_u64() && b.is_u64() {
                            return 0;
                        }
                        let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
                        assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{path}: {a} and {b}");
                        1
                    }
                    (Value::String(a), Value::String(b)) if SAME.contains(&key.as_str()) || key == "Text" => {
                        assert_eq!(a, b, "{path}");
                        1
                    }
                    _ => same(a, b, &path),
                }
            })
            .sum()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.iter().zip(b).enumerate().map(|(i, (a, b))| same(a, b, &format!("{path}[{i}]"))).sum()
        }
        _ => 0,
    }
}

/// Every view reports the same about the same load, whatever the governor did during the run.
#[test]
fn every_view_weighs_samples_by_what_they_stand_for() {
    for view in VIEWS {
        let name = view.description().name;
        match view.trials() {
            Trials::Weighs(trials) => {
                assert!(!trials.is_empty(), "{name} is tried on nothing");
                for trial in trials {
                    let least = trial.least;
                    let [even, uneven] = trial.answers(*view);
                    let found = same(&even, &uneven, name);
                    assert!(found >= least, "{name}: only {found} numbers");
                }
            }
            Trials::Cannot(why) => assert!(why.len() > 20, "{name}: {why}"),
        }
    }
}

/// A view answers the same without the parts of rows that it does not read.
#[test]
fn every_view_says_which_parts_of_rows_it_reads() {
    for view in VIEWS {
        let Trials::Weighs(trials) = view.trials() else { continue };
        for trial in trials {
            let [whole, parts] = trial.answers_of_parts(*view);
            assert_eq!(whole, parts, "{}", view.description().name);
        }
    }
}

#[test]
fn names_are_unique_and_descriptions_complete() {
    for (i, view) in VIEWS.iter().enumerate() {
        let about = view.description();
        let name = about.name;
        assert!(VIEWS[i + 1..].iter().all(|other| other.description().name != name), "{name}");
        assert!(!about.about.ends_with('.') && about.about.len() <= 90, "{name}: {}", about.about);
        assert!(!about.examples.is_empty(), "{name} has no example");
        for example in about.examples {
            assert!(example.command.starts_with("precise "), "{name}: {}", example.command);
            assert!(example.says.ends_with('.'), "{name}: {}", example.says);
        }
        for option in about.options {
            assert!(!option.help.ends_with('.') && option.help.len() <= 110, "{name}: {}", option.help);
            assert!(
                !matches!(option.kind, OptionKind::Flag) || option.default.is_none(),
                "{name}: {}",
                option.name
            );
        }
    }
}

/// The defaults in a view's description of its options are valid values.
#[test]
fn defaults_are_accepted() {
    for view in VIEWS {
        let about = view.description();
        view.check(&OptionValues::defaults(about.options))
            .unwrap_or_else(|why| panic!("{}: {why}", about.name));
    }
}

#[test]
fn every_view_has_a_schema_of_its_name() {
    let (kinds, schemas) = (document_kinds(), derived_schemas());
    let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
    assert_eq!(names, schemas.iter().map(|schema| schema.name).collect::<Vec<_>>());
    for view in VIEWS {
        let name = view.description().name;
        let found: Vec<_> = schemas.iter().filter(|schema| schema.name == name).collect();
        let [schema] = found[..] else { panic!("{name}: {} schemas", found.len()) };
        assert!((schema.derive)()["properties"].as_object().is_some_and(|all| all.len() > 2), "{name}");
    }
}

/// Every folder of a view has an example that `cargo test --doc` runs.
#[test]
fn every_view_has_a_runnable_example() {
    let sources = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let folders = fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<_> = folders.filter(|folder| folder.join("view.rs").is_file()).collect();
    assert_eq!(folders.len(), VIEWS.len(), "{folders:?}");
    for folder in folders {
        let mut files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let has_example = files.any(|file| {
            file.extension().is_some_and(|extension| extension == "rs")
                && has_runnable_example(&fs::read_to_string(&file).unwrap())
        });
        assert!(has_example, "{}: no runnable example in its rustdoc", folder.display());
    }
}

/// Returns whether the doc comments of a source file contain a code block that rustdoc runs.
fn has_runnable_example(source: &str) -> bool {
    let mut open = false;
    source.lines().any(|line| {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(language) = comment.and_then(|text| text.trim_start().strip_prefix("```")) else {
            return false;
        };
        open = !open;
        open && matches!(language.trim(), "" | "rust" | "should_panic")
    })
}

#[test]
fn only_blocks_that_run_are_examples() {
    for (source, runs) in [
        ("//! ```\n//! run();\n//! ```\n", true),
        ("    /// ```rust\n    /// run();\n    /// ```\n", true),
        ("//! ```text\n//! a table\n//! ```\n", false),
        ("/// ```no_run\n/// run();\n/// ```\n", false),
        ("/// ```ignore\n/// run();\n/// ```\n", false),
        ("// ```\n// run();\n// ```\n", false),
    ] {
        assert_eq!(has_runnable_example(source), runs, "{source}");
    }
}
