//! A cache of source files, each read once.

use std::{io::Read as _, path::Path, rc::Rc};

use rustc_hash::FxHashMap;

use crate::symbols::files::open_regular;

/// Maximum number of bytes of a source file that are read.
const MAX_SOURCE: u64 = 16 << 20;

/// The lines of source files.
#[derive(Debug, Default)]
pub struct SourceFiles {
    files: FxHashMap<String, Option<Rc<[String]>>>,
}

impl SourceFiles {
    /// Returns a line of a file, counted from 1; `None` if the file does not exist here or is
    /// shorter. The file may differ from the one that was compiled: line information has no
    /// checksum to compare.
    pub fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        if !self.files.contains_key(file) {
            self.files.insert(file.to_owned(), read(Path::new(file)));
        }
        let lines = self.files.get(file)?.as_ref()?;
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        lines.get(index).map(String::as_str)
    }
}

fn read(path: &Path) -> Option<Rc<[String]>> {
    if !path.is_absolute() {
        return None;
    }
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(MAX_SOURCE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}
