//! Source files, read once each.

use std::{io::Read as _, path::Path, rc::Rc};

use rustc_hash::FxHashMap;

use crate::symbols::files::open_regular;

/// Bytes of one source file that are read at most.
const MAX_SOURCE: u64 = 16 << 20;

/// The text of source files.
#[derive(Debug, Default)]
pub struct SourceFiles {
    files: FxHashMap<String, Option<Rc<[String]>>>,
}

impl SourceFiles {
    /// A line of a file, 1-based; `None` where the file is not here, or is shorter. Nobody checks
    /// that it is the file that was compiled: line information has no sum to check by.
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
