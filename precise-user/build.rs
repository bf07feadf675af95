//! Packs the schemas of documents.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let folder = Path::new(&var("CARGO_MANIFEST_DIR")?).join("../docs/schemas");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    // A folder has no order, and the same files must make the same binary.
    files.sort_unstable();
    let packed = precise_packed::pack(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))?;
    fs::write(PathBuf::from(var("OUT_DIR")?).join("schemas.z"), packed)
}

/// Returns a variable that cargo sets.
fn var(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
