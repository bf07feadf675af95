//! Which server is asked for a file, and how often.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;

use precise_model::text::sanitize;
use precise_records::record::BuildId;
use precise_sampling::symbols::DebugServer;

use super::DebuginfodSettings;
use super::cache::DebugCache;

/// Maximum number of files that one run fetches.
const MAX_FETCHED: usize = 256;

/// Where files come from.
pub(super) trait DebugSource: Send {
    /// Writes the debug information of a build id to `file`. `tell` is called with its size, if
    /// that is known, when it begins to come. Returns whether the source has it.
    ///
    /// # Errors
    ///
    /// Returns why it could not be fetched.
    fn fetch(&self, id: &str, file: &mut File, tell: &dyn Fn(Option<u64>)) -> Result<bool, SourceError>;
    /// Returns the address of the source, without a password.
    fn shown(&self) -> &str;
}

/// Why a file could not be fetched.
#[derive(Debug)]
pub(super) enum SourceError {
    /// It is not asked again.
    Down(String),
    /// This file cannot be had.
    File(String),
}

/// The files of sources, by build id.
pub(super) struct DebugFiles<S> {
    pub(super) sources: Vec<S>,
    /// The sources that are not asked any more, by their place in `sources`.
    down: BTreeSet<usize>,
    cache: DebugCache,
    /// What no source has.
    pub(super) missing: BTreeSet<String>,
    fetched: usize,
    tell: fn(&str),
}

impl<S: DebugSource> DebugFiles<S> {
    pub fn new(sources: Vec<S>, settings: DebuginfodSettings, tell: fn(&str)) -> Self {
        let cache = DebugCache::new(settings.cache);
        Self { sources, down: BTreeSet::new(), cache, missing: BTreeSet::new(), fetched: 0, tell }
    }

    fn fetch(&mut self, id: &str) -> Result<Option<File>, String> {
        if self.fetched >= MAX_FETCHED {
            return Err(format!("one run fetches the debug information of {MAX_FETCHED} files at most"));
        }
        let mut troubles = Vec::new();
        for (at, source) in self.sources.iter().enumerate() {
            if self.down.contains(&at) {
                continue;
            }
            let mut entry = self.cache.create(id)?;
            let from = sanitize(source.shown());
            let begins = |size: Option<u64>| {
                let size = size.map_or_else(String::new, |bytes| format!(", {} MB", bytes.div_ceil(1 << 20)));
                (self.tell)(&format!("fetching the debug information of build id {id} from {from}{size}"));
            };
            let why = match source.fetch(id, entry.file(), &begins) {
                Ok(true) => {
                    self.fetched += 1;
                    return entry.keep().map(Some);
                }
                Ok(false) => continue,
                Err(SourceError::File(why)) => why,
                Err(SourceError::Down(why)) => {
                    self.down.insert(at);
                    format!("{why}; it is not asked again")
                }
            };
            troubles.push(format!("cannot fetch debug information from {from}: {}", sanitize(&why)));
        }
        if troubles.is_empty() { Ok(None) } else { Err(troubles.join("; ")) }
    }
}

impl<S: DebugSource> DebugServer for DebugFiles<S> {
    fn debug_info(&mut self, id: &BuildId) -> Result<Option<File>, String> {
        let id = id.hex();
        if self.missing.contains(&id) {
            return Ok(None);
        }
        if let Some(known) = self.cache.find(&id) {
            return Ok(Some(known));
        }
        let found = self.fetch(&id);
        if !matches!(found, Ok(Some(_))) {
            self.missing.insert(id);
        }
        found
    }

    fn refuse(&mut self, id: &BuildId) {
        self.cache.remove(&id.hex());
        self.missing.insert(id.hex());
    }
}

impl<S> fmt::Debug for DebugFiles<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DebugFiles({} servers)", self.sources.len())
    }
}
