//! The list of everything that is linked into the binary: CycloneDX 1.5, from cargo's own metadata
//! and the checksums of Cargo.lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::release::Release;
use crate::{checkout, process};

/// The package whose binary is shipped.
const ROOT: &str = "precise-user";

/// What `cargo metadata` prints, as far as it is used.
#[derive(Deserialize)]
struct CargoMetadata {
    packages: Vec<CargoPackage>,
    resolve: CargoResolve,
}

#[derive(Deserialize)]
struct CargoPackage {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    description: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct CargoResolve {
    nodes: Vec<CargoNode>,
}

#[derive(Deserialize)]
struct CargoNode {
    id: String,
    deps: Vec<CargoDependency>,
}

#[derive(Deserialize)]
struct CargoDependency {
    pkg: String,
    dep_kinds: Vec<CargoKind>,
}

#[derive(Deserialize)]
struct CargoKind {
    /// `None` for what is linked; "dev" and "build" are not in the binary.
    kind: Option<String>,
}

/// Returns the document for a target.
pub fn make(release: &Release, target: &str) -> Result<Vec<u8>> {
    let mut cargo = process::cargo();
    cargo.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", target]);
    let metadata: CargoMetadata = serde_json::from_slice(&process::bytes(&mut cargo)?)
        .context("`cargo metadata` prints something that this task does not understand")?;
    let lock = checkout::root().join("Cargo.lock");
    let lock = fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let document = document(release, &metadata, &checksums(&lock))?;
    let mut text = serde_json::to_vec_pretty(&document).context("cannot write JSON")?;
    text.push(b'\n');
    Ok(text)
}

fn document(
    release: &Release,
    metadata: &CargoMetadata,
    checksums: &BTreeMap<(String, String), String>,
) -> Result<Value> {
    let packages: BTreeMap<&str, &CargoPackage> =
        metadata.packages.iter().map(|p| (p.id.as_str(), p)).collect();
    let root = metadata.packages.iter().find(|package| package.name == ROOT);
    let root = root.with_context(|| format!("`cargo metadata` knows no package {ROOT}"))?;
    let linked = linked(metadata, &root.id);
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for (id, needs) in &linked {
        let package = packages.get(id).with_context(|| format!("`cargo metadata` does not describe {id}"))?;
        if *id != root.id {
            components.push(component(package, checksums));
        }
        let mut needs: Vec<String> =
            needs.iter().filter_map(|need| packages.get(need)).map(|need| purl(need)).collect();
        needs.sort();
        dependencies.push(json!({ "ref": purl(package), "dependsOn": needs }));
    }
    let by = |key: &'static str| move |value: &Value| value[key].as_str().unwrap_or_default().to_owned();
    components.sort_by_key(by("bom-ref"));
    dependencies.sort_by_key(by("ref"));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": format!("{}T00:00:00Z", release.date),
            "component": {
                "type": "application", "bom-ref": purl(root), "name": "precise", "version": release.version,
                "purl": purl(root), "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                "properties": [{ "name": "commit", "value": release.commit }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Returns each package that is linked, with those that it needs.
fn linked<'a>(metadata: &'a CargoMetadata, root: &'a str) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let nodes: BTreeMap<&str, &CargoNode> =
        metadata.resolve.nodes.iter().map(|n| (n.id.as_str(), n)).collect();
    let mut linked = BTreeMap::new();
    let mut waiting = vec![root];
    while let Some(id) = waiting.pop() {
        if linked.contains_key(id) {
            continue;
        }
        let is_linked = |d: &&CargoDependency| d.dep_kinds.iter().any(|kind| kind.kind.is_none());
        let dependencies = nodes.get(id).into_iter().flat_map(|node| &node.deps);
        let needs: BTreeSet<&str> = dependencies.filter(is_linked).map(|d| d.pkg.as_str()).collect();
        waiting.extend(&needs);
        linked.insert(id, needs);
    }
    linked
}

fn component(package: &CargoPackage, checksums: &BTreeMap<(String, String), String>) -> Value {
    let mut component = json!({
        "type": "library", "bom-ref": purl(package), "name": package.name, "version": package.version,
        "purl": purl(package),
    });
    if let Some(license) = &package.license {
        // Old packages separate two licences by a slash, which SPDX does not know.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(description) = &package.description {
        component["description"] = json!(description.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let checksum = checksums.get(&(package.name.clone(), package.version.clone()));
    if let Some(checksum) = checksum.filter(|_| package.source.is_some()) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

fn purl(package: &CargoPackage) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

/// Returns the checksums of a Cargo.lock by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut checksums = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
            line.and_then(|rest| rest.strip_suffix('"')).map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(checksum)) =
            (field("name"), field("version"), field("checksum"))
        {
            checksums.insert((name, version), checksum);
        }
    }
    checksums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_linked_is_listed() {
        let package = |name: &str, source: Option<&str>| {
            json!({ "id": name, "name": name, "version": "1.0.0+a", "license": "MIT/Apache-2.0",
                "description": "a\n b", "source": source })
        };
        let need = |name: &str, kind: Option<&str>| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = serde_json::from_value(json!({
            "packages": [package(ROOT, None), package("lib", Some("r")), package("make", Some("r")), package("deep", Some("r"))],
            "resolve": { "nodes": [
                { "id": ROOT, "deps": [need("lib", None), need("make", Some("build"))] },
                { "id": "lib", "deps": [need("deep", None)] },
                { "id": "deep", "deps": [need("lib", Some("dev"))] },
                { "id": "make", "deps": [] },
            ] },
        }))
        .unwrap();
        let lock = "version = 4\n[[package]]\nname = \"lib\"\nversion = \"1.0.0+a\"\nchecksum = \"aa\"\n";
        let release =
            Release { version: "1.0.0".into(), commit: "c".into(), date: "2026-01-02".into(), epoch: 0 };
        let document = document(&release, &metadata, &checksums(lock)).unwrap();
        let names: Vec<&str> =
            document["components"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["deep", "lib"]);
        let lib = &document["components"][1];
        assert_eq!(lib["purl"], "pkg:cargo/lib@1.0.0%2Ba");
        assert_eq!(lib["hashes"][0]["content"], "aa");
        assert_eq!(lib["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(lib["description"], "a b");
        assert_eq!(document["dependencies"].as_array().unwrap().len(), 3);
    }
}
