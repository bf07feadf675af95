//! An image without a distribution: the static binary in one layer, as a tar of the OCI image
//! layout, which every container tool loads.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::binary::Binary;
use super::contents::{self, PROGRAM};
use super::release::Release;
use super::tree::StagedTree;
use crate::sha256;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Makes the image in `folder` and returns the name of its archive.
pub fn make(release: &Release, binary: &Binary, work: &Path, folder: &Path) -> Result<String> {
    let tree = contents::stage_image(release, binary, work.join("image"))?;
    tree.settle()?;
    let plain = work.join("layer.tar");
    let packed = work.join("layer.tar.gz");
    tree.tar(&plain, "")?;
    tree.tar_gz(&packed, "")?;

    let layout =
        Layout { tree: StagedTree::create(work.join("layout"), release)?, scratch: work.join("blob") };
    let layer = fs::read(&packed).with_context(|| format!("cannot read {}", packed.display()))?;
    let layer = layout.blob(LAYER, &layer)?;
    let diff = format!("sha256:{}", sha256::of_file(&plain)?);
    let config = layout.blob(CONFIG, &text(&config(release, binary.architecture()?.debian, &diff))?)?;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
        "annotations": annotations(release),
    });
    let mut manifest = layout.blob(MANIFEST, &text(&manifest)?)?;
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": release.version });
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    layout.tree.write("index.json", 0o644, &text(&index)?)?;
    layout.tree.write("oci-layout", 0o644, &text(&json!({ "imageLayoutVersion": "1.0.0" }))?)?;
    layout.tree.settle()?;
    let name = format!("precise-{}-oci.tar", release.version);
    layout.tree.tar(&folder.join(&name), "")?;
    Ok(name)
}

/// The layout: blobs by their hash.
struct Layout {
    tree: StagedTree,
    scratch: PathBuf,
}

impl Layout {
    /// Adds a blob and returns its descriptor.
    fn blob(&self, media_type: &str, bytes: &[u8]) -> Result<Value> {
        fs::write(&self.scratch, bytes)
            .with_context(|| format!("cannot write {}", self.scratch.display()))?;
        let hash = sha256::of_file(&self.scratch)?;
        self.tree.write(&format!("blobs/sha256/{hash}"), 0o644, bytes)?;
        Ok(json!({ "mediaType": media_type, "digest": format!("sha256:{hash}"), "size": bytes.len() }))
    }
}

fn config(release: &Release, architecture: &str, diff: &str) -> Value {
    json!({
        "created": created(release),
        "architecture": architecture,
        "os": "linux",
        "config": { "Entrypoint": [format!("/{PROGRAM}")], "Cmd": ["--help"], "Labels": annotations(release) },
        "rootfs": { "type": "layers", "diff_ids": [diff] },
        "history": [{ "created": created(release), "created_by": "cargo xtask dist" }],
    })
}

fn annotations(release: &Release) -> Value {
    json!({
        "org.opencontainers.image.title": "precise",
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.revision": release.commit,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
    })
}

/// Returns the day of the commit as a time, which is all that an image needs.
fn created(release: &Release) -> String {
    format!("{}T00:00:00Z", release.date)
}

fn text(value: &Value) -> Result<Vec<u8>> {
    serde_json::to_vec(value).context("cannot write JSON")
}
