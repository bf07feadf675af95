//! The schemas of `--json` are stable: docs/schemas has a copy of each, and nothing that it
//! promises to a program that reads documents may be removed unless the version is raised.
//!
//! With `PRECISE_UPDATE_DOCUMENTS=1` the copies are rewritten, unless that breaks the promise.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use precise::text::schema::{derived, file_name, kinds};
use precise::views::document::DocumentKind;
use precise_tests::run::{precise, subcommands};
use serde_json::{Value, json};

const UPDATE: &str = "PRECISE_UPDATE_DOCUMENTS=1 cargo test -p precise-tests --test files schemas";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas")
}

/// Returns the schema that is derived from what is printed.
fn schema(kind: &DocumentKind) -> Result<Value> {
    derived(kind.name).with_context(|| format!("{} has no schema", kind.name))
}

#[test]
fn what_a_version_promises_stays() -> Result<()> {
    let updating = std::env::var_os("PRECISE_UPDATE_DOCUMENTS").is_some();
    for kind in &kinds() {
        let path = folder().join(file_name(kind));
        let (now, known) = (schema(kind)?, std::fs::read_to_string(&path).ok());
        let text = format!("{now:#}\n");
        if let Some(known) = &known {
            let before: Value = serde_json::from_str(known).with_context(|| format!("{}", path.display()))?;
            let mut broken = Vec::new();
            Compare { before: &before, now: &now, broken: &mut broken }.value(&before, &now, "$", 0);
            ensure!(
                broken.is_empty(),
                "{} breaks what its version {} promises: raise the version in `documents!`, or undo this:\n{}",
                kind.name,
                kind.version,
                broken.join("\n")
            );
        }
        if updating {
            std::fs::create_dir_all(folder())?;
            std::fs::write(&path, &text)?;
        } else {
            ensure!(known.as_deref() == Some(&text), "{} is out of date: run `{UPDATE}`", path.display());
        }
    }
    let current: BTreeSet<String> = kinds().iter().map(file_name).collect();
    for entry in std::fs::read_dir(folder())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let (kind, version) = name.trim_end_matches(".json").rsplit_once('-').context("NAME-VERSION.json")?;
        // Schemas of older versions stay, for users with files that they describe.
        let older =
            kinds().iter().any(|k| k.name == kind && version.parse().is_ok_and(|v: u32| v < k.version));
        ensure!(
            older || current.contains(&name),
            "docs/schemas/{name} is of no document that precise prints"
        );
    }
    Ok(())
}

#[test]
fn the_command_prints_every_schema() -> Result<()> {
    let list = precise(["schema", "--list"])?.expect(0)?.stdout;
    for kind in &kinds() {
        ensure!(list.lines().any(|line| line.starts_with(kind.name)), "{} is not listed: {list}", kind.name);
        let printed = precise(["schema", kind.name])?.expect(0)?.stdout;
        ensure!(printed == std::fs::read_to_string(folder().join(file_name(kind)))?, "{}", kind.name);
    }
    ensure!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let ended = precise(["schema", "reprot"])?.expect(2)?;
    ensure!(ended.stderr.contains("precise schema --list"), "{ended:?}");
    Ok(())
}

#[test]
fn no_json_is_without_a_schema() -> Result<()> {
    let kinds = kinds();
    let printed_by: Vec<(&str, &str)> = kinds
        .iter()
        .flat_map(|kind| kind.command.trim_end_matches(", a line each").split(", "))
        .map(|way| way.split_once(' ').context("a command and a flag"))
        .collect::<Result<_>>()?;
    let mut helps = BTreeMap::new();
    for name in subcommands()? {
        let help = precise([&name, "--help"])?.expect(0)?.stdout;
        if help.lines().any(|line| line.trim_start().starts_with("--json")) {
            let listed =
                printed_by.iter().any(|(command, flags)| *command == name && flags.contains("--json"));
            ensure!(listed, "precise {name} --json has no schema");
        }
        helps.insert(name, help);
    }
    for (command, flags) in printed_by {
        let help = helps.get(command).with_context(|| format!("there is no precise {command}"))?;
        let lower = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
        let help = match flags.split(' ').next().filter(lower) {
            Some(inner) => &precise([command, inner, "--help"])?.expect(0)?.stdout,
            None => help,
        };
        for flag in flags.split(' ').filter(|flag| flag.starts_with("--")) {
            ensure!(help.contains(flag), "precise {command} has no {flag}");
        }
    }
    Ok(())
}

/// Compares two schemas of one version.
struct Compare<'a> {
    before: &'a Value,
    now: &'a Value,
    broken: &'a mut Vec<String>,
}

impl Compare<'_> {
    /// Finds everything that a reader of the old schema may rely on, and that the new schema does
    /// not state.
    fn value(&mut self, before: &Value, now: &Value, place: &str, depth: u32) {
        let (before, now) = (resolve(self.before, before), resolve(self.now, now));
        // A type may contain itself.
        if depth > 24 {
            return;
        }
        let mut found = Vec::new();
        let mut broken = |what: String| found.push(format!("{place}: {what}"));
        for (word, is) in [("const", &before["const"]), ("format", &before["format"])] {
            if !is.is_null() && now[word] != *is {
                broken(format!("{word} was {is}, and is {}", now[word]));
            }
        }
        let types = |schema: &Value| match &schema["type"] {
            Value::Array(list) => list.iter().map(|t| t.to_string()).collect::<BTreeSet<_>>(),
            Value::Null => BTreeSet::new(),
            one => BTreeSet::from([one.to_string()]),
        };
        // A field may lose types, because readers can handle all of the old ones.
        let (old, new) = (types(&before), types(&now));
        if old != new && (new.is_empty() || !new.is_subset(&old)) {
            broken(format!("its type was {}, and is {}", before["type"], now["type"]));
        }
        let required = |schema: &Value, name: &str| {
            schema["required"].as_array().is_some_and(|list| list.iter().any(|n| n == name))
        };
        let mut deeper = Vec::new();
        for (name, field) in before["properties"].as_object().into_iter().flatten() {
            match now["properties"].get(name) {
                None => broken(format!("the field {name} is gone")),
                Some(_) if required(&before, name) && !required(&now, name) => {
                    broken(format!("the field {name} was always there, and is not any more"));
                }
                Some(other) => deeper.push((field.clone(), other.clone(), format!("{place}.{name}"))),
            }
        }
        for word in ["items", "additionalProperties"] {
            if before[word].is_object() {
                deeper.push((before[word].clone(), now[word].clone(), format!("{place}.{word}")));
            }
        }
        if let Some(list) = before["prefixItems"].as_array() {
            let empty = Vec::new();
            let other = now["prefixItems"].as_array().unwrap_or(&empty);
            if other.len() != list.len() {
                broken(format!("it had {} items, and has {}", list.len(), other.len()));
            }
            for (i, (a, b)) in list.iter().zip(other).enumerate() {
                deeper.push((a.clone(), b.clone(), format!("{place}[{i}]")));
            }
        }
        if let Some(list) = before["enum"].as_array() {
            let other = now["enum"].as_array().cloned().unwrap_or_default();
            for gone in list.iter().filter(|value| !other.contains(value)) {
                broken(format!("the value {gone} is gone"));
            }
        }
        for word in ["oneOf", "anyOf", "allOf"] {
            let variants = |schema: &Value| schema[word].as_array().cloned().unwrap_or_default();
            let (old, new) = (variants(&before), variants(&now));
            let is_null = |variant: &Value| variant["type"] == "null";
            if !old.is_empty() && new.iter().any(is_null) && !old.iter().any(is_null) {
                broken("it may be null now".to_owned());
            }
            for variant in &old {
                let kept = new.iter().any(|other| self.fits(variant, other, depth + 1));
                if !kept {
                    broken(format!("none of its {word} is any more {variant}"));
                }
            }
        }
        self.broken.extend(found);
        for (a, b, place) in deeper {
            self.value(&a, &b, &place, depth + 1);
        }
    }

    /// Returns whether a variant keeps everything that another one promised.
    fn fits(&self, before: &Value, now: &Value, depth: u32) -> bool {
        let mut broken = Vec::new();
        Compare { before: self.before, now: self.now, broken: &mut broken }.value(before, now, "", depth);
        broken.is_empty()
    }
}

/// Resolves a reference.
fn resolve(root: &Value, schema: &Value) -> Value {
    let mut found = schema.clone();
    for _ in 0..8 {
        let Some(name) = found["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) else { break };
        found = root["$defs"][name].clone();
    }
    found
}

/// The comparison itself: it finds breaking changes, and accepts harmless ones.
#[test]
fn removed_and_retyped_fields_are_found() -> Result<()> {
    let before = json!({
        "type": "object",
        "properties": {
            "a": { "type": "integer", "format": "uint64" },
            "b": { "$ref": "#/$defs/B" },
            "c": { "anyOf": [{ "$ref": "#/$defs/B" }, { "type": "null" }] },
            "d": { "type": "array", "items": { "oneOf": [{ "const": "x" }, { "const": "y" }] } },
            "e": { "type": "string" },
        },
        "required": ["a", "b"],
        "$defs": { "B": { "type": "object", "properties": { "x": { "type": ["number", "null"] } }, "required": ["x"] } },
    });
    let faults = |change: &dyn Fn(&mut Value)| {
        let mut now = before.clone();
        change(&mut now);
        let mut broken = Vec::new();
        Compare { before: &before, now: &now, broken: &mut broken }.value(&before, &now, "$", 0);
        broken
    };
    let remove = |value: &mut Value, name: &str| value.as_object_mut().map(|map| map.remove(name));
    for (what, change) in [
        (
            "the field a is gone",
            &(|s: &mut Value| drop(remove(&mut s["properties"], "a"))) as &dyn Fn(&mut Value),
        ),
        ("the field x is gone", &|s| drop(remove(&mut s["$defs"]["B"]["properties"], "x"))),
        ("was always there", &|s| s["required"] = json!(["a"])),
        ("its type was", &|s| s["properties"]["e"]["type"] = json!("integer")),
        ("its type was", &|s| s["properties"]["e"]["type"] = json!(["string", "null"])),
        ("format was", &|s| s["properties"]["a"]["format"] = json!("uint8")),
        ("may be null now", &|s| {
            s["properties"]["d"]["items"]["oneOf"] =
                json!([{ "const": "x" }, { "const": "y" }, { "type": "null" }]);
        }),
        ("none of its oneOf", &|s| s["properties"]["d"]["items"]["oneOf"] = json!([{ "const": "x" }])),
    ] {
        let found = faults(change);
        ensure!(found.iter().any(|fault| fault.contains(what)), "{what}: {found:?}");
    }
    for change in [
        &(|s: &mut Value| s["properties"]["new"] = json!({ "type": "string" })) as &dyn Fn(&mut Value),
        &|s| s["required"] = json!(["a", "b", "c"]),
        &|s| s["$defs"]["B"]["properties"]["x"]["type"] = json!("number"),
        &|s| {
            s["properties"]["d"]["items"]["oneOf"] =
                json!([{ "const": "x" }, { "const": "y" }, { "const": "z" }])
        },
        &|s| s["properties"]["e"]["description"] = json!("words"),
    ] {
        let found = faults(change);
        if !found.is_empty() {
            bail!("harmless, and found: {found:?}");
        }
    }
    Ok(())
}
