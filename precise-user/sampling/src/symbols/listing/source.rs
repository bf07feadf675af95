//! A cache of source files, each read once, from the folders that the user asked for.

use std::{
    fs::{canonicalize, metadata},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use rustc_hash::FxHashMap;

use crate::symbols::opening::Folder;

/// Maximum number of bytes of a source file that are read.
const MAX_SOURCE: u64 = 16 << 20;
/// Maximum number of bytes that the texts of all files take, with the positions of their lines.
pub const MAX_SOURCES: usize = 64 << 20;
/// Maximum number of bytes of a line that is returned: a view repeats a line for each instruction
/// that belongs to it.
const MAX_LINE: usize = 1 << 10;

/// The lines of source files below some folders.
///
/// The line table of a profiled program names the files, so it could name any file of the machine.
/// Only the user decides what a report may show: a file outside of the folders is never opened.
#[derive(Debug, Default)]
pub struct SourceFiles {
    folders: Vec<Folder>,
    files: FxHashMap<String, Option<Text>>,
    outside: Option<Outside>,
    held: usize,
    beyond_limit: usize,
}

/// Source files that exist, and are outside of the folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// Number of files.
    pub files: usize,
    /// A folder that contains all of them; if only `/` does, a folder of some of them. Never `/`,
    /// which contains every file of the machine: `None` if all files are in `/` itself.
    pub folder: Option<PathBuf>,
}

impl SourceFiles {
    /// Adds a folder whose files, and those below it, may be read. Without any folder, no line is
    /// returned.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no folder at this path.
    pub fn add(&mut self, folder: &Path) -> io::Result<()> {
        self.folders.push(Folder::open(folder)?);
        Ok(())
    }

    /// Returns whether there is no folder.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// Returns a line of a file, counted from 1; `None` if the file does not exist here, is outside
    /// of the folders, or is shorter. The file may differ from the one that was compiled: line
    /// information has no checksum to compare. The rest of a very long line is cut.
    pub fn line(&mut self, file: &str, line: u32) -> Option<String> {
        if !self.files.contains_key(file) {
            let text = self.read(Path::new(file));
            self.files.insert(file.to_owned(), text);
        }
        self.files.get(file)?.as_ref()?.line(line)
    }

    /// Returns the files that were asked for and not read because they are outside of the folders;
    /// `None` if there are none.
    pub const fn outside(&self) -> Option<&Outside> {
        self.outside.as_ref()
    }

    /// Returns the number of files whose lines would have taken more memory than all files may.
    pub const fn beyond_limit(&self) -> usize {
        self.beyond_limit
    }

    fn read(&mut self, path: &Path) -> Option<Text> {
        if !path.is_absolute() {
            return None;
        }
        // This looks the path up, and opens nothing.
        let real = canonicalize(path).ok()?;
        let beneath = |folder| Some((folder, real.strip_prefix(Folder::path(folder)).ok()?));
        let Some((folder, path)) = self.folders.iter().find_map(beneath) else {
            // No folder would show the lines of anything but a regular file.
            if metadata(&real).is_ok_and(|found| found.is_file()) {
                self.outside.get_or_insert_default().count(&real);
            }
            return None;
        };
        // What the path leads to may have changed since: the kernel keeps it within the folder.
        let file = folder.file(path).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_SOURCE).read_to_end(&mut bytes).ok()?;
        let text = Text::new(bytes);
        let held = self.held.saturating_add(text.size());
        if held > MAX_SOURCES {
            self.beyond_limit += 1;
            return None;
        }
        self.held = held;
        Some(text)
    }
}

impl Outside {
    fn count(&mut self, file: &Path) {
        self.files += 1;
        let root = Path::new("/");
        let Some(folder) = file.parent().filter(|folder| *folder != root) else { return };
        let so_far = self.folder.get_or_insert_with(|| folder.to_owned());
        let common = so_far.ancestors().find(|ancestor| folder.starts_with(ancestor));
        if let Some(common) = common.filter(|common| *common != root) {
            *so_far = common.to_owned();
        }
    }
}

/// The text of a file.
#[derive(Debug)]
struct Text {
    bytes: Vec<u8>,
    /// The position after each line, and after its line end if it has one.
    ends: Vec<u32>,
}

impl Text {
    fn new(mut bytes: Vec<u8>) -> Self {
        bytes.shrink_to_fit();
        let mut end = 0u32;
        let mut ends: Vec<u32> = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            // The positions fit, because a text has at most MAX_SOURCE bytes.
            end = end.saturating_add(u32::try_from(line.len()).unwrap_or(u32::MAX));
            ends.push(end);
        }
        ends.shrink_to_fit();
        Self { bytes, ends }
    }

    /// Returns the number of bytes of memory that the text takes.
    fn size(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    fn line(&self, line: u32) -> Option<String> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let end = |index: usize| Some(*self.ends.get(index)? as usize);
        let start = if index == 0 { 0 } else { end(index - 1)? };
        let line = self.bytes.get(start..end(index)?)?;
        let line = line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line));
        if line.len() <= MAX_LINE {
            return Some(String::from_utf8_lossy(line).into_owned());
        }
        // The last character may be incomplete.
        let cut = String::from_utf8_lossy(&line[..MAX_LINE]);
        Some(format!("{}…", cut.trim_end_matches(char::REPLACEMENT_CHARACTER)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    /// A folder `project` with a source file, and a file beside the folder.
    fn project() -> (tempfile::TempDir, PathBuf) {
        let all = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(all.path()).unwrap();
        fs::create_dir_all(root.join("project/src")).unwrap();
        fs::write(root.join("project/src/a.c"), "one\r\ntwo\n\nfour").unwrap();
        fs::write(root.join("secret"), "secret\n").unwrap();
        (all, root)
    }

    fn below(folder: &Path) -> SourceFiles {
        let mut sources = SourceFiles::default();
        sources.add(folder).unwrap();
        sources
    }

    fn first(sources: &mut SourceFiles, file: impl AsRef<Path>) -> Option<String> {
        sources.line(file.as_ref().to_str().unwrap(), 1)
    }

    #[test]
    fn lines_are_those_of_the_text() {
        let (_all, root) = project();
        let file = root.join("project/src/a.c");
        let mut sources = below(&root);
        let lines: Vec<_> = (0..6).map(|line| sources.line(file.to_str().unwrap(), line)).collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(lines, [None, text("one"), text("two"), text(""), text("four"), None]);
        assert_eq!(first(&mut sources, "relative.c"), None);
        assert_eq!(first(&mut sources, root.join("missing.c")), None);
        assert_eq!((sources.outside(), sources.beyond_limit()), (None, 0));
    }

    #[test]
    fn only_files_below_the_folders() {
        let (_all, root) = project();
        let project = root.join("project");
        symlink("../secret", project.join("out.c")).unwrap();
        symlink(root.join("secret"), project.join("absolute.c")).unwrap();
        symlink("src/a.c", project.join("in.c")).unwrap();
        symlink(&project, root.join("link")).unwrap();
        let mut sources = below(&project);
        for inside in ["project/src/a.c", "project/src/../in.c", "project/../project/in.c", "link/src/a.c"] {
            assert_eq!(first(&mut sources, root.join(inside)).as_deref(), Some("one"), "{inside}");
        }
        assert_eq!(sources.outside(), None);
        let outside = ["secret", "project/../secret", "project/src/../../secret", "link/../secret"];
        for outside in outside.iter().chain(&["project/out.c", "project/absolute.c"]) {
            assert_eq!(first(&mut sources, root.join(outside)), None, "{outside}");
        }
        assert_eq!(sources.outside(), Some(&Outside { files: 6, folder: Some(root.clone()) }));
        // A name that begins like the folder's is another folder.
        fs::create_dir(root.join("project2")).unwrap();
        fs::write(root.join("project2/b.c"), "b").unwrap();
        assert_eq!(first(&mut sources, root.join("project2/b.c")), None);

        let mut sources = below(&root.join("link"));
        sources.add(&root.join("project2")).unwrap();
        assert_eq!(first(&mut sources, project.join("src/a.c")).as_deref(), Some("one"));
        assert_eq!(first(&mut sources, root.join("project2/b.c")).as_deref(), Some("b"));
        assert_eq!(first(&mut SourceFiles::default(), root.join("secret")), None, "no folder, no line");
        assert!(SourceFiles::default().add(&root.join("secret")).is_err(), "not a folder");
        assert!(SourceFiles::default().add(&root.join("missing")).is_err());
    }

    #[test]
    fn a_folder_that_is_replaced_by_a_link_leads_nowhere_else() {
        let (_all, root) = project();
        let project = root.join("project");
        let mut sources = below(&project);
        fs::rename(&project, root.join("moved")).unwrap();
        symlink("/etc", &project).unwrap();
        assert_eq!(first(&mut sources, project.join("passwd")), None);
    }

    #[test]
    fn only_regular_files() {
        let (_all, root) = project();
        let fifo = root.join("project/fifo.c");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let mut sources = below(&root.join("project"));
        // The test would wait forever if the FIFO were opened for reading.
        assert_eq!(first(&mut sources, fifo), None);
        assert_eq!(first(&mut sources, root.join("project/src")), None);
        assert_eq!(first(&mut sources, "/dev/zero"), None);
        assert_eq!(sources.outside(), None, "no folder would show the lines of a device");
        let mut all = below(Path::new("/"));
        assert_eq!(first(&mut all, "/dev/zero"), None);
        assert_eq!(first(&mut all, root.join("secret")).as_deref(), Some("secret"));
    }

    #[test]
    fn the_folder_to_name_contains_all_files_but_is_never_the_root() {
        let mut outside = Outside::default();
        let mut after = |file: &str| {
            outside.count(Path::new(file));
            outside.folder.clone().unwrap_or_default()
        };
        assert_eq!(after("/swapfile"), Path::new(""));
        assert_eq!(after("/srv/app/src/net/a.c"), Path::new("/srv/app/src/net"));
        assert_eq!(after("/srv/app/src/network/b.c"), Path::new("/srv/app/src"));
        assert_eq!(after("/srv/app/src/c.c"), Path::new("/srv/app/src"));
        assert_eq!(after("/srv/app/include/d.h"), Path::new("/srv/app"));
        assert_eq!(after("/etc/shadow"), Path::new("/srv/app"));
        assert_eq!(after("/initrd.img"), Path::new("/srv/app"));
        assert_eq!(outside.files, 7);

        // Each file counts once, however many of its lines are asked for.
        let (_all, root) = project();
        let mut sources = SourceFiles::default();
        let file = root.join("project/src/a.c");
        for line in 0..5 {
            assert_eq!(sources.line(file.to_str().unwrap(), line), None);
        }
        assert_eq!(sources.outside(), Some(&Outside { files: 1, folder: Some(root.join("project/src")) }));
    }

    #[test]
    fn memory_is_bounded() {
        let (_all, root) = project();
        // Line ends only: the positions of lines take more memory than the text.
        let newlines = root.join("newlines.c");
        fs::write(&newlines, vec![b'\n'; MAX_SOURCE as usize + 1]).unwrap();
        let mut sources = below(&root);
        assert_eq!(first(&mut sources, &newlines), None);
        assert_eq!(sources.beyond_limit(), 1);
        // The lines beyond the first 16 MiB of a file are missing, and the rest of a long line.
        for at in 0..5 {
            let large = root.join(format!("large{at}.c"));
            File::create(&large).unwrap().set_len(MAX_SOURCE * 2).unwrap();
            let line = first(&mut sources, &large);
            assert_eq!(line.map(|line| line.len()), (at < 3).then_some(MAX_LINE + "…".len()), "{at}");
        }
        assert_eq!(sources.beyond_limit(), 3);
        assert!(sources.held <= MAX_SOURCES);
        assert_eq!(
            first(&mut sources, root.join("secret")).as_deref(),
            Some("secret"),
            "there is room for it"
        );
        let accents = root.join("accents.c");
        fs::write(&accents, format!("x{}", "é".repeat(MAX_LINE))).unwrap();
        let line = first(&mut sources, &accents).unwrap();
        assert!(line.ends_with("é…") && line.len() <= MAX_LINE + "…".len(), "{line}");
    }
}
