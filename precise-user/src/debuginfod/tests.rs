//! Which servers are asked, and what is kept of their answers.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Mutex;

use precise_records::record::BuildId;
use precise_sampling::symbols::DebugServer as _;

use super::DebuginfodSettings;
use super::cache::DebugCache;
use super::files::{DebugFiles, DebugSource, SourceError};
use crate::error::Failure;

const ID: &str = "00112233445566778899aabbccddeeff00112233";

fn id() -> BuildId {
    let bytes: Vec<u8> = (0..20).map(|at| u8::from_str_radix(&ID[at * 2..at * 2 + 2], 16).unwrap()).collect();
    BuildId::new(&bytes).unwrap()
}

/// What a source answers each time, and how often it was asked.
struct Prepared {
    answer: fn(&mut File) -> Result<bool, SourceError>,
    asked: Mutex<usize>,
}

impl Prepared {
    fn new(answer: fn(&mut File) -> Result<bool, SourceError>) -> Self {
        Self { answer, asked: Mutex::new(0) }
    }
}

impl DebugSource for Prepared {
    fn fetch(&self, id: &str, file: &mut File, tell: &dyn Fn(Option<u64>)) -> Result<bool, SourceError> {
        assert_eq!(id, ID);
        *self.asked.lock().unwrap() += 1;
        tell(Some(1));
        (self.answer)(file)
    }

    fn shown(&self) -> &str {
        "prepared"
    }
}

fn has(file: &mut File) -> Result<bool, SourceError> {
    file.write_all(b"debug").unwrap();
    Ok(true)
}

fn breaks(file: &mut File) -> Result<bool, SourceError> {
    file.write_all(b"de").unwrap();
    Err(SourceError::File("it broke".to_owned()))
}

fn files(sources: Vec<Prepared>, cache: Option<&Path>) -> DebugFiles<Prepared> {
    let settings = DebuginfodSettings { cache: cache.map(Path::to_owned), ..settings(&[]) };
    DebugFiles::new(sources, settings, |_| ())
}

fn asked(files: &DebugFiles<Prepared>) -> Vec<usize> {
    files.sources.iter().map(|source| *source.asked.lock().unwrap()).collect()
}

fn content(file: Option<File>) -> String {
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file.as_ref().unwrap()));
    let mut text = String::new();
    // From its start, wherever it was written last.
    File::open(path).unwrap().read_to_string(&mut text).unwrap();
    text
}

fn settings(variables: &[(&str, &str)]) -> DebuginfodSettings {
    of(&[&[("DEBUGINFOD_URLS", "http://a")], variables].concat()).unwrap().unwrap()
}

fn of(variables: &[(&str, &str)]) -> Result<Option<DebuginfodSettings>, Failure> {
    let find = |name: &str| variables.iter().rev().find(|(known, _)| *known == name);
    DebuginfodSettings::of(|name| find(name).map(|(_, value)| (*value).to_owned()))
}

#[test]
fn nobody_is_asked_whom_the_environment_does_not_name() {
    assert_eq!(of(&[("HOME", "/root")]).unwrap(), None);
    assert_eq!(of(&[("DEBUGINFOD_URLS", " ")]).unwrap(), None);
    assert_eq!(of(&[("DEBUGINFOD_URLS", "ima:enforcing")]).unwrap(), None);
    let two = settings(&[("DEBUGINFOD_URLS", "ima:ignore http://a/ https://b:8002/x"), ("HOME", "/h")]);
    assert_eq!(two.servers, ["http://a", "https://b:8002/x"]);
    assert_eq!(two.cache.as_deref(), Some(Path::new("/h/.cache/debuginfod_client")));
    assert_eq!((two.timeout.as_secs(), two.longest.as_secs(), two.largest), (90, 600, 1 << 30));
    let other =
        [("DEBUGINFOD_MAXSIZE", "1000"), ("DEBUGINFOD_TIMEOUT", "7"), ("DEBUGINFOD_CACHE_PATH", "/c")];
    let other = settings(&other);
    assert_eq!((other.largest, other.timeout.as_secs()), (1000, 7));
    assert_eq!(other.cache.as_deref(), Some(Path::new("/c")));
    // There is always a limit: 0 stands for the default.
    assert_eq!(settings(&[("DEBUGINFOD_MAXSIZE", "0")]).largest, 1 << 30);
    for wrong in [
        [("DEBUGINFOD_URLS", "file:///tmp"), ("HOME", "/")],
        [("DEBUGINFOD_URLS", "http://a"), ("DEBUGINFOD_TIMEOUT", "soon")],
    ] {
        assert!(of(&wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_file_is_fetched_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = files(vec![Prepared::new(|_| Ok(false)), Prepared::new(has)], Some(folder.path()));
    for _ in 0..2 {
        assert_eq!(content(first.debug_info(&id()).unwrap()), "debug");
    }
    assert_eq!(asked(&first), [1, 1]);
    // Another run finds it.
    let mut second = files(vec![Prepared::new(|_| Ok(false))], Some(folder.path()));
    assert_eq!(content(second.debug_info(&id()).unwrap()), "debug");
    assert_eq!(asked(&second), [0]);
    // Until somebody says that it is not the file.
    second.refuse(&id());
    assert!(second.debug_info(&id()).unwrap().is_none());
    let mut third = files(vec![Prepared::new(has)], Some(folder.path()));
    assert_eq!(content(third.debug_info(&id()).unwrap()), "debug");
    assert_eq!(asked(&third), [1]);
}

#[test]
fn what_breaks_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut broken = files(vec![Prepared::new(breaks)], Some(folder.path()));
    let why = broken.debug_info(&id()).unwrap_err();
    assert!(why.contains("from prepared: it broke"), "{why}");
    let left: Vec<_> = std::fs::read_dir(folder.path().join(ID)).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    // It is not asked again in this run.
    assert!(broken.debug_info(&id()).unwrap().is_none());
    assert_eq!(asked(&broken), [1]);
    // A server that has it after one that breaks.
    let mut both = files(vec![Prepared::new(breaks), Prepared::new(has)], None);
    assert_eq!(content(both.debug_info(&id()).unwrap()), "debug");
}

#[test]
fn a_server_that_is_down_is_asked_once() {
    let down = || Prepared::new(|_| Err(SourceError::Down("cannot connect".to_owned())));
    let mut files = files(vec![down(), Prepared::new(|_| Ok(false))], None);
    let why = files.debug_info(&id()).unwrap_err();
    assert!(why.contains("cannot connect; it is not asked again"), "{why}");
    files.missing.clear();
    assert!(files.debug_info(&id()).unwrap().is_none());
    assert_eq!(asked(&files), [1, 2]);
}

#[test]
fn the_empty_file_of_elfutils_is_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(ID)).unwrap();
    File::create(folder.path().join(ID).join("debuginfo")).unwrap();
    let mut files = files(vec![Prepared::new(has)], Some(folder.path()));
    assert_eq!(content(files.debug_info(&id()).unwrap()), "debug");
}

#[test]
fn only_regular_files_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join(ID);
    std::fs::create_dir(&own).unwrap();
    let cache = DebugCache::new(Some(folder.path().to_owned()));
    std::os::unix::fs::symlink("/proc/self/exe", own.join("debuginfo")).unwrap();
    assert!(cache.find(ID).is_none());
    std::fs::remove_file(own.join("debuginfo")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(own.join("debuginfo")).status().unwrap();
    assert!(made.success() && cache.find(ID).is_none());
}

#[test]
fn what_nobody_reads_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let make = |id: &str, name: &str, age: &str| {
        let path = folder.path().join(id).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        let touched = std::process::Command::new("touch").args(["-d", age]).arg(&path).status().unwrap();
        assert!(touched.success());
        path
    };
    let old = make("aa11", "debuginfo", "8 days ago");
    let partial = make("bb22", "debuginfo.7.partial", "8 days ago");
    let recent = make("cc33", "debuginfo", "6 days ago");
    let others = [make("dd44", "executable", "8 days ago"), make("notes", "debuginfo", "8 days ago")];
    files(vec![Prepared::new(has)], Some(folder.path())).debug_info(&id()).unwrap();
    assert!(!old.parent().unwrap().exists() && !partial.exists());
    assert!(recent.exists() && others.iter().all(|path| path.exists()));
}
