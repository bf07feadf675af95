//! Files with debug information of other files: below the debug folders, or from a server.

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use precise_records::record::BuildId;

use super::{Inode, OpenFile, OpenFiles, headers, inode};
use crate::reader::Reader;
use crate::reader::elf::{Headers, by_build_id};
use crate::reader::protocol::FileId;
use crate::symbols::opening::{open_beneath, open_in_root};

/// A file with debug information of other files.
#[derive(Debug)]
pub struct Separate {
    /// Its number at the reader.
    pub id: FileId,
    /// The file.
    pub file: File,
    /// Its headers.
    pub elf: Headers,
    pub(super) inode: Inode,
}

impl OpenFiles {
    /// Looks for separate and supplementary debug information below the debug folders, of this
    /// machine or of `root`.
    pub(super) fn find_debug(&mut self, reader: &mut Reader, open: &mut OpenFile, root: Option<&Path>) {
        let Some(elf) = &open.elf else { return };
        if let Some(id) = open.build_id
            && let Some(name) = by_build_id(&id, ".debug")
        {
            open.debug = self.separate(reader, root, &name, |_, _, elf| elf.build_id() == Some(id));
        }
        if let (None, Some((name, sum))) = (&open.debug, &elf.debug_link) {
            let folder = Path::new(&open.path).parent().unwrap_or(Path::new("/"));
            let beside = folder.join(name).to_string_lossy().into_owned();
            let right = |reader: &mut Reader, file: &File, _: &Headers| {
                reader.has_checksum(file, *sum).unwrap_or(false)
            };
            open.debug = self
                .separate(reader, root, &beside, right)
                .or_else(|| self.separate(reader, root, name, right));
        }
        if let (None, Some(id), false) = (&open.debug, open.build_id, elf.described) {
            open.debug = self.served(reader, &id, &open.path);
        }
        let of = open.debug.as_ref().map_or(elf, |debug| &debug.elf);
        let Some((path, id)) = of.supplement() else { return };
        let same = |_: &mut Reader, _: &File, elf: &Headers| elf.build_id() == Some(id);
        let by_id = by_build_id(&id, ".debug").and_then(|name| self.separate(reader, root, &name, same));
        // dwz(1) puts its files into a folder of this name below the debug folder.
        let by_path = || path.find(".dwz/").and_then(|at| path.get(at..));
        open.supplement = by_id
            .or_else(|| by_path().and_then(|name| self.separate(reader, root, name, same)))
            .or_else(|| self.served(reader, &id, path));
    }

    /// Asks the server for the debug information with a build id, of the file at `path`.
    pub fn served(&mut self, reader: &mut Reader, id: &BuildId, path: &str) -> Option<Rc<Separate>> {
        let server = self.server.as_mut()?;
        let file = match server.debug_info(id) {
            Ok(found) => found?,
            Err(why) => {
                self.troubles.add(why);
                return None;
            }
        };
        let inode = inode(&file)?;
        if let Some(known) = self.separate.get(&inode).filter(|known| known.elf.build_id() == Some(*id)) {
            return Some(known.clone());
        }
        let served = format!("the debug information of {path} from a server");
        let elf = headers(reader, &file, &served, &mut self.troubles)?;
        let Some(elf) = elf.filter(|elf| elf.build_id() == Some(*id)) else {
            self.troubles.add(format!("{served} is not used: it has not the build id {}", id.hex()));
            server.refuse(id);
            return None;
        };
        let found = Rc::new(Separate { id: reader.new_id(), file, elf, inode });
        self.separate.insert(inode, found.clone());
        Some(found)
    }

    /// Opens the file `name` below one of the debug folders, if it is an ELF file and `right`.
    pub fn separate(
        &mut self,
        reader: &mut Reader,
        root: Option<&Path>,
        name: &str,
        right: impl Fn(&mut Reader, &File, &Headers) -> bool,
    ) -> Option<Rc<Separate>> {
        let name = Path::new(name).strip_prefix("/").unwrap_or(Path::new(name));
        for dir in self.debug_dirs.clone() {
            let file = match root {
                None => open_beneath(&dir, name),
                Some(root) => open_in_root(root, &dir.join(name)),
            };
            let Ok(file) = file else { continue };
            if let Some(found) = self.separate_of(reader, file, &dir.join(name), &right) {
                return Some(found);
            }
        }
        None
    }

    /// Returns a file with debug information of others, if it is an ELF file and `right`. `path` is
    /// for notes.
    pub fn separate_of(
        &mut self,
        reader: &mut Reader,
        file: File,
        path: &Path,
        right: impl Fn(&mut Reader, &File, &Headers) -> bool,
    ) -> Option<Rc<Separate>> {
        let inode = inode(&file)?;
        if let Some(known) = self.separate.get(&inode) {
            return right(reader, &known.file, &known.elf).then(|| known.clone());
        }
        let elf = headers(reader, &file, &path.display().to_string(), &mut self.troubles)??;
        if !right(reader, &file, &elf) {
            return None;
        }
        let found = Rc::new(Separate { id: reader.new_id(), file, elf, inode });
        self.separate.insert(inode, found.clone());
        Some(found)
    }
}
