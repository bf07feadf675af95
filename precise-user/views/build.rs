//! Packs the fonts of pictures.

use std::{env, fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let fonts = [("regular", dejavu::sans::regular()), ("bold", dejavu::sans::bold())];
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(PathBuf::from(folder).join("fonts.z"), precise_packed::pack(fonts)?)
}
