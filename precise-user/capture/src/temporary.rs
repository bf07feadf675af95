//! Files without a visible name until they are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::owner::give_to_caller;

/// The number of attempts to find a free temporary name.
const ATTEMPTS: u32 = 64;
/// The end of the name of a file that is not complete.
const PARTIAL: &str = ".partial";
/// The end of the name of a file that another one has replaced.
const OLD: &str = ".old";

/// A file that has no name in its folder until [`Temporary::name`] gives it one, readable by its
/// owner only (mode 0600). Nothing of it is left when the process ends in any way, including
/// `SIGKILL`, unless [`Temporary::show`] gave it the name of a partial file. If the file system has
/// no such files (`O_TMPFILE`: NFS, 9p, older overlayfs), the file has a temporary name, which is
/// removed when this is dropped.
#[derive(Debug)]
pub(super) struct Temporary {
    folder: PathBuf,
    name: Option<PathBuf>,
    /// The visible name of the file until it is complete. It stays when this is dropped.
    partial: Option<PathBuf>,
}

impl Temporary {
    /// Creates a new file in `folder`.
    pub fn create(folder: &Path) -> io::Result<(File, Self)> {
        let nameless = open(folder, libc::O_TMPFILE);
        // The file gets its name through /proc, so without /proc it could never have one.
        if let Some(file) = nameless.ok().filter(|file| fs::symlink_metadata(link_to(file)).is_ok()) {
            give_to_caller(&file, folder);
            return Ok((file, Self { folder: folder.to_owned(), name: None, partial: None }));
        }
        let (file, name) = create_named(folder)?;
        Ok((file, Self { folder: folder.to_owned(), name: Some(name), partial: None }))
    }

    /// Gives `file`, which was created with this, a visible name until it is complete: `target`
    /// with `.partial`, and a number if that name exists. It never replaces a file. Returns whether
    /// the file did not have the name yet.
    pub fn show(&mut self, file: &File, target: &Path) -> io::Result<bool> {
        if self.partial.is_some() {
            return Ok(false);
        }
        for number in 1..=ATTEMPTS {
            let number = if number > 1 { format!(".{number}") } else { String::new() };
            let name = with_end(target, &format!("{PARTIAL}{number}"));
            match link(file, &name) {
                Ok(()) => {
                    self.partial = Some(name);
                    return match self.name.take() {
                        Some(old) => fs::remove_file(old).map(|()| true),
                        None => Ok(true),
                    };
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Returns the visible name of the file until it is complete.
    pub fn partial(&self) -> Option<&Path> {
        self.partial.as_deref()
    }

    /// Gives `file`, which was created with this, the name `target` on the same file system. An
    /// existing file with that name is replaced.
    pub fn name(mut self, file: &File, target: &Path) -> io::Result<()> {
        if let Some(partial) = self.partial.as_deref().filter(|partial| is_at(file, partial)) {
            return fs::rename(partial, target);
        }
        let name = match self.name.take() {
            Some(name) => name,
            None => match link(file, target) {
                Ok(()) => return Ok(()),
                // linkat() does not replace an existing file; rename() does.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    free_name(&self.folder, |name| link(file, name))?.1
                }
                // For example, /proc was unmounted since. The data may have taken an hour to write,
                // so it is copied.
                Err(_) => self.copy(file)?,
            },
        };
        let renamed = fs::rename(&name, target);
        if renamed.is_err() {
            self.name = Some(name);
        }
        renamed
    }

    /// Gives `file`, which was created with this, the name `target` on the same file system, unless
    /// there is a file of that name. Returns whether there was none.
    pub fn name_new(self, file: &File, target: &Path) -> io::Result<bool> {
        let named = match &self.name {
            Some(name) => fs::hard_link(name, target),
            None => link(file, target),
        };
        match named {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Copies the file to one that has a name.
    fn copy(&mut self, mut file: &File) -> io::Result<PathBuf> {
        let (mut named, name) = create_named(&self.folder)?;
        self.name = Some(name.clone());
        file.seek(SeekFrom::Start(0))?;
        io::copy(&mut file, &mut named)?;
        named.sync_all()?;
        self.name = None;
        Ok(name)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _gone = fs::remove_file(name);
        }
    }
}

/// Creates a file without a name, which is removed when it is closed.
pub fn temporary() -> io::Result<File> {
    Ok(Temporary::create(&std::env::temp_dir())?.0)
}

/// Gives the file at `path`, if there is one and it is not empty, the additional name `path.old`,
/// so that `path` can be replaced. An older file of that name is replaced, and `path` has a file at
/// any time, if the file system has hard links. Returns the new name.
pub(super) fn keep_old(path: &Path, folder: &Path) -> io::Result<Option<PathBuf>> {
    if !fs::symlink_metadata(path).is_ok_and(|there| there.is_file() && there.len() > 0) {
        return Ok(None);
    }
    let old = old_name(path);
    let linked = free_name(folder, |name| fs::hard_link(path, name));
    let renamed = match &linked {
        Ok(((), name)) => {
            let renamed = fs::rename(name, &old);
            // It is still there if it could not be renamed, or if `old` was the same file before.
            let _gone = fs::remove_file(name);
            renamed
        }
        // No hard links, or none to files of others (`fs.protected_hardlinks`).
        Err(_) => fs::rename(path, &old),
    };
    renamed.map(|()| Some(old))
}

/// Returns the name of the file that `path` replaces: `path.old`.
pub(super) fn old_name(path: &Path) -> PathBuf {
    with_end(path, OLD)
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn create_named(folder: &Path) -> io::Result<(File, PathBuf)> {
    let (file, name) = free_name(folder, |name| open(name, libc::O_CREAT | libc::O_EXCL))?;
    give_to_caller(&file, folder);
    Ok((file, name))
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    OpenOptions::new().read(true).write(true).mode(0o600).custom_flags(flags).open(path)
}

/// Calls `make` with names until one is free in `folder`.
pub fn free_name<T>(folder: &Path, mut make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".precise-{}-{number}.tmp", std::process::id()));
        match make(&path) {
            Ok(made) => return Ok((made, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Returns whether an open file has this name. Somebody may have removed or replaced it.
fn is_at(file: &File, name: &Path) -> bool {
    let same =
        |(ours, there): (fs::Metadata, fs::Metadata)| (ours.dev(), ours.ino()) == (there.dev(), there.ino());
    file.metadata().ok().zip(fs::symlink_metadata(name).ok()).is_some_and(same)
}

/// Returns the path of an open file in /proc.
fn link_to(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Gives a file without a name a new, unused name (open(2), O_TMPFILE).
fn link(file: &File, name: &Path) -> io::Result<()> {
    let text = |path: &Path| Ok::<_, io::Error>(std::ffi::CString::new(path.as_os_str().as_bytes())?);
    let (from, to) = (text(&link_to(file))?, text(name)?);
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: two strings that end with 0 and outlive the call.
    let done = unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), follow) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may end at once")]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    /// Creates a file as on a file system without `O_TMPFILE`.
    fn named(folder: &Path) -> (File, Temporary) {
        let (file, name) = create_named(folder).unwrap();
        (file, Temporary { folder: folder.to_owned(), name: Some(name), partial: None })
    }

    #[test]
    fn a_name_is_given_at_the_end_and_replaces() {
        for make in [|folder: &Path| Temporary::create(folder).unwrap(), named] {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("x");
            for text in ["first", "second"] {
                let (mut file, temporary) = make(folder.path());
                file.write_all(text.as_bytes()).unwrap();
                temporary.name(&file, &target).unwrap();
                assert_eq!(
                    (names(folder.path()), fs::read_to_string(&target).unwrap().as_str()),
                    (vec!["x".to_owned()], text)
                );
            }
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
            // An abandoned file leaves nothing behind, and neither does one that cannot have its
            // name.
            drop(make(folder.path()));
            let (file, temporary) = make(folder.path());
            fs::create_dir(folder.path().join("y")).unwrap();
            assert!(temporary.name(&file, &folder.path().join("y")).is_err());
            let mut left = names(folder.path());
            left.sort();
            assert_eq!(left, ["x", "y"]);
        }
    }

    #[test]
    fn a_new_name_replaces_nothing() {
        for make in [|folder: &Path| Temporary::create(folder).unwrap(), named] {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("x");
            for (text, is_new) in [("first", true), ("second", false)] {
                let (mut file, temporary) = make(folder.path());
                file.write_all(text.as_bytes()).unwrap();
                assert_eq!(temporary.name_new(&file, &target).unwrap(), is_new);
                assert_eq!(names(folder.path()), ["x"]);
                assert_eq!(fs::read_to_string(&target).unwrap(), "first");
            }
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_partial_file_stays_and_replaces_nothing_but_its_target() {
        for make in [|folder: &Path| Temporary::create(folder).unwrap(), named] {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            let sorted = || {
                let mut names = names(folder.path());
                names.sort();
                names
            };
            fs::write(path("x.partial"), "of an earlier crash").unwrap();
            std::os::unix::fs::symlink("/no/such/file", path("x.partial.2")).unwrap();
            fs::write(path("x"), "old").unwrap();
            let (mut file, mut temporary) = make(folder.path());
            file.write_all(b"new").unwrap();
            assert!(temporary.show(&file, &path("x")).unwrap());
            assert!(!temporary.show(&file, &path("x")).unwrap());
            let mine = path("x.partial.3");
            assert_eq!(temporary.partial(), Some(mine.as_path()));
            assert_eq!(sorted(), ["x", "x.partial", "x.partial.2", "x.partial.3"]);
            assert_eq!(fs::metadata(&mine).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(fs::read_to_string(path("x")).unwrap(), "old");
            temporary.name(&file, &path("x")).unwrap();
            assert_eq!(sorted(), ["x", "x.partial", "x.partial.2"]);
            assert_eq!(fs::read_to_string(path("x")).unwrap(), "new");

            // A failure leaves what can be read.
            let (file, mut temporary) = make(folder.path());
            temporary.show(&file, &path("y")).unwrap();
            drop(temporary);
            assert!(path("y.partial").exists());
            // Somebody else's file of the same name is not taken for it.
            let (mut file, mut temporary) = make(folder.path());
            file.write_all(b"mine").unwrap();
            temporary.show(&file, &path("z")).unwrap();
            fs::remove_file(path("z.partial")).unwrap();
            fs::write(path("z.partial"), "somebody else's").unwrap();
            temporary.name(&file, &path("z")).unwrap();
            assert_eq!(fs::read_to_string(path("z")).unwrap(), "mine");
            assert_eq!(fs::read_to_string(path("z.partial")).unwrap(), "somebody else's");
        }
    }

    #[test]
    fn the_old_file_is_kept_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert_eq!(keep_old(&path("x"), folder.path()).unwrap(), None, "there is none");
        fs::write(path("x"), "").unwrap();
        assert_eq!(keep_old(&path("x"), folder.path()).unwrap(), None, "it is empty");
        for text in ["first", "second"] {
            fs::write(path("new"), text).unwrap();
            fs::rename(path("new"), path("x")).unwrap();
            // The second time, it has the name already.
            for _ in 0..2 {
                assert_eq!(keep_old(&path("x"), folder.path()).unwrap(), Some(path("x.old")));
                assert_eq!(fs::read_to_string(path("x.old")).unwrap(), text);
                assert_eq!(fs::read_to_string(path("x")).unwrap(), text, "there at any time");
            }
        }
        let mut left = names(folder.path());
        left.sort();
        assert_eq!(left, ["x", "x.old"]);
        fs::write(path("y"), "kept").unwrap();
        fs::create_dir(path("y.old")).unwrap();
        assert!(keep_old(&path("y"), folder.path()).is_err());
        assert_eq!(fs::read_to_string(path("y")).unwrap(), "kept");
        assert_eq!(names(folder.path()).len(), 4, "nothing temporary is left");
    }

    // A file of another file system cannot be linked into this one.
    #[test]
    fn what_cannot_be_linked_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = Path::new("/proc/version");
        let temporary = Temporary { folder: folder.path().to_owned(), name: None, partial: None };
        temporary.name(&File::open(elsewhere).unwrap(), &folder.path().join("x")).unwrap();
        assert_eq!(names(folder.path()), ["x"]);
        assert_eq!(fs::read(folder.path().join("x")).unwrap(), fs::read(elsewhere).unwrap());
    }
}
