//! The stamp file next to the object: the sources and tools that it was built from, and whether
//! they are still the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::toolchain::Toolchain;
use crate::sha256;

/// The stamp: everything that decides the bytes of the object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamp {
    /// The hash of precise.bpf.o.
    pub object_sha256: String,
    pub made_by: MadeBy,
    /// The instruction set of the object.
    pub target_cpu: String,
    /// The hashes of the source files by their path in the checkout.
    pub sources_sha256: BTreeMap<String, String>,
}

/// The versions of the tools, as they print them. Different versions may build different objects
/// from the same source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeBy {
    pub rustc: String,
    pub rustc_llvm: String,
    pub bpf_linker: String,
    pub llvm: String,
}

impl MadeBy {
    pub fn of(toolchain: &Toolchain) -> Self {
        Self {
            rustc: toolchain.rustc_version.clone(),
            rustc_llvm: toolchain.rustc_llvm.clone(),
            bpf_linker: toolchain.linker.version.clone(),
            llvm: toolchain.llvm.clone(),
        }
    }

    /// Returns each tool that is different here, in words.
    pub fn differences(&self, here: &Self) -> Vec<String> {
        [
            ("compiler", &self.rustc, &here.rustc),
            ("compiler's LLVM", &self.rustc_llvm, &here.rustc_llvm),
            ("linker", &self.bpf_linker, &here.bpf_linker),
            ("linker's LLVM", &self.llvm, &here.llvm),
        ]
        .into_iter()
        .filter(|(_, then, now)| then != now)
        .map(|(what, then, now)| format!("the {what} is {now}, and was {then}"))
        .collect()
    }
}

impl Stamp {
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| {
            format!("{} cannot be read, which says what the object was made of; `cargo xtask build-ebpf` writes it", file.display())
        })?;
        serde_json::from_str(&text).with_context(|| {
            format!(
                "{} is not a stamp that this task understands; `cargo xtask build-ebpf` writes it anew",
                file.display()
            )
        })
    }

    pub fn to_text(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self).context("the stamp cannot be written as JSON")? + "\n")
    }

    /// Returns the files that have changed since the object was made, in words.
    pub fn changed_sources(&self, now: &BTreeMap<String, String>) -> Vec<String> {
        let mut changed = Vec::new();
        for (file, hash) in now {
            match self.sources_sha256.get(file) {
                None => changed.push(format!("{file} is new")),
                Some(then) if then != hash => changed.push(format!("{file} was changed")),
                Some(_) => (),
            }
        }
        let gone = self.sources_sha256.keys().filter(|file| !now.contains_key(*file));
        changed.extend(gone.map(|file| format!("{file} is gone")));
        changed
    }
}

/// Returns the hash of every file that the object is built from.
pub fn sources(root: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = vec![
        PathBuf::from("precise-common/Cargo.toml"),
        PathBuf::from("precise-ebpf/Cargo.lock"),
        PathBuf::from("precise-ebpf/Cargo.toml"),
    ];
    for folder in ["precise-common/src", "precise-ebpf/src"] {
        collect(root, Path::new(folder), &mut files)?;
    }
    sha256::of_files(root, &files)
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(root.join(folder)).with_context(|| {
        format!("{} cannot be listed, and the object is made of what it holds", folder.display())
    })?;
    for entry in entries {
        let entry = entry.with_context(|| format!("{} cannot be listed", folder.display()))?;
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(files: &[(&str, &str)]) -> Stamp {
        let made_by = MadeBy {
            rustc: "rustc 1".into(),
            rustc_llvm: "22.1.8".into(),
            bpf_linker: "bpf-linker 0".into(),
            llvm: "22.1.8".into(),
        };
        let sources_sha256 = files.iter().map(|(file, hash)| ((*file).into(), (*hash).into())).collect();
        Stamp { object_sha256: "0".into(), made_by, target_cpu: "v3".into(), sources_sha256 }
    }

    #[test]
    fn a_stamp_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stamp.json");
        let written = stamp(&[("a", "1")]);
        fs::write(&file, written.to_text().unwrap()).unwrap();
        assert_eq!(Stamp::read(&file).unwrap(), written);
        fs::write(&file, "{}").unwrap();
        let error = format!("{:#}", Stamp::read(&file).unwrap_err());
        assert!(error.contains("cargo xtask build-ebpf"), "{error}");
    }

    #[test]
    fn every_change_of_the_sources_is_named() {
        let then = stamp(&[("same", "1"), ("changed", "2"), ("gone", "3")]);
        let now = stamp(&[("same", "1"), ("changed", "4"), ("new", "5")]).sources_sha256;
        assert_eq!(then.changed_sources(&now), ["changed was changed", "new is new", "gone is gone"]);
        assert!(then.changed_sources(&then.sources_sha256).is_empty());
    }

    #[test]
    fn another_tool_is_named_with_both_versions() {
        let then = stamp(&[]).made_by;
        let now = MadeBy { llvm: "22.1.9".into(), ..then.clone() };
        assert_eq!(then.differences(&now), ["the linker's LLVM is 22.1.9, and was 22.1.8"]);
        assert!(then.differences(&then).is_empty());
    }

    #[test]
    fn the_sources_are_rust_files_in_all_folders() {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("precise-common/Cargo.toml", ""),
            ("precise-common/src/lib.rs", ""),
            ("precise-common/src/notes.txt", ""),
            ("precise-ebpf/Cargo.lock", ""),
            ("precise-ebpf/Cargo.toml", ""),
            ("precise-ebpf/src/step/read.rs", "abc"),
        ] {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let sources = sources(root.path()).unwrap();
        assert_eq!(sources.len(), 5);
        assert!(sources["precise-ebpf/src/step/read.rs"].starts_with("ba7816bf8f01cfea"));
    }
}
