//! All files of a release, and the list of their checksums.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::binary::Binary;
use super::contents::{self, Zsh};
use super::release::Release;
use super::tree::StagedTree;
use super::{deb, oci, rpm, sbom};
use crate::{checkout, sha256};

/// The name of the list of checksums.
pub const SUMS: &str = "SHA256SUMS";
/// The folder of the Helm chart in the checkout.
pub const CHART: &str = "packaging/helm/precise";

/// Files of the checkout that are released as they are: from, and the name.
const AS_THEY_ARE: &[(&str, &str)] = &[
    ("packaging/kubernetes/daemonset.yaml", "precise-daemonset.yaml"),
    ("packaging/prometheus/precise.rules.yml", "precise.rules.yml"),
    ("packaging/grafana/precise.json", "precise.dashboard.json"),
];

/// Makes everything in `folder`, which is emptied first, and returns the names of the files.
/// `work` is for what is only needed meanwhile.
pub fn make(release: &Release, binary: &Binary, work: &Path, folder: &Path) -> Result<Vec<String>> {
    for emptied in [work, folder] {
        if emptied.exists() {
            fs::remove_dir_all(emptied).with_context(|| format!("cannot remove {}", emptied.display()))?;
        }
        fs::create_dir_all(emptied).with_context(|| format!("cannot create {}", emptied.display()))?;
    }
    let mut names = vec![
        archive(release, binary, work, folder)?,
        deb::make(release, binary, work, folder)?,
        rpm::make(release, binary, work, folder)?,
        oci::make(release, binary, work, folder)?,
        chart(release, work, folder)?,
    ];
    let mut add = |name: String, bytes: &[u8]| {
        let file = folder.join(&name);
        fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
        names.push(name);
        anyhow::Ok(())
    };
    add(format!("{}.cdx.json", stem(release, binary)?), &sbom::make(release, &binary.target)?)?;
    add(format!("{}.debug", stem(release, binary)?), &fs::read(&binary.debug)?)?;
    for (from, name) in AS_THEY_ARE {
        let file = checkout::root().join(from);
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        add((*name).to_owned(), &bytes)?;
    }
    names.sort();
    let files: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    let sums = sha256::of_files(folder, &files)?;
    let sums: String = sums.iter().map(|(name, hash)| format!("{hash}  {name}\n")).collect();
    fs::write(folder.join(SUMS), sums).with_context(|| format!("cannot write {SUMS}"))?;
    names.push(SUMS.to_owned());
    fs::remove_dir_all(work).with_context(|| format!("cannot remove {}", work.display()))?;
    Ok(names)
}

/// Checks that two folders have the same files, by their lists of checksums.
pub fn same(one: &Path, two: &Path) -> Result<()> {
    let read = |folder: &Path| {
        let file = folder.join(SUMS);
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    };
    let (one, two) = (read(one)?, read(two)?);
    let differs = one.lines().zip(two.lines()).find(|(one, two)| one != two);
    if let Some((one, two)) = differs {
        bail!("made twice, the bytes differ: {one} and then {two}");
    }
    ensure!(one.len() == two.len(), "made twice, one time has more files");
    Ok(())
}

fn stem(release: &Release, binary: &Binary) -> Result<String> {
    Ok(format!("precise-{}-{}-linux", release.version, binary.architecture()?.rpm))
}

/// Makes the archive for `tar -C /usr/local --strip-components=1 -xzf`: program, manual pages,
/// completions and documents, without a service.
fn archive(release: &Release, binary: &Binary, work: &Path, folder: &Path) -> Result<String> {
    let all = contents::stage(release, binary, Zsh::Site, work.join("all"))?;
    let usr = StagedTree::adopt(all.root().join("usr"), release);
    let service = usr.root().join("lib");
    fs::remove_dir_all(&service).with_context(|| format!("cannot remove {}", service.display()))?;
    usr.settle()?;
    let stem = stem(release, binary)?;
    let name = format!("{stem}.tar.gz");
    usr.tar_gz(&folder.join(&name), &format!("{stem}/"))?;
    Ok(name)
}

/// Packs the Helm chart as `helm package` does.
fn chart(release: &Release, work: &Path, folder: &Path) -> Result<String> {
    let tree = StagedTree::create(work.join("chart"), release)?;
    let root = checkout::root().join(CHART);
    for file in StagedTree::adopt(root.clone(), release).files()? {
        tree.copy(&file, 0o644, &root.join(&file))?;
    }
    tree.settle()?;
    let name = format!("precise-chart-{}.tgz", release.version);
    tree.tar_gz(&folder.join(&name), "precise/")?;
    Ok(name)
}
