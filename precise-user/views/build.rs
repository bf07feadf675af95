//! Packs the fonts of pictures.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::{env, fs, io, path::PathBuf};

use ttf_parser::{Face, Tag};

/// The tables that pictures need: outlines, widths, and which glyph a character has. The others,
/// such as the names of glyphs, are a tenth of a font.
const TABLES: [&[u8; 4]; 8] = [b"OS/2", b"cmap", b"glyf", b"head", b"hhea", b"hmtx", b"loca", b"maxp"];

/// The characters that have their own outlines; all others of the font look like one that it does
/// not have. Not among them are scripts from right to left, which a picture would draw in the wrong
/// direction, and a few large ones of which names are hardly made (Canadian syllabics, hexagrams).
/// All would be a third more.
const CHARACTERS: [RangeInclusive<char>; 9] = [
    // Latin, Greek, Cyrillic, Armenian.
    '\0'..='\u{58f}',
    // Georgian.
    '\u{10a0}'..='\u{10ff}',
    // Phonetic letters, more of Latin and Greek.
    '\u{1d00}'..='\u{1fff}',
    // Punctuation, currencies, arrows, mathematics, boxes, Braille.
    '\u{2000}'..='\u{2bff}',
    // More of Latin and Cyrillic.
    '\u{2c60}'..='\u{2c7f}',
    '\u{a640}'..='\u{a69f}',
    '\u{a700}'..='\u{a7ff}',
    // Ligatures.
    '\u{fb00}'..='\u{fb17}',
    // What stands for bytes that are no text.
    '\u{fffd}'..='\u{fffd}',
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let fonts = [("regular", dejavu::sans::regular()), ("bold", dejavu::sans::bold())];
    let small = fonts.iter().map(|(_, font)| only_needed(font)).collect::<io::Result<Vec<_>>>()?;
    let named = fonts.iter().zip(&small).map(|((name, _), font)| (*name, font.as_slice()));
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(PathBuf::from(folder).join("fonts.z"), precise_packed::pack(named)?)
}

/// Returns a font with [`TABLES`] and the outlines of [`CHARACTERS`] only. Checksums are those of
/// the font: nothing here reads them.
fn only_needed(font: &[u8]) -> io::Result<Vec<u8>> {
    let face = Face::parse(font, 0).map_err(io::Error::other)?;
    let (glyf, loca) = outlines(&face)?;
    let face = face.raw_face();
    let kept: Vec<_> = face.table_records.into_iter().filter(|r| kept(r.tag)).collect();
    let mut directory = font.get(..4).unwrap_or_default().to_vec();
    let number = u16::try_from(kept.len()).map_err(io::Error::other)?;
    // What follows the number helps a binary search; readers compute it.
    directory.extend([number, 0, 0, 0].map(u16::to_be_bytes).concat());
    let (start, mut tables) = (directory.len() + 16 * kept.len(), Vec::new());
    for record in kept {
        let table = match &record.tag.to_bytes() {
            b"glyf" => &glyf,
            b"loca" => &loca,
            _ => face.table(record.tag).ok_or_else(|| io::Error::other("a table without bytes"))?,
        };
        let offset = u32::try_from(start + tables.len()).map_err(io::Error::other)?;
        let length = u32::try_from(table.len()).map_err(io::Error::other)?;
        directory.extend([record.tag.0, record.check_sum, offset, length].map(u32::to_be_bytes).concat());
        tables.extend_from_slice(table);
        tables.resize(tables.len().next_multiple_of(4), 0);
    }
    directory.extend(tables);
    Ok(directory)
}

fn kept(tag: Tag) -> bool {
    TABLES.iter().any(|name| Tag::from_bytes(name) == tag)
}

/// Returns the outlines of a font ("glyf") and where each begins ("loca"). An outline that no
/// character of [`CHARACTERS`] needs is that of glyph 0, which stands for characters that a font
/// does not have; equal bytes are packed to nearly none.
fn outlines(face: &Face<'_>) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let missing = || io::Error::other("the font has no long table of outlines");
    let tables = face.raw_face();
    let table = |name| tables.table(Tag::from_bytes(name)).ok_or_else(missing);
    let (glyf, head) = (table(b"glyf")?, table(b"head")?);
    // indexToLocFormat: offsets of 32 bits.
    if head.get(50..52) != Some(&[0, 1]) {
        return Err(missing());
    }
    let starts: Vec<usize> =
        table(b"loca")?.as_chunks().0.iter().map(|start| u32::from_be_bytes(*start) as usize).collect();
    let outline = |ends: &[usize]| glyf.get(ends[0]..ends[1]).ok_or_else(missing);
    let old = starts.windows(2).map(outline).collect::<io::Result<Vec<&[u8]>>>()?;
    let mut needed: BTreeSet<u16> = BTreeSet::from([0]);
    let mut found: Vec<u16> = CHARACTERS
        .into_iter()
        .flatten()
        .filter_map(|letter| face.glyph_index(letter))
        .map(|id| id.0)
        .collect();
    while let Some(glyph) = found.pop() {
        if needed.insert(glyph) {
            found.extend(old.get(usize::from(glyph)).into_iter().flat_map(|outline| parts(outline)));
        }
    }
    let unknown = without_hints(old.first().ok_or_else(missing)?);
    let (mut outlines, mut loca) = (Vec::new(), Vec::new());
    for (glyph, outline) in (0..=u16::MAX).zip(old) {
        loca.extend(u32::try_from(outlines.len()).map_err(io::Error::other)?.to_be_bytes());
        match needed.contains(&glyph) || outline.is_empty() {
            true => outlines.extend(without_hints(outline)),
            false => outlines.extend_from_slice(&unknown),
        }
        outlines.resize(outlines.len().next_multiple_of(4), 0);
    }
    loca.extend(u32::try_from(outlines.len()).map_err(io::Error::other)?.to_be_bytes());
    Ok((outlines, loca))
}

/// Returns 16 bits of an outline; 0 beyond its end.
fn word(outline: &[u8], at: usize) -> u16 {
    outline.get(at..at + 2).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Returns the glyphs that an outline is put together from; none if it has contours of its own.
/// (OpenType, "glyf": Composite glyph description.)
fn parts(outline: &[u8]) -> Vec<u16> {
    const WORDS: u16 = 1;
    const SCALE: u16 = 8;
    const MORE: u16 = 0x20;
    const TWO_SCALES: u16 = 0x40;
    const MATRIX: u16 = 0x80;
    let (mut found, mut at) = (Vec::new(), 10);
    let is_composite = word(outline, 0).cast_signed() < 0;
    while is_composite && at < outline.len() {
        let flags = word(outline, at);
        found.push(word(outline, at + 2));
        at += if flags & WORDS == 0 { 6 } else { 8 };
        at += [(SCALE, 2), (TWO_SCALES, 4), (MATRIX, 8)]
            .iter()
            .find(|(flag, _)| flags & flag != 0)
            .map_or(0, |s| s.1);
        if flags & MORE == 0 {
            break;
        }
    }
    found
}

/// Returns an outline without the instructions that fit it to a coarse grid of pixels, which
/// nothing here follows. (OpenType, "glyf": Simple glyph description.)
fn without_hints(outline: &[u8]) -> Vec<u8> {
    let contours = word(outline, 0).cast_signed();
    let Ok(contours) = usize::try_from(contours) else { return outline.to_vec() };
    let at = 10 + 2 * contours;
    match (outline.get(..at), outline.get(at + 2 + usize::from(word(outline, at))..)) {
        (Some(before), Some(behind)) => [before, &[0, 0], behind].concat(),
        _ => outline.to_vec(),
    }
}
