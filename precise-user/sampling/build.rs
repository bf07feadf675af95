//! Packs the program of the kernel.

use std::{env, fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    let object = PathBuf::from(var("CARGO_MANIFEST_DIR")?).join("../../precise-ebpf/prebuilt/precise.bpf.o");
    println!("cargo::rerun-if-changed={}", object.display());
    let packed = precise_packed::pack([("precise.bpf.o", fs::read(object)?.as_slice())])?;
    fs::write(PathBuf::from(var("OUT_DIR")?).join("object.z"), packed)
}

/// Returns a variable that cargo sets.
fn var(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
