//! Files that the compiler split debug information off to (`-gsplit-dwarf`): `.dwp` and `.dwo`
//! files beside the binary.
//!
//! The binary names them, and could name any file of the machine. So only files below the folder of
//! the binary are opened, and the reader decides whether they are what they should be.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use rustc_hash::FxHashMap;

use crate::reader::protocol::FileId;
use crate::reader::{Reader, Split};
use crate::symbols::mapping::DELETED;
use crate::symbols::opening::open_in_root;

/// Maximum number of files that are held open. A binary may have thousands.
const MAX_OPEN: usize = 64;
/// Maximum number of names whose file is remembered, or that there is none.
const MAX_NAMES: usize = 4096;

/// Files with split debug information.
#[derive(Debug, Default)]
pub(super) struct SplitFiles {
    /// By binary, and by the name that it has for the file.
    by_name: FxHashMap<(FileId, String), Option<PathBuf>>,
    open: FxHashMap<PathBuf, (FileId, File)>,
}

impl SplitFiles {
    /// Returns the file with the debug information that the file at `path`, which is below `root`,
    /// calls `name`.
    pub fn find(
        &mut self,
        reader: &mut Reader,
        (id, path): (FileId, &str),
        name: &str,
        root: &Path,
    ) -> Split<'_> {
        let key = (id, name.to_owned());
        if !self.by_name.contains_key(&key) {
            let path = Path::new(path.strip_suffix(DELETED).unwrap_or(path));
            let found = candidates(path, name).into_iter().find(|path| open_in_root(root, path).is_ok());
            if self.by_name.len() >= MAX_NAMES {
                self.by_name.clear();
            }
            self.by_name.insert(key.clone(), found);
        }
        let Some(Some(path)) = self.by_name.get(&key) else { return Split::Missing };
        if !self.open.contains_key(path) {
            let Ok(file) = open_in_root(root, path) else { return Split::Missing };
            if self.open.len() >= MAX_OPEN {
                reader.forget(self.open.drain().map(|(_, (id, _))| id).collect());
            }
            self.open.insert(path.clone(), (reader.new_id(), file));
        }
        self.open.get(path).map_or(Split::Missing, |(id, file)| Split::Found(*id, file))
    }
}

/// Returns where the debug information may be that the binary at a path calls `name`: all of the
/// binary's in one file, at the same place below its folder as it was below that of the compiler,
/// or beside it.
fn candidates(binary: &Path, name: &str) -> Vec<PathBuf> {
    let folder = binary.parent().unwrap_or(Path::new("/"));
    let name = Path::new(name);
    let below = name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let mut package = binary.as_os_str().to_owned();
    package.push(".dwp");
    let beside = name.file_name().map(|name| folder.join(name));
    let below = below.then(|| folder.join(name));
    [Some(PathBuf::from(package)), below, beside].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_below_the_folder_of_the_binary() {
        let of = |name| candidates(Path::new("/srv/bin/app"), name);
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let package = "/srv/bin/app.dwp";
        assert_eq!(of("obj/a.dwo"), paths(&[package, "/srv/bin/obj/a.dwo", "/srv/bin/a.dwo"]));
        for outside in ["/etc/a.dwo", "../a.dwo", "obj/../../a.dwo"] {
            assert_eq!(of(outside), paths(&[package, "/srv/bin/a.dwo"]), "{outside}");
        }
        assert_eq!(of(".."), paths(&[package]));
    }
}
