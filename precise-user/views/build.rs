//! Packs the fonts of pictures.

use std::{env, fs, io, path::PathBuf};

use ttf_parser::{RawFace, Tag};

/// The tables that pictures need: outlines, widths, kerning, and which glyph a character has. The
/// others, such as the names of glyphs, are a tenth of a font.
const TABLES: [&[u8; 4]; 9] =
    [b"OS/2", b"cmap", b"glyf", b"head", b"hhea", b"hmtx", b"kern", b"loca", b"maxp"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let fonts = [("regular", dejavu::sans::regular()), ("bold", dejavu::sans::bold())];
    let small = fonts.iter().map(|(_, font)| only_needed(font)).collect::<io::Result<Vec<_>>>()?;
    let named = fonts.iter().zip(&small).map(|((name, _), font)| (*name, font.as_slice()));
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(PathBuf::from(folder).join("fonts.z"), precise_packed::pack(named)?)
}

/// Returns a font with [`TABLES`] only. Checksums are those of the font: nothing here reads them.
fn only_needed(font: &[u8]) -> io::Result<Vec<u8>> {
    let face = RawFace::parse(font, 0).map_err(io::Error::other)?;
    let kept: Vec<_> = face.table_records.into_iter().filter(|r| kept(r.tag)).collect();
    let mut directory = font.get(..4).unwrap_or_default().to_vec();
    let number = u16::try_from(kept.len()).map_err(io::Error::other)?;
    // What follows the number helps a binary search; readers compute it.
    directory.extend([number, 0, 0, 0].map(u16::to_be_bytes).concat());
    let (start, mut tables) = (directory.len() + 16 * kept.len(), Vec::new());
    for record in kept {
        let table = face.table(record.tag).ok_or_else(|| io::Error::other("a table without bytes"))?;
        let offset = u32::try_from(start + tables.len()).map_err(io::Error::other)?;
        let words = [record.tag.0, record.check_sum, offset, record.length];
        directory.extend(words.map(u32::to_be_bytes).concat());
        tables.extend_from_slice(table);
        tables.resize(tables.len().next_multiple_of(4), 0);
    }
    directory.extend(tables);
    Ok(directory)
}

fn kept(tag: Tag) -> bool {
    TABLES.iter().any(|name| Tag::from_bytes(name) == tag)
}
