//! Files that a binary carries compressed, because it may have 15 MB: the program of the kernel,
//! two fonts, the schemas of documents.
//!
//! A build script packs them, and `include_bytes!` takes what it wrote. The crate that needs one
//! unpacks it at its first use.
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! let schemas = [("list-1.json", b"{}".as_slice()), ("report-1.json", b"{\"a\": 1}")];
//! let packed = precise_packed::pack(schemas)?;
//! let files = precise_packed::unpack(&packed)?;
//! assert_eq!(files.find("report-1.json"), Some(b"{\"a\": 1}".as_slice()));
//! assert_eq!(files.find("report-2.json"), None);
//! # Ok(())
//! # }
//! ```

use std::io;

/// How much files are compressed. It takes a second in a build, and fonts and schemas are a quarter
/// smaller than by zlib.
const LEVEL: i32 = 19;

/// Packs files into one frame of Zstandard. Each is its name and its bytes, both behind their
/// length.
///
/// # Errors
///
/// Returns an error if a name or a file has more than 4 GiB.
pub fn pack<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> io::Result<Vec<u8>> {
    let mut parts = Vec::new();
    for (name, bytes) in files {
        for part in [name.as_bytes(), bytes] {
            let length = u32::try_from(part.len()).map_err(io::Error::other)?;
            parts.extend_from_slice(&length.to_le_bytes());
            parts.extend_from_slice(part);
        }
    }
    zstd::encode_all(parts.as_slice(), LEVEL)
}

/// Unpacks what [`pack`] made.
///
/// # Errors
///
/// Returns an error if the bytes are cut or are not of [`pack`].
pub fn unpack(packed: &[u8]) -> io::Result<PackedFiles> {
    // Nothing at all would be a stream without frames.
    if packed.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let bytes = zstd::decode_all(packed)?;
    let mut files = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let name = part(&bytes, &mut at)?;
        files.push((name, part(&bytes, &mut at)?));
    }
    Ok(PackedFiles { bytes, files })
}

/// Returns where the part at `at` is, and moves on to the next.
fn part(bytes: &[u8], at: &mut usize) -> io::Result<std::ops::Range<usize>> {
    let length = bytes.get(*at..).and_then(<[u8]>::first_chunk).map(|length| u32::from_le_bytes(*length));
    let start = at.saturating_add(size_of::<u32>());
    let end = start.saturating_add(length.ok_or(io::ErrorKind::UnexpectedEof)? as usize);
    if end > bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    *at = end;
    Ok(start..end)
}

/// Files that were packed together.
#[derive(Clone, Debug)]
pub struct PackedFiles {
    bytes: Vec<u8>,
    /// Where the name and the contents of each file are.
    files: Vec<(std::ops::Range<usize>, std::ops::Range<usize>)>,
}

impl PackedFiles {
    /// Returns the contents of the file with this name.
    pub fn find(&self, name: &str) -> Option<&[u8]> {
        let (_, contents) = self.files.iter().find(|(is, _)| self.bytes[is.clone()] == *name.as_bytes())?;
        Some(&self.bytes[contents.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_an_error_and_not_a_file() {
        let packed = pack([("a", b"first".as_slice()), ("empty", b"")]).unwrap();
        let files = unpack(&packed).unwrap();
        assert_eq!(files.find("a"), Some(b"first".as_slice()));
        assert_eq!(files.find("empty"), Some(b"".as_slice()));
        assert_eq!(files.find(""), None);
        (0..packed.len()).for_each(|length| assert!(unpack(&packed[..length]).is_err(), "{length}"));
        let short = [1, 0, 0, 0, b'a', 9, 0, 0, 0, b'b'];
        assert!(unpack(&zstd::encode_all(short.as_slice(), LEVEL).unwrap()).is_err());
    }
}
